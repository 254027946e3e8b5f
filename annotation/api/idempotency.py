"""Idempotent requests: a request that is sent again with the same key is executed only once.

The sender chooses the key. The effect of a request and the note of its response are one
transaction, so that a killed server leaves both or neither. Only what takes long is two
transactions on SQLite, where one would hold up all other writers.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import wraps
from hashlib import sha256
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.db import IntegrityError, connection
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.responses import ProblemSerializer
from annotation.db import transactions
from annotation.errors import InProgress, Refused
from annotation.models import Account, Repeatable
from annotation.projects import access

# During this time, a repeated request gets the first response.
RETENTION = timedelta(days=1)
# After this time, the process of a long request is assumed to be gone.
TAKEOVER_AFTER = timedelta(minutes=5)
# Seconds after which a request that is being executed can be sent again.
SHORT_WAIT, LONG_WAIT = 1, 5


def begin_request(
    account: Account, key: str, asked: str, *, now: datetime
) -> tuple[Repeatable, bool]:
    """Find or store the request with this key, and say whether it is new; it has no status if it
    was not executed yet. Raises `Refused` if the key was used for another request before."""
    with transactions.transact():
        Repeatable.objects.filter(created_at__lt=now - RETENTION).delete()
    try:
        with transactions.transact():
            made = Repeatable.objects.create(account=account, key=key, asked=asked, created_at=now)
            return made, True
    except IntegrityError:
        known = Repeatable.objects.filter(account=account, key=key).first()
    if known is None:
        raise InProgress("The request with this key was just refused. Send it again.", SHORT_WAIT)
    if known.asked != asked:
        raise Refused("This Idempotency-Key was already used for another request. Use a new one.")
    return known, False


@contextmanager
def execute_once(begun: Repeatable) -> Iterator[Repeatable]:
    """A transaction with the request, locked; its status is set if it was executed meanwhile.

    Raises `InProgress` if another process is executing the request now. A request whose process was
    killed is not locked any more, and nothing of it is stored.
    """
    with transactions.transact():
        rows = Repeatable.objects.select_for_update(no_key=True, skip_locked=True)
        held = rows.filter(pk=begun.pk).first()
        if held is None:
            raise InProgress(
                f"The request with this key is being executed. Send it again in {SHORT_WAIT} s to"
                " get its response.",
                SHORT_WAIT,
            )
        yield held


@contextmanager
def execute_long_once(begun: Repeatable, is_new: bool, now: datetime) -> Iterator[Repeatable]:
    """Like `execute_once`, without a transaction round it. A request whose process was killed can
    be repeated after `TAKEOVER_AFTER`."""
    free = begun.created_at + TAKEOVER_AFTER
    if begun.status is None and not is_new:
        rows = Repeatable.objects.filter(pk=begun.pk, status=None, created_at=begun.created_at)
        with transactions.transact():
            taken = free <= now and rows.update(created_at=now)
        if not taken:
            left = max(1, round((free - now).total_seconds()))
            raise InProgress(
                f"The request with this key is being executed. Send it again in {LONG_WAIT} s to"
                f" get its response. If the server was stopped meanwhile, that works in {left} s.",
                LONG_WAIT,
            )
        begun.created_at = now
    yield begun


def store_answer(request: Repeatable, status: int, body: str) -> None:
    """Store the response."""
    request.status, request.body = status, body
    with transactions.transact():
        request.save(update_fields=["status", "body"])


def delete_request(request: Repeatable) -> None:
    """Delete a request that was not executed, so that its key can be used again."""
    with transactions.transact():
        rows = Repeatable.objects.filter(pk=request.pk, created_at=request.created_at)
        rows.filter(status=None).delete()


KEY_HEADER = "Idempotency-Key"
KEY_PARAMETER = OpenApiParameter(
    KEY_HEADER,
    location=OpenApiParameter.HEADER,
    description=(
        "A string that you choose. If you repeat a request with the same key within a day, it is "
        "not executed again: you get the first response, marked `Idempotency-Replayed: true`."
    ),
)
IN_PROGRESS_RESPONSE = OpenApiResponse(
    ProblemSerializer, "The same request is being executed; see `Retry-After`."
)
ApiView = Callable[..., Response]


def make_idempotent(right: str, *, takes_long: bool = False) -> Callable[[ApiView], ApiView]:
    """Decorate a view so that a POST is executed once for each `Idempotency-Key` of an account. A
    repeated request gets the stored response only if the account still has `right`."""

    def decorated(view: ApiView) -> ApiView:
        @wraps(view)
        def answered(*given: Any, slug: str, **named: Any) -> Response:
            request: Request = given[-1]
            if request.method != "POST" or KEY_HEADER not in request.headers:
                return view(*given, slug=slug, **named)
            access.member_for(request, slug, right=right)
            now = timezone.now()
            begun, is_new = _begin_request(request, now)
            if begun.status is not None:
                return _repeat_answer(begun)
            once = (
                execute_long_once(begun, is_new, now)
                if takes_long and connection.vendor == "sqlite"
                else execute_once(begun)
            )
            try:
                with once as held:
                    if held.status is not None:
                        return _repeat_answer(held)
                    answer = view(*given, slug=slug, **named)
                    body = JSONRenderer().render(answer.data).decode()
                    store_answer(held, answer.status_code, body)
            except InProgress:
                raise
            except Exception:
                delete_request(begun)
                raise
            return answer

        return answered

    return decorated


def _repeat_answer(stored: Repeatable) -> Response:
    headers = {"Idempotency-Replayed": "true"}
    return Response(json.loads(stored.body), stored.status, headers=headers)


def _begin_request(request: Request, now: datetime) -> tuple[Repeatable, bool]:
    account: Any = request.user
    assert isinstance(account, Account)
    key = request.headers[KEY_HEADER].encode("utf-8", "surrogateescape")
    asked = sha256(request.get_full_path().encode() + b"\n")
    for part in _request_parts(request):
        asked.update(part)
    digests = (sha256(key).hexdigest(), asked.hexdigest())
    return begin_request(account, *digests, now=now)


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
