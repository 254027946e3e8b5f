"""What of items is measured, in bins: how much of an answer was changed and where, how long it is,
and what people made of it.

Of the revision that was judged: `edit_size` is the share of both texts' characters that changed,
`place` how far into the gold answer the first change is, `changes` in how many places they differ,
`length` the characters of the perturbed answer. Of people's labels: `detectability` is the share
of those who saw the item blind first and said that there is an error, `surgicality` the share of
changed pieces that claim checks name which the claim explains, a mean over labels. The bins are
fixed, so that projects can be compared; those of `length` are the quarters of the items at hand.
"""

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Count, Exists, OuterRef, Q
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Length

from annotation import diffs, tasktypes
from annotation.models import Item, Label, Project, Revision, Stage
from judging.querysets import OutcomeQuerySet
from judging.results import progress

AT_A_TIME = 5_000
QUARTERS = (0.25, 0.5, 0.75)
# The text under judgement in all frames that hold it against a gold answer.
JUDGED = "perturbed"
# A bin of lengths, of which addresses may hold any.
_LENGTHS = re.compile("([0-9]{1,9})-to-([0-9]{1,9})")

Values = Mapping[int, float | None]


class Bin(NamedTuple):
    """What is under `below`, and in no bin before it."""

    slug: str
    title: str
    below: float


@dataclass(frozen=True)
class Measure:
    """What is measured of a `revision` or an `item`; without bins by quarters."""

    title: str
    of: str
    bins: tuple[Bin, ...] = ()


MEASURES: dict[str, Measure] = {
    "edit_size": Measure(
        "Edit size",
        "revision",
        (
            Bin("under-1", "under 1 % changed", 0.01),
            Bin("1-to-5", "1 to 5 % changed", 0.05),
            Bin("5-to-20", "5 to 20 % changed", 0.2),
            Bin("over-20", "20 % changed or more", inf),
        ),
    ),
    "place": Measure(
        "Place of the change",
        "revision",
        (
            Bin("first-third", "changed in the first third", 1 / 3),
            Bin("middle-third", "changed in the middle third", 2 / 3),
            Bin("last-third", "changed in the last third", inf),
        ),
    ),
    "changes": Measure(
        "Changed places",
        "revision",
        (
            Bin("1", "changed in one place", 2),
            Bin("2-to-4", "changed in 2 to 4 places", 5),
            Bin("over-4", "changed in 5 places or more", inf),
        ),
    ),
    "length": Measure("Length of the answer", "revision"),
    "detectability": Measure(
        "Human detectability",
        "item",
        (
            Bin("none", "noticed by nobody who saw it blind", 1e-9),
            Bin("some", "noticed by some who saw it blind", 1 - 1e-9),
            Bin("all", "noticed by all who saw it blind", inf),
        ),
    ),
    "surgicality": Measure(
        "Surgicality",
        "item",
        (
            Bin("part", "changed beyond its claim", 1 - 1e-9),
            Bin("all", "changed as claimed alone", inf),
        ),
    ),
}
OF_DIFFS = ("edit_size", "place", "changes")


def read(project: Project, names: Sequence[str], judged: Any) -> dict[str, Values]:
    """The numbers of each measure by the id of the revision or item that it is of.

    `judged` are the revisions; diffs that were not made yet are. A query for all measures of
    diffs, and one for each of the others.
    """
    found: dict[str, Values] = {}
    asked = [name for name in names if name in OF_DIFFS]
    if asked and tasktypes.of_version(project.task_type).diff:
        _complete(judged)
        rows = list(diffs.stored(project).values_list("revision", *asked).iterator(AT_A_TIME))
        found |= {name: {row[0]: row[at] for row in rows} for at, name in enumerate(asked, 1)}
    others = {"length": _lengths, "detectability": _detectability, "surgicality": _surgicality}
    return found | {name: make(project) for name, make in others.items() if name in names}


def binned(name: str, numbers: Sequence[float | None]) -> Any:
    """The bin of each number by its slug, "" for None."""
    values = np.array(numbers, dtype=float)
    there = ~np.isnan(values)
    slugs = np.full(values.shape, "", dtype=object)
    bins = MEASURES[name].bins or _quarters(values[there])
    ends = [one.below for one in bins]
    places = np.searchsorted(ends, values[there], side="right")
    slugs[there] = np.array([one.slug for one in bins], dtype=object)[places]
    return slugs


def title_of(name: str, slug: str) -> str:
    """A bin in words; of a field that items have by this name its title and value."""
    if name == "length" and (ends := _LENGTHS.fullmatch(slug)):
        least, most = map(int, ends.groups())
        return f"{least:,} to {most:,} characters"
    measure = MEASURES[name]
    titles = {one.slug: one.title for one in measure.bins}
    return titles.get(slug, f"{measure.title}: {slug}")


def within(found: OutcomeQuerySet, project: Project, name: str, slug: str) -> OutcomeQuerySet:
    """The outcomes in a bin. Raises ValueError for a bin that there is none of."""
    least, below = _ends(name, slug)
    if name in OF_DIFFS:
        inside = {f"{name}__gte": least, f"{name}__lt": below}
        if below == inf:
            del inside[f"{name}__lt"]
        made = diffs.stored(project).filter(revision=OuterRef("revision"), **inside)
        return found.filter(Exists(made))
    if name == "length":
        judged = found.annotate(length=Length(KeyTextTransform(JUDGED, "revision__texts")))
        return judged.filter(length__gte=least, length__lt=below)
    numbers = read(project, [name], Revision.objects.none())[name].items()
    return found.filter(
        item__among=[pk for pk, one in numbers if one is not None and least <= one < below]
    )


def _ends(name: str, slug: str) -> tuple[float, float]:
    if name == "length" and (ends := _LENGTHS.fullmatch(slug)):
        first, last = map(int, ends.groups())
        return float(first), float(last + 1)
    least = -inf if name in ("detectability", "surgicality") else 0.0
    for one in MEASURES[name].bins:
        if one.slug == slug:
            return least, one.below
        least = one.below
    raise ValueError(f"{name} has no bin {slug}")


def _quarters(values: Any) -> list[Bin]:
    """Bins with a quarter of the values each, ends included, in whole numbers."""
    if not len(values):
        return []
    cuts = np.unique([*np.floor(np.quantile(values, QUARTERS)), values.max()]).astype(int)
    least = int(values.min())
    bins = []
    for most in cuts.tolist():
        bins.append(Bin(f"{least}-to-{most}", "", most + 1))
        least = most + 1
    return bins


def _complete(judged: Any) -> None:
    for done in diffs.complete(judged):
        progress.tell("comparing texts", done, done)


def _lengths(project: Project) -> Values:
    held = Revision.objects.filter(resolutions__current=True, item__project=project)
    said = held.annotate(length=Length(KeyTextTransform(JUDGED, "texts"))).order_by()
    return dict(said.values_list("pk", "length").iterator(AT_A_TIME))


def _detectability(project: Project) -> Values:
    """Of blind labels, as the category board has it."""
    blind = tasktypes.of_version(project.task_type).blind
    options = blind.fields[0].options if blind else ()
    if not options:
        return {}
    labels = Label.objects.current().in_project(project).at_stage(Stage.BLIND)
    noticed = Count("pk", filter=Q(choice=str(options[0].value)))
    counted = labels.order_by().values_list("item").annotate(n=Count("pk"), y=noticed)
    return {item: y / n for item, n, y in counted}


def _surgicality(project: Project) -> Values:
    """Of counted labels with a claim check, as the category board has it."""
    shares: dict[int, list[float]] = defaultdict(list)
    fields = tasktypes.of_version(project.task_type).fields
    for name in (one.name for one in fields if one.kind == "claim_check"):
        labels = Label.objects.counted().in_project(project).at_stage(Stage.WORK).answering(name)
        rows = labels.order_by().values_list("item", KeyTextTransform(name, "answers"))
        for item, answer in rows.iterator(AT_A_TIME):
            said = list((json.loads(answer) if isinstance(answer, str) else answer).values())
            if said:
                shares[item].append(said.count("explained") / len(said))
    return {item: sum(own) / len(own) for item, own in shares.items()}


def own_instead(project: Project, names: Sequence[str]) -> set[str]:
    """Of names of measures those that items have as fields of their own, which take their place."""
    known = [name for name in names if name in MEASURES]
    items = Item.objects.in_project(project)
    return {name for name in known if items.filter(fields__has_key=name).exists()}
