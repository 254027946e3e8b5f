"""Render requests from what a run pins. The result is always identical, byte by byte.

Prompts are not stored. The digest of the request proves that a rendered prompt is the prompt that
was sent.
"""

import copy
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from annotation.models import Item, Revision
from judging.evaluators import providers
from judging.models import Call, Run
from judging.runs import run_config
from judging.runs.engine import digests
from judging.strategies import Scale, Strategy, criteria, draws, frames
from judging.strategies.frames import CallSpec

NO_EXTRA_TEXTS: Mapping[str, str] = {}


def render_body(
    run: Run,
    texts: Mapping[str, Any],
    spec: CallSpec,
    strategy: Strategy,
    more: Mapping[str, str] = NO_EXTRA_TEXTS,
) -> bytes:
    """Render the exact body of a call from what the run pins."""
    prompt = render_prompt(run, texts, spec, strategy, more)
    # Only a JSON mode sends the schema, and building it takes as long as rendering the prompt.
    asks_json = run.pinned.get("json_mode")
    schema = frames.build_schema(strategy, spec, texts) if asks_json else None
    return providers.build_body(run.pinned, prompt, schema=schema)


def render_prompt(
    run: Run,
    texts: Mapping[str, Any],
    spec: CallSpec,
    strategy: Strategy,
    more: Mapping[str, str] = NO_EXTRA_TEXTS,
) -> frames.RenderedPrompt:
    """Render the prompt of a call as the renderer did that the run was started with."""
    if strategy.frame in frames.WITHOUT_CONTEXT.get(run.renderer, ()):
        texts = {name: text for name, text in texts.items() if name != "context"}
    return frames.render_prompt(strategy, texts, spec, more=more)


def with_supplement(run: Run, number: int) -> Run:
    """Return the run as its supplement with this number asks: an unsaved copy with the supplement's
    parameters; the run itself for 0."""
    if not number:
        return run
    again = copy.copy(run)
    changed = run.pinned[run_config.SUPPLEMENTS_KEY][number - 1]["parameters"]
    again.pinned = {**run.pinned, "parameters": {**run.pinned["parameters"], **changed}}
    return again


def compute_request_digest(run: Run, body: bytes, sample: int = 0) -> str:
    """Compute the digest of the request with this body, given what the run pins."""
    return build_digest_function(run)(body, sample)


def build_digest_function(run: Run) -> Callable[[bytes, int], str]:
    """Build a function that computes the digests for many bodies and samples of a run."""
    return digests.build_request_hasher(
        provider=run.pinned["provider"],
        address=run.pinned["address"],
        model=run.pinned["model"],
        parameters=run.pinned["parameters"],
        occasion=run.occasion,
    )


def load_shared_texts(run: Run, strategy: Strategy) -> dict[str, str]:
    """Load the texts that every prompt of a run contains: the pinned examples with their pinned
    answers."""
    if not run.few_shot:
        return {}
    keys, digests = zip(*run.few_shot, strict=True)
    found = Revision.objects.filter(
        item__project=run.project_id, item__key__in=keys, digest__in=digests
    ).select_related("item")
    texts = {(one.item.key, one.digest): one.texts for one in found}
    shown = [texts[key, digest] for key, digest in run.few_shot]
    pairs = list(zip(shown, run.pinned["answers"], strict=True))
    return {"examples": frames.render_examples(strategy, pairs)}


def load_guidance(run: Run, items: Iterable[int]) -> dict[int, dict[str, str]]:
    """Load the reviewers' guidance in a run's prompts, by item id."""
    said = run_config.load_overrides(run.pinned).guidance
    if not said:
        return {}
    keys = Item.objects.filter(pk__among=list(items)).values_list("pk", "key")
    return {
        pk: {"guidance": criteria.render_guidance(said[key])} for pk, key in keys if key in said
    }


def load_supplements(run: Run, requests: Collection[int]) -> dict[int, int]:
    """Load the number of the supplement that each of these requests of a run belongs to."""
    if run_config.SUPPLEMENTS_KEY not in run.pinned:
        return dict.fromkeys(requests, 0)
    made = Call.objects.filter(run=run, request__among=requests)
    return dict(made.values_list("request", "supplement"))


def render_bodies(run: Run, requests: Collection[int]) -> dict[int, bytes]:
    """Render again the exact bodies of a run's requests from what the run pins; by request id."""
    strategy = run.pinned_strategy()
    return {
        pk: render_body(
            with_supplement(run, one.supplement), one.texts, one.spec, strategy, one.more
        )
        for pk, one in load_prompt_inputs(run, strategy, requests).items()
    }


class PromptInputs(NamedTuple):
    """The inputs of a request's prompt."""

    spec: CallSpec
    texts: Mapping[str, Any]
    more: Mapping[str, str]
    supplement: int = 0


def load_prompt_inputs(
    run: Run, strategy: Strategy, requests: Collection[int]
) -> dict[int, PromptInputs]:
    """Load the prompt inputs of a run's requests, by request id, each from one call of the
    request."""
    made = Call.objects.filter(run=run, request__among=requests).values_list(*_COLUMNS)
    asked = [_RenderedCallRow(*row) for row in made]
    everywhere, said = load_shared_texts(run, strategy), _load_earlier_replies(strategy, asked)
    remarks = load_guidance(run, {call.item_id for call in asked})
    checks = strategy.frame == "explanation"
    scale = get_checked_run(run).pinned_strategy().scale if checks else None
    found = {}
    for call in asked:
        more = everywhere | said.get(call.chain, {}) | remarks.get(call.item_id, {})
        more |= draws.render(strategy, call.drawn)
        if checks:
            more |= format_explanation(call.explanation or "", call.value, scale)
        found[call.request_id] = PromptInputs(call.spec, call.texts, more, call.supplement)
    return found


class _RenderedCallRow(NamedTuple):
    """The columns of a call, and of the reading that its prompt includes."""

    request_id: int
    outcome_id: int
    item_id: int
    role: str
    order: int
    axis: str
    step: int
    sample: int
    supplement: int
    texts: Mapping[str, Any]
    drawn: draws.Drawn | None
    explanation: str | None
    value: Any

    @property
    def spec(self) -> CallSpec:
        return CallSpec(self.role, self.order, self.axis, self.step)

    @property
    def chain(self) -> tuple[int, str, int, int, int, int]:
        """The chain that the call belongs to, and its step."""
        return self.outcome_id, self.role, self.order, self.sample, self.supplement, self.step


_COLUMNS = (
    "request", "outcome", "outcome__item", "role", "order", "axis", "step", "sample",
    "supplement", "outcome__revision__texts", "outcome__drawn", "fed_by__explanation",
    "fed_by__value",
)  # fmt: skip


def _load_earlier_replies(
    strategy: Strategy, asked: Sequence[_RenderedCallRow]
) -> dict[tuple[int, str, int, int, int, int], dict[str, str]]:
    """Load the readings of earlier steps, by chain and step. Each call of a chain shows the reading
    of the previous call, and the readings that the previous call showed."""
    chained = {call.outcome_id for call in asked if call.step > 0}
    if not chained:
        return {}
    fed = Call.objects.filter(outcome__in=chained, step__gt=0).order_by("step")
    columns = ("outcome", "role", "order", "sample", "supplement", "step", "fed_by__value")
    said: dict[tuple[int, str, int, int, int, int], dict[str, str]] = {}
    for *chain, step, value in fed.values_list(*columns):
        before = said.get((*chain, step - 1), {})
        said[*chain, step] = {**before, strategy.step(step - 1).name: format_value(value)}
    return said


def format_explanation(explanation: str, value: Any, scale: Scale | None) -> dict[str, str]:
    """Format a reading for the prompt of an explanation check; a score is shown with its scale."""
    ends = f" ({scale.low:g} to {scale.high:g})" if scale else ""
    return {"explanation": explanation, "score": f"{format_value(value)}{ends}"}


def get_checked_run(run: Run) -> Run:
    """The run whose explanations the given run checks."""
    return run.sources.select_related("strategy").get()


def format_value(value: Any) -> str:
    """Format the value of a reading as a later prompt shows it."""
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
