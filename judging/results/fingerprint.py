"""What a table of figures rests on, as a digest: figures are true as long as it is the same.

It is made of how often triggers counted a change of the runs' outcomes, replies and items, and of
what holds of these (`judging.results.change_counters`), of what the runs pin, and of the code that
reckons. It must be taken before the figures are made: a change that comes while they are made then
belongs to a later state, so that no figures are ever taken for newer than they are.
"""

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from annotation.models import Project
from judging.models import Run
from judging.results import change_counters
from judging.strategies import compute_digest

# The code that computes figures: when a line of it changes, all figures are computed anew.
CODE = (
    *("stats", "judging.results", "judging.strategies.replies", "judging.runs.models"),
    *("annotation.reports", "annotation.items.taxonomy"),
)


def compute_fingerprint(project: Project, runs: Sequence[Run], *, of_people: bool) -> str:
    """The state of figures of these runs; `of_people` if they rest on the project's labels and on
    items beside those of the runs. Two short queries, whatever was asked and labelled."""
    checks = _checking_runs(runs)
    resting = [*(run.pk for run in runs), *(pk for pk, *_ in checks)]
    subjects = [change_counters.run_subject(pk) for pk in resting]
    people: list[Any] = []
    if of_people:
        subjects.append(change_counters.project_subject(project.pk))
        people = [project.task_type_id, *project.members.order_by("pk").values_list("pk", "alias")]
    counted = change_counters.load_counts(subjects)
    return compute_digest(
        [code_digest(), [_run_state(run) for run in runs], checks, people, counted]
    )


def _run_state(run: Run) -> list[Any]:
    names = [run.number, run.endpoint.name, run.strategy.slug, run.strategy.number]
    return [run.pk, *names, run.digest, run.parser, run.samples]


def _checking_runs(runs: Sequence[Run]) -> list[list[Any]]:
    """Runs that rest on these, such as checks of their explanations; whether they are in use."""
    over = Run.objects.filter(sources__in=runs).order_by("pk").distinct()
    found = over.values_list("pk", "state", "archived_at", "parser")
    return [[pk, state, str(archived), parser] for pk, state, archived, parser in found]


@cache
def code_digest() -> str:
    """A digest of the code that computes figures."""
    found = hashlib.sha256(f"numpy {np.__version__} scipy {scipy.__version__}".encode())
    for path in code_files():
        found.update(path.read_bytes())
    return found.hexdigest()


def code_files() -> list[Path]:
    """The files of `CODE`, sorted: of a package all modules, of a module also the TOML beside it.

    Raises ModuleNotFoundError if a name of `CODE` is none of ours, so that no move goes unnoticed.
    """
    found: list[Path] = []
    for name in CODE:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"{name} computes figures, but there is no such module.")
        path = Path(spec.origin)
        if path.name == "__init__.py":
            found += path.parent.rglob("*.py")
        else:
            found += filter(Path.exists, (path, path.with_suffix(".toml")))
    return sorted(found)
