"""How well evaluators detect errors, against what experts said of the items (study 001).

Positive is an error. An outcome counts as the headline figures count it: settled, on the item's
main axis, the item held for the same thing now as when it was judged.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count

from annotation.leads.grouping import COLUMNS, Grouping
from annotation.models import Item, Project
from judging.models import Outcome, Run
from judging.querysets import OutcomeQuerySet
from judging.reports import UnknownField
from stats import detection
from stats.detection import Counts, Scores

ERROR, NO_ERROR = "error", "no_error"
# The study's four prompts: two wordings, two orders of the options. A detector's row is their mean.
PROMPTS = ("detect-1a", "detect-1b", "detect-2a", "detect-2b")
MEAN = "mean"
FIGURES = ("accuracy", "precision", "recall", "f1", "mcc")

_VERDICTS = {"detected": True, "undetected": False}

Group = tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One row of the `detector` table; `run` None for the mean over the prompts of an endpoint.

    `n` counts items and `invalid` those without a verdict; for a mean the latter is one as well.
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
            "endpoint": self.endpoint,
            "strategy": self.strategy,
            "total": self.n,
            "missing": self.invalid,
            **self.group,
            "n": self.n,
            "invalid": self.invalid,
            **{name: getattr(self.scores, name) for name in FIGURES},
            "reason": self.scores.reason or None,
        }


def detector(
    project: Project, runs: Sequence[Run], by: Sequence[str], *, common: bool = False
) -> list[Row]:
    """The figures of every run that judged error items, by fields of the items; then the means.

    `by` names columns that items have (category, origin ...) or fields of their own; it may be
    empty: one row a run. With `common` runs over different items are compared on those that all
    of them have. Of several runs of one prompt at one endpoint that have a group, the last enters
    its mean. Raises `UnknownField`.
    """
    _check(project, by)
    groupings = [Grouping(name, name) for name in by]
    items = _common(runs) if common else None
    rows = [row for run in runs for row in _of_run(run, groupings, items)]
    return [*rows, *_means(rows)]


def _common(runs: Sequence[Run]) -> Collection[int]:
    """The items that every one of the runs counts."""
    each = (set(_judged(run).values_list("item", flat=True)) for run in runs)
    return set.intersection(*each) if runs else set()


def _judged(run: Run) -> OutcomeQuerySet:
    return Outcome.objects.counted().main().filter(run=run, truth__in=(ERROR, NO_ERROR))


def _check(project: Project, by: Sequence[str]) -> None:
    items = Item.objects.in_project(project)
    own = [name for name in by if name not in COLUMNS]
    if unknown := [name for name in own if not items.filter(fields__has_key=name).exists()]:
        sample = items.values_list("fields", flat=True)[:200]
        known = [*COLUMNS, *sorted({name for fields in sample for name in fields})]
        raise UnknownField(
            f"Items cannot be grouped by {', '.join(unknown)}; there are {', '.join(known)}."
        )


def _of_run(
    run: Run, groupings: Sequence[Grouping], items: Collection[int] | None
) -> Iterator[Row]:
    for group, counts in sorted(_counts(run, groupings, items).items()):
        named = {one.name: value for one, value in zip(groupings, group, strict=True)}
        scores = detection.scores(counts)
        names = (run.endpoint.name, run.strategy.slug)
        yield Row(run, *names, named, scores, counts.n, counts.missing)


def _counts(
    run: Run, groupings: Sequence[Grouping], items: Collection[int] | None
) -> dict[Group, Counts]:
    judged = _judged(run) if items is None else _judged(run).filter(item__in=items)
    keys = {f"group_{place}": one.of("item__") for place, one in enumerate(groupings)}
    found = judged.order_by().values("truth", "result", **keys).annotate(n=Count("pk"))
    counts: dict[Group, Counts] = defaultdict(Counts)
    for row in found:
        group = tuple("" if row[key] is None else str(row[key]) for key in keys)
        counts[group] += _cell(row["truth"] == ERROR, _VERDICTS.get(row["result"]), row["n"])
    return counts


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
    there = {row.strategy for row in rows}
    reason = ""
    if absent := [slug for slug in PROMPTS if slug not in there]:
        reason = f"no run of {', '.join(absent)}"
    elif len({row.n for row in rows}) > 1:
        reason = "the prompts have unequal numbers of items"
    if reason:
        scores = Scores(scores.n, scores.invalid, None, None, None, None, None, reason)
    invalid = sum(row.invalid for row in rows) / len(rows)
    return Row(None, endpoint, MEAN, rows[0].group, scores, min(row.n for row in rows), invalid)
