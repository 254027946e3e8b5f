"""The page of a one-time link that a lead handed over: whoever opens it sets a new password."""

from allauth.account.adapter import get_adapter
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.forms import SetPasswordForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from annotation.db import transactions
from annotation.models import Account
from annotation.projects import sign_in_links


@sensitive_post_parameters("new_password1", "new_password2")
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def sign_in_link(request: HttpRequest, link: str) -> HttpResponse:
    """Ask for a new password; a POST sets it. Sessions and links of the old one end by that."""
    found = sign_in_links.find_link(link)
    if found is None:
        return render(request, "annotation/sign_in_link_over.html", status=404)
    form = SetPasswordForm(found.account, request.POST or None)
    form.fields["new_password1"].help_text = settings.PASSWORDS_IN_WORDS
    form.fields["new_password2"].label = "Repeat the new password"
    if request.method == "POST" and form.is_valid():
        with transactions.transact():
            # Of two requests at once, the second finds the link used.
            Account.objects.select_for_update(no_key=True).get(pk=found.account.pk)
            if sign_in_links.find_link(link) is None:
                return render(request, "annotation/sign_in_link_over.html", status=404)
            get_adapter(request).set_password(found.account, form.cleaned_data["new_password1"])
        messages.success(request, "The new password is set. Sign in with it.")
        return redirect("account_login")
    context = {"form": form, "found": found}
    status = 422 if request.method == "POST" else 200
    return render(request, "annotation/sign_in_link_open.html", context, status=status)
