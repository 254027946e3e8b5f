"""The generation board with the next steps that a lead can take for each category."""

from collections.abc import Iterator
from dataclasses import dataclass

from annotation.models import Project
from annotation.reports import generation_board as board
from annotation.reports.generation_board import GenerationCounts, GenerationRow
from judging.generation import regenerate
from judging.runs import choices, selection
from judging.strategies import catalogue

# The segments of a bar: names of the counts of generated items, with their titles.
PART_TITLES = {
    "held": "as intended",
    "turned_down": "rejected",
    "unseen": "accepted without review",
    "with_people": "in review",
    "waiting": "waiting",
}


@dataclass(frozen=True)
class BarSegment:
    """A segment of a bar with `n` items; `begin` and `width` are percentages of all items."""

    kind: str
    title: str
    n: int
    begin: float
    width: float


@dataclass(frozen=True)
class BoardRow:
    """A category of the board. `strategy` is the slug of the strategy that generated it, "" if no
    model did; `rejected` counts rejected items that were not regenerated yet."""

    row: GenerationRow
    bar: tuple[BarSegment, ...]
    strategy: str
    rejected: int


def load_board(project: Project) -> list[BoardRow]:
    """The rows of the board; [] if nothing was generated here."""
    rows = board.measure_generation(project)
    if not rows:
        return []
    every = [one for one in catalogue.list_strategies(project) if one.strategy.generates]
    slugs = {one.strategy.slug for one in every}
    offered = sorted((one for one in every if one.is_offered), key=lambda one: one.is_own)
    of_category = {one.strategy.category: one.strategy.slug for one in offered}
    of_category.pop("", None)
    rejected = regenerate.count_rejected(project)

    def line(row: GenerationRow) -> BoardRow:
        makers = [part.maker.partition(" ")[0] for part in row.parts]
        made_by = next((slug for slug in reversed(makers) if slug in slugs), "")
        return BoardRow(
            row=row,
            bar=tuple(_bar(row.whole)),
            strategy=of_category.get(row.category, made_by) if made_by else "",
            rejected=rejected.get(row.category, 0) if row.category else 0,
        )

    return [line(row) for row in rows]


def list_generator_endpoints() -> list[str]:
    """The names of the endpoints that can run a generator; baselines cannot generate texts."""
    models = choices.list_endpoints().exclude(provider=selection.BASELINE)
    return list(models.values_list("name", flat=True))


def _bar(made: GenerationCounts) -> Iterator[BarSegment]:
    begin = 0.0
    for kind, title in PART_TITLES.items():
        if n := getattr(made, kind):
            width = round(100 * n / made.items, 2)
            yield BarSegment(kind, title, n, round(begin, 2), width)
            begin += width
