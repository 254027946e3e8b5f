"""Which of two runs is better on the same items, and how sure is it? The table `compare` of
differences, intervals and tests, and its page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Case, Field, Value, When

from annotation.labelling.models.labels import SI_ITEM
from annotation.templatetags import figures as written
from charts.axes import Axis
from judging.models import Outcome, Run
from judging.results import arrays, cells, chart_parts, columns, counted, drilldown, lines, progress
from judging.results.arrays import Bools, Floats, Ints, RunArrays
from judging.results.cells import Cell, GridLine, Header, Row
from judging.results.columns import Table
from judging.results.page_parts import (
    INTERVALS_PARAMETER,
    SORT_PARAMETER,
    VIEW_PARAMETER,
    ChartSpec,
    Choice,
    ChoiceGroup,
    PageQuery,
    ResultView,
    Rows,
    Switch,
    TableQuery,
    ViewContent,
)
from stats import families, paired, rates, sensitivity
from stats.estimates import Estimate
from stats.rates import RateBounds

ABILITY, SOURCE, LOST = "ability", "source_ability", "lost"
# Of so many rows by ability, there are none: those of 200 runs would take a gigabyte to show.
MOST_BY_ABILITY = 25_000
PAIRS_VIEW, CONTROL_VIEW = "pairs", "control"
# 1 for a pair with one parsed order that did not choose gold: not detected, whatever is missing.
_LOST = Case(
    When(cause="one_order", values__chose_gold=False, then=Value(1)),
    default=Value(0),
    output_field=Field(),
)


class RunPair(NamedTuple):
    """Two runs over the items of one ability, "" for all abilities."""

    a: RunArrays
    b: RunArrays
    ability: str


class SharedItems(NamedTuple):
    """The items that both runs of a pair parsed, one entry per item: the first run's value minus
    the second's, whether the item is score-invariant, and its cluster."""

    differences: Floats
    invariant: Bools
    cluster: Ints

    def of_kind(self, *, invariant: bool) -> tuple[Floats, Ints]:
        """The differences and clusters of the error items, or of the score-invariant items."""
        these = self.invariant == invariant
        return self.differences[these], self.cluster[these]


def compare(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """The table `compare`: all pairs of runs, compared on the items that both parsed; first over
    all abilities, then by ability, unless that makes more than `MOST_BY_ABILITY` rows.

    `difference` is a's detection rate minus b's over `n` error items; `only_a` and `only_b` count
    the items that only that run detected. `total` counts the error items of either run; `missing`
    of these items are left out. p comes from `paired.test_difference`, and `test` says whether p is
    exact, from random draws or from Student's t. `p_holm` is p adjusted for all pairs. If two runs
    share no letter, they differ: `p_holm` is below 0.05. Rows by ability are exploratory and have q
    (Benjamini and Hochberg) instead. `shows` is the smallest difference that would be found with
    80 % power, if it were the only one, among as many tests. Letters begin with the runs that
    detect the most.

    `false_alarm` is a's rate of false alarms minus b's over `invariant` score-invariant items, with
    the same interval and test; they belong to the ability of the answer that they were made from.
    `j` is the difference of J, detection minus false alarms: its interval is that of
    `paired.estimate_j_difference`, and `j_p` is below 0.05 where this interval leaves out 0
    (`paired.test_j_difference`).

    `lowest` and `highest` are the bounds of the difference of detection over the error items that
    both runs were asked, over all values of the missing ones, at opposite extremes in the two runs;
    a pair with one parsed order that did not choose gold is undetected in both bounds. They can
    leave out `difference`, which is over the items that both parsed.
    """
    every = Outcome.objects.annotate(**{LOST: _LOST})
    found = arrays.load_arrays(runs, (ABILITY, SOURCE, LOST), among=every)
    pairs = list(combinations(found, 2))
    headline = [
        _row(RunPair(a, b, ""), len(pairs)) for a, b in progress.iterate(pairs, "comparing runs")
    ]
    slugs = [one.slug for one in counted.load_categories(runs).abilities if one.slug != SI_ITEM]
    parts = _pair_by_ability(found, slugs)
    if len(parts) > MOST_BY_ABILITY:
        parts = []
    exploratory = [
        _row(part, len(parts)) for part in progress.iterate(parts, "comparing runs by ability")
    ]
    _adjust(headline, "p_holm", families.holm([row["p"] for row in headline]))
    _adjust(exploratory, "q", families.benjamini_hochberg([row["p"] for row in exploratory]))
    apart = families.different_pairs([row["p_holm"] for row in headline], len(found))
    # The letters go on from the run with the most detections to the one with the fewest.
    best = _order_runs({(row["run_a"], row["run_b"]): row["difference"] for row in headline})
    place = [best.index(one.run.number) for one in found] if pairs else []
    apart = {(min(place[a], place[b]), max(place[a], place[b])) for a, b in apart}
    letters = families.compact_letters(len(found), apart)
    for row, (a, b) in zip(headline, combinations(place, 2), strict=True):
        row |= {"letters_a": letters[a], "letters_b": letters[b]}
    return [*headline, *exploratory]


def share_items(a: RunArrays, b: RunArrays) -> SharedItems:
    """The items that both runs parsed."""
    a, b = _align(a, b)
    there = ~np.isnan(a.detected) & ~np.isnan(b.detected)
    differences = a.detected[there] - b.detected[there]
    return SharedItems(differences, a.invariant[there], a.cluster[there])


def _align(a: RunArrays, b: RunArrays) -> tuple[RunArrays, RunArrays]:
    """The items that both runs were asked, in the same order."""
    if np.array_equal(a.item, b.item):
        return a, b
    _, of_a, of_b = np.intersect1d(a.item, b.item, assume_unique=True, return_indices=True)
    return a.only(of_a), b.only(of_b)


def _bound_difference(a: RunArrays, b: RunArrays) -> RateBounds:
    """The bounds of a's detection rate minus b's over the error items that both were asked."""
    a, b = _align(a, b)
    return rates.bound_difference(*(_bound_detection(one, ~a.invariant) for one in (a, b)))


def _bound_detection(found: RunArrays, these: Bools) -> RateBounds:
    detected = found.detected[these]
    n, gone = len(detected), np.isnan(detected)
    if not n:
        return RateBounds(None, None)
    sure, lost = float(np.nansum(detected)), found.fields[LOST][these]
    return RateBounds(sure / n, (sure + int((gone & (lost == 0)).sum())) / n)


def _pair_by_ability(runs: Sequence[RunArrays], abilities: Iterable[str]) -> list[RunPair]:
    """All pairs of runs over the items of each ability, those of a pair one after the other."""
    of = [np.where(one.invariant, one.fields[SOURCE], one.fields[ABILITY]) for one in runs]
    parts = {
        name: [one.only(group == name) for one, group in zip(runs, of, strict=True)]
        for name in abilities
    }
    return [
        RunPair(part[a], part[b], ability)
        for a, b in combinations(range(len(runs)), 2)
        for ability, part in parts.items()
        if not (part[a].invariant.all() and part[b].invariant.all())
    ]


def _row(pair: RunPair, tests: int) -> dict[str, Any]:
    a, b, ability = pair
    shared = share_items(a, b)
    differences, cluster = shared.of_kind(invariant=False)
    made = paired.estimate_difference(differences, cluster)
    shows = made.find_smallest(tests)
    make_rng = partial(arrays.make_generator, "compare", [a.run, b.run], ability)
    tested = paired.test_difference(differences, cluster, make_rng)
    calm = shared.of_kind(invariant=True)
    alarms = paired.estimate_difference(*calm)
    if made.n and not alarms.n:
        alarms = replace(alarms, reason=sensitivity.NO_INVARIANT)
    j = paired.estimate_j_difference(*shared)
    errors = a.item[~a.invariant], b.item[~b.invariant]
    total = len(errors[0] if np.array_equal(*errors) else np.union1d(*errors))
    bounds = _bound_difference(a, b)
    return {
        **run_columns(a.run, "a"),
        **run_columns(b.run, "b"),
        "ability": ability or None,
        "total": total,
        "missing": total - made.n,
        "n": made.n,
        "only_a": counted.round_sum(np.maximum(differences, 0).sum()),
        "only_b": counted.round_sum(np.maximum(-differences, 0).sum()),
        "difference": made.value,
        "low": made.low,
        "high": made.high,
        "p": tested.p,
        "p_holm": None,
        "q": None,
        "test": tested.test or None,
        "standard_error": made.standard_error,
        "shows": shows,
        "letters_a": None,
        "letters_b": None,
        "reason": made.reason or tested.reason or (paired.TOO_FEW if shows is None else None),
        "invariant": alarms.n,
        **counted.figure_columns("false_alarm", alarms),
        "false_alarm_p": paired.test_difference(*calm, partial(make_rng, "false alarms and J")).p,
        **counted.figure_columns("j", j),
        "j_p": paired.test_j_difference(*shared).p,
        "lowest": bounds.lowest,
        "highest": bounds.highest,
    }


def run_columns(run: Run, side: str) -> dict[str, Any]:
    """The columns that name a run of a pair."""
    names = {"run": run.number, "endpoint": run.endpoint.name, "strategy": run.strategy.slug}
    return {f"{name}_{side}": value for name, value in names.items()}


def _adjust(rows: Sequence[dict[str, Any]], name: str, ps: Iterable[float | None]) -> None:
    for row, p in zip(rows, ps, strict=True):
        row[name] = p


def _group(asked: PageQuery, row: Row) -> str:
    return asked.group_title("ability", row["ability"]) if row["ability"] else "All"


def _left_out_note(row: Row) -> str:
    """A note with the number of items of either run that are not compared."""
    return f"{written.number(row['missing'])}\u00a0missing" if row["missing"] else ""


def _errors(which: str) -> columns.Link:
    """The error items of run a that run b parsed too, or of those that a detected more, or less,
    than b."""
    return columns.items(items="errors", **{which: "{run_b}"})


def _bounds_cell(row: Row, of: columns.Leading) -> Cell:
    """Both bounds of the difference in points, as one text; empty if no reply is missing."""
    low, high = row["lowest"], row["highest"]
    if low is None:
        return Cell(reason=row["reason"] or "")
    ends = [cells.points_cell(one, None, None, "").text for one in (low, high)]
    if low == high:
        lost = "no missing reply can change it" if row["missing"] else "nothing missing"
        return Cell(ends[0], low, note=lost)
    return Cell(f"{ends[0]} to {ends[1]}", low)


# Below the headers of p and letters, since the table has differences of other measures too.
OF_DETECTION = "of detection"
COMPARE = Table(
    "compare",
    (
        columns.RunNumber("run_a", "Run a"),
        *columns.plain("endpoint_a", "strategy_a"),
        columns.RunNumber("run_b", "Run b"),
        *columns.plain("endpoint_b", "strategy_b"),
        columns.Titled("ability", "Items", sort="items", title_of=_group),
        *columns.plain("total", "missing"),
        columns.Count("n", "In both", _errors(drilldown.IN_BOTH), note=_left_out_note),
        columns.Count("only_a", "Detected only by a", _errors(drilldown.ONLY_HERE)),
        columns.Count("only_b", "Detected only by b", _errors(drilldown.ONLY_THERE)),
        columns.Points("difference", "Detection, a minus b"),
        *columns.plain("low", "high"),
        columns.PValue(
            "p", "p", unit=OF_DETECTION, note=lambda row: cells.TEST_WORDS.get(row["test"], "")
        ),
        columns.PValue("p_holm", "p, adjusted", sort="adjusted", unit=OF_DETECTION),
        columns.PValue("q", "p, adjusted", sort="adjusted", unit=OF_DETECTION),
        *columns.plain("test", "standard_error"),
        columns.Distance("shows", "Smallest difference found (80 % power)"),
        columns.Text(
            "letters_a",
            "Letters",
            sort="letters",
            unit=OF_DETECTION,
            write=lambda row: f"{row['letters_a']} | {row['letters_b']}",
        ),
        *columns.plain("letters_b", "reason", "invariant"),
        columns.Points("false_alarm", "False alarms, a minus b", prefix="false_alarm_"),
        *columns.plain("false_alarm_low", "false_alarm_high", "false_alarm_reason"),
        columns.PValue("false_alarm_p", "p of false alarms", reason="false_alarm_reason"),
        columns.Figure("j", "J, a minus b", signed=True),
        *columns.plain("j_low", "j_high", "j_reason"),
        columns.PValue("j_p", "p of J", reason="j_reason"),
        columns.Custom(
            "lowest", "Bounds of the difference", make=_bounds_cell, unit=cells.POINTS_UNIT
        ),
        columns.Column("highest"),
    ),
    lambda project, runs, by: compare(runs),
    of_people=False,
    # Where items have many samples, each test draws a million numbers.
    at_once=columns.GROUP_DRAW_LIMIT,
    about="A row per pair of runs, first over all abilities, then by ability (unless there are "
    f"more than {MOST_BY_ABILITY:,} of these rows): the difference of their detection, false "
    "alarms and J on the items that both parsed.",
    meanings={
        "ability": "ability of the items (of score-invariant items, that of the answer they were "
        "made from); empty over all abilities",
        "total": "number of error items of either run",
        "missing": "number of error items of either run that are not usable in both",
        "n": "number of error items with a usable outcome in both runs",
        "only_a": "number of error items that run a alone detected",
        "only_b": "number of error items that run b alone detected",
        "difference": "detection rate of run a minus that of run b over the `n` items",
        "p": "p of this difference from a sign-flip test over source questions",
        "p_holm": "this p adjusted for all pairs of runs (Holm); only in rows over all abilities",
        "q": "this p adjusted for all rows by ability (Benjamini and Hochberg); only in these rows",
        "test": "how p was computed: `exact`, `drawn` (random sign patterns) or `t` (Student's t)",
        "standard_error": "standard error of `difference`",
        "shows": "smallest difference that would be found with 80 % power after this adjustment",
        "letters_a": "letters of run a: two runs with a letter in common were not shown to differ "
        "in detection; only in rows over all abilities",
        "letters_b": "letters of run b",
        "invariant": "number of score-invariant items with a usable outcome in both runs",
        "false_alarm": "false-alarm rate of run a minus that of run b over the `invariant` items",
        "false_alarm_p": "p of this difference from the same test, not adjusted",
        "j": "J of run a minus J of run b",
        "j_p": "p of this difference, from its interval, not adjusted",
        "lowest": "lowest difference of detection over all error items that both runs were asked, "
        "whatever the missing replies would have been",
        "highest": "highest difference of detection over these items",
    },
)

ALL = "all"
SCOPE_SWITCH = Switch("of", "Over", {ALL: "All items", ABILITY: "Each ability"})
_FIRST = ("ability", "run_a", "run_b", "n", "difference")
_LAST = (
    *("false_alarm", "j", "j_p", "only_a", "only_b", "p", "false_alarm_p", "shows"),
    "lowest",
)
_BOUNDS_WORDS = (
    "Bounds: the range of the difference of detection over all error items that both runs were "
    "asked, whatever the missing replies would have been. The difference itself is over the items "
    "that both parsed, so it can lie outside its bounds."
)
_WORDS = (
    "Detection rates on the error items that both runs parsed, and false alarms on the "
    "score-invariant ones. J is detection minus false alarms: a run that detects more only because "
    "it always finds fault has no higher J. p: sign-flip test over questions (a McNemar test that "
    "allows several items a question), exact unless stated otherwise; {} p of J: below 0.05 where "
    "its interval leaves out 0. The p of false alarms and of J are not adjusted. Smallest "
    "difference found: what is found with 80 % power after this adjustment, if nothing else "
    f"differs. {_BOUNDS_WORDS}"
)


class Pairs(columns.Leading):
    """Pairs of runs, whose figures link to the items of run a."""

    def items_url(self, row: Row, **which: str) -> str:
        group = {"ability": row["ability"]} if row.get("ability") else {}
        return cells.items_url(self.runs[row["run_a"]], group, **which)


# The columns of the two runs of a pair, by which the list of pairs can be filtered.
_SIDES = ("run_a", "run_b")


def _name_run(asked: PageQuery, field: str, number: str) -> str:
    run = next((one for key, one in asked.runs_by_number.items() if str(key) == number), None)
    return cells.run_name(run) if run and field in _SIDES else ""


def _select(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    over = asked.switch_value(SCOPE_SWITCH.name)
    return [
        row
        for row in tables[0]
        if asked.is_judging(row, "run_a", "run_b") and bool(row["ability"]) is (over == ABILITY)
    ]


def _name(asked: PageQuery, row: Row) -> str:
    """The group, unless it is all items, and the two runs, on separate lines."""
    a, b = (cells.run_name(asked.runs_by_number[row[name]], ": ") for name in ("run_a", "run_b"))
    return ": ".join((*([_group(asked, row)] if row.get("ability") else []), a, f"minus {b}"))


# The measures of the matrix, by the column of their difference, and the columns of their p.
DETECTION, ALARMS, J = "difference", "false_alarm", "j"
MEASURE_SWITCH = Switch(
    "measure", "Difference of", {DETECTION: "Detection", ALARMS: "False alarms", J: "J"}
)
_PS = {DETECTION: "p", ALARMS: "false_alarm_p", J: "j_p"}
J_AXIS, WIDE_J_AXIS = Axis(-1, 1, "+.1f", "+.2f"), Axis(-2, 2, "+.1f", "+.2f")
_DRAWN_WORDS = {
    DETECTION: "in detection rate on error items that both runs parsed, in percentage points, with "
    "95 % intervals. Above 0, the first run of the pair detects more.",
    ALARMS: "in the rate of false alarms on score-invariant items that both runs parsed, in "
    "percentage points, with 95 % intervals. Above 0, the first run of the pair has more.",
    J: "of J on the items that both runs parsed, with 95 % intervals. Above 0, the first run of "
    "the pair has the higher J.",
}


def draw_differences(asked: PageQuery, rows: Rows, measure: str = DETECTION) -> ChartSpec | None:
    """Draw the difference of each pair of runs in one measure."""
    # Imported here, since importing Altair takes a second and nothing else should wait for it.
    from charts import differences

    prefix, scale = _prefix(measure), 1 if measure == J else 100
    there = [row for row in rows if row[measure] is not None]

    def scaled(value: float | None) -> float | None:
        return None if value is None else scale * value

    found = [
        differences.Difference(
            _name(asked, row),
            scale * row[measure],
            scaled(row[f"{prefix}low"]),
            scaled(row[f"{prefix}high"]),
            row["invariant" if measure == ALARMS else "n"],
        )
        for row in there[: chart_parts.MOST_BARS]
    ]
    caption = f"Differences {_DRAWN_WORDS[measure]}"
    if len(there) > len(found):
        caption += f" The first {len(found)} of {len(there)} pairs; choose fewer runs."
    if not found:
        return None
    if measure == J:
        ends = chart_parts.list_ends(
            Estimate(one.points, one.low, one.high, one.n) for one in found
        )
        axis = J_AXIS if max(map(abs, ends)) <= 1 else WIDE_J_AXIS
        return ChartSpec(differences.draw_differences(found, "Difference of J", axis), caption)
    return ChartSpec(differences.draw_differences(found), caption)


_OVER_ALL = lines.Lines(
    COMPARE,
    "Runs in pairs",
    (*_FIRST, "p_holm", "letters", *_LAST),
    _WORDS.format(
        "adjusted for all pairs (Holm). Runs with a letter in common were not shown to differ. "
        "Intervals are for each pair alone, without that adjustment, so one may leave out 0 "
        "although the letters show no difference."
    ),
    draw_differences,
    _select,
    Pairs,
)
_OVER_ABILITIES = lines.Lines(
    COMPARE,
    "Runs in pairs",
    (*_FIRST, "q", *_LAST),
    _WORDS.format("adjusted for all rows (Benjamini-Hochberg): exploratory."),
    draw_differences,
    _select,
    Pairs,
)


def build_differences(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per pair of runs, over all error items or over the error items of each ability."""
    over_all = asked.switch_value(SCOPE_SWITCH.name) == ALL
    shown = (_OVER_ALL if over_all else _OVER_ABILITIES)(asked, tables)
    if not over_all:
        return shown
    runs = len(arrays.select_judging(asked.runs))
    pairs, there = comb(runs, 2), len(_select(asked, tables))
    if there < pairs:
        words = (
            f"{there} of {pairs} pairs shown. The adjusted p is for all pairs of the {runs} runs."
        )
        return replace(shown, headline=words)
    if pairs > 1:
        return shown
    return replace(
        shown,
        headline="Only two runs are chosen, so p is adjusted for one pair: it stays as it is.",
        under="With more runs chosen, it is adjusted for all their pairs and may be larger.",
    )


SIGNIFICANT = 0.05
_MATRIX_WORDS = (
    "The run of the row minus that of the column, on the items that both parsed. A p stands where "
    "it is below 0.05. "
)
_MATRIX_MEASURES = {
    DETECTION: "Detection rates of error items, in points, the run that detects most first: it may "
    "be one that always finds fault, which J tells. p is adjusted for all pairs (Holm). Runs with "
    "a letter in common were not shown to differ. Intervals are not adjusted: one may leave out 0 "
    "although the letters show no difference.",
    ALARMS: "Rates of false alarms on score-invariant items, in points, the run with the fewest "
    "first. p is adjusted for all pairs (Holm).",
    J: "J is detection minus false alarms; the run with the highest comes first. p is from the "
    "interval and is adjusted for all pairs (Holm); the page Choose an evaluator has letters for "
    "J.",
}


def build_matrix(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """A line and a column per run, and the difference of each two in one of three measures."""
    measure = asked.switch_value(MEASURE_SWITCH.name)
    rows = [row for row in _select_whole(asked, tables) if row["n"] or row["invariant"]]
    adjusted = families.holm([row[_PS[measure]] for row in rows])
    by_pair = {
        (row["run_a"], row["run_b"]): {**row, "pair": (row["run_a"], row["run_b"]), "adjusted": p}
        for row, p in zip(rows, adjusted, strict=True)
    }
    by_pair |= {(b, a): _turn(row) for (a, b), row in by_pair.items()}
    sign = -1 if measure == ALARMS else 1
    numbers = _order_runs(
        {
            pair: None if row[measure] is None else sign * row[measure]
            for pair, row in by_pair.items()
        }
    )
    letters = {a: row["letters_a"] for (a, _), row in by_pair.items()}
    grid_lines = [
        GridLine(
            (
                cells.run_cell(asked.runs_by_number[a]),
                *([cells.text_cell(letters[a])] if measure == DETECTION else []),
                *(_matrix_cell(asked, by_pair.get((a, b)), measure) for b in numbers),
            )
        )
        for a in numbers
    ]
    headers = [
        Header("Run", "run", is_number=False),
        *([Header("Letters", "letters", is_number=False)] if measure == DETECTION else []),
        *(cells.run_header(asked.runs_by_number[one]) for one in numbers),
    ]
    against_first = [by_pair[numbers[0], b] for b in numbers[1:] if (numbers[0], b) in by_pair]
    return ViewContent(
        cells.build_grid("Each run against each", headers, grid_lines),
        draw_differences(asked, against_first, measure),
        f"{_MATRIX_WORDS}{_count_shared(rows)}{_MATRIX_MEASURES[measure]}",
        "A difference leads to its pair.",
    )


def _count_shared(rows: Rows) -> str:
    """A sentence on how many items the pairs rest on; "" without a pair."""
    if not rows:
        return ""
    kinds = {"n": "error", "invariant": "score-invariant"}
    shared = (
        f"{cells.write_range([row[name] for row in rows])} {kind} items"
        for name, kind in kinds.items()
    )
    return f"Each two runs share {' and '.join(shared)}. "


def _select_whole(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    return [
        row for row in tables[0] if not row["ability"] and asked.is_judging(row, "run_a", "run_b")
    ]


def _turn(row: Row) -> Row:
    """The same pair with the runs in the other order."""

    def turned(value: float | None) -> float | None:
        return None if value is None else -value

    ends = {
        f"{prefix}{end}": turned(row[f"{prefix}{other}"])
        for prefix in ("", "false_alarm_", "j_")
        for end, other in (("low", "high"), ("high", "low"))
    }
    ends |= {"lowest": turned(row["highest"]), "highest": turned(row["lowest"])}
    sides = {
        f"{name}_{one}": row[f"{name}_{other}"]
        for name in ("run", "endpoint", "strategy", "letters", "only")
        for one, other in (("a", "b"), ("b", "a"))
    }
    return {**row, **ends, **sides, **{name: turned(row[name]) for name in _PS}}


def _order_runs(differences: Mapping[tuple[int, int], float | None]) -> list[int]:
    """The runs of these pairs, from the highest to the lowest by the mean of their differences from
    the others."""
    found: dict[int, list[float]] = {run: [] for pair in differences for run in pair}
    for (a, b), difference in differences.items():
        if difference is not None:
            found[a].append(difference)
            found[b].append(-difference)
    return sorted(found, key=lambda one: (-float(np.mean(found[one] or [0])), one))


def _matrix_cell(asked: PageQuery, row: Row | None, measure: str) -> Cell:
    if row is None:
        return Cell("")
    p = row["adjusted"]
    note = f"p {cells.p_value_cell(p).text}" if p is not None and p < SIGNIFICANT else ""
    if measure == J:
        made = cells.with_sign(cells.figure_cell(row, "j"))
    else:
        prefix = _prefix(measure)
        made = cells.points_cell(
            row[measure], row[f"{prefix}low"], row[f"{prefix}high"], row[f"{prefix}reason"]
        )
    # The pair among the same runs, so that its p is adjusted for as many pairs as here.
    changes: dict[str, str | None] = dict.fromkeys((MEASURE_SWITCH.name, SORT_PARAMETER))
    changes |= {VIEW_PARAMETER: PAIRS_VIEW, INTERVALS_PARAMETER: "yes"}
    changes |= zip(_SIDES, map(str, row["pair"]), strict=True)
    href = asked.link(**changes)
    return replace(made, note=note, href=href if made.is_there else "")


# What a reader takes for too small to matter, in points or hundredths of J.
MARGIN_SWITCH = Switch(
    "margin", "Equivalent within", {"5": "±5 points", "2": "±2 points", "10": "±10 points"}
)
CONTROL_PARAMETER = "control"
# What a run is, above the control or below it, by measure.
_VERDICTS = {
    DETECTION: ("detects more", "detects less"),
    ALARMS: ("more false alarms", "fewer false alarms"),
    J: ("higher J", "lower J"),
}
_CONTROL_WORDS = (
    "Each run minus the control, on the items that both parsed. p: of the chosen difference, "
    "sign-flip test over questions (for J, from its interval), adjusted for the comparisons of "
    "this table (Holm): against one control there are fewer than among all pairs. Equivalent: the "
    "whole 95 % interval lies within the chosen margin (for J, hundredths in place of points); "
    "choose it before you look. "
    f"Not settled: neither a difference nor equivalence was shown. {_BOUNDS_WORDS}"
)


def find_control(asked: PageQuery) -> int | None:
    """The number of the control: the run in the URL if it is chosen, else the first."""
    numbers = [run.number for run in arrays.select_judging(asked.runs)]
    said = asked.query.get(CONTROL_PARAMETER, "")
    return next((one for one in numbers if str(one) == said), min(numbers, default=None))


def offer_controls(asked: PageQuery) -> list[ChoiceGroup]:
    """The chosen runs, one of which is the control."""
    now = find_control(asked)
    options = [
        Choice(str(run.number), cells.run_name(run), run.number == now)
        for run in arrays.select_judging(asked.runs)
    ]
    title = next((f"Control: {one.title}" for one in options if one.chosen), "")
    return [ChoiceGroup(CONTROL_PARAMETER, title, options, only_one=True)] if options else []


def build_control(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per other run, with its differences from the control."""
    control, measure = find_control(asked), asked.switch_value(MEASURE_SWITCH.name)
    margin = int(asked.switch_value(MARGIN_SWITCH.name)) / 100
    against = [
        row if row["run_b"] == control else _turn(row)
        for row in _select_whole(asked, tables)
        if control in (row["run_a"], row["run_b"])
    ]
    adjusted = families.holm([row[_PS[measure]] for row in against])
    prefix = _prefix(measure)
    rows = [
        {
            **row,
            "adjusted": p,
            "adjusted_reason": row[f"{prefix}reason"],
            "verdict": _judge(row, measure, p, margin),
        }
        for row, p in zip(against, adjusted, strict=True)
    ]
    shown = _AGAINST_CONTROL(asked, [rows])
    return replace(shown, drawing=draw_differences(asked, rows, measure))


def _judge(row: Row, measure: str, p: float | None, margin: float) -> str:
    """Whether the run differs from the control or is equivalent to it, in a few words."""
    prefix = _prefix(measure)
    value, low, high = row[measure], row[f"{prefix}low"], row[f"{prefix}high"]
    if value is None:
        return written.DASH
    apart = p is not None and p < SIGNIFICANT
    alike = low is not None and -margin < low and high < margin
    if not apart:
        return "equivalent" if alike else "not settled"
    verdict = _VERDICTS[measure][0 if value > 0 else 1]
    return f"{verdict}, within the margin" if alike else verdict


def _prefix(measure: str) -> str:
    """How the names of the columns begin that belong to this measure."""
    return "" if measure == DETECTION else f"{measure}_"


_AGAINST_CONTROL = lines.Lines(
    COMPARE,
    "Each run against the control",
    (
        replace(COMPARE["run_a"], title="Run"),
        "n",
        replace(COMPARE["difference"], title="Detection"),
        replace(COMPARE["false_alarm"], title="False alarms"),
        replace(COMPARE["j"], title="J"),
        columns.PValue("adjusted", "p, adjusted", reason="adjusted_reason"),
        columns.Text("verdict", "Compared with the control"),
        "lowest",
    ),
    _CONTROL_WORDS,
    leading=Pairs,
)
_EMPTY = (
    "Compare needs two or more runs that judge perturbed answers of the same items. For error "
    "detection and ratings, see the pages Detector and Against people. With very many runs, "
    "choose fewer: they are compared over all items alone."
)
VIEWS = (
    ResultView(
        slug="matrix",
        title="Each against each",
        asks=(TableQuery(COMPARE, ""),),
        figures=("difference", "j", "p_holm"),
        build=build_matrix,
        studies={},
        switches=(MEASURE_SWITCH,),
        empty=_EMPTY,
    ),
    ResultView(
        slug=CONTROL_VIEW,
        title="Against one run",
        asks=(TableQuery(COMPARE, ""),),
        figures=("difference", "j", "p_holm", "equivalence"),
        build=build_control,
        studies={},
        switches=(MEASURE_SWITCH, MARGIN_SWITCH),
        choices=offer_controls,
        empty=_EMPTY,
    ),
    ResultView(
        slug=PAIRS_VIEW,
        title="Runs in pairs",
        asks=(TableQuery(COMPARE, ""),),
        figures=("difference", "j", "p_holm", "shows"),
        build=build_differences,
        studies={},
        switches=(SCOPE_SWITCH,),
        columns=_SIDES,
        titles=dict(zip(_SIDES, ("Run a", "Run b"), strict=True)),
        named=_name_run,
        empty=_EMPTY,
        table_first=True,
    ),
)
