"""Checks of items, their texts, and snapshots."""

import hashlib
import json
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from annotation.items.snapshots import facts
from annotation.items.text_digest import digest_texts
from annotation.models import Frozen, FrozenIn, Revision, Snapshot
from judging.evaluators.providers import PROVIDERS
from operation.integrity.checks import (
    ITEM_NAMES,
    Breach,
    Check,
    build_sql_check,
    select_text,
    stream_rows,
)


def find_changed_texts() -> Iterator[Breach]:
    """Yield the revisions whose texts do not have the stored digest."""
    for found in _find_changed(Revision, "texts", digest_texts):
        yield {
            "project": found.item.project.slug, "item": found.item.key,
            "revision": found.number, "stored": found.digest,
        }  # fmt: skip


def find_changed_states() -> Iterator[Breach]:
    """Yield the states of items in snapshots whose facts do not have the stored digest."""
    for found in _find_changed(Frozen, "facts", facts.digest_facts):
        yield {
            "project": found.item.project.slug, "item": found.item.key, "stored": found.digest
        }  # fmt: skip


def _find_changed(model: Any, column: str, compute: Callable[[Any], str]) -> Iterator[Any]:
    """Yield the rows whose JSON column does not have the stored digest."""
    table = model._meta.db_table
    rows = stream_rows(f"SELECT id, digest, {select_text(column)} AS value FROM {table}")
    changed = array("q", (r["id"] for r in rows if compute(_parse_json(r["value"])) != r["digest"]))
    for pk in changed:
        yield model.objects.select_related("item__project").get(pk=pk)


def find_changed_snapshots() -> Iterator[Breach]:
    """Yield the complete snapshots whose items do not have the stored number or digest."""
    for snapshot in Snapshot.objects.completed().select_related("project").order_by("pk"):
        digest, items = hashlib.sha256(), 0
        states = FrozenIn.objects.of_snapshot(snapshot).order_by("pk")
        for (stored,) in states.values_list("frozen__digest").iterator(chunk_size=2_000):
            digest.update(f"{stored}\n".encode())
            items += 1
        if (items, digest.hexdigest()) != (snapshot.items, snapshot.digest):
            yield {
                "project": snapshot.project.slug, "snapshot": snapshot.name,
                "stored items": snapshot.items, "items": items, "stored": snapshot.digest,
            }  # fmt: skip


def find_unmarked_replies() -> Iterator[Breach]:
    """Yield the items that an evaluator has answered although no first reply is noted."""
    evaluators = [name for name, one in PROVIDERS.items() if one.is_evaluator]
    places = ", ".join(["%s"] * len(evaluators))
    statement = f"""
        SELECT {ITEM_NAMES}, MIN(u.number) AS run
        FROM annotation_item i
        JOIN annotation_project p ON p.id = i.project_id
        JOIN judging_outcome o ON o.item_id = i.id
        JOIN judging_run u ON u.id = o.run_id
        JOIN judging_endpoint e ON e.id = u.endpoint_id
        JOIN judging_call c ON c.outcome_id = o.id
        JOIN judging_reply y ON y.request_id = c.request_id
        WHERE i.first_reply_at IS NULL AND NOT u.generates
            AND (u.kind = 'recorded' OR u.kind = 'asked' AND e.provider IN ({places}))
        GROUP BY p.slug, i.key
    """
    return stream_rows(statement, evaluators)


def _parse_json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        # It refuses lone surrogates, which SQLite may hold.
        return json.loads(text)


CHECKS = (
    build_sql_check(
        "current-texts",
        "The current revision of an item is its last one.",
        "The item shows older texts than the last correction, or no texts at all.",
        f"""
        SELECT {ITEM_NAMES}, i.revision_number AS "current", MAX(r.number) AS last
        FROM annotation_item i
        JOIN annotation_project p ON p.id = i.project_id
        LEFT JOIN annotation_revision r ON r.item_id = i.id
        GROUP BY p.slug, i.id, i.key, i.revision_number
        HAVING COALESCE(MAX(r.number), 0) <> i.revision_number
        """,
    ),
    Check(
        "text-digests",
        "The texts of every revision have the digest that was stored with them.",
        "Texts were changed after people and evaluators saw them. Labels, runs and snapshots "
        "belong to the earlier texts: take them from a backup.",
        find_changed_texts,
    ),
    build_sql_check(
        "linked-items",
        "A duplicate and its original, and an item and its parent, are in the same project.",
        "Rows were changed by hand or restored in part.",
        " UNION ALL ".join(
            f"""
            SELECT {ITEM_NAMES}, o.key AS linked_to
            FROM annotation_item i
            JOIN annotation_item o ON o.id = i.{column}
            JOIN annotation_project p ON p.id = i.project_id
            WHERE i.{column} IS NOT NULL AND (o.project_id <> i.project_id OR o.id = i.id)
            """
            for column in ("duplicate_of_id", "parent_id")
        ),
    ),
    Check(
        "first-replies",
        "An item that an evaluator has answered says when the first reply came.",
        "Later labels of the item would claim that no evaluator had answered it yet.",
        find_unmarked_replies,
    ),
    Check(
        "snapshot-states",
        "The facts of every item in a snapshot have the digest that was stored with them.",
        "A snapshot was changed. Do not use it: take it from a backup or an export.",
        find_changed_states,
    ),
    Check(
        "snapshots",
        "Every complete snapshot has its number of items, and the digest of them in their order.",
        "A snapshot was changed. Do not use it: take it from a backup or an export.",
        find_changed_snapshots,
    ),
)
