"""How an item stands: what its labels, places and resolution say, in one statement.

Each label asks this, so it is written by hand (see `picking`).
"""

import json
from dataclasses import dataclass
from typing import Any

from django.db import connection

from annotation.db import sql
from annotation.models import Item, Revision


@dataclass(frozen=True)
class ItemState:
    """Counts of the item's work slots by state, and what else is open for it.

    resolution: the id of the current one with its source, values and the id of its revision.
    answers: of the counted work labels of the revision, in the order in which they were given.
    """

    resolution: "CurrentResolution | None"
    waiting: int
    filled: int
    disputed: bool
    asked: bool
    verifying: bool
    answers: list[dict[str, Any]]

    @property
    def places(self) -> int:
        return self.waiting + self.filled


@dataclass(frozen=True)
class CurrentResolution:
    """What is held true of an item: the id of a resolution and what it says."""

    pk: int
    source: str
    rule: str
    values: dict[str, Any]
    revision_id: int


def load_item_state(item: Item, revision: Revision) -> ItemState:
    """How the item, which is locked, stands at this revision."""
    words = {"item": item.pk, "revision": revision.pk}
    [found] = sql.fetch_rows(
        f"""
        SELECT r.id, r.source, r.rule, r."values", r.revision_id, s.*,
        {_ANSWERS_SQL[connection.vendor]} FROM
          (SELECT
             COUNT(CASE WHEN stage = 'label' AND state IN ('open', 'held') THEN 1 END),
             COUNT(CASE WHEN stage = 'label' AND state = 'filled' THEN 1 END),
             COUNT(CASE WHEN stage = 'adjudicate' AND state = 'open' AND reason = 'disputed'
                   THEN 1 END),
             COUNT(CASE WHEN stage = 'adjudicate' AND state IN ('open', 'held') THEN 1 END),
             COUNT(CASE WHEN stage = 'verify' AND state IN ('open', 'held') THEN 1 END)
           FROM annotation_slot WHERE item_id = %(item)s) AS s
        LEFT JOIN annotation_resolution r ON r.item_id = %(item)s AND r.current
        """,
        words,
    )
    pk, source, rule, values, revision_id, waiting, filled, *flags, answers = found
    return ItemState(
        resolution=CurrentResolution(pk, source, rule, json.loads(values), revision_id)
        if pk
        else None,
        waiting=waiting,
        filled=filled,
        disputed=bool(flags[0]),
        asked=bool(flags[1]),
        verifying=bool(flags[2]),
        answers=json.loads(answers or "[]"),
    )


_COUNTED_LABELS_SQL = """FROM annotation_label WHERE item_id = %(item)s AND stage = 'label' AND
current
    AND counted AND revision_id = %(revision)s"""
# In the order in which they were given, as one JSON list.
_ANSWERS_SQL = {
    "postgresql": f"(SELECT json_agg(answers ORDER BY created_at, id)::text {_COUNTED_LABELS_SQL})",
    "sqlite": "(SELECT json_group_array(json(answers)) FROM"
    f" (SELECT answers {_COUNTED_LABELS_SQL} ORDER BY created_at, id))",
}
