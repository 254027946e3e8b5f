"""Whether a process is alive, and whether the service as a whole is ready."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from operation import asking, readiness
from operation.findings import Grade


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """That this process answers, whatever else is away: restarting it would mend nothing else."""
    return HttpResponse("ok\n", "text/plain")


@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """How database, migrations, broker and workers stand: 200 if none is wrong, else 503.

    `?only=database&only=migrations` asks for some. Open to everybody: it names nothing but parts.
    """
    names = request.GET.getlist("only") or [*readiness.CHECKS]
    if not set(names) <= set(readiness.CHECKS):
        known = ", ".join(readiness.CHECKS)
        return JsonResponse({"problem": f"only= names one of {known}."}, status=400)
    found = asking.ask({name: readiness.CHECKS[name] for name in names})
    ready = all(one.grade != Grade.WRONG for one in found)
    checks = [{"name": one.name, "grade": one.grade, "says": one.says} for one in found]
    return JsonResponse({"ready": ready, "checks": checks}, status=200 if ready else 503)
