"""Log lines as JSON, each with its request id, and without texts or keys.

Of an error stand there its kind and the places it came through: what it says may quote an item,
an answer or an address with its password.
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

# What a line is about; set by the middleware and by workers, in each thread its own.
_context: ContextVar[dict[str, Any] | None] = ContextVar("about", default=None)
# Values of the environment that never stand in a line, whatever brings them there.
_SECRET_NAME = re.compile(r"KEY|PASSWORD|SECRET|TOKEN")
_HIDDEN = "[hidden]"
# A line of so many characters says enough, and none can flood the log.
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
    """The same until `end_context`, where beginning and end are told apart, as of a worker's
    task."""
    _context.set(facts)


def end_context() -> None:
    _context.set(None)


def current_request_id() -> str:
    """The id of the current request; "" if there is none."""
    return str((_context.get() or {}).get("request_id", ""))


class PlainFormatter(logging.Formatter):
    """The same facts as one readable line."""

    def format(self, record: logging.LogRecord) -> str:
        told = record_facts(record)
        head = f"{told.pop('time')} {told.pop('level')} {told.pop('logger')}: {told.pop('message')}"
        where = told.pop("where", [])
        line = " ".join([head, *(f"{name}={value}" for name, value in told.items())])
        return hide_secrets("\n    ".join([line, *where]))


class JSONFormatter(logging.Formatter):
    """One JSON object a line, for programs: time, level, logger, message, and what it is about."""

    def format(self, record: logging.LogRecord) -> str:
        return hide_secrets(json.dumps(record_facts(record), ensure_ascii=True, default=str))


class DuplicateFilter(logging.Filter):
    """Lets through what is not said already: each request has a line of ours, so Django's of the
    same one only adds something where there is an error to tell."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.exc_info is not None


def record_facts(record: logging.LogRecord) -> dict[str, Any]:
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
    """Django puts addresses into its lines, in which invitations and resets have their secrets."""
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
    """The URL pattern of an address, without item or secret; "" if none matches."""
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
    """Long enough to be one, since a key of "1" would blot out every line; the longest first, since
    of one that begins as another does the rest would stay."""
    named = {value for name, value in os.environ.items() if _SECRET_NAME.search(name)}
    addresses = [value for name, value in os.environ.items() if name.endswith("_URL")]
    found = {secret for secret in named | {*map(_password, addresses)} if len(secret) >= 8}
    return sorted(found, key=len, reverse=True)


def _password(address: str) -> str:
    try:
        return urlsplit(address).password or ""
    except ValueError:
        return ""
