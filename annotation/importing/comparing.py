"""What a project holds of the items that come in: nothing yet, the same, or something else."""

from dataclasses import dataclass, field
from typing import Any

from annotation.importing.drafts import Draft
from annotation.models import Item, Project, Resolution, Revision
from formats.rows import BadRow


@dataclass
class Report:
    """What became of the rows of one import, counted; `bad` and `conflicts` name their place."""

    new: int = 0
    unchanged: int = 0
    bad: list[BadRow] = field(default_factory=list)
    conflicts: list[BadRow] = field(default_factory=list)

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


def known_of(project: Project | None, drafts: list[Draft]) -> dict[str, Known]:
    """What the project holds under the keys of the drafts and under those that they repeat."""
    known: dict[str, Known] = {}
    if project is None:
        return known
    keys = {draft.key for draft in drafts} | {draft.repeats for draft in drafts}
    items = list(Item.objects.filter(project=project, key__in=keys).select_related("duplicate_of"))
    if not items:
        return known
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
    return known


def sort_out(drafts: list[Draft], known: dict[str, Known], report: Report) -> list[Draft]:
    """The drafts that are new; the others are counted as unchanged, bad or in conflict."""
    fresh = []
    for draft in drafts:
        entry = known.get(draft.key)
        if entry is None and (reason := _cannot_repeat(draft, known)):
            report.bad.append(draft.bad("repeats", reason))
        elif entry is None:
            known[draft.key] = Known({draft.digest}, _said(draft), decided=_decided(draft))
            fresh.append(draft)
            report.new += 1
        elif reason := _conflict(entry, draft):
            report.conflicts.append(draft.bad("key", reason))
        else:
            report.unchanged += 1
    return fresh


def _cannot_repeat(draft: Draft, known: dict[str, Known]) -> str:
    if not draft.repeats:
        return ""
    original = known.get(draft.repeats)
    if original is None or original.deleted:
        return f"names {draft.repeats!r}, which is no item here. Put that item before this one."
    if original.facts["repeats"]:
        return f"names {draft.repeats!r}, which repeats another item. Name that one."
    return ""


def _conflict(entry: Known, draft: Draft) -> str:
    if entry.deleted:
        return "was deleted here; its key is kept. Restore the item instead of importing it."
    if draft.digest not in entry.digests:
        return (
            "exists with other texts. Nothing was changed; give the new texts a key of their own."
        )
    said = _said(draft)
    if other := [name for name in said if said[name] != entry.facts[name]]:
        return f"exists with other {', '.join(other)}. Nothing was changed; mend the row."
    if draft.decided and entry.decided and entry.decided != _decided(draft):
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
        "fields": item.fields,
        "known": (known.values, known.comment) if known else None,
    }


def _said(draft: Draft) -> dict[str, Any]:
    """The same of a row that is to be an item."""
    return {
        "category": draft.category,
        "ability": draft.ability,
        "source_ability": draft.source_ability,
        "cluster": draft.cluster,
        "origin": draft.origin,
        "purpose": draft.purpose,
        "repeats": draft.repeats,
        "fields": draft.fields,
        "known": (draft.known.values, draft.known.explanation) if draft.known else None,
    }
