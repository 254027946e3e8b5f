"""How well evaluators detect errors, against what experts said of the items (study 001).

Positive is an error. An outcome counts as the headline figures count it: settled, on the item's
main axis, the item held for the same thing now as when it was judged. One query serves all runs.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import Count

from annotation.leads.grouping import COLUMNS, Grouping
from annotation.models import Item, Project
from judging.models import Outcome, Run
from judging.querysets import OutcomeQuerySet
from judging.results import detecting_people, progress
from judging.results.reports import UnknownField
from stats import detection
from stats.detection import Counts, Measure, Scores

ERROR, NO_ERROR = "error", "no_error"
# The study's four prompts: two wordings, two orders of the options. A detector's row is their mean.
PROMPTS = ("detect-1a", "detect-1b", "detect-2a", "detect-2b")
MEAN, PEOPLE = "mean", "people"
READING, AT_A_TIME = "reading outcomes", 5_000
FIGURES: tuple[Measure, ...] = ("accuracy", "precision", "recall", "f1", "mcc")

VERDICTS = {"detected": True, "undetected": False}
# By chance as often as errors occur, and whatever the item is (tables 4 and 8).
BASELINES = {"random": detection.at_random, "always-error": detection.always_error}

Group = tuple[str, ...]


class Said(NamedTuple):
    """What is true of an item, and what a run said; None without a verdict."""

    is_error: bool
    verdict: bool | None
    cluster: str


# By item.
Judged = dict[int, Said]


@dataclass(frozen=True)
class Row:
    """One row of the `detector` table; `run` None for the mean over the prompts of an endpoint,
    and for a baseline, chance or people, which has no endpoint either.

    `n` counts items and `invalid` those without a verdict; for a mean, over prompts or over people,
    the latter is one as well.
    """

    run: Run | None
    endpoint: str
    strategy: str
    group: Mapping[str, str]
    scores: Scores
    n: int
    invalid: float

    def as_row(self) -> dict[str, Any]:
        return {
            "run": self.run.number if self.run else None,
            "endpoint": self.endpoint or None,
            "strategy": self.strategy,
            "total": self.n,
            "missing": self.invalid,
            **self.group,
            "n": self.n,
            "invalid": self.invalid,
            **{name: getattr(self.scores, name) for name in FIGURES},
            "reason": self.scores.reason or None,
        }


def detector(project: Project, runs: Sequence[Run], by: Sequence[str]) -> list[Row]:
    """The figures of every run that judged error items, by fields of the items; then those of
    the baselines on all of these items and of people on the items that they were given for it,
    then the means.

    `by` names columns that items have (category, origin ...) or fields of their own; it may be
    empty: one row a run. Of several runs of one prompt at one endpoint that have a group, the
    last enters its mean. Raises `UnknownField`.
    """
    named = groupings(project, by)
    rows = list(_of_runs(runs, named))
    people = _people(project, named) if rows else ()
    return [*rows, *_baselines(runs, named), *people, *_means(rows)]


def groupings(project: Project, by: Sequence[str]) -> list[Grouping]:
    """What the project's items are grouped by. Raises `UnknownField`, naming what there is."""
    items = Item.objects.in_project(project)
    own = [name for name in by if name not in COLUMNS]
    if unknown := [name for name in own if not items.filter(fields__has_key=name).exists()]:
        sample = items.values_list("fields", flat=True)[:200]
        known = [*COLUMNS, *sorted({name for fields in sample for name in fields})]
        raise UnknownField(
            f"Items cannot be grouped by {', '.join(unknown)}; there are {', '.join(known)}."
        )
    return [Grouping(name, name) for name in by]


def judged(runs: Sequence[Run]) -> OutcomeQuerySet:
    """The outcomes of runs that count."""
    held = Outcome.objects.counted().main().filter(run__in=runs, truth__in=(ERROR, NO_ERROR))
    return held.order_by()


def group_of(values: Iterable[Any]) -> Group:
    """A group as it is named: what an item lacks is "", a number its digits."""
    return tuple("" if value is None else str(value) for value in values)


def by_endpoint(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """The runs of each evaluator in their order, by its name."""
    found: dict[str, list[Run]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: (run.endpoint.name, run.number)):
        found[run.endpoint.name].append(run)
    return found


def by_run(runs: Sequence[Run], named: Sequence[Grouping]) -> dict[int, dict[Group, Judged]]:
    """What each run said of each item, by group; a run that judged nothing has no group."""
    said: dict[int, dict[Group, Judged]] = {run.pk: defaultdict(dict) for run in runs}
    columns = ("run", "item", "truth", "result", "cluster", *(one.of("item__") for one in named))
    for some in progress.apart(runs, READING):
        found = judged(some).values_list(*columns).iterator(chunk_size=AT_A_TIME)
        for run, item, truth, result, cluster, *group in found:
            verdict = Said(truth == ERROR, VERDICTS.get(result), cluster)
            said[run][group_of(group)][item] = verdict
    return said


def scores_of(said: Judged, items: Iterable[int]) -> Scores:
    """The figures on some of the items."""
    return detection.scores(detection.tally(said[item][:2] for item in items))


def lacking(prompts: Collection[str], sizes: Iterable[int]) -> str:
    """Why there is no mean over prompts, which have so many items each; "" if there is one."""
    if absent := [slug for slug in PROMPTS if slug not in prompts]:
        return f"no run of {', '.join(absent)}"
    return "the prompts have unequal numbers of items" if len(set(sizes)) > 1 else ""


def _of_runs(runs: Sequence[Run], named: Sequence[Grouping]) -> Iterator[Row]:
    counts: dict[int, dict[Group, Counts]] = defaultdict(lambda: defaultdict(Counts))
    for group, is_error, row in _counted(runs, named, "run", "result", n=Count("pk")):
        counts[row["run"]][group] += _cell(is_error, VERDICTS.get(row["result"]), row["n"])
    for run in runs:
        names = (run.endpoint.name, run.strategy.slug)
        for group, found in sorted(counts[run.pk].items()):
            scores = detection.scores(found)
            yield Row(run, *names, _named(named, group), scores, found.n, found.missing)


def _baselines(runs: Sequence[Run], named: Sequence[Grouping]) -> Iterator[Row]:
    """What nobody needs to be asked for, on every item that any of the runs judged."""
    counts: dict[Group, Counts] = defaultdict(Counts)
    n = Count("item", distinct=True)
    for group, is_error, row in _counted(runs, named, n=n):
        counts[group] += _cell(is_error, is_error, row["n"])
    for group, found in sorted(counts.items()):
        for slug, of in BASELINES.items():
            yield Row(None, "", slug, _named(named, group), of(found), found.n, 0)


def _people(project: Project, named: Sequence[Grouping]) -> Iterator[Row]:
    """The mean over people, each on the items that they labelled (section 3.3, tables 4 and 8)."""
    for group, people in sorted(detecting_people.verdicts(project, named).items()):
        counts = [detection.tally(said.values()) for said in people.values()]
        items = {item for said in people.values() for item in said}
        invalid = sum(one.missing for one in counts) / len(counts)
        scores = detection.mean([detection.scores(one) for one in counts])
        yield Row(None, "", PEOPLE, _named(named, group_of(group)), scores, len(items), invalid)


def _counted(
    runs: Sequence[Run], named: Sequence[Grouping], *fields: str, n: Count
) -> Iterator[tuple[Group, bool, dict[str, Any]]]:
    keys = {f"group_{place}": one.of("item__") for place, one in enumerate(named)}
    for row in judged(runs).values("truth", *fields, **keys).annotate(n=n):
        yield group_of(row[key] for key in keys), row["truth"] == ERROR, row


def _named(named: Sequence[Grouping], group: Group) -> dict[str, str]:
    return {one.name: value for one, value in zip(named, group, strict=True)}


def _cell(is_error: bool, said: bool | None, n: int) -> Counts:
    if said is None:
        return Counts(missing_errors=n) if is_error else Counts(missing_others=n)
    if is_error:
        return Counts(tp=n) if said else Counts(fn=n)
    return Counts(fp=n) if said else Counts(tn=n)


def _means(rows: Iterable[Row]) -> Iterator[Row]:
    last: dict[tuple[str, Group], dict[str, Row]] = defaultdict(dict)
    for row in rows:
        if row.strategy in PROMPTS:
            last[row.endpoint, tuple(row.group.values())][row.strategy] = row
    for (endpoint, _), found in sorted(last.items()):
        if len(found) > 1:
            yield _mean(endpoint, [found[slug] for slug in PROMPTS if slug in found])


def _mean(endpoint: str, rows: Sequence[Row]) -> Row:
    """The mean over the four prompts' values; none unless all are there, over as many items."""
    scores = detection.mean([row.scores for row in rows])
    if reason := lacking({row.strategy for row in rows}, (row.n for row in rows)):
        scores = Scores(scores.n, scores.invalid, None, None, None, None, None, reason)
    invalid = sum(row.invalid for row in rows) / len(rows)
    return Row(None, endpoint, MEAN, rows[0].group, scores, min(row.n for row in rows), invalid)
