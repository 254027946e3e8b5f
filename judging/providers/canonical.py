"""One spelling of JSON, so that equal requests have equal bytes and equal digests."""

import json
from typing import Any


def canonical_json(value: Any) -> bytes:
    """UTF-8, keys sorted, no space, characters as they are.

    Raises ValueError for NaN, infinity and half a surrogate pair.
    """
    text = json.dumps(
        value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    )
    return text.encode("utf-8")
