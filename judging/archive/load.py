"""Load an archive of results into an empty database, where the same code reproduces the figures.

Archives can come from anywhere. Nothing is unpacked to files or executed. Every value is validated
by its model field. Invalid data stop the loading with an error that names the file.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import DatabaseError, connection, models, transaction
from django.db.models import Count, Max, Min, OuterRef, Subquery
from django.db.models.functions import Coalesce

from annotation import tasktypes
from annotation.items import taxonomy
from annotation.items.diffing.difference import FORMER_ALGORITHM
from annotation.models import (
    WORK_LIKE_STAGES,
    Diff,
    Event,
    Label,
    Membership,
    Project,
    TaskTypeVersion,
    TaxonomyVersion,
)
from annotation.projects.creation import store_taxonomy
from formats import jsonlines, sealed
from formats.rows import BadRow, FormatError, Limits, as_printable
from formats.sealed import Opener
from judging.archive import former_words
from judging.archive.create import FORMAT, VERSION
from judging.archive.tables import KEY_COLUMNS, PARTS, ArchivePart, related_model
from judging.errors import Refused
from judging.evaluators.ratings import check_ratings
from judging.models import Endpoint, Request, Run
from judging.runs.engine import outcomes
from judging.runs.run_config import SUPPLEMENTS_KEY
from judging.runs.transitions import END_STATES

AT_A_TIME = 2_000
LOADED_EVENT = "archive loaded"
LIMITS = Limits(
    field_bytes=50_000_000, row_bytes=100_000_000, total_bytes=1 << 36, ratio=500, files=1_000
)
_FAULTS = (DatabaseError, ValidationError, OverflowError, TypeError, ValueError, KeyError)

# A function that converts a value to one or more parameters of a statement.
Converter = Callable[[Any], tuple[Any, ...]]


@dataclass(frozen=True)
class LoadedProject:
    """An archive that was loaded into the database: its project, and the facts of its manifest."""

    project: Project
    facts: dict[str, Any]


@dataclass(frozen=True)
class _ColumnLoader:
    """A column to load: its placeholder in SQL, the function that converts its values, and the
    default for rows that lack it."""

    name: str
    sql: str
    take: Converter
    absent: Any = None


def load_archive(path: Path) -> LoadedProject:
    """Load an archive into a SQLite database without projects.

    Raises `Refused` for any other database. Raises FormatError if the file is not an archive, was
    changed after it was created, or was created by a newer version of the program.
    """
    if connection.vendor != "sqlite":
        raise Refused("Archives are loaded into SQLite. Set DATABASE_URL to a new file.")
    if Project.objects.exists():
        raise Refused("This database contains projects. Load the archive into an empty database.")
    with sealed.open_sealed(path, LIMITS) as (facts, members):
        check_manifest(path, facts)
        with transaction.atomic():
            for part in PARTS:
                if part.path in members:
                    _load_part(path, part, members)
                elif part.model is TaxonomyVersion:
                    store_taxonomy(taxonomy.shipped_definition())  # from before projects had theirs
            project = Project.objects.filter(slug=str(facts.get("project"))).first()
            if project is None:
                raise FormatError(f"{path}: contains no project. Use an archive of results.")
            _check_supplements(path)
            _check_ratings(path)
            _end_runs()
            _count_labels()
            _pin_diffs()
            Event.of_site(LOADED_EVENT, project.slug, None)
    return LoadedProject(project, facts)


def _check_supplements(path: Path) -> None:
    """Raise FormatError for pins that are no object, and for calls of supplements that their run
    does not pin."""
    for run in Run.objects.annotate(
        first=Min("calls__supplement", default=0), last=Max("calls__supplement", default=0)
    ):
        if not isinstance(run.pinned, dict):
            raise FormatError(f"{path}: run {run.number} does not say how it asked.")
        made = run.pinned.get(SUPPLEMENTS_KEY, [])
        is_list = isinstance(made, list) and all(
            isinstance(one, dict) and isinstance(one.get("parameters"), dict) for one in made
        )
        if not is_list or run.first < 0 or run.last > len(made):
            raise FormatError(f"{path}: run {run.number} has calls of supplements that it lacks.")


def _end_runs() -> None:
    """End the runs that had not ended when the archive was made, since nobody goes on with them.
    Their outcomes stay as they are, so figures count the same ones."""
    for run in Run.objects.exclude(state__in=END_STATES).order_by("pk"):
        was, because = run.state, run.reason
        items = run.outcomes.values("item").distinct().count()
        open_items = run.outcomes.pending().values("item").distinct().count()
        run.state, run.reason = Run.State.FINISHED, ""
        if open_items or outcomes.PROGRESS_KEY in run.pinned:
            run.state = Run.State.CANCELLED
            run.reason = (
                f"The archive was made while this run was {was}, with a result for "
                f"{items - open_items:,} of {items:,} items. Nothing more is asked here."
            )
            if because:
                run.reason += f" It was {was} for this reason: {because}"
        run.save(update_fields=["state", "reason"])


def _check_ratings(path: Path) -> None:
    """Raise FormatError for ratings of endpoints that figures cannot read."""
    for name, ratings in Endpoint.objects.values_list("name", "ratings"):
        try:
            check_ratings(ratings)
        except ValidationError as error:
            said = " ".join(error.messages)
            raise FormatError(f"{path}: the ratings of {name} cannot be used. {said}") from error


def _count_labels() -> None:
    """Set the stored number of each member's labels, which is no part of an archive."""
    labels = Label.objects.filter(
        member=OuterRef("pk"), current=True, stage__in=WORK_LIKE_STAGES
    ).order_by()
    counted = labels.values("member").annotate(n=Count("pk")).values("n")
    Membership.objects.update(labelled=Coalesce(Subquery(counted), 0))


def _pin_diffs() -> None:
    """Pin the diffs on which answers to single changes were given, in archives from before diffs
    were pinned."""
    for version in TaskTypeVersion.objects.all():
        for field in tasktypes.load_version(version).fields:
            if field.per_change:
                answered = Label.objects.filter(task_type=version, answers__has_key=field.name)
                former = Diff.objects.filter(
                    revision__in=answered.values("revision"), algorithm=FORMER_ALGORITHM
                )
                former.exclude(revision__diffs__pinned=True).update(pinned=True)


def check_manifest(path: Path, facts: Mapping[str, Any]) -> None:
    """Raise FormatError unless the manifest belongs to an archive that this program can read."""
    numbers = facts.get("runs")
    if facts.get("format") != FORMAT or not isinstance(numbers, list):
        raise FormatError(f"{path}: is not an archive of results. Use one made by freeze_results.")
    if facts.get("version") != VERSION or not all(type(one) is int for one in numbers):
        raise FormatError(
            f"{path}: has version {facts.get('version')}, but this program reads {VERSION}. Use "
            f"the program that made it: {as_printable(str(facts.get('program')))}."
        )
    if not re.fullmatch(r"[A-Z]{3}", str(facts.get("currency", settings.CURRENCY))):
        raise FormatError(f"{path}: does not name its currency. Use another copy of the archive.")
    methods = facts.get("methods", {})
    if not isinstance(methods, dict) or not all(type(one) is int for one in methods.values()):
        raise FormatError(f"{path}: does not name its methods. Use another copy of the archive.")


def _load_part(path: Path, part: ArchivePart, members: Mapping[str, Opener]) -> None:
    try:
        _insert(part, lambda: _read_rows(part, members))
        for column in part.later:
            _set_self_references(part, column, lambda: _read_rows(part, members))
    except _FAULTS as error:
        raise FormatError(f"{path}, {part.path}: does not fit ({error}).") from error


def _read_rows(part: ArchivePart, members: Mapping[str, Opener]) -> Iterator[dict[str, Any]]:
    with members[part.path]() as stream:
        for row in jsonlines.read_rows(stream, part.path, LIMITS):
            if isinstance(row, BadRow):
                raise FormatError(f"{row.file}, line {row.line}: {row.reason}")
            if unknown := row.values.keys() - {*part.columns}:
                raise FormatError(
                    f"{row.file}, line {row.line}: has {min(unknown)!r}, which this program does "
                    "not know. Use the program that made the archive."
                )
            row_now = former_words.update_row(part.name, row.values)
            if part.model is Request and row_now.get("state") == Request.State.LEASED:
                # A lease belongs to a worker of the installation that made the archive.
                row_now["state"] = Request.State.WAITING.value
            yield row_now


def _insert(part: ArchivePart, rows: Callable[[], Iterator[dict[str, Any]]]) -> None:
    fields = [one for one in part.model._meta.concrete_fields if not one.primary_key]
    into = [_column_loader(part, field) for field in fields]
    table = part.model._meta.db_table
    names = ", ".join(f'"{field.column}"' for field in fields)
    statement = f'INSERT INTO "{table}" ({names}) VALUES ({", ".join(one.sql for one in into)})'
    pointing = [name for name in part.columns if related_model(part.model, name)]
    told = dict.fromkeys((name for name in pointing if name not in part.later), 0)
    _execute_many(
        statement, (_sql_parameters(into, row) for row in _count_references(rows(), told))
    )
    _check_references(part, told)


def _set_self_references(
    part: ArchivePart, column: str, rows: Callable[[], Iterator[dict[str, Any]]]
) -> None:
    """Set the references between rows of the same table, once all rows are inserted."""
    field: Any = part.model._meta.get_field(column)
    own, other = _lookup(part.model), _reference_loader(field)
    statement = (
        f'UPDATE "{part.model._meta.db_table}" SET "{field.column}" = {other.sql}'
        f" WHERE id = {own.sql}"
    )
    told = {column: 0}
    some = (row for row in _count_references(rows(), told) if row.get(column) is not None)
    _execute_many(
        statement, ((*other.take(row[column]), *own.take(_key(part, row))) for row in some)
    )
    _check_references(part, told)


def _key(part: ArchivePart, row: Mapping[str, Any]) -> Any:
    named = [row[name] for name in part.key]
    return named if len(named) > 1 else named[0]


def _execute_many(statement: str, rows: Iterator[tuple[Any, ...]]) -> None:
    with connection.cursor() as cursor:
        while several := list(islice(rows, AT_A_TIME)):
            cursor.executemany(statement, several)


def _sql_parameters(into: list[_ColumnLoader], row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(value for one in into for value in one.take(row.get(one.name, one.absent)))


def _count_references(
    rows: Iterator[dict[str, Any]], told: dict[str, int]
) -> Iterator[dict[str, Any]]:
    """Yield the rows unchanged, and count how many of them have a reference in these columns."""
    for row in rows:
        for name in told:
            told[name] += row.get(name) is not None
        yield row


def _check_references(part: ArchivePart, told: Mapping[str, int]) -> None:
    """Raise ValueError if a referenced row is missing; such references were stored as null."""
    for name, number in told.items():
        held = part.model._default_manager.exclude(**{name: None}).count()
        if number != held:
            raise ValueError(f"{number - held} rows refer to a {name} that is not in the archive")


def _column_loader(part: ArchivePart, field: Any) -> _ColumnLoader:
    if field.name == "project" and part.of_project:
        return _ColumnLoader(
            field.name, f'(SELECT MIN(id) FROM "{Project._meta.db_table}")', _no_parameters
        )
    if field.name in part.columns and field.name not in part.later:
        return (
            _reference_loader(field)
            if related_model(part.model, field.name)
            else _plain_loader(field)
        )
    return replace(_plain_loader(field), name="")


def _plain_loader(field: Any) -> _ColumnLoader:
    def take(value: Any) -> tuple[Any, ...]:
        if isinstance(field, models.CharField | models.TextField):
            if not isinstance(value, str | None):
                raise TypeError(f"{field.name} must be text, not {value!r:.80}")
            return (value,)
        return (field.get_db_prep_save(field.to_python(value), connection),)

    return _ColumnLoader(field.name, "%s", take, field.get_default())


def _reference_loader(field: Any) -> _ColumnLoader:
    found = _lookup(field.related_model, field.target_field.column)
    return _ColumnLoader(field.name, found.sql, found.take)


def _lookup(model: type[models.Model], wanted: str = "id") -> _ColumnLoader:
    """Return a loader that finds the id of a row, or another column of it, by its key in the
    archive."""
    key, own = KEY_COLUMNS[model], "project" in {one.name for one in model._meta.fields}
    parts = [_key_component_loader(model, name) for name in key]
    conditions = [f'"{one.name}" IS {one.sql}' for one in parts]
    if own and "project" not in key:
        # The unique index starts with the project.
        conditions.append(f'project_id = (SELECT MIN(id) FROM "{Project._meta.db_table}")')
    sql = f'(SELECT "{wanted}" FROM "{model._meta.db_table}" WHERE {" AND ".join(conditions)})'

    def take(named: Any) -> tuple[Any, ...]:
        given = _flatten_key(named, [len(one.take(None)) for one in parts])
        return tuple(
            value for one, said in zip(parts, given, strict=True) for value in one.take(said)
        )

    return _ColumnLoader(model.__name__, sql, take)


def _key_component_loader(model: type[models.Model], name: str) -> _ColumnLoader:
    field: Any = model._meta.get_field(name)
    if related_model(model, name):
        found = _lookup(field.related_model)
        return _ColumnLoader(field.column, found.sql, found.take)
    return _ColumnLoader(field.column, "%s", _plain_loader(field).take)


def _flatten_key(named: Any, widths: list[int]) -> list[Any]:
    """Return the components of a key as it is written in the archive."""
    total = sum(widths)
    flat = [None] * total if named is None else named if isinstance(named, list) else [named]
    if len(flat) != total:
        raise ValueError(f"{named!r} refers to no row")
    found, place = [], 0
    for width in widths:
        found.append(flat[place] if width == 1 else flat[place : place + width])
        place += width
    return found


def _no_parameters(value: Any) -> tuple[Any, ...]:
    return ()
