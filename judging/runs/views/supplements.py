"""The page to ask the unusable items of a run again."""

import json
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from annotation.projects import access
from judging import tasks
from judging.errors import Refused
from judging.runs import supplements
from judging.runs.choices import get_run_or_404
from judging.runs.forms import parse_parameters


@require_http_methods(["GET", "POST"])
@login_required
def supplement_run(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Estimate a supplement of a run, then ask its unusable items again."""
    member = access.member_for(request, slug, right="run")
    run = get_run_or_404(member, number)
    context: dict[str, Any] = {
        name: request.POST.get(name, "") for name in ("parameters", "timeout")
    }
    sent = f"{context['parameters']} {context['timeout']}"
    # As on the page for new runs, nothing starts with another form than the estimated one.
    is_stale = request.POST.get("step") == "ask" and request.POST.get("estimated", sent) != sent
    context["is_stale"] = is_stale
    seconds = forms.IntegerField(required=False, min_value=1, max_value=supplements.MAX_TIMEOUT)
    if request.method == "POST":
        try:
            changes = {
                "parameters": parse_parameters(context["parameters"]),
                "timeout": seconds.clean(context["timeout"]),
            }
            if request.POST.get("step") == "ask" and not is_stale:
                asked = supplements.ask_again(run, access.ensure_membership(member), **changes)
                tasks.notify_workers(run.endpoint_id)
                items = "1 item" if asked == 1 else f"{asked:,} items"
                messages.success(request, f"Asking {items} of run {number} again.")
                return redirect("run", slug=slug, number=number)
            context["estimate"] = supplements.estimate_supplement(run, **changes)
        except ValidationError as error:
            context["problem"] = " ".join(error.messages)
        except Refused as error:
            context["problem"] = str(error)
    context |= {
        "project": member.project,
        "member": member,
        "run": run,
        "most_seconds": supplements.MAX_TIMEOUT,
        "unusable": supplements.select_unusable(run).count(),
        "sent": json.dumps(run.sends(), ensure_ascii=False, sort_keys=True),
    }
    status = 409 if is_stale else 200
    return render(request, "judging/run_supplement.html", context, status=status)
