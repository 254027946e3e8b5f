"""What a strategy would send about an item, and what is read in a reply: nothing is stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from annotation import seeing
from annotation.models import Item, Membership, Project
from judging import strategies
from judging.calling import rendering
from judging.errors import Refused
from judging.models import Endpoint, Request, Run, StrategyVersion
from judging.preparing import allowing, drawing, pinning, selecting
from judging.prompts import described, frames, injection, placeholders
from judging.prompts.frames import CallSpec, Prompt
from judging.replies import outputs
from judging.replies.outputs import Reading
from judging.strategies import Strategy

# What stands for an evaluator while none is chosen.
_NOBODY = {"name": "nobody", "provider": "openai_compatible", "model": "none"}
EXPLAINED = ("explanation", "score")
SUGGESTED = 20


@dataclass(frozen=True)
class Sent:
    """What an endpoint would get: the exact body, the digest of its request, and whether that
    request was answered before, so that a run would not ask again."""

    body: str
    digest: str
    answered: bool


@dataclass(frozen=True)
class Preview:
    """One call of a strategy about an item.

    `calls` are all that the item takes, by name and title, and `call` the name of the one shown.
    `prompt` is None where `problem` says why there is none. `replies` are texts that only a run
    has, by name: what was said in their place, or a stand-in for each that is in `stand_ins`.
    `flags` say what the shown texts hold that speaks to the judge. `notes` are what else a run
    would do otherwise. `sent` is None without an endpoint, or where `refused` says why. `examples`
    are the ids of items whose answers are shown.
    """

    calls: tuple[tuple[str, str], ...] = ()
    call: str = ""
    title: str = ""
    prompt: Prompt | None = None
    problem: str = ""
    replies: Mapping[str, str] = field(default_factory=dict)
    stand_ins: frozenset[str] = frozenset()
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    sent: Sent | None = None
    refused: str = ""
    examples: frozenset[int] = frozenset()


def note_seen(member: Membership, item: Item | None, made: Preview, now: datetime) -> None:
    """Note what a member sees in a preview of what people hold true: the answers of the examples,
    and by whether a run would leave the item out, something of its own."""
    if item is not None:
        seeing.note(member, item, now=now)
    seeing.note_all(member, made.examples, now=now)


def preview(
    project: Project,
    version: StrategyVersion,
    *,
    item: Item | None,
    call: str = "",
    endpoint: Endpoint | None = None,
    said: Mapping[str, str] | None = None,
) -> Preview:
    """What one call of the version would send about an item, rendered as a run renders it.

    `call` is a name of `described.name`; without one of the strategy's the axis of the item's
    ability comes first. `said` is what stands for earlier replies.
    """
    try:
        run = _draft(project, version, endpoint)
    except Refused as problem:
        return Preview(problem=str(problem))
    strategy = run.asked()
    specs = frames.all_calls(strategy)
    if not specs:
        return Preview(problem="This strategy asks nobody: it makes its outcomes of other runs'.")
    spec = (described.named(strategy, call) if call else None) or _first(strategy, item)
    made = Preview(
        calls=tuple((described.name(one), described.title(strategy, one)) for one in specs),
        call=described.name(spec),
        title=described.title(strategy, spec),
    )
    if item is None:
        return replace(made, problem="Choose an item of the project to see its prompt.")
    asked = _Asked(run, strategy, spec, item.revision().texts, *_replies(strategy, spec, said))
    return _rendered(made, asked, item, endpoint)


def read(
    project: Project, version: StrategyVersion, *, text: str, finish: str, call: str = ""
) -> Reading:
    """What the version's parser makes of a reply to a call, by default to the last step.

    Raises `Refused` where the strategy does not fit the project, or asks nobody.
    """
    strategy = in_project(project, version)
    if strategy.metric or not frames.all_calls(strategy):
        raise Refused("This strategy asks nobody, so there is no reply to read.")
    spec = described.named(strategy, call) if call else None
    return outputs.read(strategy, text, finish, spec=spec)


def in_project(project: Project, version: StrategyVersion) -> Strategy:
    """The strategy as a run of the project would pin it, with metrics of the task type where it
    takes them from there. Raises `Refused` where the two do not fit."""
    return _draft(project, version, None).asked()


def item_of(project: Project, key: str, version: StrategyVersion | None) -> Item | None:
    """The item of this key, None if there is none; without a key one that a run would be over, or
    else the first of all."""
    items = Item.objects.in_project(project).order_by("position")
    if key:
        return None if "\0" in key else items.filter(key=key).first()
    if version is not None:
        first = selecting.first(project, frames.needs(version.strategy()))
        if first is not None:
            return items.filter(pk=first).first()
    return items.first()


def keys_like(project: Project, part: str) -> list[str]:
    """Keys of items that hold this part, in the order of the items."""
    if "\0" in part:
        return []
    found = Item.objects.in_project(project).with_key_like(part).order_by("position")
    return list(found.values_list("key", flat=True)[:SUGGESTED])


def _draft(project: Project, version: StrategyVersion, endpoint: Endpoint | None) -> Run:
    """A run as `runs.start` would pin it, not stored; its seed decides the examples."""
    return pinning.draft(project, version, endpoint or Endpoint(**_NOBODY), seed=0)


def _first(strategy: Strategy, item: Item | None) -> CallSpec:
    """The first call along the axis that decides the item."""
    ability, source = (item.ability, item.source_ability) if item else ("", "")
    axes = strategies.for_item(strategy, ability, source)
    main = next((axis for axis, decides in axes if decides), axes[0][0])
    return frames.calls(strategy, axis=main)[0]


@dataclass(frozen=True)
class _Asked:
    """A call with the texts of its item, and what stands for earlier replies."""

    run: Run
    strategy: Strategy
    spec: CallSpec
    texts: Mapping[str, Any]
    replies: dict[str, str]
    stand_ins: frozenset[str]


def _rendered(made: Preview, asked: _Asked, item: Item, endpoint: Endpoint | None) -> Preview:
    if lacking := _lacking(asked):
        listed = ", ".join(lacking)
        return replace(made, problem=f"{item.key} has no text {listed}. Choose an item that has.")
    examples, ids, note = _examples(asked, item)
    more = {**examples, **asked.replies}
    try:
        prompt = frames.render(asked.strategy, asked.texts, asked.spec, more=more)
    except ValueError as error:
        return replace(made, problem=f"This item cannot be asked about: {error}.")
    fences = injection.delimiters(asked.strategy)
    made = replace(
        made,
        prompt=prompt,
        replies=asked.replies,
        stand_ins=asked.stand_ins,
        flags=tuple(injection.flags(_shown(asked), delimiters=fences)),
        notes=(*note, *_left_out(asked, item)),
        examples=ids,
    )
    if endpoint is None:
        return made
    try:
        allowing.check(asked.strategy, endpoint)
        whole = not (asked.stand_ins or note)
        return replace(made, sent=_sent(asked, more, whole=whole))
    except (Refused, ValueError) as error:
        return replace(made, refused=str(error))


def _replies(
    strategy: Strategy, spec: CallSpec, said: Mapping[str, str] | None
) -> tuple[dict[str, str], frozenset[str]]:
    """What the call shows of earlier replies, and which of it only stands for them."""
    used = placeholders.used(strategy.step(spec.step).prompt)
    names = [step.name for step in strategy.steps[: spec.step]]
    if strategy.frame == "explanation":
        names += EXPLAINED
    wanted = [name for name in names if name in used]
    given = {name: text for name, text in (said or {}).items() if name in wanted and text.strip()}
    replies = {name: given.get(name, f"(what was replied: {name})") for name in wanted}
    return replies, frozenset(wanted) - given.keys()


def _examples(asked: _Asked, item: Item) -> tuple[dict[str, str], frozenset[int], tuple[str, ...]]:
    """The examples that a run over this item alone would show, and the ids of their items; a note
    where there are none."""
    if not asked.strategy.examples:
        return {}, frozenset(), ()
    try:
        drawn = drawing.draw(asked.run.project, asked.strategy, seed=0, only={item.pk})
    except Refused as problem:
        note = f"No examples can be shown: {problem}"
        return {"examples": "(examples)"}, frozenset(), (note,)
    pinning.show(asked.run, drawn.examples)
    ids = frozenset(row["item_id"] for row in drawn.examples)
    return rendering.shown_to_all(asked.run, asked.strategy), ids, ()


def _sources(asked: _Asked) -> frozenset[str]:
    """The names of the item's texts that the call shows."""
    sources = frames.FRAMES[asked.strategy.frame][CallSpec(asked.spec.role, asked.spec.order)]
    used = placeholders.used(asked.strategy.step(asked.spec.step).prompt)
    return frozenset(
        source for name, source in sources.items() if name in used or asked.strategy.metric
    )


def _lacking(asked: _Asked) -> list[str]:
    """Those of them that the item does not have; a question may be its prompt or its input."""
    there = set(asked.texts)
    if there & {"prompt", "input"}:
        there.add("question")
    return sorted(_sources(asked) - there)


def _shown(asked: _Asked) -> dict[str, Any]:
    """The texts that the call shows, by their names in the item; earlier replies too."""
    names = set(_sources(asked))
    if "question" in names:
        names |= {"prompt", "input", "context"}
    replies = {f"reply {name}": text for name, text in asked.replies.items()}
    return {name: text for name, text in asked.texts.items() if name in names} | replies


def _left_out(asked: _Asked, item: Item) -> tuple[str, ...]:
    """Whether a run would not be over this item."""
    needs = frames.needs(asked.strategy)
    if needs == "run":
        return ()
    if selecting.takes(asked.run.project, needs, item):
        return ()
    wanted = " or ".join(value.replace("_", " ") for value in selecting.NEEDED.get(needs, ()))
    return (
        f"A run would leave {item.key} out: it is not resolved{' as ' * bool(wanted)}{wanted}.",
    )


def _sent(asked: _Asked, more: Mapping[str, str], *, whole: bool) -> Sent:
    """The exact body; what has stand-ins in it is no request, and has no digest."""
    body = rendering.body_of(asked.run, asked.texts, asked.spec, asked.strategy, more)
    if not whole:
        return Sent(body.decode(), "", answered=False)
    digest = rendering.digest_of(asked.run, body)
    answered = Request.objects.filter(digest=digest, state="answered").exists()
    return Sent(body.decode(), digest, answered)
