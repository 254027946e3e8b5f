"""The page that lists a person's sessions and ends them."""

from allauth.usersessions.models import UserSession
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from annotation.accounts.sessions import current_digest, end_session, list_sessions, record_session
from annotation.models import Account

OTHER_SESSIONS = "others"


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def sessions(request: HttpRequest) -> HttpResponse:
    """Show a person's sessions; a POST ends one session, or all sessions except the current
    session."""
    assert isinstance(request.user, Account)
    # A session that did not start at the sign-in form is not recorded yet.
    record_session(request)
    open_now = list_sessions(request.user)
    if request.method != "POST":
        return _page(request, open_now)
    wanted = request.POST.get("end", "")
    ending = [
        session
        for session in open_now
        if session.session_key != current_digest(request)
        and wanted in {OTHER_SESSIONS, str(session.pk)}
    ]
    if not ending:
        return _page(request, open_now, "This session no longer exists.")
    for session in ending:
        end_session(session)
    many = len(ending) > 1
    messages.success(request, f"{len(ending)} session{'s are' if many else ' is'} ended.")
    return redirect("sessions")


def _page(request: HttpRequest, open_now: list[UserSession], trouble: str = "") -> HttpResponse:
    context = {
        "sessions": open_now,
        "current": current_digest(request),
        "trouble": trouble,
        "others": OTHER_SESSIONS,
    }
    return render(request, "annotation/sessions.html", context, status=422 if trouble else 200)
