"""Reads and checks rows in a separate process while this process stores earlier rows.

Reading and checking takes as long as storing, and with two processes neither waits for the other. A
thread would not help, because both tasks need the interpreter lock most of the time.
"""

import fcntl
import multiprocessing
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import cycle
from multiprocessing.connection import Connection
from typing import Any

from annotation.importing.item_rows import ParsedItem
from formats.rows import BadRow, Row

# The number of drafts sent at once: large enough to be efficient, small enough for the memory.
CHUNK_ROWS, CHUNK_BYTES = 50, 500_000
# A pipe holds a megabyte at most. This many pipes, used in turn, hold more rows than are stored at
# a time, so that the other process need not pause meanwhile.
PIPE_COUNT, PIPE_BYTES = 4, 1 << 20


def read_in_subprocess(drafts: Iterable[ParsedItem | BadRow]) -> Iterator[ParsedItem | BadRow]:
    """Read the drafts in another process; they are reduced to what is stored.

    If this process has threads, which a forked process would lack, it reads the drafts itself.
    Exceptions in the other process are raised in this one. `drafts` must not use the database.
    """
    if threading.active_count() > 1:
        yield from drafts
        return
    copying = multiprocessing.get_context("fork")
    pipes = [copying.Pipe(duplex=False) for _ in range(PIPE_COUNT)]
    here, there = [ends[0] for ends in pipes], [ends[1] for ends in pipes]
    for end in there:
        with suppress(OSError):
            fcntl.fcntl(end.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    other = copying.Process(target=_send, args=(drafts, there, here), daemon=True)
    other.start()
    _close(there)
    try:
        yield from _receive(here)
    finally:
        # When its pipes are closed, the other process can send nothing more and ends.
        _close(here)
        other.join()


def _receive(here: list[Connection]) -> Iterator[ParsedItem | BadRow]:
    for end in cycle(here):
        chunk = end.recv()
        if isinstance(chunk, Exception):
            raise chunk
        if not chunk:
            return
        yield from chunk


def _send(
    drafts: Iterable[ParsedItem | BadRow], there: list[Connection], here: list[Connection]
) -> None:
    """Send all drafts and then an empty list, or the exception that was raised."""
    _close(here)
    ends = cycle(there)
    with suppress(BrokenPipeError):
        try:
            for chunk in _chunks(drafts):
                next(ends).send(chunk)
            next(ends).send([])
        except BrokenPipeError:
            raise
        except Exception as error:
            next(ends).send(error)


def _close(ends: list[Connection]) -> None:
    for end in ends:
        end.close()


def _chunks(drafts: Iterable[ParsedItem | BadRow]) -> Iterator[list[Any]]:
    chunk: list[Any] = []
    size = 0
    for draft in drafts:
        chunk.append(_strip_draft(draft))
        size += draft.size if isinstance(draft, ParsedItem) else 0
        if len(chunk) >= CHUNK_ROWS or size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _strip_draft(draft: ParsedItem | BadRow) -> ParsedItem | BadRow:
    """Reduce the draft to what is stored: keep its texts only in stored form, with their digest.

    Their names stay, since an item that lacks a text that its task type awaits gets no slots.
    """
    if isinstance(draft, ParsedItem):
        place = Row(draft.row.file, draft.row.line, {}, draft.row.number)
        kept = {"written": draft.written, "digest": draft.digest}
        # A copy made by `replace` would cost as much as the digest.
        draft.__dict__.update(kept, row=place, texts=dict.fromkeys(draft.texts, ""))
    return draft
