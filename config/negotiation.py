"""Content negotiation of the API."""

from collections.abc import Iterable
from typing import Any

from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request


class SingleFormatNegotiation(DefaultContentNegotiation):
    """Always uses the renderer of a view that has only one, whatever the client accepts. With
    several renderers, DRF chooses.

    Parsing the Accept header costs as much as a query, and nearly all views have only the JSON
    renderer.
    """

    def select_renderer(
        self,
        request: Request,
        renderers: Iterable[BaseRenderer],
        format_suffix: str | None = None,
    ) -> Any:
        """Return the only renderer of a view and its media type, whatever the request accepts. For
        a view with several renderers, DRF chooses as usual."""
        forms = list(renderers)
        if len(forms) == 1:
            return forms[0], str(forms[0].media_type)
        return super().select_renderer(request, forms, format_suffix)
