"""How are answers scored? The tables `scores` (compared with gold, and in bins below the top) and
`score_changes`, views of By category, and the page Reference (study 000, tables 16, 17 and 20)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from judging.models import Outcome, Run
from judging.results import chart_parts, columns, counted, lines
from judging.results.cells import Cell, Row
from judging.results.counted import GroupSums, json_number, one_if
from judging.results.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    StudyFigure,
    TableQuery,
    ViewContent,
)
from judging.results.tables.undetected import RATE_BESIDE, UNDETECTED, with_undetected
from judging.strategies import Strategy
from stats import means
from stats.estimates import Estimate

DIRECTIONS = ("lower", "equal", "higher")
BINS = {"top": "top", "top1": "top-1", "top2": "top-2", "below_top2": "lower"}
FRAMES = ("single", "reference")
GOLD, PERTURBED = "gold", "perturbed"
_NEAR = 1e-9
MEANS = ("mean_gold", "mean_pert", "mean_change")
NO_SCORES, NO_GOLD_SCORES = "no scores of its own", "gold answers are not scored"


def tabulate_scores(runs: Iterable[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    """The table `scores`, one row per run and group, with the fields of `counted.sum_outcomes`.

    If gold and perturbed answers are scored apart, there are counts of lower / equal / higher, both
    means over parsed items, the mean change (perturbed minus gold), and the number of gold scores
    at either end of the scale, where no further change is visible. The means have intervals
    clustered by question, see `means.mean_of_sums`. If perturbed answers are scored against gold,
    there are the bins below the top and no gold scores. Columns that do not apply are None. An item
    with repeats counts where most of its repeats are, with the mean score.
    """
    frames = _scoring_strategies(runs)
    chosen = [run for run in runs if run.pk in frames]
    found = counted.sum_outcomes(chosen, by, rates=_mean_sql(), counts=_count_sql(frames))
    return [_row(sums, frames[sums.run.pk]) for sums in found]


def tabulate_changes(runs: Iterable[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    """The table `score_changes`: the number of parsed items, scored apart, for each score change.

    `change` is perturbed minus gold, to the nearest step of the scale (to the nearest whole number
    without a step); `share` is among the `parsed` items.
    """
    frames = {
        pk: strategy
        for pk, strategy in _scoring_strategies(runs).items()
        if strategy.frame == "single"
    }
    chosen = [run for run in runs if run.pk in frames]
    totals = counted.sum_outcomes(chosen, by)
    steps = _count_by_step(chosen, by, frames)
    return [row for sums in totals for row in _change_rows(sums, steps, frames[sums.run.pk])]


def _scoring_strategies(runs: Iterable[Run]) -> dict[int, Strategy]:
    return {pk: one for pk, one in counted.load_strategies(runs).items() if one.frame in FRAMES}


def _mean_sql() -> dict[str, counted.RateSql]:
    """Which items count in each mean, and their values."""
    gold, perturbed, parsed = json_number(GOLD), json_number(PERTURBED), counted.PARSED_SQL
    both = f"{parsed} AND {perturbed} IS NOT NULL AND {gold} IS NOT NULL"
    return {
        "mean_gold": (f"{parsed} AND {gold} IS NOT NULL", gold),
        "mean_pert": (f"{parsed} AND {perturbed} IS NOT NULL", perturbed),
        "mean_change": (both, f"{perturbed} - {gold}"),
    }


def _count_sql(frames: Mapping[int, Strategy]) -> dict[str, str]:
    details = {**{name: name for name in DIRECTIONS}, **BINS}
    gold, perturbed = json_number(GOLD), json_number(PERTURBED)
    ends = {
        "gold_at_bottom": f"{gold} <= {_scale_end_sql(frames, 'low')} + {_NEAR}",
        "gold_at_top": f"{gold} >= {_scale_end_sql(frames, 'high')} - {_NEAR}",
    }
    parsed = counted.PARSED_SQL
    return {
        **{name: one_if(f"{parsed} AND o.detail = '{detail}'") for name, detail in details.items()},
        **{name: one_if(f"{parsed} AND {end}") for name, end in ends.items()},
        "with_pert": one_if(f"{parsed} AND {perturbed} IS NOT NULL"),
    }


def _scale_end_sql(frames: Mapping[int, Strategy], name: str) -> str:
    """SQL for one end of each run's scale; null without a scale."""
    ends = {pk: getattr(one.scale, name) for pk, one in frames.items() if one.scale}
    cases = " ".join(f"WHEN {pk} THEN {float(end)!r}" for pk, end in ends.items())
    return f"CASE o.run_id {cases} END" if cases else "NULL"


def _row(found: GroupSums, strategy: Strategy) -> dict[str, Any]:
    counts, apart = found.counts, strategy.frame == "single"
    # A vote has no scores of its own.
    scored = counts["with_pert"] == found.parsed and found.parsed > 0
    scale = strategy.scale
    kept = MEANS if scored and apart else ("mean_pert",) if scored else ()
    reason = NO_SCORES if not scored else NO_GOLD_SCORES
    beside: dict[str, Any] = {}
    for name in MEANS:
        none = Estimate(None, None, None, 0, reason)
        mean = means.mean_of_sums(found.rates[name]) if name in kept else none
        beside |= counted.figure_columns(name, mean)
    return {
        **found.head(),
        "parsed": found.parsed,
        **{name: counts[name] if apart else None for name in DIRECTIONS},
        **{name: beside.pop(name) for name in MEANS},
        **{name: None if apart else counts[name] for name in BINS},
        "gold_at_bottom": counts["gold_at_bottom"] if scored and apart and scale else None,
        "gold_at_top": counts["gold_at_top"] if scored and apart and scale else None,
        "bottom": scale.low if scale else None,
        "at_top": scale.high if scale else None,
        "score_invariant": found.invariant,
        **beside,
    }


Key = tuple[Any, ...]


def _count_by_step(
    runs: Sequence[Run], by: Sequence[str], frames: Mapping[int, Strategy]
) -> dict[Key, dict[int, int]]:
    """Count the items of each run and group by how many steps their score moved."""
    if not runs:
        return {}
    names = ", ".join(f"o.{name}" for name in ("run_id", *by, "invariant"))
    sizes = " ".join(f"WHEN {run.pk} THEN {_scale_step(frames[run.pk])!r}" for run in runs)
    moved = f"({json_number(PERTURBED)} - {json_number(GOLD)}) / CASE o.run_id {sizes} END"
    statement = f"""
        SELECT {names}, FLOOR({moved} + 0.5) AS steps, COUNT(*) AS n
        FROM {Outcome._meta.db_table} AS o
        WHERE {counted.counted_condition(run.pk for run in runs)} AND {counted.PARSED_SQL}
            AND {moved} IS NOT NULL {counted.separate_condition(by)}
        GROUP BY {names}, FLOOR({moved} + 0.5)
    """
    found: dict[Key, dict[int, int]] = {}
    for row in counted.fetch_dicts(statement):
        key = (row["run_id"], *(row[name] for name in by), bool(row["invariant"]))
        found.setdefault(key, {})[int(row["steps"])] = int(row["n"])
    return found


def _scale_step(strategy: Strategy) -> float:
    return float(strategy.scale.step or 1) if strategy.scale else 1.0


def _change_rows(
    found: GroupSums, steps: Mapping[Key, Mapping[int, int]], strategy: Strategy
) -> Iterable[dict[str, Any]]:
    moved = steps.get((found.run.pk, *found.group.values(), found.invariant), {})
    for place, n in sorted(moved.items()):
        change = place * _scale_step(strategy)
        yield {
            **found.head(),
            "parsed": found.parsed,
            "change": int(change) if change.is_integer() else change,
            "n": n,
            "share": n / found.parsed,
            "score_invariant": found.invariant,
        }


SCORES = columns.summed_table(
    "scores",
    tabulate_scores,
    columns.Column("total"),
    columns.MISSING,
    columns.PARSED,
    columns.detail_share("lower", "Lower"),
    columns.detail_share("equal", "Equal"),
    columns.detail_share("higher", "Higher"),
    columns.Figure("mean_gold", "Mean of gold"),
    columns.Figure("mean_pert", "Mean of perturbed"),
    columns.Figure("mean_change", "Mean change"),
    columns.detail_share("top", "Top"),
    columns.detail_share("top1", "One below the top", BINS["top1"]),
    columns.detail_share("top2", "Two below the top", BINS["top2"]),
    columns.detail_share("below_top2", "Lower", BINS["below_top2"]),
    columns.Share(
        "gold_at_bottom",
        "At the lowest score",
        columns.items(result="parsed", gold_to="{bottom:g}"),
    ),
    columns.Share(
        "gold_at_top",
        "At the highest score",
        columns.items(result="parsed", gold_from="{at_top:g}"),
    ),
    columns.Column("bottom"),
    columns.Custom(
        "at_top",
        "Scale",
        make=lambda row, of: Cell(f"{row['bottom']:g} to {row['at_top']:g}", row["at_top"]),
    ),
    columns.Column("score_invariant"),
    *columns.plain(*(f"{name}_{end}" for name in MEANS for end in ("low", "high", "reason"))),
    about="A row per run and group: whether the perturbed answer scores lower than the gold "
    "answer, equal or higher, the mean scores, and the ends of the scale.",
    meanings={
        "lower": "number of parsed items whose perturbed answer scored lower than the gold "
        "answer, so that the error was detected (with repeats, in most of them); empty if only "
        "perturbed answers are scored",
        "equal": "number of parsed items whose two answers have equal scores; empty if only "
        "perturbed answers are scored",
        "higher": "number of parsed items whose perturbed answer scored higher; empty if only "
        "perturbed answers are scored",
        "mean_gold": "mean score of the gold answers of the parsed items, in points of the scale",
        "mean_pert": "mean score of the perturbed answers of the parsed items, in points of the "
        "scale",
        "mean_change": "mean of the perturbed score minus the gold score, in points of the scale",
        "top": "number of parsed items whose perturbed answer got the highest score, so that the "
        "error was not detected; only if the evaluator sees the gold answer as a reference",
        "top1": "the same with a score one step below the highest",
        "top2": "the same with a score two steps below",
        "below_top2": "the same with a lower score than these",
        "gold_at_bottom": "number of parsed items whose gold answer has the lowest score, so that "
        "no perturbed answer could score lower",
        "gold_at_top": "number of parsed items whose gold answer has the highest score",
    },
)
SCORE_CHANGES = columns.summed_table(
    "score_changes",
    tabulate_changes,
    columns.Column("total"),
    columns.MISSING,
    columns.PARSED,
    *columns.plain("change", "n", "share", "score_invariant"),
    about="A row per run, group and difference of the two scores: how many items have it.",
    meanings={
        "change": "perturbed score minus gold score, rounded to the nearest step of the scale, or "
        "to a whole number if it has no steps",
        "n": "number of parsed items with this change",
        "share": "n divided by parsed",
    },
)
# Scales with more steps show only the steps that occur.
MOST_STEPS = 40


def _having(name: str) -> Callable[[PageQuery, Sequence[Rows]], Rows]:
    """Select the rows that have a value in this column."""
    return lambda asked, tables: [row for row in tables[0] if row[name] is not None]


def _between(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    """The rows with gold scores, with the number of those at neither end of the scale."""
    return [
        {**row, "between": row["parsed"] - row["gold_at_bottom"] - row["gold_at_top"]}
        for row in _having("gold_at_top")(asked, tables)
    ]


def _margin(row: Row) -> float:
    """A distance from the ends of the scale that keeps the scores there out."""
    return float((row["at_top"] - row["bottom"]) / 10**4)


BETWEEN = columns.Share(
    "between",
    "Between",
    columns.items(
        result="parsed",
        gold_from=lambda row: f"{row['bottom'] + _margin(row):g}",
        gold_to=lambda row: f"{row['at_top'] - _margin(row):g}",
    ),
)


def build_changes(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """Score differences between perturbed and gold answer, only for runs with a scale: a text
    length, for example, has too many steps."""
    scales = {run.number: run.pinned_strategy().scale for run in asked.runs}
    rows = [row for row in tables[0] if scales[row["run"]]]
    steps = sorted({row["change"] for row in rows})
    none = {f"moved{step:g}": 0 for step in steps}
    # One row per run and group, with the number of items by score difference.
    merged: dict[object, dict[str, Any]] = {}
    for row in rows:
        half = float(getattr(scales[row["run"]], "step", None) or 1) / 2
        one = merged.setdefault(lines.row_key(row), {**row, **none, "half_step": half})
        one[f"moved{row['change']:g}"] = row["n"]
    words = "Perturbed minus gold score, in scale points. Below 0: the error was detected."
    if len(rows) < len(tables[0]):
        words += " Runs without a scale are not shown here; their values are in the downloads."
    build = lines.Lines(
        SCORE_CHANGES,
        "Score differences",
        ("parsed", "missing", *map(_moved, steps)),
        words,
    )
    shown = build(asked, [list(merged.values())])
    return replace(shown, drawing=_draw_strips(asked, rows, fill_steps(steps)))


def _moved(step: float) -> columns.Share:
    """A column with a link to the items with this score change, rounded to the nearest step of the
    run's scale."""
    return columns.Share(
        f"moved{step:g}",
        _format_signed(step),
        columns.items(
            result="parsed",
            moved_from=lambda row: f"{step - row['half_step']:g}",
            moved_below=lambda row: f"{step + row['half_step']:g}",
        ),
    )


def fill_steps(steps: Sequence[float]) -> Sequence[float]:
    """All steps from the lowest to the highest. Whole steps that do not occur are added unless
    there would be too many."""
    if not steps or any(step != int(step) for step in steps):
        return steps
    every = range(int(steps[0]), int(steps[-1]) + 1)
    return list(every) if len(every) <= MOST_STEPS else steps


def _format_signed(step: float) -> str:
    return f"{step:+g}".replace("-", "−") if step else "0"


def _draw_strips(asked: PageQuery, rows: Rows, steps: Sequence[float]) -> ChartSpec | None:
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import strips

    named = [(lines.chart_label(asked, row), row) for row in rows]
    every = list(dict.fromkeys(label for label, _ in named))
    shown = set(every[: chart_parts.MOST_BARS])
    found = [
        strips.StepShare(label, row["change"], row["share"], row["n"])
        for label, row in named
        if label in shown
    ]
    caption = "Score differences (perturbed minus gold), as shares of parsed items."
    caption += chart_parts.cut_note(len(every))
    drawn = strips.draw_strips(found, steps=steps, title="Perturbed minus gold")
    return ChartSpec(drawn, caption) if found else None


NO_SCORES = (
    "None of the chosen runs scored gold and perturbed answers separately. Choose a run with "
    "such a strategy, for example vanilla, rubric or axis."
)
_NO_SCALE = NO_SCORES.replace("separately.", "separately on a scale.")
BY_CATEGORY = (
    ResultView(
        slug="scores",
        title="Lower, equal, higher",
        asks=(TableQuery(SCORES),),
        figures=("mean_scores",),
        build=lines.Lines(
            SCORES,
            "Scores compared with gold",
            ("parsed", "missing", "lower", "equal", "higher", *MEANS),
            "Score of the perturbed answer compared with the gold answer. Lower counts as "
            "detected; equal and higher as undetected. On score-invariant items, lower is a "
            "false alarm.",
            lines.Stacked(
                ("lower", "equal", "higher"),
                "Share of items",
                "Scores of perturbed answers compared with gold",
            ),
            _having("lower"),
        ),
        studies={},
        empty=NO_SCORES,
        switches=(lines.group_switch(),),
    ),
    ResultView(
        slug="changes",
        title="Score differences",
        asks=(TableQuery(SCORE_CHANGES),),
        build=build_changes,
        studies={},
        empty=_NO_SCALE,
        switches=(lines.group_switch(),),
    ),
    ResultView(
        slug="ends",
        title="Ends of the scale",
        asks=(TableQuery(SCORES),),
        build=lines.Lines(
            SCORES,
            "Gold scores at the ends of the scale",
            ("parsed", "missing", "at_top", "gold_at_bottom", BETWEEN, "gold_at_top"),
            "Gold answers that got the lowest or highest score. If gold has the lowest score, no "
            "lower score is possible, so an error cannot be detected.",
            lines.Stacked(
                {
                    "gold_at_bottom": "At the lowest score",
                    "between": "Between",
                    "gold_at_top": "At the highest score",
                },
                "Share of gold answers",
                "Scores of gold answers: lowest, between, highest",
            ),
            _between,
        ),
        studies={},
        empty=_NO_SCALE,
        switches=(lines.group_switch(),),
    ),
)


def _with_reference(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    return [row for row in with_undetected(asked, tables) if row["top"] is not None]


_BY = ("ability", "category")
REFERENCE = (
    ResultView(
        slug="bins",
        title="Bins of the scale",
        asks=(TableQuery(SCORES), TableQuery(UNDETECTED)),
        figures=("rate",),
        build=lines.Lines(
            SCORES,
            "Bins of the scale",
            ("parsed", "missing", "below_top2", "top2", "top1", "top", RATE_BESIDE),
            "The answer is scored with the gold answer as reference. The top score counts as "
            "undetected, anything below as detected. On score-invariant items the top score is "
            "correct.",
            lines.Stacked(
                ("below_top2", "top2", "top1", "top"),
                "Share of items",
                "Scores with a reference, by distance below the top",
            ),
            _with_reference,
        ),
        studies={
            "000": (
                StudyFigure("table 16", ("reference",), _BY),
                StudyFigure("table 17", ("prometheus", "prometheus-axis"), _BY),
                StudyFigure("table 20", ("reference",), _BY),
            )
        },
        empty=(
            "None of the chosen runs scored answers with a gold reference. Choose a run with such "
            "a strategy, for example reference or prometheus."
        ),
        switches=(lines.group_switch(),),
        table_first=True,
    ),
)
