"""The API of comments and mentions; same access as the pages."""

from typing import Any

from django.db.models import QuerySet
from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.idempotency import KEY_PARAMETER, make_idempotent
from annotation.api.project_rows import ProjectRowList
from annotation.api.responses import PROBLEM_RESPONSES, SUBMISSION_RESPONSES, validate_body
from annotation.labelling import comments
from annotation.labelling.api.decisions import PROJECT_PATH, ItemBody, find_item
from annotation.models import Comment
from annotation.projects import access

ITEM_PARAMETER = OpenApiParameter(
    "item", description="The key of an item; without it, the comments on all items."
)


class CommentSerializer(serializers.Serializer[Comment]):
    """A comment on an item. `number` is its position among the comments on the item that you may
    see, withdrawn ones included."""

    item = serializers.CharField(source="item.key")
    number = serializers.IntegerField()
    annotator = serializers.CharField(source="member.alias")
    text = serializers.CharField()
    created_at = serializers.DateTimeField()


class CommentBody(ItemBody):
    text = serializers.CharField(max_length=comments.MAX_LENGTH, trim_whitespace=False)


class WithdrawalBody(ItemBody):
    number = serializers.IntegerField(min_value=1, max_value=1_000_000)


class CommentList(ProjectRowList[Comment]):
    """The comments on an item that you have labelled, oldest first; POST adds a comment.

    Without an item: the comments on all items that you may read about, newest first.
    """

    model = Comment
    right = "enter"
    serializer_class = CommentSerializer
    asks = ("item",)

    def list_rows(self) -> QuerySet[Comment]:
        if "item" not in self.request.query_params:
            return comments.project_comments(self.member)
        asked = {"item": self.request.query_params["item"]}
        key = validate_body(ItemBody(data=asked))["item"]
        return comments.comments_on(self.member, find_item(self.member, key))

    def paginate_queryset(self, queryset: Any) -> Any:
        found = super().paginate_queryset(queryset) or []
        return comments.load_readable(self.member, found, now=timezone.now())

    @extend_schema(
        parameters=[ITEM_PARAMETER],
        responses={200: CommentSerializer(many=True), **SUBMISSION_RESPONSES},
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(
        parameters=[KEY_PARAMETER],
        request=CommentBody,
        responses={201: CommentSerializer, **SUBMISSION_RESPONSES},
    )
    @make_idempotent("enter")
    def post(self, request: Request, slug: str) -> Response:
        """Add a comment to an item that you have labelled. Members named as @alias find the comment
        among their mentions."""
        member = access.member_for(request, slug, right="enter")
        data = validate_body(CommentBody(data=request.data))
        member, now = access.ensure_membership(member), timezone.now()
        said = comments.add_comment(member, find_item(member, data["item"]), data["text"], now=now)
        [told] = comments.load_readable(member, [said], now=now)
        return Response(CommentSerializer(told).data, status=201)


@extend_schema(request=WithdrawalBody, responses={204: None, **SUBMISSION_RESPONSES})
@api_view(["POST"])
def withdraw_comment(request: Request, slug: str) -> Response:
    """Withdraw your comment; leads can withdraw anybody's."""
    member = access.member_for(request, slug, right="enter")
    data = validate_body(WithdrawalBody(data=request.data))
    member = access.ensure_membership(member)
    item = find_item(member, data["item"])
    comments.withdraw_comment(member, item, data["number"], now=timezone.now())
    return Response(status=204)


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
        **PROBLEM_RESPONSES,
    }
)
@api_view(["GET"])
def mentions(request: Request, slug: str) -> Response:
    """Comments that mention you, latest first; without item and text until you have labelled the
    item."""
    member = access.member_for(request, slug, right="enter")
    return Response([_mention(one) for one in comments.load_mentions(member, now=timezone.now())])


def _mention(mention: comments.Mention) -> dict[str, Any]:
    comment = mention.comment
    return {
        "item": comment.item.key if mention.open else None,
        "annotator": comment.member.alias,
        "text": comment.text if mention.open else None,
        "new": mention.new,
        "created_at": comment.created_at,
    }


urlpatterns = [
    path(PROJECT_PATH + "comments/", CommentList.as_view(), name="api-comments"),
    path(PROJECT_PATH + "comments/withdraw/", withdraw_comment, name="api-comments-withdraw"),
    path(PROJECT_PATH + "mentions/", mentions, name="api-mentions"),
]
