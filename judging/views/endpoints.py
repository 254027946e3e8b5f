"""Endpoints: listed, set up, changed, and tried out."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation.models import Account
from judging.forms.endpoints import EndpointPageForm
from judging.models import Endpoint
from judging.preparing import endpoints, trying
from judging.providers import parameters_of
from judging.providers.keys import is_set
from judging.providers.prices import LIMITS


@require_GET
@login_required
def endpoint_list(request: HttpRequest) -> HttpResponse:
    """Every evaluator that can be asked, and those whose replies were recorded."""
    found = endpoints.visible(request)
    context = {"rows": [(one, is_set(one.key_variable)) for one in found]}
    return render(request, "judging/endpoints.html", context)


@require_http_methods(["GET", "POST"])
@login_required
def new_endpoint(request: HttpRequest) -> HttpResponse:
    """Set up an evaluator."""
    endpoints.changeable(request)
    return _edited(request, EndpointPageForm(request.POST or None))


@require_GET
@never_cache
@login_required
def endpoint(request: HttpRequest, name: str) -> HttpResponse:
    """One evaluator: how it is asked, its limits and prices, and what is left."""
    return _paint(request, endpoints.named(request, name))


@require_http_methods(["GET", "POST"])
@login_required
def edit_endpoint(request: HttpRequest, name: str) -> HttpResponse:
    """Change what does not shape requests; all of it as long as no run rests on it."""
    found = endpoints.changed(request, name)
    return _edited(request, EndpointPageForm(request.POST or None, instance=found))


@require_POST
@login_required
def try_endpoint(request: HttpRequest, name: str) -> HttpResponse:
    """Ask it once, outside of runs."""
    found = endpoints.named(request, name)
    return _paint(request, found, trying.ask(found, timezone.now()))


def _edited(request: HttpRequest, form: EndpointPageForm) -> HttpResponse:
    if request.method == "POST" and form.is_valid():
        assert isinstance(request.user, Account)
        saved = endpoints.save(form, request.user)
        messages.success(request, f"Endpoint {saved.name} is saved.")
        return redirect("endpoint", name=saved.name)
    context = {"form": form, "endpoint": form.instance}
    if form.resting:
        context |= _asked(form.instance)
    status = 422 if form.errors else 200
    return render(request, "judging/endpoint_edit.html", context, status=status)


def _paint(
    request: HttpRequest, found: Endpoint, tried: trying.Tried | None = None
) -> HttpResponse:
    now = timezone.now()
    context = _asked(found) | {
        "is_paused": found.is_paused(now),
        "remaining_at": found.remaining_at(),
        "tried": tried,
    }
    status = 422 if tried and tried.problem else 200
    return render(request, "judging/endpoint.html", context, status=status)


def _asked(endpoint: Endpoint) -> dict[str, Any]:
    pinned = endpoint.pinned()
    parameters = parameters_of(pinned)
    return {
        "endpoint": endpoint,
        "parameters": parameters,
        "left": [name for name, value in pinned["parameters"].items() if value is None],
        "is_limited": any(name in parameters for name in LIMITS),
        "has_key": is_set(endpoint.key_variable),
    }
