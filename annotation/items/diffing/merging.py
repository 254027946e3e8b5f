"""Carry a correction of the gold answer into an answer that was made from it."""

from collections.abc import Sequence

from annotation.items.diffing.difference import Segment, compare

# The start and the end of a change in the old text, and what stands there now.
Change = tuple[int, int, str]


def carry_correction(old: str, new: str, changed: str) -> str | None:
    """Return `changed`, which was made from `old`, with the correction that made `new` from `old`.

    Whole words count, as in the diff. Returns None if the correction overlaps with or touches what
    `changed` changes, or if its changes of the new text would be others than its changes of the
    old text.
    """
    own, correction = compare(old, changed).segments, compare(old, new).segments
    changes, corrections = _changes(own), _changes(correction)
    for start, end, _ in changes:
        if any(
            start <= other_end and other_start <= end for other_start, other_end, _ in corrections
        ):
            return None
    merged, at = "", 0
    for start, end, text in sorted([*changes, *corrections]):
        merged += old[at:start] + text
        at = end
    merged += old[at:]
    return merged if _differing(compare(new, merged).segments) == _differing(own) else None


class Places:
    """The places of an old text in a new one. Both are compared once, however many are asked
    for."""

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new
        self.changes = [] if old == new else _changes(compare(old, new).segments)

    def move(self, start: int, end: int) -> int | None:
        """Return where the characters from `start` to `end` of the old text start in the new one;
        None if one of them was changed, or something was inserted between them."""
        moved = start
        for first, last, text in self.changes:
            if first < end and start < last:
                return None
            moved += len(text) - (last - first) if last <= start else 0
        return moved if self.old[start:end] == self.new[moved : moved + end - start] else None


def _changes(segments: Sequence[Segment]) -> list[Change]:
    found: list[Change] = []
    at = 0
    for segment in segments:
        gold, perturbed = (
            "".join(part.text for part in parts) for parts in (segment.gold, segment.perturbed)
        )
        if segment.kind != "equal":
            found.append((at, at + len(gold), perturbed))
        at += len(gold)
    return found


def _differing(segments: Sequence[Segment]) -> list[Segment]:
    return [segment for segment in segments if segment.kind != "equal"]
