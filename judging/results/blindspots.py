"""Candidates for blind spots: slices of the items with a higher undetected rate than the rest."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Exists, OuterRef

from annotation.models import Item, Project, Revision
from annotation.reports.grouping import Grouping
from judging.models import Outcome, Run
from judging.results import arrays, counted, detectors, item_features, progress
from judging.results.arrays import Bools, Ints, RunArrays
from judging.results.item_features import FEATURES, FeatureValues
from stats import families
from stats.slices import LEAST_DIFFERENCE, SliceableItems, SliceContrast

CATEGORY, ABILITY = "category", "ability"
STRATUM_FIELDS = (CATEGORY, ABILITY)
# p is corrected in three families: abilities and categories, single values of other fields, and
# pairs of values. There may be hundreds of pairs.
GROUPS, VALUES, PAIRS = "groups", "values", "pairs"
OUTCOME_FIELDS = (*STRATUM_FIELDS, "source_ability")
SIGNIFICANT = 0.05
# A field with more values than this identifies items rather than groups, so it forms no slices.
VALUE_LIMIT = 50
COLUMNS = (
    "total", "missing", "slice", "field", "value", "second_field", "second_value",
    "n", "clusters", "rate", "low", "high", "rest", "rest_low", "rest_high",
    "rest_n", "difference", "p", "q", "family", "tests", "blind", "reason",
)  # fmt: skip


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


@dataclass(frozen=True, eq=False)
class PreparedRun:
    """The error items of a run, prepared once for all slices with the same known items."""

    found: RunArrays
    categories: Ints
    ready: dict[tuple[bool, bytes], SliceableItems] = field(default_factory=dict)

    def contrast(self, one: ItemSlice) -> SliceContrast:
        """Compare the undetected rate inside the slice with the rate of the other known items.
        Random draws depend only on the run and the slice's name, so a repeated call gives the same
        result."""
        known = one.known
        key = (one.within, known.tobytes())
        if key not in self.ready:
            missed = np.where(known, 1 - self.found.detected, np.nan)
            strata = self.categories if one.within else None
            self.ready[key] = SliceableItems.from_values(missed, self.found.cluster, strata)
        rng = arrays.make_generator("blindspots", [self.found.run], one.name)
        return self.ready[key].contrast(one.inside, rng)


def tabulate(project: Project, runs: Iterable[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    """The table `blindspots`: for each run, a row per slice, that is, per value of the fields `by`
    and per pair of values of two of them. Each slice is compared with the rest of the error items;
    the largest difference comes first.

    Fields are columns of items, own fields of items, or measured features. `rate` is the undetected
    rate over the slice's `n` parsed items. `rest` is the rate over the `rest_n` other items with a
    value of these fields. Slices other than an ability or a category are compared within
    categories, and `difference` is the Mantel-Haenszel difference. `p` is one-sided; `q` is
    adjusted (Benjamini and Hochberg) over the `tests` of the slice's `family` in the run: abilities
    and categories (always all of them, even if only one field was requested), single values of
    other fields, or pairs. A slice is `blind` if q is below 0.05 and the difference is 10 points or
    more; this is exploratory. A field with the same values as an earlier field has no slices.
    Raises `UnknownField`.
    """
    runs = list(runs)
    check_fields(project, by)
    read = _load_columns(project, runs, by)
    further = {CATEGORY, *(name for name in by if name in OUTCOME_FIELDS)}
    further |= {*STRATUM_FIELDS} if {*STRATUM_FIELDS} & {*by} else set()
    further |= {"revision"} if read.measures else set()
    # If progress is reported, load one run at a time, so that only one is in memory.
    return [
        row
        for some in progress.split_if_watched(runs, arrays.READING_STEP)
        for found in arrays.load_arrays(some, sorted(further))
        for row in _run_rows(found.only(~found.invariant), read)
    ]


def check_fields(project: Project, by: Sequence[str]) -> list[Grouping]:
    """Return the groupings for these fields, without measured features. Raises `UnknownField`."""
    return detectors.check_groupings(project, [name for name in by if name not in FEATURES])


def _load_columns(project: Project, runs: Sequence[Run], by: Sequence[str]) -> ItemColumns:
    """Load the values of items other than their outcomes, once for all runs."""
    measures = [name for name in by if name in FEATURES]
    own = item_features.shadowed_features(project, measures) if measures else set()
    named = [
        Grouping(name, name)
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
    judged = Revision.objects.filter(
        Exists(Outcome.objects.filter(revision=OuterRef("pk"), run__in=runs)),
        resolutions__current=True,
    )
    asked = [name for name in measures if name not in own]
    return ItemColumns(
        tuple(by), held, item_features.load_features(project, asked, judged) if asked else {}
    )


def _run_rows(found: RunArrays, read: ItemColumns) -> list[dict[str, Any]]:
    _, categories = _encode(found.fields[CATEGORY])
    prepared = PreparedRun(found, categories)
    cut = list(_slices(_columns(found, read), read.names))
    said = f"searching run {found.run.number}"
    tested = [(one, prepared.contrast(one)) for one in progress.iterate(cut, said)]
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
            {**head, **_name_columns(one), **of, **_row(contrast, q)}
            for (one, contrast), q in zip(own, qs, strict=True)
            if one.groups[0].name in read.names
        ]
    return sorted(rows, key=_sort_key)


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
        keys = found.fields["revision"] if FEATURES[name].of == "revision" else found.item
        return item_features.assign_bins(name, [values.get(key) for key in keys.tolist()])
    if name in read.of_items:
        values = read.of_items[name]
        return ["" if (one := values.get(key)) is None else str(one) for key in found.item.tolist()]
    return found.fields.get(name, [""] * len(found.item))


def _slices(columns: dict[str, Any], asked: Sequence[str]) -> Iterator[ItemSlice]:
    groups = {name: _groups(name, column) for name, column in columns.items()}
    for name, found in groups.items():
        yield from (ItemSlice((one,), name not in STRATUM_FIELDS) for one in found)
    for name, other in combinations([name for name in columns if name in asked], 2):
        if {name, other} <= {*STRATUM_FIELDS}:
            continue
        for pair in product(groups[name], groups[other]):
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
        **{name: getattr(one, name) for name in names},
        "difference": one.difference,
        "p": one.p,
        "q": q,
        "blind": large and q < SIGNIFICANT if q is not None else None,
        "reason": one.reason or None,
    }


def _sort_key(row: dict[str, Any]) -> tuple[bool, float, str]:
    return row["q"] is None, -(row["difference"] or 0), row["slice"]
