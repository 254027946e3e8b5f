"""Idempotent requests: a request that is sent again with the same key is executed only once.

The sender chooses the key.
"""

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import wraps
from hashlib import sha256
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.db import IntegrityError
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.db import transactions
from annotation.errors import Refused, Stale
from annotation.models import Account, Repeatable
from annotation.projects import access

# During this time, a repeated request gets the first response.
RETENTION = timedelta(days=1)
# After this time, the process that handled the request is assumed to be gone.
TAKEOVER_AFTER = timedelta(minutes=5)


def begin_request(account: Account, key: str, asked: str, *, now: datetime) -> Repeatable:
    """Find or store the request with this key; the request has no status if it must be executed
    now.

    Raises `Refused` if the key was used for another request before, and `Stale` if the first
    request is still being processed.
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
    """Store the response."""
    request.status, request.body = status, body
    with transactions.transact():
        request.save(update_fields=["status", "body"])


def delete_request(request: Repeatable) -> None:
    """Delete a request that was not executed, so that its key can be used again."""
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
    """Take over a request whose process is gone; return False if the process still runs or another
    process took over."""
    if known.created_at > now - TAKEOVER_AFTER:
        return False
    rows = Repeatable.objects.filter(pk=known.pk, status=None, created_at=known.created_at)
    with transactions.transact():
        return bool(rows.update(created_at=now))


KEY_HEADER = "Idempotency-Key"
KEY_PARAMETER = OpenApiParameter(
    KEY_HEADER,
    location=OpenApiParameter.HEADER,
    description=(
        "A string that you choose. If you repeat a request with the same key within a day, it is "
        "not executed again: you get the first response, marked `Idempotency-Replayed: true`."
    ),
)
ApiView = Callable[..., Response]


def make_idempotent(right: str) -> Callable[[ApiView], ApiView]:
    """Decorate a view so that a POST is executed once for each `Idempotency-Key` of an account. A
    repeated request gets the stored response only if the account still has `right`."""

    def decorated(view: ApiView) -> ApiView:
        @wraps(view)
        def answered(*given: Any, slug: str, **named: Any) -> Response:
            request: Request = given[-1]
            if request.method != "POST" or KEY_HEADER not in request.headers:
                return view(*given, slug=slug, **named)
            access.member_for(request, slug, right=right)
            begun = _begin_request(request)
            if begun.status is not None:
                headers = {"Idempotency-Replayed": "true"}
                return Response(json.loads(begun.body), begun.status, headers=headers)
            return _run_request(begun, lambda: view(*given, slug=slug, **named))

        return answered

    return decorated


def _begin_request(request: Request) -> Repeatable:
    account: Any = request.user
    assert isinstance(account, Account)
    key = request.headers[KEY_HEADER].encode("utf-8", "surrogateescape")
    asked = sha256(request.get_full_path().encode() + b"\n")
    for part in _request_parts(request):
        asked.update(part)
    digests = (sha256(key).hexdigest(), asked.hexdigest())
    return begin_request(account, *digests, now=timezone.now())


def _request_parts(request: Request) -> Iterator[bytes]:
    """Read the body in chunks. A multipart form is read value by value, since files may be
    large."""
    if not (request.content_type or "").startswith("multipart/"):
        yield request._request.body
        return
    form: Any = request.data
    for name, values in sorted(form.lists()):
        for value in values:
            sent = isinstance(value, UploadedFile)
            yield json.dumps([name, value.name if sent else value]).encode() + b"\n"
            yield from value.chunks() if sent else ()


def _run_request(begun: Repeatable, do: Callable[[], Response]) -> Response:
    try:
        answer = do()
    except Exception:
        delete_request(begun)
        raise
    store_answer(begun, answer.status_code, JSONRenderer().render(answer.data).decode())
    return answer
