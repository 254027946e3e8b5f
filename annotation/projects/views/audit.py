"""The audit log pages with a search, for leads of a project and for site admins."""

from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from annotation.errors import Refused
from annotation.labelling import visibility
from annotation.models import Event, Membership, Project
from annotation.projects import access, event_types
from annotation.projects import audit as projects_audit


class AuditForm(forms.Form):
    kind = forms.CharField(required=False, max_length=40, label="Event")
    person = forms.CharField(required=False, max_length=150, label="By")
    subject = forms.CharField(required=False, max_length=200, label="Subject")
    first = forms.DateField(required=False, label="From", widget=forms.DateInput({"type": "date"}))
    last = forms.DateField(required=False, label="Until", widget=forms.DateInput({"type": "date"}))

    def __init__(self, data: Any, project: Project | None) -> None:
        super().__init__(data)
        # A kind without events is not an error: it may be part of a saved link.
        kinds = dict.fromkeys([*Event.objects.kinds(project), self.data.get("kind", "")])
        named = [(kind, event_types.event_title(kind)) for kind in kinds if kind]
        self.fields["kind"].widget = forms.Select(choices=[("", "Anything"), *named])

    def chosen_filters(self) -> dict[str, Any]:
        """Return the fields of a valid form that are filled in, by name."""
        return {name: value for name, value in self.cleaned_data.items() if value}


@require_safe
@never_cache
@login_required
def audit(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the events of a project, and record that the lead has seen what was said about the
    items."""
    lead = access.member_for(request, slug, right="manage")
    return _page(request, lead.project, lead)


@require_safe
@never_cache
@login_required
def audit_of_site(request: HttpRequest) -> HttpResponse:
    """Show the events that belong to no project, such as those about accounts, API tokens and
    endpoints."""
    access.require_site_admin(request)
    return _page(request, None, None)


def _page(request: HttpRequest, project: Project | None, lead: Membership | None) -> HttpResponse:
    form = AuditForm(request.GET, project)
    trouble, page = "", projects_audit.AuditPage((), "")
    if form.is_valid():
        found = projects_audit.search_events(
            project, projects_audit.AuditSearch(**form.chosen_filters())
        )
        try:
            page = projects_audit.load_page(found, request.GET.get("after", ""))
        except Refused as refused:
            trouble = str(refused)
    if project and lead:
        shown = projects_audit.event_items([entry.event for entry in page.entries], project)
        visibility.record_all_seen(lead, shown, now=timezone.now())
    context: dict[str, Any] = {"project": project, "member": lead, "filters": form, "page": page}
    context |= {"trouble": trouble, "narrowed": any(request.GET.values())}
    status = 422 if trouble or form.errors else 200
    return render(request, "annotation/audit.html", context, status=status)
