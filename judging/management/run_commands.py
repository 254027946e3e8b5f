"""Shared code of commands about runs: find a run, start it, wait for it."""

import sys
import time
from argparse import _ActionsContainer
from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, OutputWrapper
from django.db.models import Count

from annotation import errors
from annotation.management.files import command_error, get_project
from annotation.models import Project
from judging import tasks
from judging.errors import Refused
from judging.models import Run
from judging.results import run_marks
from judging.runs import forms, progress
from judging.runs.amounts import format_range
from judging.runs.engine import ask
from judging.runs.estimate import RequestsEstimate, Shortage

T = TypeVar("T")

LOOK_EVERY = 0.2
WAIT_HELP = "run it in this process and wait until it ends"


def add_while_labelling(parser: _ActionsContainer) -> None:
    """Add the option to send items whose labels are not complete."""
    parser.add_argument(
        "--while-labelling",
        action="store_true",
        help="include items that are still being labelled",
    )


def add_runs(parser: _ActionsContainer) -> None:
    """Add the option to choose the runs of a table, a chart or an archive."""
    parser.add_argument(
        "--run",
        type=int,
        nargs="+",
        action="extend",
        metavar="NUMBER",
        help=run_marks.RUN_HELP,
    )


def format_requests(found: RequestsEstimate, price: str = "") -> str:
    """Format how many requests would be sent and what they would cost, by default the range."""
    if not price and found.price:
        price = format_range(found.price.low, found.price.high) if found.price.high else "free"
    return (
        f"{found.requests} different requests, {found.stored} already answered, "
        f"{found.to_ask} to send; price {price or 'unknown'}"
    )


def write_shortages(
    stdout: OutputWrapper, shortages: Iterable[Shortage], refusal: str = ""
) -> None:
    """Write why the estimated run cannot start, and which limits its price may exceed."""
    for message in (refusal, *(one.message for one in shortages)):
        if message:
            stdout.write(message)


def get_runs(project: Project, numbers: list[int]) -> list[Run]:
    """The runs with these numbers."""
    found = {run.number: run for run in Run.objects.in_project(project).numbered(numbers)}
    if unknown := [str(number) for number in numbers if number not in found]:
        raise command_error(f"{project.slug} has no run {', '.join(unknown)}.")
    return list(found.values())


def format_items(run: Run) -> str:
    """The number of items of a run, such as "1 item". Along several axes, an item has as many
    outcomes."""
    n = run.outcomes.aggregate(n=Count("item", distinct=True))["n"]
    return f"{n} item" if n == 1 else f"{n} items"


def get_run(slug: str, number: int) -> Run:
    """A run by the slug of its project and its number."""
    return get_runs(get_project(slug), [number])[0]


def parse_cap(text: str | None) -> Decimal | None:
    """Parse a cap; None if there is none."""
    try:
        amount = None if text is None else Decimal(text)
    except InvalidOperation as error:
        raise command_error(f"--cap {text!r} is not an amount.") from error
    if amount is not None and not (amount.is_finite() and amount > 0):
        raise command_error("--cap must be more than 0.")
    try:
        return Run._meta.get_field("cap").clean(amount, None)
    except ValidationError as error:
        raise command_error(f"--cap {text}: {' '.join(error.messages)}") from error


def parse_parameters(text: str) -> dict[str, Any]:
    """Parse parameters from a JSON object; {} for empty text."""
    try:
        return forms.parse_parameters(text)
    except ValidationError as error:
        raise command_error(f"--parameters: {error.messages[0]}") from error


def call_service(what: Callable[[], T]) -> T:
    """Call a service; if it refuses, raise a CommandError."""
    try:
        return what()
    except errors.FieldError as error:
        raise command_error(f"--{error.field}: {error}") from error
    except (Refused, errors.Refused) as error:
        raise command_error(str(error)) from error


def continue_run(run: Run, terminal: OutputWrapper, *, wait: bool) -> None:
    """Notify the workers of a run, or run it in this process until it ends."""
    if wait:
        _work_until_ended(run, terminal)
    elif run.kind == Run.Kind.ASKED:
        tasks.notify_workers(run.endpoint_id)


def _work_until_ended(run: Run, terminal: OutputWrapper) -> None:
    """Execute the run in this process until it ends, and print progress."""
    said = ""
    try:
        while run.state in {Run.State.PLANNING, Run.State.RUNNING} and not run.reason:
            ask.run_overlapping_slice(run.endpoint_id, seconds=5)
            # Another worker may have the requests, or the provider may have asked for a pause.
            time.sleep(LOOK_EVERY)
            run.refresh_from_db()
            said = _print_progress(run, said, terminal)
    except KeyboardInterrupt:
        ask.STOP.set()
        raise
    finally:
        ask.wait_for_last_calls()
    if sys.stderr.isatty():
        terminal.write("")
    if run.state in {Run.State.PAUSED, Run.State.PLANNING}:
        raise CommandError(f"Run {run.number} is {run.state}: {run.reason}")


def _print_progress(run: Run, said: str, terminal: OutputWrapper) -> str:
    """Print the progress unless it equals `said`; return the printed text."""
    done = progress.count_progress(run)
    causes = ", ".join(f"{count} {cause}" for cause, count in done.failures.items())
    words = (
        f"{run.state}: {done.answered} of {done.requests} requests answered,"
        f" {done.settled} of {done.items} items done{'; ' + causes if causes else ''}"
    )
    if words != said:
        terminal.write(words, ending="\r" if sys.stderr.isatty() else "\n")
    return words
