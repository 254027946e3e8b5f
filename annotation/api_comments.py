"""The API of comments and of mentions in them, as on their pages."""

from typing import Any

from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import access, commenting
from annotation.api import PROBLEMS, SUBMISSION_PROBLEMS, Conflict, Unprocessable, checked
from annotation.api_decisions import OF, ItemBody, item_of
from annotation.models import Item, Membership

ITEM = OpenApiParameter("item", description="The key of the item.", required=True)


class CommentSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    annotator = serializers.CharField(source="member.alias")
    text = serializers.CharField()
    created_at = serializers.DateTimeField()


class CommentBody(ItemBody):
    text = serializers.CharField(max_length=commenting.LONGEST, trim_whitespace=False)


class WithdrawalBody(ItemBody):
    number = serializers.IntegerField(min_value=1, max_value=1_000_000)


@extend_schema(
    methods=["GET"],
    parameters=[ITEM],
    responses={200: CommentSerializer(many=True), **SUBMISSION_PROBLEMS},
)
@extend_schema(
    methods=["POST"],
    request=CommentBody,
    responses={201: CommentSerializer(many=True), **SUBMISSION_PROBLEMS},
)
@api_view(["GET", "POST"])
def comments(request: Request, slug: str) -> Response:
    """What people say of an item, once your own label is in; a POST adds to it."""
    member = access.member_for(request, slug, right="enter")
    if request.method == "GET":
        item = item_of(member, checked(ItemBody(data=request.query_params))["item"])
        return Response(_comments(member, item))
    data = checked(CommentBody(data=request.data))
    member = access.seated(member)
    item = item_of(member, data["item"])
    try:
        commenting.say(member, item, data["text"], now=timezone.now())
    except commenting.Refused as problem:
        raise _of_comment(problem) from problem
    return Response(_comments(member, item), status=201)


@extend_schema(
    request=WithdrawalBody, responses={200: CommentSerializer(many=True), **SUBMISSION_PROBLEMS}
)
@api_view(["POST"])
def withdraw_comment(request: Request, slug: str) -> Response:
    """Take back a comment of yours, as a lead anybody's; the comments that are left."""
    member = access.member_for(request, slug, right="enter")
    data = checked(WithdrawalBody(data=request.data))
    member = access.seated(member)
    item = item_of(member, data["item"])
    try:
        commenting.withdraw(member, item, data["number"], now=timezone.now())
    except commenting.Refused as problem:
        raise _of_comment(problem) from problem
    return Response(_comments(member, item))


@extend_schema(
    responses={
        200: inline_serializer(
            "Mention",
            {
                "item": serializers.CharField(allow_null=True),
                "annotator": serializers.CharField(),
                "text": serializers.CharField(allow_null=True),
                "new": serializers.BooleanField(),
                "created_at": serializers.DateTimeField(),
            },
            many=True,
        ),
        **PROBLEMS,
    }
)
@api_view(["GET"])
def mentions(request: Request, slug: str) -> Response:
    """Comments that name you, the last first; without item and text until your label is in."""
    member = access.member_for(request, slug, right="enter")
    return Response([_mention(one) for one in commenting.mentions(member, now=timezone.now())])


def _comments(member: Membership, item: Item) -> Any:
    try:
        found = commenting.of_item(member, item, now=timezone.now())
    except commenting.Refused as problem:
        raise _of_comment(problem) from problem
    return CommentSerializer(found, many=True).data


def _mention(mention: commenting.Mention) -> dict[str, Any]:
    comment = mention.comment
    return {
        "item": comment.item.key if mention.open else None,
        "annotator": comment.member.alias,
        "text": comment.text if mention.open else None,
        "new": mention.new,
        "created_at": comment.created_at,
    }


def _of_comment(problem: commenting.Refused) -> APIException:
    early = isinstance(problem, commenting.TooEarly)
    return Conflict(str(problem)) if early else Unprocessable(str(problem))


urlpatterns = [
    path(OF + "comments/", comments, name="api-comments"),
    path(OF + "comments/withdraw/", withdraw_comment, name="api-comments-withdraw"),
    path(OF + "mentions/", mentions, name="api-mentions"),
]
