"""Which system's responses do people prefer? Win rates and Bradley-Terry strengths of the systems
that wrote the responses of pairs, and whether the place of a response matters.

A comparison is a final label or, if all labels are counted, a label. Duplicates, qualification and
control items are left out; so are items that do not name two different systems, and answers that
drop the item. An answer that prefers neither response is a tie, half a win for both.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from django.db.models import F
from django.db.models.fields.json import KeyTextTransform
from django.utils import timezone

from annotation import tasktypes
from annotation.labelling import resolution
from annotation.models import Label, Project, Resolution, Stage
from annotation.reports import tables
from annotation.reports.label_times import key_as_text
from annotation.tasktypes import ResponsePair, versions
from annotation.tasktypes.fields.base import Option
from stats import pairwise
from stats.estimates import Estimate
from stats.lots import draw_number
from stats.rates import estimate_rate

# What can be counted, in the order of pages.
FINAL, LABELS = "final", "labels"
COUNTED = (FINAL, LABELS)
SYSTEM_COLUMNS = (
    "counted", "system", "n", "wins", "ties", "losses", "rate", "low", "high", "reason", "strength",
    "strength_low", "strength_high", "strength_reason",
)  # fmt: skip
PAIR_COLUMNS = (
    "counted", "system_a", "system_b", "n", "wins", "ties", "losses", "rate", "low", "high",
    "reason",
)  # fmt: skip
POSITION_COLUMNS = ("annotator", "n", "first", "second", "ties", "rate", "low", "high", "reason")


@dataclass(frozen=True)
class Comparison:
    """One answer about two systems, in the order of the pair's texts: the score of the first is 1
    (better), 0.5 (a tie) or 0. `position` and `cluster` are those of the item."""

    position: int
    cluster: str
    systems: tuple[str, str]
    score: float


@dataclass(frozen=True)
class Compared:
    """All comparisons of a project, and the numbers of answers that were left out: of items that do
    not name both systems or name the same twice, and answers that drop the item."""

    found: tuple[Comparison, ...]
    unnamed: int = 0
    same: int = 0
    dropped: int = 0

    @cached_property
    def systems(self) -> list[str]:
        """The names of the systems, sorted."""
        return sorted({name for one in self.found for name in one.systems})


def load_comparisons(project: Project, counted: str) -> Compared:
    """Load the comparisons by the final labels, or by all counted labels, of a project; at most two
    queries.

    There are none if the task type has no pair.
    """
    task = tasktypes.load_task_type(project)
    if task.pair is None:
        return Compared(())
    rows = _final_labels(project) if counted == FINAL else _labels(project)
    named = {
        f"system_{number}": KeyTextTransform(field, "item__fields")
        for number, field in enumerate(task.pair.systems)
    }
    said = "value" if counted == FINAL else "choice"
    columns = (said, "item__position", "item__cluster", *named)
    found = rows.annotate(**named).values_list(*columns).iterator()
    return _sort_out(versions.load_options(project), task.pair, found)


def _final_labels(project: Project) -> Any:
    found = Resolution.objects.in_data_set().of_project(project)
    return found.exclude(rule=resolution.EXCLUDED).order_by("item__position")


def _labels(project: Project) -> Any:
    """The labels that fill a slot of an item's current texts."""
    found = Label.objects.counted().at_stage(Stage.LABEL).in_project(project).in_data_set()
    return found.filter(item__duplicate_of=None).order_by("item__position", "pk")


def _sort_out(
    options: Mapping[str, Option], pair: ResponsePair, rows: Iterable[tuple[Any, ...]]
) -> Compared:
    scores = {
        value: 1.0 - pair.texts.index(value) if value in pair.texts else 0.5
        for value, option in options.items()
        if not (option.drops or option.route)
    }
    found: list[Comparison] = []
    left: Counter[str] = Counter()
    for said, position, cluster, *systems in rows:
        one, other = (key_as_text(name).strip() for name in systems)
        if said not in scores:
            left["dropped"] += 1
        elif not (one and other):
            left["unnamed"] += 1
        elif one == other:
            left["same"] += 1
        else:
            found.append(Comparison(position, cluster, (one, other), scores[said]))
    return Compared(tuple(found), **left)


def system_rows(project: Project) -> Iterator[dict[str, Any]]:
    """Return the table `pairwise`: for final labels and for all labels, the systems with their wins
    and strengths, the strongest first."""
    for counted in COUNTED:
        yield from _computed(project, counted, "systems")


def pair_rows(project: Project) -> Iterator[dict[str, Any]]:
    """Return the table `pairwise_pairs`: how often each system was preferred to each other one;
    `rate` is that of `system_a`, the stronger of the two."""
    for counted in COUNTED:
        yield from _computed(project, counted, "pairs")


def _computed(project: Project, counted: str, table: str) -> list[dict[str, Any]]:
    """The rows of one table. The figures may be a minute old if they take long."""

    def make() -> dict[str, list[dict[str, Any]]]:
        compared = load_comparisons(project, counted)
        systems = _measure_systems(project, counted, compared)
        ranks = [row["system"] for row in systems]
        return {"systems": systems, "pairs": list(_measure_pairs(counted, compared, ranks))}

    key = f"pairwise:{project.pk}:{counted}"
    return tables.get_or_compute(key, make, now=timezone.now()).value[table]


def _as_array(compared: Compared) -> pairwise.Comparisons:
    place = {name: number for number, name in enumerate(compared.systems)}
    found = compared.found
    return pairwise.make_comparisons(
        len(place),
        [place[one.systems[0]] for one in found],
        [place[one.systems[1]] for one in found],
        [one.score for one in found],
        [one.cluster for one in found],
    )


def _measure_systems(project: Project, counted: str, compared: Compared) -> list[dict[str, Any]]:
    found = _as_array(compared)
    seed = draw_number(f"pairwise {project.slug} {counted}", bits=128)
    strengths = pairwise.bradley_terry(found, np.random.Generator(np.random.PCG64(seed)))
    rows: list[dict[str, Any]] = []
    for number, (system, strength) in enumerate(zip(compared.systems, strengths, strict=True)):
        scores, clusters = found.of_system(number)
        values = (strength.value, strength.low, strength.high, strength.reason or None)
        named = (counted, system, *_counts(scores), *_rate(pairwise.win_rate(scores, clusters)))
        rows.append(dict(zip(SYSTEM_COLUMNS, (*named, *values), strict=True)))
    # Without strengths, or if they are equal but for rounding, by the share of comparisons won.
    return sorted(
        rows,
        key=lambda row: (-round(row["strength"] or 0.0, 9), -row["rate"], row["system"]),
    )


def _measure_pairs(counted: str, compared: Compared, ranks: list[str]) -> Iterator[dict[str, Any]]:
    found, place = _as_array(compared), {name: n for n, name in enumerate(compared.systems)}
    for one, other in combinations(ranks, 2):
        scores, clusters = found.of_pair(place[one], place[other])
        if len(scores):
            rate = _rate(pairwise.win_rate(scores, clusters))
            values = (counted, one, other, *_counts(scores), *rate)
            yield dict(zip(PAIR_COLUMNS, values, strict=True))


def _counts(scores: Any) -> tuple[int, int, int, int]:
    """Comparisons, wins, ties and losses."""
    wins, losses = int((scores == 1).sum()), int((scores == 0).sum())
    return len(scores), wins, len(scores) - wins - losses, losses


def _rate(found: Estimate) -> tuple[float | None, float | None, float | None, str | None]:
    return found.value, found.low, found.high, found.reason or None


def position_rows(project: Project) -> Iterator[dict[str, Any]]:
    """Return the table `pairwise_position`: of the labels that prefer a response and were given
    under a drawn order, the share that prefer the one shown first, over all annotators (without a
    name) and for each.

    Without an effect of the place it is 1/2, whichever systems are compared.
    """
    task = tasktypes.load_task_type(project)
    if task.pair is None:
        return
    options = versions.load_options(project)
    gone = [value for value, option in options.items() if option.drops or option.route]
    by_person: dict[str, list[tuple[str, float]]] = {}
    labels = _labels(project).exclude(first_shown="").exclude(choice__in=gone)
    labels = labels.annotate(person=F("member__alias"))
    for person, said, first, cluster in labels.values_list(
        "person", "choice", "first_shown", "item__cluster"
    ).iterator():
        score = float(said == first) if said in task.pair.texts else np.nan
        for name in ("", person):
            by_person.setdefault(name, []).append((cluster, score))
    for name in sorted(by_person):
        clusters, scores = zip(*by_person[name], strict=True)
        share = estimate_rate(scores, np.unique(clusters, return_inverse=True)[1])
        firsts = int(np.nansum(scores))
        ties = len(scores) - share.n
        values = (name, share.n, firsts, share.n - firsts, ties, *_rate(share))
        yield dict(zip(POSITION_COLUMNS, values, strict=True))


def item_positions(project: Project, row: Mapping[str, Any]) -> list[int]:
    """Return the sorted positions of the items behind a row of `pairwise` or `pairwise_pairs`: by
    `counted`, and `system`, or `system_a` and `system_b`."""
    wanted = {str(row[name]) for name in ("system", "system_a", "system_b") if row.get(name)}
    counted = LABELS if row.get("counted") == LABELS else FINAL
    found = load_comparisons(project, counted).found
    return sorted({one.position for one in found if wanted <= {*one.systems}})
