"""The columns, rows and row counts of an export."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from annotation.errors import FieldError
from annotation.exporting.tables import item_rows
from annotation.items.filters import ItemFilter
from annotation.items.models import ItemQuerySet
from annotation.items.snapshots.table import item_rows as frozen_items
from annotation.labelling.models.labels import ERROR_ITEM, SI_ITEM
from annotation.models import FrozenIn, Item, Project, Snapshot
from annotation.projects import encrypted_archives
from formats import fbi
from formats.writers import FBI, ZIP_FORMATS
from judging.exporting.tables import EXPORT_TABLES

CANARY_COLUMN = "canary"
ITEMS_TABLE = "items"


@dataclass(frozen=True)
class ExportRequest:
    """A table in a format. `filters` select items, with the names used by the item list. With
    `canary` every row has a column that marks the row as test data and contains a searchable
    string. `snapshot` is the name of the snapshot to export; without it, the current items are
    exported. `licence` is the licence that the data card of a folder for the hub states. With
    `encrypt` the file is a zip with a password. Control and qualification items are among the items
    only if `with_control`: whoever has the file knows them, and their answers."""

    table: str
    form: str
    filters: dict[str, str] = field(default_factory=dict)
    canary: bool = False
    snapshot: str = ""
    licence: str = ""
    encrypt: bool = False
    with_control: bool = False


@dataclass(frozen=True)
class ExportRows:
    """The columns in order, and the rows."""

    columns: tuple[str, ...]
    rows: Iterator[dict[str, Any]]


def check_request(project: Project, wish: ExportRequest) -> None:
    """Raise FieldError for an invalid request. The error is on `encrypt` if a sealed project's file
    would not be encrypted; on `format` if the format is only for items and the table is not; on
    `snapshot` if the snapshot does not exist or is not finished, the table is not that of items, or
    there are filters.
    """
    if not wish.encrypt:
        encrypted_archives.check_not_sealed(project, "Tick “Encrypt the file”.", "encrypt")
    if wish.form in ZIP_FORMATS and wish.table != ITEMS_TABLE:
        message = f"{wish.form} works only for the table of items. Choose another format."
        raise FieldError(message, "format")
    if not wish.snapshot:
        return
    if wish.table != ITEMS_TABLE:
        raise _snapshot_error("A snapshot contains only the table of items. Choose now.")
    if wish.filters:
        raise _snapshot_error("A snapshot is exported whole. Remove the filters, or choose now.")
    if _find_snapshot(project, wish.snapshot) is None:
        raise _snapshot_error(
            f"There is no finished snapshot {wish.snapshot[:80]!r}. Choose another one."
        )


def count_rows(project: Project, wish: ExportRequest) -> int | None:
    """Count the requested rows, with those for which the layout of study 000 has no place; None if
    the number is unknown. Raises FieldError for filters that do not fit the project any more."""
    if snapshot := _find_snapshot(project, wish.snapshot):
        if wish.with_control:
            return snapshot.items
        states = FrozenIn.objects.of_snapshot(snapshot)
        return states.filter(frozen__facts__purpose="test").count()
    if wish.table == ITEMS_TABLE:
        return _filter_items(project, wish).count()
    table = EXPORT_TABLES[wish.table]
    return table.count(project) if table.count else None


def read_rows(project: Project, wish: ExportRequest, canary: str = "") -> ExportRows:
    """The requested rows. If a `canary` is given, a string unique to each export, every row
    contains it.

    Raises FieldError like `check_request` and `count_rows`.
    """
    check_request(project, wish)
    columns, found = EXPORT_TABLES[wish.table].columns_in(project), _rows(project, wish)
    if wish.form == FBI:
        found = _file_by_label(found)
    if not canary:
        return ExportRows(columns, found)
    return ExportRows((*columns, CANARY_COLUMN), ({**row, CANARY_COLUMN: canary} for row in found))


def _rows(project: Project, wish: ExportRequest) -> Iterator[dict[str, Any]]:
    if snapshot := _find_snapshot(project, wish.snapshot):
        every = frozen_items(snapshot)
        return (row for row in every if wish.with_control or row["purpose"] == "test")
    if wish.table == ITEMS_TABLE:
        return item_rows(project, _filter_items(project, wish))
    return EXPORT_TABLES[wish.table].rows(project)


def _file_by_label(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The items that the layout of study 000 has a place for: its files say by their category
    whether an error is valid or the change score-invariant, and have no column for other labels.

    A score-invariant item of a category of errors goes into the file of score-invariant items, as
    relabelled. A valid error of a category that should cost nothing has no file, nor has an item
    without a final label, nor a duplicate that would be read as an item of its own: whose
    original is not in the file, has another id or has other texts.
    """
    digests: dict[str, str] = {}
    for row in rows:
        is_invariant, original = row["category"] in fbi.INVARIANT, row["duplicate_of"]
        if original and not (
            digests.get(original) == row["digest"] and fbi.repeats_in_file(row["key"], original)
        ):
            continue
        if row["resolution"] == SI_ITEM:
            digests[row["key"]] = row["digest"]
            relabelled = {"category": fbi.SCORE_INVARIANT, "origin": "relabelled"}
            yield row if is_invariant else {**row, **relabelled}
        elif row["resolution"] == ERROR_ITEM and not is_invariant:
            yield row


def _snapshot_error(message: str) -> FieldError:
    return FieldError(message, "snapshot")


def _find_snapshot(project: Project, name: str) -> Snapshot | None:
    return Snapshot.objects.in_project(project).completed().named(name) if name else None


def _filter_items(project: Project, wish: ExportRequest) -> ItemQuerySet:
    narrowed = ItemFilter(wish.filters, Item.objects.in_project(project))
    # The categories, say, may have been changed since the export was requested. Without this, all
    # items would be exported.
    if not narrowed.is_valid():
        raise FieldError(
            "The filters no longer fit the project. Request another export.", "filters"
        )
    found = narrowed.qs
    assert isinstance(found, ItemQuerySet)
    return found if wish.with_control else found.of_tests()
