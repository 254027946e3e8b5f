"""Which replies were unusable, and how much could they change the rates? The table `missing` of
causes and bounds, and the page Missing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from annotation.templatetags import figures as written
from judging.models import Outcome, Run
from judging.results import arrays, cells, chart_parts, columns, counted, frames, lines, progress
from judging.results.cells import Cell, Grid, GridLine, Header, LineBlock, Row
from judging.results.columns import Table
from judging.results.counted import PARSED_SQL, UNDETECTED_SQL, GroupSums, json_text, one_if
from judging.results.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    TableQuery,
    ViewContent,
)
from judging.results.tables.undetected import RATE_BESIDE, UNDETECTED, with_undetected
from judging.strategies.replies.causes import describe_cause, name_cause
from stats import absence
from stats.estimates import Estimate, PValue

CATEGORY = "category"
NOT_TESTED_REASON = "judges no perturbed answers"

# Run, group and class of items.
Key = tuple[Any, ...]


def tabulate(runs: Iterable[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    """The table `missing`: for each run and group, a row per cause, the most frequent first. A
    group without missing outcomes has one row without a cause.

    `lowest` and `highest` are the bounds of the group's undetected rate over all values of the
    missing outcomes: (undetected + settled) / total and (undetected + missing) / total. Settled are
    missing pairs with one parsed order that did not choose gold: undetected in both bounds. `p` is
    over the run's error items; a small p suggests that what is missing depends on the category.
    Detectors and ratings have no undetected rate, so they have no bounds. Their rows cover items of
    all classes but no duplicates, and `parsed` counts all items with any parsed value. Raises
    `UnknownField`.
    """
    runs = list(runs)
    counted.check_fields(by)
    rated, others = frames.split_by_rate(runs)
    order = {run.number: place for place, run in enumerate(runs)}
    rows = [*_rows_with_rates(rated, by), *_rows_without_rates(others, by)]
    return sorted(rows, key=lambda row: order[row["run"]])


def _rows_with_rates(runs: Sequence[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    counts = {
        "undetected": f"CASE WHEN {PARSED_SQL} THEN {UNDETECTED_SQL} ELSE 0 END",
        "lost": _lost_sql(),
    }
    found = counted.sum_outcomes(runs, by, counts=counts)
    causes, depends = _count_causes(runs, by), _test_dependence(runs)
    return [
        row
        for one in found
        for row in _rows(one, causes.get(_group_key(one), {}), depends.get(one.run.pk))
    ]


def _rows_without_rates(runs: Sequence[Run], by: Sequence[str]) -> Iterable[dict[str, Any]]:
    """The rows of runs without an undetected rate."""
    known = {run.pk: run for run in runs}
    names = ", ".join(f"o.{name}" for name in ("run_id", *by))
    found: dict[Key, dict[str, int]] = {}
    for some in progress.split_if_watched(list(known), "counting outcomes") if known else ():
        statement = f"""
            SELECT {names}, o.cause, COUNT(*) AS n FROM {Outcome._meta.db_table} AS o
            WHERE {counted.counted_condition(some)} AND {counted.original_condition()}
            GROUP BY {names}, o.cause ORDER BY n DESC, o.cause
        """
        for row in counted.fetch_dicts(statement):
            key = (row["run_id"], *(row[name] for name in by))
            found.setdefault(key, {})[row["cause"]] = int(row["n"])
    categories = counted.load_categories(runs)

    def place(one: tuple[Key, Any]) -> list[tuple[int, str]]:
        return categories.order_of(dict(zip(by, one[0][1:], strict=True)))

    for (pk, *group), causes in sorted(found.items(), key=place):
        parsed = causes.pop("", 0)
        bare = GroupSums(
            run=known[pk],
            group=dict(zip(by, group, strict=True)),
            invariant=False,
            total=parsed + sum(causes.values()),
            parsed=parsed,
            rates={},
            counts={},
        )
        yield from _rows(bare, causes, None)


def _lost_sql() -> str:
    """SQL for 1 if only one order was parsed and its choice was not gold, else 0."""
    # SQLite returns 0 for a JSON false.
    chose_gold = f"CAST({json_text('chose_gold')} AS TEXT)"
    return one_if(f"o.cause = 'one_order' AND {chose_gold} IN ('false', '0')")


def _count_causes(runs: Sequence[Run], by: Sequence[str]) -> dict[Key, dict[str, int]]:
    if not runs:
        return {}
    names = ", ".join(f"o.{name}" for name in ("run_id", *by, "invariant"))
    statement = f"""
        SELECT {names}, o.cause, COUNT(*) AS n FROM {Outcome._meta.db_table} AS o
        WHERE {counted.counted_condition(run.pk for run in runs)} AND o.result = 'missing'
            {counted.separate_condition(by)}
        GROUP BY {names}, o.cause ORDER BY n DESC, o.cause
    """
    found: dict[Key, dict[str, int]] = {}
    for row in counted.fetch_dicts(statement):
        key = (row["run_id"], *(row[name] for name in by), bool(row["invariant"]))
        found.setdefault(key, {})[row["cause"]] = int(row["n"])
    return found


def _test_dependence(runs: Sequence[Run]) -> dict[int, PValue]:
    found = {}
    for one in progress.iterate(arrays.load_arrays(runs, (CATEGORY,)), "permuting missing replies"):
        errors = one.only(~one.invariant)
        _, category = np.unique(errors.fields[CATEGORY].astype(str), return_inverse=True)
        rng = arrays.make_generator("missing", [one.run])
        gone = np.isnan(errors.detected)
        found[one.run.pk] = absence.permutation_p_value(gone, category, errors.cluster, rng)
    return found


def _group_key(found: GroupSums) -> Key:
    return (found.run.pk, *found.group.values(), found.invariant)


def _rows(
    found: GroupSums, causes: Mapping[str, int], depends: PValue | None
) -> Iterable[dict[str, Any]]:
    lowest, highest = _bounds(found)
    tested = depends or PValue(None, 0, NOT_TESTED_REASON)
    listed: list[tuple[str | None, int]] = [*causes.items()]
    for cause, n in listed or [(None, 0)]:
        yield {
            **found.head(),
            "parsed": found.parsed,
            "cause": cause,
            "n": n,
            "lowest": lowest,
            "highest": highest,
            "p": tested.p,
            "p_reason": tested.reason or None,
            "score_invariant": found.invariant,
        }


def _bounds(found: GroupSums) -> tuple[float | None, float | None]:
    if not found.counts:
        return None, None
    sure = found.counts["undetected"] + found.counts["lost"]
    unsure = found.missing - found.counts["lost"]
    return sure / found.total, (sure + unsure) / found.total


def _has_rate(row: Row) -> bool:
    """True if the row has an undetected rate; detectors and ratings have none."""
    return row["lowest"] is not None


def _bound(name: str, title: str) -> columns.Custom:
    """A bound over all items, with usable and missing replies."""

    def cell(row: Row, of: columns.Leading) -> Cell:
        return replace(cells.percent_cell(row[name]), n=row["total"]) if _has_rate(row) else Cell()

    return columns.Custom(name, title, make=cell)


def cause_title(cause: str) -> str:
    """The title of a cause of a missing reply."""
    return name_cause(cause).capitalize()


MISSING = Table(
    "missing",
    (
        *columns.RUN,
        columns.Column("total"),
        columns.Share("missing", "Missing", columns.items(result="missing"), part_of="total"),
        columns.FIELDS,
        columns.Column("parsed"),
        columns.Text("cause", "Cause", write=lambda row: cause_title(row["cause"])),
        columns.Share(
            "n", "Items", columns.items(result="missing", cause="{cause}"), part_of="total"
        ),
        _bound("lowest", "If all missing were detected"),
        _bound("highest", "If all missing were undetected"),
        columns.PValue("p", "By category, p", reason="p_reason"),
        *columns.plain("p_reason", "score_invariant"),
    ),
    lambda project, runs, by: tabulate(runs, by),
    group_by=counted.BY_OUTCOME_FIELDS,
    of_people=False,
    with_duplicates=True,
    about="A row per run, group and cause of missing outcomes, and the bounds of the "
    "undetected rate; a group without missing outcomes has one row without a cause.",
    meanings={
        "cause": "why the replies were not usable; empty if nothing is missing",
        "n": "number of items that are missing for this cause",
        "lowest": "undetected rate over all `total` items if every missing one had been detected",
        "highest": "undetected rate over all `total` items if every missing one had been "
        "undetected",
        "p": "p of a permutation test whether missing replies depend on the category, over all "
        "error items of the run",
    },
)
_RATE = columns.Custom(
    "rate",
    "Undetected rate",
    make=lambda row, of: RATE_BESIDE.cell(row, of) if _has_rate(row) else Cell(),
)


class _Groups(lines.RunGroups):
    """Groups of any runs; the items of detectors and ratings have no ability to filter by."""

    def items_url(self, row: Row, **which: str) -> str:
        # The rate beside links to the items of its own row, which is one of `undetected`.
        if "lowest" not in row or _has_rate(row):
            return super().items_url(row, **which)
        group = {field: row[field] for field in counted.FIELDS if row.get(field)}
        return cells.outcomes_url(self.runs[row["run"]], **group, **which, counted="yes")


# The columns of a run or a group, behind its name.
_SHOWN = (MISSING["missing"], MISSING["lowest"], _RATE, MISSING["highest"], MISSING["p"])
_WORDS = (
    "A reply that could not be used counts in no rate. Over all items, the undetected rate is "
    "between two bounds, whatever the missing replies would have said: if all of them were "
    "detected, and if all were undetected. A pair with one usable order that did not choose gold "
    "is undetected in both. The bounds are not confidence intervals. A small p suggests that "
    "missing replies depend on the category. Run only covers error items; Abilities has "
    "score-invariant items too. For error detection and ratings, see the bounds on the pages "
    "Detector and Against people."
)


def build_causes(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """A block for each run and group: a line with its bounds, then a line per cause. The blocks
    with the largest missing share come first."""
    groups: dict[Key, Rows] = {}
    for row in with_undetected(asked, tables):
        groups.setdefault(lines.row_key(row), []).append(row)
    found = sorted(groups.values(), key=lambda rows: -_missing_share(rows[0]))
    heads = [rows[0] for rows in found]
    leading = _Groups(asked, heads)
    described: set[str] = set()
    blocks = tuple(_build_block(rows, leading, described) for rows in found)
    names = [*(["Group"] if leading.fields else []), *(["run"] if leading.has_run else []), "cause"]
    first = Header(" and ".join(names).capitalize(), is_number=False)
    headers = (first, *(replace(column.header(), name="") for column in _SHOWN))
    headline, under = _sum_up([row for rows in found for row in rows], heads, leading)
    return ViewContent(
        Grid("Missing replies by cause", headers, blocks),
        _draw(asked, heads),
        _WORDS,
        headline,
        under,
    )


def _missing_share(row: Row) -> float:
    share: float = row["missing"] / row["total"]
    return share


def _build_block(rows: Rows, of: _Groups, described: set[str]) -> LineBlock:
    """The lines of a run and group. A cause is described where it occurs first on the page."""
    head = GridLine((_name(rows[0], of), *(column.cell(rows[0], of) for column in _SHOWN)), "group")
    blank = [Cell("") for _ in _SHOWN[1:]]
    causes = []
    for row in rows:
        if row["cause"]:
            note = "" if row["cause"] in described else describe_cause(row["cause"])
            described.add(row["cause"])
            name = replace(MISSING["cause"].cell(row, of), note=note)
            causes.append(GridLine((name, MISSING["n"].cell(row, of), *blank)))
    return LineBlock((head, *causes))


def _name(row: Row, of: _Groups) -> Cell:
    """The run and the group of a block."""
    run = cells.run_cell(of.runs[row["run"]])
    if not of.fields:
        return run
    title = ", ".join(lines.group_title(of.asked, field, row) for field in of.fields)
    return cells.text_cell(title, note=f"{run.text} · {run.note}" if of.has_run else "")


def _sum_up(rows: Rows, heads: Rows, of: _Groups) -> tuple[str, str]:
    """What is missing and why, and whether it could change a conclusion: two sentences."""
    causes: dict[str, int] = {}
    for row in rows:
        if row["cause"]:
            causes[row["cause"]] = causes.get(row["cause"], 0) + row["n"]
    if not causes:
        return "Nothing is missing: every reply could be used.", ""
    total, gone = (sum(row[name] for row in heads) for name in ("total", "missing"))
    often = max(causes, key=lambda cause: causes[cause])
    headline = (
        f"Missing: {written.share(gone / total)} of {total:,} outcomes. Most frequent cause: "
        f"{cause_title(often).lower()}, {written.share(causes[often] / gone)} of them."
    )
    # A check of explanations has a rate too, but of another kind: no order of evaluators.
    judging = {run.number for run in arrays.select_judging(of.asked.runs)}
    compared = [row for row in heads if _has_rate(row) and row["run"] in judging]
    return headline, _judge_conclusions(compared, of)


def _judge_conclusions(heads: Rows, of: _Groups) -> str:
    """Whether the missing replies could change the order of the runs, or how much they could move
    the rates."""
    if not heads:
        return ""
    widest = max(heads, key=lambda row: row["highest"] - row["lowest"])
    ends = " to ".join(written.share(widest[end]) for end in ("lowest", "highest"))
    if len(heads) == 1:
        return f"Whatever the missing replies would have said, the undetected rate is {ends}."
    bounds = f"Widest bounds: {ends}, {_describe(widest, of)}."
    if of.fields:
        return bounds
    pairs = list(combinations(heads, 2))
    turned = sum(a["lowest"] < b["highest"] and b["lowest"] < a["highest"] for a, b in pairs)
    if not turned:
        return f"For no two runs could the missing replies change which one detects more. {bounds}"
    return (
        f"In {turned:,} of {len(pairs):,} pairs of runs the bounds overlap: there the missing "
        f"replies could change which of the two detects more. {bounds}"
    )


def _describe(row: Row, of: _Groups) -> str:
    parts = [lines.group_title(of.asked, field, row) for field in of.fields[:1]]
    return ", ".join([*parts, of.runs[row["run"]].mention])


def _draw(asked: PageQuery, heads: Rows) -> ChartSpec | None:
    """Draw one mark per run and group, however many causes there are."""
    rated = [row for row in heads if row["of_rate"]]
    found = [
        (
            "",
            lines.chart_label(asked, row),
            Estimate(row["of_rate"]["rate"], row["lowest"], row["highest"], row["parsed"]),
        )
        for row in rated[: chart_parts.MOST_BARS]
    ]
    caption = (
        "Undetected rates with bounds, the largest missing share first. The lower bound counts "
        "every missing item as detected, except pairs with one usable order that did not choose "
        "gold; the upper bound counts none as detected. These are not confidence intervals."
        f"{chart_parts.cut_note(len(rated))}"
    )
    return chart_parts.draw_dots(
        found, title="Undetected rate", caption=caption, ends=("Lowest", "Highest")
    )


VIEWS = (
    ResultView(
        slug="causes",
        title="Causes and bounds",
        asks=(TableQuery(MISSING), TableQuery(UNDETECTED)),
        figures=("rate", "bounds", "missing_p"),
        build=build_causes,
        studies={},
        empty="The chosen runs have no outcomes of items with a final label.",
        switches=(lines.group_switch(lines.BY_RUN),),
        table_first=True,
    ),
)
