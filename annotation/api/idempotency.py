"""What a program may ask for twice without its being done twice."""

import json
from collections.abc import Callable, Iterator
from functools import wraps
from hashlib import sha256
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api import idempotency_keys
from annotation.models import Account, Repeatable
from annotation.projects import access

KEY_HEADER = "Idempotency-Key"
KEY_PARAMETER = OpenApiParameter(
    KEY_HEADER,
    location=OpenApiParameter.HEADER,
    description=(
        "A string that you choose. For a day, a repeated request with the same key is not "
        "executed again; it returns the first response, marked `Idempotency-Replayed: true`."
    ),
)
ApiView = Callable[..., Response]


def make_idempotent(right: str) -> Callable[[ApiView], ApiView]:
    """A view whose POST is done once for each key that a person's programs send with it. What is
    answered again is so only to who still has the right."""

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
    return idempotency_keys.begin_request(account, *digests, now=timezone.now())


def _request_parts(request: Request) -> Iterator[bytes]:
    """What was sent, piece by piece: of a form each value by its name, for a file may be large."""
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
        idempotency_keys.delete_request(begun)
        raise
    idempotency_keys.store_answer(
        begun, answer.status_code, JSONRenderer().render(answer.data).decode()
    )
    return answer
