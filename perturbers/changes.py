"""Changes of a text: where they are, what stands there afterwards, and what is claimed of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeVar

from stats.lots import draw_number

T = TypeVar("T")


class TextEdit(NamedTuple):
    """What stands from `start` to `end`, in code points of the gold answer, becomes `after`."""

    start: int
    end: int
    after: str


@dataclass(frozen=True, slots=True)
class TextChange:
    """One error: its edits, in the order of the text, and the claim in one sentence."""

    edits: tuple[TextEdit, ...]
    claim: str


@dataclass(frozen=True, slots=True)
class PerturberInput:
    """What a perturber is given: the gold answer, the prompt it answers, and a seed."""

    gold: str
    prompt: str
    seed: str

    def pick(self, options: Sequence[T], *words: object) -> T:
        """One of the options; the same for the same seed and words. IndexError if there is none."""
        return options[draw_number(f"{self.seed}:{':'.join(map(str, words))}") % len(options)]


# What could be changed in a text, in any order; changes may lie over each other.
Finder = Callable[[PerturberInput], Iterable[TextChange]]


@dataclass(frozen=True, slots=True)
class Perturbation:
    """A perturbed answer with the changes that made it, in the order of the text."""

    response: str
    changes: tuple[TextChange, ...]

    @property
    def claim(self) -> str:
        """What was done, a sentence a change."""
        return " ".join(change.claim for change in self.changes)

    @property
    def dose(self) -> int:
        """How many errors it holds."""
        return len(self.changes)


def apply_changes(
    source: PerturberInput, found: Iterable[TextChange], dose: int
) -> Perturbation | None:
    """The gold answer with `dose` of the changes that were found, none over another; None if there
    are not so many.

    Those of a smaller dose are among those of a larger one by the same seed, so that doses make a
    ladder.
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
