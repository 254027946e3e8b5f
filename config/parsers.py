"""Parsers of API requests."""

from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser


class BoundedJSONParser(JSONParser):
    """Parses JSON, and refuses JSON that is nested too deep for Python with status 400."""

    def parse(
        self,
        stream: IO,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the parsed body. Raises `ParseError`, also for a body that is nested too deep for
        Python."""
        try:
            return super().parse(stream, media_type, parser_context)
        except RecursionError as error:
            raise ParseError("JSON parse error - nested too deep") from error
