"""What people found of the explanations of evaluators in audits (study 001, figure 6)."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from django.db.models import Count
from django.db.models.fields.json import KT

from annotation.models import Project
from judging.models import Run
from judging.results import audits, counting

COLUMNS = ("verdict", "total", "missing", *audits.QUALITIES)


def audited(project: Project, runs: Sequence[Run]) -> list[dict[str, Any]]:
    """The table `audits`: of each run and verdict, right or wrong, what its explanations are worth
    by what the audits hold true of them; `missing` are those that nothing is held of yet.

    The explanations are items of other projects, whoever made these. One query.
    """
    found = _counted(project)
    return [
        _row(run, verdict, found[str(run.number), verdict])
        for run in runs
        for verdict in ("right", "wrong")
        if (str(run.number), verdict) in found
    ]


def _counted(project: Project) -> dict[tuple[str, str], Counter[str]]:
    """How many explanations there are of each quality, by run and verdict."""
    found: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    rows = audits.judged().filter(fields__project=project.slug).annotate(run=KT("fields__run"))
    counts = rows.values_list("run", "verdict", "quality").annotate(n=Count("pk"))
    for run, verdict, quality, n in counts:
        found[str(run), verdict][quality] += n
    return found


def _row(run: Run, verdict: str, found: Counter[str]) -> dict[str, Any]:
    return {
        **counting.run_columns(run),
        "verdict": verdict,
        "total": found.total(),
        "missing": found[audits.OPEN],
        **{name: found[name] for name in audits.QUALITIES},
    }
