"""The page where a person changes the hotkeys of the label screen."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from annotation.labelling.forms import KeysForm
from annotation.models import Account


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def keys(request: HttpRequest) -> HttpResponse:
    """Show and change a person's own hotkeys; the same key for two actions is refused."""
    account = request.user
    assert isinstance(account, Account)
    form = KeysForm(request.POST if request.method == "POST" else None, account=account)
    if request.method == "POST" and "reset" in request.POST:
        _store(account, {})
        messages.success(request, "Keys reset to the defaults.")
        return redirect("keys")
    if request.method == "POST" and form.is_valid():
        _store(account, form.changes())
        messages.success(request, "Keys saved. The label screen uses them now.")
        return redirect("keys")
    status = 422 if form.is_bound else 200
    return render(request, "annotation/keys.html", {"form": form}, status=status)


def _store(account: Account, changes: dict[str, str]) -> None:
    account.keys = changes
    account.save(update_fields=["keys"])
