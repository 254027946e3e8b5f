"""Pages that list, add, change, test, archive and delete endpoints."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation.errors import FieldError, Refused
from annotation.htmx import HtmxRequest
from annotation.models import Account
from annotation.projects import access
from judging.evaluators import endpoints, trial_call
from judging.evaluators.forms import EndpointPageForm
from judging.evaluators.keys import is_key_set
from judging.evaluators.presets import load_presets
from judging.evaluators.prices import TOKEN_LIMIT_NAMES
from judging.evaluators.providers import merge_defaults
from judging.evaluators.providers.parameters import describe_family
from judging.models import Endpoint

STEP_MESSAGES = {
    "archive": "{name} is archived. It is no longer offered for new runs; runs that use it go on.",
    "restore": "{name} is restored.",
    "delete": "{name} is deleted.",
    "end-pause": "The pause of {name} has ended. Its runs go on within a minute.",
}


@require_GET
@login_required
def endpoint_list(request: HttpRequest) -> HttpResponse:
    """All endpoints, including those of recorded replies; archived ones only if asked for."""
    every = endpoints.list_visible(request)
    with_archived = request.GET.get("archived") == "1"
    found = every.listed(archived=with_archived)
    context = {
        "rows": [(one, is_key_set(one.key_variable)) for one in found],
        "archived": every.exclude(archived_at=None).count(),
        "with_archived": with_archived,
    }
    return render(request, "judging/endpoints.html", context)


@require_http_methods(["GET", "POST"])
@login_required
def new_endpoint(request: HtmxRequest) -> HttpResponse:
    """Add an evaluator, from a preset if one is chosen. Choosing one stores nothing, and keeps what
    was typed. htmx gets what is known of the typed model."""
    endpoints.list_changeable(request)
    if request.htmx:
        known = {"family": describe_family(request.GET.get("model", ""))}
        return render(request, "judging/endpoint_edit.html#family", known)
    sent = request.POST if request.method == "POST" else request.GET
    preset = load_presets().get(sent.get("preset", ""))
    if preset is None:
        return _save_form(request, EndpointPageForm(request.POST or None), request.POST.get("from"))
    form = EndpointPageForm.from_preset(preset, sent, sent.get("from", ""))
    return _render_form(request, form, preset.slug)


@require_GET
@never_cache
@login_required
def endpoint(request: HttpRequest, name: str) -> HttpResponse:
    """One evaluator: its settings, limits, prices, and remaining limits."""
    return _render_endpoint(request, endpoints.get_visible(request, name))


@require_http_methods(["GET", "POST"])
@login_required
def edit_endpoint(request: HttpRequest, name: str) -> HttpResponse:
    """Change an endpoint; once runs use it, only settings that do not shape requests."""
    found = endpoints.get_changeable(request, name)
    return _save_form(request, EndpointPageForm(request.POST or None, instance=found))


@require_POST
@login_required
def try_endpoint(request: HttpRequest, name: str) -> HttpResponse:
    """Make one test call, outside of runs."""
    found = endpoints.get_visible(request, name)
    return _render_endpoint(request, found, trial_call.run_trial(found, timezone.now()))


@require_POST
@login_required
def change_endpoint(request: HttpRequest, name: str, step: str) -> HttpResponse:
    """Archive, restore or delete an endpoint, or end its pause."""
    found = endpoints.get_changeable(request, name)
    try:
        endpoints.STEPS[step](found, access.require_site_admin(request))
    except Refused as problem:
        messages.error(request, str(problem))
        return redirect("endpoint", name=name)
    messages.success(request, STEP_MESSAGES[step].format(name=name))
    return redirect("endpoints") if step == "delete" else redirect("endpoint", name=name)


def _save_form(
    request: HttpRequest, form: EndpointPageForm, preset: str | None = None
) -> HttpResponse:
    if request.method == "POST" and form.is_valid():
        assert isinstance(request.user, Account)
        try:
            saved = endpoints.save_endpoint(form, request.user)
        except FieldError as error:
            form.add_error(error.field, str(error))
        else:
            messages.success(request, f"Endpoint {saved.name} saved.")
            return redirect("endpoint", name=saved.name)
    return _render_form(request, form, preset)


def _render_form(
    request: HttpRequest, form: EndpointPageForm, preset: str | None = None
) -> HttpResponse:
    context = {
        "form": form,
        "endpoint": form.instance,
        "family": describe_family(str(form["model"].value() or "")),
        "presets": load_presets().values(),
        "preset": load_presets().get(preset or ""),
    }
    if form.resting or form.offline:
        context |= _usage_context(form.instance)
    status = 422 if form.errors else 200
    return render(request, "judging/endpoint_edit.html", context, status=status)


def _render_endpoint(
    request: HttpRequest, found: Endpoint, tried: trial_call.TrialResult | None = None
) -> HttpResponse:
    now = timezone.now()
    is_admin = isinstance(request.user, Account) and request.user.is_superuser
    context = _usage_context(found) | {
        "is_paused": found.is_paused(now),
        "remaining_at": found.remaining_at(),
        "tried": tried,
        "steps": endpoints.list_open_steps(found) if is_admin else [],
    }
    status = 422 if tried and tried.problem else 200
    return render(request, "judging/endpoint.html", context, status=status)


def _usage_context(endpoint: Endpoint) -> dict[str, Any]:
    pinned = endpoint.pinned()
    parameters = merge_defaults(pinned)
    return {
        "endpoint": endpoint,
        "parameters": parameters,
        "left": [name for name, value in pinned["parameters"].items() if value is None],
        "is_limited": any(name in parameters for name in TOKEN_LIMIT_NAMES),
        "has_key": is_key_set(endpoint.key_variable),
    }
