"""What a lead sees of one member: labels, pace, agreement with others, control items, rounds."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, Max

from annotation import tasktypes
from annotation.labelling import control_items, qualification
from annotation.labelling.control_items import ControlResult
from annotation.labelling.models.labels import LabelQuerySet
from annotation.labelling.qualification import QualificationRound
from annotation.models import Label, Membership, Stage
from annotation.reports import attention, label_times
from stats.spread import Quartiles

SHOWN_LABELS = 20


@dataclass(frozen=True)
class WithOther:
    """How often two members gave the items that both labelled the same deciding answer."""

    alias: str
    items: int
    alike: int

    @property
    def share(self) -> float:
        """The share of equal answers, as a fraction of 1."""
        return self.alike / self.items


@dataclass(frozen=True)
class PersonReport:
    """The work of one member. `words_a_second` is as in `attention.measure_speeds`. `choices`
    counts the current labels by choice, with its title;
    `control` is None without an answer to a control item."""

    labels: int
    counted: int
    last: object
    seconds: Quartiles
    words_a_second: float | None
    choices: tuple[tuple[str, str, int], ...]
    others: tuple[WithOther, ...]
    control: ControlResult | None
    rounds: list[QualificationRound]
    latest: list[Label]


def build_report(member: Membership, now: datetime) -> PersonReport:
    """Build the report of one member in a fixed number of queries."""
    labels = Label.objects.in_project(member.project).in_data_set()
    labels = labels.current().at_stage(Stage.LABEL)
    mine = labels.filter(member=member)
    times = label_times.merge_times(label_times.count_times(mine, F("stage")))
    given = dict(mine.counted().values_list("item_id", "choice"))
    counts = Counter(mine.values_list("choice", flat=True))
    shown = mine.select_related("item").defer("item__fields")
    task = tasktypes.load_version(member.project.task_type)
    results = control_items.load_results(member.project)
    return PersonReport(
        labels=sum(counts.values()),
        counted=len(given),
        last=mine.aggregate(last=Max("created_at"))["last"],
        seconds=label_times.measure_spread(times),
        words_a_second=attention.measure_speeds(member.project, now, member).get(member.alias),
        choices=tuple((one, task.title_of(one), n) for one, n in counts.most_common()),
        others=_compare(member, labels, given),
        control=next((one for one in results if one.member == member), None),
        rounds=qualification.list_rounds(member),
        latest=list(shown.order_by("-created_at", "-pk")[:SHOWN_LABELS]),
    )


def _compare(
    member: Membership, labels: LabelQuerySet, given: dict[int, str]
) -> tuple[WithOther, ...]:
    """Compare the member's counted labels, by item id, with those of each other member."""
    own = labels.counted().filter(member=member).values("item")
    rows = labels.counted().filter(item__in=own).exclude(member=member)
    both: Counter[str] = Counter()
    alike: Counter[str] = Counter()
    for alias, item, choice in rows.values_list("member__alias", "item_id", "choice").iterator():
        both[alias] += 1
        alike[alias] += choice == given.get(item)
    return tuple(WithOther(alias, n, alike[alias]) for alias, n in both.most_common())
