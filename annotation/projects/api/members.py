"""The API of the people of a project: who is what, and who may come."""

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.urls import path, reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.form_bodies import FormSerializer
from annotation.api.pagination import CursorPages
from annotation.api.responses import REFUSED_RESPONSES, validate_body
from annotation.db import transactions
from annotation.models import Invitation, Membership, Role
from annotation.projects import access, invitations, members
from annotation.projects.views.members import InviteForm


class MemberSerializer(serializers.Serializer[Membership]):
    """A member under their alias; accounts, names and addresses are told nowhere. `active` is false
    for who is suspended, `has_account` for a rater whose labels were imported. `labelled` are
    labels of work in force, `counted` those of them that count."""

    alias = serializers.CharField()
    role = serializers.ChoiceField(choices=Role.choices)
    active = serializers.BooleanField()
    has_account = serializers.SerializerMethodField()
    labelled = serializers.IntegerField()
    counted = serializers.IntegerField()
    last_label_at = serializers.DateTimeField(allow_null=True)
    guidelines_seen = serializers.IntegerField(help_text="The last version they have read.")
    created_at = serializers.DateTimeField()

    def get_has_account(self, member: Membership) -> bool:
        return member.account_id is not None


class ChangedMemberSerializer(serializers.Serializer[Any]):
    """What a member is from now on; what they did stays as it is."""

    role = serializers.ChoiceField(choices=Role.choices, required=False)
    active = serializers.BooleanField(
        required=False, help_text="False suspends the member until it is true again."
    )


class HandOverSerializer(serializers.Serializer[Any]):
    to = serializers.CharField(max_length=80, help_text="The alias of the new lead.")
    role = serializers.ChoiceField(choices=Role.choices, help_text="Your new role.")


class InviteSerializer(FormSerializer):
    """Who is invited, as what."""

    form = InviteForm


class InvitationSerializer(serializers.Serializer[Invitation]):
    """An invitation that is neither used nor taken back; of no use after `expires_at`."""

    alias = serializers.CharField()
    role = serializers.CharField()
    made_by = serializers.CharField(source="made_by.alias")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()


class InvitedSerializer(InvitationSerializer):
    """A new invitation with its link, which is shown this once."""

    link = serializers.CharField()
    sent = serializers.BooleanField(
        allow_null=True, help_text="Whether it went out by e-mail; null if no address was given."
    )


class MemberList(ListAPIView[Membership]):
    """Everybody who is or was in the project, by alias."""

    serializer_class = MemberSerializer
    pagination_class = CursorPages
    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[Membership]:
        if getattr(self, "swagger_fake_view", False):
            return Membership.objects.none()
        lead = access.member_for(self.request, self.kwargs["slug"], right="manage")
        return Membership.objects.in_project(lead.project).for_progress()


@extend_schema(
    request=ChangedMemberSerializer(partial=True),
    responses={200: MemberSerializer, **REFUSED_RESPONSES},
)
@api_view(["PATCH"])
def member(request: Request, slug: str, alias: str) -> Response:
    """Change a member's role, suspend them, or let them go on."""
    lead = access.ensure_membership(access.member_for(request, slug, right="manage"))
    found = _find_member(lead, alias)
    asked = validate_body(ChangedMemberSerializer(data=request.data, partial=True))
    with transactions.transact():
        if "role" in asked:
            members.change_role(lead, found, asked["role"])
        if "active" in asked:
            (members.restore if asked["active"] else members.suspend)(lead, found)
    told = Membership.objects.in_project(lead.project).for_progress().get(pk=found.pk)
    return Response(MemberSerializer(told).data)


@extend_schema(request=HandOverSerializer, responses={204: None, **REFUSED_RESPONSES})
@api_view(["POST"])
def hand_over(request: Request, slug: str) -> Response:
    """Make somebody else a lead, and take another role yourself."""
    lead = access.member_for(request, slug, right="manage")
    asked = validate_body(HandOverSerializer(data=request.data))
    members.hand_over(
        access.ensure_membership(lead), _find_member(lead, asked["to"]), asked["role"]
    )
    return Response(status=204)


class InvitationList(ListAPIView[Invitation]):
    """Who may come: invitations that wait for somebody, the last first."""

    serializer_class = InvitationSerializer
    pagination_class = CursorPages
    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[Invitation]:
        if getattr(self, "swagger_fake_view", False):
            return Invitation.objects.none()
        lead = access.member_for(self.request, self.kwargs["slug"], right="manage")
        waiting = Invitation.objects.in_project(lead.project).waiting()
        return waiting.select_related("made_by").order_by("-created_at", "-pk")

    @extend_schema(
        request=InviteSerializer, responses={201: InvitedSerializer, **REFUSED_RESPONSES}
    )
    def post(self, request: Request, slug: str) -> Response:
        """Make a link that lets one person in, once. With an address it is sent there, if the
        server can; its answer is the only place where the link is ever shown."""
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
    """Take an invitation back, by the name that it is under. One that was used stays used."""
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
