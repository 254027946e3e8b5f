"""What people found of the explanations of evaluators in audits (study 001, figure 6)."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from django.db.models import Count, OuterRef, Subquery
from django.db.models.fields.json import KT

from annotation.models import Item, Project, Resolution
from judging.models import Run
from judging.results import audits, counting

QUALITIES = ("correct", "insufficient", "wrong", "none")
COLUMNS = ("verdict", "total", "missing", *QUALITIES)
# How databases write what JSON holds as true.
_TRUE = {"true", "1"}


def audited(project: Project, runs: Sequence[Run]) -> list[dict[str, Any]]:
    """The table `audits`: of each run and verdict, right or wrong, what its explanations are worth
    by what the audits hold true of them; `missing` are those that nothing is held of yet.

    The explanations are items of other projects, whoever made these. One query.
    """
    found = _counted(project, runs)
    return [
        _row(run, verdict, found[run.number, verdict])
        for run in runs
        for verdict in ("right", "wrong")
        if (run.number, verdict) in found
    ]


def _counted(project: Project, runs: Sequence[Run]) -> dict[tuple[int, str], Counter[str]]:
    numbers = {str(run.number): run.number for run in runs}
    held = Resolution.objects.current().filter(item=OuterRef("pk")).values("value")[:1]
    items = Item.objects.live().filter(
        project__task_type__slug=audits.TASK, fields__project=project.slug
    )
    rows = items.order_by().annotate(
        of_run=KT("fields__run"), right=KT("fields__verdict_is_right"), held=Subquery(held)
    )
    found: dict[tuple[int, str], Counter[str]] = {}
    for run, right, value, n in rows.values_list("of_run", "right", "held").annotate(n=Count("pk")):
        if str(run) in numbers:
            verdict = "right" if str(right).lower() in _TRUE else "wrong"
            found.setdefault((numbers[str(run)], verdict), Counter())[value or ""] += n
    return found


def _row(run: Run, verdict: str, found: Counter[str]) -> dict[str, Any]:
    known = {name: found[name] for name in QUALITIES}
    total = found.total()
    return {
        **counting.run_columns(run),
        "verdict": verdict,
        "total": total,
        "missing": total - sum(known.values()),
        **known,
    }
