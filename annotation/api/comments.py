"""The API of comments and of mentions in them, as on their pages."""

from typing import Any

from django.db.models import QuerySet
from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import access, commenting
from annotation.api.answering import PROBLEMS, SUBMISSION_PROBLEMS, checked
from annotation.api.decisions import OF, ItemBody, item_of
from annotation.api.paging import CursorPages
from annotation.api.repeating import KEY, once
from annotation.models import Comment

ITEM = OpenApiParameter("item", description="The key of an item; without it, of all of them.")


class CommentSerializer(serializers.Serializer[Comment]):
    """What somebody wrote about an item. `number` counts all comments that the item ever had."""

    item = serializers.CharField(source="item.key")
    number = serializers.IntegerField()
    annotator = serializers.CharField(source="member.alias")
    text = serializers.CharField()
    created_at = serializers.DateTimeField()


class CommentBody(ItemBody):
    text = serializers.CharField(max_length=commenting.LONGEST, trim_whitespace=False)


class WithdrawalBody(ItemBody):
    number = serializers.IntegerField(min_value=1, max_value=1_000_000)


class CommentList(ListAPIView[Comment]):
    """What people say of an item, oldest first, once your own label is in, and the place to add
    to it. Without an item: of all items that you may read about, newest first.
    """

    serializer_class = CommentSerializer
    pagination_class = CursorPages
    filter_backends: list[Any] = []
    asks = ("item",)

    def get_queryset(self) -> QuerySet[Comment]:
        if getattr(self, "swagger_fake_view", False):
            return Comment.objects.none()
        self.member = access.member_for(self.request, self.kwargs["slug"], right="enter")
        if "item" not in self.request.query_params:
            return commenting.in_project(self.member)
        asked = {"item": self.request.query_params["item"]}
        key = checked(ItemBody(data=asked))["item"]
        return commenting.about(self.member, item_of(self.member, key))

    def paginate_queryset(self, queryset: Any) -> Any:
        found = super().paginate_queryset(queryset) or []
        return commenting.read(self.member, found, now=timezone.now())

    @extend_schema(
        parameters=[ITEM],
        responses={200: CommentSerializer(many=True), **SUBMISSION_PROBLEMS},
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(
        parameters=[KEY],
        request=CommentBody,
        responses={201: CommentSerializer, **SUBMISSION_PROBLEMS},
    )
    @once("enter")
    def post(self, request: Request, slug: str) -> Response:
        """Say something of an item that you have labelled; who is named as @alias finds it."""
        member = access.member_for(request, slug, right="enter")
        data = checked(CommentBody(data=request.data))
        member, now = access.seated(member), timezone.now()
        said = commenting.say(member, item_of(member, data["item"]), data["text"], now=now)
        [told] = commenting.read(member, [said], now=now)
        return Response(CommentSerializer(told).data, status=201)


@extend_schema(request=WithdrawalBody, responses={204: None, **SUBMISSION_PROBLEMS})
@api_view(["POST"])
def withdraw_comment(request: Request, slug: str) -> Response:
    """Take back a comment of yours, as a lead anybody's."""
    member = access.member_for(request, slug, right="enter")
    data = checked(WithdrawalBody(data=request.data))
    member = access.seated(member)
    item = item_of(member, data["item"])
    commenting.withdraw(member, item, data["number"], now=timezone.now())
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
        **PROBLEMS,
    }
)
@api_view(["GET"])
def mentions(request: Request, slug: str) -> Response:
    """Comments that name you, the last first; without item and text until your label is in."""
    member = access.member_for(request, slug, right="enter")
    return Response([_mention(one) for one in commenting.mentions(member, now=timezone.now())])


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
    path(OF + "comments/", CommentList.as_view(), name="api-comments"),
    path(OF + "comments/withdraw/", withdraw_comment, name="api-comments-withdraw"),
    path(OF + "mentions/", mentions, name="api-mentions"),
]
