"""What annotators are told: versions, of which labels name the one they were made under."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from annotation.db import transactions
from annotation.errors import Refused, Stale
from annotation.items.diffing import difference as diffing_difference
from annotation.models import Event, GuidelinesVersion, Item, Membership, Project

MAX_LENGTH = 200_000


@dataclass(frozen=True)
class ItemGuidelines:
    """What is told of one item: the text for every item, and that for its kind, if there is one."""

    version: GuidelinesVersion
    text: str
    kind: str
    variant: str


@dataclass(frozen=True)
class GuidelinesChange:
    """A part of the guidelines that differs between two versions; `kind` is empty for the text
    that holds of every item."""

    kind: str
    difference: diffing_difference.Difference


def current_version(project: Project) -> GuidelinesVersion | None:
    """The last version, or None as long as there is none."""
    return project.guidelines.last()


def for_item(version: GuidelinesVersion, project: Project, item: Item) -> ItemGuidelines:
    """What a version tells of an item, by the project's field for guidelines."""
    kind = _variant_value(project, item)
    return ItemGuidelines(version, version.text, kind, version.variants.get(kind, ""))


def publish(
    project: Project,
    text: str,
    variants: Mapping[str, str],
    note: str,
    author: Membership | None,
    *,
    base: int | None = None,
    now: datetime | None = None,
) -> GuidelinesVersion:
    """The next version, announced to all who label but its author; what stands already stays the
    version it is.

    Variants without a text are left out. Raises `Refused` for guidelines that say nothing, and
    `Stale` if the last version is not `base`, the number of the one that this was written from.
    """
    text = _tidy(text)
    variants = {kind: _tidy(said) for kind, said in variants.items() if said.strip()}
    _check(text, variants)
    with transactions.transact():
        # Two leads who publish at once take turns, and each gets a number of their own.
        Project.objects.select_for_update(no_key=True).only("pk").get(pk=project.pk)
        last = current_version(project)
        if base is not None and base != (last.number if last else 0):
            raise Stale("Somebody published another version. Read it, then publish again.")
        if last and (last.text, last.variants) == (text, variants):
            return last
        version = GuidelinesVersion.objects.create(
            project=project,
            number=last.number + 1 if last else 1,
            text=text,
            variants=variants,
            note=note.strip(),
            author=author,
            created_at=now or timezone.now(),
        )
        _record(version, author)
        if author:
            acknowledge(author, version.number)
    return version


def unseen_version(member: Membership) -> GuidelinesVersion | None:
    """The version that the member has still to acknowledge; None for who does not label."""
    if not member.can_label:
        return None
    version = current_version(member.project)
    return version if version and version.number > member.guidelines_seen else None


def acknowledge(member: Membership, number: int) -> None:
    """Keep that the member has read the guidelines up to this number; never turns back."""
    there = member.project.guidelines.filter(number=number).exists()
    if there and number > member.guidelines_seen:
        member.guidelines_seen = number
        member.save(update_fields=["guidelines_seen"])


def list_changes(older: GuidelinesVersion, newer: GuidelinesVersion) -> list[GuidelinesChange]:
    """What differs between two versions, the text for every item first, then kind by kind."""
    before, after = ({"": one.text} | one.variants for one in (older, newer))
    kinds = sorted(set(before) | set(after))
    pairs = [(kind, before.get(kind, ""), after.get(kind, "")) for kind in kinds]
    return [
        GuidelinesChange(kind, diffing_difference.compare(old, new))
        for kind, old, new in pairs
        if old != new
    ]


def variant_values(project: Project) -> list[str]:
    """The values of the project's field for guidelines that its items have, sorted."""
    if not project.guidelines_field:
        return []
    return Item.objects.in_project(project).values_of(project.guidelines_field)


def _check(text: str, variants: Mapping[str, str]) -> None:
    if not text.strip() and not variants:
        raise Refused("The guidelines are empty. Write some text, then publish.")
    if max(map(len, [text, *variants.values()])) > MAX_LENGTH:
        raise Refused(f"A text of the guidelines can have {MAX_LENGTH:,} characters at most.")


def _variant_value(project: Project, item: Item) -> str:
    value = item.value_of(project.guidelines_field)
    return "" if value is None else str(value)


def _tidy(text: str) -> str:
    # A browser sends every line break as CR LF, and a diff would take every line for changed.
    return text.replace("\r\n", "\n").strip("\n")


def _record(version: GuidelinesVersion, author: Membership | None) -> None:
    Event.record(
        "guidelines",
        version.project.slug,
        project_id=version.project_id,
        member_id=author.pk if author else None,
        number=version.number,
        note=version.note,
    )
