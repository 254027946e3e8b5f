"""Against people, item by item: both numbers, how often they agree, and where they differ."""

from collections import Counter
from collections.abc import Sequence

from django.urls import reverse

from judging.models import Run
from judging.results.views import cells, dot_charts, metrics
from judging.results.views.cells import Cell, Column, RateColumns, Row
from judging.results.views.metrics import MetricPage
from judging.results.views.page_parts import (
    ChartSpec,
    PageQuery,
    Rows,
    TableQuery,
    ViewContent,
    study_figures,
)
from judging.results.views.run_group_tables import FigureColumn

# The most lines and panels shown; downloads have all.
MOST_LINES, MOST_PANELS = 200, 12
AGREEMENT = RateColumns("agreement", n="n", missing="")


def build_scatter(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """The number of items with each pair of numbers."""
    page = MetricPage(asked)
    rows = page.ordered(tables[0])
    figures: tuple[FigureColumn, ...] = (
        (Column("People", "people"), lambda run, row: _number(row["people"])),
        (Column("Evaluator", "evaluator"), lambda run, row: _number(row["evaluator"])),
        (Column("Items", "n"), _pair_cell(page)),
        (
            Column("Share of people's rating", "share"),
            lambda run, row: cells.percent_cell(row["share"]),
        ),
    )
    words = ("Number of items for each pair of human rating and evaluator rating.") + _cut_note(
        rows
    )
    grid = page.build_grid("Pairs of ratings", rows[:MOST_LINES], figures)
    return ViewContent(grid, _draw_circles(page, rows), words)


def build_by_score(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """How often the evaluator gives exactly people's number, by that number."""
    page = MetricPage(asked)
    rows = page.ordered(tables[0])
    figures: tuple[FigureColumn, ...] = (
        (Column("People gave", "score"), lambda run, row: _number(row["score"])),
        (Column("Same rating", "same"), _same_cell(page)),
        (Column("Agreement", "agreement"), _agreement_cell(page)),
    )
    words = (
        "For each human rating, how often the evaluator gives the same one. Both sides need the "
        "same scale. If people give one rating far more often than others, an evaluator that "
        "always gives that rating always agrees on those items."
    )
    return ViewContent(
        page.build_grid("Agreement by human rating", rows, figures),
        _draw_agreement(page, rows),
        words,
    )


def build_items(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """All items with both numbers, the largest differences first."""
    page = MetricPage(asked)
    rows = sorted(page.ordered(tables[0]), key=lambda row: -_distance(page, row))
    figures: tuple[FigureColumn, ...] = (
        (Column("Item", "item", is_number=False), _item),
        (Column("People", "people"), lambda run, row: _number(row["people"])),
        (Column("Mean of labels", "mean"), _mean),
        (Column("Majority", "decided", is_number=False), _decided),
        (Column("Evaluator", "evaluator"), _evaluator),
        (Column("Evaluator minus people", "apart"), _distance_cell(page)),
    )
    words = (
        "People: the final label of the item. The largest differences come first; each row links "
        "to texts, labels and replies."
    ) + _cut_note(rows)
    both = [row for row in page.ordered(tables[0]) if row["evaluator"] is not None]
    pairs = Counter((row["run"], row["metric"], row["people"], row["evaluator"]) for row in both)
    names = ("run", "metric", "people", "evaluator")
    counted = [{**dict(zip(names, pair, strict=True)), "n": n} for pair, n in pairs.items()]
    grid = page.build_grid("Items with both numbers", rows[:MOST_LINES], figures)
    return ViewContent(grid, _draw_circles(page, counted), words)


def _number(value: float | None) -> Cell:
    """A number with at most three significant digits."""
    text = Cell().text if value is None else f"{value:.3g}".replace("-", "−")
    return Cell(text, value)


def _cut_note(rows: Rows) -> str:
    if len(rows) <= MOST_LINES:
        return ""
    return f" The first {MOST_LINES} of {len(rows):,} lines; filter to see the rest."


def _pair_cell(page: MetricPage) -> metrics.CellFunction:
    def cell(run: Run, row: Row) -> Cell:
        sides = {name: row[name] for name in ("people", "evaluator")}
        return cells.count_cell(row["n"], page.items(row, **sides))

    return cell


def _same_cell(page: MetricPage) -> metrics.CellFunction:
    def cell(run: Run, row: Row) -> Cell:
        href = page.items(row, people=row["score"], evaluator=row["score"])
        return cells.count_cell(row["same"], href)

    return cell


def _agreement_cell(page: MetricPage) -> metrics.CellFunction:
    return lambda run, row: cells.rate_cell(
        row, AGREEMENT, href=page.items(row, people=row["score"])
    )


def _item(run: Run, row: Row) -> Cell:
    page = reverse("run-item", args=[run.project.slug, run.number, row["item"]])
    return Cell(row["item"], row["item"], href=page, is_number=False)


def _mean(run: Run, row: Row) -> Cell:
    if row["mean"] is None:
        return Cell(reason="no counted labels")
    return Cell(cells.number_cell(row["mean"]).text, row["mean"], note=f"of {row['raters']}")


def _decided(run: Run, row: Row) -> Cell:
    if row["decided"] is None:
        return Cell(reason="under two labels", is_number=False)
    return cells.text_cell("yes" if row["decided"] else "no")


def _evaluator(run: Run, row: Row) -> Cell:
    if row["evaluator"] is None:
        return Cell(reason=(row["cause"] or "no number").replace("_", " "))
    note = "off the scale" if row["off_scale"] else ""
    return Cell(_number(row["evaluator"]).text, row["evaluator"], note=note)


def _distance(page: MetricPage, row: Row) -> float:
    """The absolute difference; a number below 0 if the difference is undefined."""
    apart = _difference(page.runs[row["run"]], row)
    return -1 if apart is None else abs(apart)


def _distance_cell(page: MetricPage) -> metrics.CellFunction:
    def cell(run: Run, row: Row) -> Cell:
        apart = _difference(run, row)
        return Cell() if apart is None else Cell(f"{apart:+.3g}".replace("-", "−"), apart)

    return cell


def _difference(run: Run, row: Row) -> float | None:
    """The result is None without the evaluator's number, and for a strategy with a scale of its
    own."""
    if row["evaluator"] is None or run.strategy.strategy().frame == "matching":
        return None
    return float(row["evaluator"] - row["people"])


def _draw_circles(page: MetricPage, rows: Rows) -> ChartSpec | None:
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import counted

    panels = dict.fromkeys(_panel(page, row) for row in rows)
    kept = set(list(panels)[:MOST_PANELS])
    counts = [
        counted.PairCount(panel, row["people"], row["evaluator"], row["n"], *_axes(page, row))
        for row in rows
        if (panel := _panel(page, row)) in kept
    ]
    caption = (
        "Human ratings against evaluator ratings. The area of a circle and its number give "
        "the items with that pair. Dashed line: both are equal."
    )
    if len(panels) > len(kept):
        caption += f" The first {MOST_PANELS} of {len(panels)}; filter to see the rest."
    return ChartSpec(counted.draw_circles(counts), caption) if counts else None


def _panel(page: MetricPage, row: Row) -> str:
    groups = page.group(row)
    name = cells.run_name(page.runs[row["run"]], ": ")
    rest = ", ".join(
        part for part in (page.title_of(row), groups, metrics.off_scale_text(row)) if part
    )
    return f"{name}: {rest}"


def _axes(page: MetricPage, row: Row) -> tuple[str, str]:
    """The names of the axes of both sides: the metric, or the run if it has a scale of its own."""
    is_measure = page.runs[row["run"]].strategy.strategy().frame == "matching"
    return row["metric"], f"{row['run']}" if is_measure else row["metric"]


def _draw_agreement(page: MetricPage, rows: Rows) -> ChartSpec | None:
    found = [
        (
            metrics.run_name(page.runs[row["run"]]),
            f"People gave {_number(row['score']).text}: {label}",
            cells.read_estimate(row, AGREEMENT),
        )
        for label, row in page.labelled(rows)
    ]
    caption = (
        "How often the evaluator gives the same rating as people, by rating, with 95 % intervals."
    )
    return dot_charts.draw_dots(found, title="Same rating", caption=caption)


VIEWS = (
    metrics.metric_view(
        slug="by-score",
        title="By score",
        asks=(TableQuery("by_score"),),
        build=build_by_score,
        studies={"003": study_figures("section 4.3, agreement by score")},
    ),
    metrics.metric_view(
        slug="scatter",
        title="Scatter",
        asks=(TableQuery("pairs"),),
        build=build_scatter,
        studies={},
    ),
    metrics.metric_view(
        slug=metrics.ITEMS_PARAMETER,
        title="Items",
        asks=(TableQuery("points"),),
        build=build_items,
        studies={"002": study_figures("figure 3", "figure 5", "tables A1 to A6")},
        columns=("metric", "people", "evaluator", "decided", "cause"),
        titles={"people": "People gave", "evaluator": "Evaluator gave", "decided": "Majority"},
    ),
)
