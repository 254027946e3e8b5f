"""Which categories of errors do detectors find? The table `error_kinds`, and its view of the page
Detector."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from annotation import tasktypes
from annotation.models import Project, Resolution
from annotation.tasktypes.fields import Field
from judging.models import Run
from judging.results import (
    chart_parts,
    columns,
    detector_lines,
    detector_verdicts,
    detectors,
    group_fields,
    lines,
)
from judging.results.columns import Table
from judging.results.detector_lines import Detectors
from judging.results.detector_verdicts import OTHER_ITEMS_REASON, DetectorLine
from judging.results.detectors import ERROR
from judging.results.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    TableQuery,
)
from stats.estimates import Estimate
from stats.rates import clustered_wilson, sum_clusters

# A field of the task and one of its values; "" if an error has none.
ErrorKind = tuple[str, str]


def tabulate(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The table `error_kinds`: for every run and for the mean over an evaluator's four prompts, the
    recall among the items with an error of each category.

    The categories are the values of each resolved field with choices, except the deciding one, such
    as `error_type`; an item may have several, and has the `value` "" if people named none.
    `detected` of `n` items were called an error. The `missing` items have no verdict and count as
    not detected, as in recall. `low` and `high` are Wilson's interval for clustered items. Raises
    `UnknownField`.
    """
    said = detectors.load_verdicts(runs, detectors.check_groupings(project, by))
    held = _load_kinds(project)
    for part in detector_verdicts.build_lines(runs, said, by):
        yield from _rows(part, held)


def error_kind_fields(project: Project) -> list[Field]:
    """The fields of the task that distinguish categories of error."""
    task = tasktypes.load_task_type(project)
    return [one for one in task.resolved if one is not task.deciding and one.options]


def _load_kinds(project: Project) -> dict[int, list[ErrorKind]]:
    """Load the categories of each item whose final label is an error."""
    names = [one.name for one in error_kind_fields(project)]
    errors = Resolution.objects.current().of_project(project).filter(value=ERROR)
    return {
        item: [(name, kind) for name in names for kind in _answer_values(values.get(name))]
        for item, values in errors.values_list("item", "values")
    }


def _answer_values(said: object) -> list[str]:
    if isinstance(said, list):
        return [str(one) for one in said] or [""]
    return [str(said)] if said is not None else [""]


def _rows(part: DetectorLine, held: Mapping[int, Sequence[ErrorKind]]) -> Iterator[dict[str, Any]]:
    items: dict[ErrorKind, list[int]] = defaultdict(list)
    for item in part.common:
        for kind in held.get(item, ()) if part.said[0][item].is_error else ():
            items[kind].append(item)
    for (field, value), found in sorted(items.items()):
        verdicts = [said[item].verdict for said in part.said for item in found]
        prompts, recall = len(part.said), _recall(part, found)
        reason = part.reason or (OTHER_ITEMS_REASON if part.other_items else recall.reason)
        is_there = not (part.reason or part.other_items)
        yield {
            **part.head(),
            "total": len(found),
            "missing": verdicts.count(None) / prompts,
            **part.group,
            "field": field,
            "value": value,
            "n": len(found),
            "detected": verdicts.count(True) / prompts if is_there else None,
            "recall": recall.value if is_there else None,
            "low": recall.low if is_there else None,
            "high": recall.high if is_there else None,
            "reason": reason or None,
        }


def _recall(part: DetectorLine, items: Sequence[int]) -> Estimate:
    """The recall; for a mean, an item's hit is the share of the prompts that detect it."""
    clusters: dict[str, list[float]] = defaultdict(list)
    for item in items:
        hits = sum(said[item].verdict is True for said in part.said) / len(part.said)
        clusters[part.said[0][item].cluster].append(hits)
    return clustered_wilson(sum_clusters((len(hits), sum(hits)) for hits in clusters.values()))


_ITEMS = columns.items(truth="error", kind="{field}:{value}")
_RECALL = columns.Rate(
    "recall",
    "Recall",
    {**_ITEMS, "result": "detected"},
    n="n",
    missing="",
)
ERROR_KINDS = Table(
    "error_kinds",
    (
        *columns.RUN,
        columns.Column("total"),
        columns.MeanCount("missing", "No verdict", {**_ITEMS, "result": "missing"}),
        columns.FIELDS,
        columns.Column("field"),
        columns.Text("value", "Error category", write=lambda row: row["kind"], sort="kind"),
        columns.Count("n", "Errors", _ITEMS),
        columns.MeanCount("detected", "Detected", {**_ITEMS, "result": "detected"}),
        columns.Custom(
            "recall", "Recall", make=lambda row, of: replace(_RECALL.cell(row, of), n=None)
        ),
        *columns.plain("low", "high", "reason"),
    ),
    tabulate,
    group_by=detectors.BY_ITEM_FIELDS,
    about="A row per run, or mean over an evaluator's four prompts, group and error category: "
    "the recall among items with such an error.",
    meanings={
        "run": "number of the run; empty for a mean",
        "strategy": "name of the strategy, or `mean` over the four prompts of an evaluator",
        "total": "the same as `n`",
        "missing": "number of items of this category without a verdict; of several prompts, the "
        "mean",
        "field": "field of the task type that has the categories of errors",
        "value": "category of the error, a value of `field`; empty if annotators named none",
        "n": "number of items labelled as an error of this category",
        "detected": "number of items called an error; of several prompts, the mean",
        "recall": "detected divided by n; an item without a verdict counts as not detected",
        "low": "lower end of the 95 % interval of `recall`",
        "high": "upper end of this interval",
        "reason": "why `recall` or its interval is empty",
    },
)


def _select(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    """The rows to show, each with the title of its category as annotators saw it. A value that is
    no longer an option is its own title."""
    titles = {
        (field.name, str(option.value)): option.title
        for field in error_kind_fields(asked.project)
        for option in field.options
    }
    return [
        {**row, "kind": titles.get((row["field"], row["value"]), row["value"] or "none named")}
        for row in Detectors(asked, tables[0]).kept(tables[0], "recall")
    ]


def _draw(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    labels = Detectors(asked, rows).labels(rows)
    room = detector_lines.select_first(labels)
    found = [
        (row["kind"], label, _RECALL.estimate(row))
        for row, label in zip(rows, labels, strict=True)
        if label in room
    ]
    caption = "Recall by error category, with 95 % intervals."
    return chart_parts.draw_dots(
        found,
        title="Recall",
        caption=caption + detector_lines.caption_cut(labels),
        series="Error category",
    )


VIEW = ResultView(
    slug="kinds",
    title="Error categories",
    asks=(TableQuery(ERROR_KINDS),),
    figures=("detector",),
    build=lines.Lines(
        ERROR_KINDS,
        "Recall by error category",
        ("kind", "n", "missing", "detected", "recall"),
        "Recall among the items labelled with an error of this category; an item with several "
        "categories counts in each. An item without a verdict counts as not detected. If a "
        "detector was asked with four prompts, recall and detected are means over the prompts.",
        _draw,
        _select,
        Detectors,
    ),
    studies={},
    empty=detector_lines.EMPTY,
    switches=(detector_lines.ROWS_SWITCH,),
    groups=group_fields.list_fields,
)
