"""The response of runs to the number of errors (dose), and to the penalty that people expect."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np

from annotation.labelling.models.labels import SI_ITEM
from annotation.models import Project
from judging.models import Outcome, Run
from judging.results import arrays, counted, drilldown, expected_effect, progress
from judging.results.arrays import Ints, RunArrays
from judging.strategies import Strategy
from stats import bootstrap, means, rates
from stats.estimates import Estimate

# The score of the perturbed answer minus the gold answer's, from `with_moved`.
SCORE_CHANGE = "moved"
NOT_SCORED_APART_REASON = "the gold answer has no score of its own"
NO_ITEMS_REASON = "no items"
DRAWING_STEP = "drawing clusters"
_RESPONSE = (
    "total", "missing", "parsed", "clusters",
    "detected", "detection", "detection_low", "detection_high", "detection_reason",
    "scored", "penalty", "penalty_low", "penalty_high", "penalty_reason", "bottom", "at_top",
)  # fmt: skip
DOSE_COLUMNS = ("dose", *_RESPONSE)
PENALTY_COLUMNS = ("expected", *_RESPONSE)


def tabulate_doses(runs: Iterable[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    """The table `doses`: for each run and group by fields of outcomes, a row per dose. The dose is
    the number of errors in the answer (`Item.dose`, else a field `dose`). Only error items with a
    dose count.

    `detection` is the rate over the `parsed` items, with Wilson's interval for clustered items.
    `penalty` is the mean of gold minus perturbed score in points of the scale, over the `scored`
    items, with a cluster bootstrap interval. Different doses may be based on different questions;
    `clusters` is the number of questions. A reason is given for every value that is None. Raises
    `UnknownField`.
    """
    runs = list(runs)
    counted.check_fields(by)
    asked, further = counted.load_strategies(runs), (drilldown.DOSE, *by, SCORE_CHANGE)
    dosed = drilldown.filter_dosed(Outcome.objects.with_moved())
    gathered = arrays.load_arrays(runs, further, [drilldown.OWN_DOSE], among=dosed)
    return [
        _row(part, group, ("dose", dose), asked[found.run.pk])
        for found in progress.iterate(gathered, DRAWING_STEP)
        for group, dose, part in _split_items(found, by, _dose_array(found))
    ]


def tabulate_penalties(
    project: Project, runs: Iterable[Run], by: Sequence[str]
) -> list[dict[str, Any]]:
    """The table `penalties`: for each run and group by fields of outcomes, a row per penalty that
    people expect, the smallest first, with the columns of `doses`.

    `expected` is the answer that more than half of the respondents gave, as a value of the task
    type's field; it is "people disagree" without such a majority, and "nobody said" if nobody
    answered. Score-invariant items have no expected penalty. They have rows of their own, in which
    `detection` is the false-alarm rate. Raises `UnknownField`.
    """
    runs = list(runs)
    counted.check_fields(by)
    asked, said = counted.load_strategies(runs), expected_effect.load_expected_effects(project)
    gathered = arrays.load_arrays(runs, (*by, SCORE_CHANGE), among=Outcome.objects.with_moved())
    # Options of earlier versions of the task type come last.
    order = list(
        dict.fromkeys(
            [SI_ITEM, *expected_effect.effect_order(project), *sorted(set(said.values()))]
        )
    )
    return [
        _row(part, group, ("expected", order[place]), asked[found.run.pk])
        for found in progress.iterate(gathered, DRAWING_STEP)
        for group, place, part in _split_items(found, by, _expected_array(found, said, order))
    ]


def _dose_array(found: RunArrays) -> Ints:
    """The dose of each error item, -1 without one."""
    pairs = zip(found.fields[drilldown.DOSE], found.fields[drilldown.OWN_DOSE.name], strict=True)
    doses = [drilldown.read_dose(held, own) for held, own in pairs]
    return np.where(found.invariant, -1, np.array(doses, dtype=int))


def _expected_array(found: RunArrays, said: Mapping[int, str], order: Sequence[str]) -> Ints:
    """For each item, the position of its expected penalty in the order."""
    places = {name: place for place, name in enumerate(order)}
    of_errors = [places[said.get(item, expected_effect.UNANSWERED)] for item in found.item.tolist()]
    return np.where(found.invariant, places[SI_ITEM], np.array(of_errors, dtype=int))


def _split_items(
    found: RunArrays, by: Sequence[str], keys: Ints
) -> Iterator[tuple[dict[str, str], int, RunArrays]]:
    """The items by group and key, sorted; those with a key below 0 are left out."""
    places: dict[tuple[tuple[str, ...], int], list[int]] = defaultdict(list)
    groups = zip(*(found.fields[name] for name in by), strict=True) if by else repeat(())
    for place, (group, key) in enumerate(zip(groups, keys.tolist(), strict=False)):
        if key >= 0:
            places[group, key].append(place)
    named = {group: dict(zip(by, group, strict=True)) for group, _ in places}
    order = sorted(places, key=lambda one: (counted.taxonomy_order(named[one[0]]), one[0], one[1]))
    for group, key in order:
        yield named[group], key, found.only(np.array(places[group, key]))


def _row(
    found: RunArrays, group: Mapping[str, str], key: tuple[str, int | str], asked: Strategy
) -> dict[str, Any]:
    parsed = ~np.isnan(found.detected)
    detection = rates.estimate_rate(found.detected, found.cluster)
    penalty = _estimate_penalty(found, [*group.values(), *key])
    scale = asked.scale if penalty.n else None
    return {
        **counted.run_columns(found.run),
        **group,
        key[0]: key[1],
        "total": len(found.item),
        "missing": int((~parsed).sum()),
        "parsed": detection.n,
        "clusters": len(np.unique(found.cluster[parsed])),
        "detected": counted.round_sum(np.nansum(found.detected)),
        **_estimate_columns("detection", detection),
        "scored": penalty.n,
        **_estimate_columns("penalty", penalty),
        "bottom": scale.low if scale else None,
        "at_top": scale.high if scale else None,
    }


def _estimate_penalty(found: RunArrays, filters: Sequence[Any]) -> Estimate:
    """The mean of gold minus perturbed score, over the parsed items that have both."""
    taken = 0 - np.array(found.fields[SCORE_CHANGE], dtype=float)
    taken[np.isnan(found.detected)] = np.nan
    rng = arrays.make_generator("doses", [found.run], *filters)
    one = bootstrap.estimate(means.clustered_mean(taken), found.cluster, rng)
    parsed = not np.isnan(found.detected).all()
    return (
        replace(one, reason=NOT_SCORED_APART_REASON if parsed else NO_ITEMS_REASON)
        if not one.n
        else one
    )


def _estimate_columns(name: str, one: Estimate) -> dict[str, Any]:
    return {
        name: one.value,
        f"{name}_low": one.low,
        f"{name}_high": one.high,
        f"{name}_reason": one.reason or None,
    }
