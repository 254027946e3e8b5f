"""Verdicts on pairs (study 000, tables 11 to 15 and 19), and changes between repeats."""

from collections.abc import Iterable, Sequence
from typing import Any

from judging.models import Run
from judging.results import counted
from judging.results.counted import PARSED_SQL, GroupSums, json_text, one_if
from stats.estimates import Estimate
from stats.rates import clustered_wilson

DETAILS = ("G", "P", "both_good", "both_bad", "mixed")
EFFECTS = ("first_twice", "second_twice", "half_tie")
COLUMNS = (
    *DETAILS, *EFFECTS, "parsed", "one_order", "both_good_rate", "low", "high", "reason",
    "score_invariant",
)  # fmt: skip
ORDER_COLUMNS = ("parsed", "effect", "n", "rate", "low", "high", "reason", "score_invariant")
REPEAT_COLUMNS = (
    "parsed", "samples", "votes", "rate", "low", "high", "reason",
    "first_parsed", "first_rate", "first_low", "first_high", "first_reason",
    "repeated", "changing", "changing_rate", "changing_low", "changing_high", "changing_reason",
    "score_invariant",
)  # fmt: skip
# Frames whose items are error items and score-invariant items.
JUDGING_FRAMES = ("single", "pair", "reference")


def tabulate_verdicts(runs: Iterable[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    """The table `verdicts` of pairs in both orders, one row per run and group.

    `both_good_rate` is both_good / parsed with its interval; for score-invariant items it says how
    many were rightly called equally good (section 5.4). If a pair is repeated, its most frequent
    verdict counts, and the order effects are None, as for votes over runs. `one_order` counts
    missing items with one parsed order.
    """
    chosen = _pair_runs(runs)
    both = {"both_good": (PARSED_SQL, one_if("o.detail = 'both_good'"))}
    counts = {
        # Lower case, since a database may fold column names.
        **{name.lower(): one_if(f"{PARSED_SQL} AND o.detail = '{name}'") for name in DETAILS},
        **{name: one_if(_effect_sql(name)) for name in EFFECTS},
        "one_order": one_if("o.cause = 'one_order'"),
    }
    return [_row(found) for found in counted.sum_outcomes(chosen, by, rates=both, counts=counts)]


def tabulate_order_effect(runs: Iterable[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    """The table `order_effect`: the number of parsed pairs in which the order of the answers
    decided."""
    chosen = [run for run in _pair_runs(runs) if _asked_once(run)]
    rates = {name: (PARSED_SQL, one_if(_effect_sql(name))) for name in EFFECTS}
    return [
        {
            **found.head(),
            "parsed": found.parsed,
            "effect": name,
            "n": found.rates[name].y,
            **_estimate_columns(clustered_wilson(found.rates[name])),
            "score_invariant": found.invariant,
        }
        for found in counted.sum_outcomes(chosen, by, rates=rates)
        for name in EFFECTS
    ]


def tabulate_repeats(runs: Iterable[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    """The table `repeats` of runs with several samples, as repeats or as votes.

    It compares the undetected rate of the first sample alone (over the items where that sample was
    parsed) with the rate of all `samples`. The `repeated` items have two or more parsed samples;
    `changing` is the number of these items whose result changed.
    """
    runs = list(runs)
    asked = counted.load_strategies(runs)
    chosen = [run for run in runs if run.samples > 1 and asked[run.pk].frame in JUDGING_FRAMES]
    samples = [
        json_text("parts", place, "result")
        for place in range(max((run.samples for run in chosen), default=1))
    ]
    detected, undetected = _times_sql(samples, "detected"), _times_sql(samples, "undetected")
    rates = {
        "all": (PARSED_SQL, counted.UNDETECTED_SQL),
        "first": (
            f"{samples[0]} IN ('detected', 'undetected')",
            one_if(f"{samples[0]} = 'undetected'"),
        ),
        "changing": (
            f"{detected} + {undetected} > 1",
            one_if(f"{detected} > 0 AND {undetected} > 0"),
        ),
    }
    return [_repeat_row(found) for found in counted.sum_outcomes(chosen, by, rates=rates)]


def _pair_runs(runs: Iterable[Run]) -> list[Run]:
    runs = list(runs)
    asked = counted.load_strategies(runs)
    return [run for run in runs if asked[run.pk].frame == "pair"]


def _asked_once(run: Run) -> bool:
    return run.samples == 1 and run.kind != Run.Kind.DERIVED


def _effect_sql(name: str) -> str:
    return f"o.detail = 'mixed' AND {json_text('order_effect')} = '{name}'"


def _times_sql(samples: Iterable[str], result: str) -> str:
    return "(" + " + ".join(one_if(f"{sample} = '{result}'") for sample in samples) + ")"


def _row(found: GroupSums) -> dict[str, Any]:
    once = _asked_once(found.run)
    both = _estimate_columns(clustered_wilson(found.rates["both_good"]))
    return {
        **found.head(),
        **{name: found.counts[name.lower()] for name in DETAILS},
        **{name: found.counts[name] if once else None for name in EFFECTS},
        "parsed": found.parsed,
        "one_order": found.counts["one_order"],
        "both_good_rate": both.pop("rate"),
        **both,
        "score_invariant": found.invariant,
    }


def _repeat_row(found: GroupSums) -> dict[str, Any]:
    first, moved = found.rates["first"], found.rates["changing"]
    return {
        **found.head(),
        "parsed": found.parsed,
        "samples": found.run.samples,
        "votes": found.run.pinned_strategy().votes,
        **_estimate_columns(clustered_wilson(found.rates["all"])),
        "first_parsed": first.n,
        **_prefixed_columns("first", clustered_wilson(first)),
        "repeated": moved.n,
        "changing": moved.y,
        **_prefixed_columns("changing", clustered_wilson(moved)),
        "score_invariant": found.invariant,
    }


def _prefixed_columns(name: str, one: Estimate) -> dict[str, Any]:
    return {f"{name}_{key}": value for key, value in _estimate_columns(one).items()}


def _estimate_columns(one: Estimate) -> dict[str, Any]:
    return {"rate": one.value, "low": one.low, "high": one.high, "reason": one.reason or None}
