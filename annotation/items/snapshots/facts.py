"""What a snapshot holds of an item: all that is known of it, in words that no database chooses."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F

from annotation.db.batches import id_batches
from annotation.labelling.models.slots import FORMER_STAGES
from annotation.models import Item, Label, Project, Resolution, Revision

# Columns of an item, and what snapshots call those of other rows.
_ITEM = {
    **{name: name for name in ("key", "category", "ability", "source_ability", "origin")},
    **{name: name for name in ("purpose", "cluster", "dose", "flags", "fields")},
    "duplicate_of": "duplicate_of__key",
    "parent": "parent__key",
}
FACT_NAMES = (*_ITEM, "revision", "texts", "held", "labels")
# Digests keep the words that stages had before, so that those of older snapshots hold.
_DIGESTED_STAGES = {now: before for before, now in FORMER_STAGES.items()}
_LABEL_COLUMNS = ("stage", "member__alias", "revision__number", "answers", "comment", "counted")


@dataclass(frozen=True)
class FactState:
    """An item as it is now. `digest_facts` is that of its facts."""

    item: int
    revision: int
    value: str
    facts: dict[str, Any]
    digest: str


def read_states(project: Project) -> Iterator[FactState]:
    """Every live item of a project, in the order of items; a thousand in memory at once."""
    for ids in id_batches(Item.objects.in_project(project).order_by("position")):
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
    """The same for the same facts, whatever order a database gives the keys of objects in."""
    written = json.dumps(facts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(written.encode()).hexdigest()


def _texts(ids: Sequence[int]) -> dict[int, tuple[int, int, str]]:
    """Id, number and digest of the current texts, by item."""
    current = Revision.objects.filter(item__among=ids, number=F("item__revision_number"))
    rows = current.order_by().values_list("item_id", "pk", "number", "digest")
    return {item: (pk, number, said) for item, pk, number, said in rows}


def _load_resolutions(ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """What is held true, by item."""
    rows = Resolution.objects.held_of(ids).order_by().values_list("item_id", *Resolution.TOLD)
    return {item: dict(zip(Resolution.TOLD, said, strict=True)) for item, *said in rows}


def _labels(ids: Sequence[int]) -> defaultdict[int, list[str]]:
    """Digests of the labels in force, by item: who said what of which texts, when."""
    found: defaultdict[int, list[str]] = defaultdict(list)
    rows = Label.objects.filter(item__among=ids, current=True).order_by()
    for item, time, stage, *said in rows.values_list("item_id", "created_at", *_LABEL_COLUMNS):
        said = [_DIGESTED_STAGES.get(stage, stage), *said]
        found[item].append(digest_facts({"said": said, "time": time.isoformat()}))
    return found
