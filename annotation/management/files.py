"""What commands that read files of rows have in common: formats by suffix, and bad rows told."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from django.core.management.base import CommandError, OutputWrapper

from formats import bundles
from formats.readers import PICKABLE, READERS
from formats.rows import BadRow, FormatError, Row
from formats.writers import write_csv

MAX_SHOWN = 20
COLUMNS = ("problem", "file", "line", "field", "reason")


def command_error(message: str) -> CommandError:
    """An end without a traceback, for what the person who typed the command can mend."""
    return CommandError(message, returncode=2)


# A file that is no archive; what is in one has fewer formats.
SUFFIXES = {**bundles.SUFFIXES, ".parquet": "parquet"}


def detect_format(path: Path, given: str | None, suffixes: Mapping[str, str] = SUFFIXES) -> str:
    """The name of the format that is asked for, or that the suffix tells."""
    guess = given or suffixes.get(path.suffix.lower(), "")
    if not guess:
        raise command_error(
            f"{path}: the suffix does not tell the format. Add --format {'|'.join(READERS)}."
        )
    return guess


def require_columns(
    rows: Iterator[Row | BadRow],
    needed: Callable[[list[str]], tuple[str, ...]],
    hint: Callable[[list[str]], str] = lambda found: "",
) -> Iterator[Row | BadRow]:
    """The same rows, if the first good one has the columns that all must have.

    `needed` says which those are, of the columns that were found; `hint` what could be done
    about others, after a space.
    """
    seen: list[Row | BadRow] = []
    for row in rows:
        seen.append(row)
        if isinstance(row, Row):
            required = needed([*row.values])
            if missing := [name for name in required if name not in row.values]:
                raise FormatError(
                    f"{row.file}: wrong columns, missing: {', '.join(missing)}; found: "
                    f"{', '.join(row.values)[:500]}. Needed are {', '.join(required)}."
                    f"{hint([*row.values])}"
                )
            break
    return chain(seen, rows)


@contextmanager
def open_error_file(path: Path | None) -> Iterator[TextIO | None]:
    """The file that takes every bad row, opened before anything is done; None if none is named."""
    if path is None:
        yield None
        return
    try:
        stream = path.open("w", encoding="utf-8", newline="")
    except OSError as error:
        raise command_error(
            f"{path}: cannot be written ({error.strerror}). Choose another file."
        ) from error
    with stream:
        yield stream


def check_mend_path(path: Path | None, form: str) -> None:
    """Refuse, before anything is done, a file for rows to mend that cannot be."""
    if path is None:
        return
    if form not in PICKABLE:
        raise command_error(f"--mend is for {', '.join(PICKABLE)}, not for {form}. Leave it out.")
    if path.exists():
        raise command_error(f"{path}: is there already. Name a new file for --mend.")
    if not path.parent.is_dir():
        raise command_error(f"{path}: there is no such folder. Choose another file.")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """A text file of these lines, whose line ends stay as they are."""
    try:
        with path.open("w", encoding="utf-8", newline="") as stream:
            stream.writelines(lines)
    except OSError as error:
        raise command_error(
            f"{path}: cannot be written ({error.strerror}). Choose another file."
        ) from error


def report_problems(
    problems: list[tuple[str, BadRow]], terminal: OutputWrapper, file: TextIO | None
) -> None:
    """Name the first problems on the terminal, and all of them in the file."""
    for problem, row in problems[:MAX_SHOWN]:
        field = f", {row.field}" if row.field else ""
        terminal.write(f"{problem}: {row.file}, line {row.line}{field}: {row.reason}")
    if len(problems) > MAX_SHOWN:
        where = "--errors FILE lists all" if file is None else f"all are in {file.name}"
        terminal.write(f"... and {len(problems) - MAX_SHOWN:,} more; {where}.")
    if file:
        write_csv(map(_cells, problems), COLUMNS, file)


def show_progress(rows: Iterable[Any], terminal: OutputWrapper) -> Iterator[Any]:
    """The same rows; on a terminal their number runs along."""
    show = terminal.isatty()
    for count, row in enumerate(rows, start=1):
        if show and count % 100 == 0:
            terminal.write(f"\r{count:,} rows", ending="")
            terminal.flush()
        yield row
    if show:
        terminal.write("\r", ending="")


def _cells(entry: tuple[str, BadRow]) -> dict[str, Any]:
    problem, row = entry
    cells = (problem, row.file, row.line, row.field, row.reason)
    return dict(zip(COLUMNS, cells, strict=True))
