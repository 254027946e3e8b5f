"""How an item stands: what its labels, places and resolution say, in two statements.

Each label asks this, so the statements are written by hand (see `picking`).
"""

import json
from dataclasses import dataclass
from typing import Any

from annotation.models import Item, Revision
from annotation.picking import rows


@dataclass(frozen=True)
class Standing:
    """Counts of the item's work slots by state, and what else is open for it.

    resolution: the id of the current one with its source, values and the id of its revision.
    answers: of the counted work labels of the revision, in the order in which they were given.
    """

    resolution: "Held | None"
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
class Held:
    """What is held true of an item: the id of a resolution and what it says."""

    pk: int
    source: str
    rule: str
    values: dict[str, Any]
    revision_id: int


def of(item: Item, revision: Revision) -> Standing:
    """How the item, which is locked, stands at this revision."""
    words = {"item": item.pk, "revision": revision.pk}
    [found] = rows(
        """
        SELECT r.id, r.source, r.rule, r."values", r.revision_id, s.* FROM
          (SELECT
             COUNT(CASE WHEN stage = 'work' AND state IN ('open', 'held') THEN 1 END),
             COUNT(CASE WHEN stage = 'work' AND state = 'filled' THEN 1 END),
             COUNT(CASE WHEN stage = 'adjudicate' AND state = 'open' AND reason = 'disputed'
                   THEN 1 END),
             COUNT(CASE WHEN stage = 'adjudicate' AND state IN ('open', 'held') THEN 1 END),
             COUNT(CASE WHEN stage = 'verify' AND state IN ('open', 'held') THEN 1 END)
           FROM annotation_slot WHERE item_id = %(item)s) AS s
        LEFT JOIN annotation_resolution r ON r.item_id = %(item)s AND r.current
        """,
        words,
    )
    answers = rows(
        """
        SELECT answers FROM annotation_label
        WHERE item_id = %(item)s AND stage = 'work' AND current AND counted
          AND revision_id = %(revision)s
        ORDER BY created_at, id
        """,
        words,
    )
    pk, source, rule, values, revision_id, waiting, filled, disputed, asked, verifying = found
    return Standing(
        resolution=Held(pk, source, rule, json.loads(values), revision_id) if pk else None,
        waiting=waiting,
        filled=filled,
        disputed=bool(disputed),
        asked=bool(asked),
        verifying=bool(verifying),
        answers=[json.loads(answer) for (answer,) in answers],
    )
