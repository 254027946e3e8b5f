"""What an evaluator was shown of one item, what it replied, and what was read in it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from annotation import access, diffs, tasktypes
from judging.calling import rendering
from judging.models import Call, Outcome, Reading, Reply, Request, Run
from judging.prompts import described, frames, injection
from judging.prompts.frames import CallSpec, Prompt
from judging.replies.folding import PARTS
from judging.strategies import TOTAL, Strategy


@dataclass(frozen=True)
class Scored:
    """What one metric was given; `means` is what its points say of that value, `value` a number or
    the cause why there is none."""

    title: str
    value: Any
    scale: str
    means: str


@dataclass(frozen=True)
class Asked:
    """One call with all that came of it.

    `prompt` is rendered again, None for a recorded reply; `verified` says whether it makes the
    request that was sent. `shows` is what an earlier reply said that the call shows, said by
    `shown_from`. `scored` are the metrics of the reading, `others` what other parsers read.
    """

    title: str
    call: Call
    request: Request
    prompt: Prompt | None
    verified: bool
    reply: Reply | None
    reading: Reading | None
    others: list[Reading]
    scored: list[Scored]
    shows: Any = None
    shown_from: str = ""


@dataclass(frozen=True)
class Part:
    """What one sample of an outcome said, or one run that it was derived of."""

    title: str
    run: int | None
    result: str
    detail: str
    values: Mapping[str, Any]


@require_GET
@login_required
def run_item(request: HttpRequest, slug: str, number: int, key: str) -> HttpResponse:
    """One item in one run: its texts as judged, and every call about it."""
    member = access.member_for(request, slug, right="results")
    found = get_object_or_404(Run.objects.in_project(member.project).for_page(), number=number)
    strategy = found.asked()
    of_item = found.outcomes.for_replies().about(key)
    outcome = of_item.along(request.GET.get("axis", "")).first()
    if outcome is None:
        raise Http404
    task = tasktypes.of_version(member.project.task_type)
    texts = outcome.revision.texts
    context = {
        "project": member.project,
        "member": member,
        "task": task,
        "run": found,
        "outcome": outcome,
        "along": list(of_item.along("")) if strategy.axes else [],
        "item": outcome.item,
        "texts": texts,
        "difference": diffs.of(outcome.revision) if task.diff else None,
        "flags": injection.flags(texts, delimiters=injection.delimiters(strategy)),
        "scored": _scored(strategy, outcome.values),
        "parts": _parts(found, outcome),
        "asked": _asked(found, strategy, list(outcome.calls.for_replies())),
    }
    return render(request, "judging/run_item.html", context)


def _asked(run: Run, strategy: Strategy, made: list[Call]) -> list[Asked]:
    """Sample by sample, each chain from its first step to its last."""
    shown = {}
    if run.kind == Run.Kind.ASKED:
        shown = rendering.shown(run, strategy, [call.request_id for call in made])
    made.sort(key=lambda call: (call.sample, call.order, call.role, call.step))
    return [_one(run, strategy, call, shown.get(call.request_id)) for call in made]


def _one(run: Run, strategy: Strategy, call: Call, shown: rendering.Shown | None) -> Asked:
    prompt, verified = None, False
    if shown:
        prompt = frames.render(strategy, shown.texts, shown.spec, more=shown.more)
        body = rendering.body_of(run, shown.texts, shown.spec, strategy, shown.more)
        verified = rendering.digest_of(run, body, call.sample) == call.request.digest
    reply = getattr(call.request, "reply", None)
    readings = list(reply.readings.all()) if reply else []
    reading = next((one for one in readings if one.parser == run.parser), None)
    fed = call.fed_by
    return Asked(
        title=_title(run, strategy, call),
        call=call,
        request=call.request,
        prompt=prompt,
        verified=verified,
        reply=reply,
        reading=reading,
        others=[one for one in readings if one.parser != run.parser],
        scored=_scored(strategy, reading.value) if reading else [],
        shows=(fed.value if fed.cause == "" else fed.cause) if fed else None,
        shown_from=_shown_from(strategy, call) if fed else "",
    )


def _title(run: Run, strategy: Strategy, call: Call) -> str:
    """What was shown, and which of several calls about it this is, as far as there are several."""
    spec = CallSpec(call.role, call.order, call.axis, call.step)
    sample = f", sample {call.sample + 1}" if run.samples > 1 else ""
    return f"{described.title(strategy, spec)}{sample}"


def _shown_from(strategy: Strategy, call: Call) -> str:
    if strategy.frame == "explanation":
        return "the run that is checked"
    return f"step {call.step} ({strategy.step(call.step - 1).name})"


def _scored(strategy: Strategy, values: Any) -> list[Scored]:
    """The metrics of a rating or a rubric with what their points mean; [] for all else."""
    if not strategy.metrics or not isinstance(values, Mapping):
        return []
    causes = values.get("missing") or {}
    rows = []
    for metric in strategy.metrics:
        value = values.get(metric.slug)
        means = metric.points.get(value, "") if isinstance(value, int | float) else ""
        said = causes.get(metric.slug) if value is None else value
        scale = f"{metric.scale.low:g} to {metric.scale.high:g}"
        rows.append(Scored(metric.title, said, scale, means))
    if TOTAL in values:
        rows.append(Scored("Total", values[TOTAL], "", ""))
    return rows


def _parts(run: Run, outcome: Outcome) -> list[Part]:
    """The samples of an outcome, or what each run said that it follows from."""
    if run.kind == Run.Kind.DERIVED:
        return [_of_run(one) for one in _sources_of(run, outcome)]
    said: Sequence[Mapping[str, Any]] = outcome.values.get(PARTS, ())
    return [
        Part(
            title=f"Sample {place}",
            run=None,
            result=part["result"],
            detail=part.get("detail") or part.get("cause", ""),
            values=part["values"],
        )
        for place, part in enumerate(said, start=1)
    ]


def _sources_of(run: Run, outcome: Outcome) -> Iterable[Outcome]:
    there = Outcome.objects.of_item(outcome.item).filter(axis=outcome.axis)
    return there.filter(run__in=run.sources.all()).order_by("run__number")


def _of_run(said: Outcome) -> Part:
    return Part(
        title=f"{said.run.strategy.slug}, {said.run.endpoint.name}",
        run=said.run.number,
        result=said.result,
        detail=said.detail or said.cause,
        values=said.values,
    )
