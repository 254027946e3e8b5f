"""The workers' side of webhooks: find what happened, send it, and store the answers.

Every message is sent at least once. A worker that is killed between an answer and its storing sends
the message again, with the same id.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import Exists, OuterRef, Q

from annotation.db import clock, sql, transactions
from judging.evaluators.providers.answers import Target
from judging.evaluators.providers.errors import EvaluatorError
from judging.evaluators.retries import parse_retry_after
from judging.models import Delivery, Webhook
from judging.webhooks import signing
from judging.webhooks.models import LEASE_DURATION
from judging.webhooks.topics import TOPICS, find_new
from judging.webhooks.webhooks import HOSTS_SETTING, store_messages, switch_off

if TYPE_CHECKING:
    import aiohttp

log = logging.getLogger(__name__)

# Waiting times after the first try, the second and so on. After the last one, a message has failed.
BACKOFF = [
    timedelta(seconds=5),
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=10),
]
MAX_TRIES = len(BACKOFF) + 1
# A webhook is switched off if nothing was accepted for so long and a message has failed.
PATIENCE = timedelta(days=3)
RETENTION = timedelta(days=30)
# A transaction may commit later than one that began after it. So what was read is read again for
# LOOK_BACK, at each pass and at least every RECHECK. What committed within SETTLE is found at once.
LOOK_BACK = timedelta(hours=1)
RECHECK = timedelta(minutes=1)
SETTLE = timedelta(seconds=5)
# At most so much in one slice of a worker.
MAX_WEBHOOKS, MAX_MESSAGES, MAX_SENT = 20, 500, 200
# No new request is sent after so many seconds, and each takes at most TIMEOUT seconds.
SEND_SECONDS, TIMEOUT = 10.0, 10.0
KEPT_BYTES, KEPT_CHARACTERS = 4_096, 1_000
_GONE = 410
_ACTIVE = sql.PreparedRows(lambda: Webhook.objects.filter(active=True).values_list("pk"))


@dataclass(frozen=True)
class Attempt:
    """A try to deliver something. `status` is None if there was no answer; `problem` says why a try
    was not accepted, and is "" if it was; `pause` is how long the receiver asked us to wait."""

    delivery: Delivery
    at: datetime
    status: int | None
    answer: str
    problem: str
    seconds: float
    pause: timedelta = timedelta(0)

    @property
    def accepted(self) -> bool:
        """True if the receiver answered with a status of 200 to 299."""
        return not self.problem


def find_due(now: datetime) -> list[int]:
    """Return [0] if there is anything to collect or to send, otherwise []: one slice of a worker
    serves all webhooks. Takes one query if no webhook is switched on."""
    if not _ACTIVE.fetch():
        return []
    return [0] if _find_due_webhooks(now).exists() else []


def run_slice(
    number: int = 0,
    *,
    stopped: Callable[[], bool] = lambda: False,
    now: Callable[[], datetime] = clock.now,
) -> None:
    """Serve the due webhooks that no other worker serves: collect what happened, and send what is
    due, to all of them at a time and to each one by one. Takes at most 20 s or so."""
    leased = _take_leases(now())
    try:
        for webhook in leased:
            try:
                collect(webhook, now())
            except Exception:
                # What cannot be told of in one project must not stop the others' webhooks.
                log.exception("Collecting for %s failed; trying again.", webhook.label)
        due = {webhook: _list_to_send(webhook, now()) for webhook in leased}
        if any(due.values()) and not stopped():
            for webhook, attempts in asyncio.run(_send_all(due, stopped, now())):
                _store_attempts(webhook, attempts)
    finally:
        for webhook in leased:
            _release(webhook)


def collect(webhook: Webhook, now: datetime) -> None:
    """Store a delivery for each thing that happened since `read_until`, and delete old ones.

    The last hour before that is looked through again, since a transaction may commit later than one
    that began after it, and machines' clocks differ; what has a delivery already is left out. What
    commits more than an hour late is missed.
    """
    since = max(webhook.read_from, webhook.read_until - LOOK_BACK)
    until, found = now - SETTLE, []
    for name in webhook.topic_list:
        new = list(find_new(webhook, name, since, MAX_MESSAGES))
        found += new
        if len(new) == MAX_MESSAGES:  # the next pass goes on here
            until = min(until, new[-1].at - timedelta(microseconds=1))
    old = webhook.deliveries.filter(finished_at__lt=now - RETENTION)
    with transactions.transact():
        store_messages(webhook, sorted(found, key=lambda one: one.at), now=now)
        # Only forward, and not of a webhook that was switched on anew meanwhile.
        same = Webhook.objects.filter(pk=webhook.pk, read_from=webhook.read_from)
        same.filter(read_until__lt=until).update(read_until=until)
        old.delete()


def _find_due_webhooks(now: datetime) -> Any:
    """Webhooks that no worker serves, and that have something to send, or that something happened
    for since they were read, or that were not read for a minute."""
    waiting = Delivery.objects.due(now).filter(webhook=OuterRef("pk"))
    due: Any = Q(read_until__lte=now - RECHECK)
    due |= Exists(waiting) & (Q(wait_until=None) | Q(wait_until__lte=now))
    for name, topic in TOPICS.items():
        happened = topic.since(OuterRef("project"), OuterRef("read_until"))
        due |= Q(topics__contains=name) & Exists(happened)
    return Webhook.objects.at_work().free(now).filter(due)


def _take_leases(now: datetime) -> list[Webhook]:
    """Lease due webhooks, those that have waited longest first, so that no other worker serves
    them."""
    found = _find_due_webhooks(now).order_by("read_until", "pk").values_list("pk", flat=True)
    until, taken = now + LEASE_DURATION, []
    for pk in list(found[:MAX_WEBHOOKS]):
        # Taken by a condition, so that only one of two workers gets it.
        if Webhook.objects.filter(pk=pk, active=True).free(now).update(leased_until=until):
            taken.append(pk)
    rows = Webhook.objects.filter(pk__in=taken, leased_until=until).select_related("project")
    return list(rows)


def _release(webhook: Webhook) -> None:
    mine = Webhook.objects.filter(pk=webhook.pk, leased_until=webhook.leased_until)
    mine.update(leased_until=None)


def _list_to_send(webhook: Webhook, now: datetime) -> list[Delivery]:
    if webhook.wait_until and webhook.wait_until > now:
        return []
    return list(webhook.deliveries.due(now).order_by("next_try_at", "pk")[:MAX_SENT])


async def _send_all(
    due: dict[Webhook, list[Delivery]], stopped: Callable[[], bool], began: datetime
) -> list[tuple[Webhook, list[Attempt]]]:
    """Send to all webhooks at a time; return the attempts for each."""
    from judging.evaluators import http_client  # takes long, and most installations never need it

    clock_began = time.monotonic()
    ends = clock_began + SEND_SECONDS

    def over() -> bool:
        return stopped() or time.monotonic() > ends

    def moment() -> datetime:  # the database's clock cannot be asked in the event loop
        return began + timedelta(seconds=time.monotonic() - clock_began)

    # Each message has a connection of its own: receivers may be simple programs.
    hosts = settings.WEBHOOK_HOSTS
    async with http_client.connect(hosts, HOSTS_SETTING, keep_open=False) as session:
        made = await asyncio.gather(
            *(_send_in_turn(session, hook, some, over, moment) for hook, some in due.items())
        )
    return list(zip(due, made, strict=True))


async def _send_in_turn(
    session: "aiohttp.ClientSession",
    webhook: Webhook,
    deliveries: Sequence[Delivery],
    over: Callable[[], bool],
    moment: Callable[[], datetime],
) -> list[Attempt]:
    """Send one after another, until there is no answer, or the receiver is gone or asks for a
    pause."""
    made: list[Attempt] = []
    for delivery in deliveries:
        if over():
            break
        made.append(await _send(session, webhook, delivery, moment()))
        if made[-1].status in (None, _GONE) or made[-1].pause:
            break
    return made


async def _send(
    session: "aiohttp.ClientSession", webhook: Webhook, delivery: Delivery, at: datetime
) -> Attempt:
    from judging.evaluators import http_client

    body = delivery.body.encode()
    headers = signing.sign(signing.derive_secret(webhook.nonce), str(delivery.uid), body, at)
    headers |= {"User-Agent": "Blindspot", "Accept-Encoding": "identity"}
    target, began = Target(webhook.address, timeout=TIMEOUT), time.monotonic()
    status, answer, problem, pause = None, "", "", 0.0
    try:
        status, answered, content = await http_client.send(
            session, target, webhook.address, body, headers, keep=KEPT_BYTES
        )
        answer = _clean(content)
        if not 200 <= status < 300:
            problem = f"The receiver answered {status}."
            pause = parse_retry_after(answered) or 0.0
    except EvaluatorError as error:
        problem = str(error)
    except ValueError as error:  # of a name that no host can have
        problem = f"The address cannot be called: {error}"
    took = time.monotonic() - began
    return Attempt(delivery, at, status, answer, problem, took, timedelta(seconds=pause))


def _clean(content: bytes) -> str:
    """Return the start of an answer as a text that can be stored and shown."""
    text = content.decode(errors="replace")[:KEPT_CHARACTERS]
    return "".join(one if one.isprintable() or one in "\n\t" else "�" for one in text)


def _store_attempts(webhook: Webhook, attempts: Sequence[Attempt]) -> None:
    """Store what came of the attempts, and let the webhook wait or switch it off if it does not
    answer as it should."""
    if not attempts:
        return
    held, last = webhook, attempts[-1]
    for attempt in attempts:
        if attempt.accepted:
            held.failing_since = None
        else:
            held.failing_since = held.failing_since or attempt.at
    # Only the last one can be without an answer or ask for a pause: nothing is sent after it.
    answers = [one for one in attempts if one.status is not None]
    silent = last.status is None
    held.failures = (0 if answers else held.failures) + silent
    pause = _pause(held.failures) if silent else last.pause
    held.wait_until = last.at + pause if pause else None
    changed = ("failures", "failing_since", "wait_until")
    with transactions.transact():
        # Whoever changes a webhook locks it before its deliveries, too.
        now = Webhook.objects.select_for_update(of=("self",)).filter(pk=held.pk).first()
        if now is None or (now.address, now.read_from) != (held.address, held.read_from):
            # What a former address answered says nothing of the one that it has now.
            for attempt in attempts:
                if attempt.accepted:
                    _store_attempt(attempt)
            return
        for attempt in attempts:
            _store_attempt(attempt)
        Webhook.objects.filter(pk=held.pk).update(**{name: getattr(held, name) for name in changed})
        if reason := _find_reason_to_stop(held, last):
            switch_off(held, reason, now=last.at)


def _store_attempt(attempt: Attempt) -> None:
    one, tries = attempt.delivery, attempt.delivery.tries + 1
    values: dict[str, Any] = {
        "tries": tries,
        "status": attempt.status,
        "answer": attempt.answer,
        "problem": attempt.problem,
        "seconds": attempt.seconds,
    }
    found = Delivery.objects.filter(pk=one.pk)
    if attempt.accepted:
        ended = {"state": Delivery.State.DELIVERED, "next_try_at": None, "finished_at": attempt.at}
        found.update(**values, **ended)
    elif tries >= MAX_TRIES or attempt.status == _GONE:
        ended = {"state": Delivery.State.FAILED, "next_try_at": None, "finished_at": attempt.at}
        found.waiting().update(**values, **ended)
    else:  # unless the webhook was switched off meanwhile
        found.waiting().update(**values, next_try_at=attempt.at + max(_pause(tries), attempt.pause))


def _pause(tries: int) -> timedelta:
    return BACKOFF[min(tries, len(BACKOFF)) - 1]


def _find_reason_to_stop(webhook: Webhook, last: Attempt) -> str:
    """Say why a webhook is switched off; "" if it is not."""
    if last.status == _GONE:
        return "The receiver answered 410: it wants no more messages."
    since = webhook.failing_since
    if since is None or last.at - since < PATIENCE:
        return ""
    if not webhook.deliveries.failed().filter(finished_at__gte=since).exists():
        return ""
    return f"Nothing was accepted for {PATIENCE.days} days. The last problem: {last.problem}"
