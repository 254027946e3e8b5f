"""Errors of sign-in through OpenID, with messages that say what to do."""

from dataclasses import dataclass
from typing import NoReturn

from allauth.core.exceptions import ImmediateHttpResponse
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


@dataclass(frozen=True)
class OpenIDTrouble:
    """An error page; `{name}` in its texts is the name of the service."""

    heading: str
    words: str
    status: int = 422


SERVICE_AWAY = OpenIDTrouble(
    "{name} does not answer",
    "So nobody can be signed in by it now. Try again in some minutes, or sign in with a password if"
    " you have one. If it goes on, tell whoever runs this site.",
    503,
)
SIGN_IN_UNKNOWN = OpenIDTrouble(
    "This sign-in was not begun here",
    "What came back belongs to no sign-in of this browser, or to one of more than ten minutes ago."
    " Begin once more.",
)
TOKEN_INVALID = OpenIDTrouble(
    "{name} did not prove who you are",
    "Its answer is not signed as it should be, or was made for another sign-in. Begin once more; if"
    " it goes on, tell whoever runs this site.",
)
CANCELLED = OpenIDTrouble(
    "You are not signed in",
    "{name} let you go without saying who you are, or you cancelled there. Begin once more, or sign"
    " in with a password.",
)
NOT_INVITED = OpenIDTrouble(
    "No place here waits for you",
    "{name} knows you, but no account here is linked to it, and no invitation that still holds was"
    " sent to an address that it has verified as yours. Were you sent a link? Open it and sign in"
    " from there. Have you an account? Sign in with its password, then link it. Otherwise ask a"
    " lead of the project for an invitation.",
    403,
)


def render_trouble(request: HttpRequest, trouble: OpenIDTrouble, words: str = "") -> HttpResponse:
    """The error page; `words`, if given, replaces its text."""
    name = settings.OPENID.name if settings.OPENID else ""
    context = {"heading": trouble.heading.format(name=name)}
    context |= {"words": words or trouble.words.format(name=name)}
    return render(request, "account/openid_trouble.html", context, status=trouble.status)


def stop_with_page(request: HttpRequest, trouble: OpenIDTrouble, words: str = "") -> NoReturn:
    """Stop the sign-in and show the error page, from anywhere in allauth's flow."""
    raise ImmediateHttpResponse(render_trouble(request, trouble, words))
