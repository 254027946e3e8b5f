"""The items table of a snapshot, with the columns of the table of current items."""

from collections.abc import Iterator
from typing import Any

from annotation.db.batches import bulky_id_batches
from annotation.exporting import tables
from annotation.models import FrozenIn, Revision, Snapshot

COLUMNS = tables.TABLES["items"].columns


def item_rows(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """Yield a row for every item of a snapshot, by position, with the texts of that time. At most
    a thousand items are in memory at once, and few with long fields or texts."""
    states = FrozenIn.objects.of_snapshot(snapshot).order_by("item__position")
    for ids in bulky_id_batches(states, "frozen__facts", "frozen__revision__texts"):
        rows = FrozenIn.objects.filter(pk__among=ids).order_by("item__position")
        found = list(rows.values_list("frozen__facts", "frozen__revision"))
        texts = _texts([revision for _, revision in found])
        for facts, revision in found:
            yield _row(facts, texts[revision])


def _texts(revisions: list[int]) -> dict[int, dict[str, Any]]:
    return dict(Revision.objects.filter(pk__among=revisions).values_list("pk", "texts"))


def _row(facts: dict[str, Any], texts: dict[str, Any]) -> dict[str, Any]:
    held = facts["held"] or {}
    # Facts whose name in the table differs from their name in snapshots.
    said = {
        **facts,
        **held,
        "resolution": held.get("value"),
        "digest": facts["texts"],
        "other_texts": {name: text for name, text in texts.items() if name not in COLUMNS},
    }
    return {column: texts[column] if column in texts else said.get(column) for column in COLUMNS}
