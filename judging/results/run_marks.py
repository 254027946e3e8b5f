"""The runs that are compared by default, and why other runs are not.

The default runs are finished, cover all items that existed when they began, and are not superseded
by a later run with the same strategy and evaluator. Canaries, runs over part of the items, stopped
runs and superseded runs have a mark; they are shown if the query names them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from annotation.models import Project
from judging.models import Run
from judging.runs.pinning import TRANSIENT_KEYS
from judging.strategies import compute_digest

# Help text of the option --run.
RUN_HELP = (
    "only these runs; default: finished runs over all items, without canaries and superseded "
    "runs; if there are none, all runs that are not archived"
)
PART = "part"
# The kinds of marks, with a text for one such run and a text for several.
KIND_NAMES = {
    "canary": ("canary", "canaries"),
    PART: ("over part of the items", "over part of the items"),
    "unfinished": ("not finished", "not finished"),
    "archived": ("archived", "archived"),
    "superseded": ("superseded", "superseded"),
    "source": ("based on one of these", "based on some of these"),
}
# Pinned values in which a superseding run may differ: name and address of the endpoint, which
# examples were drawn, the parser of the replies, and the file that the replies came in.
IGNORED_CONFIG = (*TRANSIENT_KEYS, "name", "address", "answers", "parser", "recorded")


class RunMark(NamedTuple):
    """The reason why a run is not compared by default, as a kind and in words."""

    kind: str
    words: str


def load_marked_runs(project: Project) -> list[Run]:
    """Load all judging runs, including archived runs, in order and with their `marks`. Makes two
    queries.

    A run is superseded by the last unmarked run with the same strategy version, evaluator and
    options. Runs made from marked runs are marked too, unless the mark is "archived".
    """
    runs = list(Run.objects.in_project(project).judging().for_results())
    sources = _load_sources(project, runs)
    for run in runs:
        run.marks = [*_own_marks(run), *_inherited_marks(run, sources[run.pk])]
    last: dict[str, Run] = {}
    for run in reversed(runs):
        if (
            not run.marks
            and (later := last.setdefault(_config_digest(run, sources[run.pk]), run)) != run
        ):
            run.marks = [RunMark("superseded", f"superseded by run {later.number}")]
    for run in runs:
        run.marks = run.marks or _inherited_marks(run, sources[run.pk])
    return runs


def select_default(runs: Iterable[Run]) -> list[Run]:
    """Select the runs without a mark; if all runs have a mark, select all that are not archived."""
    there = [run for run in runs if run.archived_at is None]
    return [run for run in there if not run.marks] or there


def hide_numbers(runs: Sequence[Run]) -> None:
    """Name these runs by their name alone, those that have one which no other of them has; archived
    runs may share the name of another run."""
    names = Counter(run.name.lower() for run in runs)
    for run in runs:
        run.hides_number = bool(run.name) and names[run.name.lower()] == 1


def hide_shared_part(runs: Sequence[Run]) -> None:
    """Leave out of the names of several runs that each is over part of the items, if all are: it
    tells none from another."""
    is_shared = len(runs) > 1 and all(any(mark.kind == PART for mark in run.marks) for run in runs)
    for run in runs:
        run.hides_part = is_shared


def list_mark_words(run: Run) -> list[str]:
    """The words of the marks that are part of a run's name."""
    return [mark.words for mark in run.marks if mark.kind != PART or not run.hides_part]


def describe_set_aside(runs: Sequence[Run]) -> str:
    """The runs that are neither archived nor compared by default, counted by their first mark."""
    there = [run for run in runs if run.archived_at is None]
    shown = select_default(there)
    kinds = [run.marks[0].kind for run in there if run not in shown]
    numbers = {kind: kinds.count(kind) for kind in KIND_NAMES if kind in kinds}
    return ", ".join(f"{n} {KIND_NAMES[kind][n > 1]}" for kind, n in numbers.items())


def _load_sources(project: Project, runs: Sequence[Run]) -> Mapping[int, list[Run]]:
    """The earlier runs that each run is made from or is about, by run id. Canary runs have no such
    sources: they follow the first canary run, but that is no reason for a mark."""
    known = {run.pk: run for run in runs}
    found: dict[int, list[Run]] = {run.pk: [] for run in runs}
    pairs = Run.sources.through.objects.filter(from_run__project=project)
    for made, source in pairs.order_by("to_run__number").values_list("from_run", "to_run"):
        if made in known and source in known and not known[made].occasion:
            found[made].append(known[source])
    return found


def _own_marks(run: Run) -> list[RunMark]:
    found = []
    if run.occasion:
        found.append(RunMark("canary", "canary"))
    if run.is_part:
        found.append(RunMark(PART, "part of the items"))
    if run.state != Run.State.FINISHED:
        found.append(RunMark("unfinished", run.state))
    if run.archived_at:
        found.append(RunMark("archived", "pilot" if "pilot" in run.pinned else "archived"))
    return found


def _inherited_marks(run: Run, sources: Iterable[Run]) -> list[RunMark]:
    marks = ((one, mark) for one in sources for mark in one.marks if mark.kind != "archived")
    first = next(marks, None)
    return [RunMark("source", f"of run {first[0].number}, {first[1].words}")] if first else []


def _config_digest(run: Run, sources: Iterable[Run]) -> str:
    """A digest that is equal for runs with the same strategy, options and evaluator."""
    pinned = {name: value for name, value in run.pinned.items() if name not in IGNORED_CONFIG}
    verdicts = run.pinned.get("recorded", {}).get("verdicts")
    made_of = [source.pk for source in sources]
    who = [run.kind, run.strategy_id, run.endpoint_id, run.samples]
    return compute_digest([who, pinned, verdicts, made_of])
