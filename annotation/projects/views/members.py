"""The members page of a project: members and their roles, and open invitations."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from annotation.db import transactions
from annotation.errors import FieldError, Refused
from annotation.models import Invitation, Membership, Role
from annotation.projects import access, audit, invitations, members, sign_in_links

MAX_SHOWN = 20


class InviteForm(forms.Form):
    alias = forms.CharField(
        max_length=80,
        label="Name in this project",
        widget=forms.TextInput({"autofocus": True}),
        help_text="The alias on screens and in exports. It need not be a real name.",
    )
    role = forms.ChoiceField(choices=Role.choices, label="Role")
    email = forms.EmailField(
        required=False,
        label="E-mail address",
        help_text="The link is sent to this address. If it is empty, send the link yourself.",
    )
    days: Any = forms.TypedChoiceField(
        choices=[(days, f"{days} day{'s' * (days > 1)}") for days in invitations.VALID_DAYS],
        coerce=int,
        initial=7,
        label="Link is valid for",
    )


class InviteManyForm(forms.Form):
    people = forms.CharField(
        max_length=20_000,
        label="Names or e-mail addresses, one per line",
        widget=forms.Textarea({"rows": 8, "spellcheck": "false"}),
        help_text="A name, an address, or both, as copied from a spreadsheet or an e-mail. A "
        "person with only an address is named by the part before the @.",
    )
    role = forms.ChoiceField(choices=Role.choices, label="Role of all")
    group = forms.CharField(
        required=False,
        max_length=members.MOST_OF_GROUP,
        label="Group of all",
        help_text="For example a course. Items can be reserved for a group.",
    )
    days: Any = forms.TypedChoiceField(
        choices=[(days, f"{days} day{'s' * (days > 1)}") for days in invitations.VALID_DAYS],
        coerce=int,
        initial=7,
        label="Links are valid for",
    )


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def people(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the members of the project. A POST changes a member or revokes an invitation."""
    lead = access.member_for(request, slug, right="manage")
    if request.method != "POST":
        return _render_page(request, lead)
    if "link" in request.POST:
        return _show_link(request, access.ensure_membership(lead))
    if "revoke" in request.POST:
        return _revoke(request, access.ensure_membership(lead))
    member = Membership.objects.in_project(lead.project).named(request.POST.get("member", ""))
    if member is None:
        return _render_page(request, lead, "No member has this name.")
    try:
        said = _apply_action(access.ensure_membership(lead), member, request.POST)
    except Refused as refused:
        return _render_page(request, lead, str(refused))
    messages.success(request, said)
    still = Membership.objects.in_project(lead.project).who_manage().filter(account=lead.account)
    return redirect("members" if still else "project", slug)


def _apply_action(lead: Membership, member: Membership, said: Any) -> str:
    """Apply the action and return a message. Raises `Refused` for an unknown role."""
    action, role = said.get("action"), said.get("role", "")
    if action == "suspend":
        members.suspend(lead, member)
        return f"{member} is suspended. Their work is kept."
    if action == "restore":
        members.restore(lead, member)
        return f"{member} is restored."
    if role not in Role.values:
        raise Refused("Choose a role from the list.")
    if action == "hand-over":
        members.hand_over(lead, member, role)
        return f"{member} is now the lead. You are {role}."
    before, group = (member.role, member.group), said.get("group")
    # What the page shows unchanged may have been changed by another lead since.
    role = member.role if role == said.get("initial-role") else role
    group = member.group if group == said.get("initial-group") else group
    with transactions.transact():
        # The role comes last: a lead who gives up their own may change nothing after it.
        members.set_group(lead, member, group)
        if role != member.role:
            members.change_role(lead, member, role)
    if (member.role, member.group) == before:
        return "Nothing was changed."
    return f"{member} is now {role}" + (f", group {member.group}." if member.group else ".")


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def invite(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the forms for one and for several invitations. A POST creates them and shows the links,
    once."""
    lead = access.member_for(request, slug, right="manage")
    if "people" in request.POST:
        return _invite_many(request, lead)
    form = InviteForm(request.POST or None)
    many = InviteManyForm(auto_id="many_%s")
    context = {"project": lead.project, "member": lead, "form": form, "many": many}
    if request.method == "POST" and form.is_valid():
        try:
            made, key = invitations.create_invitation(
                access.ensure_membership(lead),
                invitations.InvitationRequest(**form.cleaned_data),
                now=timezone.now(),
            )
        except FieldError as error:
            form.add_error(error.field, str(error))
        else:
            link = request.build_absolute_uri(reverse("invitation", args=[key]))
            context |= {"made": made, "link": link, "sent": invitations.send_invitation(made, link)}
            return render(request, "annotation/invited.html", context)
    status = 422 if request.method == "POST" else 200
    return render(request, "annotation/invite.html", context, status=status)


def _invite_many(request: HttpRequest, lead: Membership) -> HttpResponse:
    many = InviteManyForm(request.POST, auto_id="many_%s")
    one = InviteForm()
    context = {"project": lead.project, "member": lead, "form": one, "many": many}
    if many.is_valid():
        said = many.cleaned_data
        try:
            wanted = invitations.read_people(
                said["people"], role=said["role"], days=said["days"], group=said["group"]
            )
            found = invitations.create_invitations(
                access.ensure_membership(lead), wanted, now=timezone.now()
            )
        except FieldError as error:
            many.add_error("people", str(error))
        else:
            links = [
                (made, request.build_absolute_uri(reverse("invitation", args=[key])))
                for made, key in found
            ]
            sent = invitations.send_invitations(links)
            context["made"] = [(*one, was) for one, was in zip(links, sent, strict=True)]
            return render(request, "annotation/invited_many.html", context)
    # The page opens where the error stands.
    one.fields["alias"].widget.attrs.pop("autofocus")
    many.fields["people"].widget.attrs["autofocus"] = True
    return render(request, "annotation/invite.html", context, status=422)


def _show_link(request: HttpRequest, lead: Membership) -> HttpResponse:
    """Show a new sign-in link for a member, once."""
    found = Membership.objects.in_project(lead.project).select_related("account", "project")
    member = found.filter(alias=request.POST["link"].replace("\0", "")).first()
    if member is None:
        return _render_page(request, lead, "No member has this name.")
    try:
        key = sign_in_links.create_link(lead, member)
    except Refused as problem:
        return _render_page(request, lead, str(problem))
    link = request.build_absolute_uri(reverse("sign-in-link", args=[key]))
    context = {"project": lead.project, "member": lead, "person": member, "link": link}
    return render(request, "annotation/sign_in_link.html", context)


def _revoke(request: HttpRequest, lead: Membership) -> HttpResponse:
    number = request.POST["revoke"]
    if not number.isascii() or not number.isdigit() or len(number) > 18:
        raise Http404
    waiting = Invitation.objects.in_project(lead.project)
    invitation = get_object_or_404(waiting, pk=int(number))
    invitations.revoke(lead, invitation, now=timezone.now())
    messages.success(request, f"Invitation of {invitation.alias} revoked.")
    return redirect("members", lead.project.slug)


def _render_page(request: HttpRequest, lead: Membership, trouble: str = "") -> HttpResponse:
    project = lead.project
    context = {
        "project": project,
        "member": lead,
        "trouble": trouble,
        "people": Membership.objects.in_project(project).for_progress().select_related("account"),
        "groups": members.list_groups(project),
        "roles": Role.values,
        "invitations": Invitation.objects.in_project(project).waiting(),
        "now": timezone.now(),
        "sends_mail": bool(settings.EMAIL_HOST),
        "changes": [
            audit.describe_event(event) for event in members.list_changes(project)[:MAX_SHOWN]
        ],
    }
    return render(request, "annotation/members.html", context, status=422 if trouble else 200)
