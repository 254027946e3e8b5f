"""Do runs tell errors from score-invariant changes? The table `sensitivity`, and the first view of
the page Sensitivity."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from annotation.items.taxonomy import Taxonomy
from annotation.labelling.models.labels import SI_ITEM
from judging.models import Run
from judging.results import arrays, cells, columns, counted, lines, progress
from judging.results.arrays import Bools, RunArrays
from judging.results.cells import Row
from judging.results.columns import Table
from judging.results.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    TableQuery,
    study_figures,
)
from stats import rates, sensitivity
from stats.estimates import Estimate

if TYPE_CHECKING:
    from charts.plane import SensitivityPoint

ABILITY, SOURCE, ORIGIN = "ability", "source_ability", "item__origin"
NOT_FOR_PAIRS_REASON = "not for pairs"


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
    known = counted.load_categories(runs)
    return [
        _row(part, ability, origin, of_pairs=asked[found.run.pk].frame == "pair")
        for found in progress.iterate(gathered, "drawing clusters")
        for ability, origin, part in _split_items(found, known)
    ]


def _split_items(found: RunArrays, known: Taxonomy) -> Iterator[tuple[str, str, RunArrays]]:
    yield "", "", found
    of = np.where(found.invariant, found.fields[SOURCE], found.fields[ABILITY])
    for ability in known.abilities:
        these: Bools = of == ability.slug
        if ability.slug != SI_ITEM and these.any():
            yield ability.slug, "", found.only(these)
    origins = found.fields[ORIGIN]
    for origin in sorted(set(origins[found.invariant]) - {""}):
        yield "", origin, found.only(~found.invariant | (origins == origin))


def estimate_rates(found: RunArrays) -> tuple[Estimate, Estimate, Estimate]:
    """Detection, false alarms and J over these items."""
    errors, calm = (found.only(side) for side in (~found.invariant, found.invariant))
    detection, alarm = (rates.estimate_rate(one.detected, one.cluster) for one in (errors, calm))
    return detection, alarm, sensitivity.youden_j(detection, alarm)


def _row(found: RunArrays, ability: str, origin: str, *, of_pairs: bool) -> dict[str, Any]:
    detection, alarm, j = estimate_rates(found)
    apart = Estimate(None, None, None, j.n, NOT_FOR_PAIRS_REASON)
    d_prime = apart if of_pairs else _d_prime(found, ability, origin)
    return {
        **counted.run_columns(found.run),
        "ability": ability or None,
        "origin": origin or None,
        "total": len(found.item),
        "missing": int(np.isnan(found.detected).sum()),
        "errors": detection.n,
        **counted.figure_columns("detection", detection),
        "invariant": alarm.n,
        **counted.figure_columns("false_alarm", alarm),
        **counted.figure_columns("j", j),
        **counted.figure_columns("d_prime", d_prime),
    }


def _d_prime(found: RunArrays, *filters: str) -> Estimate:
    rng = arrays.make_generator("sensitivity", [found.run], "d_prime", *filters)
    return sensitivity.estimate_d_prime(found.detected, found.invariant, found.cluster, rng)


def _is_whole(row: Row) -> bool:
    return not (row["ability"] or row["origin"])


def _group(asked: PageQuery, row: Row) -> str:
    if row["origin"]:
        return f"Score-invariant by origin: {row['origin']}"
    return asked.group_title("ability", row["ability"]) if row["ability"] else "All"


SENSITIVITY = Table(
    "sensitivity",
    (
        columns.RunNumber("run", "Run"),
        *columns.plain("endpoint", "strategy"),
        columns.Titled("ability", "Items", title_of=_group, sort="items"),
        *columns.plain("origin", "total", "missing", "errors"),
        columns.Rate(
            "detection",
            "Detection",
            columns.items(items="errors", result="detected"),
            n="errors",
            prefix="detection_",
            missing="",
        ),
        *columns.plain("detection_low", "detection_high", "invariant"),
        columns.Rate(
            "false_alarm",
            "False alarms",
            columns.items(items="invariant", result="detected"),
            n="invariant",
            prefix="false_alarm_",
            missing="",
        ),
        *columns.plain("false_alarm_low", "false_alarm_high"),
        columns.Figure("j", "J"),
        *columns.plain("j_low", "j_high", "j_reason"),
        columns.Figure("d_prime", "d′"),
        *columns.plain("d_prime_low", "d_prime_high", "d_prime_reason"),
        *columns.plain("detection_reason", "false_alarm_reason"),
    ),
    lambda project, runs, by: tabulate(runs),
    of_people=False,
    about="A row per run for all items, for each ability and for each origin: detection "
    "beside false alarms, J and d'.",
    meanings={
        "ability": "ability of the items (of score-invariant items, that of the answer they were "
        "made from); empty over all abilities",
        "origin": "origin of the score-invariant items; empty over all origins",
        "total": "number of error items and score-invariant items, missing ones included",
        "d_prime": "how far errors and score-invariant changes are apart for the evaluator, in "
        "standard deviations; not for pairs",
    },
)


class _Groups(columns.Leading):
    """Groups of items. Score-invariant items are selected by source ability or by origin."""

    def items_url(self, row: Row, **which: str) -> str:
        group = {"ability": row["ability"] or ""}
        if which["items"] == "invariant":
            group = {"source_ability": row["ability"] or ""}
            which |= {"origin": row["origin"]} if row["origin"] else {}
        return cells.items_url(self.runs[row["run"]], group, **which)


def _select(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    return [row for row in tables[0] if asked.is_judging(row) and row["errors"] + row["invariant"]]


def _draw(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    """Draw a small plane for each run; a single run has a large one."""
    points = _list_points(asked, rows)
    if len({point.run for point in points}) < 2:
        return _draw_plane(points, " Large marks: all items; small marks: groups.")
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import plane

    caption = (
        f"{_CAPTION} for each run. The large mark is over all items, with 95 % intervals; small "
        f"marks: groups. Up and to the left is better. {_ON_THE_LINE}"
    )
    return ChartSpec(plane.draw_panels(points), caption)


def draw_whole(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    """Draw a mark for each run; the rows are over all items."""
    whole = [{**row, "ability": None, "origin": None} for row in rows]
    return _draw_plane(_list_points(asked, whole), " Up and to the left is better.")


_CAPTION = "Detection against false alarms"
_ON_THE_LINE = "On the dashed line, errors are detected no more often than score-invariant changes."


def _list_points(asked: PageQuery, rows: Rows) -> "list[SensitivityPoint]":
    from charts import plane

    return [
        plane.SensitivityPoint(
            cells.run_name(asked.runs_by_number[row["run"]]),
            _group(asked, row),
            _is_whole(row),
            *(row[f"detection{end}"] for end in ("", "_low", "_high")),
            *(row[f"false_alarm{end}"] for end in ("", "_low", "_high")),
        )
        for row in rows
        if row["detection"] is not None and row["false_alarm"] is not None
    ]


def _draw_plane(points: "Sequence[SensitivityPoint]", words: str) -> ChartSpec | None:
    from charts import plane

    caption = f"{_CAPTION}, with 95 % intervals.{words} {_ON_THE_LINE}"
    return ChartSpec(plane.draw_plane(points), caption) if points else None


VIEWS = (
    ResultView(
        slug="plane",
        title="Detection against false alarms",
        asks=(TableQuery(SENSITIVITY, ""),),
        figures=("rate", "j", "d_prime"),
        build=lines.Lines(
            SENSITIVITY,
            "Sensitivity",
            ("items", "run", "detection", "false_alarm", "j", "d_prime"),
            "Detection: share of errors detected. False alarm: share of score-invariant items "
            "taken for an error. J is detection minus false alarms. J: 0 is no better than a "
            "coin, or always or never alarming; below 0 is worse; 1 is perfect. Its interval is "
            "Newcombe’s, from the intervals of the two rates. Score-invariant items count for "
            "the ability of their source answer. d′ is not defined for pairs.",
            _draw,
            _select,
            _Groups,
        ),
        studies={"000": study_figures("section 5.4")},
        empty="The chosen runs have no outcomes of items with a final label.",
    ),
)
