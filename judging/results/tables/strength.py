"""Do stronger models detect errors better? The table `strength` correlates precision and recall of
evaluators with outside ratings of their models, the table `strength_points` has what it correlates,
and the view Outside ratings of the page Detector shows both (study 001, tables 9 and 10, figures 5
and 9).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from annotation.models import Project
from annotation.reports.grouping import Grouping
from judging.models import Run
from judging.results import (
    cells,
    columns,
    detector_verdicts,
    detectors,
    group_fields,
    lines,
    progress,
)
from judging.results.cells import Cell, Header, Row
from judging.results.columns import Table
from judging.results.detector_verdicts import OTHER_ITEMS_REASON, DetectorLine
from judging.results.detectors import MEAN
from judging.results.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    Switch,
    TableQuery,
    study_figures,
)
from stats import correlation, detection
from stats.estimates import Estimate, PValue

CORRELATED: tuple[Literal["precision", "recall"], ...] = ("precision", "recall")
CORRELATIONS = {
    "pearson": correlation.pearson_of_units,
    "rho": correlation.spearman_of_units,
}
# An evaluator without ratings stands in the points under this name.
UNRATED = None


def tabulate_points(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Compute the rows of the table `strength_points`: precision and recall of each evaluator with
    each outside rating of its endpoint, for each strategy and group of items. `rating` is None for
    an endpoint without ratings.

    The strategy `mean` is the mean over the four prompts, as in `detector`. If an endpoint has
    several runs of one strategy over a group, the last one counts. `low` and `high` are the ends of
    the 95 % intervals of `detector_ranges`. Raises `UnknownField`.
    """
    ratings = {run.endpoint.name: run.endpoint.ratings for run in runs}
    said = detectors.load_verdicts(runs, detectors.check_groupings(project, by))
    last: dict[tuple[Any, ...], DetectorLine] = {}
    for line in detector_verdicts.build_lines(runs, said, by):
        last[line.strategy, tuple(line.group.values()), line.runs[0].endpoint.name] = line
    for (strategy, _, endpoint), line in progress.iterate(sorted(last.items()), "rating"):
        rates, reason = _estimate_rates(line)
        for rating in ratings[endpoint] or [dict.fromkeys(("name", "value", "source", "date"))]:
            yield {
                "strategy": strategy,
                "rating": rating["name"],
                **line.group,
                "endpoint": endpoint,
                "rating_value": rating["value"],
                "source": rating["source"],
                "date": rating["date"],
                "n": line.n,
                **{
                    f"{name}{end}": getattr(found, part)
                    for name, found in rates.items()
                    for end, part in (("", "value"), ("_low", "low"), ("_high", "high"))
                },
                "reason": reason or None,
            }


def _estimate_rates(line: DetectorLine) -> tuple[dict[str, Estimate], str]:
    """Precision and recall as in `detector`, with their intervals, and what there is to say of
    both."""
    counts = [detection.count_verdicts(one[:2] for one in said.values()) for said in line.said]
    scores = detection.mean_scores([detection.compute_scores(one) for one in counts])
    values = {name: None if line.reason else getattr(scores, name) for name in CORRELATED}
    reason = line.reason or scores.reason
    if line.reason or line.other_items:
        points: dict[str, Estimate] = {
            name: Estimate(value, None, None, line.n) for name, value in values.items()
        }
        return points, reason or OTHER_ITEMS_REASON
    items = line.common
    truths = [line.said[0][item].is_error for item in items]
    verdicts = [[said[item].verdict for said in line.said] for item in items]
    clusters = [line.said[0][item].cluster for item in items]
    found = {name: detection.estimate_rate(name, truths, verdicts, clusters) for name in CORRELATED}
    reasons = dict.fromkeys([reason, *(one.reason for one in found.values())])
    return {
        name: Estimate(values[name], one.low, one.high, line.n) for name, one in found.items()
    }, "; ".join(filter(None, reasons))


def tabulate(project: Project, runs: Sequence[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    """Compute the rows of the table `strength`: for each strategy, rating and group of items, how
    precision and recall go along with the rating over `n` evaluators. `left_out` counts the other
    evaluators of the row's strategy and group, which lack the rating, or the figure. Raises
    `UnknownField`.
    """
    return correlate(tabulate_points(project, runs, by), by)


def correlate(points: Iterable[Row], by: Sequence[str]) -> list[dict[str, Any]]:
    """The correlations over rows of `strength_points`.

    Pearson's r and Spearman's rho have an interval and a two-sided p, for evaluators as independent
    units (`stats.correlation`).
    """
    groups: dict[tuple[Any, ...], dict[str | None, dict[str, Row]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for row in points:
        groups[row["strategy"], *(row[name] for name in by)][row["rating"]][row["endpoint"]] = row
    found = []
    for (strategy, *group), by_rating in groups.items():
        evaluators = {endpoint for rows in by_rating.values() for endpoint in rows}
        for rating in sorted(name for name in by_rating if name is not UNRATED):
            rows = list(by_rating[rating].values())
            for name in CORRELATED:
                found.append(
                    {
                        "strategy": strategy,
                        "rating": rating,
                        **dict(zip(by, group, strict=True)),
                        "measure": name,
                        **_correlate_figure(rows, name, len(evaluators)),
                    }
                )
    return found


def _correlate_figure(rows: Sequence[Row], name: str, evaluators: int) -> dict[str, Any]:
    there = [row for row in rows if row[name] is not None]
    rated, values = ([row[one] for row in there] for one in ("rating_value", name))
    found: dict[str, Any] = {"n": len(there), "left_out": evaluators - len(there)}
    for kind, of in CORRELATIONS.items():
        value, p = of(rated, values)
        found |= _figure_columns(kind, value, p)
    return found


def _figure_columns(kind: str, found: Estimate, p: PValue) -> dict[str, Any]:
    return {
        kind: found.value,
        f"{kind}_low": found.low,
        f"{kind}_high": found.high,
        f"{kind}_p": p.p,
        f"{kind}_reason": found.reason or None,
    }


def _list_ratings(project: Project, runs: Sequence[Run]) -> list[Any]:
    return sorted((run.endpoint.name, run.endpoint.ratings) for run in runs)


def _correlation(kind: str, title: str) -> tuple[columns.Column, ...]:
    return (
        columns.Figure(kind, title, signed=True),
        *columns.plain(f"{kind}_low", f"{kind}_high"),
        columns.PValue(f"{kind}_p", f"p of {title}", reason=f"{kind}_reason"),
        columns.Column(f"{kind}_reason"),
    )


MEASURE_TITLES = {"precision": "Precision", "recall": "Recall"}
STRENGTH = Table(
    "strength",
    (
        columns.Column("strategy"),
        columns.Text("rating", "Rating"),
        columns.FIELDS,
        columns.Text("measure", "Figure", write=lambda row: MEASURE_TITLES[row["measure"]]),
        columns.Count("n", "Evaluators"),
        columns.Count("left_out", "Left out", unit="no rating or no figure"),
        *_correlation("pearson", "Pearson r"),
        *_correlation("rho", "Spearman ρ"),
    ),
    tabulate,
    group_by=detectors.BY_ITEM_FIELDS,
    of_people=False,
    settings=_list_ratings,
    about="A row per strategy, outside rating, group and figure: how precision and recall go "
    "along with the rating over the evaluators.",
    meanings={
        "strategy": "name of the strategy, or `mean` over the four prompts of an evaluator",
        "rating": "name of the outside rating, for example of a leaderboard",
        "measure": "`precision` or `recall`",
        "n": "number of evaluators that have both the rating and the figure",
        "left_out": "number of evaluators of the strategy and group that lack the rating or the "
        "figure",
        "pearson": "Pearson correlation of the rating with the figure over evaluators",
        "pearson_p": "two-sided p of this correlation, not adjusted",
        "rho": "Spearman rank correlation of the rating with the figure",
        "rho_p": "two-sided p of this correlation, not adjusted",
    },
)
POINTS = Table(
    "strength_points",
    (
        *columns.plain("strategy", "rating"),
        columns.FIELDS,
        *columns.plain("endpoint", "rating_value", "source", "date", "n"),
        *columns.plain("precision", "precision_low", "precision_high"),
        *columns.plain("recall", "recall_low", "recall_high", "reason"),
    ),
    tabulate_points,
    group_by=detectors.BY_ITEM_FIELDS,
    of_people=False,
    settings=_list_ratings,
    about="A row per strategy, outside rating, group and evaluator: its rating, precision and "
    "recall.",
    meanings={
        "strategy": "name of the strategy, or `mean` over the four prompts of an evaluator",
        "rating": "name of the outside rating; empty for an evaluator without ratings",
        "rating_value": "value of the rating for the model of the evaluator",
        "source": "where the value comes from",
        "date": "date of the value",
        "n": "number of items",
        "precision": "precision, as in the table `detector`",
        "recall": "recall, as in the table `detector`",
    },
)
ASKED_SWITCH = Switch(
    "rows", "Evaluators by", {"detectors": "Mean over prompts", "runs": "Each strategy"}
)


class _Groups(columns.Leading):
    """The row's groups, and its strategy."""

    def __init__(self, asked: PageQuery, rows: Sequence[Row]) -> None:
        super().__init__(asked, rows)
        self.fields = asked.fields()

    def headers(self) -> list[Header]:
        named = [
            Header(self.asked.groups.get(one, one), one, is_number=False) for one in self.fields
        ]
        return [*named, Header("Strategy", "strategy", is_number=False)]

    def cells(self, row: Row) -> list[Cell]:
        return [*map(cells.text_cell, self.titles(row)), cells.text_cell(_title_strategy(row))]

    def titles(self, row: Row) -> list[str]:
        """The titles of the row's groups."""
        return [self.asked.group_title(one, row[one]) for one in self.fields]


def _title_strategy(row: Row) -> str:
    return "Mean of the four prompts" if row["strategy"] == MEAN else row["strategy"]


def _select(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    """The rows of the means over prompts if there are any, or those of each strategy; each with its
    points. Groups are in the order of their fields' values."""
    wants_means = asked.switch_value(ASKED_SWITCH.name) != "runs"
    rows = [row for row in tables[0] if (row["strategy"] == MEAN) == wants_means]
    fields = asked.fields()
    points: dict[tuple[Any, ...], Rows] = defaultdict(list)
    for point in tables[1]:
        points[_key(fields, point)].append(point)
    orders = [Grouping(name, name, asked.categories) for name in fields]

    def place(row: Row) -> Any:
        return row["rating"], [one.place_of(row[one.name] or "") for one in orders]

    chosen = rows or [row for row in tables[0] if row["strategy"] != MEAN]
    return [{**row, "of_points": points[_key(fields, row)]} for row in sorted(chosen, key=place)]


def _key(fields: Sequence[str], row: Row) -> tuple[Any, ...]:
    return row["strategy"], row["rating"], *(row[name] for name in fields)


def _draw(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    """The points of the first rating; other ratings can be chosen above."""
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import strength

    first = next((row["rating"] for row in rows), "")
    drawn = [row for row in rows if row["rating"] == first]
    page = _Groups(asked, drawn)
    several = len({row["strategy"] for row in drawn}) > 1
    found = [
        strength.RatedPoint(
            ", ".join((*page.titles(row), *([_title_strategy(row)] if several else []))) or "All",
            MEASURE_TITLES[row["measure"]],
            point["endpoint"],
            point["rating_value"],
            point[row["measure"]],
            point[f"{row['measure']}_low"],
            point[f"{row['measure']}_high"],
            point["n"],
        )
        for row in drawn
        for point in row["of_points"]
        if point[row["measure"]] is not None
    ]
    if not found:
        return None
    caption = f"Precision and recall of each evaluator against {first}, with 95 % intervals."
    if len({row["rating"] for row in rows}) > 1:
        caption += " Choose another rating above."
    return ChartSpec(strength.draw_strength(found, rating=first), caption)


VIEW = ResultView(
    slug="strength",
    title="Outside ratings",
    asks=(TableQuery(STRENGTH), TableQuery(POINTS)),
    figures=("outside_ratings", "detector"),
    build=lines.Lines(
        STRENGTH,
        "Correlation with outside ratings",
        ("rating", "measure", "n", "left_out", "pearson", "pearson_p", "rho", "rho_p"),
        "How precision and recall of the evaluators go along with a rating of their models: 1 in "
        "step, −1 in opposite directions. Each evaluator is one point. p is two-sided and not "
        "adjusted for the number of lines, as in study 001, whose stars are p < 0.05. Intervals "
        "and p are about further evaluators like these.",
        _draw,
        _select,
        _Groups,
    ),
    studies={
        "001": study_figures(
            "table 9", "table 10", "figure 5", "figure 9", by=("task", "response_model")
        )
    },
    empty="No evaluator of the chosen runs has an outside rating. A site admin enters ratings on "
    "the page of an endpoint, under Edit. Precision and recall need runs with error detection, for "
    "example detect-1a, over items labelled error or no error.",
    switches=(ASKED_SWITCH,),
    groups=group_fields.list_fields,
    columns=("rating",),
)
