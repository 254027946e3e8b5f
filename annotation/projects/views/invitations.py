"""The page of an invitation link, to join a project with an existing account or a new one."""

from typing import Any

from allauth.account.utils import perform_login
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.forms import UserCreationForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from annotation.errors import Refused
from annotation.models import Account, Invitation
from annotation.projects import invitations


class AccountForm(UserCreationForm):
    class Meta:
        model = Account
        fields = ("username",)
        labels = {"username": "User name"}
        help_texts = {"username": "You sign in with this name. Other people do not see it."}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, label in (("password1", "Password"), ("password2", "Repeat password")):
            self.fields[name].label, self.fields[name].help_text = label, ""
        self.fields["username"].widget.attrs |= {"autocomplete": "username"}
        self.fields["password1"].help_text = settings.PASSWORDS_IN_WORDS

    def clean_username(self) -> str:
        name: str = super().clean_username() or ""
        if "@" in name:  # so that nobody uses another person's address as a name
            raise ValidationError(
                "Choose a name without @. You can also sign in with your e-mail address."
            )
        return name


@sensitive_post_parameters("password1", "password2")
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def invitation(request: HttpRequest, invitation: str) -> HttpResponse:
    """Show the invitation. Only a POST accepts it, so that a link preview cannot."""
    found = invitations.find_invitation(invitation, now=timezone.now())
    if found is None:
        return render(request, "annotation/invitation_over.html", status=404)
    if isinstance(request.user, Account):
        return _accept_as_account(request, found, request.user)
    return _accept_as_visitor(request, found)


def _accept_as_account(request: HttpRequest, found: Invitation, account: Account) -> HttpResponse:
    trouble = ""
    if "join" in request.POST:
        try:
            invitations.accept(found, account, now=timezone.now())
        except Refused as refused:
            trouble = str(refused)
        else:
            messages.success(request, f"Welcome. You are {found.alias} in this project.")
            return redirect("project", found.project.slug)
    status = 422 if request.method == "POST" else 200
    context = {"invitation": found, "trouble": trouble}
    return render(request, "annotation/invitation.html", context, status=status)


def _accept_as_visitor(request: HttpRequest, found: Invitation) -> HttpResponse:
    form = AccountForm(request.POST or None)
    trouble = ""
    if request.method == "POST" and form.is_valid():
        said = form.cleaned_data
        try:
            member = invitations.accept_with_new_account(
                found, said["username"], said["password1"], now=timezone.now()
            )
        except Refused as refused:
            trouble = str(refused)
        else:
            perform_login(request, member.account)
            messages.success(request, f"Welcome. You are {found.alias} in this project.")
            return redirect("project", found.project.slug)
    status = 422 if request.method == "POST" else 200
    context = {"invitation": found, "form": form, "trouble": trouble}
    context |= {"has_account": invitations.has_account(found)}
    return render(request, "annotation/invitation.html", context, status=status)
