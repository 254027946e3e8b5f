"""Stores generated items and releases them: some at once, the rest when a lead decides to.

Items are first imported without slots; then the released items get slots. So a job that stopped
between these steps can be run again. Held items are in no annotator's queue, but all lists show
them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from annotation import importing, tasktypes
from annotation.db import transactions
from annotation.db.batches import make_batches
from annotation.generation.release import RELEASE_ALL, ReleasePolicy
from annotation.importing.exported_rows import DerivedRow
from annotation.items import taxonomy
from annotation.items.models import ItemQuerySet
from annotation.jobs import subprocesses
from annotation.labelling import assignment
from annotation.labelling.models.labels import ERROR_ITEM, SI_ITEM
from annotation.models import (
    Event,
    Item,
    Membership,
    Project,
    Resolution,
    Revision,
    Slot,
    digest_texts,
)
from formats.rows import BadRow
from stats.lots import draw_number

ACCEPTED_UNREVIEWED = "accepted unseen"
# Small enough that people can label meanwhile.
BATCH = 100
# At most this many of the rejected rows are reported.
MAX_PROBLEMS = 20


@dataclass
class GenerationResult:
    """The result: the report of the import with the rows, and the numbers of items that were
    released (`opened`), `accepted` without review and held (`waiting`)."""

    report: importing.ItemImportReport = field(default_factory=importing.ItemImportReport)
    opened: int = 0
    accepted: int = 0
    waiting: int = 0

    def summary(self) -> dict[str, Any]:
        """The counts as a dict, with the first problems of rejected rows."""
        lost = [*self.report.bad, *self.report.conflicts]
        return {
            "new": self.report.new,
            "unchanged": self.report.unchanged,
            "bad": len(self.report.bad),
            "conflicts": len(self.report.conflicts),
            "opened": self.opened,
            "accepted": self.accepted,
            "waiting": self.waiting,
            "problems": [f"{one.field} {one.reason}"[:200] for one in lost[:MAX_PROBLEMS]],
        }


@dataclass(frozen=True)
class GeneratedText:
    """A generated text that an item lacked. It has the item's id and key, the number of the
    revision that the generator saw, the text, a note on the text's source, and facts on this source
    for the item's fields."""

    item: int
    key: str
    revision: int
    text: str
    note: str
    facts: Mapping[str, Any]


def store_items(
    project: Project,
    rows: Iterable[DerivedRow],
    vetting: ReleasePolicy = RELEASE_ALL,
    *,
    member: Membership | None = None,
) -> GenerationResult:
    """Store rows as items and release them by the policy. Repeating it adds nothing."""
    keys: list[str] = []

    def noted() -> Iterator[importing.ParsedItem | BadRow]:
        for number, draft in enumerate(
            importing.parse_items(
                rows, tasktypes.load_task_type(project), taxonomy.load_taxonomy(project)
            )
        ):
            if number % BATCH == 0:
                subprocesses.send_heartbeat()
            if isinstance(draft, importing.ParsedItem):
                keys.append(draft.key)
            yield draft

    done = GenerationResult()
    done.report = importing.store_items(project, noted(), places=False, member=member)
    _release_share(project, keys, vetting, done)
    _record("made", project, member, done)
    return done


def store_texts(
    project: Project,
    answers: Iterable[GeneratedText],
    vetting: ReleasePolicy = RELEASE_ALL,
    *,
    member: Membership | None = None,
) -> GenerationResult:
    """Add the awaited text to items, each as a new revision, and release them by the policy.

    An item that already has a different text or was changed meanwhile is left unchanged and
    reported as a conflict.
    """
    name = tasktypes.load_task_type(project).awaits
    done, keys = GenerationResult(), []
    for batch in make_batches(answers, BATCH):
        with transactions.transact():
            keys += _store_text_batch(project, name, batch, done.report)
        subprocesses.send_heartbeat()
    _release_share(project, keys, vetting, done)
    _record("answers", project, member, done)
    return done


def waiting_items(project: Project) -> ItemQuerySet:
    """Return the items that are not released yet: items with the awaited text but without slots and
    resolution. Duplicates are left out."""
    found = Item.objects.in_project(project).originals().of_tests().unresolved().without_places()
    awaits = tasktypes.load_task_type(project).awaits
    return found.with_text(awaits) if awaits else found


def release_waiting(
    project: Project,
    *,
    category: str = "",
    flagged: bool = True,
    member: Membership | None = None,
) -> int:
    """Release the waiting items of one category, or of all categories for "". Return their number.

    Items with a flag are released only if `flagged` is true.
    """
    found = waiting_items(project).filter(category=category) if category else waiting_items(project)
    if not flagged:
        found = found.filter(flags=[])
    opened = _open_slots(project, list(found.order_by().values_list("pk", flat=True)))
    if opened:
        Event.record(
            "places given",
            category or project.slug,
            project_id=project.pk,
            member_id=member.pk if member else None,
            items=opened,
        )
    return opened


def _record(kind: str, project: Project, member: Membership | None, done: GenerationResult) -> None:
    Event.record(
        kind,
        project.slug,
        project_id=project.pk,
        member_id=member.pk if member else None,
        items=done.report.new,
        people_get=done.opened,
        accepted=done.accepted,
        wait=done.waiting,
    )


def _release_share(
    project: Project, keys: Sequence[str], vetting: ReleasePolicy, done: GenerationResult
) -> None:
    """Release a random share of the items with these keys. The share is drawn from all of these
    items, even those with slots or a resolution, so that a repetition releases no further items."""
    made = Item.objects.in_project(project).originals().of_tests()
    fit: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for part in make_batches(keys, 500):
        subprocesses.send_heartbeat()
        rows = made.with_keys(part).values_list("category", "key", "pk", "flags")
        for category, key, pk, flags in rows:
            if not vetting.aside.intersection(flags):
                fit[category].append((key, pk))
    drawn = set(_draw_share(project, fit, vetting.share))
    everything = [pk for entries in fit.values() for _, pk in entries]
    done.opened = _open_slots(project, [pk for pk in everything if pk in drawn])
    if vetting.accept:
        done.accepted = _accept_unreviewed(project, [pk for pk in everything if pk not in drawn])
    for part in make_batches(keys, 500):
        subprocesses.send_heartbeat()
        done.waiting += waiting_items(project).with_keys(part).count()


def _draw_share(
    project: Project, fit: Mapping[str, Sequence[tuple[str, int]]], share: int
) -> list[int]:
    """Draw a random share of each category, in percent and rounded up. Return the ids. The draw
    depends only on the keys."""
    drawn: list[int] = []
    for entries in fit.values():
        by_lot = sorted(entries, key=lambda one: draw_number(f"made\0{project.slug}\0{one[0]}"))
        drawn += [pk for _, pk in by_lot[: ceil(len(entries) * share / 100)]]
    return drawn


def _open_slots(project: Project, ids: Sequence[int]) -> int:
    """Create slots for the waiting items among these ids. Return the number of these items."""
    given = 0
    for part in make_batches(ids, BATCH):
        with transactions.transact():
            assignment.lock_settings(project)
            found = list(waiting_items(project).filter(pk__among=part).order_by("position"))
            slots = [slot for item in found for slot in assignment.build_slots(project, item)]
            Slot.objects.bulk_create(slots)
            given += len(found)
        subprocesses.send_heartbeat()
    return given


def _accept_unreviewed(project: Project, ids: Sequence[int]) -> int:
    """Resolve the waiting items among these ids with the intended final label of their category:
    error item or score-invariant. Return the number of these items."""
    unchanging = {category.slug for category in taxonomy.load_taxonomy(project).score_invariant()}
    accepted = 0
    for part in make_batches(ids, BATCH):
        with transactions.transact():
            Project.objects.select_for_update(no_key=True).only("pk").get(pk=project.pk)
            found = waiting_items(project).filter(pk__among=part).with_current_texts()
            made = [
                _accepted_resolution(project, item, item.category in unchanging) for item in found
            ]
            Resolution.objects.bulk_create(made)
            accepted += len(made)
        subprocesses.send_heartbeat()
    return accepted


def _accepted_resolution(project: Project, item: Item, unchanging: bool) -> Resolution:
    [revision] = item.current_revisions
    return Resolution(
        item=item,
        revision=revision,
        taxonomy_id=project.taxonomy_id,
        value=SI_ITEM if unchanging else ERROR_ITEM,
        rule=ACCEPTED_UNREVIEWED,
        source=Resolution.Source.IMPORTED,
    )


def _store_text_batch(
    project: Project, name: str, batch: Sequence[GeneratedText], report: importing.ItemImportReport
) -> list[str]:
    """Add new revisions to items. Return the keys of the items that now have their text."""
    found = Item.objects.in_project(project).locked().filter(pk__in=[one.item for one in batch])
    items = {item.pk: item for item in found.with_current_texts().order_by("pk")}
    there: list[str] = []
    for line, one in enumerate(batch, start=report.rows + 1):
        problem = _store_text(items.get(one.item), name, one)
        if problem is None:
            report.new += 1
        elif problem:
            report.conflicts.append(BadRow(one.note, line, one.key, problem))
        else:
            report.unchanged += 1
        if not problem:
            there.append(one.key)
    return there


def _store_text(item: Item | None, name: str, said: GeneratedText) -> str | None:
    """Add the text to a locked item. Return None if the text was added, "" if the item had it
    already, otherwise the reason why it was not added."""
    if item is None:
        return "was removed from the project."
    [current] = item.current_revisions
    if current.texts.get(name) == said.text:
        return ""
    if current.number != said.revision or current.texts.get(name):
        return "now has other texts. Nothing was changed."
    texts = {**current.texts, name: said.text}
    item.revision_number += 1
    item.fields |= said.facts
    item.save(update_fields=["revision_number", "fields"])
    Revision.objects.create(
        item=item,
        number=item.revision_number,
        texts=texts,
        digest=digest_texts(texts),
        note=said.note,
    )
    return None
