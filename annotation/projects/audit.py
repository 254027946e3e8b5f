"""The audit log: searching events, describing them in words, and recording account changes."""

import base64
import binascii
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from annotation.errors import Refused
from annotation.labelling.models.slots import FORMER_STAGES
from annotation.models import Account, Event, Item, Project
from annotation.projects import event_types
from annotation.projects.models import EventQuerySet

PAGE_SIZE = 50
NO_MEMBER = "command or rule"
# Kinds of events that show what people or rules said about an item.
ITEM_EVENT_KINDS = ("label", "undo", "resolution", "known", "mend gold", "correct")
_STATES = {True: "active", False: "suspended"}


@dataclass(frozen=True)
class AuditSearch:
    """Search criteria; empty ones match everything. `first` and `last` are days in UTC, and both
    days are included."""

    kind: str = ""
    person: str = ""
    subject: str = ""
    first: date | None = None
    last: date | None = None


@dataclass(frozen=True)
class AuditChange:
    """A changed value, in words; `old` is "" for a detail that has no earlier value."""

    name: str
    old: str
    new: str


@dataclass(frozen=True)
class AuditEntry:
    """An event described in words."""

    event: Event
    who: str
    kind: str
    changes: tuple[AuditChange, ...]


@dataclass(frozen=True)
class AuditPage:
    """A page of events, the latest first. `older` is the cursor of the next page, "" on the last
    page."""

    entries: tuple[AuditEntry, ...]
    older: str


def search_events(project: Project | None, asked: AuditSearch) -> EventQuerySet:
    """Return the events of a project, the latest first. If the project is None, return the events
    that belong to no project."""
    found = Event.objects.in_project(project).on_days(asked.first, asked.last)
    found = found.filter(kind=asked.kind) if asked.kind else found
    found = found.about(asked.subject) if asked.subject else found
    return found.done_by(asked.person) if asked.person else found


def load_page(found: EventQuerySet, after: str = "", size: int = PAGE_SIZE) -> AuditPage:
    """Load the first page of these events, or the page after the cursor of an earlier page.

    Raises `Refused` for an invalid cursor.
    """
    rows = (found.before(*_parse_cursor(after)) if after else found).first_of(size + 1)
    more = len(rows) > size
    return AuditPage(
        entries=tuple(describe_event(event) for event in rows[:size]),
        older=_make_cursor(rows[size - 1]) if more else "",
    )


def describe_event(event: Event) -> AuditEntry:
    """Describe the event in words for the audit page, with its actor, title and changes."""
    return AuditEntry(
        event,
        event_actor(event),
        event_types.event_title(event.kind),
        tuple(describe_changes(event)),
    )


def event_actor(event: Event) -> str:
    """Return the alias of the member, the user name of a site admin, or `NO_MEMBER`."""
    if event.member:
        return event.member.alias
    return event.account.get_username() if event.account else NO_MEMBER


def describe_changes(event: Event) -> Iterable[AuditChange]:
    """List the changed values with old and new, then the other details of the event."""
    old, new = event.old, event.new
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            gone = name not in new and bool(new or old)
            after = "nothing" if gone else _describe_value(name, new.get(name))
            before = _describe_value(name, old[name]) if name in old else ""
            yield AuditChange(_title(name), before, after)
    for name, value in event.more.items():
        if value not in (None, "", [], {}):
            yield AuditChange(_title(name), "", _describe_value(name, value))


def event_items(events: Iterable[Event], project: Project) -> list[int]:
    """Return the ids of the items for which these events show a label or an answer."""
    keys = {event.subject for event in events if event.kind in ITEM_EVENT_KINDS}
    found = Item.objects.in_project(project).filter(key__in=keys)
    return list(found.values_list("pk", flat=True)) if keys else []


def record_account_change(
    account: Account,
    by: Account | None,
    *,
    old: dict[str, Any] | None = None,
    new: dict[str, Any] | None = None,
) -> None:
    """Record a change of an account in the audit log, which names the account only by its id."""
    if (old or {}) != (new or {}):
        by_id = by.pk if by else None
        Event.of_site("account", account_label(account), by_id, old=old or {}, new=new or {})


def account_label(account: Account) -> str:
    """Return the subject of events about an account: its id, since events contain no names."""
    return f"account {account.pk}"


def _title(name: str) -> str:
    return "state" if name == "active" else name.replace("_", " ").replace("-", " ")


def _describe_value(name: str, value: Any) -> str:
    """Describe a value in words. Stored events keep their original words; only stages are renamed
    here."""
    if name == "stage" and isinstance(value, str):
        value = FORMER_STAGES.get(value, value)
    if isinstance(value, bool):
        return _STATES[value] if name == "active" else ("yes" if value else "no")
    if isinstance(value, dict):
        value = "; ".join(
            f"{_title(key)}: {_describe_value(key, one)}" for key, one in value.items()
        )
    if isinstance(value, list):
        value = ", ".join(_describe_value("", one) for one in value)
    return "nothing" if value in ("", None) else str(value)


def _make_cursor(event: Event) -> str:
    said = json.dumps([event.created_at.isoformat(), event.pk])
    return base64.urlsafe_b64encode(said.encode()).decode().rstrip("=")


def _parse_cursor(cursor: str) -> tuple[datetime, int]:
    try:
        said = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        at, number = json.loads(said)
        place = datetime.fromisoformat(at).astimezone(UTC), int(number)
    except (binascii.Error, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise Refused("There is no such page. Start with the newest events.") from error
    if not 0 <= place[1] < 2**63:
        raise Refused("There is no such page. Start with the newest events.")
    return place
