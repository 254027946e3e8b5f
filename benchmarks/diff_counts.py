"""Counts of what a reader meets in the differences of the published FBI pairs.

Run from the root of the checkout: python -m benchmarks.diff_counts [PATH]. PATH is the published
archive; without it, the archive next to the checkout is used. Beside each count stands that of the
algorithm "words-1" with the marks that were put on whole changes, as it was counted before
"words-2" replaced it. Times are those of `python -m benchmarks.diffing`.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from annotation.items.diffing import difference
from annotation.items.diffing.difference import Difference, Segment
from annotation.items.rendering import change_kinds
from benchmarks.diffing import PLACES, published_rows

MIN_PASSAGE = 25
"""Characters of a passage that is shown as removed in one place and as added in another."""

MANY_STOPS = 25
SMALL_CHANGE = 5
"""Words of the longer side of a small change."""


@dataclass(frozen=True)
class Measure:
    """A count over all pairs, how it was before, and the most or least that it may be now."""

    title: str
    before: int | None
    most: int | None = None
    least: int | None = None

    def holds(self, count: int) -> bool:
        return (self.most is None or count <= self.most) and (
            self.least is None or count >= self.least
        )


MEASURES: dict[str, Measure] = {
    "moved": Measure("pairs with a moved passage", 0, least=145),
    "missed": Measure("pairs with a passage removed here and added there", 86, most=4),
    "crossing": Measure("small changes with a line break inside", 323, most=135),
    "islands": Measure("islands of one or two words beside a longer change", 3247, most=1550),
    "many_islands": Measure("pairs with 10 islands or more", 101, most=25),
    "stops": Measure("pairs with 25 stops or more", 191, most=139),
    "changes": Measure("pairs with 25 changes or more", 278, most=230),
    "long_marks": Measure("marks on one-sided passages of more than 8 words", 609, most=0),
    "blank_marks": Measure("marks on blanks", 46, most=0),
    "bare_units": Measure("unit marks without a digit in or beside the change", None, most=75),
    "incorrect-units": Measure("incorrect-units: pairs with a unit mark", 56, least=56),
    "copying-numbers": Measure("copying-numbers: pairs with a number mark", 77, least=77),
    "final-answer": Measure("final-answer: pairs with a number mark", 85, least=85),
    "opposite-fact": Measure("opposite-fact: pairs with a negation mark", 19, least=18),
}

MARKED_CATEGORIES = {
    "incorrect-units": "unit",
    "copying-numbers": "number",
    "final-answer": "number",
    "opposite-fact": "negation",
}
"""The categories whose errors carry a mark, and the kind of the mark."""


def count_pairs(pairs: Iterable[tuple[str, str, str]]) -> Counter[str]:
    """Count over pairs of category, gold and perturbed text, by the names in `MEASURES`."""
    counts: Counter[str] = Counter()
    for category, gold, perturbed in pairs:
        found = difference.compare(gold, perturbed)
        changes = change_kinds.classify_changes(found)
        folding = {change.number for change in changes if change.folds}
        islands = _count_islands(found, folding)
        counts.update(_count_difference(found))
        counts["islands"] += islands
        counts["many_islands"] += islands >= 10
        counts["stops"] += len(changes) - max(0, len(folding) - 1) >= MANY_STOPS
        counts["changes"] += len(changes) >= MANY_STOPS
        counts.update(_count_marks(found, changes))
        kind = MARKED_CATEGORIES.get(category)
        counts[category] += any(kind in change.marks for change in changes)
    return counts


def read_pairs(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the category, the gold and the perturbed text of the published pairs."""
    for row in published_rows(path):
        category = row["cdx"].partition("_")[2].replace("_", "-").removesuffix("-errors")
        yield category, row["og"], row["perturbed_gpt4"]


def _count_difference(found: Difference) -> dict[str, int]:
    changed = [segment for segment in found.segments if segment.kind != "equal"]
    return {
        "moved": any(segment.move for segment in changed),
        "missed": has_missed_move(changed),
        "crossing": sum(not one.move and _crosses_lines(one) for one in changed),
    }


def has_missed_move(changed: Sequence[Segment]) -> bool:
    """True if a text of `MIN_PASSAGE` characters or more is removed by one change and added by
    another."""
    removed = {_text(one.gold).strip(): one.number for one in changed if not one.move}
    return any(
        len(text) >= MIN_PASSAGE and removed.get(text, one.number) != one.number
        for one in changed
        if not one.move and (text := _text(one.perturbed).strip())
    )


def _crosses_lines(segment: Segment) -> bool:
    """True if a small change has a line break inside, neither first nor last."""
    sides = _text(segment.gold), _text(segment.perturbed)
    return max(len(side.split()) for side in sides) <= SMALL_CHANGE and any(
        "\n" in side[1:-1] and not side.startswith("\n") and not side.endswith("\n")
        for side in sides
    )


def _count_islands(found: Difference, folding: Set[int]) -> int:
    """Count the equal segments of one or two words between two changes in a line, of which the
    longer one is longer than they are. Changes of the appearance alone are left out."""
    count = 0
    for before, segment, after in zip(
        found.segments, found.segments[1:], found.segments[2:], strict=False
    ):
        beside = (before, after)
        if segment.kind != "equal" or any(one.kind == "equal" for one in beside):
            continue
        text = _text(segment.gold)
        longest = max(len(_text(side)) for one in beside for side in (one.gold, one.perturbed))
        count += (
            1 <= len(re.findall(r"\w+", text)) <= 2
            and "\n" not in text.strip()
            and len(text) < longest
            and folding.isdisjoint(one.number for one in beside)
        )
    return count


def _count_marks(
    found: Difference, changes: Iterable[change_kinds.ClassifiedChange]
) -> Counter[str]:
    counts: Counter[str] = Counter()
    for change in changes:
        sides = {"gold": change.gold, "perturbed": change.perturbed}
        words = [(side, word) for side, marked in change.words.items() for word in marked]
        one_sided = not change.gold.strip() or not change.perturbed.strip()
        longest = max(len(side.split()) for side in sides.values())
        counts["long_marks"] += bool(words) and one_sided and longest > 8
        counts["blank_marks"] += sum(
            not sides[side][word.start : word.end].strip() for side, word in words
        )
        if any(word.kind == "unit" for _, word in words):
            counts["bare_units"] += not any(map(str.isdigit, _neighbourhood(found, change)))
    return counts


def _neighbourhood(found: Difference, change: change_kinds.ClassifiedChange) -> str:
    """Return the text of a change with 12 characters of the line on each side."""
    segments = found.segments
    before = "".join(_text(one.gold) for one in segments[: change.number])[-12:]
    after = "".join(_text(one.gold) for one in segments[change.number + 1 :])[:12]
    return "".join(
        (before.rpartition("\n")[2], change.gold, change.perturbed, after.partition("\n")[0])
    )


def _text(parts: Iterable[difference.Part]) -> str:
    return "".join(part.text for part in parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?", type=Path, default=PLACES[0])
    path = parser.parse_args().path
    if not path.exists():
        print("the published pairs are not here: name their archive", file=sys.stderr)
        return 2
    counts = count_pairs(read_pairs(path))
    print(f"{'count over the pairs of ' + path.name:62}{'words-1':>8}{difference.ALGORITHM:>9}")
    for name, measure in MEASURES.items():
        before = "-" if measure.before is None else str(measure.before)
        sign = "" if measure.holds(counts[name]) else "  too far from what is expected"
        print(f"{measure.title:62}{before:>8}{counts[name]:>9}{sign}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
