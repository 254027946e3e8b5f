"""Changes of a text: their edits, their claims, and how they are applied."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeVar

from stats.lots import draw_number

T = TypeVar("T")


class TextEdit(NamedTuple):
    """Replaces the text from `start` to `end` by `after`; positions are code points of the gold
    answer."""

    start: int
    end: int
    after: str


@dataclass(frozen=True, slots=True)
class TextChange:
    """One error: its edits, in text order, and the claim in one sentence."""

    edits: tuple[TextEdit, ...]
    claim: str


@dataclass(frozen=True, slots=True)
class PerturberInput:
    """The input of a perturber: the gold answer, the prompt that it answers, and a seed."""

    gold: str
    prompt: str
    seed: str

    def pick(self, options: Sequence[T], *words: object) -> T:
        """Pick one of the options. The same seed and words always give the same option. Raises
        IndexError if there are no options."""
        return options[draw_number(f"{self.seed}:{':'.join(map(str, words))}") % len(options)]


# A function that finds possible changes of a text, in any order; the changes may overlap.
Finder = Callable[[PerturberInput], Iterable[TextChange]]


@dataclass(frozen=True, slots=True)
class Perturbation:
    """A perturbed answer with the changes that it contains, in text order."""

    response: str
    changes: tuple[TextChange, ...]

    @property
    def claim(self) -> str:
        """The claim about the whole answer: one sentence per change."""
        return " ".join(change.claim for change in self.changes)

    @property
    def dose(self) -> int:
        """The number of errors in the answer."""
        return len(self.changes)


def apply_changes(
    source: PerturberInput, found: Iterable[TextChange], dose: int
) -> Perturbation | None:
    """Apply `dose` of the found changes to the gold answer, without overlaps. Return None if there
    are fewer such changes.

    With the same seed, the changes of a smaller dose are among those of a larger dose, so that the
    doses form a ladder.
    """
    chosen: list[TextChange] = []
    for change in sorted(
        found, key=lambda one: (draw_number(f"{source.seed}:{one.edits}"), one.claim)
    ):
        if len(chosen) == dose:
            break
        if _has_no_overlap(change, chosen):
            chosen.append(change)
    if len(chosen) < dose:
        return None
    chosen.sort(key=lambda one: one.edits)
    return Perturbation(_apply(source.gold, chosen), tuple(chosen))


def _has_no_overlap(change: TextChange, chosen: Iterable[TextChange]) -> bool:
    edits = sorted(edit for one in (change, *chosen) for edit in one.edits)
    return all(one.end <= other.start and one[:2] != other[:2] for one, other in pairwise(edits))


def _apply(text: str, changes: Iterable[TextChange]) -> str:
    return "".join(_parts(text, sorted(edit for one in changes for edit in one.edits)))


def _parts(text: str, edits: Iterable[TextEdit]) -> Iterator[str]:
    done = 0
    for edit in edits:
        yield text[done : edit.start]
        yield edit.after
        done = edit.end
    yield text[done:]
