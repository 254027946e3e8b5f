"""Work time per person and day, for pay slips: of all labels, also of replaced ones."""

from typing import Any

from django.db.models import Case, Count, F, Q, Sum, Value, When

from annotation.db.counting import Day
from annotation.models import Label, Project
from annotation.reports.label_times import LONG_SECONDS

COLUMNS = ("annotator", "day", "labels", "seconds", "untimed", "cut")


def count_work_time(project: Project) -> list[dict[str, Any]]:
    """Return a row per person and day (UTC): the labels that the person sent at any stage,
    withdrawn and replaced ones too, and the seconds that they took.

    A time of over half an hour counts as half an hour, since it most likely includes time away from
    the item; `cut` counts such labels. `untimed` counts labels without a time, as from imports and
    programs; they add no seconds.
    """
    longest = float(LONG_SECONDS)
    cut = Case(When(seconds__gt=longest, then=Value(longest)), default=F("seconds"))
    rows = (
        # A label kept for a corrected gold answer is a copy, with the time of the one before.
        Label.objects.filter(project=project)
        .filter(Q(supersedes=None) | ~Q(supersedes__created_at=F("created_at")))
        .values(annotator=F("member__alias"), day=Day("created_at"))
        .annotate(
            labels=Count("pk"),
            taken=Sum(cut),
            untimed=Count("pk", filter=Q(seconds=None)),
            cut=Count("pk", filter=Q(seconds__gt=longest)),
        )
        .order_by("annotator", "day")
    )
    return [{**row, "seconds": round(row["taken"] or 0)} for row in rows]
