"""How much do the runs notice? The page of a project's figures, and their tables as files."""

import io
from collections.abc import Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_GET

from annotation import access
from annotation.models import Project
from formats.writers import write_figures
from judging.models import Run
from judging.results import figures, reports, tables
from judging.views import matrix

TYPES = {
    "csv": "text/csv; charset=utf-8",
    "tsv": "text/tab-separated-values; charset=utf-8",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "latex": "text/x-tex; charset=utf-8",
    "markdown": "text/markdown; charset=utf-8",
}
SUFFIXES = {"latex": "tex", "markdown": "md"}


@require_GET
@login_required
def results(request: HttpRequest, slug: str) -> HttpResponse:
    """Rates by ability and category for the chosen runs, by default for all."""
    member = access.member_for(request, slug, right="results")
    measure = matrix.MEASURES.get(request.GET.get("measure", ""), matrix.MEASURES["detection"])
    chosen = _chosen(member.project, request.GET)
    sections = matrix.sections(chosen, measure)
    left_out = [(run, reports.left_out(run)) for run in chosen]
    context = {
        "project": member.project,
        "member": member,
        "measure": measure,
        "runs": _offered(member.project, chosen),
        "chosen": chosen,
        "sections": sections,
        "chart": _chart(chosen, sections, measure),
        "caption": _caption(measure),
        "left_out": left_out,
        "nothing_left_out": not any(left.pending or left.other_revision for _, left in left_out),
    }
    return render(request, "judging/results.html", context)


@require_GET
@login_required
def download(request: HttpRequest, slug: str, table: str, form: str) -> HttpResponse:
    """A table of figures as the command prints it: fractions of 1, unrounded."""
    member = access.member_for(request, slug, right="results")
    if table not in tables.RESULTS or form not in TYPES:
        raise Http404
    try:
        made = figures.make(member.project, table, request.GET)
    except (figures.UnknownRun, reports.UnknownField) as error:
        raise Http404(str(error)) from error
    stream = io.StringIO(newline="")
    write_figures(form, table, made.rows, made.columns, stream)
    response = HttpResponse(stream.getvalue(), content_type=TYPES[form])
    response["Content-Disposition"] = (
        f'attachment; filename="{slug}-{table}.{SUFFIXES.get(form, form)}"'
    )
    return response


def _offered(project: Project, chosen: Sequence[Run]) -> list[Run]:
    """The runs to choose from: archived ones and pilots only if they are chosen already."""
    every = Run.objects.in_project(project).for_results()
    return [run for run in every if run.archived_at is None or run in chosen]


def _chosen(project: Project, query: QueryDict) -> list[Run]:
    try:
        return figures.chosen(project, query)
    except figures.UnknownRun as error:
        raise Http404(str(error)) from error


def _chart(
    runs: Sequence[Run], sections: Sequence[matrix.Section], measure: matrix.Measure
) -> dict[str, Any] | None:
    """One mark a run and ability; None without a defined rate."""
    # Altair takes a second to import; no command should wait for it.
    from charts import detection

    points = [
        detection.Point(
            run=f"{run.number} · {run.strategy.slug} · {run.endpoint.name}",
            group=_group(section, measure),
            rate=cell.value,
            low=cell.low,
            high=cell.high,
            n=cell.n,
        )
        for section in sections
        if section.head
        for run, cell in zip(runs, section.head.cells, strict=True)
        if cell.value is not None
    ]
    return detection.dot_plot(points, title=measure.title) if points else None


def _caption(measure: matrix.Measure) -> str:
    return (
        f"{measure.title} by ability, with 95 % intervals; for score-invariant items"
        f" {measure.on_invariant}. The table below has the same figures."
    )


def _group(section: matrix.Section, measure: matrix.Measure) -> str:
    return f"{section.title}: {measure.on_invariant}" if section.invariant else section.title
