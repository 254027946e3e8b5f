"""Cached figures: expensive tables are computed by workers and kept until their data change.

A fingerprint describes the data behind a table; figures are valid as long as their fingerprint is
the same. It depends on the changes that triggers counted in the runs' outcomes, replies, items and
resolutions (`judging.results.change_counters`), on the configuration that the runs pin, and on the
code that computes figures. Take the fingerprint before you compute the figures. If the data change
during the computation, the fingerprint is then out of date, and old figures are never taken for new
ones.
"""

import ast
import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from django.db import Error, connection
from django.db.models import Q

from annotation.db import clock, transactions
from annotation.models import Project
from judging.models import Run, StoredFigure
from judging.results import change_counters, progress
from judging.results.columns import Table
from judging.strategies import compute_digest

# The code that computes figures; if a line of it changes, all figures are computed again.
CODE = (
    *("stats", "judging.results", "judging.strategies.replies", "judging.runs.models"),
    *("annotation.reports", "annotation.items.taxonomy"),
)
# What is in these packages, but only shows figures, and the tables. A table depends on its own file
# and on those that it imports from, so that a changed word does not make all other tables anew.
TABLES = "judging.results.tables"
NOT_SHARED = (
    *(TABLES, "judging.results.views", "judging.results.cells", "judging.results.lines"),
    *("judging.results.page_parts", "judging.results.chart_parts"),
)


def compute_fingerprint(project: Project, runs: Sequence[Run], table: Table) -> str:
    """Compute a digest of the data and the code behind figures of these runs. If the table is
    `of_people`, these include the project's labels and other items. Makes two short queries,
    however many outcomes and labels exist."""
    checks = _checking_runs(runs)
    resting = [*(run.pk for run in runs), *(pk for pk, *_ in checks)]
    subjects = [change_counters.run_subject(pk) for pk in resting]
    people: list[Any] = []
    if table.of_people:
        subjects.append(change_counters.project_subject(project.pk))
        people = [project.task_type_id, *project.members.order_by("pk").values_list("pk", "alias")]
    counted = change_counters.load_counts(subjects)
    return compute_digest(
        [
            code_digest(table.module),
            [_run_state(run) for run in runs],
            checks,
            people,
            project.taxonomy_id,
            counted,
            table.settings(project, runs),
        ]
    )


def _run_state(run: Run) -> list[Any]:
    names = [run.number, run.endpoint.name, run.strategy.slug, run.strategy.number]
    return [run.pk, *names, run.digest, run.parser, run.samples, run.taxonomy_id]


def _checking_runs(runs: Sequence[Run]) -> list[list[Any]]:
    """The runs that build on these runs, such as checks of their explanations, with their state."""
    over = Run.objects.filter(sources__in=runs).order_by("pk").distinct()
    found = over.values_list("pk", "state", "archived_at", "parser")
    return [[pk, state, str(archived), parser] for pk, state, archived, parser in found]


@cache
def code_digest(module: str) -> str:
    """Compute a digest of the code that computes the figures of a table in this module."""
    found = hashlib.sha256(f"numpy {np.__version__} scipy {scipy.__version__}".encode())
    for path in code_files(module):
        found.update(path.read_bytes())
    return found.hexdigest()


def code_files(module: str) -> list[Path]:
    """List the files of `CODE` that all tables share, and those of the table's module, sorted. A
    package has all its modules, a module also its TOML file.

    Raises ModuleNotFoundError if a module of `CODE` does not exist, for example after a move.
    """
    found = {path for name in CODE for path in _module_files(name)}
    found -= {path for name in NOT_SHARED for path in _module_files(name)}
    return sorted(found | _imported_tables(module))


def _module_files(name: str) -> set[Path]:
    path = _find_module(name)
    if path.name == "__init__.py":
        return {*path.parent.rglob("*.py")}
    return {*filter(Path.exists, (path, path.with_suffix(".toml")))}


def _find_module(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{name} computes figures, but there is no such module.")
    return Path(spec.origin)


def _imported_tables(module: str) -> set[Path]:
    """The files of a table's module, and those of the modules with tables that it imports from."""
    found: dict[str, set[Path]] = {}
    following = [module] if module.startswith(f"{TABLES}.") else []
    while following:
        name = following.pop()
        if name not in found:
            found[name] = _module_files(name)
            following += _list_imported_tables(_find_module(name))
    return set().union(*found.values())


def _list_imported_tables(path: Path) -> Iterator[str]:
    """The modules with tables that a file imports, or imports from."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == TABLES:
            yield from (f"{TABLES}.{one.name}" for one in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{TABLES}."):
            yield str(node.module)


log = logging.getLogger(__name__)

Rows = list[dict[str, Any]]

# A killed worker is noticed after this time.
LEASE = timedelta(seconds=45)
# Progress is stored at this interval, in seconds.
PROGRESS_INTERVAL = 0.5
# How many tables to keep per project, the most recent ones. Each takes a few KB.
MOST_TABLES = 500
# The same for chart files, of which each takes some hundred KB.
MOST_FILES = 100
# Chart files are stored beside the tables of figures, under this name.
CHART_FILE = "chart file"
# How long to wait after a failure before the next attempt.
RETRY_DELAY = timedelta(minutes=1)
# Enough for a hundred thousand clusters in as many groups.
WORK_MEM = "96MB"


@dataclass(frozen=True)
class CacheKey:
    """The identity of a table: its name, the ids of its runs, and the fields to group by."""

    project: Project
    table: str
    runs: tuple[int, ...]
    by: tuple[str, ...]

    def key(self) -> str:
        """The digest under which the table is stored. The order of runs and fields matters."""
        return compute_digest([self.project.pk, self.table, self.runs, self.by])


def find(wish: CacheKey) -> StoredFigure | None:
    """Find the stored table, whether current or outdated; None if it was never requested."""
    return StoredFigure.objects.filter(key=wish.key()).first()


def load_rows(figure: StoredFigure) -> Rows:
    """Load the stored rows. Each call parses the JSON again."""
    rows: Rows = json.loads(figure.rows)
    return rows


def enqueue(wish: CacheKey, now: datetime) -> StoredFigure:
    """Ask for a worker to compute the table; a repeated request changes nothing."""
    with transactions.transact():
        asked = {"runs": wish.runs, "by": wish.by}
        figure, _ = StoredFigure.objects.get_or_create(
            key=wish.key(), defaults={"project": wish.project, "table": wish.table, "asked": asked}
        )
        locked = StoredFigure.objects.select_for_update(of=("self",)).get(pk=figure.pk)
        locked.want(now)
    return locked


def store(wish: CacheKey, state: str, rows: Rows, seconds: float) -> StoredFigure:
    """Store the rows computed for this state, replacing earlier ones."""
    written = json.dumps(rows, allow_nan=False, default=_to_python)
    made = {"state": state, "rows": written, "made_at": clock.now(), "seconds": seconds}
    done: dict[str, Any] = {"wanted_at": None, "held_until": None, "failure": "", "step": ""}
    asked = {"runs": wish.runs, "by": wish.by}
    with transactions.transact():
        figure, _ = StoredFigure.objects.update_or_create(
            key=wish.key(),
            defaults={**made, **done},
            create_defaults={
                **made, "project": wish.project, "table": wish.table, "asked": asked
            },
        )  # fmt: skip
        kind = Q(table=CHART_FILE) if wish.table == CHART_FILE else ~Q(table=CHART_FILE)
        most = MOST_FILES if wish.table == CHART_FILE else MOST_TABLES
        spare = StoredFigure.objects.filter(kind).spare(wish.project, most)
        StoredFigure.objects.filter(pk__in=spare).delete()
    return figure


def compute_and_store(wish: CacheKey, state: str, make: Callable[[], Rows]) -> StoredFigure:
    """Compute and store the table of this state while the user waits."""
    begun = time.perf_counter()
    with progress.with_progress_callback(_ignore_progress), with_larger_work_mem():
        rows = make()
    return store(wish, state, rows, time.perf_counter() - begun)


def _ignore_progress(step: str, done: int, total: int) -> None:
    """A callback that ignores progress. With any callback, large reads are split into parts."""


def list_due(now: datetime) -> list[int]:
    """List the ids of tables that wait for a worker, in the order of turns, in one query."""
    return StoredFigure.objects.in_turn(now)


def run_job(pk: int, make: Callable[[CacheKey], tuple[str, Iterable[dict[str, Any]]]]) -> bool:
    """Compute a requested table, unless another worker is computing it. Return True if it was
    computed.

    `make` takes the state of the data, computes the rows, and returns both. Errors are logged and
    shown to users who wait. If the database connection is lost, the table is released to the next
    worker at once.
    """
    figure = _claim(pk)
    if figure is None:
        return False
    wish = _read_key(figure)
    begun = time.perf_counter()
    try:
        with (
            progress.with_progress_callback(_make_progress_callback(figure)),
            with_larger_work_mem(),
        ):
            state, rows = make(wish)
            store(wish, state, list(rows), time.perf_counter() - begun)
    except Exception as error:
        if isinstance(error, Error) and not connection.is_usable():
            transactions.retry_with_new_connection(
                lambda: _release(figure), patience=LEASE.total_seconds()
            )
            raise
        log.exception("Computing the figures %s of %s failed.", wish.table, wish.project.slug)
        with transactions.transact():
            figure.fail(f"{type(error).__name__}: {error}"[:500], until=clock.now() + RETRY_DELAY)
        return False
    return True


@contextmanager
def with_larger_work_mem() -> Iterator[None]:
    """Let PostgreSQL keep the clusters of a run in memory instead of sorting them on disk."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute(f"SET work_mem = '{WORK_MEM}'")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET work_mem")


def _claim(pk: int) -> StoredFigure | None:
    now = clock.now()
    with transactions.transact():
        free = StoredFigure.objects.due(now).select_for_update(of=("self",), skip_locked=True)
        figure = free.select_related("project").filter(pk=pk).first()
        if figure:
            figure.hold("", 0, 0, until=now + LEASE)
    return figure


def _release(figure: StoredFigure) -> None:
    """Release a table to the next worker, unless another worker has taken it by now."""
    ours = StoredFigure.objects.filter(pk=figure.pk, held_until__lte=figure.held_until)
    ours.update(held_until=None)


def _read_key(figure: StoredFigure) -> CacheKey:
    runs, by = (tuple(figure.asked[name]) for name in ("runs", "by"))
    return CacheKey(figure.project, figure.table, runs, by)


def _make_progress_callback(figure: StoredFigure) -> progress.ProgressCallback:
    """Create a callback that stores progress in the figure's row, at intervals."""
    noted = 0.0

    def note(step: str, done: int, total: int) -> None:
        nonlocal noted
        if time.monotonic() - noted < PROGRESS_INTERVAL:
            return
        with transactions.transact():
            figure.hold(step, done, total, until=clock.now() + LEASE)
        noted = time.monotonic()

    return note


def _to_python(value: Any) -> Any:
    """Convert a NumPy number to a Python number."""
    return value.item()
