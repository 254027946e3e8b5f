"""Preview what a strategy would send about an item, and parse a reply; nothing is stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from annotation.items import taxonomy
from annotation.labelling import visibility
from annotation.models import Item, Membership, Project
from judging import strategies
from judging.errors import Refused
from judging.models import Endpoint, Request, Run, StrategyVersion
from judging.runs import pinning, run_items, selection, start_checks
from judging.runs.engine import rendering
from judging.strategies import Strategy, descriptions, draws, frames, injection, schema
from judging.strategies.draws import Drawn, DrawnSource
from judging.strategies.frames import CallSpec, RenderedPrompt
from judging.strategies.replies import outputs
from judging.strategies.replies.outputs import ParsedReply

_LANGUAGE_NOTE = f"A run shows the language that is chosen for it in place of {frames.NO_LANGUAGE}."
# A placeholder that is used until an endpoint is chosen.
_DUMMY_ENDPOINT = {"name": "nobody", "provider": "openai_compatible", "model": "none"}
EXPLANATION_INPUTS = ("explanation", "score")
MAX_SUGGESTED_KEYS = 20


@dataclass(frozen=True)
class RequestPreview:
    """The request to an endpoint: the exact body, its digest, and whether the request is already
    answered. A run would not send an answered request again.
    """

    body: str
    digest: str
    answered: bool


@dataclass(frozen=True)
class CallPreview:
    """One call of a strategy about an item.

    `calls` are the names and titles of all calls for the item; `call` is the name of the call that
    is shown. `prompt` is None if there is a `problem`. `replies` are texts that normally come from
    a run, by name: texts given by the user, or a placeholder text for each name in `stand_ins`.
    `flags` are possible prompt injections in the shown texts. `notes` say how else a run would
    differ from the preview. `sent` is None without an endpoint, or if there is a reason in
    `refused`. `examples` are the ids of items whose answers are shown.
    """

    calls: tuple[tuple[str, str], ...] = ()
    call: str = ""
    title: str = ""
    prompt: RenderedPrompt | None = None
    problem: str = ""
    replies: Mapping[str, str] = field(default_factory=dict)
    stand_ins: frozenset[str] = frozenset()
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    sent: RequestPreview | None = None
    refused: str = ""
    examples: frozenset[int] = frozenset()


def record_seen_answers(
    member: Membership, item: Item | None, made: CallPreview, now: datetime
) -> None:
    """Record which final labels the preview reveals to a member. These are the labels of the
    examples, and indirectly that of the item, since the preview says whether a run would leave the
    item out.
    """
    if item is not None:
        visibility.record_seen(member, item, now=now)
    visibility.record_all_seen(member, made.examples, now=now)


def build_preview(
    project: Project,
    version: StrategyVersion,
    *,
    item: Item | None,
    call: str = "",
    endpoint: Endpoint | None = None,
    said: Mapping[str, str] | None = None,
) -> CallPreview:
    """Preview one call of the version about an item, rendered as a run renders it.

    `call` is a name from `descriptions.format_call_name`; by default, or if it is unknown, the
    first call along the axis of the item's ability. `said` gives texts in place of earlier replies.
    """
    try:
        run = _draft(project, version, endpoint)
    except Refused as problem:
        return CallPreview(problem=str(problem))
    strategy = run.pinned_strategy()
    specs = frames.list_all_calls(strategy)
    if not specs:
        return CallPreview(problem="This strategy sends no requests: it combines other runs.")
    spec = (descriptions.find_call(strategy, call) if call else None) or _choose_first_call(
        strategy, item, project
    )
    made = CallPreview(
        calls=tuple(
            (descriptions.format_call_name(one), descriptions.format_call_title(strategy, one))
            for one in specs
        ),
        call=descriptions.format_call_name(spec),
        title=descriptions.format_call_title(strategy, spec),
    )
    if item is None:
        return replace(made, problem="Choose an item to see its prompt.")
    asked = _PreviewedCall(
        run, strategy, spec, item.revision().texts, *_build_earlier_replies(strategy, spec, said)
    )
    return _render_preview(made, asked, item, endpoint)


def parse_reply(
    project: Project, version: StrategyVersion, *, text: str, finish: str, call: str = ""
) -> ParsedReply:
    """Parse a reply to a call, by default a call of the last step, and return the reading.

    Raises `Refused` if the strategy does not fit the project, or sends no requests.
    """
    strategy = build_project_strategy(project, version)
    if strategy.metric or not frames.list_all_calls(strategy):
        raise Refused("This strategy sends no requests, so there is no reply to parse.")
    spec = descriptions.find_call(strategy, call) if call else None
    return outputs.parse_reply(strategy, text, finish, spec=spec)


def build_project_strategy(project: Project, version: StrategyVersion) -> Strategy:
    """Return the strategy as a run of the project would pin it, with the metrics of the task type
    if it uses them. Raises `Refused` if strategy and task type do not fit together.
    """
    return _draft(project, version, None).pinned_strategy()


def find_item(project: Project, key: str, version: StrategyVersion | None) -> Item | None:
    """Find the item with this key, or None. Without a key, find the first item that a run would
    cover, or else the first item of the project.
    """
    items = Item.objects.in_project(project).order_by("position")
    if key:
        return None if "\0" in key else items.filter(key=key).first()
    if version is not None:
        first = selection.find_first_item(project, frames.get_item_needs(version.strategy()))
        if first is not None:
            return items.filter(pk=first).first()
    return items.first()


def suggest_keys(project: Project, part: str) -> list[str]:
    """Find item keys that contain this text, in the order of the items."""
    if "\0" in part:
        return []
    found = Item.objects.in_project(project).with_key_like(part).order_by("position")
    return list(found.values_list("key", flat=True)[:MAX_SUGGESTED_KEYS])


def _draft(project: Project, version: StrategyVersion, endpoint: Endpoint | None) -> Run:
    """Build an unsaved run that pins the same things as `lifecycle.start_run`; its seed decides the
    examples.
    """
    return pinning.draft_run(project, version, endpoint or Endpoint(**_DUMMY_ENDPOINT), seed=0)


def _choose_first_call(strategy: Strategy, item: Item | None, project: Project) -> CallSpec:
    """Return the first call along the axis that decides the item."""
    ability, source = (item.ability, item.source_ability) if item else ("", "")
    axes = strategies.list_item_axes(strategy, ability, source, taxonomy.load_taxonomy(project))
    main = next((axis for axis, decides in axes if decides), axes[0][0])
    return frames.list_calls(strategy, axis=main)[0]


@dataclass(frozen=True)
class _PreviewedCall:
    """A call with the texts of its item, and the texts that replace earlier replies."""

    run: Run
    strategy: Strategy
    spec: CallSpec
    texts: Mapping[str, Any]
    replies: dict[str, str]
    stand_ins: frozenset[str]


def _render_preview(
    made: CallPreview, asked: _PreviewedCall, item: Item, endpoint: Endpoint | None
) -> CallPreview:
    if lacking := _list_missing_texts(asked):
        listed = ", ".join(lacking)
        return replace(made, problem=f"{item.key} has no text {listed}. Choose another item.")
    examples, ids, note = _examples(asked, item)
    try:
        drawn = _draw(asked, item)
    except ValueError as problem:
        return replace(made, problem=str(problem))
    more = {**examples, **asked.replies, **draws.render(asked.strategy, drawn)}
    try:
        prompt = frames.render_prompt(asked.strategy, asked.texts, asked.spec, more=more)
    except ValueError as error:
        return replace(made, problem=f"This item cannot be used: {error}.")
    fences = injection.find_delimiters(asked.strategy)
    made = replace(
        made,
        prompt=prompt,
        replies=asked.replies,
        stand_ins=asked.stand_ins,
        flags=tuple(injection.find_flags(_collect_shown_texts(asked), delimiters=fences)),
        notes=(*note, *_explain_draw(asked, drawn), *_explain_difference(asked, item)),
        examples=ids,
    )
    if endpoint is None:
        return made
    try:
        start_checks.check_endpoint(asked.strategy, endpoint)
        whole = not (asked.stand_ins or note or drawn or asked.strategy.translates)
        return replace(made, sent=_build_request(asked, more, whole=whole))
    except (Refused, ValueError) as error:
        return replace(made, refused=str(error))


def _build_earlier_replies(
    strategy: Strategy, spec: CallSpec, said: Mapping[str, str] | None
) -> tuple[dict[str, str], frozenset[str]]:
    """Return the texts that the call shows in place of earlier replies, and the names of those that
    are placeholder texts.
    """
    used = schema.find_names(strategy.step(spec.step).prompt)
    names = [step.name for step in strategy.steps[: spec.step]]
    if strategy.frame == "explanation":
        names += EXPLANATION_INPUTS
    wanted = [name for name in names if name in used]
    given = {name: text for name, text in (said or {}).items() if name in wanted and text.strip()}
    replies = {name: given.get(name, f"(reply: {name})") for name in wanted}
    return replies, frozenset(wanted) - given.keys()


def _examples(
    asked: _PreviewedCall, item: Item
) -> tuple[dict[str, str], frozenset[int], tuple[str, ...]]:
    """Return the examples for the prompt of this item, with the ids of their items, or a note if
    there are none.
    """
    if not asked.strategy.examples:
        return {}, frozenset(), ()
    try:
        drawn = run_items.draw_items(asked.run.project, asked.strategy, seed=0, only={item.pk})
    except Refused as problem:
        note = f"No examples can be shown: {problem}"
        return {"examples": "(examples)"}, frozenset(), (note,)
    pinning.pin_examples(asked.run, drawn.examples)
    ids = frozenset(row["item_id"] for row in drawn.examples)
    return rendering.load_shared_texts(asked.run, asked.strategy), ids, ()


def _draw(asked: _PreviewedCall, item: Item) -> Drawn:
    """What a run over this item alone would draw for it."""
    source = DrawnSource(item.key, asked.texts)
    return draws.draw_for_items(asked.strategy, [source], 0, {})[item.key]


def _explain_draw(asked: _PreviewedCall, drawn: Drawn) -> tuple[str, ...]:
    said = draws.describe_drawn(asked.strategy, drawn)
    return (f"Drawn for this preview: {said}. A run draws over all its items.",) if said else ()


def _list_text_names(asked: _PreviewedCall) -> frozenset[str]:
    """The names of the item's texts that the call shows."""
    sources = frames.FRAMES[asked.strategy.frame][CallSpec(asked.spec.role, asked.spec.order)]
    used = schema.find_names(asked.strategy.step(asked.spec.step).prompt)
    found = {source for name, source in sources.items() if name in used or asked.strategy.metric}
    if frames.ALL_TEXTS in found:
        return frozenset(frames.list_texts(asked.texts))
    return frozenset(found)


def _list_missing_texts(asked: _PreviewedCall) -> list[str]:
    """List the texts that the call would show but the item does not have. Either the prompt or the
    input can be the question.
    """
    there = set(asked.texts)
    if there & {"prompt", "input"}:
        there.add("question")
    return sorted(_list_text_names(asked) - there)


def _collect_shown_texts(asked: _PreviewedCall) -> dict[str, Any]:
    """The texts that the call shows, by their names in the item, and the earlier replies."""
    names = set(_list_text_names(asked))
    if "question" in names:
        names |= {"prompt", "input", "context"}
    replies = {f"reply {name}": text for name, text in asked.replies.items()}
    return {name: text for name, text in asked.texts.items() if name in names} | replies


def _explain_difference(asked: _PreviewedCall, item: Item) -> tuple[str, ...]:
    """Return notes on how a run would show this item otherwise, or that it would not cover it."""
    if asked.strategy.translates:
        covers = selection.accepts_item(asked.run.project, "texts", item)
        why = f"A run would skip {item.key}: it was rejected, or is a translation."
        return (_LANGUAGE_NOTE,) if covers else (_LANGUAGE_NOTE, why)
    needs = frames.get_item_needs(asked.strategy)
    if needs == "run":
        return ()
    if selection.accepts_item(asked.run.project, needs, item):
        return ()
    wanted = " or ".join(
        value.replace("_", " ") for value in selection.REQUIRED_RESULTS.get(needs, ())
    )
    why = f"its final label is not {wanted}" if wanted else "it has no final label"
    return (f"A run would skip {item.key}: {why}.",)


def _build_request(
    asked: _PreviewedCall, more: Mapping[str, str], *, whole: bool
) -> RequestPreview:
    """Build the exact body. A body with placeholder texts is never sent as a request, so it has no
    digest.
    """
    body = rendering.render_body(asked.run, asked.texts, asked.spec, asked.strategy, more)
    if not whole:
        return RequestPreview(body.decode(), "", answered=False)
    digest = rendering.compute_request_digest(asked.run, body)
    answered = Request.objects.filter(digest=digest, state="answered").exists()
    return RequestPreview(body.decode(), digest, answered)
