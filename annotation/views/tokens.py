"""Keys to the API: made, shown once, revoked."""

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from annotation.models import Account, ApiToken


class RevokeForm(forms.Form):
    revoke = forms.IntegerField(min_value=1, max_value=2**63 - 1)


class TokenForm(forms.Form):
    name = forms.CharField(
        max_length=80, label="Name", help_text="What will use it, so that you know it again."
    )


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def tokens(request: HttpRequest) -> HttpResponse:
    """A person's tokens; a POST makes one, or with `revoke` ends one."""
    assert isinstance(request.user, Account)
    if "revoke" in request.POST:
        return _revoke(request.user, request)
    form = TokenForm(request.POST or None)
    key = ""
    if form.is_valid():
        _, key = ApiToken.issue(request.user, form.cleaned_data["name"])
        form = TokenForm()
    context = {"form": form, "key": key, "tokens": request.user.tokens.all()}
    return render(request, "annotation/tokens.html", context, status=422 if form.errors else 200)


def _revoke(account: Account, request: HttpRequest) -> HttpResponse:
    form = RevokeForm(request.POST)
    if not form.is_valid():
        raise Http404
    token = get_object_or_404(account.tokens, pk=form.cleaned_data["revoke"])
    if token.revoked_at is None:
        token.revoke(timezone.now(), account)
    messages.success(request, f"{token.name} is revoked. What used it is locked out.")
    return redirect("tokens")
