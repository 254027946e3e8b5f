"""Agreement and effort: how far do people agree, who says what, and how long does it take them?"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from annotation.leads import agreement
from annotation.leads.agreement import MEASURES, OF_PAIRS
from annotation.leads.timing import LONG_SECONDS
from annotation.templatetags import figures as written
from charts import axes
from judging.views.results import cells, confusions, dots, grids
from judging.views.results.cells import Row
from judging.views.results.grids import Cell, Column, Line
from judging.views.results.kinds import Ask, Asked, Drawing, Rows, Shown, Switch, View
from stats.estimates import Estimate

EMPTY = "Nobody has labelled an item yet, or no two people the same one."
EVERYBODY, PAIRS, PERSONS = "everybody", "pairs", "persons"
WHO = Switch(
    "who", "About", {EVERYBODY: "Everybody", PAIRS: "Two by two", PERSONS: "Against the rest"}
)
# Past so many marks nobody reads a chart; the table has them all.
MOST_MARKS = 60
TITLES = {name: one.title for name, one in MEASURES.items()} | {
    agreement.AGAINST_REST: "Share that more than half of the others say too"
}
QUESTION = {"field": "Question"}
RATES = ("percent", agreement.AGAINST_REST)
FIGURES = (
    Column("Question", "field", is_number=False),
    Column("Measure", "measure", is_number=False),
    Column("Value", "value"),
    Column("Items", "n_items"),
    Column("People", "n_raters"),
)


def coefficients(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """A line a question and measure, with its interval; of everybody, two people or one."""
    who, titles = asked.said(WHO.name), confusions.questions(asked)
    rows = [row for row in tables[0] if _about(row) == who and row["n_items"]]
    columns = (*FIGURES[:2], *([] if who == EVERYBODY else [_WHO]), *FIGURES[2:])
    lines = [_line(asked, row, titles, named=who != EVERYBODY) for row in rows]
    words = (
        "Each person's last label counts, if it was given before the person could see what others"
        " say. “Not sure” is an answer like any other where answers have no order, and is left out"
        " where they have. The 95 % intervals are of clusters of items drawn anew, from 10 clusters"
        " on; where all draws agree there is none. 0 is what chance alone gives a kappa or an"
        " alpha, 1 is agreement in all."
    )
    return Shown(
        grids.of_lines("Agreement of people", columns, lines), _marks(rows, titles, who), words
    )


def effort(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """A line a person: labels, how many a day, and how long an item takes them."""
    columns = (
        Column("Person", "annotator", is_number=False),
        Column("Labels", "labels"),
        Column("A day", "a_day", "mean of the last full days"),
        Column("Last label", "last_day", is_number=False),
        Column("Median time", "seconds_median"),
        Column("A quarter under", "seconds_low"),
        Column("A quarter over", "seconds_high"),
        Column("Over 30 minutes", "over_30_minutes", "in no time"),
    )
    lines = [_person(asked, row) for row in tables[0] if row["labels"]]
    words = (
        "Labels at work that are in force. A time runs from when an item is shown until its label"
        " is in; one of over half an hour says that the person was not at it, and is left out."
    )
    return Shown(grids.of_lines("Effort of people", columns, lines), _times(tables[0]), words)


_WHO = Column("People", "people", is_number=False)


def _about(row: Row) -> str:
    if not row["people"]:
        return EVERYBODY
    return PAIRS if row["measure"] in OF_PAIRS else PERSONS


def _line(asked: Asked, row: Row, titles: Mapping[str, str], *, named: bool) -> Line:
    measure = TITLES[row["measure"]]
    people = [cells.words(row["people"])] if named else []
    told = {name: row[name] for name in ("field", "measure", "people")}
    return Line(
        (
            cells.words(titles.get(row["field"], row["field"])),
            cells.words(measure),
            *people,
            _value(row),
            cells.count(row["n_items"], confusions.items(asked, told)),
            cells.count(row["n_raters"]),
        )
    )


def _value(row: Row) -> Cell:
    told = written.share if row["measure"] in RATES else written.coefficient
    value, low, high = row["value"], row["low"], row["high"]
    interval = "" if low is None else f"{told(low)} to {told(high)}"
    return Cell(told(value), value, interval=interval, reason=row["reason"])


def _named(asked: Asked, column: str, value: str) -> str:
    """A question or a measure in words."""
    known = {"field": confusions.questions(asked), "measure": TITLES}
    return known.get(column, {}).get(value, "")


def _marks(rows: Rows, titles: Mapping[str, str], who: str) -> Drawing | None:
    """Every measure is on one scale, from what chance gives to agreement in all."""
    found = [
        (
            titles.get(row["field"], row["field"]),
            ": ".join(filter(None, (row["people"], TITLES[row["measure"]].replace(", ", ": ")))),
            Estimate(row["value"], row["low"], row["high"], row["n_items"], row["reason"]),
        )
        for row in rows
    ]
    axis = axes.of_coefficients(dots.ends(one for *_, one in found))
    caption = "Agreement by measure and question, with 95 % intervals."
    if len(found) > MOST_MARKS:
        caption += f" The first {MOST_MARKS} of {len(found)}; the table has them all."
    shown = found[:MOST_MARKS]
    return dots.drawing(shown, title="Agreement", caption=caption, series="Question", axis=axis)


def _person(asked: Asked, row: Row) -> Line:
    items, day = _labelled(asked, annotator=row["annotator"]), row["last_day"]
    late = _labelled(asked, annotator=row["annotator"], longer_than=LONG_SECONDS)
    return Line(
        (
            cells.words(row["annotator"]),
            cells.count(row["labels"], items),
            Cell(written.number(row["a_day"]), row["a_day"]),
            cells.words(str(day) if day else "", str(day or "")),
            _seconds(row, "seconds_median", n=row["timed"]),
            _seconds(row, "seconds_low"),
            _seconds(row, "seconds_high"),
            cells.count(row["over_30_minutes"], late),
        )
    )


def _labelled(asked: Asked, **which: Any) -> str:
    """Where the items are listed that have such a label."""
    return f"{reverse('items', args=[asked.project.slug])}?{urlencode(which)}"


def _seconds(row: Row, name: str, n: int | None = None) -> Cell:
    value = row[name]
    return Cell(written.duration(value), value, n=n, reason="not timed" if value is None else "")


def _times(rows: Rows) -> Drawing | None:
    # Altair takes a second to import; nothing else should wait for it.
    from charts import pace

    found = [
        pace.Time(
            person=row["annotator"],
            low=row["seconds_low"],
            median=row["seconds_median"],
            high=row["seconds_high"],
            n=row["timed"],
        )
        for row in rows
        if row["seconds_median"] is not None
    ]
    caption = "How long an item takes each person: the median, and the middle half of the times."
    return Drawing(pace.times(found), caption) if found else None


VIEWS = (
    View(
        slug="measures",
        title="Agreement",
        asks=(Ask("agreement", ""),),
        show=coefficients,
        studies={},
        empty=EMPTY,
        switches=(WHO,),
        columns=("field", "measure"),
        titles=QUESTION,
        named=_named,
        of_runs=False,
    ),
    View(
        slug="confusion",
        title="Who says what",
        asks=(Ask("confusion", ""),),
        show=confusions.show,
        studies={},
        empty=EMPTY,
        columns=("field", "a", "b"),
        titles={**QUESTION, "a": "One person", "b": "Another person"},
        named=_named,
        of_runs=False,
    ),
    View(
        slug="effort",
        title="Effort",
        asks=(Ask("pace", ""),),
        show=effort,
        studies={},
        empty="Nobody has labelled an item yet.",
        of_runs=False,
    ),
)
