"""How good are the explanations of evaluators, according to people? The table `audits` (study 001,
figure 6), and its view of the page Explanations."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from django.db.models import Count
from django.db.models.fields.json import KT

from annotation.models import Project
from judging.models import Run
from judging.results import cells, chart_parts, columns, counted, explanation_audits, lines
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


def tabulate(project: Project, runs: Sequence[Run]) -> list[dict[str, Any]]:
    """The table `audits`: for each run and verdict (right or wrong), the number of explanations by
    audited quality; `missing` counts the explanations that are not judged yet.

    The unit is the item, not the call: if an item has several explanations, such as one per sample,
    each counts as a fraction. The explanations are items of other projects, whoever created these
    projects. Makes one query.
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
    rows = explanation_audits.judged_explanations().filter(fields__project=project.slug)
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
)


class _Runs(columns.Leading):
    """Runs whose figures link to all outcomes, including those left out of figures."""

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


VIEW = ResultView(
    slug="audits",
    title="Audits",
    asks=(TableQuery(AUDITS, ""),),
    build=lines.Lines(
        AUDITS,
        "Quality of explanations",
        ("run", "verdict", "total", "missing", *explanation_audits.QUALITIES),
        "A sample of explanations was audited by people. Correct: everything relevant is "
        "checked and true; insufficient: something is left out; wrong: a step is false; "
        "none: only a verdict. An audit uses the same items for every run. Each item counts once: "
        "if it has several explanations, such as one per sample, they share its weight equally.",
        _draw,
        _with_parsed,
        _Runs,
    ),
    studies={"001": study_figures("figure 6")},
    empty=(
        "No explanations of the chosen runs have been audited. Create an audit with “manage.py "
        "make_audit” and have its items labelled."
    ),
)
