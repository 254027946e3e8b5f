"""The API of comments and of mentions in them, as on their pages."""

from typing import Any

from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import access, commenting
from annotation.api.answering import PROBLEMS, SUBMISSION_PROBLEMS, Pages, checked
from annotation.api.decisions import OF, ItemBody, item_of
from annotation.models import Item, Membership

ITEM = OpenApiParameter("item", description="The key of an item; without it, of all of them.")
LIMIT = OpenApiParameter("limit", int, description="Without an item: so many, 1,000 at most.")
# No database counts further than its numbers go.
LAST = 2**31 - 1
OFFSET = OpenApiParameter("offset", int, description="Without an item: after so many.")


class CommentSerializer(serializers.Serializer[Any]):
    item = serializers.CharField(source="item.key")
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
    parameters=[ITEM, LIMIT, OFFSET],
    responses={200: CommentSerializer(many=True), **SUBMISSION_PROBLEMS},
)
@extend_schema(
    methods=["POST"],
    request=CommentBody,
    responses={201: CommentSerializer(many=True), **SUBMISSION_PROBLEMS},
)
@api_view(["GET", "POST"])
def comments(request: Request, slug: str) -> Response:
    """What people say of an item, oldest first, once your own label is in; a POST adds to it.

    Without an item: of all items that you may read about, newest first.
    """
    member = access.member_for(request, slug, right="enter")
    if request.method == "GET" and "item" not in request.query_params:
        return Response(_all_comments(member, request))
    if request.method == "GET":
        item = item_of(member, checked(ItemBody(data=request.query_params))["item"])
        return Response(_comments(member, item))
    data = checked(CommentBody(data=request.data))
    member = access.seated(member)
    item = item_of(member, data["item"])
    commenting.say(member, item, data["text"], now=timezone.now())
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
    commenting.withdraw(member, item, data["number"], now=timezone.now())
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
    found = commenting.of_item(member, item, now=timezone.now())
    return CommentSerializer(found, many=True).data


def _all_comments(member: Membership, request: Request) -> Any:
    pages = Pages()
    start = min(pages.get_offset(request), LAST)
    end = start + (pages.get_limit(request) or Pages.default_limit)
    found = commenting.in_project(member, start=start, end=end, now=timezone.now())
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


urlpatterns = [
    path(OF + "comments/", comments, name="api-comments"),
    path(OF + "comments/withdraw/", withdraw_comment, name="api-comments-withdraw"),
    path(OF + "mentions/", mentions, name="api-mentions"),
]
