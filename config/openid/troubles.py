"""Errors of sign-in through OpenID, with messages that say what to do."""

from dataclasses import dataclass
from typing import NoReturn

from allauth.core.exceptions import ImmediateHttpResponse
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


@dataclass(frozen=True)
class OpenIDTrouble:
    """An error page. In its texts, `{name}` stands for the name of the service."""

    heading: str
    words: str
    status: int = 422


SERVICE_AWAY = OpenIDTrouble(
    "{name} does not answer",
    "Nobody can sign in through it now. Try again in a few minutes, or sign in with a password "
    "if you have one. If this continues, tell the site admin.",
    503,
)
SIGN_IN_UNKNOWN = OpenIDTrouble(
    "This sign-in did not start here",
    "The sign-in was started in another browser, or more than ten minutes ago. Sign in again.",
)
TOKEN_INVALID = OpenIDTrouble(
    "{name} did not prove who you are",
    "Its answer has no valid signature, or belongs to another sign-in. Sign in again. If this "
    "continues, tell the site admin.",
)
CANCELLED = OpenIDTrouble(
    "You are not signed in",
    "{name} did not say who you are, or you cancelled the sign-in there. Sign in again, or use a "
    "password.",
)
NOT_INVITED = OpenIDTrouble(
    "You have no account or invitation here",
    "You are signed in at {name}, but no account here is linked to it, and no open invitation "
    "was sent to an address that it has verified as yours. If you received an invitation link, "
    "open it and sign in from there. If you have an account here, sign in with its password, "
    "then link it. Otherwise ask a lead of the project for an invitation.",
    403,
)


def render_trouble(request: HttpRequest, trouble: OpenIDTrouble, words: str = "") -> HttpResponse:
    """Render the error page. If `words` is given, it replaces the text of the page."""
    name = settings.OPENID.name if settings.OPENID else ""
    context = {"heading": trouble.heading.format(name=name)}
    context |= {"words": words or trouble.words.format(name=name)}
    return render(request, "account/openid_trouble.html", context, status=trouble.status)


def stop_with_page(request: HttpRequest, trouble: OpenIDTrouble, words: str = "") -> NoReturn:
    """Stop the sign-in and show the error page, wherever in allauth's code this is called."""
    raise ImmediateHttpResponse(render_trouble(request, trouble, words))
