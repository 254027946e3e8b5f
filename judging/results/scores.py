"""Scores of runs by category: compared with gold, in bins below the top, and by score change.

Study 000, tables 6 to 10 and 18 (gold and perturbed answer scored apart), 16, 17 and 20 (bins).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from judging.models import Outcome, Run
from judging.results import counted
from judging.results.counted import GroupSums, json_number, one_if
from judging.strategies import Strategy

DIRECTIONS = ("lower", "equal", "higher")
BINS = {"top": "top", "top1": "top-1", "top2": "top-2", "low": "lower"}
COLUMNS = (
    "parsed", *DIRECTIONS, "mean_gold", "mean_pert", *BINS, "gold_at_bottom", "gold_at_top",
    "bottom", "at_top", "score_invariant",
)  # fmt: skip
CHANGE_COLUMNS = ("parsed", "change", "n", "share", "score_invariant")
FRAMES = ("single", "reference")
GOLD, PERTURBED = "gold", "perturbed"
_NEAR = 1e-9


def tabulate_scores(runs: Iterable[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    """The table `scores`, one row per run and group, with the fields of `counted.sum_outcomes`.

    If gold and perturbed answers are scored apart, there are counts of lower / equal / higher, both
    means over parsed items, and the number of gold scores at either end of the scale, where no
    further change is visible. If perturbed answers are scored against gold, there are the bins
    below the top and no gold scores. Columns that do not apply are None. An item with repeats
    counts where most of its repeats are, with the mean score.
    """
    frames = _scoring_strategies(runs)
    chosen = [run for run in runs if run.pk in frames]
    found = counted.sum_outcomes(chosen, by, counts=_count_sql(frames))
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
        "sum_gold": f"CASE WHEN {parsed} THEN {gold} ELSE 0 END",
        "sum_pert": f"CASE WHEN {parsed} THEN {perturbed} ELSE 0 END",
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
    return {
        **found.head(),
        "parsed": found.parsed,
        **{name: counts[name] if apart else None for name in DIRECTIONS},
        "mean_gold": counts["sum_gold"] / found.parsed if scored and apart else None,
        "mean_pert": counts["sum_pert"] / found.parsed if scored else None,
        **{name: None if apart else counts[name] for name in BINS},
        "gold_at_bottom": counts["gold_at_bottom"] if scored and apart and scale else None,
        "gold_at_top": counts["gold_at_top"] if scored and apart and scale else None,
        "bottom": scale.low if scale else None,
        "at_top": scale.high if scale else None,
        "score_invariant": found.invariant,
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
