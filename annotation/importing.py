"""Items into a project, in small transactions.

Idempotent by item key: the same row again is nothing new; other texts, or anything else said
otherwise, are a reported conflict and never an overwrite.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from django.db.models import Max
from django.utils import timezone

from annotation import assigning, tasktypes, writing
from annotation import known as known_answers
from annotation.drafts import Draft, check
from annotation.models import (
    Event,
    Item,
    Membership,
    Project,
    Resolution,
    Revision,
    Slot,
    TaskTypeVersion,
    texts_digest,
)
from annotation.querysets import ERROR_ITEM, SI_ITEM
from formats.rows import BadRow

__all__ = ["Draft", "Report", "check", "create_project", "store", "task_type_version"]

# Small enough that a batch commits well within 200 ms, so that people can label meanwhile.
BATCH = 50


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
class _Known:
    """What is known of a key: the digests of all its revisions, and what its row says beside."""

    digests: set[str]
    facts: dict[str, Any]
    deleted: bool = False


def task_type_version(slug: str) -> TaskTypeVersion:
    """The stored version of a task type file as it is now. An unknown slug is a KeyError."""
    return store_task_type(tasktypes.definitions()[slug], tasktypes.sources()[slug])


def store_task_type(definition: dict[str, Any], source: str) -> TaskTypeVersion:
    """The stored version of a definition, made if it is new; `source` is its TOML."""
    slug, digest = definition["slug"], tasktypes.digest(definition)
    with writing.transact():
        known = TaskTypeVersion.objects.filter(slug=slug)
        version = known.filter(digest=digest).first()
        if version is None:
            number = (known.aggregate(last=Max("number"))["last"] or 0) + 1
            version = TaskTypeVersion.objects.create(
                slug=slug, number=number, digest=digest, definition=definition, source=source
            )
    return version


def create_project(slug: str, *, task_type: str = "perturbation-vetting", **values: Any) -> Project:
    """A new project; its name defaults to the slug in words, its overlap to the task's raters."""
    version = task_type_version(task_type)
    values.setdefault("name", slug.replace("-", " ").capitalize())
    values.setdefault("overlap", tasktypes.of_version(version).raters)
    return Project.objects.create(slug=slug, task_type=version, **values)


def store(
    project: Project | None,
    drafts: Iterable[Draft | BadRow],
    *,
    accept: bool = False,
    dry_run: bool = False,
    member: Membership | None = None,
) -> Report:
    """Store what is new of the drafts, batch by batch, and say what became of each.

    `accept` takes items as already resolved (source: imported), as published data is: they get no
    slots. Otherwise each gets the slots that the project wants for it; one with a known answer,
    for practice or probes, gets none either way. A dry run stores nothing and also works for a
    project that is not there yet (None); it keeps what it must know of every item.
    """
    report = Report()
    stream = iter(drafts)
    imagined: dict[str, _Known] = {}
    while batch := list(islice(stream, BATCH)):
        report.bad += [draft for draft in batch if isinstance(draft, BadRow)]
        good = [draft for draft in batch if isinstance(draft, Draft)]
        if project is None or dry_run:
            imagined = _known(project, good) | imagined
            _sort_out(good, imagined, report)
            continue
        with writing.transact():
            _lock(project)
            _insert(project, _sort_out(good, _known(project, good), report), accept=accept)
    if project and not dry_run:
        _record(project, report, accept, member)
    return report


def _lock(project: Project) -> None:
    # Two imports take turns, and neither can choose a position or a key that the other takes.
    Project.objects.select_for_update(no_key=True).only("pk").get(pk=project.pk)


def _known(project: Project | None, drafts: list[Draft]) -> dict[str, _Known]:
    """What the project holds under the keys of the drafts and under those that they repeat."""
    known: dict[str, _Known] = {}
    if project is None:
        return known
    keys = {draft.key for draft in drafts} | {draft.repeats for draft in drafts}
    items = Item.objects.filter(project=project, key__in=keys).select_related("duplicate_of")
    right = {one.item_id: one for one in Resolution.objects.current().known().of_items(items)}
    for item in items:
        facts = _facts(item, right.get(item.pk))
        known[item.key] = _Known(set(), facts, deleted=item.deleted_at is not None)
    stored = Revision.objects.filter(item__in=items)
    for key, digest in stored.values_list("item__key", "digest"):
        known[key].digests.add(digest)
    return known


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


def _sort_out(drafts: list[Draft], known: dict[str, _Known], report: Report) -> list[Draft]:
    """The drafts that are new; the others are counted as unchanged, bad or in conflict."""
    fresh = []
    for draft in drafts:
        digest = texts_digest(draft.texts)
        entry = known.get(draft.key)
        if entry is None and (reason := _cannot_repeat(draft, known)):
            report.bad.append(draft.bad("repeats", reason))
        elif entry is None:
            known[draft.key] = _Known({digest}, _said(draft))
            fresh.append(draft)
            report.new += 1
        elif reason := _conflict(entry, draft, digest):
            report.conflicts.append(draft.bad("key", reason))
        else:
            report.unchanged += 1
    return fresh


def _cannot_repeat(draft: Draft, known: dict[str, _Known]) -> str:
    if not draft.repeats:
        return ""
    original = known.get(draft.repeats)
    if original is None or original.deleted:
        return f"names {draft.repeats!r}, which is no item here. Put that item before this one."
    if original.facts["repeats"]:
        return f"names {draft.repeats!r}, which repeats another item. Name that one."
    return ""


def _conflict(entry: _Known, draft: Draft, digest: str) -> str:
    if entry.deleted:
        return "was deleted here; its key is kept. Restore the item instead of importing it."
    if digest not in entry.digests:
        return (
            "exists with other texts. Nothing was changed; give the new texts a key of their own."
        )
    said = _said(draft)
    if other := [name for name in said if said[name] != entry.facts[name]]:
        return f"exists with other {', '.join(other)}. Nothing was changed; mend the row."
    return ""


def _insert(project: Project, drafts: list[Draft], *, accept: bool) -> None:
    if not drafts:
        return
    last = Item.objects.filter(project=project).aggregate(last=Max("position"))["last"] or 0
    compared = tasktypes.of_version(project.task_type).diff
    items = [
        _item(project, draft, position, _flags(draft.texts, compared))
        for position, draft in enumerate(drafts, start=last + 1)
    ]
    _link_duplicates(project, items, drafts)
    texts = [draft.texts for draft in drafts]
    revisions = Revision.objects.bulk_create(
        Revision(item=item, number=1, texts=text, digest=texts_digest(text))
        for item, text in zip(items, texts, strict=True)
    )
    pairs = list(zip(revisions, drafts, strict=True))
    Resolution.objects.bulk_create(
        known_answers.resolution(revision, draft.known, None, timezone.now())
        for revision, draft in pairs
        if draft.known
    )
    unknown = [(revision, draft) for revision, draft in pairs if not draft.known]
    if accept:
        Resolution.objects.bulk_create(
            _accepted(revision, draft.effect) for revision, draft in unknown
        )
    else:
        Slot.objects.bulk_create(
            slot for revision, _ in unknown for slot in _slots(project, revision.item)
        )


def _item(project: Project, draft: Draft, position: int, flags: list[str]) -> Item:
    return Item(
        project=project,
        key=draft.key,
        position=position,
        category=draft.category,
        ability=draft.ability,
        source_ability=draft.source_ability,
        cluster=draft.cluster,
        origin=draft.origin,
        purpose=draft.purpose,
        fields=draft.fields,
        flags=flags,
    )


def _flags(texts: dict[str, Any], compared: tuple[str, str] | None) -> list[str]:
    """What asks for a look at the two texts that the task type compares, if it does."""
    if compared is None:
        return []
    before, after = (texts.get(name, "") for name in compared)
    if before == after:
        return ["identical"]
    if before.split() == after.split():
        return ["white-space-only"]
    return []


def _link_duplicates(project: Project, items: list[Item], drafts: list[Draft]) -> None:
    """Insert the items, those that others repeat first, and point the repeats at them."""
    repeats = {draft.key: draft.repeats for draft in drafts if draft.repeats}
    Item.objects.bulk_create(item for item in items if item.key not in repeats)
    if not repeats:
        return
    originals = {
        item.key: item for item in Item.objects.filter(project=project, key__in=repeats.values())
    }
    repeating = [item for item in items if item.key in repeats]
    for item in repeating:
        item.duplicate_of = originals[repeats[item.key]]
        item.flags = []  # a flag asks for a look at the texts, and those are the original's
    Item.objects.bulk_create(repeating)


def _accepted(revision: Revision, expected_effect: str) -> Resolution:
    return Resolution(
        item=revision.item,
        revision=revision,
        value=SI_ITEM if expected_effect == "none" else ERROR_ITEM,
        rule="accepted at import",
        source=Resolution.Source.IMPORTED,
    )


def _slots(project: Project, item: Item) -> list[Slot]:
    return assigning.slots_for(project, item) if item.duplicate_of_id is None else []


def _record(project: Project, report: Report, accept: bool, member: Membership | None) -> None:
    Event.record(
        "import",
        project.slug,
        project_id=project.pk,
        member_id=member.pk if member else None,
        accept=accept,
        new=report.new,
        unchanged=report.unchanged,
        bad=len(report.bad),
        conflicts=len(report.conflicts),
    )
