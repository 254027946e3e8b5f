"""Detection scores of evaluators against experts' labels (study 001).

Positive is an error. Outcomes count as in the headline figures: settled, on the item's main axis,
and the item's final label is the same as when it was judged. One query serves all runs.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from django.db.models import F

from annotation.items import taxonomy
from annotation.models import Item, Label, Project, Stage
from annotation.reports import grouping
from annotation.reports.grouping import GROUPING_COLUMNS, Grouping
from judging.models import Outcome, Run
from judging.results import progress
from judging.results.counted import GroupBy, UnknownField
from judging.runs.models import OutcomeQuerySet
from stats import detection
from stats.detection import DetectionScores, Measure

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
    labels = Label.objects.in_project(project).at_stage(Stage.BASELINE).counted()
    held = (
        labels.in_data_set()
        .filter(
            item__resolutions__current=True,
            item__resolutions__revision=F("revision"),
            item__resolutions__value__in=VERDICT_BY_ANSWER,
        )
        .order_by("member", "item__position")
    )
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

VERDICT_BY_RESULT = {"detected": True, "undetected": False}

GroupKey = tuple[str, ...]


class DetectorVerdict(NamedTuple):
    """The truth about an item and a run's verdict; None without a verdict."""

    is_error: bool
    verdict: bool | None
    cluster: str


# By item id.
VerdictsByItem = dict[int, DetectorVerdict]


def check_groupings(project: Project, by: Sequence[str]) -> list[Grouping]:
    """The groupings of the project's items. Raises `UnknownField`, naming the possible fields."""
    items = Item.objects.in_project(project)
    own = [name for name in by if name not in GROUPING_COLUMNS]
    if unknown := [name for name in own if not items.filter(fields__has_key=name).exists()]:
        known = [*GROUPING_COLUMNS, *grouping.list_field_names(project)]
        raise UnknownField(
            f"Items cannot be grouped by {', '.join(unknown)}. Choose from: {', '.join(known)}."
        )
    return [Grouping(name, name, taxonomy.load_taxonomy(project)) for name in by]


ANY_FIELD = f"{', '.join(GROUPING_COLUMNS)}, any own field of the items (task, response_model ...)"
BY_ITEM_FIELDS = GroupBy(f"{ANY_FIELD}, or empty", check_groupings)


def counted_outcomes(runs: Sequence[Run]) -> OutcomeQuerySet:
    """The counted outcomes of these runs, without duplicates."""
    held = Outcome.objects.counted().main().filter(run__in=runs, truth__in=(ERROR, NO_ERROR))
    return held.originals().order_by()


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
