"""Functions for commands that read files of rows: they detect formats and report bad rows."""

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
    """Return an error that is shown without a traceback, for problems that the user can fix."""
    return CommandError(message, returncode=2)


# Files outside archives; archives may contain fewer formats.
SUFFIXES = {**bundles.SUFFIXES, ".parquet": "parquet"}


def detect_format(path: Path, given: str | None, suffixes: Mapping[str, str] = SUFFIXES) -> str:
    """Return the given format, or the format that the suffix of the file suggests."""
    guess = given or suffixes.get(path.suffix.lower(), "")
    if not guess:
        raise command_error(f"{path}: unknown suffix. Add --format {'|'.join(READERS)}.")
    return guess


def require_columns(
    rows: Iterator[Row | BadRow],
    needed: Callable[[list[str]], tuple[str, ...]],
    hint: Callable[[list[str]], str] = lambda found: "",
) -> Iterator[Row | BadRow]:
    """Return the same rows. Raise FormatError if the first good row lacks required columns.

    `needed` takes the columns of the file and returns the required columns. `hint` returns advice
    that is appended to the error; it starts with a space.
    """
    seen: list[Row | BadRow] = []
    for row in rows:
        seen.append(row)
        if isinstance(row, Row):
            required = needed([*row.values])
            if missing := [name for name in required if name not in row.values]:
                raise FormatError(
                    f"{row.file}: missing columns: {', '.join(missing)}; found: "
                    f"{', '.join(row.values)[:500]}. Required: {', '.join(required)}."
                    f"{hint([*row.values])}"
                )
            break
    return chain(seen, rows)


@contextmanager
def open_error_file(path: Path | None) -> Iterator[TextIO | None]:
    """Open the file for bad rows before anything else is done. Return None if no path is given."""
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
    """Raise an error, before anything is done, if the file for rows to fix cannot be used."""
    if path is None:
        return
    if form not in PICKABLE:
        raise command_error(
            f"--mend works with {', '.join(PICKABLE)}, not with {form}. Leave it out."
        )
    if path.exists():
        raise command_error(f"{path}: already exists. Choose a new file for --mend.")
    if not path.parent.is_dir():
        raise command_error(f"{path}: there is no such folder. Choose another file.")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write these lines to a text file without changing their line ends."""
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
    """Print the first problems on the terminal, and write all of them to the file."""
    for problem, row in problems[:MAX_SHOWN]:
        field = f", {row.field}" if row.field else ""
        terminal.write(f"{problem}: {row.file}, line {row.line}{field}: {row.reason}")
    if len(problems) > MAX_SHOWN:
        where = "use --errors FILE to list all" if file is None else f"{file.name} lists all"
        terminal.write(f"... and {len(problems) - MAX_SHOWN:,} more; {where}.")
    if file:
        write_csv(map(_cells, problems), COLUMNS, file)


def show_progress(rows: Iterable[Any], terminal: OutputWrapper) -> Iterator[Any]:
    """Yield the same rows and show their count on a terminal."""
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
