"""Zip archives of CSV, TSV, JSON Lines, Parquet and Excel files, read in the order of their names.

A separate process converts each Parquet file to JSON Lines and each workbook to CSV, and the result
is read under the name of such a file. So rows have numbers, and users can correct rows in that
form.
"""

import shutil
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import BinaryIO

from formats import archives, delimited, fbi, jsonlines, realmistake, unpacking
from formats.archives import Opener
from formats.rows import FormatError, Limits, Rows

SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
# JSON files of an archive are often about the data, and are not read.
CONVERTED = unpacking.CONVERTERS.keys() - {".json"}
# Each file to convert takes a process of its own.
MAX_CONVERTED = 100
DELIMITERS = {"csv": ",", "tsv": "\t"}


def detect_format(name: str) -> str:
    """Return the format that the suffix of the file name stands for; "" if the suffix is
    unknown."""
    return SUFFIXES.get(PurePosixPath(name).suffix.lower(), "")


def read_rows(path: Path, limits: Limits, password: str = "") -> Rows:
    """Yield the rows of all files in these formats, under the column names of each file.

    `file` is the path inside the archive. Files in other formats are skipped. Raises FormatError if
    there are no files in these formats, and every error of `archives.open_archive` and the row
    readers.
    """
    with archives.open_archive(path, limits, password) as files:
        names = _tables(files)
        if not names:
            raise FormatError(
                f"{path}: contains no CSV, TSV, JSON Lines, Parquet or XLSX files. Add at least "
                "one."
            )
        for name, inside in names.items():
            with _open_as_lines(files[inside], inside, limits) as stream:
                yield from read_lines(stream, name, detect_format(name), limits)


def detect_layout(path: Path, limits: Limits) -> str:
    """Return the layout of an archive, as its file names suggest: fbi, realmistake, or zip for any
    other.

    Raises FormatError if the path is not an archive, or if the archive is malicious.
    """
    with archives.open_archive(path, limits, "any") as files:
        inside = [PurePosixPath(name) for name in files]
    tables = {name.stem for name in inside if name.suffix.lower() == ".tsv"}
    if tables and tables <= fbi.FILES.keys():
        return "fbi"
    folders = {name.parent.name for name in inside if name.suffix.lower() == ".jsonl"}
    return "realmistake" if folders & realmistake.FOLDERS else "zip"


def pick_rows(
    path: Path, limits: Limits, starts: Mapping[str, Container[int]]
) -> Iterator[tuple[str, Iterator[str]]]:
    """Return the files that have rows starting at these lines, each file with those rows
    unchanged."""
    with archives.open_archive(path, limits) as files:
        for name, inside in _tables(files).items():
            if name not in starts:
                continue
            with _open_as_lines(files[inside], inside, limits) as stream:
                yield name, pick_lines(stream, name, detect_format(name), limits, starts[name])


def pick_lines(
    stream: BinaryIO, name: str, form: str, limits: Limits, starts: Container[int]
) -> Iterator[str]:
    """Return the rows that start at these lines, unchanged, after the header if there is one."""
    if form == "jsonl":
        return jsonlines.pick_rows(stream, name, limits, starts)
    return delimited.pick_rows(stream, name, DELIMITERS[form], limits, starts)


def _tables(files: Mapping[str, Opener]) -> dict[str, str]:
    """Return the files to read, sorted by name. Each has the name under which rows are reported,
    and the path in the archive."""
    packed = {
        f"{name}{unpacking.CONVERTERS[kind][1]}": name for name in files if (kind := _kind(name))
    }
    if len(packed) > MAX_CONVERTED:
        raise FormatError(
            f"The archive contains more than {MAX_CONVERTED} Parquet and XLSX files. Split it."
        )
    if twice := sorted(packed.keys() & files.keys()):
        raise FormatError(
            f"The archive contains {packed[twice[0]]} and {twice[0]}, whose names would be "
            "confused. Rename one of them."
        )
    return dict(sorted(({name: name for name in files if detect_format(name)} | packed).items()))


def _kind(name: str) -> str:
    """Return the suffix of a file that must be converted; "" for any other file."""
    suffix = PurePosixPath(name).suffix.lower()
    return suffix if suffix in CONVERTED else ""


@contextmanager
def _open_as_lines(opener: Opener, inside: str, limits: Limits) -> Iterator[BinaryIO]:
    """Open a file of an archive. One that must be converted is opened as the file that it was
    converted to."""
    with opener() as stream:
        kind = _kind(inside)
        if not kind:
            yield stream
            return
        with TemporaryDirectory(prefix="blindspot-") as folder:
            packed = Path(folder, PurePosixPath(inside).name)
            with packed.open("wb") as file:
                shutil.copyfileobj(stream, file)
            made = Path(folder, "rows")
            unpacking.unpack_whole(packed, kind, made, limits, inside)
            with made.open("rb") as lines_of_it:
                yield lines_of_it


def read_lines(stream: BinaryIO, name: str, form: str, limits: Limits) -> Rows:
    """Yield the rows of a file of CSV, TSV or JSON Lines."""
    if form == "jsonl":
        return jsonlines.read_rows(stream, name, limits)
    return delimited.read_rows(stream, name, DELIMITERS[form], limits)
