"""How good are the explanations of evaluators, according to people? The tables `audits` and
`audit_classes` (study 001, figure 6), and their view of the page Explanations."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from django.db.models import Count
from django.db.models.fields.json import KT

from annotation.models import Project
from judging.models import Run
from judging.results import cells, chart_parts, columns, counted, explanation_audits, lines
from judging.results.cells import Row
from judging.results.columns import Table
from judging.results.page_parts import (
    INTERVAL_WORDS,
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    StudyFigure,
    Switch,
    TableQuery,
    ViewContent,
)
from stats import rates

# The classes of explanations by verdict and quality, in the order of study 001's figure 6. The last
# one is not in the study: a verdict is wrong, but people find nothing wrong with its explanation.
CLASSES = (
    *(("right", quality) for quality in ("correct", "insufficient", "wrong", "none")),
    *(("wrong", quality) for quality in ("none", "insufficient", "wrong", "correct")),
)
STUDIED = CLASSES[:-1]


def tabulate(project: Project, runs: Sequence[Run]) -> list[dict[str, Any]]:
    """The table `audits`: for each run and verdict (right or wrong), the number of explanations by
    audited quality; `missing` counts the explanations that are not judged yet.

    The unit is the item, not the call: if an item has several explanations, such as one per sample,
    each counts as a fraction. The explanations are items of other projects, of those that a lead of
    this project or a site admin leads. Makes two queries, and four for each
    audited run with ratings.
    """
    found = _count_by_quality(project)
    return [
        _row(run, verdict, found[str(run.number), verdict])
        for run in runs
        for verdict in ("right", "wrong")
        if (str(run.number), verdict) in found
    ]


def _count_by_quality(project: Project) -> dict[tuple[str, str], dict[str, Fraction]]:
    """Count the items with an explanation of each quality, by run and verdict."""
    found: dict[tuple[str, str], dict[str, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    several: Counter[tuple[str, str]] = Counter()
    rows = explanation_audits.judged_explanations(project)
    rows = rows.annotate(run=KT("fields__run"), item=KT("fields__item"))
    counts = list(rows.values_list("run", "item", "verdict", "quality").annotate(n=Count("pk")))
    for run, item, *_, n in counts:
        several[run, item] += n
    for run, item, verdict, quality, n in counts:
        found[str(run), verdict][quality] += Fraction(n, several[run, item])
    return found


def _row(run: Run, verdict: str, found: dict[str, Fraction]) -> dict[str, Any]:
    return {
        **counted.run_columns(run),
        "verdict": verdict,
        "total": counted.round_sum(sum(found.values())),
        "missing": counted.round_sum(found[explanation_audits.UNJUDGED]),
        **{name: counted.round_sum(found[name]) for name in explanation_audits.QUALITIES},
    }


def tabulate_classes(project: Project, runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """The table `audit_classes`: for each run with audited explanations, the share of each class of
    explanations, by verdict and quality, among the `n` items with a judged explanation; over all
    classes the shares add up to 1.

    `total` counts the items with an explanation in an audit, `missing` those of which none is
    judged yet. An item with several judged explanations counts with its share of each class in
    `count`. `low` and `high` are the 95 % interval over source questions. A wrong verdict with a
    correct explanation, which study 001 does not have, has a row only if there is one. Makes two
    queries, and four for each audited run with ratings.
    """
    found: dict[str, dict[str, list[tuple[str, str, str]]]] = defaultdict(lambda: defaultdict(list))
    rows = explanation_audits.judged_explanations(project)
    rows = rows.annotate(run=KT("fields__run"), item=KT("fields__item"))
    columns_of = ("run", "item", "cluster", "verdict", "quality")
    for run, item, *said in rows.order_by("pk").values_list(*columns_of):
        found[str(run)][item].append(tuple(said))
    for run in runs:
        if items := found.get(str(run.number)):
            yield from _class_rows(run, list(items.values()))


def _class_rows(run: Run, items: Sequence[list[tuple[str, str, str]]]) -> Iterator[dict[str, Any]]:
    """The rows of a run; each item is given by the cluster, verdict and quality of its
    explanations."""
    clusters, classes = [], []
    for item in items:
        judged = [one for one in item if one[2] != explanation_audits.UNJUDGED]
        if judged:
            clusters.append(judged[0][0])
            classes.append([one[1:] for one in judged])
    for verdict, quality in CLASSES:
        hits = np.array([own.count((verdict, quality)) / len(own) for own in classes])
        if (verdict, quality) not in STUDIED and not hits.any():
            continue
        yield {
            **counted.run_columns(run),
            "total": len(items),
            "missing": len(items) - len(classes),
            "verdict": verdict,
            "quality": quality,
            "n": len(classes),
            "count": counted.round_sum(hits.sum()),
            **counted.estimate_columns(rates.estimate_rate(hits, clusters)),
        }


def _audited(quality: str = "") -> columns.Link:
    """The outcomes whose explanation has this quality, or all outcomes of the verdict."""
    return columns.items(audited=f"{{verdict}}-{quality}" if quality else "{verdict}")


AUDITS = Table(
    "audits",
    (
        columns.RunNumber("run", "Run"),
        *columns.plain("endpoint", "strategy"),
        columns.Text("verdict", "The verdict was"),
        columns.Count("total", "Items", _audited()),
        columns.Count("missing", "Not audited yet", _audited(explanation_audits.UNJUDGED)),
        *(
            columns.Share(name, name.capitalize(), _audited(name))
            for name in explanation_audits.QUALITIES
        ),
    ),
    lambda project, runs, by: tabulate(project, runs),
    # This table is never cached: it depends on other projects, and their changes are not counted
    # here.
    at_once=None,
    about="A row per run and verdict (right or wrong): how many of its explanations people "
    "judged correct, insufficient, wrong or absent.",
    meanings={
        "verdict": "whether the verdict of the evaluator was `right` or `wrong`",
        "total": "number of items that count in figures and have an explanation in an audit; "
        "several explanations of an item share its weight",
        "missing": "number of items whose explanation is not judged yet",
        "correct": "number with an explanation in which everything relevant is checked and true",
        "insufficient": "number with an explanation that leaves something out",
        "wrong": "number with an explanation in which a step is false",
        "none": "number with a verdict alone, without an explanation",
    },
)


AUDIT_CLASSES = Table(
    "audit_classes",
    (
        columns.RunNumber("run", "Run"),
        *columns.plain("endpoint", "strategy", "total", "missing"),
        columns.Text("verdict", "The verdict was"),
        columns.Text(
            "quality",
            "The explanation is",
            write=lambda row: row["quality"].capitalize(),
            place=lambda row: CLASSES.index((row["verdict"], row["quality"])),
        ),
        columns.Count("count", "Items", columns.items(audited="{verdict}-{quality}")),
        columns.Rate("rate", "Share of all explanations", n="n"),
        *columns.plain("n", "low", "high", "reason"),
    ),
    lambda project, runs, by: tabulate_classes(project, runs),
    # Never cached, as `audits`.
    at_once=None,
    about="A row per run, verdict and quality of explanations: its share of all judged "
    "explanations.",
    meanings={
        "total": "number of items that count in figures and have an explanation in an audit",
        "missing": "number of items without a judged explanation",
        "verdict": "whether the verdict of the evaluator was `right` or `wrong`",
        "quality": "what people judged the explanation to be: `correct`, `insufficient`, `wrong` "
        "or `none`",
        "n": "number of items with a judged explanation",
        "count": "number of items with this verdict and quality; several explanations of an item "
        "share its weight",
        "rate": "count divided by n; the shares of all rows of a run add up to 1",
    },
)
SHOW_SWITCH = Switch(
    "show", "Shares of", {"verdicts": "Right and wrong verdicts", "classes": "All explanations"}
)


class _Runs(columns.Leading):
    """Runs whose figures link to outcomes of all items, with and without an error."""

    def items_url(self, row: Row, **which: str) -> str:
        return cells.outcomes_url(self.runs[row["run"]], **which)


def _with_parsed(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    return [{**row, "parsed": row["total"] - row["missing"]} for row in tables[0]]


def _draw(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    caption = (
        "Quality of explanations by whether the verdict was right, as shares of the audited "
        "explanations; numbers are items."
    )
    named = [
        (
            f"Verdict {row['verdict']}: {cells.run_name(asked.runs_by_number[row['run']], ': ')}",
            row,
        )
        for row in rows
    ]
    kinds = {name: name.capitalize() for name in explanation_audits.QUALITIES}
    return chart_parts.draw_bars(named, kinds, "Share of explanations", caption)


def _draw_classes(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    dots = [
        (
            cells.run_name(asked.runs_by_number[row["run"]]),
            f"Verdict {row['verdict']}: {row['quality']}",
            AUDIT_CLASSES.rate("rate").estimate(row),
        )
        for place in CLASSES
        for row in rows
        if (row["verdict"], row["quality"]) == place
    ]
    caption = (
        "The share of each class among the audited explanations of a run, with 95 % intervals."
    )
    return chart_parts.draw_dots(dots, title="Share of all explanations", caption=caption)


_WORDS = (
    "A sample of explanations was audited by people. Correct: everything relevant is checked and "
    "true; insufficient: something is left out; wrong: a step is false; none: only a verdict. An "
    "audit uses the same items for every run. Each item counts once: if it has several "
    "explanations, such as one per sample, they share its weight equally."
)
_BY_VERDICT = lines.Lines(
    AUDITS,
    "Quality of explanations",
    ("run", "verdict", "total", "missing", *explanation_audits.QUALITIES),
    _WORDS,
    _draw,
    _with_parsed,
    _Runs,
)
_BY_CLASS = lines.Lines(
    AUDIT_CLASSES,
    "Classes of explanations",
    ("run", "verdict", "quality", "count", "rate"),
    f"{_WORDS} Shares are of all audited explanations of a run, with right and wrong verdicts. "
    f"{INTERVAL_WORDS}",
    _draw_classes,
    lambda asked, tables: tables[1],
    _Runs,
)


def build(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """A line per run and verdict, or one per run and class."""
    is_by_class = asked.switch_value(SHOW_SWITCH.name) == "classes"
    return (_BY_CLASS if is_by_class else _BY_VERDICT)(asked, tables)


VIEW = ResultView(
    slug="audits",
    title="Audits",
    asks=(TableQuery(AUDITS, ""), TableQuery(AUDIT_CLASSES, "")),
    figures=("audit_classes",),
    build=build,
    switches=(SHOW_SWITCH,),
    studies={"001": (StudyFigure("figure 6", query={"show": "classes"}),)},
    empty=(
        "No explanations of the chosen runs have been audited. Create an audit with “manage.py "
        "make_audit” and have its items labelled. An audit counts if a lead of this project, or a "
        "site admin, leads it too."
    ),
)
