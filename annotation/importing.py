"""Items from rows: checked as a whole first, then stored in small transactions.

Idempotent by item key: the same texts again are nothing new, changed texts a reported conflict
and never an overwrite.
"""

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from django.db.models import Max

from annotation import taxonomy, tasktypes, writing
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
from formats.rows import BadRow, Row

# Small enough that a batch commits well within 200 ms, so that people can label meanwhile.
BATCH = 50
KEY_LENGTH = 200
SHORT_LENGTH = 40
COLUMNS = {"key", "category", "source_ability", "origin", "cluster", "repeats", "purpose"}


@dataclass(frozen=True)
class Draft:
    """A row that was found good: an item to be."""

    row: Row
    key: str
    category: taxonomy.Category
    source_ability: str
    cluster: str
    origin: str
    purpose: str
    repeats: str
    texts: dict[str, str]
    fields: dict[str, Any]


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


def task_type_version(slug: str) -> TaskTypeVersion:
    """The stored version of a task type file as it is now. An unknown slug is a KeyError."""
    definition = tasktypes.definitions()[slug]
    digest = tasktypes.digest(definition)
    with writing.transact():
        known = TaskTypeVersion.objects.filter(slug=slug)
        version = known.filter(digest=digest).first()
        if version is None:
            number = (known.aggregate(last=Max("number"))["last"] or 0) + 1
            version = TaskTypeVersion.objects.create(
                slug=slug, number=number, digest=digest, definition=definition
            )
    return version


def create_project(slug: str, *, task_type: str = "perturbation-vetting", **values: Any) -> Project:
    """A new project; its name defaults to the slug in words."""
    values.setdefault("name", slug.replace("-", " ").capitalize())
    return Project.objects.create(slug=slug, task_type=task_type_version(task_type), **values)


def check(rows: Iterable[Row | BadRow], task: tasktypes.TaskType) -> Iterator[Draft | BadRow]:
    """Each row as an item to be, or why it cannot be one. Whole-file faults raise as they come."""
    for row in rows:
        yield row if isinstance(row, BadRow) else _draft(row, task)


def store(
    project: Project,
    drafts: Iterable[Draft | BadRow],
    *,
    accept: bool = False,
    dry_run: bool = False,
    member: Membership | None = None,
) -> Report:
    """Store what is new of the drafts, batch by batch, and say what became of each.

    `accept` takes items as already resolved (source: imported), as published data is: they get no
    slots. Otherwise each gets as many slots as the project's overlap.
    """
    report = Report()
    stream = iter(drafts)
    while batch := list(islice(stream, BATCH)):
        report.bad += [draft for draft in batch if isinstance(draft, BadRow)]
        good = [draft for draft in batch if isinstance(draft, Draft)]
        with writing.transact():
            fresh = _sort_out(project, good, report)
            if not dry_run:
                _insert(project, fresh, accept=accept)
    if not dry_run:
        counts = {"new": report.new, "unchanged": report.unchanged, "bad": len(report.bad)}
        Event.record(
            "import",
            project.slug,
            project_id=project.pk,
            member_id=member.pk if member else None,
            accept=accept,
            **counts,
        )
    return report


def _draft(row: Row, task: tasktypes.TaskType) -> Draft | BadRow:
    def bad(name: str, reason: str) -> BadRow:
        return BadRow(row.file, row.line, name, reason)

    values = row.values
    names = [text.name for text in task.texts]
    for name in (*COLUMNS, *names):
        if not isinstance(values.get(name, ""), str):
            return bad(name, "is not text. Put it in quotes.")
    key = values.get("key", "").strip()
    if not key or len(key) > KEY_LENGTH:
        return bad("key", f"must have 1 to {KEY_LENGTH} characters.")
    if any(unicodedata.category(character).startswith("C") for character in key):
        return bad("key", "holds control characters. Take them out.")
    for text in task.texts:
        if text.required and not values.get(text.name, "").strip():
            return bad(text.name, "is empty or missing; every item needs it.")
    for name in ("source_ability", "origin", "purpose"):
        if len(values.get(name, "")) > SHORT_LENGTH:
            return bad(name, f"is longer than {SHORT_LENGTH} characters.")
    if not _storable(values):
        return bad("", "holds a character that cannot be stored (NUL or half a surrogate pair).")
    return _placed(row, key, names) or bad(
        "category", f"{values.get('category', '')!r} is not in the taxonomy. {_known_categories()}"
    )


def _placed(row: Row, key: str, names: list[str]) -> Draft | None:
    values = row.values
    category = taxonomy.load().find(values.get("category", "").strip())
    if category is None:
        return None
    question = values.get("cluster", "").strip() or values["prompt"].strip()
    return Draft(
        row=row,
        key=key,
        category=category,
        source_ability=values.get("source_ability", "").strip() or category.ability,
        cluster=hashlib.sha256(question.encode()).hexdigest(),
        origin=values.get("origin", "").strip(),
        purpose=values.get("purpose", "").strip() or "test",
        repeats=values.get("repeats", ""),
        texts={name: values[name] for name in names if values.get(name)},
        fields={name: value for name, value in values.items() if name not in COLUMNS.union(names)},
    )


def _storable(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_storable(part) for pair in value.items() for part in pair)
    if isinstance(value, list):
        return all(map(_storable, value))
    if not isinstance(value, str):
        return True
    return "\x00" not in value and value.isprintable() or _encodes(value)


def _encodes(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return "\x00" not in value


def _known_categories() -> str:
    slugs = ", ".join(category.slug for category in taxonomy.load().categories)
    return f"Known are {slugs}."


def _sort_out(project: Project, drafts: list[Draft], report: Report) -> list[Draft]:
    """The drafts that are new; the others are counted as unchanged or as conflicts."""
    known = _known_digests(project, [draft.key for draft in drafts])
    fresh = []
    for draft in drafts:
        digest = texts_digest(draft.texts)
        if draft.key not in known:
            known[draft.key] = ({digest}, False)
            fresh.append(draft)
            report.new += 1
            continue
        digests, deleted = known[draft.key]
        reason = _conflict(digest in digests, deleted)
        if reason:
            report.conflicts.append(BadRow(draft.row.file, draft.row.line, "key", reason))
        else:
            report.unchanged += 1
    return fresh


def _conflict(same_texts: bool, deleted: bool) -> str:
    if deleted:
        return "was deleted here; its key is kept. Restore the item instead of importing it."
    if not same_texts:
        return (
            "exists with other texts. Nothing was changed; give the new texts a key of their own."
        )
    return ""


def _known_digests(project: Project, keys: list[str]) -> dict[str, tuple[set[str], bool]]:
    known: dict[str, tuple[set[str], bool]] = {}
    stored = Revision.objects.filter(item__project=project, item__key__in=keys)
    for key, deleted_at, digest in stored.values_list("item__key", "item__deleted_at", "digest"):
        digests, _ = known.setdefault(key, (set(), deleted_at is not None))
        digests.add(digest)
    return known


def _insert(project: Project, drafts: list[Draft], *, accept: bool) -> None:
    if not drafts:
        return
    Project.objects.select_for_update().only("pk").get(pk=project.pk)
    last = Item.objects.filter(project=project).aggregate(last=Max("position"))["last"] or 0
    items = [
        _item(project, draft, position) for position, draft in enumerate(drafts, start=last + 1)
    ]
    _link_duplicates(project, items, drafts)
    texts = [draft.texts for draft in drafts]
    revisions = Revision.objects.bulk_create(
        Revision(item=item, number=1, texts=text, digest=texts_digest(text))
        for item, text in zip(items, texts, strict=True)
    )
    if accept:
        Resolution.objects.bulk_create(_accepted(revision) for revision in revisions)
    else:
        Slot.objects.bulk_create(slot for item in items for slot in _slots(project, item))


def _item(project: Project, draft: Draft, position: int) -> Item:
    return Item(
        project=project,
        key=draft.key,
        position=position,
        category=draft.category.slug,
        ability=draft.category.ability,
        source_ability=draft.source_ability,
        cluster=draft.cluster,
        origin=draft.origin,
        purpose=draft.purpose,
        fields=draft.fields,
        flags=_flags(draft.texts.get("gold", ""), draft.texts.get("perturbed", "")),
    )


def _flags(gold: str, perturbed: str) -> list[str]:
    if gold == perturbed:
        return ["identical"]
    if gold.split() == perturbed.split() or "".join(gold.split()) == "".join(perturbed.split()):
        return ["white-space-only"]
    return []


def _link_duplicates(project: Project, items: list[Item], drafts: list[Draft]) -> None:
    """Insert the items, those that others repeat first, and point the repeats at them."""
    repeats = {draft.key: draft.repeats for draft in drafts if draft.repeats}
    Item.objects.bulk_create(item for item in items if item.key not in repeats)
    originals = {
        item.key: item for item in Item.objects.filter(project=project, key__in=repeats.values())
    }
    repeating = [item for item in items if item.key in repeats]
    for item in repeating:
        item.duplicate_of = originals.get(repeats[item.key])
    Item.objects.bulk_create(repeating)


def _accepted(revision: Revision) -> Resolution:
    invariant = revision.item.category == SI_ITEM or revision.item.duplicate_of_id is not None
    return Resolution(
        item=revision.item,
        revision=revision,
        value=SI_ITEM if invariant else ERROR_ITEM,
        rule="accepted at import",
        source=Resolution.Source.IMPORTED,
    )


def _slots(project: Project, item: Item) -> Iterator[Slot]:
    if item.duplicate_of_id is not None:
        return
    for number in range(1, project.overlap + 1):
        yield Slot(project=project, item=item, number=number, position=item.position)
