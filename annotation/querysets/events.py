"""What is on record of who changed what."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

from django.db import connection, models
from django.db.models import Q

if TYPE_CHECKING:
    from annotation.models import Event, Project


class EventQuerySet(models.QuerySet["Event"]):
    def in_project(self, project: Project | None) -> EventQuerySet:
        """Of a project, or with None of what belongs to no project."""
        return self.filter(project=project)

    def first_of(self, size: int) -> list[Event]:
        """The first so many, with who did it."""
        return list(self.select_related("member", "account")[:size])

    def on_days(self, first: date | None, last: date | None) -> EventQuerySet:
        """Of these days of UTC, both included; None leaves a side open."""
        found = self.filter(created_at__gte=_day_start(first)) if first else self
        return found.filter(created_at__lt=_day_start(last) + timedelta(days=1)) if last else found

    def by(self, name: str) -> EventQuerySet:
        """Of the member of this name, or of the account without a place in the project."""
        return self.filter(Q(member__alias=name) | Q(account__username=name))

    def about(self, words: str) -> EventQuerySet:
        """Whose subject holds the words, in capitals or not."""
        return self.filter(subject__icontains=words)

    def before(self, at: datetime, pk: int) -> EventQuerySet:
        """Those that follow this one in a list of the last first."""
        # The first condition is the index's, the second parts those of one moment.
        return self.filter(created_at__lte=at).filter(Q(created_at__lt=at) | Q(pk__lt=pk))

    def kinds(self, project: Project | None) -> list[str]:
        """The kinds there are, sorted: a probe of the index each, however many events."""
        of, words = ("project_id = %s", [project.pk]) if project else ("project_id IS NULL", [])
        table = self.model._meta.db_table
        least = f"SELECT MIN(kind) FROM {table} WHERE {of}"
        with connection.cursor() as cursor:
            cursor.execute(
                f"WITH RECURSIVE k(kind) AS ({least} UNION ALL SELECT ({least} AND kind > k.kind)"
                " FROM k WHERE k.kind IS NOT NULL) SELECT kind FROM k WHERE kind IS NOT NULL",
                words * 2,
            )
            return [kind for (kind,) in cursor.fetchall()]


def _day_start(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
