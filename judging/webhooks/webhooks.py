"""What leads do with webhooks: add, change, switch on and off, test, send again, delete."""

import uuid
from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse

from annotation.db import transactions
from annotation.errors import FieldError, Refused
from annotation.models import Event, Membership, Project
from judging.evaluators.providers.addresses import check_address
from judging.evaluators.providers.errors import ForbiddenAddress
from judging.models import Delivery, Webhook
from judging.webhooks import signing
from judging.webhooks.topics import PING, TOPICS, Message, build_message

HOSTS_SETTING = "WEBHOOK_HOSTS"
MAX_WEBHOOKS = 10
MAX_ADDRESS = 500
NOT_SENT = "The webhook was switched off before this was sent."
_SWITCHED_OFF = "This webhook is off. Switch it on first."


def check_webhook(address: str, topics: Collection[str]) -> tuple[str, str]:
    """Return the address and the topics as they are stored. Raises `FieldError`."""
    address = address.strip()
    if len(address) > MAX_ADDRESS:
        raise FieldError(f"Enter an address of at most {MAX_ADDRESS} characters.", "address")
    if "@" in address.partition("://")[2].partition("/")[0]:
        raise FieldError(
            "The address contains a user name or password. Remove it: the receiver checks the "
            "signature instead.",
            "address",
        )
    try:
        check_address(address, settings.WEBHOOK_HOSTS, HOSTS_SETTING)
    except ForbiddenAddress as error:
        raise FieldError(str(error), "address") from None
    chosen = [name for name in TOPICS if name in topics]
    if not chosen or len(chosen) != len(set(topics)):
        raise FieldError(f"Choose at least one of {', '.join(TOPICS)}.", "topics")
    return address, " ".join(chosen)


def get_webhook(lead: Membership, number: int) -> Webhook:
    """Return a webhook of the lead's project. Raises `Http404`."""
    found = Webhook.objects.in_project(lead.project).select_related("project")
    return get_object_or_404(found, pk=number)


def get_delivery(webhook: Webhook, uid: uuid.UUID) -> QuerySet[Delivery]:
    """Return a queryset of one delivery of the webhook. Raises `Http404` if there is none."""
    return Delivery.objects.filter(pk=get_object_or_404(webhook.deliveries, uid=uid).pk)


def create_webhook(
    lead: Membership, address: str, topics: Collection[str], *, now: datetime
) -> Webhook:
    """Create a webhook that is told of what happens from now on. Raises `FieldError`, and `Refused`
    if the project has the most webhooks already."""
    address, said = check_webhook(address, topics)
    with transactions.transact():
        Project.objects.select_for_update(no_key=True, of=("self",)).get(pk=lead.project_id)
        if Webhook.objects.in_project(lead.project).count() >= MAX_WEBHOOKS:
            raise Refused(f"A project has at most {MAX_WEBHOOKS} webhooks. Delete one first.")
        made = Webhook.objects.create(
            project=lead.project,
            member=lead,
            address=address,
            topics=said,
            nonce=signing.generate_nonce(),
            created_at=now,
            read_from=now,
            read_until=now,
        )
        _record(made, lead, {}, _values(made))
    return made


def change_webhook(
    webhook: Webhook,
    lead: Membership,
    *,
    address: str | None = None,
    topics: Collection[str] | None = None,
    active: bool | None = None,
    now: datetime,
) -> None:
    """Change what is given: the address, the topics, or whether the webhook is on. Raises
    `FieldError`.

    What happened while it was off is not sent. What waits when it is switched off has failed, and
    can be sent again later.
    """
    with transactions.transact():
        held = Webhook.objects.select_for_update(of=("self",)).get(pk=webhook.pk)
        old, changed = _values(held), dict[str, Any]()
        # Who only switches it off may do so although its address is no longer allowed.
        if address is not None or topics is not None:
            given = held.address if address is None else address
            checked = check_webhook(given, held.topic_list if topics is None else topics)
            changed |= dict(zip(("address", "topics"), checked, strict=True))
        if active is not None:
            changed["active"] = active
        switched = changed.get("active", held.active) != held.active
        if switched and active:
            changed |= {"read_from": now, "read_until": now, "off_reason": ""}
        if switched or changed.get("address", held.address) != held.address:
            changed |= {"wait_until": None, "failures": 0, "failing_since": None}
        Webhook.objects.filter(pk=held.pk).update(**changed)
        if switched and not active:
            fail_waiting(held, now)
        webhook.refresh_from_db(fields=[*changed])
        _record(webhook, lead, old, _values(webhook))


def switch_off(webhook: Webhook, reason: str, *, now: datetime) -> None:
    """Switch a webhook off by itself, for a reason that its page shows."""
    with transactions.transact():
        found = Webhook.objects.filter(pk=webhook.pk, active=True)
        if found.update(active=False, off_reason=reason):
            fail_waiting(webhook, now)
            _record(webhook, None, {"active": True}, {"active": False}, reason=reason)


def fail_waiting(webhook: Webhook, now: datetime) -> None:
    """Note that what waits for being sent will not be sent by itself."""
    values: dict[str, Any] = {"state": Delivery.State.FAILED, "next_try_at": None}
    webhook.deliveries.waiting().update(finished_at=now, problem=NOT_SENT, **values)


def renew_secret(webhook: Webhook, lead: Membership) -> str:
    """Give the webhook a new secret, which holds at once, and return it."""
    with transactions.transact():
        webhook.nonce = signing.generate_nonce()
        Webhook.objects.filter(pk=webhook.pk).update(nonce=webhook.nonce)
        Event.record(
            "webhook secret", webhook.label, project_id=webhook.project_id, member_id=lead.pk
        )
    return signing.derive_secret(webhook.nonce)


def delete_webhook(webhook: Webhook, lead: Membership) -> None:
    """Delete a webhook with its deliveries."""
    with transactions.transact():
        old, label = _values(webhook), webhook.label
        webhook.delete()
        place = {"project_id": webhook.project_id, "member_id": lead.pk}
        Event.record("webhook deleted", label, old=old, new={}, **place)


def send_ping(webhook: Webhook, *, now: datetime) -> Delivery:
    """Let a worker send a message that only tests the webhook. Raises `Refused` while it is off."""
    url = reverse("webhook", args=[webhook.project.slug, webhook.pk])
    with transactions.transact():
        _end_waiting(webhook)
        made = build_message(f"{PING} {uuid.uuid4()}", PING, now, webhook.project, url=url)
        return store_messages(webhook, [made], now=now)[0]


def send_again(webhook: Webhook, found: QuerySet[Delivery], *, now: datetime) -> int:
    """Let a worker send these finished deliveries again, with the same id and body; return their
    number. Raises `Refused` while the webhook is off."""
    with transactions.transact():
        _end_waiting(webhook)
        finished = found.exclude(state=Delivery.State.WAITING)
        values: dict[str, Any] = {"state": Delivery.State.WAITING, "finished_at": None}
        return finished.update(tries=0, next_try_at=now, **values)


def store_messages(webhook: Webhook, messages: list[Message], *, now: datetime) -> list[Delivery]:
    """Store messages for being sent now, leaving out those that have a delivery already."""
    return Delivery.objects.bulk_create(
        (
            Delivery(
                webhook=webhook,
                source=one.source,
                type=one.type,
                body=one.body,
                next_try_at=now,
                created_at=now,
            )
            for one in messages
        ),
        ignore_conflicts=True,
    )


def _end_waiting(webhook: Webhook) -> None:
    """Let the webhook be called at once, since a person asks for it. Raises `Refused` while it is
    off."""
    if not Webhook.objects.filter(pk=webhook.pk, active=True).update(wait_until=None):
        raise Refused(_SWITCHED_OFF)


def _values(webhook: Webhook) -> dict[str, Any]:
    """What the audit log keeps of a webhook."""
    topics = webhook.topic_list
    return {"address": webhook.address, "topics": topics, "active": webhook.active}


def _record(
    webhook: Webhook, lead: Membership | None, old: dict[str, Any], new: dict[str, Any], **more: Any
) -> None:
    if old != new:
        place: dict[str, Any] = {"project_id": webhook.project_id}
        place["member_id"] = lead.pk if lead else None
        Event.record("webhook", webhook.label, old=old, new=new, **place, **more)
