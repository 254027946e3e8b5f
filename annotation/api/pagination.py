"""Cursor pagination of long lists: every page takes equally long, and no row appears twice when
rows are added."""

import re
from operator import attrgetter
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from rest_framework.exceptions import NotFound, ParseError
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response

BAD_CURSOR_MESSAGE = "This cursor is not valid. Start without one, and follow `next`."
# Pages give times in UTC. Others may have no place in it, and PostgreSQL refuses far time zones.
OTHER_ZONE = re.compile(r"\d{4}-\d\d-\d\d[T ][^+-]*[+-](?!00:00$).*")


ONLY = "only"
ONLY_PARAMETER = {
    "name": ONLY,
    "required": False,
    "in": "query",
    "description": "Field names, separated by commas: rows contain only these.",
    "schema": {"type": "array", "items": {"type": "string"}},
    "style": "form",
    "explode": False,
}
# The address in the examples of the schema.
EXAMPLE_ADDRESS = f"{settings.SITE_URL.rstrip('/') or 'http://127.0.0.1:8000'}/api/v1/"


class CursorPages(CursorPagination):
    """Pages in the order of the queryset; the first field of the order should be unique or nearly
    unique.

    `count` is the number of rows of all pages. Only the first page has a count, since counting may
    take longer than reading a page.
    """

    page_size = 100
    page_size_query_param = "limit"
    page_size_query_description = "Rows per page, at most 1,000."
    max_page_size = 1000
    cursor_query_description = "Start of the page: follow `next` and `previous`."

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> Any:
        if "offset" in request.query_params:
            raise ParseError("Offsets are not supported; follow `next`.")
        _check_names(request, view)
        self.names = _requested_fields(request, view)
        first = self.cursor_query_param not in request.query_params
        self.count = queryset.count() if first else None
        try:
            return super().paginate_queryset(queryset, request, view)
        except (ValueError, TypeError, ValidationError) as problem:  # an invalid cursor
            raise ParseError(BAD_CURSOR_MESSAGE) from problem

    def get_ordering(self, request: Request, queryset: QuerySet[Any], view: Any) -> Any:
        return tuple(queryset.query.order_by or queryset.model._meta.ordering)

    def decode_cursor(self, request: Request) -> Cursor | None:
        if request.query_params.get(self.cursor_query_param) == "":
            raise ParseError(BAD_CURSOR_MESSAGE)
        try:
            cursor = super().decode_cursor(request)
        except NotFound as problem:
            raise ParseError(BAD_CURSOR_MESSAGE) from problem
        position = str((cursor and cursor.position) or "")
        # The last is what is made of characters that are none of a cursor.
        if "\0" in position or OTHER_ZONE.match(position) or cursor == Cursor(0, False, None):
            raise ParseError(BAD_CURSOR_MESSAGE)
        return cursor

    def get_page_size(self, request: Request) -> int:
        """The rows of a page; 400 for a `limit` that is not a number from 1 to the largest size."""
        asked = request.query_params.get(self.page_size_query_param)
        if asked is None:
            return self.page_size
        if not re.fullmatch("[0-9]{1,9}", asked) or not 1 <= int(asked) <= self.max_page_size:
            raise ParseError(f"`limit` must be a whole number from 1 to {self.max_page_size:,}.")
        return int(asked)

    def get_paginated_response(self, data: Any) -> Response:
        links = {"next": self.get_next_link(), "previous": self.get_previous_link()}
        rows = [{name: row[name] for name in self.names} for row in data] if self.names else data
        return Response({"count": self.count, **links, "results": rows})

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        parameters = super().get_schema_operation_parameters(view)
        for parameter in parameters:
            if parameter["name"] == self.page_size_query_param:
                parameter["schema"] |= {"minimum": 1, "maximum": self.max_page_size}
        return [*parameters, dict(ONLY_PARAMETER)]

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        words = "Number of rows on all pages; null on pages after the first."
        link = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["count", "next", "previous", "results"],
            "properties": {
                "count": {"type": ["integer", "null"], "description": words, "example": 123},
                "next": {**link, "example": f"{EXAMPLE_ADDRESS}?cursor=cD00ODY"},
                "previous": {**link, "example": f"{EXAMPLE_ADDRESS}?cursor=cj0xJnA"},
                "results": schema,
            },
        }

    def _get_position_from_instance(self, instance: Model, ordering: Any) -> str:
        """The row's value of the first field of the order; this field may belong to a related
        row."""
        return str(attrgetter(ordering[0].lstrip("-").replace("__", "."))(instance))


def _check_names(request: Request, view: Any) -> None:
    """Refuse unknown query parameters with 400, since a misspelt filter would otherwise return all
    rows."""
    filters = getattr(getattr(view, "filterset_class", None), "base_filters", {})
    known = [*filters, *getattr(view, "asks", ()), "limit", ONLY, "cursor"]
    if unknown := [name for name in request.query_params if name not in known]:
        words = f"There is no {', '.join(map(ascii, unknown))}. There are {', '.join(known)}."
        raise ParseError(words)


def _requested_fields(request: Request, view: Any) -> list[str]:
    """The requested fields, [] if all fields are requested; 400 for a field that rows do not
    have."""
    names = [name.strip() for name in request.query_params.get(ONLY, "").split(",")]
    chosen = [name for name in dict.fromkeys(names) if name]
    known = list(view.get_serializer().fields) if chosen else []
    if unknown := [name for name in chosen if name not in known]:
        words = f"Rows have no {', '.join(unknown)}. They have {', '.join(known)}."
        raise ParseError(words)
    return chosen
