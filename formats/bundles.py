"""Zip archives of CSV, TSV, JSON Lines and Parquet files, read one after the other by their names.

A Parquet file is read as the JSON Lines that a program of its own makes of it, and is called as
these are: its rows have numbers, and what is to be mended of it is mended there.
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
PARQUET, LINES = ".parquet", ".jsonl"
DELIMITERS = {"csv": ",", "tsv": "\t"}


def form_of(name: str) -> str:
    """The format that the ending of a file's name tells, "" if it tells none."""
    return SUFFIXES.get(PurePosixPath(name).suffix.lower(), "")


def rows(path: Path, limits: Limits, password: str = "") -> Rows:
    """Yield the rows of every such file, under the columns that it names.

    `file` is its path inside the archive. Files of other kinds are passed over. Raises FormatError
    if there is none, besides what `archives.opened` and the readers of rows refuse.
    """
    with archives.opened(path, limits, password) as files:
        names = _tables(files)
        if not names:
            raise FormatError(
                f"{path}: holds no CSV, TSV, JSON Lines or Parquet files. Pack some of these."
            )
        for name, inside in names.items():
            with _opened(files[inside], inside, limits) as stream:
                yield from _rows(stream, name, limits)


def layout(path: Path, limits: Limits) -> str:
    """How an archive is laid out by the names in it: fbi, realmistake, or zip for any other.

    Raises FormatError on what is no archive, or one made to do harm.
    """
    with archives.opened(path, limits, "any") as files:
        inside = [PurePosixPath(name) for name in files]
    tables = {name.stem for name in inside if name.suffix.lower() == ".tsv"}
    if tables and tables <= fbi.SOURCES.keys():
        return "fbi"
    folders = {name.parent.name for name in inside if name.suffix.lower() == ".jsonl"}
    return "realmistake" if folders & realmistake.FOLDERS else "zip"


def picked(
    path: Path, limits: Limits, starts: Mapping[str, Container[int]]
) -> Iterator[tuple[str, Iterator[str]]]:
    """The files with rows that start at these lines, each with those rows as they stand in it."""
    with archives.opened(path, limits) as files:
        for name, inside in _tables(files).items():
            if name not in starts:
                continue
            with _opened(files[inside], inside, limits) as stream:
                yield name, lines(stream, name, form_of(name), limits, starts[name])


def lines(
    stream: BinaryIO, name: str, form: str, limits: Limits, starts: Container[int]
) -> Iterator[str]:
    """The rows that start at these lines, with the header if there is one, as they stand."""
    if form == "jsonl":
        return jsonlines.picked(stream, name, limits, starts)
    return delimited.picked(stream, name, DELIMITERS[form], limits, starts)


def _tables(files: Mapping[str, Opener]) -> dict[str, str]:
    """The files that are read, in the order of their names: what their rows are said to be of, and
    where they lie."""
    packed = {f"{name}{LINES}": name for name in files if _is_parquet(name)}
    if twice := sorted(packed.keys() & files.keys()):
        raise FormatError(
            f"The archive holds {packed[twice[0]]} and {twice[0]}, which would be taken for one"
            " another. Rename one of them."
        )
    return dict(sorted(({name: name for name in files if form_of(name)} | packed).items()))


def _is_parquet(name: str) -> bool:
    return name.lower().endswith(PARQUET)


@contextmanager
def _opened(opener: Opener, inside: str, limits: Limits) -> Iterator[BinaryIO]:
    """A file of an archive, one of Parquet as the lines that are made of it."""
    with opener() as stream:
        if not _is_parquet(inside):
            yield stream
            return
        with TemporaryDirectory(prefix="blindspot-") as folder:
            packed = Path(folder, PurePosixPath(inside).name)
            with packed.open("wb") as file:
                shutil.copyfileobj(stream, file)
            made = Path(folder, f"rows{LINES}")
            unpacking.unpack(packed, made, limits)
            with made.open("rb") as lines_of_it:
                yield lines_of_it


def _rows(stream: BinaryIO, name: str, limits: Limits) -> Rows:
    form = form_of(name)
    if form == "jsonl":
        return jsonlines.rows(stream, name, limits)
    return delimited.rows(stream, name, DELIMITERS[form], limits)
