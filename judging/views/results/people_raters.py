"""Against people, person by person: the human ceiling, the alternative annotator test, and how
often people have a majority."""

import json
from collections import Counter
from collections.abc import Sequence

from django.urls import reverse

from judging.models import Run
from judging.results.aligning_people import EPSILONS, MEASURES
from judging.views.results import cells, dots, grids, metrics, offered, people, stacks
from judging.views.results.cells import Rate, Row
from judging.views.results.flat import Figure
from judging.views.results.grids import Cell, Column, Line
from judging.views.results.kinds import Ask, Asked, Drawing, Rows, Shown, Switch, places
from judging.views.results.metrics import Metrics
from stats.ceiling import SIGNIFICANT
from stats.estimates import Estimate

SEVERAL = "It needs items that two people or more rated before they could see each other's ratings."
FOR = {0.1: "crowd", 0.15: "trained people", 0.2: "experts"}
EPSILON = Switch("epsilon", "Epsilon", {f"{one:g}": f"{one:g}, {FOR[one]}" for one in EPSILONS})
MEAN = "Mean over people"
SIDES = {"people": "The person", "evaluator": "The evaluator"}
# The view that lists items with people's numbers, and how many lines of it are shown.
RATINGS, MOST_LINES = "ratings", 200
SHARE = Rate("share", n="n", missing="")


def ceiling(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """Each person against the mean of the others, the evaluator against the same means."""
    page, measure = Metrics(asked), asked.said(people.MEASURE)
    rows = page.ordered([row for row in tables[0] if row["measure"] == measure])
    figures: tuple[Figure, ...] = (
        (Column("Person", "rater", is_number=False), _rater),
        (Column("Items", "n"), _items(page)),
        *((Column(title, name), _side(name)) for name, title in SIDES.items()),
        (Column("Evaluator minus person", "difference"), _difference),
    )
    words = (
        "Each person is held against the mean of the others, and the evaluator against the same"
        " means on the same items: what people reach against each other is about as much as an"
        " evaluator can. Above 0 the evaluator is nearer in correlations and farther in errors."
    )
    grid = page.table("Human ceiling", rows, figures)
    return Shown(grid, _beside(page, rows, measure), words)


def alt_test(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """May the evaluator stand in for a person?"""
    page, epsilon = Metrics(asked), float(asked.said(EPSILON.name))
    rows = page.ordered([row for row in tables[0] if row["epsilon"] == epsilon])
    figures: tuple[Figure, ...] = (
        (Column("Person", "rater", is_number=False), _rater),
        (Column("Items", "n"), _items(page)),
        (Column("Evaluator as near", "evaluator"), lambda run, row: _share(row, "evaluator")),
        (Column("Person as near", "people"), lambda run, row: _share(row, "people")),
        (Column("p", "p"), lambda run, row: cells.p_value(row["p"], row["reason"])),
        (Column("q", "q"), lambda run, row: cells.p_value(row["q"], row["reason"])),
        (Column("People beaten", "wins"), _wins),
        (Column("Verdict", "passed", is_number=False), _verdict),
    )
    words = (
        "The alternative annotator test (Calderon, Reichart and Dror 2025): on each item, who is at"
        " least as near to the other people, the evaluator or the person? A person is beaten if the"
        " evaluator's share is less than ε below the person's, with q under 0.05 (Benjamini and"
        " Yekutieli); the test is passed if half of the people or more are. ε is what being cheaper"
        " is worth: 0.1 beside a crowd, 0.15 beside trained people, 0.2 beside experts. It needs"
        " three people with 50 shared items each and one scale on both sides. Where people hardly"
        " agree with each other, an evaluator that answers at random passes, too: see how far they"
        " agree first."
    )
    grid = page.table("Alternative annotator test", rows, figures)
    return Shown(grid, _near(page, rows), words)


def majority(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """On how many items more than half of the people gave the same number."""
    page = Metrics(asked)
    kept = [field for field in page.fields if tables[0] and field in tables[0][0]]
    columns = (
        *(column for column in page.heads(kept) if column.name != "run"),
        Column("Items", "n"),
        Column("With a majority", "decided"),
        Column("Without", "undecided"),
        Column("Share", "share"),
    )
    lines = [_majority(page, row, kept) for row in tables[0]]
    found = [
        (page.title_of(row), page.group(row) or "All items", cells.estimate(row, SHARE))
        for row in tables[0]
    ]
    words = (
        "Of the items that two people or more rated, those on which more than half gave the same"
        " number. Three different ratings are no majority and count as the middle one in all other"
        " figures (study 003, section 3.4). It does not depend on runs."
    )
    caption = "Share of items with a majority of people, with 95 % intervals."
    drawing = dots.drawing(found, title="Share of items", caption=caption, series="Metric")
    return Shown(grids.of_lines("Majorities of people", columns, lines), drawing, words)


def _rater(run: Run, row: Row) -> Cell:
    return cells.words(row["rater"] or MEAN, row["rater"] or "")


def _items(page: Metrics) -> metrics.Draw:
    """Those that the person, another one and the evaluator gave a number."""

    def cell(run: Run, row: Row) -> Cell:
        group = {name: row[name] for name in page.fields}
        told = {name: row[name] for name in ("metric", "off_scale", "rater")}
        rated = json.dumps({**told, "group": group}, ensure_ascii=False)
        href = cells.outcomes(run, rated=rated, counted="yes")
        return cells.count(row["n"], href, note="" if row["rater"] else "over people")

    return cell


def _side(name: str) -> metrics.Draw:
    def cell(run: Run, row: Row) -> Cell:
        low, high = row[f"{name}_low"], row[f"{name}_high"]
        return _between(row[name], low, high, row["reason"])

    return cell


def _difference(run: Run, row: Row) -> Cell:
    return _between(row["difference"], row["low"], row["high"], row["reason"])


def _between(
    value: float | None, low: float | None, high: float | None, reason: str | None
) -> Cell:
    interval = "" if low is None else f"{cells.number(low).text} to {cells.number(high).text}"
    return Cell(cells.number(value).text, value, interval=interval, reason=reason or "")


def _share(row: Row, name: str) -> Cell:
    value = row[name]
    return Cell(reason=row["reason"] or "") if value is None else cells.of_share(value)


def _wins(run: Run, row: Row) -> Cell:
    return Cell("") if row["rater"] else Cell(cells.of_share(row["wins"]).text, row["wins"])


def _verdict(run: Run, row: Row) -> Cell:
    if row["q" if row["rater"] else "passed"] is None:
        return Cell(reason=row["reason"] or "", is_number=False)
    if row["rater"]:
        return cells.words("beaten" if row["q"] < SIGNIFICANT else "not beaten")
    return cells.words("passes" if row["passed"] else "does not pass")


def _majority(page: Metrics, row: Row, fields: Sequence[str]) -> Line:
    every, decided, undecided = (
        page.of_people(RATINGS, row, **which)
        for which in ({}, {"decided": "true"}, {"decided": "false"})
    )
    return Line(
        (
            *page.groups_of(row, fields),
            cells.count(row["n"], every),
            cells.count(row["decided"], decided),
            cells.count(row["n"] - row["decided"], undecided),
            cells.rate(row, SHARE, href=every),
        )
    )


def ratings(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """A line an item and metric: how many people gave a number, and whether most the same."""
    page = Metrics(asked)
    rows = page.ordered(tables[0])
    columns = (
        Column("Item", "item", is_number=False),
        *(column for column in page.heads(page.fields) if column.name != "run"),
        Column("People", "raters"),
        Column("Mean", "mean"),
        Column("Majority", "decided", is_number=False),
    )
    lines = [_rating(page, row) for row in rows[:MOST_LINES]]
    words = "The items that two people or more gave a number; each leads to its labels."
    if len(rows) > MOST_LINES:
        words += f" The first {MOST_LINES} of {len(rows):,} lines; narrow it down to see the rest."
    return Shown(grids.of_lines("Ratings of people", columns, lines), _divided(page, rows), words)


def _divided(page: Metrics, rows: Rows) -> Drawing | None:
    """How many items have a majority and how many have none, by metric and group."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        name = ": ".join(part for part in (page.title_of(row), page.group(row)) if part)
        counts.setdefault(name, Counter())["yes" if row["decided"] else "no"] += 1
    kinds = {"yes": "With a majority", "no": "Without"}
    caption = "Items with and without a majority of people; the numbers are items."
    return stacks.bars([*counts.items()], kinds, "Share of the items", caption)


def _rating(page: Metrics, row: Row) -> Line:
    href = reverse("item", args=[page.asked.project.slug, row["item"]])
    return Line(
        (
            Cell(row["item"], row["item"], href=href, is_number=False),
            *page.groups_of(row, page.fields),
            cells.count(row["raters"]),
            cells.number(row["mean"]),
            cells.words("yes" if row["decided"] else "no"),
        )
    )


def _beside(page: Metrics, rows: Rows, measure: str) -> Drawing | None:
    found = [
        (title, _person(page, row), _estimate(row, name))
        for row in rows[: metrics.MOST_GROUPS]
        for name, title in SIDES.items()
    ]
    title = people.MEASURES[measure]
    caption = (
        f"{title} with the mean of the other people: of each person, and of the evaluator on the"
        " same items, with 95 % intervals."
    )
    axis = people.axis_of(measure, (one for *_, one in found))
    return dots.drawing(found, title=title, caption=caption, series="Of", axis=axis)


def _estimate(row: Row, name: str) -> Estimate:
    return Estimate(row[name], row[f"{name}_low"], row[f"{name}_high"], row["n"])


def _near(page: Metrics, rows: Rows) -> Drawing | None:
    found = [
        (title, _person(page, row), Estimate(row[name], None, None, row["n"]))
        for row in rows[: metrics.MOST_GROUPS]
        if row["rater"]
        for name, title in SIDES.items()
    ]
    caption = (
        "On what share of the items the person and the evaluator are at least as near to the other"
        " people as each other. Ties count for both."
    )
    return dots.drawing(found, title="At least as near", caption=caption, series="Of")


def _person(page: Metrics, row: Row) -> str:
    """A person and a group, of which metric, and on further lines which run."""
    run = cells.name(page.runs[row["run"]], ": ")
    who = ", ".join(part for part in (row["rater"] or MEAN, page.group(row)) if part)
    is_told = page.asked.query.get("metric")
    return f"{who}: {run}" if is_told else f"{who}, {page.title_of(row)}: {run}"


VIEWS = (
    metrics.view(
        slug="ceiling",
        title="Human ceiling",
        asks=(Ask("ceiling"),),
        show=ceiling,
        studies={},
        switches=(people.in_chart({name: people.MEASURES[name] for name in MEASURES}),),
        empty=SEVERAL,
    ),
    metrics.view(
        slug="alt-test",
        title="In place of a person",
        asks=(Ask("alt_test"),),
        show=alt_test,
        studies={},
        switches=(EPSILON,),
        empty=SEVERAL,
    ),
    metrics.view(
        slug="majority",
        title="Majority",
        asks=(Ask("majority"),),
        show=majority,
        studies={"003": places("section 3.4, majorities")},
        empty=SEVERAL,
        of_runs=False,
        groups=offered.fields,
    ),
    metrics.view(
        slug=RATINGS,
        title="Ratings",
        asks=(Ask("ratings"),),
        show=ratings,
        studies={},
        empty=SEVERAL,
        of_runs=False,
        groups=offered.fields,
        columns=("metric", "decided"),
        titles={"decided": "Majority"},
    ),
)
