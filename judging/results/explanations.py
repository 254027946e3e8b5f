"""Effect of explanations on detection (study 000, section 5.3, figure 2 and tables 21 to 24)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from judging.models import Outcome, Run
from judging.results import counted
from judging.results.counted import PARSED_SQL, GroupSums, one_if
from stats.rates import clustered_wilson

COLUMNS = (
    "equal", "found", "rate_after", "low", "high", "reason",
    "parsed", "detected", "unnoticed", "check", "checked", "unparsed",
    "found_rate", "found_low", "found_high",
    "gold_check", "gold_checked", "false_credit", "false_credit_low", "false_credit_high",
    "score_invariant",
)  # fmt: skip
EXPLANATION_FRAME = "explanation"
EQUAL_SQL = f"{PARSED_SQL} AND o.detail = 'equal'"
# Checks of a run's explanations of perturbed answers and of gold answers, with their SQL names.
SIDES = {"perturbed": "f", "gold": "g"}

# The last check of each run, by run id.
Checks = Mapping[int, Run]


def tabulate(runs: Iterable[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    """The table `explanations`: runs whose explanations were checked, one row per run and group.

    Of the `equal` items, `found` are those whose explanation nevertheless reports an error; an
    unparsed check counts as not found. `rate_after` = (undetected - found) / parsed is the
    undetected rate after that credit, and `unnoticed` is its numerator; both are None if only some
    of the explanations were checked. `false_credit` is the share of the checked explanations of
    gold answers that report an error.
    """
    runs = list(runs)
    checks, gold = (_find_checks(runs, side) for side in SIDES)
    chosen = [run for run in runs if run.pk in checks]
    found, after = one_if("f.result = 'detected'"), "COALESCE(f.result, '') <> 'detected'"
    rates = {
        "found": (EQUAL_SQL, found),
        "after": (PARSED_SQL, one_if(f"o.result = 'undetected' AND {after}")),
        "false": (
            f"{EQUAL_SQL} AND g.result IN ('detected', 'undetected')",
            one_if("g.result = 'detected'"),
        ),
    }
    counts = {
        "detected": one_if("o.result = 'detected'"),
        "checked": one_if(f"{EQUAL_SQL} AND f.result <> 'pending'"),
        "unparsed": one_if(f"{EQUAL_SQL} AND f.result = 'missing'"),
    }
    joined = _join_check(checks, SIDES["perturbed"]) + _join_check(gold, SIDES["gold"])
    summed = counted.sum_outcomes(chosen, by, rates=rates, counts=counts, joined=joined)
    return [_row(one, checks[one.run.pk], gold.get(one.run.pk)) for one in summed]


def _find_checks(runs: Sequence[Run], side: str) -> dict[int, Run]:
    """The last check of this side's explanations for each run."""
    over = Run.sources.through.objects.filter(
        to_run__in=runs, from_run__state=Run.State.FINISHED, from_run__archived_at=None
    )
    found = {}
    for one in over.select_related("from_run__strategy").order_by("from_run__number"):
        strategy = one.from_run.strategy.strategy()
        if strategy.frame == EXPLANATION_FRAME and (strategy.about or "perturbed") == side:
            found[one.to_run_id] = one.from_run
    return found


def _join_check(checks: Checks, name: str) -> str:
    """SQL that joins the outcomes of each run's check as `name`; the columns are null without a
    check."""
    table = Outcome._meta.db_table
    if not checks:
        return f" LEFT JOIN {table} AS {name} ON 1 = 0"
    cases = " ".join(f"WHEN {run} THEN {check.pk}" for run, check in checks.items())
    listed = ", ".join(str(check.pk) for check in checks.values())
    return f"""
        LEFT JOIN {table} AS {name} ON {name}.run_id = CASE o.run_id {cases} END
            AND {name}.run_id IN ({listed}) AND {name}.item_id = o.item_id
            AND {name}.axis = o.axis AND {name}.revision_id = o.revision_id
    """


def _row(found: GroupSums, check: Run, gold: Run | None) -> dict[str, Any]:
    in_words, after, false = (found.rates[name] for name in ("found", "after", "false"))
    checked, part = found.counts["checked"], found.counts["checked"] < in_words.n
    rate, share, credit = (clustered_wilson(one) for one in (after, in_words, false))
    return {
        **found.head(),
        "equal": in_words.n,
        "found": in_words.y,
        "rate_after": None if part else rate.value,
        "low": None if part else rate.low,
        "high": None if part else rate.high,
        "reason": f"{checked} of {in_words.n} checked" if part else rate.reason or None,
        "parsed": found.parsed,
        "detected": found.counts["detected"],
        "unnoticed": None if part else after.y,
        "check": check.number,
        "checked": checked,
        "unparsed": found.counts["unparsed"],
        "found_rate": None if part else share.value,
        "found_low": None if part else share.low,
        "found_high": None if part else share.high,
        "gold_check": gold.number if gold else None,
        "gold_checked": false.n if gold else None,
        "false_credit": credit.value,
        "false_credit_low": credit.low,
        "false_credit_high": credit.high,
        "score_invariant": found.invariant,
    }
