"""What are the verdicts on pairs, does the order matter, and do repeats agree? The tables
`verdicts` (study 000, tables 11 to 15 and 19), `order_effect` and `repeats`, and the page Verdicts.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import nan
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Q
from django.db.models.fields.json import KT

from annotation import tasktypes
from judging.models import Outcome, Run
from judging.results import arrays, cells, chart_parts, columns, counted, lines, progress
from judging.results.arrays import JUDGING_FRAMES, Floats, Ints
from judging.results.cells import Cell, Header, Row
from judging.results.counted import (
    PARSED_SQL,
    GroupSums,
    estimate_columns,
    json_text,
    one_if,
)
from judging.results.metric_scales import SCORING_FRAMES, strategy_metrics
from judging.results.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    StudyFigure,
    TableQuery,
)
from judging.results.tables.undetected import RATE_BESIDE, UNDETECTED, with_undetected
from judging.strategies import TOTAL, Strategy
from judging.strategies.replies.causes import ONE_ORDER
from stats import agreement, bootstrap, paired
from stats.estimates import Estimate
from stats.rates import clustered_wilson, estimate_rate

DETAILS = ("G", "P", "both_good", "both_bad", "mixed")
EFFECTS = ("first_twice", "second_twice", "half_tie")
# Frames without undetected rates, whose runs may have repeats too.
OTHER_FRAMES = ("detection", "explanation", *SCORING_FRAMES)
NO_RATE = Estimate(None, None, None, 0, "no undetected rate")
# Numbers that differ only by rounding count as equal.
_ROUNDING = 1e-9


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
    """The table `repeats` of runs with several samples, as repeats or as votes: whatever they ask
    for, a verdict, a detection or numbers (one row per metric).

    The `repeated` items have two or more parsed samples; `changing` is the number of these items
    whose samples differ: in their result, or in their number. `alpha` is Krippendorff's over the
    samples, of the result (nominal) or the number (interval): the reliability of one sample, with a
    cluster bootstrap interval.

    For runs that judge perturbed answers, the undetected rate of the first sample alone (over the
    items where that sample was parsed) stands beside that of all `samples`, which is `rate` and
    `undetected_rate`. Other runs have no undetected rate; they count every item once, without
    duplicates.
    """
    runs = list(runs)
    counted.check_fields(by)
    asked = counted.load_strategies(runs)
    judging = [run for run in runs if run.samples > 1 and asked[run.pk].frame in JUDGING_FRAMES]
    others = [run for run in runs if run.samples > 1 and asked[run.pk].frame in OTHER_FRAMES]
    samples = [
        json_text("parts", place, "result")
        for place in range(max((run.samples for run in judging), default=1))
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
    said = _load_samples([*judging, *others], judging, by)
    rows = [
        _repeat_row(found, said[_group_key(found.run.pk, found.invariant, by, found.group)])
        for found in counted.sum_outcomes(judging, by, rates=rates)
    ]
    known = counted.load_categories(runs)
    for run in others:
        groups = sorted(
            (known.order_of(dict(zip(by, key[2:], strict=True))), key)
            for key in said
            if key[0] == run.pk
        )
        for _, key in groups:
            group = dict(zip(by, key[2:], strict=True))
            rows += _other_repeat_rows(run, asked[run.pk], group, said[key])
    places = {run.number: place for place, run in enumerate(runs)}
    return sorted(rows, key=lambda row: places[row["run"]])


class _Samples(NamedTuple):
    """The items of one run in one group: the parts of each, one per sample, and its cluster."""

    parts: list[Sequence[Mapping[str, Any]]]
    clusters: list[str]

    def results(self) -> Floats:
        """1 if a sample detects (an error, or what an explanation is checked for), 0 if it does
        not, nan if it is missing: items x samples."""
        values = {"detected": 1.0, "undetected": 0.0}
        return _table([[values.get(part["result"], nan) for part in one] for one in self.parts])

    def numbers(self, metric: str) -> Floats:
        """The number that each sample gave, nan if it is missing: items x samples."""
        given = [[part["values"].get(metric) for part in one] for one in self.parts]
        return _table([[nan if one is None else float(one) for one in each] for each in given])


def _table(rows: Sequence[Sequence[float]]) -> Floats:
    """The rows as an array; shorter ones are filled with nan."""
    found = np.full((len(rows), max(map(len, rows), default=0)), nan)
    for place, row in enumerate(rows):
        found[place, : len(row)] = row
    return found


def _load_samples(
    runs: Sequence[Run], judging: Sequence[Run], by: Sequence[str]
) -> dict[tuple[Any, ...], _Samples]:
    """The counted items of these runs by `_group_key`, in the groups of `counted.sum_outcomes` for
    the `judging` ones. Makes one query, or one per run if progress is reported."""
    names = ("run", "invariant", *by, "cluster")
    of_judging = Q(run__in=judging)
    if not {"ability", "category"} <= set(by):
        of_judging &= ~Q(ability="")
    others = Q(item__duplicate_of=None) & ~Q(run__in=judging)
    every = Outcome.objects.counted().main().filter(of_judging | others)
    rows = every.order_by("run", "item").values_list(*names, KT("values__parts"))
    found: dict[tuple[Any, ...], _Samples] = defaultdict(lambda: _Samples([], []))
    # A scale has few numbers, and many outcomes repeat them.
    read: dict[str | None, Sequence[Mapping[str, Any]]] = {None: ()}
    for some in progress.split_if_watched(runs, arrays.READING_STEP):
        for run, invariant, *group, cluster, text in rows.filter(run__in=some).iterator(
            chunk_size=arrays.AT_A_TIME
        ):
            if text not in read:
                read[text] = json.loads(text)
            of_group = found[run, invariant, *group]
            of_group.parts.append(read[text])
            of_group.clusters.append(cluster)
    return found


def _alpha_columns(run: Run, table: Floats, clusters: Sequence[str], *which: Any) -> dict[str, Any]:
    numbers = np.unique(np.array(clusters, dtype=object), return_inverse=True)[1]
    rng = arrays.make_generator("repeats", [run], *which)
    figure = agreement.interval_alpha(table)
    return counted.figure_columns("alpha", bootstrap.estimate(figure, numbers, rng))


def _other_repeat_rows(
    run: Run, asked: Strategy, group: Mapping[str, str], said: _Samples
) -> Iterator[dict[str, Any]]:
    """A row for each metric of a run that gives numbers, else one row."""
    tables: dict[str | None, Floats] = {None: said.results()}
    if asked.frame in SCORING_FRAMES:
        task = tasktypes.load_task_type(run.project)
        metrics = dict.fromkeys(one.value for one in strategy_metrics(asked, task))
        tables = {name: said.numbers(name) for name in metrics}
    for metric, table in tables.items():
        there = ~np.isnan(table)
        repeated = there.sum(axis=1) > 1
        low = np.where(there, table, np.inf).min(axis=1, initial=np.inf)
        high = np.where(there, table, -np.inf).max(axis=1, initial=-np.inf)
        changes = np.where(repeated, high - low > _ROUNDING, nan)
        changing = estimate_rate(changes, np.array(said.clusters, dtype=object))
        yield {
            **counted.run_columns(run),
            **group,
            "total": len(table),
            "missing": int((~there.any(axis=1)).sum()),
            "parsed": int(there.any(axis=1).sum()),
            "samples": run.samples,
            "votes": run.pinned_strategy().votes,
            **counted.undetected_columns(NO_RATE),
            "first_parsed": int(there[:, :1].sum()),
            **_prefixed_columns("first", NO_RATE),
            "repeated": changing.n,
            "changing": int(np.nansum(changes)),
            **_prefixed_columns("changing", changing),
            "score_invariant": False,
            "metric": metric,
            **_alpha_columns(run, table, said.clusters, metric, *group.values()),
        }


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


def _repeat_row(found: GroupSums, said: _Samples) -> dict[str, Any]:
    first, moved = found.rates["first"], found.rates["changing"]
    return {
        **found.head(),
        "parsed": found.parsed,
        "samples": found.run.samples,
        "votes": found.run.pinned_strategy().votes,
        **counted.undetected_columns(clustered_wilson(found.rates["all"])),
        "first_parsed": first.n,
        **_prefixed_columns("first", clustered_wilson(first)),
        "repeated": moved.n,
        "changing": moved.y,
        **_prefixed_columns("changing", clustered_wilson(moved)),
        "score_invariant": found.invariant,
        "metric": None,
        **_alpha_columns(
            found.run, said.results(), said.clusters, found.invariant, *found.group.values()
        ),
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
    about="A row per run and group of pairs: which answer was chosen over both orders.",
    meanings={
        "G": "number of parsed pairs whose gold answer was chosen in both orders, so that the "
        "error was detected; of repeats, the most frequent verdict counts",
        "P": "number of parsed pairs whose perturbed answer was chosen in both orders",
        "both_good": "number of parsed pairs whose answers were called equally good in both orders",
        "both_bad": "number of parsed pairs whose answers were called equally bad in both orders",
        "mixed": "number of parsed pairs with different verdicts in the two orders",
        "one_order": "number of missing pairs with a usable reply to one order alone",
        "first_twice": "number of mixed pairs in which the first position was chosen in both "
        "orders; empty for repeats and votes",
        "second_twice": "the same for the second position",
        "half_tie": "number of mixed pairs in which one order is a tie and the other is not; "
        "empty for repeats and votes",
        "both_good_rate": "both good divided by parsed",
        "low": "lower end of the 95 % interval of `both_good_rate`",
        "high": "upper end of this interval",
        "reason": "why `both_good_rate` or its interval is empty",
    },
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
        "p", "p", reason="difference_reason", note=lambda row: cells.TEST_WORDS.get(row["test"], "")
    ),
    columns.Column("test"),
    about="A row per run, group and effect: in how many pairs the order of the answers decided.",
    meanings={
        "effect": "`first_twice` or `second_twice` (this position was chosen in both orders), or "
        "`half_tie` (a tie in one order alone)",
        "n": "number of parsed pairs with this effect",
        "rate": "n divided by parsed",
        "low": "lower end of the 95 % interval of `rate`",
        "high": "upper end of this interval",
        "reason": "why `rate` or its interval is empty",
        "difference": "share of pairs with `first_twice` minus share with `second_twice`, the "
        "same in all rows of a group; above 0, the evaluator prefers what it sees first",
        "p": "p of this difference from a sign-flip test over source questions, not adjusted",
        "test": "how p was computed: `exact`, `drawn` (random sign patterns) or `t` (Student's t)",
    },
)
REPEATS = replace(
    columns.summed_table(
        "repeats",
        tabulate_repeats,
        columns.Column("total"),
        columns.MISSING,
        columns.Column("parsed"),
        columns.Count(
            "samples", "Samples", note=lambda row: "votes" if row["votes"] else "repeats"
        ),
        columns.Column("votes"),
        columns.Rate(
            "rate",
            "Undetected, all samples",
            columns.items(result="undetected"),
            missing_link=columns.items(result="missing"),
            bad=columns.bad_if_undetected,
        ),
        *columns.NAMED_RATES,
        *columns.plain("low", "high", "reason", "first_parsed"),
        columns.Rate(
            "first_rate",
            "Undetected, first sample",
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
        *columns.plain(
            "changing_low", "changing_high", "changing_reason", "score_invariant", "metric"
        ),
        columns.Figure("alpha", "Alpha over samples"),
        *columns.plain("alpha_low", "alpha_high", "alpha_reason"),
        about="A row per run with several samples, group and metric: how often the samples of an "
        "item differ, and how reliable one sample is.",
        meanings={
            "samples": "number of samples per item",
            "votes": "true if the samples are votes, of which the majority counts; false if they "
            "are repeats, of which the share counts",
            "rate": "undetected rate over all samples; on score-invariant items the share without "
            "a false alarm",
            "first_parsed": "number of items whose first sample is usable",
            "first_rate": "undetected rate of the first sample alone, over the `first_parsed` "
            "items",
            "repeated": "number of items with two or more usable samples",
            "changing": "number of items whose samples differ in their result, or in their number",
            "changing_rate": "changing divided by repeated",
            "alpha": "Krippendorff's alpha over the samples of an item: 1 if they never differ, 0 "
            "if they differ as much as samples of different items",
            "metric": "what is scored; empty for results that are no numbers",
        },
    ),
    at_once=columns.GROUP_DRAW_LIMIT,
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
        n_link=columns.items(result="parsed"),
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


class _Repeats(lines.RunGroups):
    """Groups, runs, and the metric if a run gives numbers. Figures of runs without an undetected
    rate link to the items of the run and group."""

    def __init__(self, asked: PageQuery, rows: Sequence[Row]) -> None:
        super().__init__(asked, rows)
        self.has_metrics = any(row["metric"] for row in rows)

    def headers(self) -> list[Header]:
        metric = [Header("Metric", "metric", is_number=False)] if self.has_metrics else []
        return [*super().headers(), *metric]

    def cells(self, row: Row) -> list[Cell]:
        metric = [cells.text_cell(self.metric(row))] if self.has_metrics else []
        return [*super().cells(row), *metric]

    def metric(self, row: Row) -> str:
        """The title of a row's metric, "" without one."""
        name = row["metric"] or ""
        named = {one.slug: one.title for one in self._asked(row).metrics}
        return named.get(name) or {TOTAL: "Total", "score": "Score"}.get(name, name)

    def items_url(self, row: Row, **which: str) -> str:
        if self._asked(row).frame in JUDGING_FRAMES:
            return super().items_url(row, **which)
        if row["metric"]:
            return ""
        group = {name: row[name] for name in counted.FIELDS if row.get(name)}
        return cells.outcomes_url(self.runs[row["run"]], **group, **which, counted="yes")

    def _asked(self, row: Row) -> Strategy:
        return self.runs[row["run"]].pinned_strategy()


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
    leading = _Repeats(asked, rows)
    dots = [
        (name, ": ".join(filter(None, (leading.metric(row), lines.chart_label(asked, row)))), one)
        for row in rows
        for name, rate in rates.items()
        for one in [rate.estimate(row)]
    ]
    return chart_parts.draw_dots(dots, title="Share of items", caption=caption, series="Of")


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
        figures=("rate",),
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
            "items, G is a false alarm and every other verdict counts as no false alarm, although "
            "only “both good” says that the answers are equally good.",
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
        table_first=True,
    ),
    ResultView(
        slug="order",
        title="Order effect",
        asks=(TableQuery(ORDER_EFFECT),),
        figures=("rate", "order_effect"),
        build=lines.Lines(
            ORDER_EFFECT,
            "Order effect",
            ("parsed", "missing", *map(_effect_rate, EFFECTS), "difference", "p"),
            "Shares of parsed pairs: the first position chosen in both orders, the second "
            "position chosen in both orders, or a tie in only one order. First minus second: "
            "above 0, the evaluator prefers the answer that it sees first; with 95 % interval. p: "
            "sign-flip test over questions, exact unless stated otherwise, not adjusted for the "
            "number of lines. Both "
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
        figures=("rate", "repeat_alpha"),
        build=lines.Lines(
            REPEATS,
            "Repeats and votes",
            ("samples", "first_rate", "rate", "changing_rate", "alpha"),
            "The first sample (k = 1) next to all k samples, which count as votes if the run "
            "combines them, and otherwise as the mean share of repeats. Changed result: share of "
            "items with two or more samples where one sample detected the error and another did "
            "not, or gave another number. n counts items, not calls. Alpha: Krippendorff’s alpha "
            "over samples, the reliability of one sample. 1: samples never differ; 0: samples of "
            "one item differ as much as those of different items. Where nearly all results are "
            "alike, alpha is low although few change. A run that repeats itself is not "
            "therefore right.",
            _draw_repeats,
            leading=_Repeats,
        ),
        studies={},
        empty=NO_REPEATS,
        switches=(lines.group_switch(),),
    ),
)
