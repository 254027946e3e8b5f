"""The page to assign items to annotators and to set their priority; for leads."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from annotation import tasktypes
from annotation.errors import Refused
from annotation.items import taxonomy
from annotation.items.models import ItemQuerySet
from annotation.labelling import assignment, work_order
from annotation.models import Item, Membership, Project
from annotation.projects import access

MAX_SHOWN = 20
ACTIONS = ("show", "each", "share", *work_order.PRIORITIES)


class ChoiceForm(forms.Form):
    """Form to choose items and the members to reserve them for."""

    keys = forms.CharField(
        required=False,
        max_length=1_000_000,
        label="Keys",
        help_text="One per line. Empty: all matching items.",
        widget=forms.Textarea({"rows": 4, "spellcheck": "false"}),
    )
    category = forms.ChoiceField(required=False, label="Category")
    unlabelled = forms.BooleanField(required=False, label="Only items without labels")
    limit = forms.IntegerField(
        required=False, min_value=1, max_value=1_000_000, label="At most this many items, in order"
    )
    group = forms.ChoiceField(
        required=False,
        label="Group",
        help_text="Everybody in the group, besides the people below.",
    )
    people = forms.MultipleChoiceField(
        required=False, label="Members", widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, data: Any, project: Project, people: list[Membership]) -> None:
        super().__init__(data)
        self.project = project
        named = taxonomy.load_taxonomy(project).category_names().items()
        category: Any = self.fields["category"]
        category.choices = [("", "Any"), *named]
        if not tasktypes.load_task_type(project).categories:
            del self.fields["category"]
        who: Any = self.fields["people"]
        who.choices = [(member.alias, member.alias) for member in people]
        self.known = people
        groups = sorted({member.group for member in people if member.group})
        named_groups: Any = self.fields["group"]
        named_groups.choices = [("", "None"), *((group, group) for group in groups)]
        if not groups:
            del self.fields["group"]

    def clean_keys(self) -> list[str]:
        lines = self.cleaned_data["keys"].splitlines()
        return list(dict.fromkeys(line.strip() for line in lines if line.strip()))

    def members(self) -> list[Membership]:
        """The chosen people, and those of the chosen group."""
        aliases, group = self.cleaned_data["people"], self.cleaned_data.get("group")
        return [
            member
            for member in self.known
            if member.alias in aliases or (group and member.group == group)
        ]

    def items(self) -> ItemQuerySet:
        data = self.cleaned_data
        return assignment.choose_items(
            self.project,
            category=data.get("category", ""),
            keys=data["keys"],
            unlabelled=data["unlabelled"],
            limit=data["limit"],
        )


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def assign(request: HttpRequest, slug: str) -> HttpResponse:
    """Reserve items for members, or change the priority of items; a POST with `back` returns a
    member's reserved items to the queue."""
    lead = access.member_for(request, slug, right="manage")
    people = list(Membership.objects.in_project(lead.project).who_label())
    if request.method != "POST":
        return _render_page(request, lead, ChoiceForm(None, lead.project, people))
    if "back" in request.POST:
        return _take_back(request, access.ensure_membership(lead))
    form = ChoiceForm(request.POST, lead.project, people)
    action = request.POST.get("action", "")
    if not form.is_valid() or action not in ACTIONS:
        return _render_page(request, lead, form, status=422)
    if action == "show":
        return _render_page(request, lead, form, shown=True)
    if action in ("each", "share") and not form.members():
        form.add_error("people", "Choose at least one person.")
        return _render_page(request, lead, form, status=422)
    try:
        said = _apply_action(access.ensure_membership(lead), action, form.items(), form.members())
    except Refused as problem:
        form.add_error("people", str(problem))
        return _render_page(request, lead, form, status=422)
    messages.success(request, said)
    return redirect("assign", slug)


def _apply_action(
    lead: Membership, action: str, items: ItemQuerySet, people: list[Membership]
) -> str:
    """Apply the action, and return a message."""
    if action in work_order.PRIORITIES:
        number = assignment.set_priority(lead, items, action)
        when = {"urgent": "come first", "normal": "come in normal order", "later": "come last"}
        return f"{number} item{'s' * (number != 1)} now {when[action]}."
    share_out = action == "share"
    made = assignment.reserve_slots(lead, items, people, share_out=share_out, now=timezone.now())
    said = f"{made.reserved} label{'s' * (made.reserved != 1)} reserved."
    return said + (
        f" {made.refused} not reserved, because they were already started." if made.refused else ""
    )


def _take_back(request: HttpRequest, lead: Membership) -> HttpResponse:
    member = Membership.objects.in_project(lead.project).named(request.POST["back"])
    if member is None:
        raise Http404
    number = assignment.release_reserved(lead, member)
    places = f"{number} label{'s' * (number != 1)}"
    messages.success(request, f"{places} reserved for {member.alias} returned to the queue.")
    return redirect("assign", lead.project.slug)


def _render_page(
    request: HttpRequest,
    lead: Membership,
    form: ChoiceForm,
    *,
    shown: bool = False,
    status: int = 200,
) -> HttpResponse:
    context: dict[str, Any] = {
        "project": lead.project,
        "member": lead,
        "form": form,
        "reserved": assignment.list_reserved(lead.project),
    }
    if shown:
        found = list(form.items().values_list("key", flat=True))
        unknown = set(form.cleaned_data["keys"]) - set(_existing_keys(lead.project, form))
        context |= {"found": len(found), "first": found[:MAX_SHOWN], "unknown": sorted(unknown)}
    return render(request, "annotation/assign.html", context, status=status)


def _existing_keys(project: Project, form: ChoiceForm) -> list[str]:
    named = Item.objects.in_project(project).with_keys(form.cleaned_data["keys"])
    return list(named.values_list("key", flat=True))
