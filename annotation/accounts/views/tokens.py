"""The page of API tokens: create, show once, revoke."""

from datetime import datetime, timedelta

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from annotation.accounts.models import SCOPES
from annotation.errors import Refused
from annotation.models import Account, ApiToken


class RevokeForm(forms.Form):
    revoke = forms.IntegerField(min_value=1, max_value=2**63 - 1)


class TokenForm(forms.Form):
    name = forms.CharField(max_length=80, label="Name", help_text="The program that will use it.")
    scopes = forms.MultipleChoiceField(
        choices=[(name, f"{name}: {words}") for name, words in SCOPES.items()],
        initial=["read"],
        widget=forms.CheckboxSelectMultiple,
        label="Scope",
        help_text="A token never allows more than your roles. Choose only what the program needs.",
    )
    days = forms.TypedChoiceField(
        choices=[(7, "In 7 days"), (90, "In 90 days"), (365, "In a year"), (0, "Never")],
        initial=90,
        coerce=int,
        label="Expiry",
        help_text="The token stops working after this time.",
    )

    def until(self, now: datetime) -> datetime | None:
        """The time when the token of a valid form expires; None if the token never expires."""
        days = self.cleaned_data["days"]
        return now + timedelta(days=days) if days else None


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def tokens(request: HttpRequest) -> HttpResponse:
    """Show a person's tokens; a POST creates a token or, with `revoke`, revokes a token."""
    assert isinstance(request.user, Account)
    if "revoke" in request.POST:
        return _revoke(request.user, request)
    form = TokenForm(request.POST or None)
    key = ""
    if form.is_valid():
        said, until = form.cleaned_data, form.until(timezone.now())
        try:
            _, key = ApiToken.issue(request.user, said["name"], said["scopes"], until)
            form = TokenForm()
        except Refused as problem:
            form.add_error(None, str(problem))
    now = timezone.now()
    tokens = [(token, token.has_expired(now)) for token in request.user.tokens.all()]
    context = {"form": form, "key": key, "tokens": tokens}
    return render(request, "annotation/tokens.html", context, status=422 if form.errors else 200)


def _revoke(account: Account, request: HttpRequest) -> HttpResponse:
    form = RevokeForm(request.POST)
    if not form.is_valid():
        raise Http404
    token = get_object_or_404(account.tokens, pk=form.cleaned_data["revoke"])
    if token.revoked_at is None:
        token.revoke(timezone.now(), account)
    messages.success(request, f"{token.name} revoked. Programs can no longer use it.")
    return redirect("tokens")
