"""Requests that may come twice and shall be done once: by a key that their sender makes up."""

from datetime import datetime, timedelta

from django.db import IntegrityError

from annotation.db import transactions
from annotation.errors import Refused, Stale
from annotation.models import Account, Repeatable

# So long a repeat gets the first answer.
RETENTION = timedelta(days=1)
# After this long, who was to answer is taken to be gone.
TAKEOVER_AFTER = timedelta(minutes=5)


def begin_request(account: Account, key: str, asked: str, *, now: datetime) -> Repeatable:
    """The request of this key: new, without a status, if it is to be done now.

    Raises `Refused` if the key came with another request before, and `Stale` if the first one is
    being answered at this moment.
    """
    with transactions.transact():
        Repeatable.objects.filter(created_at__lt=now - RETENTION).delete()
    try:
        with transactions.transact():
            return Repeatable.objects.create(account=account, key=key, asked=asked, created_at=now)
    except IntegrityError:
        return _check_repeat(
            Repeatable.objects.filter(account=account, key=key).first(), asked, now
        )


def store_answer(request: Repeatable, status: int, body: str) -> None:
    """Keep what was answered."""
    request.status, request.body = status, body
    with transactions.transact():
        request.save(update_fields=["status", "body"])


def delete_request(request: Repeatable) -> None:
    """Nothing was done, so that the same key may be tried again."""
    with transactions.transact():
        request.delete()


def _check_repeat(known: Repeatable | None, asked: str, now: datetime) -> Repeatable:
    if known is None:
        raise Stale("The request with this key has just been cancelled. Send it again.")
    if known.asked != asked:
        raise Refused("This Idempotency-Key was already used for another request. Use a new one.")
    if known.status is None and not _take_over_request(known, now):
        raise Stale("The request with this key is still being processed. Try again in a moment.")
    return known


def _take_over_request(known: Repeatable, now: datetime) -> bool:
    """Whether its answerer is gone, and this one is the first to notice."""
    if known.created_at > now - TAKEOVER_AFTER:
        return False
    rows = Repeatable.objects.filter(pk=known.pk, status=None, created_at=known.created_at)
    with transactions.transact():
        return bool(rows.update(created_at=now))
