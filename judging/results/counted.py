"""Shared parts of counted figures: which outcomes count, how they are summed and ordered.

The database does the summing, and one query serves all runs of a table.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import connection

from annotation.items import taxonomy
from annotation.items.taxonomy import Taxonomy
from annotation.models import Item, Project, Resolution
from judging.models import Outcome, Run
from judging.results import progress
from judging.strategies import Strategy
from stats.estimates import Estimate
from stats.rates import ClusterSums

FIELDS = ("ability", "category", "source_ability")
PARSED_SQL = "o.result IN ('detected', 'undetected')"
# The undetected part of an item: a share if there are repeats, else 0 or 1.
UNDETECTED_SQL = """
    CASE o.result
        WHEN 'detected' THEN 1 - COALESCE(o.share, 1)
        WHEN 'undetected' THEN 1 - COALESCE(o.share, 0)
        ELSE 0
    END
"""
# For a rate: which items count, and how much of each is a hit, as SQL over an outcome `o`.
RateSql = tuple[str, str]


class UnknownField(ValueError):
    """Outcomes cannot be grouped by this field; the message names the possible fields."""


@dataclass(frozen=True)
class GroupBy:
    """The fields that a table can be grouped by, in words for help texts. `check` raises
    `UnknownField` for other fields, if that can be told before the rows are computed. `combines` is
    true if items form a group by their values in all fields together."""

    words: str
    check: Callable[[Project, Sequence[str]], object] = lambda project, by: None
    combines: bool = True


@dataclass(frozen=True)
class GroupSums:
    """The outcomes of one run in one group.

    `rates` has, for each kind of hit, the sums over clusters for its interval; `counts` has the
    other sums. `total` counts items, including missing ones.
    """

    run: Run
    group: dict[str, str]
    invariant: bool
    total: int
    parsed: int
    rates: dict[str, ClusterSums]
    counts: dict[str, float]

    @property
    def missing(self) -> int:
        """The number of items without a parsed verdict."""
        return self.total - self.parsed

    def head(self) -> dict[str, Any]:
        """The first columns of every table."""
        return {**run_columns(self.run), **self.group, "total": self.total, "missing": self.missing}


def check_fields(by: Sequence[str]) -> None:
    """Raise `UnknownField` if outcomes cannot be grouped by these fields."""
    unknown = [name for name in by if name not in FIELDS]
    if unknown:
        raise UnknownField(
            f"Outcomes cannot be grouped by {', '.join(unknown)}. Choose from: {', '.join(FIELDS)}."
        )


BY_OUTCOME_FIELDS = GroupBy(
    f"{', '.join(FIELDS)}, or empty for one row per run", lambda project, by: check_fields(by)
)


def sum_outcomes(
    runs: Iterable[Run],
    by: Sequence[str],
    *,
    rates: Mapping[str, RateSql] | None = None,
    counts: Mapping[str, str] | None = None,
    joined: str = "",
) -> list[GroupSums]:
    """Sum the counted outcomes of these runs by fields, in the order of the taxonomy.

    `counts` are SQL expressions over an outcome `o`; `joined` are the joins for these expressions.
    Outcomes that must not be summed together are kept apart. If `by` has neither ability nor
    category, score-invariant items are left out, since their rate has the opposite meaning. Unless
    `by` has both, duplicates are left out. Duplicates in one category make two rows if some are
    score-invariant and some are not.

    Makes one query, or one per run if progress is reported, or none without a run. Raises
    `UnknownField`.
    """
    check_fields(by)
    known = {run.pk: run for run in runs}
    if not known:
        return []
    rates, counts = rates or {}, counts or {}
    found = [
        record
        for some in progress.split_if_watched(list(known), "counting outcomes")
        for record in fetch_dicts(_build_statement(some, by, rates, counts, joined))
    ]
    rows = [_to_group_sums(known, by, rates, counts, record) for record in found]
    order, categories = {pk: place for place, pk in enumerate(known)}, load_categories(runs)
    return sorted(
        rows, key=lambda row: (order[row.run.pk], categories.order_of(row.group), row.invariant)
    )


def counted_condition(runs: Iterable[int]) -> str:
    """The condition for all headline numbers: the outcome is settled, it is on the item's own axis,
    the final label of the item has not changed since it was judged, and the item is still part of
    the data set: not excluded, and not for qualification or control."""
    return f"""
        o.run_id IN ({", ".join(str(int(pk)) for pk in runs)}) AND o.main
        AND o.result <> 'pending' AND EXISTS (
            SELECT 1 FROM {Resolution._meta.db_table} AS r
            JOIN {Item._meta.db_table} AS held
                ON held.id = r.item_id AND held.deleted_at IS NULL AND held.purpose = 'test'
            WHERE r.item_id = o.item_id AND r.current AND r.revision_id = o.revision_id
            AND (o.truth = '' OR r.value = o.truth)
        )
    """


def original_condition() -> str:
    """The condition that the outcome's item is no duplicate. Unlike the ability, it also holds for
    detectors and ratings, whose items may have none."""
    duplicates = f"SELECT d.id FROM {Item._meta.db_table} AS d WHERE d.duplicate_of_id IS NOT NULL"
    return f"o.item_id NOT IN ({duplicates})"


def separate_condition(by: Sequence[str]) -> str:
    """SQL that keeps groups pure. It leaves out duplicates unless `by` has both ability and
    category, and score-invariant items unless `by` has at least one of the two."""
    repeats = "AND o.ability <> ''" if not {"ability", "category"} <= set(by) else ""
    invariant = "AND NOT o.invariant" if not {"ability", "category"} & set(by) else ""
    return f"{repeats} {invariant}"


def json_text(*path: str | int, of: str = "o") -> str:
    """SQL for an outcome's value at this path of keys and positions, as text; null if absent."""
    if connection.vendor == "postgresql":
        return f"{of}.\"values\" #>> '{{{','.join(str(step) for step in path)}}}'"
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return f"JSON_EXTRACT({of}.\"values\", '${steps}')"


def json_number(*path: str | int) -> str:
    """SQL for the number at this path."""
    return f"CAST({json_text(*path)} AS DOUBLE PRECISION)"


def one_if(condition: str) -> str:
    """SQL for 1 if the condition is true, else 0."""
    return f"CASE WHEN {condition} THEN 1 ELSE 0 END"


def fetch_dicts(statement: str) -> list[dict[str, Any]]:
    """Run an SQL statement without parameters, and return its rows as dicts by column."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        columns = [column[0] for column in cursor.description]
        return [dict(zip(columns, record, strict=True)) for record in cursor.fetchall()]


def round_sum(total: Any) -> float:
    """Round a sum of shares to 9 digits, since sums of shares such as thirds are inexact."""
    rounded = round(float(total), 9)
    return int(rounded) if rounded.is_integer() else rounded


def run_columns(run: Run) -> dict[str, Any]:
    """The columns that name a run in every table."""
    return {"run": run.number, "endpoint": run.endpoint.name, "strategy": run.strategy.slug}


def estimate_columns(one: Estimate) -> dict[str, Any]:
    """The columns of a rate with its interval, and the reason if one of them is None."""
    return {"rate": one.value, "low": one.low, "high": one.high, "reason": one.reason or None}


def named_rates(rate: float | None, *, is_detection: bool = False) -> dict[str, float | None]:
    """The columns that give an undetected rate, or a detection rate, in both directions by name,
    for tables in which the name `rate` does not say which of the two it is; None without a rate."""
    rest = None if rate is None else 1 - rate
    detected, undetected = (rate, rest) if is_detection else (rest, rate)
    return {"detection_rate": detected, "undetected_rate": undetected}


def undetected_columns(one: Estimate) -> dict[str, Any]:
    """The columns of an undetected rate `rate`, and of `named_rates`."""
    return {"rate": one.value, **named_rates(one.value), **estimate_columns(one)}


def figure_columns(name: str, one: Estimate) -> dict[str, Any]:
    """The columns of a figure with this name, of its interval, and of the reason if one of them is
    None."""
    return {
        name: one.value,
        f"{name}_low": one.low,
        f"{name}_high": one.high,
        f"{name}_reason": one.reason or None,
    }


def load_categories(runs: Iterable[Run]) -> Taxonomy:
    """The categories under which these runs were made; the project's of today if they differ, and
    those that ship if there is no run."""
    runs = list(runs)
    if not runs:
        return taxonomy.load_shipped()
    alike = len({run.taxonomy_id for run in runs}) == 1 and runs[0].taxonomy_id is not None
    return taxonomy.load_taxonomy(runs[0] if alike else runs[0].project)


def load_strategies(runs: Iterable[Run]) -> dict[int, Strategy]:
    """The strategy of each run, by run id; a vote or panel has the strategy of its members, and a
    recorded vote, which has none here, that of error detection. Makes one query if there are votes
    or panels."""
    runs = list(runs)
    found = {run.pk: run.pinned_strategy() for run in runs}
    folded = [run.pk for run in runs if found[run.pk].frame == "fold"]
    if folded:
        members = Run.sources.through.objects.filter(from_run__in=folded)
        for member in members.select_related("to_run__strategy"):
            found[member.from_run_id] = member.to_run.pinned_strategy()
    for pk in folded:
        if found[pk].frame == "fold":
            found[pk] = replace(found[pk], frame="detection")
    return found


def _build_statement(
    runs: Sequence[int],
    by: Sequence[str],
    rates: Mapping[str, RateSql],
    counts: Mapping[str, str],
    joined: str,
) -> str:
    names = ["run_id", *by, "invariant"]
    columns, own = ", ".join(names), ", ".join(f"o.{name}" for name in names)
    # Clusters are only needed for intervals; without a rate, grouping by them would waste time.
    within = f"{own}, o.cluster" if rates else own
    of_cluster = [term for name, rate in rates.items() for term in _cluster_terms(name, rate)]
    of_cluster += [f"SUM({count}) AS c_{name}" for name, count in counts.items()]
    over_clusters = [term for name in rates for term in _total_terms(name)]
    over_clusters += [f"SUM(c_{name}) AS c_{name}" for name in counts]
    inner = f"""
        SELECT {own},
            {", ".join(["COUNT(*) AS total", f"SUM({one_if(PARSED_SQL)}) AS parsed", *of_cluster])}
        FROM {Outcome._meta.db_table} AS o {joined}
        WHERE {counted_condition(runs)} AND o.result <> 'scored' {separate_condition(by)}
        GROUP BY {within}
    """
    return f"""
        SELECT {columns},
            {", ".join(["SUM(total) AS total", "SUM(parsed) AS parsed", *over_clusters])}
        FROM ({inner}) AS clusters GROUP BY {columns}
    """


def _cluster_terms(name: str, rate: RateSql) -> tuple[str, ...]:
    items, hit = rate
    return (
        f"SUM({one_if(items)}) AS n_{name}",
        f"SUM(CASE WHEN {items} THEN {hit} ELSE 0 END) AS y_{name}",
    )


def _total_terms(name: str) -> tuple[str, ...]:
    n, y = f"n_{name}", f"y_{name}"
    return (
        f"SUM({one_if(f'{n} > 0')}) AS m_{name}",
        f"SUM({n}) AS {n}",
        f"SUM({n} * {n}) AS nn_{name}",
        f"SUM({y}) AS {y}",
        f"SUM({n} * {y}) AS ny_{name}",
        f"SUM({y} * {y}) AS yy_{name}",
    )


def _to_group_sums(
    runs: Mapping[int, Run],
    by: Sequence[str],
    rates: Iterable[str],
    counts: Iterable[str],
    record: Mapping[str, Any],
) -> GroupSums:
    return GroupSums(
        run=runs[record["run_id"]],
        group={name: record[name] for name in by},
        invariant=bool(record["invariant"]),
        total=int(record["total"]),
        parsed=int(record["parsed"]),
        rates={name: _cluster_sums(record, name) for name in rates},
        counts={name: round_sum(record[f"c_{name}"] or 0) for name in counts},
    )


def _cluster_sums(record: Mapping[str, Any], name: str) -> ClusterSums:
    return ClusterSums(
        m=int(record[f"m_{name}"]),
        n=int(record[f"n_{name}"]),
        nn=int(record[f"nn_{name}"]),
        y=round_sum(record[f"y_{name}"]),
        ny=round_sum(record[f"ny_{name}"]),
        yy=round_sum(record[f"yy_{name}"]),
    )
