"""Log lines as JSON, each with its request id, and without texts or keys.

Errors are logged with their type and traceback only: the message may quote an item, an answer or
an address with its password.
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

# Context added to log lines; set by the middleware and by workers, separate for each thread.
_context: ContextVar[dict[str, Any] | None] = ContextVar("about", default=None)
# Values of environment variables with these names never appear in a line.
_SECRET_NAME = re.compile(r"KEY|PASSWORD|SECRET|TOKEN")
_HIDDEN = "[hidden]"
# Long enough for any message, short enough that no line can flood the log.
MAX_LINE_LENGTH = 2_000


@contextmanager
def log_context(**facts: Any) -> Iterator[dict[str, Any]]:
    """Add these facts to log lines within the context; more can be added to the yielded dict."""
    mine = {**(_context.get() or {}), **facts}
    token = _context.set(mine)
    try:
        yield mine
    finally:
        _context.reset(token)


def begin_context(**facts: Any) -> None:
    """Like `log_context`, until `end_context`; for code whose start and end are separate
    calls, such as a worker's task."""
    _context.set(facts)


def end_context() -> None:
    """Forget the facts that `begin_context` added."""
    _context.set(None)


def current_request_id() -> str:
    """The id of the current request; "" if there is none."""
    return str((_context.get() or {}).get("request_id", ""))


class PlainFormatter(logging.Formatter):
    """Formats the same facts as one readable line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, with secrets hidden; places of an error follow on lines of their own."""
        told = record_facts(record)
        head = f"{told.pop('time')} {told.pop('level')} {told.pop('logger')}: {told.pop('message')}"
        where = told.pop("where", [])
        line = " ".join([head, *(f"{name}={value}" for name, value in told.items())])
        return hide_secrets("\n    ".join([line, *where]))


class JSONFormatter(logging.Formatter):
    """Formats one JSON object per line: time, level, logger, message, and the context."""

    def format(self, record: logging.LogRecord) -> str:
        """The object on one line of ASCII, with secrets hidden."""
        return hide_secrets(json.dumps(record_facts(record), ensure_ascii=True, default=str))


class DuplicateFilter(logging.Filter):
    """Drops duplicates of our own line for each request: Django's line passes only if it has
    exception information."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record has exception information; others are dropped."""
        return record.exc_info is not None


def record_facts(record: logging.LogRecord) -> dict[str, Any]:
    """The facts of a log record in order, with time in UTC. An error has its class and the places
    in the code, never its message. Secrets are not hidden yet."""
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
    """The message; for Django's lines the route instead of the URL, which can contain secrets of
    invitations and password resets."""
    request = getattr(record, "request", None)
    if request is None:
        return _without_quotes(record)
    status = getattr(record, "status_code", "")
    return f"{request.method} {request_route(request)} {status} {record.levelname.lower()}"


def _without_quotes(record: logging.LogRecord) -> str:
    """The line, with quoted errors replaced by their types."""
    args = record.args
    if isinstance(args, tuple):
        args = tuple(type(one).__name__ if isinstance(one, BaseException) else one for one in args)
    try:
        return str(record.msg) % args if args else str(record.msg)
    except (TypeError, ValueError):
        return str(record.msg)


def request_route(request: Any) -> str:
    """The URL pattern of the request, without items or secrets; "" if none matches."""
    match = getattr(request, "resolver_match", None)
    return str(match.route) if match else ""


def _places(error: BaseException) -> list[str]:
    """The traceback, cause first: file, line and function, without values."""
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
    """The line without secrets from the environment."""
    for secret in _secrets():
        line = line.replace(secret, _HIDDEN)
    return line


@cache
def _secrets() -> list[str]:
    """Secrets from the environment, longest first.

    Values under 8 characters are skipped, since a key such as "1" would hide parts of every line.
    Longest first: if a secret starts with another one, its rest would otherwise remain.
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
