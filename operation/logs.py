"""Log lines as JSON. Each has its request id, and none contains texts or keys.

Of an error, only the type and the traceback are logged. The message may quote an item, an answer,
or an address with its password.
"""

import json
import logging
import os
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from django.http import HttpRequest

# Context added to log lines. It is set by the middleware and by workers, separately for each
# thread.
_context: ContextVar[dict[str, Any] | None] = ContextVar("about", default=None)
# Values of environment variables with these names never appear in a log line.
_SECRET_NAME = re.compile(r"KEY|PASSWORD|SECRET|TOKEN")
_HIDDEN = "[hidden]"
# Long enough for any message, and short enough that no line can flood the log.
MAX_LINE_LENGTH = 2_000


@contextmanager
def log_context(**facts: Any) -> Iterator[dict[str, Any]]:
    """Add these facts to log lines within the context. More facts can be added to the yielded
    dict."""
    mine = {**(_context.get() or {}), **facts}
    token = _context.set(mine)
    try:
        yield mine
    finally:
        _context.reset(token)


def begin_context(**facts: Any) -> None:
    """Add facts like `log_context`, until `end_context` is called. For code whose start and end are
    separate calls, such as a worker's task."""
    _context.set(facts)


def end_context() -> None:
    """Remove the facts that `begin_context` added."""
    _context.set(None)


def current_request_id() -> str:
    """Return the id of the current request; "" if there is none."""
    return str((_context.get() or {}).get("request_id", ""))


class PlainFormatter(logging.Formatter):
    """Formats a record as one readable line with the same facts as `JSONFormatter`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line with secrets hidden. For an error, the places in the code follow on
        separate lines."""
        told = record_facts(record)
        head = f"{told.pop('time')} {told.pop('level')} {told.pop('logger')}: {told.pop('message')}"
        where = told.pop("where", [])
        line = " ".join([head, *(f"{name}={value}" for name, value in told.items())])
        return hide_secrets("\n    ".join([line, *where]))


class JSONFormatter(logging.Formatter):
    """Formats a record as one JSON object per line: time, level, logger, message and context."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the object on one line of ASCII, with secrets hidden."""
        return hide_secrets(json.dumps(record_facts(record), ensure_ascii=True, default=str))


class DuplicateFilter(logging.Filter):
    """Drops Django's lines about requests, since each request has our own line. Lines with
    exception information are kept."""

    def filter(self, record: logging.LogRecord) -> bool:
        """True if the record has exception information; other records are dropped."""
        return record.exc_info is not None


def record_facts(record: logging.LogRecord) -> dict[str, Any]:
    """Return the facts of a log record in order, with the time in UTC. For an error, these include
    its class and the places in the code, never its message. Secrets are not hidden yet."""
    told: dict[str, Any] = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname,
        "logger": record.name,
        "message": _message(record)[:MAX_LINE_LENGTH],
        **(_context.get() or {}),
        **getattr(record, "facts", {}),
    }
    if record.exc_info and record.exc_info[0] and record.exc_info[1]:
        kind, error, _ = record.exc_info
        told |= {"error": f"{kind.__module__}.{kind.__qualname__}", "where": _places(error)}
    return told


def _message(record: logging.LogRecord) -> str:
    """Return the message. Django's lines get the route instead of the URL, since a URL can contain
    the secrets of invitations and password resets."""
    request = getattr(record, "request", None)
    if request is None:
        return _without_quotes(record)
    status = getattr(record, "status_code", "")
    if not isinstance(request, HttpRequest):
        # Of the development server, whose records carry a socket and the whole URL.
        return f"development server {status} {record.levelname.lower()}"
    return f"{request.method} {request_route(request)} {status} {record.levelname.lower()}"


def _without_quotes(record: logging.LogRecord) -> str:
    """Return the line with quoted errors replaced by their types."""
    args = record.args
    if isinstance(args, tuple):
        args = tuple(type(one).__name__ if isinstance(one, BaseException) else one for one in args)
    try:
        return str(record.msg) % args if args else str(record.msg)
    except (TypeError, ValueError):
        return str(record.msg)


def request_route(request: Any) -> str:
    """Return the URL pattern of the request, without items or secrets; "" if no pattern matches."""
    match = getattr(request, "resolver_match", None)
    return str(match.route) if match else ""


def _places(error: BaseException) -> list[str]:
    """Return the traceback, cause first: file, line and function, without values."""
    chain: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in chain:
        chain.append(one)
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
    return [
        f"{type(each).__name__} {frame.filename}:{frame.lineno} {frame.name}"
        for each in reversed(chain)
        for frame in traceback.extract_tb(each.__traceback__)
    ][-40:]


def hide_secrets(line: str) -> str:
    """Return the line without secrets from the environment."""
    for secret in _secrets():
        line = line.replace(secret, _HIDDEN)
    return line


@cache
def _secrets() -> list[str]:
    """Return the secrets from the environment, longest first.

    Values under 8 characters are skipped: a key such as "1" would hide parts of every line. The
    longest secret is first, since a secret may start with another one, and the rest of it would
    remain.
    """
    named = {value for name, value in os.environ.items() if _SECRET_NAME.search(name)}
    addresses = [value for name, value in os.environ.items() if name.endswith("_URL")]
    found = {secret for secret in named | {*map(_password, addresses)} if len(secret) >= 8}
    return sorted(found, key=len, reverse=True)


def _password(address: str) -> str:
    try:
        return urlsplit(address).password or ""
    except ValueError:
        return ""
