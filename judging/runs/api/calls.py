"""The API of the calls of a run, with their replies and readings."""

from itertools import accumulate
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce, Length
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.pagination import CursorPages
from annotation.api.project_rows import ProjectRowList
from judging.evaluators.api import CurrencyField
from judging.models import Call, Reading, Reply
from judging.runs.api.responses import RUN_PATH
from judging.runs.choices import get_run_or_404


class ReplySerializer(serializers.Serializer[Reply]):
    """The reply as the provider sent it. `thinking` is what the model wrote before its reply, null
    if nothing is known of it; it is never parsed. `tokens_cached` are a part of `tokens_in`,
    `tokens_reasoning` a part of `tokens_out`; null if not reported."""

    text = serializers.CharField(allow_blank=True)
    finish = serializers.CharField()
    model = serializers.CharField(allow_blank=True)
    tokens_in = serializers.IntegerField(allow_null=True)
    tokens_out = serializers.IntegerField(allow_null=True)
    tokens_cached = serializers.IntegerField(allow_null=True)
    tokens_reasoning = serializers.IntegerField(allow_null=True)
    thinking = serializers.CharField(allow_null=True, allow_blank=True)
    cost = serializers.DecimalField(max_digits=20, decimal_places=12, allow_null=True)
    currency = CurrencyField()
    asked_at = serializers.DateTimeField()
    seconds = serializers.FloatField()


class StoredReadingSerializer(serializers.Serializer[Reading]):
    """What a parser read in a reply: a value, or the cause why there is no value."""

    parser = serializers.CharField()
    value = serializers.JSONField()
    path = serializers.CharField(allow_blank=True)
    cause = serializers.CharField(allow_blank=True)
    explanation = serializers.CharField(allow_blank=True)


class CallSerializer(serializers.Serializer[Call]):
    """A call of a run for one item, with its request, reply and readings. `supplement` is the
    number of the supplement that asked the item again, 0 for the run's own calls. `shows` is the
    value of the earlier reading that the prompt includes. `message` is the provider's error
    message."""

    item = serializers.CharField(source="outcome.item.key")
    axis = serializers.CharField(allow_blank=True)
    role = serializers.CharField()
    order = serializers.IntegerField()
    step = serializers.IntegerField()
    sample = serializers.IntegerField()
    supplement = serializers.IntegerField()
    request = serializers.CharField(source="request.digest")
    state = serializers.CharField(source="request.state")
    cause = serializers.CharField(source="request.cause", allow_blank=True)
    message = serializers.CharField(source="request.message", allow_blank=True)
    attempts = serializers.IntegerField(source="request.attempts")
    shows = serializers.JSONField(source="fed_by.value", default=None)
    reply = ReplySerializer(source="request.reply", default=None, allow_null=True)
    readings = serializers.SerializerMethodField()

    @extend_schema_field(StoredReadingSerializer(many=True))
    def get_readings(self, call: Call) -> Any:
        reply = getattr(call.request, "reply", None)
        return [
            StoredReadingSerializer(one).data for one in (reply.readings.all() if reply else ())
        ]


# The characters of replies and thinking that a page has at most, unless one call alone has more.
MAX_CHARACTERS = 8_000_000


class CallPages(CursorPages):
    """Pages that end early where replies are long: 1,000 of them may be gigabytes."""

    page_size_query_description = (
        "Rows per page, at most 1,000. A page ends earlier if its replies are very long."
    )
    fits = CursorPages.max_page_size

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> Any:
        length = Length("text") + Coalesce(Length("thinking"), 0)
        reply = Reply.objects.filter(request=OuterRef("request")).values(length=length)
        bare = queryset.select_related(None).prefetch_related(None).only("run")
        found = bare.annotate(length=Coalesce(Subquery(reply), 0))
        lengths = [one.length for one in super().paginate_queryset(found, request, view)]
        if self.cursor and self.cursor.reverse:
            lengths.reverse()
        within = sum(total <= MAX_CHARACTERS for total in accumulate(lengths))
        self.fits = max(1, within)
        # Not counted and checked once more.
        return CursorPagination.paginate_queryset(self, queryset, request, view)

    def get_page_size(self, request: Request) -> int:
        return min(self.fits, super().get_page_size(request))


ITEM_PARAMETER = OpenApiParameter("item", OpenApiTypes.STR, description="The key of one item.")


class CallList(ProjectRowList[Call]):
    """List the calls of a run with their replies and readings, in the order of creation."""

    model = Call
    right = "results"
    serializer_class = CallSerializer
    pagination_class = CallPages
    asks = ("item",)

    def list_rows(self) -> QuerySet[Call]:
        run = get_run_or_404(self.member, self.kwargs["number"])
        return run.calls.for_list(self.request.query_params.get("item"))

    @extend_schema(parameters=[ITEM_PARAMETER])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)


urlpatterns = [path(RUN_PATH + "calls/", CallList.as_view(), name="api-run-calls")]
