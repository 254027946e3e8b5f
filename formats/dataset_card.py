"""What a data card can say of a folder of items, and the card's own form."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

Counts = Counter[tuple[str, str, str]]
TEST, DUPLICATES = "test", "repeats"
# Of so many sources each is told by itself; models call themselves as they like.
MOST_SOURCES, LONGEST_NAME = 100, 80


class ItemSource(NamedTuple):
    """Where items come from: how they came to be, what made them, which model wrote their text, and
    what wrote their gold answer; each "" where that was not said."""

    origin: str = ""
    maker: str = ""
    model: str = ""
    gold: str = ""

    @property
    def is_written(self) -> bool:
        """Whether a model wrote any of it."""
        return bool(self.model or self.gold)


OTHER_SOURCES = ItemSource("others", "others", "others", "others")


_SIZES = {"n<1K": 1_000, "1K<n<10K": 10_000, "10K<n<100K": 100_000, "100K<n<1M": 1_000_000}
_LARGEST = "1M<n<10M"


@dataclass(frozen=True)
class FolderCounts:
    """What a folder holds: how many items there are by ability, category and label, how many of
    them `repeat` another one or have another purpose than to test, the digest of each file, how
    many come from where, how many have each flag, and how many are held for something by which
    source, such as "labels"."""

    counts: Counts
    others: Counter[str]
    digests: Mapping[str, str]
    sources: Counter[ItemSource] = field(default_factory=Counter)
    flagged: Counter[str] = field(default_factory=Counter)
    decided: Counter[str] = field(default_factory=Counter)

    @property
    def items(self) -> int:
        return self.counts.total()

    @property
    def digest(self) -> str:
        """One of all files: that of the lines that `sha256sum` prints of them."""
        lines = [f"{digest}  {name}\n" for name, digest in sorted(self.digests.items())]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @property
    def size(self) -> str:
        """The category of sizes that the hub has for it."""
        return next((name for name, most in _SIZES.items() if self.items < most), _LARGEST)


def get_source(row: Mapping[str, Any]) -> ItemSource:
    """Where an item comes from, by its column `origin` and by what its `fields` name."""
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
    """Count an item among those of its source, or among the rest where there are too many."""
    found = get_source(row)
    is_known = found in sources or len(sources) < MOST_SOURCES
    sources[found if is_known else OTHER_SOURCES] += 1


# The card of what a folder holds: what stands in its front, and its text.
CardBuilder = Callable[[FolderCounts], tuple[Mapping[str, Any], str]]


def format_card(front: Mapping[str, Any], text: str) -> str:
    """A card: YAML that needs no character beyond ASCII, each text of it on one line so that none
    ends the YAML before its time, then the text."""
    lines = {name: _one_line(value) for name, value in front.items()}
    head = yaml.safe_dump(lines, sort_keys=False, allow_unicode=False, width=10_000)
    return f"---\n{head}---\n\n{text}"


def empty_card(held: FolderCounts) -> tuple[Mapping[str, Any], str]:
    return {}, ""


def _one_line(value: Any) -> Any:
    return " ".join(value.split()) if isinstance(value, str) else value
