"""Views to sign in through OpenID and to link or unlink an account."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.decorators import rate_limit
from allauth.socialaccount.internal.flows.connect import disconnect, validate_disconnect
from allauth.socialaccount.models import SocialAccount
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from config.openid.protocol import OpenIDAdapter

View = Callable[..., HttpResponseBase]


def require_openid(view: View) -> View:
    """Decorator that answers 404 if no OpenID service is configured in the settings."""

    @never_cache
    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if settings.OPENID is None:
            raise Http404
        return view(request, *args, **kwargs)

    return answer


@require_openid
@require_POST
@rate_limit(action="login")
def begin_sign_in(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Send the browser to the service through a page that redirects by itself.

    The content security policy allows forms to target only this site. Browsers apply this to all
    redirects that follow a form, and the service may use several.
    """
    begun = OAuth2LoginView.adapter_view(OpenIDAdapter(request, provider_id))
    answer: HttpResponse = begun(request)
    if answer.status_code != 302:
        return answer
    return render(request, "account/openid_going.html", {"address": answer.headers["Location"]})


@require_openid
@require_safe
def finish_sign_in(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """The page to which the service redirects after the sign-in."""
    back: View = OAuth2CallbackView.adapter_view(OpenIDAdapter(request, provider_id))
    return back(request)


@require_openid
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def linked_account(request: HttpRequest) -> HttpResponseBase:
    """Show whether the account is linked. A POST unlinks it after the password has been entered
    again."""
    if request.method == "POST":
        return _unlink(request)
    return _page(request)


def _unlink(request: HttpRequest) -> HttpResponseBase:
    account = SocialAccount.objects.filter(user=request.user).first()
    if account is None:
        return _page(request, "Your account is no longer linked.")
    try:
        validate_disconnect(request, account)
    except ValidationError:
        return _page(
            request,
            "You have no password yet, so you could not sign in any more. Set a password first.",
        )
    disconnect(request, account)
    return redirect("openid")


def _page(request: HttpRequest, trouble: str = "") -> HttpResponse:
    account = SocialAccount.objects.filter(user=request.user).first()
    context = {"account": account, "trouble": trouble}
    return render(request, "account/openid.html", context, status=422 if trouble else 200)


def openid_context(request: HttpRequest) -> dict[str, str]:
    """Tell templates the name of the OpenID service; "" if none is configured."""
    return {"openid": settings.OPENID.name if settings.OPENID else ""}
