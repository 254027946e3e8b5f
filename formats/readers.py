"""The formats that can be read, by name."""

from collections import deque
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from formats import batches, bundles, delimited, fbi, jsonlines, realmistake
from formats.bundles import DELIMITERS
from formats.rows import DEFAULT_LIMITS, FormatError, Limits, Rows

# Rows often have several kilobytes. With the default buffer of 8 KB, reading from the file would
# take longer than parsing.
_BUFFER = 1 << 17

Reader = Callable[[Path, Limits], Rows]


def read_csv(path: Path, limits: Limits = DEFAULT_LIMITS) -> Rows:
    """Read the rows of a comma-separated file. Values are text; the header names the columns."""
    return _check_then_read(lambda: _delimited(path, limits, DELIMITERS["csv"]))


def read_tsv(path: Path, limits: Limits = DEFAULT_LIMITS) -> Rows:
    """Read the rows of a tab-separated file, which is quoted like CSV."""
    return _check_then_read(lambda: _delimited(path, limits, DELIMITERS["tsv"]))


def read_jsonl(path: Path, limits: Limits = DEFAULT_LIMITS) -> Rows:
    """Read the rows of a file with one JSON object per line."""
    with _file(path) as stream:
        jsonlines.check_lines(stream, path.name, limits)
    return _jsonl(path, limits)


def read_parquet(path: Path, limits: Limits = DEFAULT_LIMITS) -> Rows:
    """Read the rows of a Parquet file, with the columns that the file names."""
    with _file(path):
        return _check_then_read(lambda: _parquet(path, limits))


def read_fbi(path: Path, limits: Limits = DEFAULT_LIMITS) -> Rows:
    """Read the items of study 000's archive, a zip or its folder. `fbi.read_rows` documents the
    values."""
    return _check_then_read(lambda: fbi.read_rows(path, limits))


def read_realmistake(path: Path, limits: Limits = DEFAULT_LIMITS, password: str = "") -> Rows:
    """Read the items of study 001 from a zip with a password, its folder or one file.

    `realmistake.read_items` documents the values.
    """
    return _check_then_read(lambda: realmistake.read_items(path, limits, password))


def read_zip(path: Path, limits: Limits = DEFAULT_LIMITS, password: str = "") -> Rows:
    """Read the rows of the tables in a zip with `bundles.read_rows`; each table has its own
    columns."""
    return _check_then_read(lambda: bundles.read_rows(path, limits, password))


def read_detections(path: Path, limits: Limits = DEFAULT_LIMITS, password: str = "") -> Rows:
    """Read the replies of study 001's detectors. `realmistake.read_outputs` documents the
    values."""
    return _check_then_read(lambda: realmistake.read_outputs(path, limits, password))


def read_batch(path: Path, limits: Limits = DEFAULT_LIMITS) -> Rows:
    """Read the output or error file of an OpenAI batch, or a folder of such files.
    `batches.read_rows` documents the values."""
    return _check_then_read(lambda: _read_folder(path, lambda one: _batch(one, limits)))


def read_replies(path: Path, limits: Limits = DEFAULT_LIMITS) -> Rows:
    """Read one file or a folder of files, each like `read_jsonl`."""
    return _check_then_read(lambda: _read_folder(path, lambda one: _jsonl(one, limits)))


READERS: dict[str, Reader] = {
    "csv": read_csv,
    "tsv": read_tsv,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
    "fbi": read_fbi,
    "realmistake": read_realmistake,
    "zip": read_zip,
}
# Formats from which single rows can be extracted unchanged.
PICKABLE = ("csv", "tsv", "jsonl")
# Formats of archives that may need a password.
WITH_PASSWORD = ("realmistake", "zip")
# Formats of recorded replies; `judging.runs.recorded.transcripts` documents the values of a row.
REPLY_READERS: dict[str, Reader] = {
    "jsonl": read_replies,
    "openai-batch": read_batch,
    "realmistake": read_detections,
}


def pick_rows(
    form: str, path: Path, starts: Container[int], limits: Limits = DEFAULT_LIMITS
) -> Iterator[str]:
    """Return the rows that start at these lines, unchanged, after the header if there is one. For
    the formats in `PICKABLE`."""
    with _file(path) as stream:
        yield from bundles.pick_lines(stream, path.name, form, limits, starts)


def with_password(reader: Reader, password: str) -> Reader:
    """Return the reader with an archive's password ("" if there is none). Raises FormatError if the
    format has no passwords."""
    if not password:
        return reader
    for locked in (read_realmistake, read_zip, read_detections):
        if reader is locked:
            return partial(locked, password=password)
    raise FormatError("Files of this format have no password. Leave --password out.")


def preview_rows(
    form: str, path: Path, limits: Limits = DEFAULT_LIMITS, password: str = ""
) -> Rows:
    """Read the rows of a file in a format of `READERS` without checking the whole file first. So a
    FormatError may be raised after some good rows."""
    if form in WITH_PASSWORD:
        read = realmistake.read_items if form == "realmistake" else bundles.read_rows
        return read(path, limits, password)
    if form == "fbi":
        return fbi.read_rows(path, limits)
    if form == "parquet":
        return _parquet(path, limits)
    return _jsonl(path, limits) if form == "jsonl" else _delimited(path, limits, DELIMITERS[form])


def _check_then_read(rows: Callable[[], Rows]) -> Rows:
    """Read the file once so that any FormatError is raised before the first row, then read it
    again.

    Otherwise, with an error at the end of a file, the rows before the error would already be
    imported.
    """
    deque(rows(), maxlen=0)
    return rows()


def _read_folder(path: Path, read: Callable[[Path], Rows]) -> Rows:
    """Read the rows of a file, or of all JSON Lines files of a folder, sorted by name."""
    if not path.is_dir():
        yield from read(path)
        return
    found = sorted(one for one in path.iterdir() if one.suffix.lower() in {".jsonl", ".ndjson"})
    if not found:
        raise FormatError(f"{path}: contains no JSON Lines files (.jsonl). Check the path.")
    for one in found:
        yield from read(one)


def _delimited(path: Path, limits: Limits, delimiter: str) -> Rows:
    with _file(path) as stream:
        yield from delimited.read_rows(stream, path.name, delimiter, limits)


def _jsonl(path: Path, limits: Limits) -> Rows:
    with _file(path) as stream:
        yield from jsonlines.read_rows(stream, path.name, limits)


def _parquet(path: Path, limits: Limits) -> Rows:
    # Imported only when needed, since it takes as much memory as everything else here.
    from formats import parquet

    return parquet.read_rows(path, limits)


def _batch(path: Path, limits: Limits) -> Rows:
    with _file(path) as stream:
        yield from batches.read_rows(stream, path.name, limits)


@contextmanager
def _file(path: Path) -> Iterator[BinaryIO]:
    if not path.is_file():
        fault = "is not a file" if path.exists() else "there is no such file"
        raise FormatError(f"{path}: {fault}. Check the path.")
    try:
        stream = path.open("rb", buffering=_BUFFER)
    except OSError as error:
        raise FormatError(f"{path}: cannot be opened ({error.strerror}).") from error
    with stream:
        yield stream
