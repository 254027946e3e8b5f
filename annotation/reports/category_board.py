"""The category board for leads: the share valid of each category, with its uncertainty.

All figures are about items of purpose test that are neither deleted nor duplicates. The number of
queries is fixed, and no texts are read.

Krippendorff's alpha per group uses the same labels as the page of agreement
(`agreement_answers.load_label_answers`). Only the deciding answer is read, so that a hundred
thousand labels take little time. Alpha has no interval here.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
from django.db.models import Case, Count, Exists, F, OuterRef, Q, Value, When
from django.db.models.fields.json import KeyTextTransform

from annotation import tasktypes
from annotation.db.counting import count_by_keys
from annotation.items import taxonomy
from annotation.labelling.models.labels import ERROR_ITEM, SI_ITEM
from annotation.models import Item, Label, Project, Resolution, Revision, Stage
from annotation.reports import agreement_answers, label_times
from annotation.reports.grouping import Grouping
from annotation.reports.label_times import key_as_text
from annotation.tasktypes import main_field
from annotation.tasktypes.main_field import MainField
from stats import agreement, ratings
from stats.agreement import Level
from stats.estimates import Estimate
from stats.rates import ClusterSums, clustered_wilson, items_to_overturn, sum_clusters
from stats.spread import Quartiles

# The answer of one annotator to one item, by (item id, member id).
RaterAnswers = dict[tuple[int, int], str]


def compute_alphas(project: Project, by: Grouping) -> dict[str, Estimate]:
    """Compute alpha of the deciding question at its level of measurement, by group. `n` counts the
    items with two labels."""
    decides = main_field.load_main_field(project)
    return {
        group: _alpha(said, decides.level, [value for value, _ in decides.options])
        for group, said in _load_answers(project, by).items()
    }


def _load_answers(project: Project, by: Grouping) -> dict[str, RaterAnswers]:
    """Load the same labels as `agreement_answers.load_label_answers`, by group."""
    labels = Label.objects.in_project(project).in_data_set().at_stage(Stage.LABEL)
    own = labels.filter(informed=False, withdrawn_at=None)
    informed = labels.counted().filter(informed=True)
    in_force = {
        (item, member): revision
        for item, member, revision in informed.values_list("item", "member", "revision")
    }
    rows = own.order_by("created_at", "pk").values_list(
        by.expression("item__"),
        "item",
        "member",
        main_field.load_main_field(project).of_label(),
        Case(When(current=True, then=F("counted"))),
        "revision",
    )
    last: dict[tuple[int, int], tuple[str, str, bool | None, int]] = {}
    for group, item, member, said, counts, revision in rows.iterator(chunk_size=5000):
        last[item, member] = key_as_text(group), key_as_text(said), counts, revision
    found: dict[str, RaterAnswers] = defaultdict(dict)
    for place, (group, said, counts, revision) in last.items():
        if said and (counts or in_force.get(place) == revision):
            found[group][place] = said
    return found


def _alpha(said: RaterAnswers, level: str, options: Sequence[str]) -> Estimate:
    names = sorted(set(said.values()))
    values = _as_numbers(names, level, options)
    used: Level = "nominal"
    if values is not None:
        used = "interval" if level == "interval" else "ordinal"
    code = dict(zip(names, values if values is not None else range(len(names)), strict=True))
    items = {item: row for row, item in enumerate(dict.fromkeys(item for item, _ in said))}
    people = {member: column for column, member in enumerate({member for _, member in said})}
    table = np.full((len(items), len(people)), np.nan)
    for (item, member), name in said.items():
        table[items[item], people[member]] = code[name]
    return agreement.krippendorff_alpha(ratings.ratings_from_values(table), used).point()


def _as_numbers(names: Sequence[str], level: str, options: Sequence[str]) -> list[float] | None:
    """Convert the answers to numbers: their own number, or the position of the option of an ordinal
    choice; nan for an item without an answer. None if the answers have no order."""
    if level not in ("ordinal", "interval"):
        return None
    if any(map(agreement_answers.NUMBER_PATTERN.fullmatch, names)):
        return [
            float(one) if agreement_answers.NUMBER_PATTERN.fullmatch(one) else np.nan
            for one in names
        ]
    steps = [option for option in options if option != agreement_answers.NOT_SURE]
    return [float(steps.index(one)) if one in steps else np.nan for one in names]


DEFAULT_THRESHOLD = 0.5
# Stands for the answer that is intended for each item's category, see `_wanted_answer`.
AS_INTENDED = "as-meant"
# The answer that is intended for the categories of an effect; for any other it is an error item.
EITHER = "either"
INTENDED = {"none": SI_ITEM, "either": EITHER}


@dataclass(frozen=True)
class BoardRow:
    """One category (or other group) of the board. Shares are fractions of 1.

    answer: the answer whose share is shown; AS_INTENDED if different answers are intended for the
        items of the group.
    share: share of the resolved items whose final label is that answer.
    corrected: share of the resolved items with a revision that a member wrote.
    surgicality: of the changed pieces in the claim checks, the share that the claim explains. The
        value of an item is the mean of its labels; the figure is the mean over items.
    alpha: Krippendorff's alpha of the deciding question, as on the page of agreement; no interval.
    detectability: of the annotators who saw the item's current texts blind first, the share who
        said that there is an error; the mean over items.
    more: the largest number of further items, all with the opposite outcome, for which the interval
        of `share` would stay on its side of the threshold (stats.rates.items_to_overturn). 0 means
        that a single item might move it across. None if the interval contains the threshold, so
        that the result is still open.
    """

    name: str
    title: str
    items: int
    resolved: int
    answer: str
    share: Estimate
    corrected: Estimate
    surgicality: Estimate
    alpha: Estimate
    seconds: Quartiles
    detectability: Estimate
    more: int | None
    reasons: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class BoardColumn:
    """A column of the board with its explanation. `name` is its value in `BoardRow`, and its sort
    key in the URL. The plain kind is a number of items."""

    name: str
    title: str
    help: str
    kind: ClassVar[str] = "count"

    @property
    def in_files(self) -> Mapping[str, Callable[[BoardRow], Any]]:
        """Its columns in files and in the API, and how each is read from a row. The page is sorted
        by the one with the column's name, unless `place` says otherwise."""
        return {self.name: attrgetter(self.name)}

    def place(self, row: BoardRow) -> float | None:
        """The sort key of a row; None is last in both directions."""
        found: float | None = self.in_files[self.name](row)
        return found


@dataclass(frozen=True)
class Rate(BoardColumn):
    """A rate with its interval, and with its number of items if it is not about all resolved items.
    `bad` says which rates are shaded darker, "high" or "low"."""

    bad: str
    with_n: bool = False
    kind: ClassVar[str] = "rate"

    @property
    def in_files(self) -> Mapping[str, Callable[[BoardRow], Any]]:
        parts = {"": "value", "_low": "low", "_high": "high"}
        if self.with_n:
            parts["_items"] = "n"
        return {f"{self.name}{end}": attrgetter(f"{self.name}.{of}") for end, of in parts.items()}


class ShareOfAnswer(Rate):
    """The share of the chosen answer, which is also its title."""

    kind = "share"

    @property
    def in_files(self) -> Mapping[str, Callable[[BoardRow], Any]]:
        return {"share_of": attrgetter("answer"), **super().in_files}


class Alpha(BoardColumn):
    """Krippendorff's alpha with its number of items; no interval."""

    kind = "alpha"

    @property
    def in_files(self) -> Mapping[str, Callable[[BoardRow], Any]]:
        return {"alpha": attrgetter("alpha.value"), "alpha_items": attrgetter("alpha.n")}


class MedianTime(BoardColumn):
    """The median of the labelling times, in seconds."""

    kind = "time"

    @property
    def in_files(self) -> Mapping[str, Callable[[BoardRow], Any]]:
        return {"seconds_median": attrgetter("seconds.median")}

    def place(self, row: BoardRow) -> float | None:
        return row.seconds.median


class FurtherItems(BoardColumn):
    """How many more items with the opposite result would not change it."""

    kind = "more"


COLUMNS = (
    BoardColumn("items", "Items", "Without deleted items and duplicates."),
    BoardColumn("resolved", "Resolved", "Items with a final label."),
    ShareOfAnswer(
        "share",
        "",
        "Share of items with a final label; the interval allows for several items per source "
        "question. As intended: score-invariant in score-invariant categories, valid in all "
        "others.",
        bad="low",
    ),
    Rate(
        "corrected",
        "Corrected",
        "Items with a final label whose text a member corrected.",
        bad="high",
    ),
    Rate(
        "surgicality",
        "Surgicality",
        "Share of changed pieces explained by the claim, mean over items.",
        bad="low",
        with_n=True,
    ),
    Alpha(
        "alpha",
        "Alpha",
        "Krippendorff’s alpha of the deciding question, over items with two or more labels.",
    ),
    MedianTime(
        "seconds", "Median time", "Labelling time, without labels that took over 30 minutes."
    ),
    Rate(
        "detectability",
        "Detected blind",
        "Share of annotators who saw an error before the change was shown, mean over items.",
        bad="low",
        with_n=True,
    ),
    FurtherItems(
        "more",
        "Robust to",
        "Even if this many more items all had the opposite result, the interval would stay on "
        "the same side of the threshold. A dash: the interval contains the threshold, so the "
        "next items may decide.",
    ),
)


# The columns in files and in the API: each rate is split into its value and its interval's ends.
IN_FILES: Mapping[str, Callable[[BoardRow], Any]] = {
    "group": attrgetter("name"),
    **{name: read for column in COLUMNS for name, read in column.in_files.items()},
    "reasons": lambda row: dict(row.reasons),
}


def list_columns(rows: Sequence[BoardRow]) -> list[BoardColumn]:
    """The columns to show, without those about claims or blind judgements that no item has."""
    used = {
        "surgicality": any(row.surgicality.n for row in rows),
        "detectability": any(row.detectability.n for row in rows),
    }
    return [column for column in COLUMNS if used.get(column.name, True)]


@dataclass
class _Sums:
    """The data for the rates of a group: (items, hits) for each cluster."""

    resolved: int = 0
    share: list[tuple[int, float]] = field(default_factory=list)
    corrected: list[tuple[int, float]] = field(default_factory=list)


def measure_board(
    project: Project, *, by: Grouping, value: str = "", bar: float = DEFAULT_THRESHOLD
) -> list[BoardRow]:
    """Compute the rows of the board, in the order of the taxonomy or of the group names.

    `value` is the answer whose share is shown, one of `answer_choices`, by default
    `default_answer`. The threshold `bar` is between 0 and 1.
    """
    decides = main_field.load_main_field(project)
    value = value or default_answer(project)
    tests = Item.objects.in_project(project).originals().of_tests()
    items: dict[str, int] = defaultdict(int)
    wanted: dict[str, set[str]] = defaultdict(set)
    for found in count_by_keys(tests, group=by.expression(), wanted=_wanted_answer(project, value)):
        items[key_as_text(found["group"])] += found["n"]
        wanted[key_as_text(found["group"])].add(found["wanted"])
    labels = Label.objects.in_project(project).in_data_set().at_stage(Stage.LABEL)
    sums = _sums(project, decides, by, value)
    surgical, blind = _surgicality(project, by), _detectability(project, by)
    alphas = compute_alphas(project, by)
    seconds = label_times.count_times(labels.current(), by.expression("item__"))
    against = count_reasons(project, decides, by)

    def row(name: str) -> BoardRow:
        shares = sum_clusters(sums[name].share)
        return BoardRow(
            name=name,
            title=by.title_of(name),
            items=items[name],
            resolved=sums[name].resolved,
            answer=_one_answer(wanted[name]) or value,
            share=clustered_wilson(shares),
            corrected=clustered_wilson(sum_clusters(sums[name].corrected)),
            surgicality=clustered_wilson(surgical[name]),
            alpha=alphas.get(name, Estimate(None, None, None, 0, agreement.NO_PAIR)),
            seconds=label_times.measure_spread(seconds.get(name, {})),
            detectability=clustered_wilson(blind[name]),
            more=items_to_overturn(shares, bar),
            reasons=tuple(against.get(name, {}).items()),
        )

    return [row(name) for name in sorted(items, key=by.place_of)]


def answer_choices(project: Project) -> tuple[tuple[str, str], ...]:
    """Return the answers whose share can be shown, with titles. They are the options of the
    deciding question. If each category is intended for one of two answers, the intended answer is
    first."""
    options = main_field.load_main_field(project).options
    titles = dict(options)
    if tasktypes.load_task_type(project).categories and {ERROR_ITEM, SI_ITEM} <= set(titles):
        meant = f"{titles[ERROR_ITEM]}, or {titles[SI_ITEM].lower()} where intended"
        return (AS_INTENDED, meant), *options
    return options


def default_answer(project: Project) -> str:
    """Return the answer whose share is shown by default: as intended or valid if one of these
    exists, otherwise the first option, or the last option of a numeric scale."""
    values = [value for value, _ in answer_choices(project)]
    if not values:
        return ""
    known = next((value for value in (AS_INTENDED, ERROR_ITEM) if value in values), None)
    return known or values[-1 if main_field.load_main_field(project).name else 0]


def _one_answer(wanted: set[str]) -> str:
    """Return the answer if it is wanted of all items of a group, otherwise ""."""
    return next(iter(wanted)) if len(wanted) == 1 and EITHER not in wanted else ""


def _wanted_answer(project: Project, value: str, prefix: str = "") -> Any:
    """Return the wanted answer of an item as SQL; for AS_INTENDED it is the answer intended for its
    category."""
    if value != AS_INTENDED:
        return Value(value)
    known = taxonomy.load_taxonomy(project)
    return Case(
        *(
            When(**{f"{prefix}category__in": known.with_effect(effect), "then": Value(wanted)})
            for effect, wanted in INTENDED.items()
            if known.with_effect(effect)
        ),
        default=Value(ERROR_ITEM),
    )


def intended_answer(project: Project, category: str) -> str:
    """Return the answer that is intended for a category, or EITHER."""
    found = taxonomy.load_taxonomy(project).find(category)
    return INTENDED.get(found.expected_effect if found else "", ERROR_ITEM)


def is_as_wanted(held: str, wanted: str) -> bool:
    """True if a final label is the wanted one; for EITHER, if the item stays in the final set."""
    return held in (ERROR_ITEM, SI_ITEM) if wanted == EITHER else held == wanted


def _sums(project: Project, decides: MainField, by: Grouping, value: str) -> dict[str, _Sums]:
    """Count resolved items by group and cluster: all items, those with the wanted answer, and those
    corrected."""
    revised = Revision.objects.filter(item=OuterRef("item"), author__isnull=False)
    found = Resolution.objects.in_data_set().of_project(project)
    rows = (
        found.order_by()
        .values(
            group=by.expression("item__"),
            cluster=F("item__cluster"),
            held=decides.of_resolution(),
            wanted=_wanted_answer(project, value, "item__"),
        )
        .annotate(n=Count("pk"), corrected=Count("pk", filter=Q(Exists(revised))))
    )
    clusters: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in rows:
        counts = clusters[key_as_text(row["group"]), row["cluster"]]
        is_hit = value and is_as_wanted(key_as_text(row["held"]), row["wanted"])
        hits = row["n"] if is_hit else 0
        for place, n in enumerate((row["n"], hits, row["corrected"])):
            counts[place] += n
    sums: dict[str, _Sums] = defaultdict(_Sums)
    for (group, _), (n, hits, corrected) in clusters.items():
        sums[group].resolved += n
        sums[group].share.append((n if value else 0, hits))
        sums[group].corrected.append((n, corrected))
    return sums


def _surgicality(project: Project, by: Grouping) -> dict[str, ClusterSums]:
    """Compute surgicality from the counted labels with a claim check; items without such a label
    are left out."""
    checks = [f.name for f in tasktypes.load_version(project.task_type).fields if _is_check(f)]
    found: list[tuple[str, str, int, float]] = []
    for name in checks:
        labels = Label.objects.counted().in_project(project).in_data_set().at_stage(Stage.LABEL)
        rows = labels.answering(name).values_list(
            by.expression("item__"), "item__cluster", "item", KeyTextTransform(name, "answers")
        )
        for group, cluster, item, answer in rows.iterator(chunk_size=2000):
            said = list((json.loads(answer) if isinstance(answer, str) else answer).values())
            if said:
                found.append(
                    (key_as_text(group), cluster, item, said.count("explained") / len(said))
                )
    return _mean_sums(found)


def _is_check(asked: Any) -> bool:
    return bool(asked.per_change)


def _detectability(project: Project, by: Grouping) -> dict[str, ClusterSums]:
    """Compute detectability from blind labels of the current texts: per item, the share of
    annotators who reported an error."""
    blind = tasktypes.load_version(project.task_type).blind
    if blind is None:
        return defaultdict(lambda: sum_clusters([]))
    first = blind.fields[0]
    yes = str(first.options[0].value) if first.options else ""
    labels = Label.objects.of_current_texts().in_project(project).in_data_set()
    rows = (
        labels.at_stage(Stage.BLIND)
        .order_by()
        .values_list(by.expression("item__"), "item__cluster", "item")
        .annotate(n=Count("pk"), y=Count("pk", filter=Q(choice=yes)))
    )
    return _mean_sums(
        (key_as_text(group), cluster, item, y / n) for group, cluster, item, n, y in rows
    )


def _mean_sums(values: Iterable[tuple[str, str, int, float]]) -> dict[str, ClusterSums]:
    """Sum up by cluster and group the mean shares of items, from rows of labels (group, cluster,
    item, share)."""
    items: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for group, cluster, item, share in values:
        items[group, cluster, item].append(share)
    clusters: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (group, cluster, _), shares in items.items():
        clusters[group][cluster].append(sum(shares) / len(shares))
    sums: dict[str, ClusterSums] = defaultdict(lambda: sum_clusters([]))
    for group, found in clusters.items():
        sums[group] = sum_clusters((len(means), sum(means)) for means in found.values())
    return sums


def count_reasons(
    project: Project, decides: MainField, by: Grouping, items: Q | None = None
) -> Mapping[str, Mapping[str, int]]:
    """Count by group the labels whose answer drops the item or is not the intended answer.

    Counts the answers and the reasons given, the most frequent first. `items` filters the labels,
    with lookups that start at the label.
    """
    labels = Label.objects.counted().in_project(project).in_data_set().at_stage(Stage.LABEL)
    labels = labels.filter(items) if items else labels
    meant = AS_INTENDED if AS_INTENDED in dict(answer_choices(project)) else ""
    keys = {
        "group": by.expression("item__"),
        "said": decides.of_label(),
        "wanted": _wanted_answer(project, meant, "item__"),
    }
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in count_by_keys(labels, **keys) if decides.kept is not None else []:
        value = key_as_text(row["said"])
        if decides.drops(value) or not is_as_wanted(value, row["wanted"] or value):
            found[key_as_text(row["group"])][decides.title(value)] += row["n"]
    del keys["wanted"]
    for name, titles in main_field.reason_fields(project):
        reason: Any = KeyTextTransform(name, "answers")
        for row in count_by_keys(labels.answering(name), **keys, reason=reason):
            told = titles.get(key_as_text(row["reason"]), key_as_text(row["reason"]))
            title = f"{decides.title(key_as_text(row['said']))}: {told.lower()}"
            found[key_as_text(row["group"])][title] += row["n"]
    return {
        name: dict(sorted(counts.items(), key=lambda entry: -entry[1]))
        for name, counts in found.items()
    }
