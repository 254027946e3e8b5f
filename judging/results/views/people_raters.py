"""Against people, person by person: the human ceiling, the alternative annotator test, and how
often people have a majority."""

import json
from collections import Counter
from collections.abc import Sequence

from django.urls import reverse

from judging.models import Run
from judging.results.raters import EPSILONS, MEASURES
from judging.results.views import cells, dot_charts, group_fields, metrics, people, stacked_charts
from judging.results.views.cells import Cell, Column, GridLine, RateColumns, Row
from judging.results.views.metrics import MetricPage
from judging.results.views.page_parts import (
    ChartSpec,
    PageQuery,
    Rows,
    Switch,
    TableQuery,
    ViewContent,
    study_figures,
)
from judging.results.views.run_group_tables import FigureColumn
from stats.ceiling import SIGNIFICANT
from stats.estimates import Estimate

EMPTY = "This needs items rated independently by two or more annotators."
EPSILON_TITLES = {0.1: "crowd", 0.15: "trained annotators", 0.2: "experts"}
EPSILON_SWITCH = Switch(
    "epsilon", "Epsilon", {f"{one:g}": f"{one:g}, {EPSILON_TITLES[one]}" for one in EPSILONS}
)
MEAN = "Mean over people"
SIDES = {"people": "The person", "evaluator": "The evaluator"}
# The view that lists items with people's numbers, and the maximum number of lines that it shows.
RATINGS, MOST_LINES = "ratings", 200
SHARE = RateColumns("share", n="n", missing="")


def build_ceiling(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """Each person against the mean of the others, and the evaluator against the same means."""
    page, measure = MetricPage(asked), asked.switch_value(people.MEASURE_PARAMETER)
    rows = page.ordered([row for row in tables[0] if row["measure"] == measure])
    figures: tuple[FigureColumn, ...] = (
        (Column("Person", "rater", is_number=False), _rater),
        (Column("Items", "n"), _items(page)),
        *((Column(title, name), _side_cell(name)) for name, title in SIDES.items()),
        (Column("Evaluator minus person", "difference"), _difference),
    )
    words = (
        "Each annotator is compared with the mean of the other annotators; the evaluator is "
        "compared with the same means on the same items. Agreement between annotators is about "
        "the best an evaluator can reach. Above 0, the evaluator is better for correlations and "
        "worse for errors."
    )
    grid = page.build_grid("Human ceiling", rows, figures)
    return ViewContent(grid, _draw_ceiling(page, rows, measure), words)


def build_alt_test(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """May the evaluator replace a person? The alternative annotator test."""
    page, epsilon = MetricPage(asked), float(asked.switch_value(EPSILON_SWITCH.name))
    rows = page.ordered([row for row in tables[0] if row["epsilon"] == epsilon])
    figures: tuple[FigureColumn, ...] = (
        (Column("Person", "rater", is_number=False), _rater),
        (Column("Items", "n"), _items(page)),
        (Column("Evaluator as close", "evaluator"), lambda run, row: _share(row, "evaluator")),
        (Column("Annotator as close", "people"), lambda run, row: _share(row, "people")),
        (Column("p", "p"), lambda run, row: cells.p_value_cell(row["p"], row["reason"])),
        (Column("q", "q"), lambda run, row: cells.p_value_cell(row["q"], row["reason"])),
        (Column("Annotators beaten", "wins"), _wins),
        (Column("Verdict", "passed", is_number=False), _verdict),
    )
    words = (
        "The alternative annotator test (Calderon, Reichart and Dror 2025): on each item, is "
        "the evaluator or the annotator at least as close to the other annotators? An "
        "annotator is beaten if the evaluator's share is less than ε below the annotator's, "
        "with q under 0.05 (Benjamini-Yekutieli). The test is passed if at least half of the "
        "annotators are beaten. ε is the advantage granted for lower cost: 0.1 for crowd "
        "workers, 0.15 for trained annotators, 0.2 for experts. The test needs three "
        "annotators with 50 shared items each, and the same scale on both sides. If "
        "annotators hardly agree with each other, even random answers can pass: check their "
        "agreement first."
    )
    grid = page.build_grid("Alternative annotator test", rows, figures)
    return ViewContent(grid, _draw_alt_test(page, rows), words)


def build_majority(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """The share of items where more than half of the people gave the same number."""
    page = MetricPage(asked)
    kept = [field for field in page.fields if tables[0] and field in tables[0][0]]
    columns = (
        *(column for column in page.heads(kept) if column.name != "run"),
        Column("Items", "n"),
        Column("With a majority", "decided"),
        Column("Without", "undecided"),
        Column("Share", "share"),
    )
    lines = [_majority_line(page, row, kept) for row in tables[0]]
    found = [
        (page.title_of(row), page.group(row) or "All items", cells.read_estimate(row, SHARE))
        for row in tables[0]
    ]
    words = (
        "Of the items rated by two or more annotators, the share on which more than half "
        "gave the same rating. Three different ratings have no majority and count as the "
        "median in all other figures (study 003, section 3.4). Independent of runs."
    )
    caption = "Share of items with a majority rating, with 95 % intervals."
    drawing = dot_charts.draw_dots(found, title="Share of items", caption=caption, series="Metric")
    return ViewContent(cells.build_grid("Majority ratings", columns, lines), drawing, words)


def _rater(run: Run, row: Row) -> Cell:
    return cells.text_cell(row["rater"] or MEAN, row["rater"] or "")


def _items(page: MetricPage) -> metrics.CellFunction:
    """A cell with a link to the items with numbers from the person, another person and the
    evaluator."""

    def cell(run: Run, row: Row) -> Cell:
        group = {name: row[name] for name in page.fields}
        told = {name: row[name] for name in ("metric", "off_scale", "rater")}
        rated = json.dumps({**told, "group": group}, ensure_ascii=False)
        href = cells.outcomes_url(run, rated=rated, counted="yes")
        return cells.count_cell(row["n"], href, note="" if row["rater"] else "over people")

    return cell


def _side_cell(name: str) -> metrics.CellFunction:
    def cell(run: Run, row: Row) -> Cell:
        low, high = row[f"{name}_low"], row[f"{name}_high"]
        return _interval_cell(row[name], low, high, row["reason"])

    return cell


def _difference(run: Run, row: Row) -> Cell:
    return _interval_cell(row["difference"], row["low"], row["high"], row["reason"])


def _interval_cell(
    value: float | None, low: float | None, high: float | None, reason: str | None
) -> Cell:
    interval = (
        "" if low is None else f"{cells.number_cell(low).text} to {cells.number_cell(high).text}"
    )
    return Cell(cells.number_cell(value).text, value, interval=interval, reason=reason or "")


def _share(row: Row, name: str) -> Cell:
    value = row[name]
    return Cell(reason=row["reason"] or "") if value is None else cells.percent_cell(value)


def _wins(run: Run, row: Row) -> Cell:
    return Cell("") if row["rater"] else Cell(cells.percent_cell(row["wins"]).text, row["wins"])


def _verdict(run: Run, row: Row) -> Cell:
    if row["q" if row["rater"] else "passed"] is None:
        return Cell(reason=row["reason"] or "", is_number=False)
    if row["rater"]:
        return cells.text_cell("beaten" if row["q"] < SIGNIFICANT else "not beaten")
    return cells.text_cell("passes" if row["passed"] else "does not pass")


def _majority_line(page: MetricPage, row: Row, fields: Sequence[str]) -> GridLine:
    every, decided, undecided = (
        page.of_people(RATINGS, row, **which)
        for which in ({}, {"decided": "true"}, {"decided": "false"})
    )
    return GridLine(
        (
            *page.groups_of(row, fields),
            cells.count_cell(row["n"], every),
            cells.count_cell(row["decided"], decided),
            cells.count_cell(row["n"] - row["decided"], undecided),
            cells.rate_cell(row, SHARE, href=every),
        )
    )


def build_ratings(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per item and metric: the number of people, and whether most of them gave the same
    number."""
    page = MetricPage(asked)
    rows = page.ordered(tables[0])
    columns = (
        Column("Item", "item", is_number=False),
        *(column for column in page.heads(page.fields) if column.name != "run"),
        Column("People", "raters"),
        Column("Mean", "mean"),
        Column("Majority", "decided", is_number=False),
    )
    lines = [_rating_line(page, row) for row in rows[:MOST_LINES]]
    words = "Items rated by two or more annotators; each row links to its labels."
    if len(rows) > MOST_LINES:
        words += f" The first {MOST_LINES} of {len(rows):,} lines; filter to see the rest."
    return ViewContent(
        cells.build_grid("Ratings of people", columns, lines), _draw_majorities(page, rows), words
    )


def _draw_majorities(page: MetricPage, rows: Rows) -> ChartSpec | None:
    """The numbers of items with and without a majority, by metric and group."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        name = ": ".join(part for part in (page.title_of(row), page.group(row)) if part)
        counts.setdefault(name, Counter())["yes" if row["decided"] else "no"] += 1
    kinds = {"yes": "With a majority", "no": "Without"}
    caption = "Items with and without a majority rating; numbers are items."
    return stacked_charts.draw_bars([*counts.items()], kinds, "Share of the items", caption)


def _rating_line(page: MetricPage, row: Row) -> GridLine:
    href = reverse("item", args=[page.asked.project.slug, row["item"]])
    return GridLine(
        (
            Cell(row["item"], row["item"], href=href, is_number=False),
            *page.groups_of(row, page.fields),
            cells.count_cell(row["raters"]),
            cells.number_cell(row["mean"]),
            cells.text_cell("yes" if row["decided"] else "no"),
        )
    )


def _draw_ceiling(page: MetricPage, rows: Rows, measure: str) -> ChartSpec | None:
    found = [
        (title, _person(page, row), _estimate(row, name))
        for row in rows[: metrics.MOST_GROUPS]
        for name, title in SIDES.items()
    ]
    title = people.MEASURES[measure]
    caption = (
        f"{title} with the mean of the other annotators, for each annotator and for the "
        "evaluator on the same items, with 95 % intervals."
    )
    axis = people.measure_axis(measure, (one for *_, one in found))
    return dot_charts.draw_dots(found, title=title, caption=caption, series="Of", axis=axis)


def _estimate(row: Row, name: str) -> Estimate:
    return Estimate(row[name], row[f"{name}_low"], row[f"{name}_high"], row["n"])


def _draw_alt_test(page: MetricPage, rows: Rows) -> ChartSpec | None:
    found = [
        (title, _person(page, row), Estimate(row[name], None, None, row["n"]))
        for row in rows[: metrics.MOST_GROUPS]
        if row["rater"]
        for name, title in SIDES.items()
    ]
    caption = (
        "Share of items on which the annotator, or the evaluator, is at least as close to "
        "the other annotators. Ties count for both."
    )
    return dot_charts.draw_dots(found, title="At least as close", caption=caption, series="Of")


def _person(page: MetricPage, row: Row) -> str:
    """The label of a person in charts: person, group and metric, with the run on further lines."""
    run = cells.run_name(page.runs[row["run"]], ": ")
    who = ", ".join(part for part in (row["rater"] or MEAN, page.group(row)) if part)
    is_told = page.asked.query.get("metric")
    return f"{who}: {run}" if is_told else f"{who}, {page.title_of(row)}: {run}"


VIEWS = (
    metrics.metric_view(
        slug="ceiling",
        title="Human ceiling",
        asks=(TableQuery("ceiling"),),
        build=build_ceiling,
        studies={},
        switches=(people.measure_switch({name: people.MEASURES[name] for name in MEASURES}),),
        empty=EMPTY,
    ),
    metrics.metric_view(
        slug="alt-test",
        title="Alternative annotator test",
        asks=(TableQuery("alt_test"),),
        build=build_alt_test,
        studies={},
        switches=(EPSILON_SWITCH,),
        empty=EMPTY,
    ),
    metrics.metric_view(
        slug="majority",
        title="Majority",
        asks=(TableQuery("majority"),),
        build=build_majority,
        studies={"003": study_figures("section 3.4, majorities")},
        empty=EMPTY,
        of_runs=False,
        groups=group_fields.list_fields,
    ),
    metrics.metric_view(
        slug=RATINGS,
        title="Ratings",
        asks=(TableQuery("ratings"),),
        build=build_ratings,
        studies={},
        empty=EMPTY,
        of_runs=False,
        groups=group_fields.list_fields,
        columns=("metric", "decided"),
        titles={"decided": "Majority"},
    ),
)
