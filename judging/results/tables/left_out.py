"""Which outcomes are in no figure? The table `left_out`, which is below every result page."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from annotation.items import taxonomy
from annotation.labelling.models.labels import SI_ITEM
from annotation.models import Item
from judging.models import Outcome, Run
from judging.results import columns, counted, frames
from judging.results.arrays import JUDGING_FRAMES
from judging.results.columns import Table
from judging.results.frames import EXPLANATION_FRAME
from judging.runs.models import UNLABELLED
from judging.strategies.frames import get_item_needs


def tabulate_left_out(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """The table `left_out`: the number of outcomes of each run that are in no figure, by reason.

    `pending` outcomes have no result yet; `other_revision` are outcomes whose item has changed
    since it was judged (corrected texts, another final label, excluded from the project, made a
    control item); `unlabelled` are those of items that had no final label then, which only the
    table `corrected` uses. `items` is the number of items that count, and `shared` the number of
    those that count in every run; `shared` is None for checks of explanations, which judge no
    items. Both leave out duplicates where figures do; the columns `..._with_duplicates` include
    them, as tables by ability and category do. `regrouped` counts items that count, but in a
    category that they no longer have. Six queries, and none without a run.
    """
    known = {run.pk: run for run in runs}
    if not known:
        return []
    of_runs = f"o.run_id IN ({', '.join(map(str, known))}) AND o.main"
    pending = _count_by_run(f"{of_runs} AND o.result = 'pending'")
    bare = _count_by_run(f"{of_runs} AND o.result <> 'pending' AND o.truth = '{UNLABELLED}'")
    settled = _count_by_run(f"{of_runs} AND o.result <> 'pending' AND o.truth <> '{UNLABELLED}'")
    total = _total_condition(known.values())
    held = _count_by_run(counted.counted_condition(known), total)
    judging = [
        pk for pk, run in known.items() if run.strategy.strategy().frame != EXPLANATION_FRAME
    ]
    shared = _count_shared(judging, total)
    regrouped = _count_by_run(_regrouped_condition(known.values()), total)
    nothing = _Counts(0, 0)
    return [
        {
            **counted.run_columns(run),
            "pending": pending.get(pk, nothing).every,
            "other_revision": settled.get(pk, nothing).every - held.get(pk, nothing).every,
            "items": held.get(pk, nothing).in_totals,
            "shared": shared.in_totals if pk in judging else None,
            "items_with_duplicates": held.get(pk, nothing).every,
            "shared_with_duplicates": shared.every if pk in judging else None,
            "unlabelled": bare.get(pk, nothing).every,
            "regrouped": regrouped.get(pk, nothing).every,
        }
        for pk, run in known.items()
    ]


class _Counts(NamedTuple):
    """The number of outcomes, and the number of those that are in totals."""

    every: int
    in_totals: int


def _total_condition(runs: Iterable[Run]) -> str:
    """The condition that a counted outcome must also meet to be in totals. For runs with rates it
    needs an ability, which duplicates lack; for ratings and detectors it must not be a
    duplicate."""
    needs = {pk: get_item_needs(one) for pk, one in counted.load_strategies(runs).items()}
    rated = [pk for pk, need in needs.items() if need not in frames.NEEDS_WITHOUT_RATE]
    others = [pk for pk, need in needs.items() if need in ("values", "detection")]
    conditions = [f"(o.run_id NOT IN ({_join(rated)}) OR o.ability <> '')"] * bool(rated)
    original = counted.original_condition()
    conditions += [f"(o.run_id NOT IN ({_join(others)}) OR {original})"] * bool(others)
    return " AND ".join(conditions) or "1 = 1"


def _regrouped_condition(runs: Iterable[Run]) -> str:
    """The condition that an outcome counts in another category than its item would today. Other
    runs than those of perturbed answers are grouped by what the items are today. Score-invariant
    items keep their category only if no change in it costs points."""
    strategies = counted.load_strategies(runs)
    grouped = [pk for pk, strategy in strategies.items() if strategy.frame in JUDGING_FRAMES]
    known = taxonomy.load_taxonomy(next(iter(runs)).project)
    calm = [one.slug for one in known.categories if one.expected_effect == "none"]
    names = ", ".join(f"'{slug}'" for slug in calm) or "NULL"
    today = f"SELECT i.category FROM {Item._meta.db_table} AS i WHERE i.id = o.item_id"
    return (
        f"{counted.counted_condition(grouped or [0])} AND o.category <> ({today})"
        f" AND (o.category <> '{SI_ITEM}' OR ({today}) IN ({names}))"
    )


def _join(ids: Iterable[int]) -> str:
    return ", ".join(map(str, ids))


def _count_by_run(such: str, total: str = "1 = 1") -> dict[int, _Counts]:
    """Count the outcomes of each run that meet the condition `such`, and those that meet `total`
    too."""
    statement = f"""
        SELECT o.run_id, COUNT(*) AS every, SUM({counted.one_if(total)}) AS in_totals
        FROM {Outcome._meta.db_table} AS o WHERE {such} GROUP BY o.run_id
    """
    return {
        row["run_id"]: _Counts(int(row["every"]), int(row["in_totals"]))
        for row in counted.fetch_dicts(statement)
    }


def _count_shared(runs: Sequence[int], total: str) -> _Counts:
    """Count the items that count in all these runs, and those among them that meet `total`."""
    if not runs:
        return _Counts(0, 0)
    in_totals = f"COUNT(DISTINCT CASE WHEN {total} THEN o.run_id END)"
    [row] = counted.fetch_dicts(f"""
        SELECT COUNT(*) AS every, COUNT(CASE WHEN in_totals = {len(runs)} THEN 1 END) AS in_totals
        FROM (
            SELECT o.item_id, {in_totals} AS in_totals FROM {Outcome._meta.db_table} AS o
            WHERE {counted.counted_condition(runs)}
            GROUP BY o.item_id HAVING COUNT(DISTINCT o.run_id) = {len(runs)}
        ) AS of_all
    """)
    return _Counts(int(row["every"]), int(row["in_totals"]))


LEFT_OUT = Table(
    "left_out",
    (
        *columns.RUN,
        *columns.plain("pending", "other_revision", "items", "shared", "items_with_duplicates"),
        *columns.plain("shared_with_duplicates", "unlabelled", "regrouped"),
    ),
    lambda project, runs, by: tabulate_left_out(runs),
    at_once=columns.SUM_LIMIT,
    of_people=False,
    about="A row per run: how many of its outcomes are in no figure, by reason.",
    meanings={
        "pending": "number of outcomes without a result yet",
        "other_revision": "number of outcomes whose item has changed since it was judged: "
        "corrected texts, another final label, excluded from the project, or made a "
        "qualification or control item",
        "unlabelled": "number of outcomes of items that had no final label then; only the table "
        "`corrected` uses them",
        "regrouped": "number of items that count, but were moved to another category after the run "
        "began; tables by category and ability have them in the former one",
        "items": "number of items that count in figures",
        "shared": "number of items that count in every run; empty for checks of explanations",
        "items_with_duplicates": "the same as `items`, duplicates included",
        "shared_with_duplicates": "the same as `shared`, duplicates included",
    },
)
