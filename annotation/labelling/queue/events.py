"""What is kept on record of each step."""

from annotation.db import prepared_statements
from annotation.models import Event, Item, Membership


def build_event(kind: str, member: Membership, item: Item, **data: object) -> Event:
    who = {"project_id": item.project_id, "member_id": member.pk}
    return Event(kind=kind, subject=item.key, data=data, **who)


def record_event(kind: str, member: Membership, item: Item, **data: object) -> None:
    prepared_statements.insert_rows(build_event(kind, member, item, **data))
