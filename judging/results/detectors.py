"""Detection scores of evaluators against experts' labels (study 001).

Positive is an error. Outcomes count as in the headline figures: settled, on the item's main axis,
and the item's final label is the same as when it was judged. One query serves all runs.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import Count, F

from annotation.models import Item, Label, Project, Stage
from annotation.reports.grouping import GROUPING_COLUMNS, Grouping
from judging.models import Outcome, Run
from judging.results import progress
from judging.results.counted import UnknownField
from judging.runs.models import OutcomeQuerySet
from stats import detection
from stats.detection import ConfusionCounts, DetectionScores, Measure

ERROR, NO_ERROR = "error", "no_error"
VERDICT_BY_ANSWER = {ERROR: True, NO_ERROR: False}

# By member and item: whether the item is an error, and whether the member called it an error (None
# if not sure).
ByMember = dict[int, dict[int, tuple[bool, bool | None]]]


def load_people_verdicts(
    project: Project, named: Sequence[Grouping]
) -> dict[tuple[str, ...], ByMember]:
    """Load each person's verdicts for each group of items, with the final labels of the same texts.
    Labels are left out if the texts were corrected later. Makes one query."""
    found: dict[tuple[str, ...], ByMember] = defaultdict(lambda: defaultdict(dict))
    labels = Label.objects.in_project(project).at_stage(Stage.BASELINE).counted().of_live_items()
    held = labels.filter(
        item__resolutions__current=True,
        item__resolutions__revision=F("revision"),
        item__resolutions__value__in=VERDICT_BY_ANSWER,
    ).order_by("member", "item__position")
    groups = (one.expression("item__") for one in named)
    columns = ("member", "item", "choice", "item__resolutions__value")
    for member, item, choice, truth, *group in held.values_list(*columns, *groups):
        key = tuple("" if value is None else str(value) for value in group)
        found[key][member][item] = (truth == ERROR, VERDICT_BY_ANSWER.get(choice))
    return found


# The study's four prompts: two wordings, two orders of the options. A detector's row is their mean.
PROMPTS = ("detect-1a", "detect-1b", "detect-2a", "detect-2b")
MEAN, PEOPLE = "mean", "people"
READING, AT_A_TIME = "reading outcomes", 5_000
FIGURES: tuple[Measure, ...] = ("accuracy", "precision", "recall", "f1", "mcc")
COLUMNS = ("n", "invalid", *FIGURES, "reason")

VERDICT_BY_RESULT = {"detected": True, "undetected": False}
# Baselines: say "error" at random, as often as errors occur; always say "error" (tables 4, 8).
BASELINES = {"random": detection.score_at_random, "always-error": detection.score_always_error}

GroupKey = tuple[str, ...]


class DetectorVerdict(NamedTuple):
    """The truth about an item and a run's verdict; None without a verdict."""

    is_error: bool
    verdict: bool | None
    cluster: str


# By item id.
VerdictsByItem = dict[int, DetectorVerdict]


@dataclass(frozen=True)
class DetectorRow:
    """One row of the `detector` table. `run` is None for the mean over the prompts of an endpoint,
    and for a baseline (chance or people). A baseline has no endpoint either.

    `n` counts items and `invalid` those without a verdict; for a mean, over prompts or over people,
    `invalid` is a mean as well.
    """

    run: Run | None
    endpoint: str
    strategy: str
    group: Mapping[str, str]
    scores: DetectionScores
    n: int
    invalid: float

    def as_row(self) -> dict[str, Any]:
        """The values of the row by column; a baseline has neither run nor endpoint."""
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


def tabulate(project: Project, runs: Sequence[Run], by: Sequence[str]) -> list[DetectorRow]:
    """Compute the scores of every run that judged error items, by fields of the items. These are
    followed by the baselines on all these items, people on their baseline items, and the means.

    `by` names columns of items (category, origin ...) or own fields of items; if it is empty, there
    is one row per run. If an endpoint has several runs of one prompt over a group, the mean uses
    the last one. Raises `UnknownField`.
    """
    named = check_groupings(project, by)
    rows = list(_run_rows(runs, named))
    people = _people_rows(project, named) if rows else ()
    return [*rows, *_baseline_rows(runs, named), *people, *_mean_rows(rows)]


def check_groupings(project: Project, by: Sequence[str]) -> list[Grouping]:
    """The groupings of the project's items. Raises `UnknownField`, naming the possible fields."""
    items = Item.objects.in_project(project)
    own = [name for name in by if name not in GROUPING_COLUMNS]
    if unknown := [name for name in own if not items.filter(fields__has_key=name).exists()]:
        sample = items.values_list("fields", flat=True)[:200]
        known = [*GROUPING_COLUMNS, *sorted({name for fields in sample for name in fields})]
        raise UnknownField(
            f"Items cannot be grouped by {', '.join(unknown)}. Choose from: {', '.join(known)}."
        )
    return [Grouping(name, name) for name in by]


def counted_outcomes(runs: Sequence[Run]) -> OutcomeQuerySet:
    """The counted outcomes of these runs."""
    held = Outcome.objects.counted().main().filter(run__in=runs, truth__in=(ERROR, NO_ERROR))
    return held.order_by()


def make_group_key(values: Iterable[Any]) -> GroupKey:
    """Build the key of a group as a tuple of texts; a missing value is ""."""
    return tuple("" if value is None else str(value) for value in values)


def group_by_endpoint(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """The runs of each evaluator, sorted, by the evaluator's name."""
    found: dict[str, list[Run]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: (run.endpoint.name, run.number)):
        found[run.endpoint.name].append(run)
    return found


def load_verdicts(
    runs: Sequence[Run], named: Sequence[Grouping]
) -> dict[int, dict[GroupKey, VerdictsByItem]]:
    """Each run's verdicts by group and item; a run that judged nothing has no group."""
    said: dict[int, dict[GroupKey, VerdictsByItem]] = {run.pk: defaultdict(dict) for run in runs}
    columns = (
        "run",
        "item",
        "truth",
        "result",
        "cluster",
        *(one.expression("item__") for one in named),
    )
    for some in progress.split_if_watched(runs, READING):
        found = counted_outcomes(some).values_list(*columns).iterator(chunk_size=AT_A_TIME)
        for run, item, truth, result, cluster, *group in found:
            verdict = DetectorVerdict(truth == ERROR, VERDICT_BY_RESULT.get(result), cluster)
            said[run][make_group_key(group)][item] = verdict
    return said


def score_items(said: VerdictsByItem, items: Iterable[int]) -> DetectionScores:
    """The scores on some of the items."""
    return detection.compute_scores(detection.count_verdicts(said[item][:2] for item in items))


def why_no_mean(prompts: Collection[str], sizes: Iterable[int]) -> str:
    """The reason why prompts with these numbers of items have no mean; "" if they have one."""
    if absent := [slug for slug in PROMPTS if slug not in prompts]:
        return f"no run of {', '.join(absent)}"
    return "the prompts have unequal numbers of items" if len(set(sizes)) > 1 else ""


def _run_rows(runs: Sequence[Run], named: Sequence[Grouping]) -> Iterator[DetectorRow]:
    counts: dict[int, dict[GroupKey, ConfusionCounts]] = defaultdict(
        lambda: defaultdict(ConfusionCounts)
    )
    for group, is_error, row in _count_outcomes(runs, named, "run", "result", n=Count("pk")):
        counts[row["run"]][group] += _to_counts(
            is_error, VERDICT_BY_RESULT.get(row["result"]), row["n"]
        )
    for run in runs:
        names = (run.endpoint.name, run.strategy.slug)
        for group, found in sorted(counts[run.pk].items()):
            scores = detection.compute_scores(found)
            yield DetectorRow(
                run, *names, _group_columns(named, group), scores, found.n, found.missing
            )


def _baseline_rows(runs: Sequence[Run], named: Sequence[Grouping]) -> Iterator[DetectorRow]:
    """The baselines without any evaluator, on all items that any of the runs judged."""
    counts: dict[GroupKey, ConfusionCounts] = defaultdict(ConfusionCounts)
    n = Count("item", distinct=True)
    for group, is_error, row in _count_outcomes(runs, named, n=n):
        counts[group] += _to_counts(is_error, is_error, row["n"])
    for group, found in sorted(counts.items()):
        for slug, of in BASELINES.items():
            yield DetectorRow(None, "", slug, _group_columns(named, group), of(found), found.n, 0)


def _people_rows(project: Project, named: Sequence[Grouping]) -> Iterator[DetectorRow]:
    """The mean over people, each on the items that they labelled (section 3.3, tables 4 and 8)."""
    for group, people in sorted(load_people_verdicts(project, named).items()):
        counts = [detection.count_verdicts(said.values()) for said in people.values()]
        items = {item for said in people.values() for item in said}
        invalid = sum(one.missing for one in counts) / len(counts)
        scores = detection.mean_scores([detection.compute_scores(one) for one in counts])
        yield DetectorRow(
            None,
            "",
            PEOPLE,
            _group_columns(named, make_group_key(group)),
            scores,
            len(items),
            invalid,
        )


def _count_outcomes(
    runs: Sequence[Run], named: Sequence[Grouping], *fields: str, n: Count
) -> Iterator[tuple[GroupKey, bool, dict[str, Any]]]:
    keys = {f"group_{place}": one.expression("item__") for place, one in enumerate(named)}
    for row in counted_outcomes(runs).values("truth", *fields, **keys).annotate(n=n):
        yield make_group_key(row[key] for key in keys), row["truth"] == ERROR, row


def _group_columns(named: Sequence[Grouping], group: GroupKey) -> dict[str, str]:
    return {one.name: value for one, value in zip(named, group, strict=True)}


def _to_counts(is_error: bool, said: bool | None, n: int) -> ConfusionCounts:
    if said is None:
        return ConfusionCounts(missing_errors=n) if is_error else ConfusionCounts(missing_others=n)
    if is_error:
        return ConfusionCounts(tp=n) if said else ConfusionCounts(fn=n)
    return ConfusionCounts(fp=n) if said else ConfusionCounts(tn=n)


def _mean_rows(rows: Iterable[DetectorRow]) -> Iterator[DetectorRow]:
    last: dict[tuple[str, GroupKey], dict[str, DetectorRow]] = defaultdict(dict)
    for row in rows:
        if row.strategy in PROMPTS:
            last[row.endpoint, tuple(row.group.values())][row.strategy] = row
    for (endpoint, _), found in sorted(last.items()):
        if len(found) > 1:
            yield _mean_row(endpoint, [found[slug] for slug in PROMPTS if slug in found])


def _mean_row(endpoint: str, rows: Sequence[DetectorRow]) -> DetectorRow:
    """The mean over the four prompts. It has no value unless all four have the same number of
    items."""
    scores = detection.mean_scores([row.scores for row in rows])
    if reason := why_no_mean({row.strategy for row in rows}, (row.n for row in rows)):
        scores = DetectionScores(scores.n, scores.invalid, None, None, None, None, None, reason)
    invalid = sum(row.invalid for row in rows) / len(rows)
    return DetectorRow(
        None, endpoint, MEAN, rows[0].group, scores, min(row.n for row in rows), invalid
    )
