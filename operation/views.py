"""Liveness, readiness and metrics."""

import secrets

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from operation import readiness, timed_checks
from operation.findings import Grade
from operation.metrics import render_metrics


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer that this process runs. Nothing else is checked, since a restart would not fix it."""
    return HttpResponse("ok\n", "text/plain")


@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """Report the state of database, migrations, broker and workers: 200 if nothing is wrong,
    otherwise 503.

    `?only=database&only=migrations` selects checks. The view is public, since it only names
    components.
    """
    names = request.GET.getlist("only") or [*readiness.CHECKS]
    if not set(names) <= set(readiness.CHECKS):
        known = ", ".join(readiness.CHECKS)
        return JsonResponse({"problem": f"only= must be one of {known}."}, status=400)
    found = timed_checks.run_checks({name: readiness.CHECKS[name] for name in names})
    ready = all(one.grade != Grade.WRONG for one in found.values())
    checks = [{"name": name, "grade": one.grade, "says": one.says} for name, one in found.items()]
    return JsonResponse({"ready": ready, "checks": checks}, status=200 if ready else 503)


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Return metrics for Prometheus. Needs METRICS_TOKEN; without this setting the answer is 404.

    Behind a proxy, the client address protects nothing, so it is not checked.
    """
    if not settings.METRICS_TOKEN:
        raise Http404
    wanted = f"Bearer {settings.METRICS_TOKEN}".encode()
    if not secrets.compare_digest(request.headers.get("Authorization", "").encode(), wanted):
        answer = HttpResponse("a token is required\n", "text/plain", status=401)
        answer["WWW-Authenticate"] = 'Bearer realm="metrics"'
        return answer
    return HttpResponse(render_metrics(), "text/plain; version=0.0.4; charset=utf-8")
