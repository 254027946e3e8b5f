"""The page where a person chooses how pages look in this browser."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from annotation.accounts.display import COOKIE_AGE, SETTINGS


class DisplayForm(forms.Form):
    """A choice for each setting."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for one in SETTINGS:
            self.fields[one.slug] = forms.ChoiceField(
                label=one.title, help_text=one.help, choices=one.choices, required=False
            )


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def display(request: HttpRequest) -> HttpResponse:
    """Show and change the settings of this browser; settings that are not sent stay."""
    kept = {one.slug: one.chosen(request.COOKIES) for one in SETTINGS}
    form = DisplayForm(request.POST or None, initial=kept)
    if form.is_bound and form.is_valid():
        messages.success(request, "Saved for this browser.")
        response = redirect("display")
        for slug, value in form.cleaned_data.items():
            if value:
                response.set_cookie(slug, value, max_age=COOKIE_AGE, samesite="Lax")
        return response
    status = 422 if form.is_bound else 200
    return render(request, "annotation/display.html", {"form": form}, status=status)
