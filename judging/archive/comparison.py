"""Check that figures recomputed from a loaded archive match the figures in the archive."""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from formats import sealed
from formats.rows import FormatError
from formats.sealed import Opener
from formats.writers import write_table
from judging.archive import create, former_words, load, versions
from judging.archive.load import LoadedProject
from judging.models import Run
from judging.results import tables
from judging.results.columns import DEFAULT_BY, parse_fields

# A stored table: its columns, and its rows as objects.
Table = Mapping[str, Any]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class TableComparison:
    """A table, and whether it equals the table in the archive. Columns may differ if their method
    has changed since the archive was created.
    """

    table: str
    same: bool
    said: str


def compare_archive(archive: Path, thawed: LoadedProject) -> Iterator[TableComparison]:
    """Compute each table of the archive again, and compare it with the stored one. Raises
    FormatError for an archive with anything else than tables of this program."""
    runs = list(Run.objects.in_project(thawed.project).for_results().numbered(thawed.facts["runs"]))
    with sealed.open_sealed(archive, load.LIMITS) as (facts, members):
        named = facts.get("tables")
        if not isinstance(named, list) or not all(isinstance(one, str) for one in named):
            raise FormatError(f"{archive}: does not name its tables. Use another copy of it.")
        for name in named:
            path = f"figures/{name}.json"
            if name not in tables.RESULT_TABLES or path not in members:
                raise FormatError(f"{archive}: {name!r} is not a table of this program.")
            now, then = _compute_table(name, thawed, runs), _read_table(path, members[path])
            yield compare_table(name, now, then, facts.get("methods", {}))


def compare_table(
    table: str, now: Table, then: Table, made_by: Mapping[str, int]
) -> TableComparison:
    """Compare a newly computed table with an archived one; `made_by` are the archive's method
    versions.

    Columns that the archive lacks are not compared. If a method has changed, the result says which
    of its columns differ. All other columns must be equal, row by row. If a changed method decides
    which rows exist, rows are matched by their key columns.
    """
    changed = list(versions.changed_methods(table, made_by))
    makes = {column for name in changed for column in versions.METHODS[name].columns[table]}
    stays = [column for column in then["columns"] if column not in makes]
    pairs = _pair_rows(_row_key_columns(table, changed), now["rows"], then["rows"])
    both = [(one, other) for one, other in pairs if one is not None and other is not None]
    alone = [pair for pair in pairs if None in pair]
    differ = sum(not _equal_in(stays, one, other) for one, other in both)
    by_method = bool(alone) and bool(_row_key_columns(table, changed))
    if differ or (alone and not by_method):
        said = f"differs in {differ + len(alone):,} of {len(then['rows']):,} rows"
        return TableComparison(table, False, f"{said}; it now has {len(now['rows']):,} rows")
    otherwise = [
        column
        for column in then["columns"]
        if column in makes and not all(_equal_in([column], one, other) for one, other in both)
    ]
    if not otherwise and not alone:
        return TableComparison(table, True, f"the same, {len(now['rows']):,} rows")
    return TableComparison(
        table, True, _describe_method_changes(changed, made_by, otherwise, len(alone), len(both))
    )


def _describe_method_changes(
    changed: Sequence[str],
    made_by: Mapping[str, int],
    columns: Sequence[str],
    alone: int,
    both: int,
) -> str:
    """Describe the differences that are due to changed methods."""
    methods = ", ".join(
        f"{name}, version {made_by.get(name, versions.FIRST_VERSION)} then and"
        f" {versions.METHODS[name].version} now"
        for name in changed
    )
    parts = [f"{', '.join(columns)} differ{'s' * (len(columns) == 1)}"] if columns else []
    parts += (
        [f"{alone:,} row{'s are' if alone > 1 else ' is'} in only one of the two"] if alone else []
    )
    return (
        f"{'; '.join(parts)}, because the method changed ({methods}); all else is the same, "
        f"{both:,} rows"
    )


def _row_key_columns(table: str, changed: Sequence[str]) -> tuple[str, ...]:
    """Return the key columns of a table if its rows depend on a changed method, otherwise ()."""
    return next((versions.METHODS[name].rows.get(table, ()) for name in changed), ())


def _pair_rows(
    named: Sequence[str], now: Sequence[Row], then: Sequence[Row]
) -> list[tuple[Row | None, Row | None]]:
    """Pair each new row with the matching archived row, or None. Rows are matched by the key
    columns if there are any, otherwise by their order.
    """
    ours, theirs = (
        {
            json.dumps([row.get(name) for name in named] or place): row
            for place, row in enumerate(rows)
        }
        for rows in (now, then)
    )
    if (len(ours), len(theirs)) != (len(now), len(then)):
        return _pair_rows((), now, then)
    return [(ours.get(key), theirs.get(key)) for key in {**theirs, **ours}]


def _equal_in(columns: Sequence[str], one: Row, other: Row) -> bool:
    missing = object()
    return all(one.get(column, missing) == other.get(column) for column in columns)


def _compute_table(name: str, thawed: LoadedProject, runs: list[Run]) -> Any:
    stream = io.StringIO()
    columns = tables.RESULT_TABLES[name].list_file_columns(parse_fields(DEFAULT_BY))
    write_table(name, create.compute_rows(name, thawed.project, runs), columns, stream)
    return json.loads(stream.getvalue())


def _read_table(path: str, opener: Opener) -> Any:
    try:
        with opener() as stream:
            said = json.load(stream)
    except (ValueError, RecursionError):
        said = None
    parts = (said.get("columns"), said.get("rows")) if isinstance(said, dict) else (None, None)
    if (
        not all(isinstance(one, list) for one in parts)
        or not all(isinstance(one, str) for one in said["columns"])
        or not all(isinstance(row, dict) for row in said["rows"])
    ):
        raise FormatError(f"{path}: is not a table of figures. Use another copy of the archive.")
    return former_words.update_figures(PurePath(path).stem, said)
