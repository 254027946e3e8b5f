"""The facts for a dataset card about a folder of items, and the format of the card."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

Counts = Counter[tuple[str, str, str]]
TEST, DUPLICATES = "test", "repeats"
# Up to this many sources are listed one by one. There can be many, since names of models are free
# text.
MOST_SOURCES, LONGEST_NAME = 100, 80


class ItemSource(NamedTuple):
    """Where an item comes from: its origin, its maker, the model that wrote its text, and the
    writer of its gold answer. Each is "" if unknown."""

    origin: str = ""
    maker: str = ""
    model: str = ""
    gold: str = ""

    @property
    def is_written(self) -> bool:
        """True if a model wrote the text or the gold answer of the item."""
        return bool(self.model or self.gold)


OTHER_SOURCES = ItemSource("others", "others", "others", "others")


_SIZES = {"n<1K": 1_000, "1K<n<10K": 10_000, "10K<n<100K": 100_000, "100K<n<1M": 1_000_000}
_LARGEST = "1M<n<10M"


@dataclass(frozen=True)
class FolderCounts:
    """Counts and digests for a folder of items.

    `counts`: items by ability, category and label. `others`: items that repeat another item or are
    not for testing. `digests`: the digest of each file. `sources`: items per source. `flagged`:
    items with each flag. `decided`: items by the source of their resolution, such as "labels".
    """

    counts: Counts
    others: Counter[str]
    digests: Mapping[str, str]
    sources: Counter[ItemSource] = field(default_factory=Counter)
    flagged: Counter[str] = field(default_factory=Counter)
    decided: Counter[str] = field(default_factory=Counter)

    @property
    def items(self) -> int:
        """The number of items in the folder."""
        return self.counts.total()

    @property
    def digest(self) -> str:
        """The digest for all files together: the digest of the lines that `sha256sum` prints for
        them."""
        lines = [f"{digest}  {name}\n" for name, digest in sorted(self.digests.items())]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @property
    def size(self) -> str:
        """The size category as the Hugging Face hub defines it."""
        return next((name for name, most in _SIZES.items() if self.items < most), _LARGEST)


def get_split(row: Mapping[str, Any]) -> str:
    """Return the split of an item: "test" for an item for testing, "repeats" if it repeats another
    item, else its purpose."""
    return DUPLICATES if row["duplicate_of"] else str(row["purpose"])


def get_source(row: Mapping[str, Any]) -> ItemSource:
    """Return where an item comes from, by its column `origin` and its `fields`."""
    fields = row.get("fields") or {}
    gold = (fields.get("gold_generator"), fields.get("gold_model"))
    told = (
        row.get("origin"),
        fields.get("generator") or fields.get("perturber"),
        fields.get("model") if fields.get("generator") else "",
        ", ".join(str(one) for one in gold if one),
    )
    return ItemSource(*(str(one or "")[:LONGEST_NAME] for one in told))


def count_source(sources: Counter[ItemSource], row: Mapping[str, Any]) -> None:
    """Count an item under its source. If there are too many sources, count it under "others"."""
    found = get_source(row)
    is_known = found in sources or len(sources) < MOST_SOURCES
    sources[found if is_known else OTHER_SOURCES] += 1


# A function that builds a card from the counts of a folder: its front matter and its text.
CardBuilder = Callable[[FolderCounts], tuple[Mapping[str, Any], str]]


def format_card(front: Mapping[str, Any], text: str) -> str:
    """Format a card: YAML front matter, then the text.

    The YAML is ASCII only, and each text in it is on one line. So no text can end the YAML early.
    """
    lines = {name: _one_line(value) for name, value in front.items()}
    head = yaml.safe_dump(lines, sort_keys=False, allow_unicode=False, width=10_000)
    return f"---\n{head}---\n\n{text}"


def empty_card(held: FolderCounts) -> tuple[Mapping[str, Any], str]:
    """Return no front matter and no text, for a folder without a card."""
    return {}, ""


def _one_line(value: Any) -> Any:
    return " ".join(value.split()) if isinstance(value, str) else value
