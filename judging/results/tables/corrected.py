"""How many items have an error, if an evaluator judged all and people a sample? The table
`corrected`, and the page Corrected rates."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from django.db.models import F, OuterRef, Subquery

from annotation.items.models import IN_DATA_SET
from annotation.models import Project, Resolution
from annotation.reports.grouping import Grouping
from judging.models import Outcome, Run
from judging.results import (
    cells,
    chart_parts,
    columns,
    counted,
    detector_lines,
    detectors,
    group_fields,
    lines,
    progress,
)
from judging.results.cells import Cell, Header, Row
from judging.results.columns import Table
from judging.results.detectors import ERROR, VERDICT_BY_ANSWER, GroupKey
from judging.results.page_parts import ChartSpec, PageQuery, ResultView, Rows, TableQuery
from judging.runs.models import UNLABELLED
from judging.strategies.frames import get_item_needs
from stats import corrected
from stats.estimates import Estimate

# The items that an estimate rests on, if not all.
COUNTED = {"people": ("labelled",), "evaluator": ("unlabelled",)}
# The five estimates, by their columns, with their titles.
ESTIMATES = {
    "people": "People alone",
    "evaluator": "Evaluator alone",
    "ppi_plus": "Corrected (PPI++)",
    "ppi": "Corrected (PPI)",
    "rogan_gladen": "Corrected (Rogan-Gladen)",
}


class _Judged(NamedTuple):
    """One item of a run: the verdict (nan if missing), the label of people (nan without one), and
    the cluster."""

    verdict: float
    label: float
    cluster: str


def tabulate(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The table `corrected`: for each run of error detection that also judged items without a final
    label, and each group of items, the share of items with an error, estimated in five ways.

    `people` is the share among the `labelled` items, `evaluator` the share that the evaluator calls
    an error among the others; `ppi_plus`, `ppi` and `rogan_gladen` combine both, see
    `stats.corrected.correct_rate`. Each has its own interval and reason. `weight` is how much PPI++
    relies on the evaluator, 0 to 1; `width` is the width of its interval as a share of that of
    people alone. Labels are the final labels of today, error or no error; items with another final
    label, or whose texts have changed since, are left out. `total` counts the items, `missing`
    those without a verdict, which are left out of all estimates. Raises `UnknownField`.
    """
    named = detectors.check_groupings(project, by)
    chosen = [
        run
        for run, strategy in zip(runs, counted.load_strategies(runs).values(), strict=True)
        if get_item_needs(strategy) == "detection"
    ]
    for run, groups in _load(chosen, named).items():
        for group, items in sorted(groups.items()):
            yield _row(run, dict(zip(by, group, strict=True)), items)


def _load(
    runs: Sequence[Run], named: Sequence[Grouping]
) -> dict[Run, dict[GroupKey, list[_Judged]]]:
    """The items of the runs that have unlabelled ones, by group."""
    known = {run.pk: run for run in runs}
    label = Resolution.objects.current().filter(
        item=OuterRef("item"), revision=OuterRef("revision")
    )
    some = Outcome.objects.filter(run__in=known, truth=UNLABELLED).values("run").distinct()
    wide = sorted(set(some.values_list("run", flat=True)))
    found: dict[int, dict[GroupKey, list[_Judged]]] = {pk: defaultdict(list) for pk in wide}
    outcomes = Outcome.objects.settled().main().filter(
        IN_DATA_SET, item__duplicate_of=None,
        revision__number=F("item__revision_number"),
    )  # fmt: skip
    names = ("run", "result", "cluster", "now", *(one.expression("item__") for one in named))
    for part in progress.split_if_watched(wide, detectors.READING) if wide else ():
        rows = outcomes.filter(run__in=part).annotate(now=Subquery(label.values("value")[:1]))
        for pk, result, cluster, now, *group in rows.order_by("item").values_list(*names):
            if now is None or now in VERDICT_BY_ANSWER:
                verdict = {"detected": 1.0, "undetected": 0.0}.get(result, np.nan)
                judged = _Judged(verdict, np.nan if now is None else float(now == ERROR), cluster)
                found[pk][detectors.make_group_key(group)].append(judged)
    return {known[pk]: groups for pk, groups in found.items()}


def _row(run: Run, group: Mapping[str, str], items: Sequence[_Judged]) -> dict[str, Any]:
    verdicts, labels = (np.array([one[place] for one in items]) for place in (0, 1))
    made = corrected.correct_rate(verdicts, labels, [one.cluster for one in items])
    missing = int(np.isnan(verdicts).sum())
    estimates: dict[str, Any] = {}
    for name in ESTIMATES:
        estimates |= counted.figure_columns(name, getattr(made, name))
    there = ~np.isnan(verdicts)
    return {
        **counted.run_columns(run),
        "total": len(items),
        "missing": missing,
        **group,
        "labelled": int((there & ~np.isnan(labels)).sum()),
        "unlabelled": int((there & np.isnan(labels)).sum()),
        **estimates,
        "weight": made.weight,
        "width": _compare_widths(made.ppi_plus, made.people),
    }


def _compare_widths(one: Estimate, other: Estimate) -> float | None:
    """The width of one interval as a share of the other's."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return None
    return (one.high - one.low) / (other.high - other.low)


def _width_cell(row: Row, of: columns.Leading) -> Cell:
    width = row["width"]
    if width is None:
        return Cell(reason=row["ppi_plus_reason"] or row["people_reason"] or "")
    return Cell(f"{width:.2f}", width, note="" if width < 1 else "no narrower than people alone")


CORRECTED = Table(
    "corrected",
    (
        *columns.RUN,
        *columns.plain("total"),
        columns.Count("missing", "No verdict"),
        columns.FIELDS,
        columns.Count("labelled", "Labelled"),
        columns.Count("unlabelled", "Not labelled"),
        *(
            column
            for name, title in ESTIMATES.items()
            for column in (
                columns.Figure(name, title, in_percent=True),
                *columns.plain(f"{name}_low", f"{name}_high", f"{name}_reason"),
            )
        ),
        columns.Number("weight", "Weight of the evaluator"),
        columns.Custom("width", "Width relative to people alone", make=_width_cell),
    ),
    tabulate,
    group_by=detectors.BY_ITEM_FIELDS,
    about="A row per run of error detection that also judged items without a final label, and "
    "group: the share of items with an error, estimated in five ways.",
    meanings={
        "total": "number of items that the run judged and that have the final label error, no "
        "error or none yet",
        "missing": "number of items without a verdict; no estimate uses them",
        "labelled": "number of items with a verdict and a final label",
        "unlabelled": "number of items with a verdict and without a final label",
        "people": "share with an error among the labelled items",
        "evaluator": "share called an error among the items that are not labelled",
        "ppi_plus": "share with an error by PPI++: the evaluator's verdicts, corrected by the "
        "labelled items, with the weight that makes the variance least",
        "ppi": "share with an error by PPI, which is PPI++ with the weight 1",
        "rogan_gladen": "share with an error by Rogan and Gladen: the evaluator's share, "
        "corrected by its sensitivity and specificity on the labelled items",
        "weight": "how much PPI++ relies on the evaluator, 0 (not at all) to 1",
        "width": "width of the interval of PPI++ divided by that of people alone; below 1, the "
        "evaluator helps",
    },
)


class _Groups(columns.Leading):
    """The run, and the value of each field that items are grouped by."""

    def headers(self) -> list[Header]:
        titles = self.asked.groups
        fields = [Header(titles.get(one, one), one, is_number=False) for one in self._fields]
        return [Header("Run", "run", is_number=False), *fields]

    def cells(self, row: Row) -> list[Cell]:
        fields = [cells.text_cell(self.asked.group_title(one, row[one])) for one in self._fields]
        return [cells.run_cell(self.runs[row["run"]]), *fields]

    @property
    def _fields(self) -> list[str]:
        return self.asked.fields()


def _draw(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    shown = ("people", "evaluator", "ppi_plus")
    labels = [_label(asked, row) for row in rows]
    room = detector_lines.select_first(labels)
    dots = [
        (
            ESTIMATES[name],
            label,
            Estimate(
                row[name],
                row[f"{name}_low"],
                row[f"{name}_high"],
                sum(row[one] for one in COUNTED.get(name, ("labelled", "unlabelled"))),
            ),
        )
        for row, label in zip(rows, labels, strict=True)
        for name in shown
        if label in room
    ]
    caption = "The share of items with an error, with 95 % intervals."
    return chart_parts.draw_dots(
        dots,
        title="Share of items with an error",
        caption=caption + detector_lines.caption_cut(labels),
        series="Estimated from",
    )


def _label(asked: PageQuery, row: Row) -> str:
    groups = [asked.group_title(one, row[one]) for one in asked.fields()]
    return ": ".join((*groups, cells.run_name(asked.runs_by_number[row["run"]], ": ")))


VIEWS = (
    ResultView(
        slug="rates",
        title="Rates",
        asks=(TableQuery(CORRECTED),),
        figures=("rate", "corrected"),
        build=lines.Lines(
            CORRECTED,
            "The share of items with an error",
            (
                *("labelled", "unlabelled", "people", "evaluator", "ppi_plus", "width", "weight"),
                *("ppi", "rogan_gladen", "missing"),
            ),
            "An evaluator judged all items, people labelled some. People alone: only the labelled "
            "items. Evaluator alone: only the others, as if it were never wrong. The corrected "
            "rates use both: what the evaluator says of the unlabelled items, corrected by how far "
            "it was off on the labelled ones; PPI++ relies on it only as far as that helps. They "
            "hold if the labelled items are a random sample of all, not if people chose them. A "
            "width below 1 says how much narrower the interval of PPI++ is.",
            _draw,
            leading=_Groups,
        ),
        studies={},
        empty="Corrected rates need a run of error detection that also judged items without a "
        "final label: tick “Include items without a final label” when you start it.",
        groups=group_fields.list_fields,
        counts_all=True,
    ),
)
