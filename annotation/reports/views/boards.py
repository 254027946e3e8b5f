"""Reports for a project's leads: progress and pace, and the category board."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from annotation import tasktypes
from annotation.labelling.models.labels import ERROR_ITEM
from annotation.models import Membership, Project
from annotation.projects import access
from annotation.reports import attention, grouping, tables, work_time
from annotation.reports import category_board as reports_category_board
from annotation.reports import person as reports_person
from annotation.reports.category_board import BoardColumn, BoardRow
from annotation.reports.grouping import Grouping
from annotation.reports.pace import Pace
from annotation.reports.tables import ProgressReport
from annotation.tasktypes import main_field
from formats.writers import write_csv


@dataclass(frozen=True)
class BoardLine:
    """A row of the board: its columns with their values, a link to its items, and a link to the
    items counted in its share (a link is "" if no list has exactly these items). If the share of
    this row counts something else than most rows do, `note` says what."""

    row: BoardRow
    cells: list[tuple[BoardColumn, Any]]
    items: str = ""
    counted: str = ""
    note: str = ""


class GroupingForm(forms.Form):
    """Form to choose the grouping of items."""

    def __init__(self, query: Mapping[str, Any], groupings: Sequence[Grouping]) -> None:
        super().__init__(query)
        named = [(one.name, one.title) for one in groupings]
        self.fields["by"] = forms.ChoiceField(label="Group by", required=False, choices=named)

    def chosen(self, name: str) -> Any:
        """The chosen value; "" if it is invalid."""
        self.is_valid()
        return self.cleaned_data.get(name) or ""


class BoardForm(GroupingForm):
    """Form to choose the answer whose share is shown, and the threshold."""

    def __init__(
        self,
        query: Mapping[str, Any],
        groupings: Sequence[Grouping],
        answers: Sequence[tuple[str, str]],
    ) -> None:
        super().__init__(query, groupings)
        if answers:  # task types with points have none
            self.fields["value"] = forms.ChoiceField(
                label="Share of", required=False, choices=answers
            )
        self.fields["bar"] = forms.IntegerField(
            label="Threshold (%)", required=False, min_value=1, max_value=99
        )


@require_safe
@login_required
def progress(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the pace of the work, the forecast, choices by day, and dropped items."""
    member = access.member_for(request, slug, right="manage")
    project, groupings = member.project, grouping.list_groupings(member.project)
    wanted = GroupingForm(request.GET, groupings).chosen("by")
    by = next((one for one in groupings if one.name == wanted), groupings[0])
    kept = tables.load_progress(project, by=by, now=timezone.now())
    context = {
        "project": project,
        "member": member,
        "filters": GroupingForm({"by": by.name}, groupings) if len(groupings) > 1 else None,
        "by": by,
        "kept": kept,
        "pace": kept.value.pace,
        "dropped": kept.value.dropped,
        **_charts(project, kept.value),
    }
    return render(request, "annotation/reports/pace.html", context)


@require_safe
@login_required
def person(request: HttpRequest, slug: str, alias: str) -> HttpResponse:
    """What one member has done, for leads."""
    lead = access.member_for(request, slug, right="manage")
    member = Membership.objects.in_project(lead.project).named(alias)
    if member is None:
        raise Http404
    member.project = lead.project
    context = {
        "project": lead.project,
        "member": lead,
        "person": member,
        "report": reports_person.build_report(member, timezone.now()),
        "fastest": attention.MOST_WORDS_A_SECOND,
        "task": tasktypes.load_task_type(lead.project),
    }
    return render(request, "annotation/reports/person.html", context)


@require_safe
@login_required
def work_time_file(request: HttpRequest, slug: str) -> HttpResponse:
    """Work time per person and day as CSV."""
    member = access.member_for(request, slug, right="manage")
    stream = io.StringIO(newline="")
    write_csv(work_time.count_work_time(member.project), work_time.COLUMNS, stream)
    response = HttpResponse(stream.getvalue(), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{slug}-work-time.csv"'
    return response


@require_safe
@login_required
def category_board(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the share valid per category, and whether more items could change the result."""
    member = access.member_for(request, slug, right="manage")
    project, answers = member.project, reports_category_board.answer_choices(member.project)
    groupings = grouping.list_groupings(project)
    form = BoardForm(request.GET, groupings, answers)
    by = next((one for one in groupings if one.name == form.chosen("by")), groupings[0])
    value = form.chosen("value") or reports_category_board.default_answer(project)
    answer = dict(answers).get(value, "")
    percent = form.chosen("bar") or round(100 * reports_category_board.DEFAULT_THRESHOLD)
    shown = {"by": by.name, "value": value, "bar": percent}
    kept = tables.load_board(project, by=by, value=value, bar=percent / 100, now=timezone.now())
    columns = reports_category_board.list_columns(kept.value)
    sort, rows = _sorted(kept.value, request.GET.get("sort", ""))
    context = {
        "project": project,
        "member": member,
        "filters": BoardForm(shown, groupings, answers),
        "by": by,
        "answer": answer,
        "value": value,
        "bar": percent / 100,
        "kept": kept,
        "lines": [_line(project, by, row, columns, value, dict(answers)) for row in rows],
        "sort": sort,
        "columns": columns,
        # A short title, since axis titles do not break into lines.
        "chart": _share_chart(
            kept.value,
            "As intended" if value == reports_category_board.AS_INTENDED else answer,
            percent / 100,
        ),
    }
    return render(request, "annotation/reports/category_board.html", context)


def _sorted(rows: Sequence[BoardRow], wanted: str) -> tuple[str, list[BoardRow]]:
    """Sort the rows by the name of a column, with the largest value first after "-". Return this
    order, "" if there is no such column, and the rows."""
    name = wanted.removeprefix("-")
    column = next((one for one in reports_category_board.COLUMNS if one.name == name), None)
    if column is None:
        return "", list(rows)
    known = [(place, row) for row in rows if (place := column.place(row)) is not None]
    known.sort(key=lambda pair: pair[0], reverse=wanted.startswith("-"))
    unknown = [row for row in rows if column.place(row) is None]
    return wanted, [*(row for _, row in known), *unknown]


def _line(
    project: Project,
    by: Grouping,
    row: BoardRow,
    columns: Sequence[BoardColumn],
    value: str,
    titles: Mapping[str, str],
) -> BoardLine:
    cells = [(column, getattr(row, column.name)) for column in columns]
    if by.name not in grouping.TAXONOMY_COLUMNS or not row.name:
        return BoardLine(row, cells)
    items = f"{reverse('items', args=[project.slug])}?{urlencode({by.name: row.name})}"
    if row.answer == reports_category_board.AS_INTENDED:
        return BoardLine(row, cells, items)
    score = main_field.load_main_field(project).name  # of several, the filter needs its name
    held = f"{score}:{row.answer}" if score else row.answer
    counted = f"{items}&{urlencode({'resolution': held})}"
    said = row.answer in (value, ERROR_ITEM)
    return BoardLine(row, cells, items, counted, "" if said else titles[row.answer].lower())


def _charts(project: Project, shown: ProgressReport) -> dict[str, Any]:
    # Imported here, since importing Altair takes a second and commands should not wait for it.
    from charts import pace as drawn

    measured = shown.pace
    counts = [drawn.ChoiceCount(one.day, one.title, one.n) for one in shown.chosen]
    order = [title for _, title in main_field.load_main_field(project).options]
    order += sorted({one.choice for one in counts} - set(order))
    order = [title for title in order if title in {one.choice for one in counts}]
    timed = [
        drawn.LabelTime(
            one.alias, one.seconds.low, one.seconds.median, one.seconds.high, one.seconds.n
        )
        for one in measured.people
        if one.seconds.low is not None
        and one.seconds.median is not None
        and one.seconds.high is not None
    ]
    return {
        "choices_chart": drawn.draw_choices(counts, order=order) if counts else None,
        "way_chart": _progress_chart(measured),
        "times_chart": drawn.draw_times(timed) if timed else None,
    }


def _progress_chart(measured: Pace) -> dict[str, Any] | None:
    from charts import pace as drawn

    steps, total = [], 0
    for day, n in measured.done:
        total += n
        steps.append(drawn.DailyTotal(day, total))
    ahead = measured.whole.forecast
    if not steps:
        return None
    if not ahead.left:
        return drawn.draw_progress(steps, places=total)
    days = {"ends": ahead.ends, "earliest": ahead.earliest, "latest": ahead.latest}
    return drawn.draw_progress(steps, places=total + ahead.left, **days)


def _share_chart(rows: Sequence[BoardRow], title: str, bar: float) -> dict[str, Any] | None:
    from charts import board as drawn

    found = [
        drawn.ShareInterval(row.title, row.share.value, row.share.low, row.share.high, row.share.n)
        for row in rows
        if row.share.value is not None
    ]
    return drawn.draw_shares(found, title=title, bar=bar) if found else None
