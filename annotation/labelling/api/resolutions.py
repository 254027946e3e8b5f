"""The API of resolutions (final labels) and of known answers."""

from typing import Any

from django.db.models import QuerySet
from django.urls import path
from django.utils import timezone
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.project_rows import ProjectRowList
from annotation.api.responses import REFUSED_RESPONSES, Unprocessable, validate_body
from annotation.api.serializers import NamedField
from annotation.errors import FieldError
from annotation.items.filters import ResolutionFilter
from annotation.labelling import answer_key, visibility
from annotation.labelling.api.decisions import ItemBody, find_item
from annotation.labelling.correct_answers import MAX_EXPLANATION_LENGTH, PURPOSES
from annotation.models import Resolution
from annotation.projects import access


class ResolutionSerializer(serializers.Serializer[Resolution]):
    """The final label of a revision of an item, in force until `ended_at`: `value` is the value of
    the deciding field, `values` has the values of all resolved fields. Its source is a `rule`
    applied to labels, adjudication, an import, or an answer known beforehand; `decided_by` is the
    member who decided, or null."""

    item = serializers.CharField(source="item.key")
    revision = serializers.IntegerField(source="revision.number")
    value = serializers.CharField()
    values = serializers.DictField()
    rule = serializers.CharField()
    decided_by = serializers.CharField(source="member.alias", default=None, allow_null=True)
    reason = serializers.CharField(allow_blank=True, help_text="Why annotators disagreed.")
    comment = serializers.CharField(allow_blank=True)
    current = serializers.BooleanField()
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)

    def get_fields(self) -> dict[str, Any]:
        # Not declared above, since serializer fields have an attribute named `source`.
        came_from = serializers.ChoiceField(choices=Resolution.Source.choices)
        return super().get_fields() | {"source": came_from}


class ResolutionList(ProjectRowList[Resolution]):
    """All resolutions of items, current and past, oldest first.

    Labels that you give these items after reading count as informed.
    """

    model = Resolution
    right = "items"
    serializer_class = ResolutionSerializer
    filter_backends = (DjangoFilterBackend,)
    filterset_class = ResolutionFilter

    def list_rows(self) -> QuerySet[Resolution]:
        return Resolution.objects.of_project(self.member.project).for_list()

    def paginate_queryset(self, queryset: Any) -> Any:
        shown = super().paginate_queryset(queryset) or []
        visibility.record_all_seen(self.member, [one.item_id for one in shown], now=timezone.now())
        visibility.record_named(self.member, self.request.GET, now=timezone.now())
        return shown


class KnownSerializer(serializers.Serializer[Resolution]):
    """An item with a known answer: the correct `answers` by field, and their explanation."""

    item = serializers.CharField(source="item.key")
    purpose = serializers.CharField(source="item.purpose")
    answers = serializers.DictField(source="values")
    explanation = serializers.CharField(source="comment", allow_blank=True)
    annotator = serializers.CharField(source="member.alias", default=None, allow_null=True)
    created_at = serializers.DateTimeField()


class KnownBody(ItemBody):
    """The correct answer of an item; an item with a correct answer needs no more labels."""

    purpose = serializers.ChoiceField(
        choices=[*PURPOSES],
        help_text=(
            "practice: a qualification item, explained after each answer. probe: a hidden "
            "control item."
        ),
    )
    answers = NamedField(
        child=serializers.JSONField(),
        help_text=("Values by field of the task type; the deciding field is required."),
    )
    explanation = serializers.CharField(
        default="", allow_blank=True, max_length=MAX_EXPLANATION_LENGTH, trim_whitespace=False
    )


class KnownList(ProjectRowList[Resolution]):
    """Qualification and control items with their correct answers; POST sets an answer.

    Labels that you give these items after reading count as informed.
    """

    model = Resolution
    right = "manage"
    serializer_class = KnownSerializer

    def list_rows(self) -> QuerySet[Resolution]:
        held = Resolution.objects.of_project(self.member.project).current().known()
        return held.for_purposes(PURPOSES).for_list()

    def paginate_queryset(self, queryset: Any) -> Any:
        shown = super().paginate_queryset(queryset) or []
        visibility.record_all_seen(self.member, [one.item_id for one in shown], now=timezone.now())
        return shown

    @extend_schema(request=KnownBody, responses={200: KnownSerializer, **REFUSED_RESPONSES})
    def post(self, request: Request, slug: str) -> Response:
        """Set or change the correct answer of an item. Its labels are kept, and count again when
        the item is released."""
        lead = access.member_for(request, slug, right="manage")
        body = validate_body(KnownBody(data=request.data))
        item, told = find_item(lead, body["item"]), (body["answers"], body["explanation"])
        by = access.ensure_membership(lead)
        try:
            made = answer_key.set_answer(lead.project, item, body["purpose"], *told, by)
        except FieldError as error:
            field = "answers" if error.field == "known" else error.field
            raise Unprocessable(str(error), {field: [str(error)]}) from error
        return Response(KnownSerializer(made).data)


@extend_schema(request=ItemBody, responses={204: None, **REFUSED_RESPONSES})
@api_view(["POST"])
def release(request: Request, slug: str) -> Response:
    """Make an item with a known answer a normal item again, as it was before."""
    lead = access.member_for(request, slug, right="manage")
    item = find_item(lead, validate_body(ItemBody(data=request.data))["item"])
    answer_key.release_item(item, access.ensure_membership(lead))
    return Response(status=204)


PROJECT_PATH = "projects/<slug:slug>/"

urlpatterns = [
    path(PROJECT_PATH + "resolutions/", ResolutionList.as_view(), name="api-resolutions"),
    path(PROJECT_PATH + "known/", KnownList.as_view(), name="api-known"),
    path(PROJECT_PATH + "known/release/", release, name="api-known-release"),
]
