"""Saved views: a result page with its settings, stored under a name and optionally shared."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from annotation.models import Membership
from annotation.projects import access
from judging.models import SavedView
from judging.results.tables import PAGES
from judging.results.views import pages

NAME_TAKEN = "You already have a view with this name. Choose another name."


class SaveViewForm(forms.Form):
    """Form to save a view: its name, whether it is shared, its page and query."""

    name = forms.CharField(label="Name", max_length=80)
    shared = forms.BooleanField(label="Share with the project", required=False)
    page = forms.ChoiceField(choices=[(slug, slug) for slug in PAGES], widget=forms.HiddenInput)
    query = forms.CharField(max_length=2000, required=False, widget=forms.HiddenInput)


class ChangeSavedForm(forms.Form):
    """Form to change a saved view: rename, share or unshare, delete."""

    view = forms.IntegerField(min_value=1, max_value=2**63 - 1)
    name = forms.CharField(max_length=80)
    shared = forms.BooleanField(required=False)
    delete = forms.BooleanField(required=False)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def saved_views(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the member's own saved views and the shared ones. POST saves a view or changes one of
    the member's own."""
    member = access.member_for(request, slug, right="results")
    if "view" in request.POST:
        return _change_view(request, member)
    form = SaveViewForm(request.POST or None)
    if request.method == "POST" and form.is_valid() and _save_view(member, form):
        messages.success(request, f"View “{form.cleaned_data['name']}” saved.")
        return redirect(
            _check_address(member, form.cleaned_data["page"], form.cleaned_data["query"])
        )
    return _render_list(request, member, form)


def _render_list(request: HttpRequest, member: Membership, form: forms.Form) -> HttpResponse:
    context = {
        "project": member.project,
        "member": member,
        "form": form,
        "saved": SavedView.objects.seen_by(member),
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "judging/results/views.html", context, status=status)


def _save_view(member: Membership, form: SaveViewForm) -> bool:
    """Save a view; False if the name is taken. Raises Http404 for an unknown page or run."""
    said: dict[str, Any] = form.cleaned_data
    pages.parse_query(member, said["page"], QueryDict(said["query"]))
    owner = access.ensure_membership(member)
    if SavedView.objects.of_member(owner).filter(name=said["name"]).exists():
        form.add_error("name", NAME_TAKEN)
        return False
    SavedView.objects.create(member=owner, **said)
    return True


def _change_view(request: HttpRequest, member: Membership) -> HttpResponse:
    form = ChangeSavedForm(request.POST)
    own = SavedView.objects.of_member(member)
    if not form.is_valid():
        return _render_list(request, member, form)
    view = get_object_or_404(own, pk=form.cleaned_data["view"])
    if form.cleaned_data["delete"]:
        view.delete()
        messages.success(request, f"View “{view.name}” deleted.")
        return redirect("results-views", slug=member.project.slug)
    name = form.cleaned_data["name"]
    if own.filter(name=name).exclude(pk=view.pk).exists():
        form.add_error("name", NAME_TAKEN)
        return _render_list(request, member, form)
    view.keep(name=name, shared=form.cleaned_data["shared"])
    messages.success(request, f"View “{name}” saved.")
    return redirect("results-views", slug=member.project.slug)


def _check_address(member: Membership, page: str, query: str) -> str:
    return f"{reverse('results-page', args=[member.project.slug, page])}?{query}"
