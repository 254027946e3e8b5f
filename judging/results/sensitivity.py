"""Detection and false alarms: does a run tell errors from score-invariant changes?"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from annotation.items import taxonomy
from annotation.labelling.models.labels import SI_ITEM
from judging.models import Run
from judging.results import arrays, counted, progress
from judging.results.arrays import Bools, RunArrays
from stats import bootstrap, rates, sensitivity
from stats.estimates import Estimate

ABILITY, SOURCE, ORIGIN = "ability", "source_ability", "item__origin"
NOT_FOR_PAIRS_REASON = "not for pairs"
COLUMNS = (
    "ability", "origin", "total", "missing",
    "errors", "detection", "detection_low", "detection_high",
    "invariant", "false_alarm", "false_alarm_low", "false_alarm_high",
    "j", "j_low", "j_high", "j_reason",
    "d_prime", "d_prime_low", "d_prime_high", "d_prime_reason",
)  # fmt: skip


def tabulate(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """The table `sensitivity`: for each run a row over all items, a row per ability and a row per
    origin.

    Score-invariant items belong to the ability of the answer they were made from; the rows of
    origins compare all error items with the score-invariant items of that origin. J = detection -
    false alarm, with Newcombe's interval; d' has a bootstrap interval and is not given for pairs. A
    reason is given for every value that is None.
    """
    runs = list(runs)
    asked = counted.load_strategies(runs)
    gathered = arrays.load_arrays(runs, (ABILITY, SOURCE, ORIGIN))
    return [
        _row(part, ability, origin, of_pairs=asked[found.run.pk].frame == "pair")
        for found in progress.iterate(gathered, "drawing clusters")
        for ability, origin, part in _split_items(found)
    ]


def _split_items(found: RunArrays) -> Iterator[tuple[str, str, RunArrays]]:
    yield "", "", found
    of = np.where(found.invariant, found.fields[SOURCE], found.fields[ABILITY])
    for ability in taxonomy.load().abilities:
        these: Bools = of == ability.slug
        if ability.slug != SI_ITEM and these.any():
            yield ability.slug, "", found.only(these)
    origins = found.fields[ORIGIN]
    for origin in sorted(set(origins[found.invariant]) - {""}):
        yield "", origin, found.only(~found.invariant | (origins == origin))


def _row(found: RunArrays, ability: str, origin: str, *, of_pairs: bool) -> dict[str, Any]:
    errors, calm = (found.only(side) for side in (~found.invariant, found.invariant))
    detection, alarm = (rates.estimate_rate(one.detected, one.cluster) for one in (errors, calm))
    j = sensitivity.youden_j(detection, alarm)
    apart = Estimate(None, None, None, j.n, NOT_FOR_PAIRS_REASON)
    d_prime = apart if of_pairs else _d_prime(found, ability, origin)
    return {
        **counted.run_columns(found.run),
        "ability": ability or None,
        "origin": origin or None,
        "total": len(found.item),
        "missing": int(np.isnan(found.detected).sum()),
        "errors": detection.n,
        **_estimate_columns("detection", detection),
        "invariant": alarm.n,
        **_estimate_columns("false_alarm", alarm),
        **_estimate_columns("j", j),
        "j_reason": j.reason or None,
        **_estimate_columns("d_prime", d_prime),
        "d_prime_reason": d_prime.reason or None,
    }


def _d_prime(found: RunArrays, *filters: str) -> Estimate:
    figure = sensitivity.d_prime(found.detected, found.invariant)
    rng = arrays.make_generator("sensitivity", [found.run], "d_prime", *filters)
    return bootstrap.estimate(figure, found.cluster, rng)


def _estimate_columns(name: str, one: Estimate) -> dict[str, Any]:
    names: Sequence[str] = (name, f"{name}_low", f"{name}_high")
    return dict(zip(names, (one.value, one.low, one.high), strict=True))
