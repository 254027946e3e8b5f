"""Canonical JSON, so that equal requests have equal bytes and equal digests."""

import json
from collections.abc import Mapping
from typing import Any


class OrderedMapping(dict[str, Any]):
    """A mapping that is written in its own order: models fill in a schema's properties in the given
    order, and an explanation is only useful if it comes before the score.
    """


def keep_order(schema: Any) -> Any:
    """Return the schema in a form that is written in its own order at every depth."""
    if isinstance(schema, Mapping):
        return OrderedMapping((name, keep_order(part)) for name, part in schema.items())
    return [keep_order(part) for part in schema] if isinstance(schema, list) else schema


def canonical_json(value: Any) -> bytes:
    """Return canonical JSON in UTF-8: keys sorted except in an `OrderedMapping`, no spaces,
    characters not escaped.

    Raises ValueError for NaN, infinity and lone surrogates.
    """
    text = json.dumps(_sorted(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8")


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        names = value if isinstance(value, OrderedMapping) else sorted(value)
        return {name: _sorted(value[name]) for name in names}
    return [_sorted(part) for part in value] if isinstance(value, list | tuple) else value
