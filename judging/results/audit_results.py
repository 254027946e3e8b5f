"""Results of human audits of evaluators' explanations (study 001, figure 6)."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from django.db.models import Count
from django.db.models.fields.json import KT

from annotation.models import Project
from judging.models import Run
from judging.results import counted, explanation_audits

COLUMNS = ("verdict", "total", "missing", *explanation_audits.QUALITIES)


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
