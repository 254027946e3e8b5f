"""Zip archives of CSV, TSV and JSON Lines files, read one after the other by their names."""

from collections.abc import Container, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from formats import archives, delimited, fbi, jsonlines, realmistake
from formats.rows import FormatError, Limits, Rows

SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
DELIMITERS = {"csv": ",", "tsv": "\t"}


def form_of(name: str) -> str:
    """The format that the ending of a file's name tells, "" if it tells none."""
    return SUFFIXES.get(PurePosixPath(name).suffix.lower(), "")


def rows(path: Path, limits: Limits, password: str = "") -> Rows:
    """Yield the rows of every such file, under the columns that it names.

    `file` is its path inside the archive. Files of other kinds are passed over. Raises FormatError
    if there is none, or one of Parquet, whose rows would be missed, besides what `archives.opened`
    and the readers of rows refuse.
    """
    with archives.opened(path, limits, password) as files:
        names = sorted(name for name in files if form_of(name))
        if packed := sorted(name for name in files if name.lower().endswith(".parquet")):
            raise FormatError(f"{path}: holds {packed[0]}. Give Parquet files one by one.")
        if not names:
            raise FormatError(f"{path}: holds no CSV, TSV or JSON Lines files. Pack some of these.")
        for name in names:
            with files[name]() as stream:
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
        for name in sorted(files.keys() & starts.keys()):
            with files[name]() as stream:
                yield name, lines(stream, name, form_of(name), limits, starts[name])


def lines(
    stream: BinaryIO, name: str, form: str, limits: Limits, starts: Container[int]
) -> Iterator[str]:
    """The rows that start at these lines, with the header if there is one, as they stand."""
    if form == "jsonl":
        return jsonlines.picked(stream, name, limits, starts)
    return delimited.picked(stream, name, DELIMITERS[form], limits, starts)


def _rows(stream: BinaryIO, name: str, limits: Limits) -> Rows:
    form = form_of(name)
    if form == "jsonl":
        return jsonlines.rows(stream, name, limits)
    return delimited.rows(stream, name, DELIMITERS[form], limits)
