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
    if _touch(changes, corrections):
        return None
    parts, at = list[str](), 0
    for start, end, text in sorted([*changes, *corrections]):
        parts += [old[at:start], text]
        at = end
    merged = "".join([*parts, old[at:]])
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


def _touch(some: Sequence[Change], others: Sequence[Change]) -> bool:
    """True if one of some changes overlaps with or touches one of the others. Both are in the order
    of the text, so that each is looked at once."""
    i = j = 0
    while i < len(some) and j < len(others):
        if some[i][1] < others[j][0]:
            i += 1
        elif others[j][1] < some[i][0]:
            j += 1
        else:
            return True
    return False


def _differing(segments: Sequence[Segment]) -> list[Segment]:
    return [segment for segment in segments if segment.kind != "equal"]
