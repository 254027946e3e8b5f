"""What are the verdicts on pairs, does the order matter, and do repeats agree? The tables
`verdicts` (study 000, tables 11 to 15 and 19), `order_effect` and `repeats`, and the page Verdicts.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from judging.models import Outcome, Run
from judging.results import arrays, columns, counted, lines, progress
from judging.results.arrays import Ints
from judging.results.counted import (
    PARSED_SQL,
    GroupSums,
    estimate_columns,
    json_text,
    one_if,
)
from judging.results.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    StudyFigure,
    TableQuery,
)
from judging.results.tables.compare import TEST_WORDS
from judging.results.tables.undetected import RATE_BESIDE, UNDETECTED, with_undetected
from judging.strategies.replies.causes import ONE_ORDER
from stats import paired
from stats.estimates import Estimate
from stats.rates import clustered_wilson

DETAILS = ("G", "P", "both_good", "both_bad", "mixed")
EFFECTS = ("first_twice", "second_twice", "half_tie")
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
    decided, one row per run, group and effect.

    `difference` is the rate of `first_twice` minus that of `second_twice`, the same in all rows of
    a group: above 0, the run prefers the answer that it sees first. Its interval and `p`, from
    flipping the signs of whole questions, are those of `stats.paired`; p is exact unless `test`
    says otherwise. It is not adjusted for the number of groups.
    """
    chosen = [run for run in _pair_runs(runs) if _asked_once(run)]
    rates = {name: (PARSED_SQL, one_if(_effect_sql(name))) for name in EFFECTS}
    preferred = _load_preferences(chosen, by)
    return [
        {
            **found.head(),
            "parsed": found.parsed,
            "effect": name,
            "n": found.rates[name].y,
            **estimate_columns(clustered_wilson(found.rates[name])),
            "score_invariant": found.invariant,
            **differing,
        }
        for found in counted.sum_outcomes(chosen, by, rates=rates)
        for differing in [_difference_columns(found, preferred)]
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


class _Preferences(NamedTuple):
    """The parsed pairs of one run in one group: 1 if the first position was chosen twice, -1 if the
    second was, else 0; and their clusters."""

    differences: Ints
    clusters: Ints


def _load_preferences(
    runs: Sequence[Run], by: Sequence[str]
) -> dict[tuple[Any, ...], _Preferences]:
    """The pairs by `_group_key`, grouped by cluster in the database, in one query, or one per run
    if progress is reported."""
    counted.check_fields(by)
    own = ", ".join(f"o.{name}" for name in ("run_id", *by, "invariant"))
    sign = f"{one_if(_effect_sql('first_twice'))} - {one_if(_effect_sql('second_twice'))}"
    rows: dict[tuple[Any, ...], list[tuple[str, int, int]]] = defaultdict(list)
    for some in progress.split_if_watched([run.pk for run in runs], "counting outcomes"):
        statement = f"""
            SELECT {own}, o.cluster, {sign} AS sign, COUNT(*) AS n
            FROM {Outcome._meta.db_table} AS o
            WHERE {counted.counted_condition(some)} AND {PARSED_SQL}
            {counted.separate_condition(by)}
            GROUP BY {own}, o.cluster, sign
        """
        for row in counted.fetch_dicts(statement) if some else ():
            key = _group_key(row["run_id"], row["invariant"], by, row)
            rows[key].append((row["cluster"], row["sign"], row["n"]))
    found = {}
    for key, of_group in rows.items():
        # In one order, whichever the database gives, since p may come from random draws.
        clusters, signs, times = zip(*sorted(of_group), strict=True)
        numbers = np.unique(np.array(clusters, dtype=object), return_inverse=True)[1]
        found[key] = _Preferences(np.repeat(signs, times), np.repeat(numbers, times))
    return found


def _group_key(
    run: int, invariant: object, by: Sequence[str], group: Mapping[str, Any]
) -> tuple[Any, ...]:
    return run, bool(invariant), *(group[name] for name in by)


def _difference_columns(
    found: GroupSums, preferred: Mapping[tuple[Any, ...], _Preferences]
) -> dict[str, Any]:
    key = _group_key(found.run.pk, found.invariant, list(found.group), found.group)
    none = np.empty(0, dtype=int)
    pairs = preferred.get(key, _Preferences(none, none))
    one = paired.estimate_difference(*pairs)
    rng = arrays.make_generator("order_effect", [found.run], found.invariant, *found.group.values())
    tested = paired.test_difference(*pairs, rng)
    return {
        **counted.figure_columns("difference", one),
        "p": tested.p,
        "test": tested.test or None,
    }


def _times_sql(samples: Iterable[str], result: str) -> str:
    return "(" + " + ".join(one_if(f"{sample} = '{result}'") for sample in samples) + ")"


def _row(found: GroupSums) -> dict[str, Any]:
    once = _asked_once(found.run)
    both = estimate_columns(clustered_wilson(found.rates["both_good"]))
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
        **estimate_columns(clustered_wilson(found.rates["all"])),
        "first_parsed": first.n,
        **_prefixed_columns("first", clustered_wilson(first)),
        "repeated": moved.n,
        "changing": moved.y,
        **_prefixed_columns("changing", clustered_wilson(moved)),
        "score_invariant": found.invariant,
    }


def _prefixed_columns(name: str, one: Estimate) -> dict[str, Any]:
    return {f"{name}_{key}": value for key, value in estimate_columns(one).items()}


VERDICTS = columns.summed_table(
    "verdicts",
    tabulate_verdicts,
    columns.Column("total"),
    columns.MISSING,
    columns.detail_share("G", "Gold twice (G)"),
    columns.detail_share("P", "Perturbed twice (P)"),
    columns.detail_share("both_good", "Both good"),
    columns.detail_share("both_bad", "Both bad"),
    columns.detail_share("mixed", "Mixed"),
    *columns.plain(*EFFECTS),
    columns.PARSED,
    columns.Count(
        "one_order", "One order missing", columns.items(result="missing", cause=ONE_ORDER)
    ),
    *columns.plain("both_good_rate", "low", "high", "reason", "score_invariant"),
)
ORDER_EFFECT = columns.summed_table(
    "order_effect",
    tabulate_order_effect,
    columns.Column("total"),
    columns.MISSING,
    columns.PARSED,
    *columns.plain("effect", "n", "rate", "low", "high", "reason", "score_invariant"),
    columns.Points("difference", "First minus second", prefix="difference_"),
    *columns.plain("difference_low", "difference_high", "difference_reason"),
    columns.PValue(
        "p", "p", reason="difference_reason", note=lambda row: TEST_WORDS.get(row["test"], "")
    ),
    columns.Column("test"),
)
REPEATS = columns.summed_table(
    "repeats",
    tabulate_repeats,
    columns.Column("total"),
    columns.MISSING,
    columns.Column("parsed"),
    columns.Count("samples", "Samples", note=lambda row: "votes" if row["votes"] else "repeats"),
    columns.Column("votes"),
    columns.Rate(
        "rate",
        "Undetected, all samples",
        columns.items(result="parsed"),
        missing_link=columns.items(result="missing"),
        bad=columns.bad_if_undetected,
    ),
    *columns.plain("low", "high", "reason", "first_parsed"),
    columns.Rate(
        "first_rate",
        "Undetected, first sample",
        columns.items(result="parsed"),
        n="first_parsed",
        prefix="first_",
        missing="",
        missing_link=columns.items(result="missing"),
    ),
    *columns.plain("first_low", "first_high", "first_reason", "repeated", "changing"),
    columns.Rate(
        "changing_rate",
        "Changed result",
        columns.items(repeats="changing"),
        n="repeated",
        prefix="changing_",
        missing="",
    ),
    *columns.plain("changing_low", "changing_high", "changing_reason", "score_invariant"),
)

EFFECT_TITLES = {
    "first_twice": "First position twice",
    "second_twice": "Second position twice",
    "half_tie": "A tie in one order",
    "steady": "No order effect",
}


def _effect_rate(effect: str) -> columns.Rate:
    """The rate of an effect, in rows that have all effects."""
    return columns.Rate(
        f"{effect}_rate",
        EFFECT_TITLES[effect],
        columns.items(result="parsed", detail="mixed", order_effect=effect),
        prefix=f"{effect}_",
        sort=effect,
    )


def _merge_effects(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    """One row per run and group, with columns for each effect."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in tables[0]:
        one = found.setdefault(lines.row_key(row), {**row, "steady": row["parsed"]})
        one |= {f"{row['effect']}_{end}": row[end] for end in ("rate", "low", "high", "reason")}
        one[row["effect"]] = row["n"]
        one["steady"] -= row["n"]
    return list(found.values())


def _draw_repeats(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    rates = {
        "first sample": REPEATS.rate("first_rate"),
        "all samples": REPEATS.rate("rate"),
        "changed result": REPEATS.rate("changing_rate"),
    }
    caption = (
        "Undetected rates of the first sample and of all, and the share of items with a "
        "changed result, with 95 % intervals."
    )
    return lines.draw_rates(asked, rows, rates, "Share of items", caption)


NO_PAIRS = (
    "None of the chosen runs compared answers in pairs. Choose a run with such a strategy, "
    "for example pairwise or pairwise-axis."
)
NO_REPEATS = (
    "None of the chosen runs has repeated samples. Start a run with several samples per call."
)
_BY = ("ability", "category")
VIEWS = (
    ResultView(
        slug="verdicts",
        title="Verdicts",
        asks=(TableQuery(VERDICTS), TableQuery(UNDETECTED)),
        build=lines.Lines(
            VERDICTS,
            "Verdicts of pairs",
            (
                "parsed",
                "missing",
                "one_order",
                "G",
                "mixed",
                "both_good",
                "both_bad",
                "P",
                RATE_BESIDE,
            ),
            "Each pair is shown in both orders. G: gold chosen both times (detected). P: "
            "perturbed chosen both times. Mixed: any other combination. On score-invariant "
            "items, “both good” is the correct verdict.",
            lines.Stacked(
                ("G", "mixed", "both_good", "both_bad", "P"),
                "Share of pairs",
                "Verdicts of both orders together",
            ),
            with_undetected,
        ),
        studies={
            "000": (
                StudyFigure("table 11", ("pairwise-verdict",), _BY),
                StudyFigure("table 12", ("pairwise",), _BY),
                StudyFigure("table 13", ("pairwise-rules",), _BY),
                StudyFigure("table 14", ("pairwise-axis",), _BY),
                StudyFigure("table 15", ("pairwise-axis-rules",), _BY),
                StudyFigure("table 19", ("pairwise-axis-rules",), _BY),
            )
        },
        empty=NO_PAIRS,
        switches=(lines.group_switch(),),
    ),
    ResultView(
        slug="order",
        title="Order effect",
        asks=(TableQuery(ORDER_EFFECT),),
        build=lines.Lines(
            ORDER_EFFECT,
            "Order effect",
            ("parsed", "missing", *map(_effect_rate, EFFECTS), "difference", "p"),
            "Shares of parsed pairs: the first position chosen in both orders, the second "
            "position chosen in both orders, or a tie in only one order. First minus second: "
            "above 0, the evaluator prefers the answer that it sees first; with 95 % interval. p: "
            "exact sign-flip test over questions, not adjusted for the number of lines. Both "
            "shares can be high and their difference 0: then the order often decides, but not in "
            "favour of one position.",
            lines.Stacked(EFFECT_TITLES, "Share of pairs", "How often the position decided"),
            _merge_effects,
        ),
        studies={},
        empty=NO_PAIRS,
        switches=(lines.group_switch(),),
    ),
    ResultView(
        slug="repeats",
        title="Repeats and votes",
        asks=(TableQuery(REPEATS),),
        build=lines.Lines(
            REPEATS,
            "Repeats and votes",
            ("samples", "first_rate", "rate", "changing_rate"),
            "The first sample (k = 1) next to all k samples, which count as votes if the run "
            "combines them, and otherwise as the mean share of repeats. Changed result: share of "
            "items with two or more samples where one sample detected the error and another did "
            "not. n counts items, not calls.",
            _draw_repeats,
        ),
        studies={},
        empty=NO_REPEATS,
        switches=(lines.group_switch(),),
    ),
)
