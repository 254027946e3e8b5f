"""The API of a project's webhooks."""

import uuid
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.project_rows import ProjectRowList
from annotation.api.responses import (
    CONFLICT_RESPONSES,
    IF_MATCH_PARAMETER,
    PROBLEM_RESPONSES,
    REFUSED_RESPONSES,
    Conflict,
    check_if_match,
    respond_with_etag,
    validate_body,
)
from annotation.db import transactions
from annotation.projects import access
from judging.models import Delivery, Webhook
from judging.webhooks import signing, webhooks
from judging.webhooks.topics import TOPICS

_TOPICS_WORDS = "What the webhook is told of, at least one."


def _topics(**options: Any) -> serializers.ListField:
    return serializers.ListField(
        child=serializers.ChoiceField(choices=[(name, one.title) for name, one in TOPICS.items()]),
        min_length=1,
        max_length=len(TOPICS),
        help_text=_TOPICS_WORDS,
        **options,
    )


class WebhookSerializer(serializers.Serializer[Webhook]):
    """A webhook. `off_reason` says why it was switched off by itself, "" if it was not. While no
    answer comes, nothing is sent before `wait_until`."""

    id = serializers.IntegerField(source="pk")
    address = serializers.CharField()
    topics = _topics(source="topic_list")
    active = serializers.BooleanField()
    off_reason = serializers.CharField()
    created_at = serializers.DateTimeField()
    wait_until = serializers.DateTimeField(allow_null=True)
    failing_since = serializers.DateTimeField(allow_null=True)


class SecretSerializer(serializers.Serializer[Any]):
    """The secret that signs the webhook's messages."""

    secret = serializers.CharField()


class MadeWebhookSerializer(WebhookSerializer):
    """A new webhook and the secret that signs its messages."""

    secret = serializers.SerializerMethodField()

    def get_secret(self, webhook: Webhook) -> str:
        return signing.derive_secret(webhook.nonce)


class NewWebhookSerializer(serializers.Serializer[Any]):
    """The address of the receiver, and what it is told of."""

    address = serializers.CharField(max_length=webhooks.MAX_ADDRESS)
    topics = _topics(default=lambda: list(TOPICS))


class ChangedWebhookSerializer(serializers.Serializer[Any]):
    """New values; what is left out stays."""

    address = serializers.CharField(max_length=webhooks.MAX_ADDRESS, required=False)
    topics = _topics(required=False)
    active = serializers.BooleanField(required=False)


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    """A message to the webhook. `id` is its `webhook-id`, the same in each try. `status`, `answer`,
    `problem` and `seconds` are of the last try; `answer` is the start of the receiver's text."""

    id = serializers.UUIDField(source="uid")
    payload = serializers.DictField(help_text="What is sent.")

    class Meta:
        model = Delivery
        fields = (
            "id",
            "type",
            "payload",
            "state",
            "tries",
            "next_try_at",
            "status",
            "answer",
            "problem",
            "seconds",
            "created_at",
            "finished_at",
        )
        read_only_fields = fields


class WebhookList(ProjectRowList[Webhook]):
    """The project's webhooks, the oldest first."""

    model = Webhook
    right = "manage"
    serializer_class = WebhookSerializer

    def list_rows(self) -> QuerySet[Webhook]:
        return Webhook.objects.in_project(self.member.project)

    @extend_schema(
        operation_id="webhooks_create",
        request=NewWebhookSerializer,
        responses={201: MadeWebhookSerializer, **REFUSED_RESPONSES},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Create a webhook that is told of what happens from now on. The answer has its secret."""
        lead = access.member_for(request, slug, right="manage")
        said = validate_body(NewWebhookSerializer(data=request.data))
        made = webhooks.create_webhook(access.ensure_membership(lead), **said, now=timezone.now())
        return Response(MadeWebhookSerializer(made).data, status=201)


@extend_schema(methods=["GET"], responses={200: WebhookSerializer, **PROBLEM_RESPONSES})
@extend_schema(
    methods=["PATCH"],
    parameters=[IF_MATCH_PARAMETER],
    request=ChangedWebhookSerializer,
    responses={200: WebhookSerializer, **REFUSED_RESPONSES},
)
@extend_schema(methods=["DELETE"], responses={204: None, **PROBLEM_RESPONSES})
@api_view(["GET", "PATCH", "DELETE"])
def webhook(request: Request, slug: str, webhook: int) -> Response:
    """One webhook; PATCH changes only the given values, DELETE deletes its deliveries too. What
    happens while it is off is not sent later."""
    lead = access.member_for(request, slug, right="manage")
    found = webhooks.get_webhook(lead, webhook)
    if request.method == "DELETE":
        webhooks.delete_webhook(found, access.ensure_membership(lead))
        return Response(status=204)
    if request.method == "PATCH":
        said = validate_body(ChangedWebhookSerializer(data=request.data))
        by = access.ensure_membership(lead)
        with transactions.transact():
            # Locked, so that of two who read the same settings only one changes them.
            found = get_object_or_404(Webhook.objects.select_for_update(of=("self",)), pk=found.pk)
            check_if_match(request, _settings(found))
            webhooks.change_webhook(found, by, **said, now=timezone.now())
    return respond_with_etag(WebhookSerializer(found).data, _settings(found))


@extend_schema(request=None, responses={200: SecretSerializer, **PROBLEM_RESPONSES})
@api_view(["POST"])
def renew_secret(request: Request, slug: str, webhook: int) -> Response:
    """Give the webhook a new secret, which holds at once."""
    lead = access.member_for(request, slug, right="manage")
    found = webhooks.get_webhook(lead, webhook)
    secret = webhooks.renew_secret(found, access.ensure_membership(lead))
    return Response(SecretSerializer({"secret": secret}).data)


@extend_schema(request=None, responses={201: DeliverySerializer, **REFUSED_RESPONSES})
@api_view(["POST"])
def send_ping(request: Request, slug: str, webhook: int) -> Response:
    """Let a worker send a message of the type `ping`; see `deliveries/` for the answer."""
    lead = access.member_for(request, slug, right="manage")
    made = webhooks.send_ping(webhooks.get_webhook(lead, webhook), now=timezone.now())
    return Response(DeliverySerializer(made).data, status=201)


class DeliveryList(ProjectRowList[Delivery]):
    """The messages to a webhook, the newest first, kept for 30 days after they were sent."""

    model = Delivery
    right = "manage"
    serializer_class = DeliverySerializer

    def list_rows(self) -> QuerySet[Delivery]:
        found = webhooks.get_webhook(self.member, self.kwargs["webhook"])
        return found.deliveries.order_by("-pk")


@extend_schema(request=None, responses={204: None, **REFUSED_RESPONSES, **CONFLICT_RESPONSES})
@api_view(["POST"])
def send_again(request: Request, slug: str, webhook: int, delivery: uuid.UUID) -> Response:
    """Let a worker send a finished message again, with the same id and body."""
    lead = access.member_for(request, slug, right="manage")
    found = webhooks.get_webhook(lead, webhook)
    if not webhooks.send_again(found, webhooks.get_delivery(found, delivery), now=timezone.now()):
        raise Conflict("This message already waits to be sent.")
    return Response(status=204)


def _settings(found: Webhook) -> dict[str, Any]:
    """What a PATCH can change."""
    return {"address": found.address, "topics": found.topic_list, "active": found.active}


WEBHOOKS_PATH = "projects/<slug:slug>/webhooks/"
WEBHOOK_PATH = WEBHOOKS_PATH + "<int:webhook>/"

urlpatterns = [
    path(WEBHOOKS_PATH, WebhookList.as_view(), name="api-webhooks"),
    path(WEBHOOK_PATH, webhook, name="api-webhook"),
    path(WEBHOOK_PATH + "secret/", renew_secret, name="api-webhook-secret"),
    path(WEBHOOK_PATH + "ping/", send_ping, name="api-webhook-ping"),
    path(WEBHOOK_PATH + "deliveries/", DeliveryList.as_view(), name="api-webhook-deliveries"),
    path(WEBHOOK_PATH + "deliveries/<uuid:delivery>/again/", send_again, name="api-webhook-again"),
]
