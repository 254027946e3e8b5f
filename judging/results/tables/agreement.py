"""How well do annotators agree, and how long do they take? The tables `agreement`, `confusion` and
`pace`, and the page Agreement and effort."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from annotation.reports import agreement, agreement_answers
from annotation.reports import tables as lead_reports
from annotation.reports.agreement import MEASURES, PAIR_MEASURES
from annotation.reports.label_times import LONG_SECONDS
from annotation.templatetags import figures as written
from charts import axes
from judging.results import cells, chart_parts, columns, lines
from judging.results.cells import Cell, GridLine, Header, Row
from judging.results.columns import Table
from judging.results.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    Switch,
    TableQuery,
    ViewContent,
)
from stats.estimates import Estimate

# A chart with more marks is unreadable; the table has all of them.
MOST_MARKS = 60
TITLES = {name: one.title for name, one in MEASURES.items()} | {
    agreement.AGAINST_REST: "Share that agrees with the majority of the others"
}
QUESTION_TITLES = {"field": "Question"}
RATES = ("percent", agreement.AGAINST_REST)


def _value_cell(row: Row, of: columns.Leading) -> Cell:
    told = written.share if row["measure"] in RATES else written.coefficient
    value, low, high = row["value"], row["low"], row["high"]
    interval = "" if low is None else f"{told(low)} to {told(high)}"
    return Cell(told(value), value, interval=interval, reason=row["reason"])


def _seconds(name: str, title: str, n: str = "") -> columns.Custom:
    def cell(row: Row, of: columns.Leading) -> Cell:
        value = row[name]
        reason = "not timed" if value is None else ""
        return Cell(written.duration(value), value, n=row[n] if n else None, reason=reason)

    return columns.Custom(name, title, make=cell)


def _day_cell(row: Row, of: columns.Leading) -> Cell:
    day = row["last_day"]
    return cells.text_cell(str(day) if day else "", str(day or ""))


AGREEMENT = Table(
    "agreement",
    (
        columns.Text("field", "Question", write=lambda row: row["question"]),
        columns.Text("measure", "Measure", write=lambda row: TITLES[row["measure"]]),
        columns.Text("people", "People"),
        columns.Count(
            "n_items",
            "Items",
            columns.items(field="{field}", measure="{measure}", people="{people}"),
        ),
        columns.Count("n_raters", "People"),
        columns.Custom("value", "Value", make=_value_cell),
        *columns.plain("low", "high", "reason"),
    ),
    lambda project, runs, by: agreement.agreement_rows(project),
    at_once=None,
    about="A row per question, measure and group of people: how well annotators agree.",
    meanings={
        "field": "question, which is a field of the task type, or `total`",
        "measure": "name of the measure, such as `percent`, `cohen` or `alpha-nominal`; "
        "`against-rest` is the share of a person's labels that equal the majority of the others",
        "people": "the one or two annotators that the row is about; empty for all annotators",
        "n_items": "number of items that the value is about",
        "n_raters": "number of annotators whose labels are used; for Fleiss' kappa the number of "
        "labels per item",
        "value": "value of the measure; 1 is full agreement",
        "low": "lower end of the 95 % interval of `value`",
        "high": "upper end of this interval",
        "reason": "why `value` or its interval is empty",
    },
)
CONFUSION = Table(
    "confusion",
    columns.plain("field", "a", "b", "choice_a", "choice_b", "n"),
    lambda project, runs, by: agreement.confusion_rows(project),
    at_once=None,
    about="A row per question, pair of annotators and pair of answers: on how many items they "
    "gave them.",
    meanings={
        "field": "question, which is a field of the task type, or `total`",
        "a": "one annotator",
        "b": "the other annotator",
        "choice_a": "answer of the first annotator",
        "choice_b": "answer of the other one",
        "n": "number of items with these two answers",
    },
)
PACE = Table(
    "pace",
    (
        columns.Text("annotator", "Person"),
        columns.Count("labels", "Labels", columns.items()),
        columns.Column("recent"),
        columns.Custom(
            "a_day",
            "Labels per day",
            unit="mean of recent full days",
            make=lambda row, of: Cell(written.number(row["a_day"]), row["a_day"]),
        ),
        columns.Custom("last_day", "Last label", make=_day_cell, is_text=True),
        _seconds("seconds_median", "Median time", "timed"),
        _seconds("seconds_low", "25 % under"),
        _seconds("seconds_high", "25 % over"),
        columns.Column("timed"),
        columns.Count(
            "over_30_minutes",
            "Over 30 minutes",
            columns.items(longer_than=str(LONG_SECONDS)),
            unit="not timed",
        ),
    ),
    lambda project, runs, by: lead_reports.pace_table(
        project, lead_reports.find_grouping(project, list(by))
    ),
    at_once=None,
    about="A row per person: labels, labels per day, and labelling times.",
    meanings={
        "annotator": "name of the annotator in the project",
        "labels": "number of current labels, without those for qualification, control, "
        "verification and adjudication",
        "recent": "number of labels from the last full days, at most 14, today left out",
        "a_day": "mean number of labels per day, over the last full days, at most 14",
        "last_day": "day of the last label (UTC)",
        "seconds_median": "median labelling time in seconds",
        "seconds_low": "time in seconds under which 25 % of the labels stay",
        "seconds_high": "time in seconds that 25 % of the labels exceed",
        "timed": "number of labels that these times are of",
        "over_30_minutes": "number of labels that took longer, which are in none of these times",
    },
)


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
        Header(f"{of_rows} says" if met.people else of_rows, is_number=False),
        *(Header(title, f"says-{name}") for name, title in met.answers.items()),
        Header("Together", "n"),
    )
    lines = [_confusion_line(asked, met, name) for name in met.answers]
    grid = cells.build_grid("Answers of two annotators", columns, lines)
    pairs = len({(row["a"], row["b"]) for row in rows})
    screen_words = "Darker: a larger share of the row on which they differ."
    if not met.people:
        screen_words += " Choose two annotators to see only their pair."
    words = _words(met, titles.get(field, field), pairs)
    return ViewContent(grid, _draw_heatmap(met), words, screen_words)


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
    asked = f"The question “{question}”"
    if met.people:
        return f"{asked}: items by what {of_rows} (rows) and {of_columns} (columns) say."
    return f"{asked}, over {pairs} pairs of annotators, with each item of a pair counted both ways."


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


class _Questions(columns.Leading):
    """Rows whose figures link to the items on which they are measured."""

    def items_url(self, row: Row, **which: str) -> str:
        return items_url(self.asked, which)


class _Persons(columns.Leading):
    """Rows whose figures link to the items with such labels of the person."""

    def items_url(self, row: Row, **which: str) -> str:
        query = urlencode({"annotator": row["annotator"], **which})
        return f"{reverse('items', args=[self.asked.project.slug])}?{query}"


def build_coefficients(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per question and measure, with its interval; for all annotators together, for pairs,
    or for each annotator."""
    who = asked.switch_value(WHO_SWITCH.name)
    people = () if who == ALL_PEOPLE else ("people",)
    return lines.Lines(
        AGREEMENT,
        "Agreement between annotators",
        ("field", "measure", *people, "value", "n_items", "n_raters"),
        "Counts each annotator's last label given before they could see other labels. “Not sure” "
        "is a value of its own in nominal measures and missing in ordinal ones. 95 % intervals: "
        "cluster bootstrap, with 10 clusters or more; none if all draws agree. Kappa and alpha: "
        "0 is chance agreement, 1 is full agreement. Overlap F1 is about marked passages: 1 if two "
        "annotators marked the same characters, 0 if they share none.",
        _draw_measures,
        _select_measures,
        _Questions,
    )(asked, tables)


def _select_measures(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    """The rows of the chosen annotators, with the title of their question."""
    who, titles = asked.switch_value(WHO_SWITCH.name), question_titles(asked)
    return [
        {**row, "question": titles.get(row["field"], row["field"])}
        for row in tables[0]
        if _people_text(row) == who and row["n_items"]
    ]


def _people_text(row: Row) -> str:
    if not row["people"]:
        return ALL_PEOPLE
    return PAIRS if row["measure"] in PAIR_MEASURES else PERSONS


def _title_value(asked: PageQuery, column: str, value: str) -> str:
    """The title of a question or a measure."""
    known = {"field": question_titles(asked), "measure": TITLES}
    return known.get(column, {}).get(value, "")


def _draw_measures(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    """A chart of all measures on one scale, from chance level to full agreement."""
    found = [
        (
            row["question"],
            ": ".join(filter(None, (row["people"], TITLES[row["measure"]].replace(", ", ": ")))),
            Estimate(row["value"], row["low"], row["high"], row["n_items"], row["reason"]),
        )
        for row in rows
    ]
    axis = axes.coefficient_axis(chart_parts.list_ends(one for *_, one in found))
    caption = "Agreement by measure and question, with 95 % intervals."
    if len(found) > MOST_MARKS:
        caption += f" The first {MOST_MARKS} of {len(found)}; the table has them all."
    shown = found[:MOST_MARKS]
    return chart_parts.draw_dots(
        shown, title="Agreement", caption=caption, series="Question", axis=axis
    )


def _labelling(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    return [row for row in tables[0] if row["labels"]]


def _draw_times(asked: PageQuery, rows: Rows) -> ChartSpec | None:
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
        asks=(TableQuery(AGREEMENT, ""),),
        figures=("rate", "agreement"),
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
        asks=(TableQuery(CONFUSION, ""),),
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
        asks=(TableQuery(PACE, ""),),
        build=lines.Lines(
            PACE,
            "Annotation time",
            (
                *("annotator", "labels", "a_day", "last_day", "seconds_median", "seconds_low"),
                *("seconds_high", "over_30_minutes"),
            ),
            "Current labels of the stage label. Time runs from when an item is shown until its "
            "label is saved; times over 30 minutes are left out as breaks.",
            _draw_times,
            _labelling,
            _Persons,
        ),
        studies={},
        empty="There are no labels yet.",
        of_runs=False,
    ),
)
