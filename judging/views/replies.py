"""What an evaluator was shown of one item, what it replied, and what was read in the reply."""

from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from annotation import access, diffs, tasktypes
from judging import frames, rendering
from judging.frames import Prompt
from judging.models import Call, Reading, Reply, Request, Run
from judging.strategies import Strategy

SHOWN = {
    ("gold", 0): "The gold answer, scored by itself",
    ("perturbed", 0): "The perturbed answer, scored",
    ("response", 0): "The response",
    ("pair", 1): "Both answers, gold shown first as A",
    ("pair", 2): "Both answers, perturbed shown first as A",
}


@dataclass(frozen=True)
class Asked:
    """One call with all that came of it.

    `prompt` is rendered again, None for a recorded reply; `verified` says whether it makes the
    request that was sent.
    """

    title: str
    call: Call
    request: Request
    prompt: Prompt | None
    verified: bool
    reply: Reply | None
    reading: Reading | None


@require_GET
@login_required
def run_item(request: HttpRequest, slug: str, number: int, key: str) -> HttpResponse:
    """One item in one run: its texts as judged, and every call about it."""
    member = access.member_for(request, slug, right="results")
    found = get_object_or_404(Run.objects.in_project(member.project).for_page(), number=number)
    judged = found.outcomes.for_replies().along(request.GET.get("axis", ""))
    outcome = judged.filter(item__key=key).first()
    if outcome is None:
        raise Http404
    task = tasktypes.of_version(member.project.task_type)
    context = {
        "project": member.project,
        "member": member,
        "task": task,
        "run": found,
        "outcome": outcome,
        "item": outcome.item,
        "texts": outcome.revision.texts,
        "difference": diffs.of(outcome.revision) if task.diff else None,
        "asked": _asked(found, list(outcome.calls.for_replies())),
    }
    return render(request, "judging/run_item.html", context)


def _asked(run: Run, made: list[Call]) -> list[Asked]:
    strategy = run.asked()
    shown = {}
    if run.kind == Run.Kind.ASKED:
        shown = rendering.shown(run, strategy, [call.request_id for call in made])
    return [_one(run, strategy, call, shown.get(call.request_id)) for call in made]


def _title(run: Run, strategy: Strategy, call: Call) -> str:
    """What was shown, and which of several calls about it this is, as far as there are several."""
    shown = SHOWN.get((call.role, call.order), f"{call.role} {call.order}")
    step = f"step {call.step + 1}, {strategy.step(call.step).name}" if strategy.last_step else ""
    sample = f"sample {call.sample + 1}" if run.samples > 1 else ""
    return ", ".join(part for part in (shown, call.axis, step, sample) if part)


def _one(run: Run, strategy: Strategy, call: Call, shown: rendering.Shown | None) -> Asked:
    prompt, verified = None, False
    if shown:
        prompt = frames.render(strategy, shown.texts, shown.spec, more=shown.more)
        body = rendering.body_of(run, shown.texts, shown.spec, strategy, shown.more)
        verified = rendering.digest_of(run, body, call.sample) == call.request.digest
    reply = getattr(call.request, "reply", None)
    readings = reply.readings.all() if reply else []
    return Asked(
        title=_title(run, strategy, call),
        call=call,
        request=call.request,
        prompt=prompt,
        verified=verified,
        reply=reply,
        reading=next((one for one in readings if one.parser == run.parser), None),
    )
