"""Agreement and effort: agreement between annotators, confusion matrix, and labelling times."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from annotation.reports import agreement, agreement_answers
from annotation.reports.agreement import MEASURES, PAIR_MEASURES
from annotation.reports.label_times import LONG_SECONDS
from annotation.templatetags import figures as written
from charts import axes
from judging.results.views import cells, dot_charts
from judging.results.views.cells import Cell, Column, GridLine, Row
from judging.results.views.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    Switch,
    TableQuery,
    ViewContent,
)
from stats.estimates import Estimate


@dataclass(frozen=True)
class AnswerTable:
    """The number of items for each pair of two annotators' answers; `answers` maps names to titles,
    in order.

    `people` are the two annotators, or None if several pairs are counted, each both ways. In that
    case `of` describes the pairs.
    """

    counts: Mapping[tuple[str, str], int]
    answers: Mapping[str, str]
    people: tuple[str, str] | None
    of: Mapping[str, str]

    @property
    def sides(self) -> tuple[str, str]:
        """The titles of rows and columns."""
        return self.people or ("One annotator", "the other annotator")

    def n(self, one: str, other: str) -> int:
        """The number of items with these two answers; 0 if there is no such item."""
        return self.counts.get((one, other), 0)

    def whole(self, one: str) -> int:
        """The number of items with this answer of the first annotator."""
        return sum(self.n(one, other) for other in self.answers)


def build_answer_pairs(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """The confusion matrix of two annotators for one question, or of all pairs if no two are
    chosen.

    If there are several pairs, each counts both ways, so that the matrix is symmetric.
    """
    titles = question_titles(asked)
    field = next((name for name in titles if any(row["field"] == name for row in tables[0])), "")
    rows = [row for row in tables[0] if row["field"] == field]
    met = _build_answer_table(asked, field, rows)
    of_rows, _ = met.sides
    columns = (
        Column(f"{of_rows} says" if met.people else of_rows, is_number=False),
        *(Column(title, f"says-{name}") for name, title in met.answers.items()),
        Column("Together", "n"),
    )
    lines = [_confusion_line(asked, met, name) for name in met.answers]
    grid = cells.build_grid("Answers of two annotators", columns, lines)
    pairs = len({(row["a"], row["b"]) for row in rows})
    return ViewContent(grid, _draw_heatmap(met), _words(met, titles.get(field, field), pairs))


def question_titles(asked: PageQuery) -> dict[str, str]:
    """The titles of the questions on which agreement is measured, by name."""
    return {one.name: one.title for one in agreement_answers.list_questions(asked.project)}


def items_url(asked: PageQuery, row: Mapping[str, str]) -> str:
    """The URL of the list of items behind a row of the table `agreement` or `confusion`."""
    query = urlencode({"agreement": json.dumps(row, ensure_ascii=False)})
    return f"{reverse('items', args=[asked.project.slug])}?{query}"


def _build_answer_table(asked: PageQuery, field: str, rows: Rows) -> AnswerTable:
    pairs = {(row["a"], row["b"]) for row in rows}
    counts = _count_pairs(rows, both_ways=len(pairs) > 1)
    alike = {side: {row[side] for row in rows} for side in ("a", "b")}
    named = {side: next(iter(people)) for side, people in alike.items() if len(people) == 1}
    people = next(iter(pairs)) if len(pairs) == 1 else None
    return AnswerTable(
        counts, _answer_titles(asked, field, counts), people, {"field": field, **named}
    )


def _count_pairs(rows: Rows, *, both_ways: bool) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for row in rows:
        said = (row["choice_a"], row["choice_b"])
        for one in (said, said[::-1]) if both_ways else (said,):
            found[one] = found.get(one, 0) + row["n"]
    return found


def _answer_titles(
    asked: PageQuery, field: str, counts: Mapping[tuple[str, str], int]
) -> dict[str, str]:
    """The titles of the answers that were given, by name, in the order of the options."""
    given = {one for said in counts for one in said}
    question = next(
        (one for one in agreement_answers.list_questions(asked.project) if one.name == field), None
    )
    declared = [name for name, _ in question.options] if question else []
    order = [*(name for name in declared if name in given), *sorted(given - set(declared))]
    return {name: question.title_of(name) if question else name for name in order}


def _words(met: AnswerTable, question: str, pairs: int) -> str:
    of_rows, of_columns = met.sides
    shade = " Darker: a larger share of the row on which they differ."
    asked = f"The question “{question}”"
    if met.people:
        return f"{asked}: items by what {of_rows} (rows) and {of_columns} (columns) say.{shade}"
    return (
        f"{asked}, over {pairs} pairs of annotators, with each item of a pair counted both "
        f"ways.{shade} Choose two annotators to see only their pair."
    )


def _confusion_line(asked: PageQuery, met: AnswerTable, name: str) -> GridLine:
    of_line = {**met.of, "choice_a": name}
    counts = (_count_cell(asked, met, name, other) for other in met.answers)
    whole = cells.count_cell(met.whole(name), items_url(asked, of_line))
    return GridLine((cells.text_cell(met.answers[name]), *counts, whole))


def _count_cell(asked: PageQuery, met: AnswerTable, one: str, other: str) -> Cell:
    """A cell with a count; if the two answers differ, its heat is its share of the row."""
    n, whole = met.n(one, other), met.whole(one)
    if not n:
        return Cell(written.number(n), n)
    heat = None if one == other else int(written.heat(n / whole, "high"))
    href = items_url(asked, {**met.of, "choice_a": one, "choice_b": other})
    return Cell(written.number(n), n, href, heat=heat, note=written.share(n / whole))


def _draw_heatmap(met: AnswerTable) -> ChartSpec | None:
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import confusion as drawn

    found = [
        drawn.AnswerPair(title, met.answers[other], n, n / whole if whole else 0)
        for one, title in met.answers.items()
        for whole in [met.whole(one)]
        for other in met.answers
        for n in [met.n(one, other)]
    ]
    if not found:
        return None
    caption = "Items by the answers of two annotators. Darker: a larger share of the row."
    rows, columns = met.sides
    return ChartSpec(
        drawn.draw_heatmap(found, list(met.answers.values()), rows=rows, columns=columns), caption
    )


EMPTY = "No item has labels from two people yet."
ALL_PEOPLE, PAIRS, PERSONS = "everybody", "pairs", "persons"
WHO_SWITCH = Switch(
    "who",
    "Show",
    {ALL_PEOPLE: "All annotators", PAIRS: "Pairs", PERSONS: "Each against the others"},
)
# A chart with more marks is unreadable; the table has all of them.
MOST_MARKS = 60
TITLES = {name: one.title for name, one in MEASURES.items()} | {
    agreement.AGAINST_REST: "Share that agrees with the majority of the others"
}
QUESTION_TITLES = {"field": "Question"}
RATES = ("percent", agreement.AGAINST_REST)
FIGURES = (
    Column("Question", "field", is_number=False),
    Column("Measure", "measure", is_number=False),
    Column("Value", "value"),
    Column("Items", "n_items"),
    Column("People", "n_raters"),
)


def build_coefficients(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per question and measure, with its interval; for all annotators together, for pairs,
    or for each annotator."""
    who, titles = asked.switch_value(WHO_SWITCH.name), question_titles(asked)
    rows = [row for row in tables[0] if _people_text(row) == who and row["n_items"]]
    columns = (*FIGURES[:2], *([] if who == ALL_PEOPLE else [_PEOPLE_COLUMN]), *FIGURES[2:])
    lines = [_line(asked, row, titles, named=who != ALL_PEOPLE) for row in rows]
    words = (
        "Counts each annotator's last label given before they could see other labels. “Not sure” "
        "is a value of its own in nominal measures and missing in ordinal ones. 95 % intervals: "
        "cluster bootstrap, with 10 clusters or more; none if all draws agree. Kappa and alpha: "
        "0 is chance agreement, 1 is full agreement."
    )
    return ViewContent(
        cells.build_grid("Agreement between annotators", columns, lines),
        _draw_measures(rows, titles, who),
        words,
    )


def build_effort(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per person: labels, labels per day, and labelling times."""
    columns = (
        Column("Person", "annotator", is_number=False),
        Column("Labels", "labels"),
        Column("Labels per day", "a_day", "mean of recent full days"),
        Column("Last label", "last_day", is_number=False),
        Column("Median time", "seconds_median"),
        Column("25 % under", "seconds_low"),
        Column("25 % over", "seconds_high"),
        Column("Over 30 minutes", "over_30_minutes", "not timed"),
    )
    lines = [_person_line(asked, row) for row in tables[0] if row["labels"]]
    words = (
        "Current labels of the stage label. Time runs from when an item is shown until its "
        "label is saved; times over 30 minutes are left out as breaks."
    )
    return ViewContent(
        cells.build_grid("Annotation time", columns, lines), _draw_times(tables[0]), words
    )


_PEOPLE_COLUMN = Column("People", "people", is_number=False)


def _people_text(row: Row) -> str:
    if not row["people"]:
        return ALL_PEOPLE
    return PAIRS if row["measure"] in PAIR_MEASURES else PERSONS


def _line(asked: PageQuery, row: Row, titles: Mapping[str, str], *, named: bool) -> GridLine:
    measure = TITLES[row["measure"]]
    people = [cells.text_cell(row["people"])] if named else []
    told = {name: row[name] for name in ("field", "measure", "people")}
    return GridLine(
        (
            cells.text_cell(titles.get(row["field"], row["field"])),
            cells.text_cell(measure),
            *people,
            _value(row),
            cells.count_cell(row["n_items"], items_url(asked, told)),
            cells.count_cell(row["n_raters"]),
        )
    )


def _value(row: Row) -> Cell:
    told = written.share if row["measure"] in RATES else written.coefficient
    value, low, high = row["value"], row["low"], row["high"]
    interval = "" if low is None else f"{told(low)} to {told(high)}"
    return Cell(told(value), value, interval=interval, reason=row["reason"])


def _title_value(asked: PageQuery, column: str, value: str) -> str:
    """The title of a question or a measure."""
    known = {"field": question_titles(asked), "measure": TITLES}
    return known.get(column, {}).get(value, "")


def _draw_measures(rows: Rows, titles: Mapping[str, str], who: str) -> ChartSpec | None:
    """A chart of all measures on one scale, from chance level to full agreement."""
    found = [
        (
            titles.get(row["field"], row["field"]),
            ": ".join(filter(None, (row["people"], TITLES[row["measure"]].replace(", ", ": ")))),
            Estimate(row["value"], row["low"], row["high"], row["n_items"], row["reason"]),
        )
        for row in rows
    ]
    axis = axes.coefficient_axis(dot_charts.list_ends(one for *_, one in found))
    caption = "Agreement by measure and question, with 95 % intervals."
    if len(found) > MOST_MARKS:
        caption += f" The first {MOST_MARKS} of {len(found)}; the table has them all."
    shown = found[:MOST_MARKS]
    return dot_charts.draw_dots(
        shown, title="Agreement", caption=caption, series="Question", axis=axis
    )


def _person_line(asked: PageQuery, row: Row) -> GridLine:
    items, day = _labels_url(asked, annotator=row["annotator"]), row["last_day"]
    late = _labels_url(asked, annotator=row["annotator"], longer_than=LONG_SECONDS)
    return GridLine(
        (
            cells.text_cell(row["annotator"]),
            cells.count_cell(row["labels"], items),
            Cell(written.number(row["a_day"]), row["a_day"]),
            cells.text_cell(str(day) if day else "", str(day or "")),
            _seconds(row, "seconds_median", n=row["timed"]),
            _seconds(row, "seconds_low"),
            _seconds(row, "seconds_high"),
            cells.count_cell(row["over_30_minutes"], late),
        )
    )


def _labels_url(asked: PageQuery, **which: Any) -> str:
    """The URL of the list of items with such a label."""
    return f"{reverse('items', args=[asked.project.slug])}?{urlencode(which)}"


def _seconds(row: Row, name: str, n: int | None = None) -> Cell:
    value = row[name]
    return Cell(written.duration(value), value, n=n, reason="not timed" if value is None else "")


def _draw_times(rows: Rows) -> ChartSpec | None:
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import pace

    found = [
        pace.LabelTime(
            person=row["annotator"],
            low=row["seconds_low"],
            median=row["seconds_median"],
            high=row["seconds_high"],
            n=row["timed"],
        )
        for row in rows
        if row["seconds_median"] is not None
    ]
    caption = "Time per item by annotator: median and interquartile range."
    return ChartSpec(pace.draw_times(found), caption) if found else None


VIEWS = (
    ResultView(
        slug="measures",
        title="Agreement",
        asks=(TableQuery("agreement", ""),),
        build=build_coefficients,
        studies={},
        empty=EMPTY,
        switches=(WHO_SWITCH,),
        columns=("field", "measure"),
        titles=QUESTION_TITLES,
        named=_title_value,
        of_runs=False,
    ),
    ResultView(
        slug="confusion",
        title="Confusion matrix",
        asks=(TableQuery("confusion", ""),),
        build=build_answer_pairs,
        studies={},
        empty=EMPTY,
        columns=("field", "a", "b"),
        titles={**QUESTION_TITLES, "a": "First annotator", "b": "Second annotator"},
        named=_title_value,
        of_runs=False,
    ),
    ResultView(
        slug="effort",
        title="Effort",
        asks=(TableQuery("pace", ""),),
        build=build_effort,
        studies={},
        empty="There are no labels yet.",
        of_runs=False,
    ),
)
