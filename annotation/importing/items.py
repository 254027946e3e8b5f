"""Store items in a project, in small transactions.

Idempotent by item key: importing the same row again changes nothing. A row whose texts or values
differ from the stored item is reported as a conflict and overwrites nothing.
"""

import json
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any

from django.db.models import Max
from django.utils import timezone

from annotation import tasktypes
from annotation.db import bulk, transactions
from annotation.errors import Stale
from annotation.importing.comparison import (
    ComparedItem,
    DryRunItem,
    ItemImportReport,
    collect_keys,
    flag_duplicates,
    load_known,
    select_new,
)
from annotation.importing.item_rows import ParsedItem, cluster_by_text
from annotation.labelling import answer_key as known_answers
from annotation.labelling import assignment, correct_answers, work_order
from annotation.labelling.models.labels import ERROR_ITEM, SI_ITEM
from annotation.models import (
    Event,
    Item,
    Membership,
    Project,
    Resolution,
    Revision,
    Slot,
)
from annotation.settings import project_settings
from formats.rows import BadRow

# Small enough that a batch takes little memory, however large the texts are. It also commits in
# much less than 200 ms, so that people can label meanwhile; slow databases get smaller batches.
BATCH = 500
BATCH_BYTES = 4_000_000
FIRST_BATCH, MIN_BATCH, BATCH_SECONDS = 100, 20, 0.1
# The keys of this many bad rows are looked up at once.
KEYS_AT_ONCE = 5_000
CHANGED_CATEGORIES = (
    "The project’s categories were changed during the import. Start it again; what was imported so "
    "far stays."
)
USED_KEY = "Another row or item has this key."


@dataclass(frozen=True, slots=True)
class _Entry:
    """A draft with its position in the project and the ids reserved for its rows."""

    draft: ParsedItem
    position: int
    item: int
    revision: int


def store_items(
    project: Project | None,
    drafts: Iterable[ParsedItem | BadRow],
    *,
    accept: bool = False,
    places: bool = True,
    dry_run: bool = False,
    member: Membership | None = None,
) -> ItemImportReport:
    """Store the new drafts, batch by batch, and report the result of each. Raises `Stale` if the
    project's categories are changed meanwhile; the batches before stay.

    With `accept`, items (for example of published data) are stored as resolved, with source
    "imported", and get no slots. Otherwise each item gets the slots that the project's settings
    require, or waits for them if `places` is False; items with a known answer, for qualification or
    control, never get slots. A dry run stores nothing and also works without a project (None); it
    keeps a few hundred bytes in memory per item.
    """
    report, size = ItemImportReport(), _BatchSize()
    by_text = project is not None and _clusters_by_text(project)
    if project is None or dry_run:
        there = _dry_run(project, drafts, report, by_text=by_text)
        _mark_used_keys(project, report, there)
        return report
    try:
        with bulk.WriteAheadLog() as log:
            for number, (good, after_bad) in enumerate(_good_batches(drafts, report, size)):
                if number == 1:
                    # Otherwise PostgreSQL plans for an empty table and scans it for each batch.
                    bulk.analyze_tables(Item._meta.db_table)
                marked = flag_duplicates(project, good)
                with size.timed(len(good)), transactions.transact():
                    # After a crash the import is started again and finds what is missing.
                    bulk.set_up_import()
                    _lock(project)
                    fresh = select_new(marked, load_known(project, marked), report, after_bad)
                    _insert(project, fresh, accept=accept, places=places, by_text=by_text)
                report.alone += 0 if by_text else sum(draft.is_alone for draft in fresh)
                log.grown(sum(len(draft.written) for draft in good))
    except Stale:
        _record(project, report, accept, member)
        raise
    _mark_used_keys(project, report)
    _record(project, report, accept, member)
    return report


def _clusters_by_text(project: Project) -> bool:
    """True if items without a given cluster are clustered by prompt although people rate responses.

    This is the case if the project's first item was clustered by prompt: later items must be
    clustered in the same way.
    """
    task = tasktypes.load_version(project.task_type)
    if not task.rates:
        return False
    first = Revision.objects.filter(item__project=project).order_by("item__position", "number")
    found = first.values_list("item__cluster", "texts").first()
    return found is not None and found[0] == cluster_by_text(task, found[1])


def _dry_run(
    project: Project | None,
    drafts: Iterable[ParsedItem | BadRow],
    report: ItemImportReport,
    *,
    by_text: bool,
) -> Container[str]:
    """Report the results that storing the drafts would have. Return the keys of the items that
    would be added."""
    imagined: dict[str, DryRunItem] = {}
    for good, after_bad in _good_batches(drafts, report, _BatchSize()):
        known = load_known(project, good) | _dry_run_entries(good, imagined)
        fresh = select_new(good, known, report, after_bad)
        report.alone += 0 if by_text else sum(draft.is_alone for draft in fresh)
        imagined.update((draft.key, DryRunItem(draft)) for draft in fresh)
    return imagined


def _mark_used_keys(
    project: Project | None, report: ItemImportReport, added: Container[str] = ()
) -> None:
    """Say of each bad row if its key is used by an item of the project or by an `added` one: once
    it is corrected, it could not be imported under this key."""
    named = [place for place, row in enumerate(report.bad) if row.key]
    for first in range(0, len(named), KEYS_AT_ONCE):
        some = named[first : first + KEYS_AT_ONCE]
        items = Item.objects.filter(project=project, key__among={report.bad[n].key for n in some})
        stored = set(items.values_list("key", flat=True)) if project else set()
        for place in some:
            row = report.bad[place]
            if row.key in stored or row.key in added:
                report.bad[place] = replace(row, reason=f"{row.reason} {USED_KEY}")


class _BatchSize:
    """The number of rows that take BATCH_SECONDS to store, judged by the speed of the last
    batch."""

    def __init__(self) -> None:
        self.rows = min(BATCH, FIRST_BATCH)

    @contextmanager
    def timed(self, rows: int) -> Iterator[None]:
        begun = perf_counter()
        yield
        took = perf_counter() - begun
        if rows and took:
            self.rows = min(BATCH, max(MIN_BATCH, int(rows / took * BATCH_SECONDS)))


def _good_batches(
    drafts: Iterable[ParsedItem | BadRow], report: ItemImportReport, size: _BatchSize
) -> Iterator[tuple[list[ParsedItem], dict[str, BadRow]]]:
    """Yield the drafts in batches, each with the keys that an earlier bad row has too; add bad rows
    to the report."""
    for batch in _batches(drafts, size):
        good, after_bad = list[ParsedItem](), dict[str, BadRow]()
        for draft in batch:
            if isinstance(draft, BadRow):
                report.reject(draft)
                continue
            good.append(draft)
            if first := report.bad_keys.get(draft.key):
                after_bad[draft.key] = first
        yield good, after_bad


def _batches(
    drafts: Iterable[ParsedItem | BadRow], size: _BatchSize
) -> Iterator[list[ParsedItem | BadRow]]:
    batch: list[ParsedItem | BadRow] = []
    written = 0
    for draft in drafts:
        batch.append(draft)
        # This also computes the digest, so that no transaction has to wait for it.
        written += draft.size if isinstance(draft, ParsedItem) and draft.digest else 0
        if len(batch) >= size.rows or written >= BATCH_BYTES:
            yield batch
            batch, written = [], 0
    if batch:
        yield batch


def _dry_run_entries(
    drafts: list[ParsedItem], imagined: dict[str, DryRunItem]
) -> dict[str, ComparedItem]:
    """Return the entries of the dry run for the keys of the drafts and the keys that these refer
    to."""
    return {key: imagined[key] for key in collect_keys(drafts) & imagined.keys()}


def _lock(project: Project) -> None:
    """Lock the project, and load the settings that slots depend on.

    Imports take turns, so that two imports never choose the same position or key. Raises
    `Stale` if the categories, by which the rows were parsed, are no longer the project's.
    """
    if assignment.lock_settings(project).taxonomy_id != project.taxonomy_id:
        raise Stale(CHANGED_CATEGORIES)


def _insert(
    project: Project, drafts: list[ParsedItem], *, accept: bool, places: bool, by_text: bool
) -> None:
    if not drafts:
        return
    if project.order == work_order.FIELD:
        project_settings.enqueue_job(project, None, timezone.now(), {"order"})
    last = Item.objects.filter(project=project).aggregate(last=Max("position"))["last"] or 0
    positions = range(last + 1, last + 1 + len(drafts))
    ids = bulk.reserve_ids(Item, len(drafts)), bulk.reserve_ids(Revision, len(drafts))
    entries = list(map(_Entry, drafts, positions, *ids))
    bulk.copy(Item, _items(project, entries, by_text=by_text))
    bulk.copy(Revision, [_revision(entry) for entry in entries])
    unknown = [entry for entry in entries if not entry.draft.known]
    found = [_known_resolution(entry) for entry in entries if entry.draft.known]
    taken = [entry for entry in unknown if accept and _is_decided(entry)]
    found += [_accepted_resolution(entry) for entry in taken]
    for resolution in found:
        resolution.taxonomy_id = project.taxonomy_id
        resolution.task_type_id = project.task_type_id
    Resolution.objects.bulk_create(found)
    left = [entry for entry in unknown if not (accept and _is_decided(entry))]
    if left and places:
        working = (entry for entry in left if not entry.draft.repeats)
        bulk.copy(Slot, [slot for entry in working for slot in _slots(project, entry)])


def _items(project: Project, entries: list["_Entry"], *, by_text: bool) -> list[dict[str, Any]]:
    others = _linked_ids(project, entries)
    return [
        {
            "id": entry.item,
            "project_id": project.pk,
            "key": entry.draft.key,
            "position": entry.position,
            "category": entry.draft.category,
            "ability": entry.draft.ability,
            "source_ability": entry.draft.source_ability,
            "cluster": entry.draft.own_cluster
            if entry.draft.is_alone and not by_text
            else entry.draft.cluster,
            "origin": entry.draft.origin,
            "purpose": entry.draft.purpose,
            "revision_number": _number(entry),
            "duplicate_of_id": others.get(entry.draft.repeats),
            "parent_id": others.get(entry.draft.parent),
            "dose": entry.draft.dose,
            "fields": entry.draft.written_fields,
            "flags": json.dumps(entry.draft.flags) if entry.draft.flags else "[]",
        }
        for entry in entries
    ]


def _linked_ids(project: Project, entries: list["_Entry"]) -> dict[str, int]:
    """Return the ids of the originals and parents of these items, by key. These were imported
    earlier or are in the same batch."""
    named = {key for entry in entries for key in (entry.draft.repeats, entry.draft.parent)}
    keys = named - {""}
    if not keys:
        return {}
    found = Item.objects.filter(project=project, key__among=keys).values_list("key", "pk")
    return dict(found) | {entry.draft.key: entry.item for entry in entries}


def _revision(entry: "_Entry") -> dict[str, Any]:
    return {
        "id": entry.revision,
        "item_id": entry.item,
        "number": _number(entry),
        "texts": entry.draft.written,
        "digest": entry.draft.digest,
    }


def _number(entry: "_Entry") -> int:
    return entry.draft.was.revision if entry.draft.was else 1


def _is_decided(entry: "_Entry") -> bool:
    """True if the draft has a final label; an exported item may have had none, and a category of
    which a change may cost points or nothing has none."""
    if entry.draft.was:
        return entry.draft.was.held is not None
    return entry.draft.effect != "either"


def _slots(project: Project, entry: "_Entry") -> Iterator[dict[str, Any]]:
    if not tasktypes.load_version(project.task_type).is_ready(entry.draft.texts):
        return  # it waits for a text and gets its slots together with it
    position = work_order.queue_position(project, entry.position)
    for number, reason in assignment.slot_numbers(project, entry.draft.key):
        yield {
            "project_id": project.pk,
            "item_id": entry.item,
            "number": number,
            "position": position,
            "reason": reason,
        }


def _known_resolution(entry: "_Entry") -> Resolution:
    assert entry.draft.known
    revision = Revision(pk=entry.revision, item=Item(pk=entry.item))
    return known_answers.build_resolution(revision, entry.draft.known, None, timezone.now())


def _accepted_resolution(entry: "_Entry") -> Resolution:
    if entry.draft.was and entry.draft.was.held:
        held = asdict(entry.draft.was.held)
        return Resolution(item_id=entry.item, revision_id=entry.revision, **held)
    by_category = correct_answers.CorrectAnswer(
        SI_ITEM if entry.draft.effect == "none" else ERROR_ITEM, {}, ""
    )
    said = entry.draft.decided or by_category
    return Resolution(
        item_id=entry.item,
        revision_id=entry.revision,
        value=said.value,
        values=said.values,
        comment=said.explanation,
        rule="accepted at import",
        source=Resolution.Source.IMPORTED,
    )


def _record(
    project: Project, report: ItemImportReport, accept: bool, member: Membership | None
) -> None:
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
        off_scale=len(report.off_scale),
    )
