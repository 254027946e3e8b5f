"""The facts that a snapshot stores about an item, in the same form for every database."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F

from annotation.db.batches import bulky_id_batches
from annotation.labelling.models.slots import FORMER_STAGES
from annotation.models import Item, Label, Project, Resolution, Revision

# Names of facts, and the columns of an item or of related rows that they come from.
_ITEM = {
    **{name: name for name in ("key", "category", "ability", "source_ability", "origin")},
    **{name: name for name in ("purpose", "cluster", "dose", "flags", "fields")},
    "duplicate_of": "duplicate_of__key",
    "parent": "parent__key",
}
FACT_NAMES = (*_ITEM, "revision", "texts", "held", "labels")
# Digests use the earlier names of stages, so that the digests of old snapshots stay valid.
_DIGESTED_STAGES = {now: before for before, now in FORMER_STAGES.items()}
_LABEL_COLUMNS = ("stage", "member__alias", "revision__number", "answers", "comment", "counted")


@dataclass(frozen=True)
class FactState:
    """The current state of an item: ids of the item and revision, resolution ("" if none), facts,
    and the `digest_facts` of these."""

    item: int
    revision: int
    value: str
    facts: dict[str, Any]
    digest: str


def read_states(project: Project) -> Iterator[FactState]:
    """Yield the state of every live item of a project, by position, with at most a thousand items
    in memory at once, and few with long fields."""
    for ids in bulky_id_batches(Item.objects.in_project(project).order_by("position"), "fields"):
        texts, held, labels = _texts(ids), _load_resolutions(ids), _labels(ids)
        rows = Item.objects.filter(pk__among=ids).order_by("position")
        for pk, *values in rows.values_list("pk", *_ITEM.values()):
            revision, number, digested = texts[pk]
            facts = dict(zip(_ITEM, values, strict=True))
            facts |= {"revision": number, "texts": digested}
            facts |= {"held": held.get(pk), "labels": sorted(labels[pk])}
            value = held[pk]["value"] if pk in held else ""
            yield FactState(pk, revision, value, facts, digest_facts(facts))


def digest_facts(facts: dict[str, Any]) -> str:
    """Return the SHA-256 digest of the facts in hex, which does not depend on the order of keys."""
    written = json.dumps(facts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(written.encode()).hexdigest()


def _texts(ids: Sequence[int]) -> dict[int, tuple[int, int, str]]:
    """Revision id, number and digest of the current texts, by item id."""
    current = Revision.objects.filter(item__among=ids, number=F("item__revision_number"))
    rows = current.order_by().values_list("item_id", "pk", "number", "digest")
    return {item: (pk, number, said) for item, pk, number, said in rows}


def _load_resolutions(ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Return the columns `Resolution.TOLD` of the current resolutions, by item id."""
    rows = Resolution.objects.held_of(ids).order_by().values_list("item_id", *Resolution.TOLD)
    return {item: dict(zip(Resolution.TOLD, said, strict=True)) for item, *said in rows}


def _labels(ids: Sequence[int]) -> defaultdict[int, list[str]]:
    """Digests of the current labels, by item id; each covers `_LABEL_COLUMNS` and the time."""
    found: defaultdict[int, list[str]] = defaultdict(list)
    rows = Label.objects.filter(item__among=ids, current=True).order_by()
    for item, time, stage, *said in rows.values_list("item_id", "created_at", *_LABEL_COLUMNS):
        said = [_DIGESTED_STAGES.get(stage, stage), *said]
        found[item].append(digest_facts({"said": said, "time": time.isoformat()}))
    return found
