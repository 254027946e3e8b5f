"""The page of one item in one run: the prompts, the evaluator's replies, and their readings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from annotation import tasktypes
from annotation.items.diffing import stored
from annotation.projects import access
from judging.models import Call, Outcome, Reading, Reply, Request, Run
from judging.results.filters import OutcomeFilter
from judging.runs.choices import get_run_or_404
from judging.runs.engine import rendering
from judging.strategies import TOTAL, Strategy, descriptions, draws, injection
from judging.strategies.frames import CallSpec, RenderedPrompt
from judging.strategies.replies.combination import PARTS_KEY

# The characters of prompts and replies that the page shows at most, unless one call alone has more:
# a call may have megabytes, and an item a hundred samples.
MAX_CHARACTERS = 4_000_000
# The number of the first call that the page shows.
CALLS_PARAMETER = "calls"


@dataclass(frozen=True)
class MetricScore:
    """The score of one metric. `means` describes this point of the scale; `value` is a number, or
    the cause if there is no number."""

    title: str
    value: Any
    scale: str
    means: str


@dataclass(frozen=True)
class CallLine:
    """One call with its request, reply and readings.

    `prompt` is rendered again; it is None for a recorded reply. `verified` is True if the digest of
    the prompt matches the request that was sent. `shows` is the value of an earlier reply that the
    prompt includes; `shown_from` names the call of the earlier reply. `scored` are the metrics of
    the reading, `others` the readings of other parsers.
    """

    title: str
    call: Call
    request: Request
    prompt: RenderedPrompt | None
    verified: bool
    reply: Reply | None
    reading: Reading | None
    others: list[Reading]
    scored: list[MetricScore]
    shows: Any = None
    shown_from: str = ""

    @property
    def length(self) -> int:
        """The characters of what was sent and of the reply."""
        length = len(self.reply.text) + len(self.reply.thinking or "") if self.reply else 0
        if self.prompt is None:
            return length
        parts = map(str, self.prompt.parts.values())
        return length + len(self.prompt.system) + len(self.prompt.user) + sum(map(len, parts))


@dataclass(frozen=True)
class CallPage:
    """The calls that a page shows: those with the numbers `first` to `last` of all `total` calls
    about the item."""

    lines: Sequence[CallLine]
    first: int
    total: int

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1

    @property
    def next(self) -> int | None:
        """The number of the first call of the next page; None for the last page."""
        return self.last + 1 if self.last < self.total else None


@dataclass(frozen=True)
class SampleLine:
    """The result of one sample of an outcome, or of one source run of a derived run."""

    title: str
    run: int | None
    result: str
    detail: str
    values: Mapping[str, Any]


@require_GET
@login_required
def run_item(request: HttpRequest, slug: str, number: int, key: str) -> HttpResponse:
    """Show one item in one run, with the texts that were judged and every call about the item."""
    member = access.member_for(request, slug, right="results")
    found = get_run_or_404(member, number)
    strategy = found.pinned_strategy()
    of_item = found.outcomes.for_replies().about(key)
    outcome = of_item.along(request.GET.get("axis", "")).first()
    if outcome is None:
        raise Http404
    task = tasktypes.load_version(member.project.task_type)
    texts = outcome.revision.texts
    context = {
        "project": member.project,
        "member": member,
        "task": task,
        "run": found,
        "outcome": outcome,
        "drawn": draws.describe_drawn(strategy, outcome.drawn),
        "along": list(of_item.along("")) if strategy.axes else [],
        "item": outcome.item,
        "texts": texts,
        "difference": stored.load_difference(outcome.revision) if task.diff else None,
        "flags": injection.find_flags(texts, delimiters=injection.find_delimiters(strategy)),
        "scored": _metric_scores(strategy, outcome.values),
        "parts": _sample_lines(found, outcome),
        "asked": _call_page(found, strategy, outcome, request.GET.get(CALLS_PARAMETER, "")),
        **_neighbours(request, found, outcome),
    }
    return render(request, "judging/run_item.html", context)


def _neighbours(request: HttpRequest, run: Run, outcome: Outcome) -> dict[str, Any]:
    """The outcomes of the items before and after this one in the list of outcomes, with the search
    of the list from which the page was opened."""
    search = OutcomeFilter(request.GET, queryset=run.outcomes.for_list())
    place = outcome.item.position
    before = search.qs.filter(item__position__lt=place).order_by("-item__position", "pk")
    after = search.qs.filter(item__position__gt=place).order_by("item__position", "pk")
    return {
        "narrowed": any(request.GET.get(name) for name in search.filters),
        "previous": before.first(),
        "next": after.first(),
    }


def _call_page(run: Run, strategy: Strategy, outcome: Outcome, said: str) -> CallPage:
    """The calls from the number that the URL says, in the order of supplement, sample, order, role
    and step: as many as have `MAX_CHARACTERS` together, and at least one."""
    ordered = sorted(outcome.calls.list_places_with_length())
    number = int(said) if said.isdecimal() and len(said) < 10 else 1
    first = max(1, min(number, len(ordered)))
    # To render the prompt of a call, its texts are loaded.
    texts = len(str(outcome.revision.texts)) if run.kind == Run.Kind.ASKED else 0
    lengths = [length + texts for *_, length in ordered[first - 1 :]]
    few = max(1, sum(total <= MAX_CHARACTERS for total in accumulate(lengths)))
    ids = [pk for *_, pk, _ in ordered[first - 1 :][:few]]
    lines: list[CallLine] = []
    shown = 0
    for line in _call_lines(run, strategy, ids):
        shown += line.length
        if lines and shown > MAX_CHARACTERS:
            break
        lines.append(line)
    return CallPage(lines, first, len(ordered))


def _call_lines(run: Run, strategy: Strategy, ids: Sequence[int]) -> Iterator[CallLine]:
    """Build one line after the other for these calls, in their order."""
    made = Call.objects.filter(pk__among=ids).for_replies().in_bulk()
    shown = {}
    if run.kind == Run.Kind.ASKED and made:
        asked = [call.request_id for call in made.values()]
        shown = rendering.load_prompt_inputs(run, strategy, asked)
    return (_call_line(run, strategy, made[pk], shown.get(made[pk].request_id)) for pk in ids)


def _call_line(
    run: Run, strategy: Strategy, call: Call, shown: rendering.PromptInputs | None
) -> CallLine:
    prompt, verified = None, False
    sender = rendering.with_supplement(run, call.supplement)
    if shown:
        prompt = rendering.render_prompt(run, shown.texts, shown.spec, strategy, shown.more)
        body = rendering.render_body(sender, shown.texts, shown.spec, strategy, shown.more)
        verified = (
            rendering.compute_request_digest(sender, body, call.sample) == call.request.digest
        )
    reply = getattr(call.request, "reply", None)
    readings = list(reply.readings.all()) if reply else []
    reading = next((one for one in readings if one.parser == run.parser), None)
    fed = call.fed_by
    return CallLine(
        title=_title(run, strategy, call),
        call=call,
        request=call.request,
        prompt=prompt,
        verified=verified,
        reply=reply,
        reading=reading,
        others=[one for one in readings if one.parser != run.parser],
        scored=_metric_scores(strategy, reading.value) if reading else [],
        shows=(fed.value if fed.cause == "" else fed.cause) if fed else None,
        shown_from=_earlier_reply(strategy, call) if fed else "",
    )


def _title(run: Run, strategy: Strategy, call: Call) -> str:
    """Return a title that says what the call shows, with the sample number if there are several
    samples."""
    spec = CallSpec(call.role, call.order, call.axis, call.step)
    sample = f", sample {call.sample + 1}" if run.samples > 1 else ""
    again = f", asked again (supplement {call.supplement})" if call.supplement else ""
    return f"{descriptions.format_call_title(strategy, spec)}{sample}{again}"


def _earlier_reply(strategy: Strategy, call: Call) -> str:
    if strategy.frame == "explanation":
        return "the checked run"
    return f"step {call.step} ({strategy.step(call.step - 1).name})"


def _metric_scores(strategy: Strategy, values: Any) -> list[MetricScore]:
    """Return the metrics of a rating or a rubric, with the meaning of each score; [] for other
    outputs."""
    if not strategy.metrics or not isinstance(values, Mapping):
        return []
    causes = values.get("missing") or {}
    rows = []
    for metric in strategy.metrics:
        value = values.get(metric.slug)
        means = metric.points.get(value, "") if isinstance(value, int | float) else ""
        said = causes.get(metric.slug) if value is None else value
        scale = f"{metric.scale.low:g} to {metric.scale.high:g}"
        rows.append(MetricScore(metric.title, said, scale, means))
    if TOTAL in values:
        rows.append(MetricScore("Total", values[TOTAL], "", ""))
    return rows


def _sample_lines(run: Run, outcome: Outcome) -> list[SampleLine]:
    """Return the samples of an outcome or, for a derived run, the outcomes of its source runs."""
    if run.kind == Run.Kind.DERIVED:
        return [_source_line(one) for one in _source_outcomes(run, outcome)]
    said: Sequence[Mapping[str, Any]] = outcome.values.get(PARTS_KEY, ())
    return [
        SampleLine(
            title=f"Sample {place}",
            run=None,
            result=part["result"],
            detail=part.get("detail") or part.get("cause", ""),
            values=part["values"],
        )
        for place, part in enumerate(said, start=1)
    ]


def _source_outcomes(run: Run, outcome: Outcome) -> Iterable[Outcome]:
    there = Outcome.objects.of_item(outcome.item).filter(axis=outcome.axis)
    return there.filter(run__in=run.sources.all()).order_by("run__number")


def _source_line(said: Outcome) -> SampleLine:
    return SampleLine(
        title=f"{said.run.strategy.slug}, {said.run.endpoint.name}",
        run=said.run.number,
        result=said.result,
        detail=said.detail or said.cause,
        values=said.values,
    )
