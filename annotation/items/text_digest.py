"""What tells the texts of one revision from those of another; pure."""

import hashlib
import json
from collections.abc import Mapping

import msgspec

# One for all: to make one costs a third of writing the texts of an item. Of the two the first is
# twelve times as fast, and knows no halves of surrogate pairs.
_FAST = msgspec.json.Encoder(order="sorted")
_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))

Texts = Mapping[str, str | list[str]]


def texts_as_json(texts: Texts) -> bytes:
    """Texts by name as JSON in UTF-8; the order of the names does not matter."""
    try:
        return _FAST.encode(texts)
    except UnicodeEncodeError:
        return _CANONICAL.encode(texts).encode("utf-8", "surrogatepass")


def digest_json(written: bytes) -> str:
    """SHA-256 of texts as `texts_as_json` gives them."""
    return hashlib.sha256(written).hexdigest()


def digest_texts(texts: Texts) -> str:
    """SHA-256 of texts by name; the order of the names does not matter."""
    return digest_json(texts_as_json(texts))
