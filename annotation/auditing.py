"""What is on record of who changed what: put into words, searched, and noted of accounts."""

import base64
import binascii
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from annotation import happenings
from annotation.errors import Refused
from annotation.models import Account, Event, Item, Project
from annotation.querysets import EventQuerySet

A_PAGE = 50
NOBODY = "command or rule"
# Kinds whose subject is an item, and which tell what people or rules said of it.
OF_ITEMS = ("label", "undo", "resolution", "known", "mend gold", "correct")
_STATES = {True: "active", False: "suspended"}


@dataclass(frozen=True)
class Asked:
    """What is looked for; what is empty narrows nothing. Days are of UTC, both included."""

    kind: str = ""
    person: str = ""
    subject: str = ""
    first: date | None = None
    last: date | None = None


@dataclass(frozen=True)
class Change:
    """One thing that was changed, in words; without `old` it is only told."""

    name: str
    old: str
    new: str


@dataclass(frozen=True)
class Entry:
    """An event in words."""

    event: Event
    who: str
    kind: str
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Page:
    """Some events, the last first, and where those before them begin; "" at the end."""

    entries: tuple[Entry, ...]
    older: str


def search(project: Project | None, asked: Asked) -> EventQuerySet:
    """The events of a project, or with None of what belongs to no project, the last first."""
    found = Event.objects.in_project(project).on_days(asked.first, asked.last)
    found = found.filter(kind=asked.kind) if asked.kind else found
    found = found.about(asked.subject) if asked.subject else found
    return found.by(asked.person) if asked.person else found


def page(found: EventQuerySet, after: str = "", size: int = A_PAGE) -> Page:
    """The first of these, or those that follow where an earlier page ended.

    Raises Refused for a place that no page gave.
    """
    rows = (found.before(*_place(after)) if after else found).first_of(size + 1)
    more = len(rows) > size
    return Page(
        entries=tuple(entry(event) for event in rows[:size]),
        older=_cursor(rows[size - 1]) if more else "",
    )


def entry(event: Event) -> Entry:
    return Entry(event, who(event), happenings.words(event.kind), tuple(told(event)))


def who(event: Event) -> str:
    """The member, the account of a site admin, or that it was no person."""
    if event.member:
        return event.member.alias
    return event.account.get_username() if event.account else NOBODY


def told(event: Event) -> Iterable[Change]:
    """What was changed from what to what, then what else is known of it."""
    old, new = event.old, event.new
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            gone = name not in new and bool(new or old)
            after = "nothing" if gone else _plain(name, new.get(name))
            before = _plain(name, old[name]) if name in old else ""
            yield Change(_title(name), before, after)
    for name, value in event.more.items():
        if value not in (None, "", [], {}):
            yield Change(_title(name), "", _plain(name, value))


def items_of(events: Iterable[Event], project: Project) -> list[int]:
    """The ids of the items of which these events tell what was said."""
    keys = {event.subject for event in events if event.kind in OF_ITEMS}
    found = Item.objects.in_project(project).filter(key__in=keys)
    return list(found.values_list("pk", flat=True)) if keys else []


def note_account(
    account: Account,
    by: Account | None,
    *,
    old: dict[str, Any] | None = None,
    new: dict[str, Any] | None = None,
) -> None:
    """Put into the audit what was done to an account, which is named by its number alone."""
    if (old or {}) != (new or {}):
        by_id = by.pk if by else None
        Event.of_site("account", name_of(account), by_id, old=old or {}, new=new or {})


def name_of(account: Account) -> str:
    return f"account {account.pk}"


def _title(name: str) -> str:
    return "state" if name == "active" else name.replace("_", " ").replace("-", " ")


def _plain(name: str, value: Any) -> str:
    """A value in words."""
    if isinstance(value, bool):
        return _STATES[value] if name == "active" else ("yes" if value else "no")
    if isinstance(value, dict):
        value = "; ".join(f"{_title(key)}: {_plain(key, one)}" for key, one in value.items())
    if isinstance(value, list):
        value = ", ".join(_plain("", one) for one in value)
    return "nothing" if value in ("", None) else str(value)


def _cursor(event: Event) -> str:
    said = json.dumps([event.created_at.isoformat(), event.pk])
    return base64.urlsafe_b64encode(said.encode()).decode().rstrip("=")


def _place(cursor: str) -> tuple[datetime, int]:
    try:
        said = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        at, number = json.loads(said)
        place = datetime.fromisoformat(at), int(number)
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        raise Refused("No page ends here. Begin with the newest.") from error
    if place[0].tzinfo is None or not 0 <= place[1] < 2**63:
        raise Refused("No page ends here. Begin with the newest.")
    return place
