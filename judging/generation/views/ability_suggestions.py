"""The view that stores the abilities that a run suggests for prompts."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from annotation.htmx import HtmxRequest
from annotation.projects import access
from judging.errors import Refused
from judging.generation import ability_suggestions
from judging.runs.choices import get_run_or_404
from judging.runs.views.runs import render_run


@require_POST
@login_required
def take_suggestions(request: HtmxRequest, slug: str, number: int) -> HttpResponse:
    """Store the suggestions of a run, and redirect to the page where people accept them."""
    member = access.member_for(request, slug, right="manage")
    run = get_run_or_404(member, number)
    try:
        taken = ability_suggestions.store_suggestions(run, access.ensure_membership(member))
    except Refused as refused:
        return render_run(request, member, run, problem=str(refused))
    messages.success(
        request, f"{taken.suggested} prompts with suggested abilities, {taken.new} of them new."
    )
    return redirect(f"{reverse('abilities', args=[slug])}?which=suggested")
