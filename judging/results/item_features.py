"""Measured features of items, in bins: size, number and place of edits, length, human labels.

About the judged revision: `edit_size` is the share of both texts' characters that changed, `place`
the position of the first change in the gold answer (as a share), `changes` the number of places
that differ, `length` the characters of the perturbed answer. From human labels: `detectability` is
the share that reported an error of all annotators who first saw the item blind; `surgicality` is
the share of the changed pieces in a claim check that the claim explains, as a mean over labels. The
bins are fixed, so that projects can be compared; only the bins of `length` are the quartiles of the
items at hand.
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

from annotation import tasktypes
from annotation.items.diffing import stored
from annotation.models import Item, Label, Project, Revision, Stage
from judging.results import progress
from judging.runs.models import OutcomeQuerySet

AT_A_TIME = 5_000
QUARTERS = (0.25, 0.5, 0.75)
# The text that is judged in all frames with a gold answer for comparison.
JUDGED_TEXT = "perturbed"
# The form of a bin of lengths; a URL may contain any such bin.
_LENGTHS = re.compile("([0-9]{1,9})-to-([0-9]{1,9})")

FeatureValues = Mapping[Any, float | None]


class FeatureBin(NamedTuple):
    """A bin with the values under `below` that are not in an earlier bin."""

    slug: str
    title: str
    below: float


@dataclass(frozen=True)
class ItemFeature:
    """A measured feature of a `revision` or an `item`; without bins, quartiles are used."""

    title: str
    of: str
    bins: tuple[FeatureBin, ...] = ()


FEATURES: dict[str, ItemFeature] = {
    "edit_size": ItemFeature(
        "Edit size",
        "revision",
        (
            FeatureBin("under-1", "under 1 % changed", 0.01),
            FeatureBin("1-to-5", "1 to 5 % changed", 0.05),
            FeatureBin("5-to-20", "5 to 20 % changed", 0.2),
            FeatureBin("over-20", "20 % changed or more", inf),
        ),
    ),
    "place": ItemFeature(
        "Position of the change",
        "revision",
        (
            FeatureBin("first-third", "changed in the first third", 1 / 3),
            FeatureBin("middle-third", "changed in the middle third", 2 / 3),
            FeatureBin("last-third", "changed in the last third", inf),
        ),
    ),
    "changes": ItemFeature(
        "Number of edits",
        "revision",
        (
            FeatureBin("1", "changed in one place", 2),
            FeatureBin("2-to-4", "changed in 2 to 4 places", 5),
            FeatureBin("over-4", "changed in 5 places or more", inf),
        ),
    ),
    "length": ItemFeature("Length of the answer", "revision"),
    "detectability": ItemFeature(
        "Human detectability",
        "item",
        (
            FeatureBin("none", "detected by no annotator (blind)", 1e-9),
            FeatureBin("some", "detected by some annotators (blind)", 1 - 1e-9),
            FeatureBin("all", "detected by all annotators (blind)", inf),
        ),
    ),
    "surgicality": ItemFeature(
        "Surgicality",
        "item",
        (
            FeatureBin("part", "more changed than claimed", 1 - 1e-9),
            FeatureBin("all", "changed only as claimed", inf),
        ),
    ),
}
DIFF_FEATURES = ("edit_size", "place", "changes")


def load_features(project: Project, names: Sequence[str], judged: Any) -> dict[str, FeatureValues]:
    """Load the values of each feature, by the id of the revision or item; those of diffs by
    algorithm and revision, since each run pins the algorithm that measures it.

    `judged` are the revisions whose missing diffs are computed. Makes one query for all features of
    diffs, and one query for each other feature.
    """
    found: dict[str, FeatureValues] = {}
    asked = [name for name in names if name in DIFF_FEATURES]
    if asked and tasktypes.load_version(project.task_type).diff:
        _complete_diffs(project, judged)
        stored_diffs = stored.stored_diffs(project)
        rows = list(stored_diffs.values_list("algorithm", "revision", *asked).iterator(AT_A_TIME))
        found |= {name: {row[:2]: row[at] for row in rows} for at, name in enumerate(asked, 2)}
    others = {
        "length": _load_lengths,
        "detectability": _load_detectability,
        "surgicality": _load_surgicality,
    }
    return found | {name: make(project) for name, make in others.items() if name in names}


def assign_bins(name: str, numbers: Sequence[float | None]) -> Any:
    """Find the slug of the bin of each number, "" for None."""
    values = np.array(numbers, dtype=float)
    there = ~np.isnan(values)
    slugs = np.full(values.shape, "", dtype=object)
    bins = FEATURES[name].bins or _quartile_bins(values[there])
    ends = [one.below for one in bins]
    places = np.searchsorted(ends, values[there], side="right")
    slugs[there] = np.array([one.slug for one in bins], dtype=object)[places]
    return slugs


def bin_title(name: str, slug: str) -> str:
    """The title of a bin. A value that is not a bin, from an own field of items with the same name,
    follows the title of the feature."""
    if name == "length" and (ends := _LENGTHS.fullmatch(slug)):
        least, most = map(int, ends.groups())
        return f"{least:,} to {most:,} characters"
    measure = FEATURES[name]
    titles = {one.slug: one.title for one in measure.bins}
    return titles.get(slug, f"{measure.title}: {slug}")


def filter_by_bin(
    found: OutcomeQuerySet, project: Project, name: str, slug: str
) -> OutcomeQuerySet:
    """The outcomes in a bin. Raises ValueError for an unknown bin."""
    least, below = _bin_range(name, slug)
    if name in DIFF_FEATURES:
        inside = {f"{name}__gte": least, f"{name}__lt": below}
        if below == inf:
            del inside[f"{name}__lt"]
        made = stored.stored_diffs(project).filter(
            revision=OuterRef("revision"), algorithm=OuterRef("run__diff_algorithm"), **inside
        )
        return found.filter(Exists(made))
    if name == "length":
        judged = found.annotate(length=Length(KeyTextTransform(JUDGED_TEXT, "revision__texts")))
        return judged.filter(length__gte=least, length__lt=below)
    numbers = load_features(project, [name], Revision.objects.none())[name].items()
    return found.filter(
        item__among=[pk for pk, one in numbers if one is not None and least <= one < below]
    )


def _bin_range(name: str, slug: str) -> tuple[float, float]:
    if name == "length" and (ends := _LENGTHS.fullmatch(slug)):
        first, last = map(int, ends.groups())
        return float(first), float(last + 1)
    least = -inf if name in ("detectability", "surgicality") else 0.0
    for one in FEATURES[name].bins:
        if one.slug == slug:
            return least, one.below
        least = one.below
    raise ValueError(f"{name} has no bin {slug}")


def _quartile_bins(values: Any) -> list[FeatureBin]:
    """Build bins that each have a quarter of the values. Their ends are whole numbers and belong to
    the bin."""
    if not len(values):
        return []
    cuts = np.unique([*np.floor(np.quantile(values, QUARTERS)), values.max()]).astype(int)
    least = int(values.min())
    bins = []
    for most in cuts.tolist():
        bins.append(FeatureBin(f"{least}-to-{most}", "", most + 1))
        least = most + 1
    return bins


def _complete_diffs(project: Project, judged: Any) -> None:
    for done in stored.store_missing(project, judged):
        progress.report("comparing texts", done, done)


def _load_lengths(project: Project) -> FeatureValues:
    held = Revision.objects.filter(resolutions__current=True, item__project=project)
    said = held.annotate(length=Length(KeyTextTransform(JUDGED_TEXT, "texts"))).order_by()
    return dict(said.values_list("pk", "length").iterator(AT_A_TIME))


def _load_detectability(project: Project) -> FeatureValues:
    """Compute detectability from blind labels, as on the category board."""
    blind = tasktypes.load_version(project.task_type).blind
    options = blind.fields[0].options if blind else ()
    if not options:
        return {}
    labels = Label.objects.of_current_texts().in_project(project).at_stage(Stage.BLIND)
    noticed = Count("pk", filter=Q(choice=str(options[0].value)))
    counted = labels.order_by().values_list("item").annotate(n=Count("pk"), y=noticed)
    return {item: y / n for item, n, y in counted}


def _load_surgicality(project: Project) -> FeatureValues:
    """Compute surgicality from counted labels with a claim check, as on the category board."""
    shares: dict[int, list[float]] = defaultdict(list)
    fields = tasktypes.load_version(project.task_type).fields
    for name in (one.name for one in fields if one.per_change):
        labels = Label.objects.counted().in_project(project).at_stage(Stage.LABEL).answering(name)
        rows = labels.order_by().values_list("item", KeyTextTransform(name, "answers"))
        for item, answer in rows.iterator(AT_A_TIME):
            said = list((json.loads(answer) if isinstance(answer, str) else answer).values())
            if said:
                shares[item].append(said.count("explained") / len(said))
    return {item: sum(own) / len(own) for item, own in shares.items()}


def shadowed_features(project: Project, names: Sequence[str]) -> set[str]:
    """The names of features that are also own fields of items. Such a field replaces the
    feature."""
    known = [name for name in names if name in FEATURES]
    items = Item.objects.in_project(project)
    # Nearly always there are none, and each question reads the fields of all items.
    if not known or not items.filter(fields__has_any_keys=known).exists():
        return set()
    return {name for name in known if items.filter(fields__has_key=name).exists()}
