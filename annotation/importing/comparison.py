"""Compare items to import with the project's items: each is new, unchanged or in conflict."""

from array import array
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import F
from django.db.models.fields.json import KT, KeyTextTransform

from annotation import tasktypes
from annotation.db.batches import bulky_id_batches
from annotation.importing.flags import DUPLICATE
from annotation.importing.item_rows import ParsedItem
from annotation.items import taxonomy, text_digest
from annotation.items.abilities import SUGGESTION
from annotation.models import Item, Project, Resolution, Revision
from formats.rows import BadRow, as_printable

# The field of an item that names its language.
LANGUAGE_FIELD = "language"


@dataclass
class ItemImportReport:
    """The results of one import by row; `bad` and `conflicts` contain the places of such rows.

    `equal` counts the new items whose compared texts have the same words. `alone` counts the new
    items that form a cluster of one item because no column names a cluster.
    `off_scale` lists the answers in imported rows that are missing because they are off their
    scale. `bad_keys` has the keys of the bad rows, each with the first of them.
    """

    new: int = 0
    unchanged: int = 0
    equal: int = 0
    alone: int = 0
    bad: list[BadRow] = field(default_factory=list)
    conflicts: list[BadRow] = field(default_factory=list)
    off_scale: list[BadRow] = field(default_factory=list)
    bad_keys: dict[str, BadRow] = field(default_factory=dict)

    def reject(self, row: BadRow) -> None:
        """Count a bad row, and remember its key."""
        self.bad.append(row)
        if row.key:
            self.bad_keys.setdefault(row.key, row)

    @property
    def rows(self) -> int:
        """The number of all rows that were read, including bad rows and conflicts."""
        return self.new + self.unchanged + len(self.bad) + len(self.conflicts)


@dataclass
class KnownItem:
    """The stored state of a key: the digests of all its revisions, its other values, and the
    resolution imported with it."""

    digests: set[str]
    facts: dict[str, Any]
    deleted: bool = False
    decided: tuple[Any, ...] | None = None

    def has(self, draft: ParsedItem) -> bool:
        """True if a revision of the item has the texts of the draft."""
        return draft.digest in self.digests

    def others(self, draft: ParsedItem) -> list[str]:
        """The names of the values, other than texts, in which the draft differs."""
        said = _row_facts(draft)
        return [name for name in said if not _agrees(name, said[name], self.facts[name])]

    def is_decided_otherwise(self, draft: ParsedItem) -> bool:
        """True if item and draft both have an imported final label and these labels differ."""
        said = _decided_values(draft)
        return bool(said and self.decided and said != self.decided)

    @property
    def repeats(self) -> bool:
        """True if the item is a duplicate of another item."""
        return bool(self.facts["repeats"])


class DryRunItem:
    """The state of a key in a dry run: only what comparisons need, in a few hundred bytes, because
    every row of a file keeps one in memory."""

    __slots__ = ("_prints", "is_decided", "repeats")
    deleted = False

    def __init__(self, draft: ParsedItem) -> None:
        self._prints = _fingerprints(draft).tobytes()
        self.is_decided, self.repeats = draft.decided is not None, bool(draft.repeats)

    def has(self, draft: ParsedItem) -> bool:
        """True if the earlier row has the same texts as the draft."""
        return self._same(draft)[0]

    def others(self, draft: ParsedItem) -> list[str]:
        """The names of the values, other than texts, in which the draft differs."""
        same = self._same(draft)[2:]
        return [name for name, alike in zip(_row_facts(draft), same, strict=True) if not alike]

    def is_decided_otherwise(self, draft: ParsedItem) -> bool:
        """True if both rows have a final label and these labels differ."""
        return bool(draft.decided and self.is_decided and not self._same(draft)[1])

    def _same(self, draft: ParsedItem) -> list[bool]:
        before, now = array("q", self._prints), _fingerprints(draft)
        return [one == other for one, other in zip(before, now, strict=True)]


ComparedItem = KnownItem | DryRunItem


def _fingerprints(draft: ParsedItem) -> "array[int]":
    """Return hashes of the texts, of the imported resolution and of every other value. Equal values
    have equal hashes; different values almost never do."""
    told = (draft.digest, _decided_values(draft), *_row_facts(draft).values())
    return array("q", [hash(_hashable(one)) for one in told])


def _hashable(value: Any) -> Hashable:
    if isinstance(value, dict):
        return frozenset((name, _hashable(one)) for name, one in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(_hashable, value))
    # Python's hash is the same for -1 and -2.
    return ("negative", -value) if isinstance(value, int | float) and value < 0 else value


def _hash_fields(fields: Mapping[str, Any]) -> dict[str, int]:
    """Return the hash of each field, since an item may have megabytes of fields."""
    return {name: hash(_hashable(value)) for name, value in fields.items()}


def collect_keys(drafts: list[ParsedItem]) -> set[str]:
    """Return the keys of the drafts, of the items that they repeat and of their parents."""
    return {key for draft in drafts for key in (draft.key, draft.repeats, draft.parent)}


def load_known(project: Project | None, drafts: list[ParsedItem]) -> dict[str, ComparedItem]:
    """Return the project's items that have keys of the drafts or keys that the drafts refer to."""
    known: dict[str, KnownItem] = {}
    if project is None:
        return {}
    there = Item.objects.filter(project=project, key__among=collect_keys(drafts))
    whole = there.select_related("duplicate_of", "parent")
    whole = whole.defer("duplicate_of__fields", "parent__fields")
    items: list[int] = []
    for ids in bulky_id_batches(there, "fields"):
        right = {one.item_id: one for one in Resolution.objects.current().known().of_items(ids)}
        for item in whole.filter(pk__among=ids):
            facts = _stored_facts(item, right.get(item.pk))
            known[item.key] = KnownItem(set(), facts, deleted=item.deleted_at is not None)
        items += ids
    if not items:
        return {}
    imported = Resolution.objects.of_items(items).filter(source=Resolution.Source.IMPORTED)
    for one in imported.select_related("item").defer("item__fields"):
        known[one.item.key].decided = (one.value, one.values, one.comment)
    stored = Revision.objects.filter(item__in=items)
    for key, digest in stored.values_list("item__key", "digest"):
        known[key].digests.add(digest)
    return {**known}


def _key_problem(draft: ParsedItem, first: BadRow) -> str:
    """Say that the draft has the key of an earlier bad row. If it got the key, the earlier row,
    once it is corrected, would be the one that is left out."""
    of = "" if first.file == draft.row.file else f" of {first.file}"
    return (
        f"is also the key of {first.place}{of}, which cannot be used. Correct that row, or change "
        "a key."
    )


def select_new(
    drafts: list[ParsedItem],
    known: dict[str, ComparedItem],
    report: ItemImportReport,
    after_bad: Mapping[str, BadRow],
) -> list[ParsedItem]:
    """Return the new drafts; count all others in the report as unchanged, bad or conflicting.

    `after_bad` has the keys of those drafts that an earlier row, which is bad, has too.
    """
    fresh, first_bad = [], dict(after_bad)
    for draft in drafts:
        entry = known.get(draft.key)
        if entry is None and (first := first_bad.get(draft.key)):
            report.reject(draft.bad("key", _key_problem(draft, first)))
        elif entry is None and draft.retired:
            shown = as_printable(draft.retired)
            reason = f"“{shown}” is retired. Restore it, or use another category."
            first_bad[draft.key] = draft.bad("category", reason, draft.retired)
            report.reject(first_bad[draft.key])
        elif entry is None and (reason := _repeat_problem(draft, known)):
            first_bad[draft.key] = draft.bad("repeats", reason)
            report.reject(first_bad[draft.key])
        elif entry is None and (reason := _parent_problem(draft, known)):
            first_bad[draft.key] = draft.bad("parent", reason)
            report.reject(first_bad[draft.key])
        elif entry is None:
            known[draft.key] = KnownItem(
                {draft.digest}, _row_facts(draft), decided=_decided_values(draft)
            )
            fresh.append(draft)
            report.new += 1
            report.equal += bool({"identical", "white-space-only"} & {*draft.flags})
            report.off_scale += draft.off_scale()
        elif reason := _describe_conflict(entry, draft):
            report.conflicts.append(draft.bad("key", reason))
        else:
            report.unchanged += 1
            report.off_scale += draft.off_scale()
    return fresh


def flag_duplicates(project: Project, drafts: list[ParsedItem]) -> list[ParsedItem]:
    """Return the drafts, and flag each generated draft whose answer is a duplicate.

    A duplicate has the same source question and, apart from white space, the same answer as another
    draft or an item in the project, in the same language if items name one: a name may be the same
    in two. This needs one query, which reads only answers, or no query if
    no draft was generated.
    """
    compared = tasktypes.load_task_type(project).diff
    if compared is None or not any(draft.is_made_here for draft in drafts):
        return drafts
    seen = _answer_keys(project, compared[1], {d.cluster for d in drafts if d.is_made_here})
    return [_flag_if_duplicate(draft, compared[1], seen) for draft in drafts]


def _answer_keys(project: Project, name: str, clusters: set[str]) -> dict[str, str]:
    """Return the keys of items by the digest of their source question and answer."""
    items = Item.objects.in_project(project).filter(cluster__among=clusters)
    current = Revision.objects.filter(item__in=items, number=F("item__revision_number"))
    told = current.annotate(
        said=KT(f"texts__{name}"), language=KeyTextTransform(LANGUAGE_FIELD, "item__fields")
    )
    found = told.values_list("item__cluster", "said", "language", "item__key").order_by()
    return {
        _answer_fingerprint(cluster, said or "", language or ""): key
        for cluster, said, language, key in found.iterator()
    }


def _flag_if_duplicate(draft: ParsedItem, name: str, seen: dict[str, str]) -> ParsedItem:
    said = draft.texts.get(name, "")
    if not draft.is_made_here or not isinstance(said, str):
        return draft
    language = str(draft.fields.get(LANGUAGE_FIELD) or "")
    first = seen.setdefault(_answer_fingerprint(draft.cluster, said, language), draft.key)
    again = first != draft.key
    return replace(draft, flags=(*draft.flags, DUPLICATE)) if again else draft


def _answer_fingerprint(cluster: str, said: str, language: str) -> str:
    return text_digest.digest_texts({cluster: " ".join(said.split()), "": language})


def _repeat_problem(draft: ParsedItem, known: dict[str, ComparedItem]) -> str:
    if not draft.repeats:
        return ""
    original = known.get(draft.repeats)
    if original is None or original.deleted:
        return f"refers to {draft.repeats!r}, which is not an item. Put that item before this one."
    if original.repeats:
        return (
            f"refers to {draft.repeats!r}, which is itself a duplicate. Use the key of the "
            "original."
        )
    return ""


def _parent_problem(draft: ParsedItem, known: dict[str, ComparedItem]) -> str:
    if not draft.parent or (draft.parent in known and not known[draft.parent].deleted):
        return ""
    return f"refers to {draft.parent!r}, which is not an item. Put that item before this one."


def _describe_conflict(entry: ComparedItem, draft: ParsedItem) -> str:
    if entry.deleted:
        return "was deleted. Restore the item instead of importing it."
    if not entry.has(draft):
        return (
            "already exists with other texts, in the project or in an earlier row. Nothing was "
            "changed; use a new key for the new texts."
        )
    if other := entry.others(draft):
        return f"exists with other {', '.join(other)}. Nothing was changed; correct the row."
    if entry.is_decided_otherwise(draft):
        return "was imported with another final label. Nothing was changed; adjudicate it."
    return ""


def _decided_values(draft: ParsedItem) -> tuple[Any, ...] | None:
    said = draft.decided
    return (said.value, said.values, said.explanation) if said else None


def _stored_facts(item: Item, known: Resolution | None) -> dict[str, Any]:
    """The stored values of an item besides its texts."""
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
        "fields": _hash_fields(item.fields),
        "known": (known.values, known.comment) if known else None,
    }


# The fields that an item may get after its import.
_ADDED = {*SUGGESTION, taxonomy.FORMER_FIELD}


def _agrees(name: str, said: Any, known: Any) -> bool:
    """True if the row has the stored value, or leaves out a value that it may leave out. A row may
    leave out the cluster, any ability that was assigned or suggested after the import, and the
    category from before a merge."""
    if name in ("ability", "source_ability", "cluster") and not said:
        return True
    if name == "fields":
        known = {one: value for one, value in known.items() if one in said or one not in _ADDED}
    return bool(said == known)


def _row_facts(draft: ParsedItem) -> dict[str, Any]:
    """The values of a row to import, besides its texts."""
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
        "fields": _hash_fields(draft.fields),
        "known": (draft.known.values, draft.known.explanation) if draft.known else None,
    }
