"""Lists of rows of a project, in pages, for members who have a right."""

from collections.abc import Sequence
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from rest_framework.generics import ListAPIView

from annotation.api.pagination import CursorPages
from annotation.models import Membership
from annotation.projects import access

M = TypeVar("M", bound=Model)


class ProjectRowList(ListAPIView[M]):
    """A subclass names its `model` and the `right` that members need, and has `list_rows`."""

    model: type[M]
    right: str
    member: Membership
    pagination_class = CursorPages
    filter_backends: Sequence[Any] = ()

    def get_queryset(self) -> QuerySet[M]:
        # The OpenAPI document is made without a request.
        if getattr(self, "swagger_fake_view", False):
            return self.model._default_manager.none()
        self.member = access.member_for(self.request, self.kwargs["slug"], right=self.right)
        return self.list_rows()

    def list_rows(self) -> QuerySet[M]:
        """The rows that `self.member` may see, in the order of the pages."""
        raise NotImplementedError
