"""The API of the members of a project and of its invitations."""

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.urls import path, reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.form_bodies import FormSerializer
from annotation.api.project_rows import ProjectRowList
from annotation.api.responses import REFUSED_RESPONSES, validate_body
from annotation.db import transactions
from annotation.models import Invitation, Membership, Role
from annotation.projects import access, invitations, members
from annotation.projects.views.members import InviteForm


class MemberSerializer(serializers.Serializer[Membership]):
    """A member under their alias, without account, name and address. `active` is false for a
    suspended member. `has_account` is false for a rater whose labels were imported. `labelled` is
    the number of current labels at stage `label`; `counted` is the number of those that count."""

    alias = serializers.CharField()
    role = serializers.ChoiceField(choices=Role.choices)
    active = serializers.BooleanField()
    has_account = serializers.SerializerMethodField()
    labelled = serializers.IntegerField()
    counted = serializers.IntegerField()
    last_label_at = serializers.DateTimeField(allow_null=True)
    guidelines_seen = serializers.IntegerField(
        help_text="The last version of the guidelines that they have read."
    )
    created_at = serializers.DateTimeField()

    def get_has_account(self, member: Membership) -> bool:
        return member.account_id is not None


class ChangedMemberSerializer(serializers.Serializer[Any]):
    """The member's new role or state; existing work stays as it is."""

    role = serializers.ChoiceField(choices=Role.choices, required=False)
    active = serializers.BooleanField(
        required=False, help_text="False suspends the member until it is true again."
    )


class HandOverSerializer(serializers.Serializer[Any]):
    to = serializers.CharField(max_length=80, help_text="The alias of the new lead.")
    role = serializers.ChoiceField(choices=Role.choices, help_text="Your new role.")


class InviteSerializer(FormSerializer):
    """The alias and role to invite, with an optional address."""

    form = InviteForm


class InvitationSerializer(serializers.Serializer[Invitation]):
    """An invitation that is neither used nor revoked. After `expires_at` it cannot be used."""

    alias = serializers.CharField()
    role = serializers.CharField()
    made_by = serializers.CharField(source="made_by.alias")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()


class InvitedSerializer(InvitationSerializer):
    """A new invitation with its link, which is shown only once."""

    link = serializers.CharField()
    sent = serializers.BooleanField(
        allow_null=True,
        help_text="Whether the invitation was sent by e-mail; null if no address was given.",
    )


class MemberList(ProjectRowList[Membership]):
    """All members of the project by alias, including suspended ones."""

    model = Membership
    right = "manage"
    serializer_class = MemberSerializer

    def list_rows(self) -> QuerySet[Membership]:
        return Membership.objects.in_project(self.member.project).for_progress()


@extend_schema(
    request=ChangedMemberSerializer(partial=True),
    responses={200: MemberSerializer, **REFUSED_RESPONSES},
)
@api_view(["PATCH"])
def member(request: Request, slug: str, alias: str) -> Response:
    """Change a member's role, suspend them, or restore them."""
    lead = access.ensure_membership(access.member_for(request, slug, right="manage"))
    found = _find_member(lead, alias)
    asked = validate_body(ChangedMemberSerializer(data=request.data, partial=True))
    with transactions.transact():
        if "active" in asked:
            (members.restore if asked["active"] else members.suspend)(lead, found)
        # The role comes last: a lead who gives up their own may change nothing after it.
        if "role" in asked:
            members.change_role(lead, found, asked["role"])
    told = Membership.objects.in_project(lead.project).for_progress().get(pk=found.pk)
    return Response(MemberSerializer(told).data)


@extend_schema(request=HandOverSerializer, responses={204: None, **REFUSED_RESPONSES})
@api_view(["POST"])
def hand_over(request: Request, slug: str) -> Response:
    """Make another member a lead, and take another role yourself."""
    lead = access.member_for(request, slug, right="manage")
    asked = validate_body(HandOverSerializer(data=request.data))
    members.hand_over(
        access.ensure_membership(lead), _find_member(lead, asked["to"]), asked["role"]
    )
    return Response(status=204)


class InvitationList(ProjectRowList[Invitation]):
    """Invitations that are neither used nor revoked, the latest first."""

    model = Invitation
    right = "manage"
    serializer_class = InvitationSerializer

    def list_rows(self) -> QuerySet[Invitation]:
        waiting = Invitation.objects.in_project(self.member.project).waiting()
        return waiting.select_related("made_by").order_by("-created_at", "-pk")

    @extend_schema(
        request=InviteSerializer, responses={201: InvitedSerializer, **REFUSED_RESPONSES}
    )
    def post(self, request: Request, slug: str) -> Response:
        """Create a one-time link for one person. If an address is given and the server can send
        mail, the link is sent there. Only this response shows the link."""
        lead = access.member_for(request, slug, right="manage")
        wanted = invitations.InvitationRequest(**validate_body(InviteSerializer(data=request.data)))
        made, key = invitations.create_invitation(
            access.ensure_membership(lead), wanted, now=timezone.now()
        )
        link = request.build_absolute_uri(reverse("invitation", args=[key]))
        told = InvitationSerializer(made).data | {
            "link": link,
            "sent": invitations.send_invitation(made, link),
        }
        return Response(told, status=201)


@extend_schema(responses={204: None, **REFUSED_RESPONSES})
@api_view(["DELETE"])
def invitation(request: Request, slug: str, invited: str) -> Response:
    """Revoke an invitation by its alias. An invitation that was used already stays as it is."""
    lead = access.member_for(request, slug, right="manage")
    every = Invitation.objects.in_project(lead.project)
    found = None if "\0" in invited else every.named(invited).first()
    if found is None:
        raise Http404(f"Nobody was invited as {invited[:80]}.")
    invitations.revoke(access.ensure_membership(lead), found, now=timezone.now())
    return Response(status=204)


def _find_member(lead: Membership, alias: str) -> Membership:
    found = Membership.objects.in_project(lead.project).named(alias)
    if found is None:
        raise Http404(f"No member is called {alias[:80]}.")
    return found


PROJECT_PATH = "projects/<slug:slug>/"

urlpatterns = [
    path(PROJECT_PATH + "members/", MemberList.as_view(), name="api-members"),
    path(PROJECT_PATH + "members/<path:alias>/", member, name="api-member"),
    path(PROJECT_PATH + "hand-over/", hand_over, name="api-hand-over"),
    path(PROJECT_PATH + "invitations/", InvitationList.as_view(), name="api-invitations"),
    path(PROJECT_PATH + "invitations/<path:invited>/", invitation, name="api-invitation"),
]
