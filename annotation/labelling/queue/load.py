"""A slot read with all that is shown of it, and with what a label of it must know."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from annotation.db import sql
from annotation.items.diffing import difference
from annotation.labelling import submissions
from annotation.models import Diff, Item, Membership, Revision, Slot, Stage

_SLOT = ("id", "project_id", "item_id", "stage", "number", "priority", "position", "state",
         "member_id", "returned", "ahead", "reserved_for_id", "reason")  # fmt: skip
_ITEM = ("id", "project_id", "key", "position", "category", "ability", "source_ability", "cluster",
         "origin", "purpose", "fields", "flags", "revision_number", "first_reply_at",
         "deleted_at")  # fmt: skip
_REVISION = ("id", "item_id", "number", "texts", "digest")
_TEXTLESS = ("id", "item_id", "number", "digest")
_DIFF = ("id", "revision_id", "algorithm", "segments", "edit_size", "place")


LOAD_PARAMETERS = {"algorithm": difference.ALGORITHM}


def _columns(table: str, names: tuple[str, ...]) -> str:
    return ", ".join(f"{table}.{name}" for name in names)


@dataclass(frozen=True)
class Claim:
    """The slot that a label was taken for, the item's current revision, and what is there by now.

    Ids of the label that the same page sent, of the member's label in force, and of the
    guidelines as they are; whether the member saw what others said of the item, and whether
    they have a draft of it. `submission` is the digest of the page's key, `stage` that of the
    label.
    """

    slot: Slot
    revision: Revision
    stage: Stage
    submission: str
    sent: int | None
    label: int | None
    guidelines: int | None
    informed: bool
    drafted: bool

    @property
    def item(self) -> Item:
        return self.slot.item


def load_slot(slot_id: int) -> tuple[Slot, Revision]:
    """The slot with its item, and the item's current revision with its diff, if that is stored."""
    statement = f"{select_slots_sql('annotation_slot')} WHERE s.id = %(slot)s"
    [row] = sql.fetch_rows(statement, LOAD_PARAMETERS | {"slot": slot_id})
    return parse_row(row)


def select_slots_sql(slots: str, *more: str) -> str:
    """A statement's end: what `parse_row` reads, of the slots of a table, and more columns of
    it."""
    more = (_columns("d", _DIFF), *(f"s.{name}" for name in more))
    return _select_sql(_REVISION, ", " + ", ".join(more), slots, join=_DIFF_JOIN)


def parse_row(row: Sequence[Any]) -> tuple[Slot, Revision]:
    """A row of `select_slots_sql`, which is told `LOAD_PARAMETERS`."""
    slot, revision, diff = _split_row(row, _REVISION, _DIFF)
    if diff[0] is not None:
        revision.stored_diff = Diff.from_db("default", _DIFF, diff)
    return slot, revision


def load_claim(member: Membership, slot_id: int, key: str, *, blind: bool) -> Claim:
    """What a label with this key is of; its item is locked. What the member said before is at the
    slot's stage or, if `blind`, at that one. Of the revision the texts are left out."""
    submission = submissions.digest_token(key)
    words = {"slot": slot_id, "member": member.pk, "submission": submission}
    [row] = sql.fetch_rows(_BLIND_CLAIM_SQL if blind else _WORK_CLAIM_SQL, words)
    slot, revision, before = _split_row(row, _TEXTLESS, ("",) * 5)
    sent, label, guidelines, informed, drafted = before
    return Claim(
        slot=slot,
        revision=revision,
        stage=Stage.BLIND if blind else Stage(slot.stage),
        submission=submission,
        sent=sent,
        label=label,
        guidelines=guidelines,
        informed=bool(informed),
        drafted=bool(drafted),
    )


def _select_sql(of_revision: tuple[str, ...], more: str, slots: str, join: str = "") -> str:
    return (
        f"SELECT {_columns('s', _SLOT)}, {_columns('i', _ITEM)}, {_columns('r', of_revision)}"
        f"{more} FROM {slots} s JOIN annotation_item i ON i.id = s.item_id"
        f" JOIN annotation_revision r ON r.item_id = i.id AND r.number = i.revision_number{join}"
    )


_DIFF_JOIN = " LEFT JOIN annotation_diff d ON d.revision_id = r.id AND d.algorithm = %(algorithm)s"
_LABEL_COLUMNS_SQL = """,
    (SELECT id FROM annotation_label WHERE submission = %(submission)s),
    (SELECT id FROM annotation_label WHERE member_id = %(member)s AND item_id = i.id
       AND stage = {stage} AND current),
    (SELECT id FROM annotation_guidelinesversion WHERE project_id = i.project_id
       ORDER BY number DESC LIMIT 1),
    EXISTS (SELECT 1 FROM annotation_mark WHERE member_id = %(member)s AND item_id = i.id
       AND kind = 'seen' AND ended_at IS NULL),
    EXISTS (SELECT 1 FROM annotation_draft WHERE member_id = %(member)s AND item_id = i.id)"""
_WORK_CLAIM_SQL, _BLIND_CLAIM_SQL = (
    _select_sql(_TEXTLESS, _LABEL_COLUMNS_SQL.format(stage=stage), "annotation_slot")
    + " WHERE s.id = %(slot)s"
    for stage in ("s.stage", "'blind'")
)


def _split_row(
    row: Sequence[Any], names: tuple[str, ...], more: tuple[str, ...]
) -> tuple[Slot, Revision, list[Any]]:
    """A row of `_select_sql`: the slot with its item, the revision, and the values behind them."""
    of_item, of_revision = len(_SLOT), len(_SLOT) + len(_ITEM)
    behind = of_revision + len(names)
    slot = Slot.from_db("default", _SLOT, row[:of_item])
    item = Item.from_db("default", _ITEM, _convert_values(_ITEM, row[of_item:of_revision]))
    revision = Revision.from_db("default", names, _convert_values(names, row[of_revision:behind]))
    slot.item = revision.item = item
    return slot, revision, _convert_values(more, row[behind:])


def _convert_values(names: tuple[str, ...], values: Sequence[Any]) -> list[Any]:
    """The values with their JSON and their times read, as they come from both databases."""
    return [
        _CONVERTERS[name](value) if name in _CONVERTERS and value is not None else value
        for name, value in zip(names, values, strict=True)
    ]


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "fields": json.loads,
    "flags": json.loads,
    "texts": json.loads,
    "segments": json.loads,
    "first_reply_at": sql.parse_time,
    "deleted_at": sql.parse_time,
}
