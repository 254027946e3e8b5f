"""Items into a project, in small transactions.

Idempotent by item key: the same row again is nothing new; other texts, or anything else said
otherwise, are a reported conflict and never an overwrite.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from django.db.models import Max
from django.utils import timezone

from annotation import answers, assigning, tasktypes, writing
from annotation import known as known_answers
from annotation.importing.comparing import Known, Report, known_of, sort_out
from annotation.importing.drafts import Draft
from annotation.models import (
    Event,
    Item,
    Membership,
    Project,
    Resolution,
    Revision,
    Slot,
    texts_digest,
)
from annotation.querysets import ERROR_ITEM, SI_ITEM
from formats.rows import BadRow

# Small enough that a batch commits well within 200 ms, so that people can label meanwhile.
BATCH = 50


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
    imagined: dict[str, Known] = {}
    while batch := list(islice(stream, BATCH)):
        report.bad += [draft for draft in batch if isinstance(draft, BadRow)]
        good = [draft for draft in batch if isinstance(draft, Draft)]
        if project is None or dry_run:
            imagined = known_of(project, good) | imagined
            sort_out(good, imagined, report)
            continue
        with writing.transact():
            _lock(project)
            _insert(project, sort_out(good, known_of(project, good), report), accept=accept)
    if project and not dry_run:
        _record(project, report, accept, member)
    return report


def _lock(project: Project) -> None:
    # Two imports take turns, and neither can choose a position or a key that the other takes.
    Project.objects.select_for_update(no_key=True).only("pk").get(pk=project.pk)


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
        Resolution.objects.bulk_create(_accepted(revision, draft) for revision, draft in unknown)
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


def _accepted(revision: Revision, draft: Draft) -> Resolution:
    by_category = answers.Answer(SI_ITEM if draft.effect == "none" else ERROR_ITEM, {}, "")
    said = draft.decided or by_category
    return Resolution(
        item=revision.item,
        revision=revision,
        value=said.value,
        values=said.values,
        comment=said.explanation,
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
