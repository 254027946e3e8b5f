"""What a project holds of the items that come in: nothing yet, the same, or something else."""

from array import array
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import F
from django.db.models.fields.json import KT

from annotation import digests, tasktypes
from annotation.importing.drafts import Draft
from annotation.importing.flagging import DUPLICATE
from annotation.models import Item, Project, Resolution, Revision
from annotation.querysets.abilities import SUGGESTION
from formats.rows import BadRow


@dataclass
class Report:
    """What became of the rows of one import, counted; `bad` and `conflicts` name their place. Of
    the new ones `alone` are clusters by themselves, since no column names one. `off_scale` names
    the answers that are missing since they are off their scale, by row, of rows that are taken."""

    new: int = 0
    unchanged: int = 0
    alone: int = 0
    bad: list[BadRow] = field(default_factory=list)
    conflicts: list[BadRow] = field(default_factory=list)
    off_scale: list[BadRow] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return self.new + self.unchanged + len(self.bad) + len(self.conflicts)


@dataclass
class Known:
    """What is known of a key: the digests of all its revisions, what its row says beside, and what
    was taken as decided elsewhere."""

    digests: set[str]
    facts: dict[str, Any]
    deleted: bool = False
    decided: tuple[Any, ...] | None = None

    def has(self, draft: Draft) -> bool:
        """Whether it has, or had, the texts of the draft."""
        return draft.digest in self.digests

    def others(self, draft: Draft) -> list[str]:
        """What the draft says otherwise, beside the texts."""
        said = _said(draft)
        return [name for name in said if not _agrees(name, said[name], self.facts[name])]

    def is_decided_otherwise(self, draft: Draft) -> bool:
        said = _decided(draft)
        return bool(said and self.decided and said != self.decided)

    @property
    def repeats(self) -> bool:
        return bool(self.facts["repeats"])


class Imagined:
    """What is known of a key in a dry run: enough to compare with, in some hundred bytes, since it
    is kept of every row of a file."""

    __slots__ = ("_prints", "is_decided", "repeats")
    deleted = False

    def __init__(self, draft: Draft) -> None:
        self._prints = _prints(draft).tobytes()
        self.is_decided, self.repeats = draft.decided is not None, bool(draft.repeats)

    def has(self, draft: Draft) -> bool:
        return self._same(draft)[0]

    def others(self, draft: Draft) -> list[str]:
        same = self._same(draft)[2:]
        return [name for name, alike in zip(_said(draft), same, strict=True) if not alike]

    def is_decided_otherwise(self, draft: Draft) -> bool:
        return bool(draft.decided and self.is_decided and not self._same(draft)[1])

    def _same(self, draft: Draft) -> list[bool]:
        before, now = array("q", self._prints), _prints(draft)
        return [one == other for one, other in zip(before, now, strict=True)]


Entry = Known | Imagined


def _prints(draft: Draft) -> "array[int]":
    """A number each for its texts, what was decided of it, and each thing beside; equal of what is
    equal, and else almost never."""
    told = (draft.digest, _decided(draft), *_said(draft).values())
    return array("q", [hash(_hashable(one)) for one in told])


def _hashable(value: Any) -> Hashable:
    if isinstance(value, dict):
        return frozenset((name, _hashable(one)) for name, one in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(_hashable, value))
    # Of -1 and -2 Python makes the same.
    return ("negative", -value) if isinstance(value, int | float) and value < 0 else value


def keys_of(drafts: list[Draft]) -> set[str]:
    """The keys of the drafts, of what they repeat and of what they were made from."""
    return {key for draft in drafts for key in (draft.key, draft.repeats, draft.parent)}


def known_of(project: Project | None, drafts: list[Draft]) -> dict[str, Entry]:
    """What the project holds under the keys of the drafts and under those that they name."""
    known: dict[str, Known] = {}
    if project is None:
        return {}
    there = Item.objects.filter(project=project, key__among=keys_of(drafts))
    items = list(there.select_related("duplicate_of", "parent"))
    if not items:
        return {}
    right = {one.item_id: one for one in Resolution.objects.current().known().of_items(items)}
    for item in items:
        facts = _facts(item, right.get(item.pk))
        known[item.key] = Known(set(), facts, deleted=item.deleted_at is not None)
    imported = Resolution.objects.of_items(items).filter(source=Resolution.Source.IMPORTED)
    for one in imported.select_related("item"):
        known[one.item.key].decided = (one.value, one.values, one.comment)
    stored = Revision.objects.filter(item__in=items)
    for key, digest in stored.values_list("item__key", "digest"):
        known[key].digests.add(digest)
    return {**known}


def sort_out(drafts: list[Draft], known: dict[str, Entry], report: Report) -> list[Draft]:
    """The drafts that are new; the others are counted as unchanged, bad or in conflict."""
    fresh = []
    for draft in drafts:
        entry = known.get(draft.key)
        if entry is None and (reason := _cannot_repeat(draft, known)):
            report.bad.append(draft.bad("repeats", reason))
        elif entry is None and (reason := _has_no_parent(draft, known)):
            report.bad.append(draft.bad("parent", reason))
        elif entry is None:
            known[draft.key] = Known({draft.digest}, _said(draft), decided=_decided(draft))
            fresh.append(draft)
            report.new += 1
            report.off_scale += draft.off_scale()
        elif reason := _conflict(entry, draft):
            report.conflicts.append(draft.bad("key", reason))
        else:
            report.unchanged += 1
            report.off_scale += draft.off_scale()
    return fresh


def with_duplicates(project: Project, drafts: list[Draft]) -> list[Draft]:
    """The drafts, and flagged those made here whose answer another item with the same source
    question has, among these or in the project, but for white space. One query, which reads
    nothing but answers, where any was made here, else none."""
    compared = tasktypes.of_project(project).diff
    if compared is None or not any(draft.is_made_here for draft in drafts):
        return drafts
    seen = _answers_of(project, compared[1], {d.cluster for d in drafts if d.is_made_here})
    return [_marked(draft, compared[1], seen) for draft in drafts]


def _answers_of(project: Project, name: str, clusters: set[str]) -> dict[str, str]:
    """The key of an item by the digest of its source question and its answer."""
    items = Item.objects.in_project(project).filter(cluster__among=clusters)
    current = Revision.objects.filter(item__in=items, number=F("item__revision_number"))
    told = current.annotate(said=KT(f"texts__{name}"))
    found = told.values_list("item__cluster", "said", "item__key").order_by()
    return {_print(cluster, said or ""): key for cluster, said, key in found.iterator()}


def _marked(draft: Draft, name: str, seen: dict[str, str]) -> Draft:
    said = draft.texts.get(name, "")
    if not draft.is_made_here or not isinstance(said, str):
        return draft
    first = seen.setdefault(_print(draft.cluster, said), draft.key)
    again = first != draft.key
    return replace(draft, flags=(*draft.flags, DUPLICATE)) if again else draft


def _print(cluster: str, said: str) -> str:
    return digests.texts_digest({cluster: " ".join(said.split())})


def _cannot_repeat(draft: Draft, known: dict[str, Entry]) -> str:
    if not draft.repeats:
        return ""
    original = known.get(draft.repeats)
    if original is None or original.deleted:
        return f"names {draft.repeats!r}, which is no item here. Put that item before this one."
    if original.repeats:
        return f"names {draft.repeats!r}, which repeats another item. Name that one."
    return ""


def _has_no_parent(draft: Draft, known: dict[str, Entry]) -> str:
    if not draft.parent or (draft.parent in known and not known[draft.parent].deleted):
        return ""
    return f"names {draft.parent!r}, which is no item here. Put that item before this one."


def _conflict(entry: Entry, draft: Draft) -> str:
    if entry.deleted:
        return "was deleted here; its key is kept. Restore the item instead of importing it."
    if not entry.has(draft):
        return (
            "exists with other texts, here or in a row before. Nothing was changed; give the new"
            " texts a key of their own."
        )
    if other := entry.others(draft):
        return f"exists with other {', '.join(other)}. Nothing was changed; mend the row."
    if entry.is_decided_otherwise(draft):
        return "was decided otherwise when it was imported. Nothing was changed; adjudicate it."
    return ""


def _decided(draft: Draft) -> tuple[Any, ...] | None:
    said = draft.decided
    return (said.value, said.values, said.explanation) if said else None


def _facts(item: Item, known: Resolution | None) -> dict[str, Any]:
    """What a row says of an item beside its texts, as it is stored."""
    return {
        "category": item.category,
        "ability": item.ability,
        "source_ability": item.source_ability,
        "cluster": item.cluster,
        "origin": item.origin,
        "purpose": item.purpose,
        "repeats": item.duplicate_of.key if item.duplicate_of else "",
        "parent": item.parent.key if item.parent else "",
        "dose": item.dose,
        "fields": item.fields,
        "known": (known.values, known.comment) if known else None,
    }


def _agrees(name: str, said: Any, known: Any) -> bool:
    """Whether a row says what is known, or leaves it open: the cluster, and what came since, to
    which ability people sorted the item, and which one was suggested to them."""
    if name in ("ability", "source_ability", "cluster") and not said:
        return True
    if name == "fields":
        known = {one: value for one, value in known.items() if one in said or one not in SUGGESTION}
    return bool(said == known)


def _said(draft: Draft) -> dict[str, Any]:
    """The same of a row that is to be an item."""
    return {
        "category": draft.category,
        "ability": draft.ability,
        "source_ability": draft.source_ability,
        "cluster": "" if draft.is_alone else draft.cluster,
        "origin": draft.origin,
        "purpose": draft.purpose,
        "repeats": draft.repeats,
        "parent": draft.parent,
        "dose": draft.dose,
        "fields": draft.fields,
        "known": (draft.known.values, draft.known.explanation) if draft.known else None,
    }
