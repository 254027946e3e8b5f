"""What an evaluator was shown of one item, what it replied, and what was read in the reply."""

from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from annotation import access, diffs
from judging import calls, frames
from judging.frames import CallSpec, Prompt
from judging.models import Call, Outcome, Reading, Reply, Request, Run

SHOWN = {
    CallSpec("gold"): "The gold answer, scored by itself",
    CallSpec("perturbed"): "The perturbed answer, scored",
    CallSpec("pair", 1): "Both answers, gold shown first as A",
    CallSpec("pair", 2): "Both answers, perturbed shown first as A",
}


@dataclass(frozen=True)
class Asked:
    """One call with all that came of it.

    `prompt` is rendered again; `verified` says whether it makes the request that was sent.
    """

    title: str
    call: Call
    request: Request
    prompt: Prompt
    verified: bool
    reply: Reply | None
    reading: Reading | None


@require_GET
@login_required
def run_item(request: HttpRequest, slug: str, number: int, key: str) -> HttpResponse:
    """One item in one run: its texts as judged, and every call about it."""
    member = access.member_for(request, slug, right="results")
    found = get_object_or_404(Run.objects.in_project(member.project).for_page(), number=number)
    outcome = get_object_or_404(found.outcomes.for_replies(), item__key=key)
    context = {
        "project": member.project,
        "member": member,
        "run": found,
        "outcome": outcome,
        "item": outcome.item,
        "texts": outcome.revision.texts,
        "difference": diffs.of(outcome.revision),
        "asked": [_asked(found, outcome, call) for call in outcome.calls.for_replies()],
    }
    return render(request, "judging/run_item.html", context)


def _asked(run: Run, outcome: Outcome, call: Call) -> Asked:
    strategy = run.strategy.strategy()
    spec = CallSpec(call.role, call.order)
    texts = outcome.revision.texts
    digest = calls.digest_of(run, calls.body_of(run, texts, spec, strategy), call.sample)
    reply = getattr(call.request, "reply", None)
    readings = reply.readings.all() if reply else []
    return Asked(
        title=SHOWN.get(spec, f"{spec.role} {spec.order}"),
        call=call,
        request=call.request,
        prompt=frames.render(strategy, texts, spec),
        verified=digest == call.request.digest,
        reply=reply,
        reading=next((one for one in readings if one.parser == run.parser), None),
    )
