"""Reports for a project's leads: progress and pace, and the category board."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from annotation.labelling.models.labels import ERROR_ITEM
from annotation.models import Project
from annotation.projects import access
from annotation.reports import category_board as reports_category_board
from annotation.reports import grouping, tables
from annotation.reports.category_board import BoardRow
from annotation.reports.grouping import Grouping
from annotation.reports.pace import Pace
from annotation.reports.tables import ProgressReport
from annotation.tasktypes import main_field

# The columns by which the board can be sorted, with their sort keys. None is last in both
# directions.
ORDERS: dict[str, Callable[[BoardRow], Any]] = {
    "items": lambda row: row.items,
    "resolved": lambda row: row.resolved,
    "share": lambda row: row.share.value,
    "corrected": lambda row: row.corrected.value,
    "surgicality": lambda row: row.surgicality.value,
    "alpha": lambda row: row.alpha.value,
    "seconds": lambda row: row.seconds.median,
    "detectability": lambda row: row.detectability.value,
    "more": lambda row: row.more,
}


@dataclass(frozen=True)
class BoardLine:
    """A row of the board, with a link to its items and a link to the items counted in its share (a
    link is "" if no list has exactly these items). If the share of this row counts something else
    than most rows do, `note` says what."""

    row: BoardRow
    items: str
    counted: str
    note: str


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
    sort, order = _order(request.GET.get("sort", ""))
    context = {
        "project": project,
        "member": member,
        "filters": BoardForm(shown, groupings, answers),
        "by": by,
        "answer": answer,
        "value": value,
        "bar": percent / 100,
        "kept": kept,
        "lines": [_line(project, by, row, value, dict(answers)) for row in order(kept.value)],
        "sort": sort,
        "columns": _shown_columns(kept.value),
        # A short title, since axis titles do not break into lines.
        "chart": _share_chart(
            kept.value,
            "As intended" if value == reports_category_board.AS_INTENDED else answer,
            percent / 100,
        ),
    }
    return render(request, "annotation/reports/category_board.html", context)


def _order(wanted: str) -> tuple[str, Callable[[Sequence[BoardRow]], list[BoardRow]]]:
    """Return the sort order of the rows: the name of a column, after "-" if the largest value is
    first."""
    name = wanted.removeprefix("-")
    if name not in ORDERS:
        return "", list
    key, down = ORDERS[name], wanted.startswith("-")

    def ordered(rows: Sequence[BoardRow]) -> list[BoardRow]:
        known = [row for row in rows if key(row) is not None]
        unknown = [row for row in rows if key(row) is None]
        return sorted(known, key=key, reverse=down) + unknown

    return wanted, ordered


def _line(
    project: Project, by: Grouping, row: BoardRow, value: str, titles: Mapping[str, str]
) -> BoardLine:
    if by.name not in grouping.TAXONOMY_COLUMNS or not row.name:
        return BoardLine(row, "", "", "")
    items = f"{reverse('items', args=[project.slug])}?{urlencode({by.name: row.name})}"
    if row.answer == reports_category_board.AS_INTENDED:
        return BoardLine(row, items, "", "")
    counted = f"{items}&{urlencode({'resolution': row.answer})}"
    said = row.answer in (value, ERROR_ITEM)
    return BoardLine(row, items, counted, "" if said else titles[row.answer].lower())


def _shown_columns(rows: Sequence[BoardRow]) -> list[tuple[str, str, str]]:
    """Return name, title and explanation of the columns, without columns that the project does not
    use."""
    used = {
        "surgicality": any(row.surgicality.n for row in rows),
        "detectability": any(row.detectability.n for row in rows),
    }
    return [column for column in BOARD_COLUMNS if used.get(column[0], True)]


BOARD_COLUMNS = [
    ("items", "Items", "Without deleted items and duplicates."),
    ("resolved", "Resolved", "Items with a final label."),
    ("share", "", (
        "Share of items with a final label; the interval allows for several items per source "
        "question. As intended: score-invariant in score-invariant categories, valid in all others."
    )),
    ("corrected", "Corrected", "Items with a final label whose text a member corrected."),
    ("surgicality", "Surgicality", (
        "Share of changed pieces explained by the claim, mean over items."
    )),
    ("alpha", "Alpha", (
        "Krippendorff’s alpha of the deciding question, over items with two or more labels."
    )),
    ("seconds", "Median time", "Labelling time, without labels that took over 30 minutes."),
    ("detectability", "Detected blind", (
        "Share of annotators who saw an error before the change was shown, mean over items."
    )),
    ("more", "Robust to", (
        "Even if this many more items all had the opposite result, the interval would stay on "
        "the same side of the threshold. A dash: the interval contains the threshold, so the "
        "next items may decide."
    )),
]  # fmt: skip


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
