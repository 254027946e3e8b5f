"""The guidelines for annotators, in versions. Each label records the version that was current."""

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
    """The guidelines for one item. `text` applies to every item. `variant` applies to items with
    the same value of the guidelines field, `kind`; it is "" if there is none."""

    version: GuidelinesVersion
    text: str
    kind: str
    variant: str


@dataclass(frozen=True)
class GuidelinesChange:
    """A part of the guidelines that differs between two versions; `kind` is "" for the text for
    every item."""

    kind: str
    difference: diffing_difference.Difference


def current_version(project: Project) -> GuidelinesVersion | None:
    """Return the latest version, or None if there is none."""
    return project.guidelines.last()


def for_item(version: GuidelinesVersion, project: Project, item: Item) -> ItemGuidelines:
    """Return the parts of a version that apply to an item, by the project's guidelines field."""
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
    """Publish the next version and notify everybody who labels, except the author. If nothing has
    changed, return the latest version.

    Variants without a text are left out. `base` is the number of the version that the author
    started from, or 0. Raises `Refused` for empty guidelines and for texts over `MAX_LENGTH`, and
    `Stale` if `base` is not the latest version and the latest has another text.
    """
    text = _tidy(text)
    variants = {kind: _tidy(said) for kind, said in variants.items() if said.strip()}
    _check(text, variants)
    with transactions.transact():
        # Two leads who publish at the same time wait for each other, so that each gets their own
        # number.
        Project.objects.select_for_update(no_key=True).only("pk").get(pk=project.pk)
        last = current_version(project)
        if last and (last.text, last.variants) == (text, variants):
            return last
        if base is not None and base != (last.number if last else 0):
            raise Stale("Somebody published another version. Read it, then publish again.")
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
    """Return the version that the member has yet to acknowledge; None for members who do not
    label."""
    if not member.can_label:
        return None
    version = current_version(member.project)
    return version if version and version.number > member.guidelines_seen else None


def acknowledge(member: Membership, number: int) -> None:
    """Record that the member has read the guidelines up to this version. The recorded number never
    decreases, and unknown versions are ignored."""
    there = member.project.guidelines.filter(number=number).exists()
    if there and number > member.guidelines_seen:
        member.guidelines_seen = number
        member.save(update_fields=["guidelines_seen"])


def list_changes(older: GuidelinesVersion, newer: GuidelinesVersion) -> list[GuidelinesChange]:
    """List the parts that differ between two versions: the text for every item, then the
    variants."""
    before, after = ({"": one.text} | one.variants for one in (older, newer))
    kinds = sorted(set(before) | set(after))
    pairs = [(kind, before.get(kind, ""), after.get(kind, "")) for kind in kinds]
    return [
        GuidelinesChange(kind, diffing_difference.compare(old, new))
        for kind, old, new in pairs
        if old != new
    ]


def variant_values(project: Project) -> list[str]:
    """Return the values of the project's guidelines field that occur in its items, sorted; [] if
    the project has no such field."""
    if not project.guidelines_field:
        return []
    return Item.objects.in_project(project).values_of(project.guidelines_field)


def _check(text: str, variants: Mapping[str, str]) -> None:
    if not text.strip() and not variants:
        raise Refused("The guidelines are empty. Write some text, then publish.")
    if max(map(len, [text, *variants.values()])) > MAX_LENGTH:
        raise Refused(f"A text of the guidelines can have at most {MAX_LENGTH:,} characters.")


def _variant_value(project: Project, item: Item) -> str:
    value = item.value_of(project.guidelines_field)
    return "" if value is None else str(value)


def _tidy(text: str) -> str:
    # Browsers send every line break as CR LF, and a diff would show every line as changed.
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
