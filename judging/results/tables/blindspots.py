"""In which slices does a run miss more errors than elsewhere? The table `blindspots`, and the page
Blind spots."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import combinations, groupby, product
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Exists, OuterRef

from annotation.items import taxonomy
from annotation.items.diffing.difference import ALGORITHM
from annotation.items.taxonomy import Taxonomy
from annotation.models import Item, Project, Revision
from annotation.reports.grouping import GROUPING_COLUMNS, Grouping
from annotation.templatetags import figures as written
from judging.models import Outcome, Run
from judging.results import (
    arrays,
    cells,
    columns,
    counted,
    detectors,
    drilldown,
    group_fields,
    item_features,
    lines,
    progress,
)
from judging.results.arrays import Bools, Ints, RunArrays
from judging.results.cells import Cell, Row
from judging.results.columns import Table
from judging.results.item_features import FEATURES, FeatureValues
from judging.results.page_parts import (
    BY_PARAMETER,
    INTERVAL_WORDS,
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    Switch,
    TableQuery,
    ViewContent,
)
from stats import families
from stats.slices import ALL_ALIKE, LEAST_DIFFERENCE, SliceableItems, SliceContrast

CATEGORY, ABILITY = "category", "ability"
STRATUM_FIELDS = (CATEGORY, ABILITY)
# p is corrected in three families: abilities and categories, single values of other fields, and
# pairs of values. There may be hundreds of pairs.
GROUPS, VALUES, PAIRS = "groups", "values", "pairs"
OUTCOME_FIELDS = (*STRATUM_FIELDS, "source_ability")
SIGNIFICANT = 0.05
# A field with more values than this identifies items rather than groups, so it forms no slices.
VALUE_LIMIT = 50
# So many pairs of values take a worker some minutes for each run.
PAIR_LIMIT = 10_000


class ItemGroup(NamedTuple):
    """The items with one value of a field (`inside`), and those with any value (`known`)."""

    name: str
    value: str
    inside: Bools
    known: Bools


class ItemSlice(NamedTuple):
    """One group, or the intersection of two groups; `within` is true if the slice is compared
    within categories.

    The items of a slice are computed when needed, since there may be hundreds of slices.
    """

    groups: tuple[ItemGroup, ...]
    within: bool

    @property
    def name(self) -> str:
        """The groups as `field=value`, separated by commas."""
        return ", ".join(f"{one.name}={one.value}" for one in self.groups)

    @property
    def family(self) -> str:
        """The family of tests for the correction of its p-value."""
        if len(self.groups) > 1:
            return PAIRS
        return GROUPS if self.groups[0].name in STRATUM_FIELDS else VALUES

    @property
    def inside(self) -> Bools:
        """For each item, true if it is in all of the groups."""
        return np.logical_and.reduce([one.inside for one in self.groups])

    @property
    def known(self) -> Bools:
        """For each item, true if it has a value in all of the fields."""
        return np.logical_and.reduce([one.known for one in self.groups])


@dataclass(frozen=True)
class ItemColumns:
    """The data for slicing items: the names of the fields, the values of columns and fields by item
    id, and the measured features by the id of their revision or item."""

    names: tuple[str, ...]
    of_items: dict[str, dict[int, Any]]
    measures: dict[str, FeatureValues]


def tabulate(project: Project, runs: Iterable[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    """The table `blindspots`: for each run, a row per slice, that is, per value of the fields `by`
    and per pair of values of two of them. Each slice is compared with the rest of the error items;
    the one whose difference is largest at the lower end of its interval comes first.

    Fields are columns of items, own fields of items, or measured features. `rate` is the undetected
    rate over the slice's `n` parsed items. `rest` is the rate over the `rest_n` other items with a
    value of these fields. Slices other than an ability or a category are compared within
    categories, and `difference` is the Mantel-Haenszel difference of `compared` items of the slice
    and `rest_compared` of the rest, those in categories that have both. `p` is one-sided; `q` is
    adjusted (Benjamini and Hochberg) over the `tests` of the slice's `family` in the run: abilities
    and categories (always all of them, even if only one field was requested), single values of
    other fields, or pairs. A slice is `blind` if q is below 0.05 and the difference is 10 points or
    more; this is exploratory. A field with the same values as an earlier field has no slices.
    `identical` is the number of error items of the run whose gold and perturbed answers are the
    same text. They are left out of all slices, of the rest and of `total`. Raises `UnknownField`.
    """
    runs = list(runs)
    check_fields(project, by)
    read = _load_columns(project, runs, by)
    further = {CATEGORY, *(name for name in by if name in OUTCOME_FIELDS)}
    further |= {*STRATUM_FIELDS} if {*STRATUM_FIELDS} & {*by} else set()
    further |= {"revision"}
    identical = set(drilldown.identical_revisions(runs).values_list("pk", flat=True))
    # If progress is reported, load one run at a time, so that only one is in memory.
    return [
        row
        for some in progress.split_if_watched(runs, arrays.READING_STEP)
        for found in arrays.load_arrays(some, sorted(further))
        for row in _run_rows(found.only(~found.invariant), read, identical)
    ]


def check_fields(project: Project, by: Sequence[str]) -> list[Grouping]:
    """Return the groupings for these fields, without measured features. Raises `UnknownField`."""
    return detectors.check_groupings(project, [name for name in by if name not in FEATURES])


def _load_columns(project: Project, runs: Sequence[Run], by: Sequence[str]) -> ItemColumns:
    """Load the values of items other than their outcomes, once for all runs."""
    measures = [name for name in by if name in FEATURES]
    own = item_features.shadowed_features(project, measures) if measures else set()
    named = [
        Grouping(name, name, taxonomy.load_taxonomy(project))
        for name in by
        if name not in OUTCOME_FIELDS and (name not in FEATURES or name in own)
    ]
    held: dict[str, dict[int, Any]] = {one.name: {} for one in named}
    if named:
        columns = ("pk", *(one.expression() for one in named))
        rows = Item.objects.in_project(project).order_by().values_list(*columns)
        for pk, *values in rows.iterator(arrays.AT_A_TIME):
            for one, value in zip(named, values, strict=True):
                held[one.name][pk] = value
    # Diffs by a former algorithm are all stored.
    measured = [run for run in runs if run.diff_algorithm == ALGORITHM]
    judged = Revision.objects.filter(
        Exists(Outcome.objects.filter(revision=OuterRef("pk"), run__in=measured)),
        resolutions__current=True,
    )
    asked = [name for name in measures if name not in own]
    return ItemColumns(
        tuple(by), held, item_features.load_features(project, asked, judged) if asked else {}
    )


def _run_rows(errors: RunArrays, read: ItemColumns, identical: set[int]) -> list[dict[str, Any]]:
    alike = np.array([one in identical for one in errors.fields["revision"].tolist()], dtype=bool)
    found = errors.only(~alike)
    _, categories = _encode(found.fields[CATEGORY])
    cut = list(_slices(_columns(found, read), read.names))
    tested = list(_contrast(found, categories, cut))
    head = {
        **counted.run_columns(found.run),
        "total": len(found.item),
        "missing": int(np.isnan(found.detected).sum()),
    }
    rows = []
    for family in (GROUPS, VALUES, PAIRS):
        own = [(one, contrast) for one, contrast in tested if one.family == family]
        qs = families.benjamini_hochberg([contrast.p for _, contrast in own])
        of = {"family": family, "tests": sum(q is not None for q in qs)}
        rows += [
            {**head, **_name_columns(one), **of, **_row(contrast, q), "identical": int(alike.sum())}
            for (one, contrast), q in zip(own, qs, strict=True)
            if one.groups[0].name in read.names
        ]
    return sorted(rows, key=_sort_key)


def _contrast(
    found: RunArrays, categories: Ints, cut: Sequence[ItemSlice]
) -> Iterator[tuple[ItemSlice, SliceContrast]]:
    """Compare the undetected rate of each slice with the rate of the other known items.

    Slices with the same known items come together, so that the permutations that they share are in
    memory for one set of items at a time. The random numbers depend only on the run and the known
    items, so a slice has the same p whichever other slices are asked for.
    """
    keys = [(one.within, sha256(np.packbits(one.known).tobytes()).hexdigest()) for one in cut]
    order = sorted(range(len(cut)), key=keys.__getitem__)
    watched = progress.iterate(order, f"searching run {found.run.number}")
    for key, places in groupby(watched, key=keys.__getitem__):
        ready = None
        for one in (cut[place] for place in places):
            if ready is None:
                missed = np.where(one.known, 1 - found.detected, np.nan)
                rng = arrays.make_generator("blindspots", [found.run], *key)
                ready = SliceableItems.from_values(
                    missed, found.cluster, rng, categories if one.within else None
                )
            yield one, ready.contrast(one.inside)


def _columns(found: RunArrays, read: ItemColumns) -> dict[str, Any]:
    """The values of each item for the requested fields, without fields that have the same values as
    another field. Abilities and categories form one family, so a request for either needs both."""
    own = {
        name: list(_column(found, read, name))
        for name in STRATUM_FIELDS
        if {*STRATUM_FIELDS} & {*read.names}
    }
    told = [column for name, column in own.items() if name in read.names]
    columns: dict[str, Any] = {}
    for name in read.names:
        column = own[name] if name in own else list(_column(found, read, name))
        if name in own or column not in [*told, *columns.values()]:
            columns[name] = column
    return {**columns, **own}


def _column(found: RunArrays, read: ItemColumns, name: str) -> Any:
    """The value of each item for a field, "" if it has none."""
    if name in read.measures:
        values = read.measures[name]
        keys = (
            found.fields["revision"] if FEATURES[name].of == "revision" else found.item
        ).tolist()
        if name in item_features.DIFF_FEATURES:
            keys = [(found.run.diff_algorithm, key) for key in keys]
        return item_features.assign_bins(name, [values.get(key) for key in keys])
    if name in read.of_items:
        values = read.of_items[name]
        return ["" if (one := values.get(key)) is None else str(one) for key in found.item.tolist()]
    return found.fields.get(name, [""] * len(found.item))


def _slices(columns: dict[str, Any], asked: Sequence[str]) -> Iterator[ItemSlice]:
    groups = {name: _groups(name, column) for name, column in columns.items()}
    for name, found in groups.items():
        yield from (ItemSlice((one,), name not in STRATUM_FIELDS) for one in found)
    crossed = [
        (groups[name], groups[other])
        for name, other in combinations([name for name in columns if name in asked], 2)
        if not {name, other} <= {*STRATUM_FIELDS}
    ]
    if (pairs := sum(len(one) * len(other) for one, other in crossed)) > PAIR_LIMIT:
        raise counted.UnknownField(
            f"These fields have {pairs:,} pairs of values. At most {PAIR_LIMIT:,} are compared: "
            "choose fewer fields."
        )
    for one, other in crossed:
        for pair in product(one, other):
            both = ItemSlice(pair, True)
            if both.inside.any():
                yield both


def _groups(name: str, column: Any) -> list[ItemGroup]:
    values, codes = _encode(column)
    known = codes != values.index("") if "" in values else np.full(codes.shape, True)
    there = [value for value in values if value]
    # A field with a single value has no rest. If a field has many values, they identify single
    # items.
    if not 1 < len(there) <= VALUE_LIMIT:
        return []
    return [ItemGroup(name, value, codes == values.index(value), known) for value in there]


def _encode(column: Any) -> tuple[list[str], Ints]:
    """Return the sorted values of a column, and for each item the position of its value."""
    held = list(column)
    values = sorted(set(held))
    places = {value: place for place, value in enumerate(values)}
    return values, np.fromiter(map(places.__getitem__, held), dtype=int, count=len(held))


def _name_columns(one: ItemSlice) -> dict[str, Any]:
    first, *more = one.groups
    second = more[0] if more else None
    return {
        "slice": one.name,
        "field": first.name,
        "value": first.value,
        "second_field": second and second.name,
        "second_value": second and second.value,
    }


def _row(one: SliceContrast, q: float | None) -> dict[str, Any]:
    large = one.difference is not None and one.difference >= LEAST_DIFFERENCE
    names = ("n", "clusters", "rate", "low", "high", "rest", "rest_low", "rest_high", "rest_n")
    return {
        **{name: getattr(one, name) for name in (*names, "compared", "rest_compared")},
        **counted.named_rates(one.rate),
        "difference": one.difference,
        "difference_low": one.difference_low,
        "difference_high": one.difference_high,
        "p": one.p,
        "q": q,
        "blind": large and q < SIGNIFICANT if q is not None else None,
        "reason": one.reason or None,
    }


def _sort_key(row: dict[str, Any]) -> tuple[bool, float, float, str]:
    low = -2 if row["difference_low"] is None else row["difference_low"]
    return row["q"] is None, -low, -(row["difference"] or 0), row["slice"]


def slice_title(known: Taxonomy, row: Row) -> str:
    """The title of a slice."""
    return " · ".join(_values(known, row))


def _name(asked: PageQuery, row: Row) -> str:
    """The title on several lines for the chart, with the run if there are several runs."""
    lines = [one.replace(": ", " ") for one in _values(asked.categories, row)]
    run = cells.run_name(asked.runs_by_number[row["run"]], ": ")
    return ": ".join([*lines, run] if len(asked.judging_runs) > 1 else lines)


def _values(known: Taxonomy, row: Row) -> list[str]:
    pairs = [(row["field"], row["value"]), (row["second_field"], row["second_value"])]
    return [_value(known, name, value) for name, value in pairs if name]


def _value(known: Taxonomy, name: str, value: str) -> str:
    if name in item_features.FEATURES:
        return item_features.bin_title(name, value)
    if name in GROUPING_COLUMNS:
        return Grouping(name, name, known).title_of(value)
    return f"{name.replace('_', ' ').capitalize()}: {value}"


def _rate(name: str, title: str, n: str, prefix: str = "", **more: Any) -> columns.Custom:
    rate = columns.Rate(name, title, n=n, prefix=prefix, missing="", **more)

    def cell(row: Row, of: columns.Leading) -> Cell:
        # If the rate exists, the reason for the missing p does not apply to it.
        reason = row["reason"] if row[name] is None else ""
        return rate.cell({**row, f"{prefix}reason": reason}, of)

    return columns.Custom(name, title, make=cell)


def _bad(row: Row) -> str:
    """Untested slices are not coloured as bad."""
    return "" if row["blind"] is None else "high"


def _verdict_cell(row: Row, of: columns.Leading) -> Cell:
    if row["blind"] is None:
        return Cell("not tested", 2, is_number=False)
    return cells.text_cell("yes, exploratory" if row["blind"] else "no", 0 if row["blind"] else 1)


def _slice_cell(row: Row, of: columns.Leading) -> Cell:
    href = of.items_url(row, result="parsed")
    return Cell(slice_title(of.asked.categories, row), row["slice"], href=href, is_number=False)


def _describe_compared(row: Row) -> str:
    """How many items the difference compares, if these are not all of both sides."""
    if row["difference"] is None or (row["compared"], row["rest_compared"]) == (
        row["n"],
        row["rest_n"],
    ):
        return ""
    return (
        f"{row['compared']:,} of {row['n']:,} items with {row['rest_compared']:,} of "
        f"{row['rest_n']:,} others"
    )


BY_SLICE_FIELDS = counted.GroupBy(
    f"{detectors.ANY_FIELD}, and measured features: {', '.join(FEATURES)}",
    check_fields,
    combines=False,
)
BLINDSPOTS = Table(
    "blindspots",
    (
        columns.RunNumber("run", "Run"),
        *columns.plain("endpoint", "strategy", "total", "missing"),
        columns.Custom("slice", "Slice", make=_slice_cell, is_text=True),
        *columns.plain("field", "value", "second_field", "second_value", "n"),
        columns.Count("clusters", "Questions"),
        _rate(
            "rate",
            "Undetected rate in the slice",
            "n",
            link=columns.items(result="undetected"),
            bad=_bad,
        ),
        *columns.NAMED_RATES,
        *columns.plain("low", "high"),
        _rate("rest", "In the other items", "rest_n", "rest_"),
        *columns.plain("rest_low", "rest_high", "rest_n"),
        columns.Points(
            "difference",
            "Difference",
            low="difference_low",
            high="difference_high",
            unit=f"{cells.POINTS_UNIT}, within categories",
            note=_describe_compared,
        ),
        *columns.plain("difference_low", "difference_high", "compared", "rest_compared"),
        columns.PValue("p", "p"),
        columns.PValue("q", "q"),
        *columns.plain("family", "tests"),
        columns.Custom("blind", "Blind spot", make=_verdict_cell, is_text=True),
        *columns.plain("reason", "identical"),
    ),
    tabulate,
    group_by=BY_SLICE_FIELDS,
    at_once=columns.GROUP_DRAW_LIMIT,
    about="A row per run and slice, which is a value of a field or a pair of values of two "
    "fields: its undetected rate compared with that of the other error items.",
    meanings={
        "total": "number of error items of the run, without those of `identical`",
        "missing": "number of error items without a usable outcome",
        "slice": "what the slice is, as `field=value`, or two of these with a comma between",
        "field": "field of the slice",
        "value": "value of the field",
        "second_field": "second field of a slice that is a pair, otherwise empty",
        "second_value": "value of the second field",
        "n": "number of parsed items in the slice",
        "clusters": "number of source questions of the parsed items in the slice",
        "rate": "undetected rate in the slice, a share of its `n` items",
        "low": "lower end of the 95 % interval of `rate`",
        "high": "upper end of this interval",
        "rest": "undetected rate of the other error items that have a value of these fields",
        "rest_n": "number of parsed items that `rest` is over",
        "difference": "how much higher the undetected rate is in the slice than in the rest; "
        "within categories, unless the slice is an ability or a category",
        "compared": "number of items of the slice that this difference compares: those in "
        "categories that have items of both",
        "rest_compared": "number of items of the rest that the difference compares",
        "p": "one-sided p of the difference, from permutations of source questions or items",
        "q": "p adjusted for all slices of the family (Benjamini and Hochberg)",
        "family": "which slices are adjusted together: `groups` (abilities and categories), "
        "`values` (of one other field) or `pairs`",
        "tests": "number of slices of the family that were tested",
        "blind": "true if q is below 0.05 and the difference is 10 points or more; empty if the "
        "slice was not tested",
        "reason": "why the slice was not tested",
        "identical": "number of error items of the run whose gold and perturbed answers are the "
        "same text; they are left out",
    },
)

DEFAULT_FIELDS = "ability,category,source_ability,origin"
ALL_FIELDS = ",".join((DEFAULT_FIELDS, *item_features.FEATURES))
FIELD_OPTIONS = {
    ALL_FIELDS: "All features",
    "category": "Categories",
    "edit_size,place,changes,length": "The change",
    "detectability,surgicality": "Labels of annotators",
    DEFAULT_FIELDS: "Origin",
}
SPOTS, FURTHEST, ALL = "spots", "furthest", "all"
SHOWN_OPTIONS = {SPOTS: "Blind spots", FURTHEST: "The 40 largest differences", ALL: "All slices"}
FAMILY_TITLES = {
    GROUPS: "abilities and categories",
    VALUES: "values of other fields",
    PAIRS: "pairs of values",
}
# The number of slices closest to a blind spot that are shown for a run without one, and the maximum
# number shown for other runs.
NEAREST_SLICES, MOST_SLICES = 5, 40
# How many untested categories are named, and for how many runs the tests are listed one by one.
MOST_UNTESTED, MOST_LISTED = 5, 3
_COLUMNS = ("slice", "run", "rate", "rest", "clusters", "difference", "p", "q", "blind")


class _Slices(columns.Leading):
    """Slices, whose figures link to their items."""

    def items_url(self, row: Row, **which: str) -> str:
        parts = {"slice": f"{row['field']}={row['value']}"}
        if row["second_field"]:
            parts["second_slice"] = f"{row['second_field']}={row['second_value']}"
        if row["identical"]:
            parts["identical"] = "no"
        return cells.items_url(self.runs[row["run"]], {}, **parts, **which)


def build_slices(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per slice, grouped by run, the one furthest above the rest first."""
    rows, which = [row for row in tables[0] if asked.is_judging(row)], asked.switch_value("show")
    told = [
        row for _, of in groupby(rows, key=_run_number) for row in _select_slices(list(of), which)
    ]
    shown = lines.Lines(
        BLINDSPOTS, "Blind spots", _COLUMNS, _describe_tests(asked, rows), _draw, leading=_Slices
    )(asked, [told])
    under = " ".join(filter(None, (_lines_note(rows, told, which), _name_untested(asked, rows))))
    return replace(shown, headline=_headline(asked, rows), under=under)


def _name_untested(asked: PageQuery, rows: Rows) -> str:
    """The categories of a single run that are missed most, but have too few items to be tested."""
    if len({row["run"] for row in rows}) != 1:
        return ""
    small = [
        row
        for row in rows
        if row["field"] == CATEGORY
        and not row["second_field"]
        and row["p"] is None
        and row["rate"] is not None
        and row["rest"] is not None
        and row["rate"] - row["rest"] >= LEAST_DIFFERENCE
    ]
    small.sort(key=lambda row: -row["rate"])
    named = ", ".join(
        f"{slice_title(asked.categories, row)} ({written.share(row['rate'])} of {row['n']})"
        for row in small[:MOST_UNTESTED]
    )
    more = f" and {len(small) - MOST_UNTESTED} more" if len(small) > MOST_UNTESTED else ""
    if not small:
        return ""
    return f"Too few items to test, but missed more often than the rest: {named}{more}."


def _headline(asked: PageQuery, rows: Rows) -> str:
    """The result of the search in one sentence."""
    runs = {row["run"] for row in rows}
    tested = [row["run"] for row in rows if row["p"] is not None]
    if not tested:
        return f"No slice can be tested: {_why_untested(rows)}"
    searched = {*tested}
    of_runs = (
        f" of {len(searched)} runs" if len(searched) > 1 else f" of {_mention(asked, tested[0])}"
    )
    blind = sum(bool(row["blind"]) for row in rows)
    said = f"{_count_noun(blind, 'blind spot') if blind else 'No blind spot found'} in "
    said += _count_noun(len(tested), "slice") + (of_runs if len(runs) > 1 else "")
    # If nothing could be tested, the run may still have blind spots.
    left = len(runs) - len(searched)
    return f"{said}; no slice of {_count_noun(left, 'other run')} can be tested" if left else said


def _mention(asked: PageQuery, number: int) -> str:
    return asked.runs_by_number[number].mention


def _lines_note(rows: Rows, told: Rows, which: str) -> str:
    """A note about the lines below the headline if these are not blind spots."""
    if which != SPOTS or all(row["blind"] for row in told):
        return ""
    if all(row["p"] is None for row in rows):
        return "The rows below are not evidence for or against a blind spot."
    if not any(row["blind"] for row in rows):
        said = (
            "None of the slices below was shown to be a blind spot; of those tested, they come "
            "closest to one."
        )
    else:
        said = (
            "For runs without a blind spot, the tested slices that come closest to one are shown "
            "and marked “no”."
        )
    if any(row["p"] is None for row in told):
        said += " Rows marked “not tested” are not evidence for or against a blind spot."
    return said


def _why_untested(rows: Rows) -> str:
    is_alike = any(row["reason"] == ALL_ALIKE for row in rows)
    return ALL_ALIKE if is_alike else "no slice is large enough"


def _count_noun(number: int, noun: str) -> str:
    return f"{written.number(number)} {noun}{'' if number == 1 else 's'}"


def _run_number(row: Row) -> int:
    return int(row["run"])


def _select_slices(rows: Rows, which: str) -> Rows:
    """Select the slices of one run to show. Among few items any difference may be large, so slices
    that were not tested come closest to a blind spot only if the run has no other."""
    if which == SPOTS:
        blind = [row for row in rows if row["blind"]]
        tested = [row for row in rows if row["p"] is not None] or rows
        worse = [row for row in tested if (row["difference"] or 0) > 0]
        return blind or sorted(worse or tested, key=_by_p)[:NEAREST_SLICES]
    return rows if which == ALL else rows[:MOST_SLICES]


def _by_p(row: Row) -> tuple[bool, float]:
    return row["p"] is None, row["p"] or 0.0


def _describe_tests(asked: PageQuery, rows: Rows) -> str:
    tests = "; ".join(_family_texts(asked, rows))
    return (
        f"Undetected rates of error items in a slice and in the other items. {INTERVAL_WORDS} "
        "Except for categories and abilities, the difference is taken "
        "within categories (Mantel-Haenszel), so a slice is not blind just because it has hard "
        "categories; its sign may differ from that of the two rates. p: one-sided permutation "
        "test over questions or items, and Student’s t where permutations cannot resolve it. q: "
        "Benjamini-Hochberg correction over the slices tested in its family: abilities and "
        "categories together, single values of the other fields, or pairs of values. It holds "
        "within one family of one run, not over all of them together. A blind spot has 20 items in "
        "10 questions or more, 10 other items in 5 questions or more to compare with, a difference "
        "of 10 points or more and q below 0.05. In each run, slices are sorted by the lower end of "
        "the interval of their difference; intervals are not adjusted. A field "
        f"is left out if its values always coincide with those of another field. {_left_out(rows)}"
        "The search is exploratory: look at the items before you trust a result. Slices tested: "
        f"{tests}."
    )


def _left_out(rows: Rows) -> str:
    """How many items of each run are left out, as a sentence followed by a space; "" if none."""
    numbers = {row["run"]: row["identical"] for row in rows if row["identical"]}
    if not numbers:
        return ""
    runs = "; ".join(f"run {run}: {written.number(number)}" for run, number in numbers.items())
    if len(numbers) > MOST_LISTED:
        least, most = min(numbers.values()), max(numbers.values())
        runs = f"{least} in each run" if least == most else f"{least} to {most} in a run"
    return (
        "Error items whose gold and perturbed answers are identical are left out of the slices and "
        f"of the other items ({runs}). "
    )


def _family_texts(asked: PageQuery, rows: Rows) -> Iterator[str]:
    runs = {row["run"] for row in rows}
    if len(runs) > MOST_LISTED:
        tested = sum(row["p"] is not None for row in rows)
        yield f"{written.number(tested)} in {len(runs)} runs"
        return
    for number, of in groupby(rows, key=_run_number):
        found = list(of)
        parts = []
        for family, title in FAMILY_TITLES.items():
            own = [row for row in found if row["family"] == family]
            blind = sum(bool(row["blind"]) for row in own)
            if own and (tested := own[0]["tests"]):
                parts.append(f"{written.number(tested)} {title}, of which {blind or 'none'} blind")
        if parts:
            yield f"{_mention(asked, number)}: {', '.join(parts)}"
        else:
            why = _why_untested(found)
            yield f"{_mention(asked, number)}: not tested ({why}), so these rows are no evidence"


def _draw(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import slices

    there = [row for row in rows if row["rate"] is not None and row["rest"] is not None]
    found = [
        slices.SliceRates(
            _name(asked, row),
            rate=row["rate"],
            low=row["low"],
            high=row["high"],
            rest=row["rest"],
            rest_low=row["rest_low"],
            rest_high=row["rest_high"],
            n=row["n"],
            rest_n=row["rest_n"],
            blind=bool(row["blind"]),
        )
        for row in there[:MOST_SLICES]
    ]
    caption = (
        "Undetected rates in slices and in the other items, with 95 % intervals. A dark band "
        "marks a blind spot. Exploratory."
    )
    if len(there) > MOST_SLICES:
        caption += f" The first {MOST_SLICES} of {len(there)} lines."
    return ChartSpec(slices.draw_slices(found), caption) if found else None


VIEWS = (
    ResultView(
        slug="slices",
        title="Slices",
        asks=(TableQuery(BLINDSPOTS),),
        figures=("rate", "blind_spots"),
        build=build_slices,
        studies={},
        empty="The chosen runs have no outcomes of items with a final label, or all items have "
        "the same features.",
        switches=(
            Switch(BY_PARAMETER, "Slices by", FIELD_OPTIONS, group_fields.list_own_fields),
            Switch("show", "Shown", SHOWN_OPTIONS),
        ),
    ),
)
