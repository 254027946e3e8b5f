"""Functions for commands that read files of rows: they detect formats and report bad rows."""

from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from django.core.management.base import CommandError, OutputWrapper

from annotation.models import Account, Project
from formats.readers import FORMATS, PICKABLE, find_format
from formats.rows import BadRow, FormatError, Row, as_printable
from formats.writers import write_csv

MAX_SHOWN = 20
NO_LEAD = (
    "The project has no lead yet. A site admin can add members in the administration; a new "
    "project gets a lead by --lead USERNAME."
)
COLUMNS = ("problem", "file", "line", "field", "reason", "row", "key")


def command_error(message: str) -> CommandError:
    """Return an error that is shown without a traceback, for problems that the user can fix."""
    return CommandError(message, returncode=2)


def add_check_arguments(parser: ArgumentParser) -> None:
    """Add the options to check a file without storing it, and to list its bad rows."""
    parser.add_argument("--dry-run", action="store_true", help="check and count, store nothing")
    parser.add_argument(
        "--errors", type=Path, metavar="FILE", help="write every bad row to this CSV file"
    )


def get_project(slug: str) -> Project:
    """Return the project with this slug."""
    project = Project.objects.filter(slug=slug).select_related("task_type").first()
    if project is None:
        known = list(Project.objects.order_by("slug").values_list("slug", flat=True)[:MAX_SHOWN])
        remedy = f"Choose one of: {', '.join(known)}."
        if not known:
            remedy = "There is none yet: create one with make_project or import_items --create."
        raise command_error(f"There is no project {slug!r}. {remedy}")
    return project


def get_account(username: str) -> Account:
    """Return the account with this user name."""
    account = Account.objects.filter(username=username).first()
    if account is None:
        raise command_error(f"There is no user {username!r}. Give the user name of an account.")
    return account


def get_open_project(slug: str) -> Project:
    """Return the project to whose items a file is imported; it must not be archived."""
    project = get_project(slug)
    check_open(project)
    return project


def check_open(project: Project) -> None:
    """Raise an error if the project is archived."""
    if project.archived_at:
        raise command_error(f"The project {project.slug!r} is archived. Choose another one.")


def detect_format(path: Path, given: str | None) -> str:
    """Return the given format, or the format that the suffix of the file suggests."""
    guess = given or find_format(path.name)
    if not guess:
        raise command_error(f"{path}: unknown suffix. Add --format {'|'.join(FORMATS)}.")
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
        key = f" Key: {as_printable(row.key)}" if row.key else ""
        terminal.write(f"{problem}: {row.file}, {row.place}{field}: {row.reason}{key}")
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
    cells = (problem, row.file, row.line, row.field, row.reason, row.row, row.key)
    return dict(zip(COLUMNS, cells, strict=True))
