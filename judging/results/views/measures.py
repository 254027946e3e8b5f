"""What a rate says of items with an error, and of score-invariant ones; its switch."""

from collections.abc import Sequence
from dataclasses import dataclass

from annotation.labelling.models.labels import SI_ITEM
from judging.models import Run
from judging.results import explanations
from judging.results.views.cells import RateColumns, Row
from judging.results.views.page_parts import PageQuery, Switch


@dataclass(frozen=True)
class RateMeasure:
    """`title` of the rate of error items, `on_invariant` what it is on score-invariant ones."""

    slug: str
    title: str
    on_invariant: str
    words: str

    def rate(self, *, invariant: bool) -> RateColumns:
        """How it is read off a row of `undetected`, and whether high or low is bad."""
        detects = self.slug == "detection"
        return RateColumns(bad="low" if detects != invariant else "high", rest=detects)


_READING_NOTE = (
    " n counts items with a usable reply; missing items are listed beside it and are in no "
    "rate. 95 % intervals are clustered by question. Darker is worse."
)
MEASURES = {
    "detection": RateMeasure(
        "detection",
        "Detection rate",
        "false alarms",
        "Share of error items in which the run detected the error: high is good. On "
        "score-invariant items a detection is a false alarm: low is good.{_READING_NOTE}",
    ),
    "undetected": RateMeasure(
        "undetected",
        "Undetected rate",
        "no false alarm",
        "Share of error items in which the run did not detect the error: low is good. On "
        "score-invariant items it is the share without a false alarm: high is good."
        f"{_READING_NOTE}",
    ),
}
NOTHING_DECIDED = (
    "The chosen runs have no counted outcomes for perturbed answers. For error detection and "
    "ratings, see the pages Detector and Against people."
)
MEASURE_SWITCH = Switch("measure", "Rate", {"detection": "Detection", "undetected": "Undetected"})


def get_measure(asked: PageQuery) -> RateMeasure:
    """The measure that the address asks for."""
    return MEASURES[asked.said(MEASURE_SWITCH.name)]


def is_invariant(row: Row) -> bool:
    return bool(row["score_invariant"]) or row.get("ability") == SI_ITEM


def group_by_run(rows: Sequence[Row], *fields: str) -> dict[tuple[str, ...], dict[int, Row]]:
    """Rows by the values of these fields, and then by the number of their run."""
    found: dict[tuple[str, ...], dict[int, Row]] = {}
    for row in rows:
        found.setdefault(tuple(row.get(field, "") for field in fields), {})[row["run"]] = row
    return found


def select_judging_runs(asked: PageQuery) -> list[Run]:
    """The chosen runs that judge items; one that checks explanations says nothing of its own."""
    return [
        run for run in asked.runs if run.strategy.strategy().frame != explanations.EXPLANATION_FRAME
    ]
