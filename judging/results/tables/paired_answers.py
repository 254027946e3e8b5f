"""Which pairs of numbers do people and an evaluator give? The tables `pairs` and `by_score`, and
their views of the page Against people."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from annotation.models import Project
from judging.models import Run
from judging.results import (
    cells,
    chart_parts,
    columns,
    correlations,
    lines,
    metric_lines,
    paired_scores,
)
from judging.results.cells import Cell, Row
from judging.results.columns import Table
from judging.results.metric_lines import Metrics, metric_view, select_ordered
from judging.results.page_parts import (
    ChartSpec,
    PageQuery,
    Rows,
    TableQuery,
    study_figures,
)
from stats import majority


def tabulate_pairs(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The table `pairs`: how many items have each pair of numbers. (Drawn as points, such items
    would hide each other.) `share` is the share among items with the same number from people.
    Raises `UnknownField`."""
    for named, sides in correlations.split_scores(project, runs, by):
        both = sides.both
        pairs = Counter(
            zip(sides.people[both].tolist(), sides.evaluator[both].tolist(), strict=True)
        )
        of_people = Counter(sides.people[both].tolist())
        for (people, evaluator), n in sorted(pairs.items()):
            pair = {"people": people, "evaluator": evaluator, "n": n}
            yield {**named, **pair, "share": n / of_people[people]}


def tabulate_by_score(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The table `by_score`: how often the evaluator gives exactly people's number, by that number,
    for example on items with 1 or on items with 3 (study 003, section 4.3).

    `n` items have both numbers. A metric has rows only if both sides have the same scale. Raises
    `UnknownField`.
    """
    for named, sides in correlations.split_scores(project, runs, by):
        if not sides.metric.is_comparable:
            continue
        found = majority.agreement_by_score(sides.people, sides.evaluator, sides.cluster)
        for score, one in found.items():
            yield {
                **named,
                "score": score,
                "n": one.n,
                "same": None if one.value is None else round(one.value * one.n),
                "agreement": one.value,
                "low": one.low,
                "high": one.high,
                "reason": one.reason or None,
            }


def write_number(value: float | None) -> Cell:
    """A number with at most three significant digits."""
    text = Cell().text if value is None else f"{value:.3g}".replace("-", "−")
    return Cell(text, value)


def short_number(name: str, title: str) -> columns.Custom:
    """A number with at most three significant digits."""
    return columns.Custom(name, title, make=lambda row, of: write_number(row[name]))


_COUNTED = (*columns.RUN, *columns.plain("total", "missing", "metric"), columns.FIELDS)
_AS_PAIR = columns.items(people="{people}", evaluator="{evaluator}")
PAIRS = Table(
    "pairs",
    (
        *_COUNTED,
        columns.Column("off_scale"),
        short_number("people", "People"),
        short_number("evaluator", "Evaluator"),
        columns.Count("n", "Items", _AS_PAIR),
        columns.Percent("share", "Share of people's rating"),
    ),
    tabulate_pairs,
    group_by=paired_scores.BY_ITEM_FIELDS_AND_LENGTH,
    about="A row per run, metric, group and pair of numbers, people's and the evaluator's: "
    "how many items have it.",
    meanings={
        "total": "number of items of the group with a number from people",
        "missing": "number of items of the group with a number from people, but not from the "
        "evaluator",
        "people": "number that people gave, which is the final label",
        "evaluator": "number that the evaluator gave",
        "n": "number of items with this pair of numbers",
        "share": "n divided by the items with the same number from people and a number from the "
        "evaluator",
    },
)
_AGREEMENT = columns.Rate(
    "agreement",
    "Agreement",
    columns.items(people="{score}", evaluator="{score}"),
    n="n",
    n_link=columns.items(people="{score}", cause=metric_lines.USABLE),
    missing="",
)
BY_SCORE = Table(
    "by_score",
    (
        *_COUNTED,
        columns.Column("off_scale"),
        short_number("score", "People gave"),
        columns.Column("n"),
        columns.Count("same", "Same rating", columns.items(people="{score}", evaluator="{score}")),
        _AGREEMENT,
        *columns.plain("low", "high", "reason"),
    ),
    tabulate_by_score,
    group_by=paired_scores.BY_ITEM_FIELDS_AND_LENGTH,
    about="A row per run, metric, group and number from people: how often the evaluator gives "
    "exactly this number.",
    meanings={
        "total": "number of items of the group with a number from people",
        "missing": "number of items of the group with a number from people, but not from the "
        "evaluator",
        "score": "number that people gave, which is the final label",
        "n": "number of items with the number `score` from people and any number from the "
        "evaluator",
        "same": "number of items for which the evaluator gave exactly this number",
        "agreement": "same divided by n",
    },
)
# The most lines and panels shown; downloads have all.
MOST_LINES, MOST_PANELS = 200, 12


def draw_circles(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import counted

    page = Metrics(asked, rows)
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


def _panel(page: Metrics, row: Row) -> str:
    groups = page.group(row)
    name = cells.run_name(page.runs[row["run"]], ": ")
    rest = ", ".join(
        part for part in (page.title_of(row), groups, metric_lines.off_scale_text(row)) if part
    )
    return f"{name}: {rest}"


def _axes(page: Metrics, row: Row) -> tuple[str, str]:
    """The names of the axes of both sides: the metric, or the run if it has a scale of its own."""
    is_measure = page.runs[row["run"]].strategy.strategy().frame == "matching"
    return row["metric"], f"{row['run']}" if is_measure else row["metric"]


def _draw_agreement(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    page = Metrics(asked, rows)
    found = [
        (
            page.run_name(page.runs[row["run"]]),
            f"People gave {write_number(row['score']).text}: {label}",
            _AGREEMENT.estimate(row),
        )
        for label, row in page.labelled(rows)
    ]
    caption = (
        "How often the evaluator gives the same rating as people, by rating, with 95 % intervals."
    )
    return chart_parts.draw_dots(found, title="Same rating", caption=caption)


VIEWS = (
    metric_view(
        slug="by-score",
        title="By score",
        asks=(TableQuery(BY_SCORE),),
        figures=("rate",),
        build=lines.Lines(
            BY_SCORE,
            "Agreement by human rating",
            ("score", "same", "agreement"),
            "For each human rating, how often the evaluator gives the same one. Both sides need "
            "the same scale. If people give one rating far more often than others, an evaluator "
            "that always gives that rating always agrees on those items.",
            _draw_agreement,
            select_ordered,
            Metrics,
        ),
        studies={"003": study_figures("section 4.3, agreement by score")},
    ),
    metric_view(
        slug="scatter",
        title="Scatter",
        asks=(TableQuery(PAIRS),),
        build=lines.Lines(
            PAIRS,
            "Pairs of ratings",
            ("people", "evaluator", "n", "share"),
            "Number of items for each pair of human rating and evaluator rating.",
            draw_circles,
            select_ordered,
            Metrics,
            MOST_LINES,
        ),
        studies={},
    ),
)
