"""What people found of the explanations of evaluators in audits (study 001, figure 6)."""

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
    """The table `audits`: of each run and verdict, right or wrong, what its explanations are worth
    by what the audits hold true of them; `missing` are those that nothing is held of yet.

    Items are counted, not calls: of one that has several explanations, as one of each sample, each
    counts for its share. The explanations are items of other projects, whoever made these. One
    query.
    """
    found = _count_by_quality(project)
    return [
        _row(run, verdict, found[str(run.number), verdict])
        for run in runs
        for verdict in ("right", "wrong")
        if (str(run.number), verdict) in found
    ]


def _count_by_quality(project: Project) -> dict[tuple[str, str], dict[str, Fraction]]:
    """How many items have an explanation of each quality, by run and verdict."""
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
