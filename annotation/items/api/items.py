"""The API of items: the list, and one item with all its texts."""

from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.urls import path
from django.utils import timezone
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import tasktypes
from annotation.api.project_rows import ProjectRowList
from annotation.api.responses import PROBLEM_RESPONSES
from annotation.api.serializers import ItemDetailSerializer, ItemSerializer
from annotation.items import search
from annotation.items.filters import ItemFilter
from annotation.labelling import visibility
from annotation.models import Item
from annotation.projects import access


class ItemList(ProjectRowList[Item]):
    """Items without their texts, in project order.

    If the list shows you final labels, or finds items by words of comments, labels that you give to
    these items later count as informed. If it is filtered by labels or final labels, the same is
    true of all such items that match its other filters, if they are at most 200.
    """

    model = Item
    right = "items"
    serializer_class = ItemSerializer
    filter_backends = (DjangoFilterBackend,)
    filterset_class = ItemFilter

    def list_rows(self) -> QuerySet[Item]:
        visibility.check_filters(self.member, self.request.GET)
        return Item.objects.in_project(self.member.project).for_list().order_by("position")

    def paginate_queryset(self, queryset: Any) -> Any:
        shown = super().paginate_queryset(queryset) or []
        asked, now = self.request.GET, timezone.now()
        visibility.record_list_seen(self.member, shown, asked=asked, now=now)
        found = ItemFilter(asked, self.list_rows())
        others = partial(found.filter_without, visibility.TELLING_FILTERS)
        visibility.record_left_out(self.member, others, asked=asked, now=now)
        if typed := asked.get("text"):
            task = tasktypes.load_version(self.member.project.task_type)
            excerpts = search.find_excerpts(task, shown, search.parse_query(typed))
            visibility.record_all_seen(self.member, search.found_in_comments(excerpts), now=now)
        return shown


@extend_schema(responses={200: ItemDetailSerializer, **PROBLEM_RESPONSES})
@api_view(["GET"])
def item(request: Request, slug: str, key: str) -> Response:
    """One item with all revisions of its texts. Its fields, which may hold the correct answer, are
    left out for members who may not see results."""
    member = access.member_for(request, slug, right="items")
    found = Item.objects.in_project(member.project).for_page(key, with_texts=True)
    if found is None:
        raise Http404
    visibility.record_seen(member, found, now=timezone.now())
    if not member.can_see_results:
        found.fields = {}
    return Response(ItemDetailSerializer(found).data)


urlpatterns = [
    path("projects/<slug:slug>/items/", ItemList.as_view(), name="api-items"),
    path("projects/<slug:slug>/items/<path:key>/", item, name="api-item"),
]
