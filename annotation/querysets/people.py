"""Projects and their members."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Count, F, Max, OuterRef, Q, Subquery

if TYPE_CHECKING:
    from annotation.models import Account, Invitation, Membership, Project


class ProjectQuerySet(models.QuerySet["Project"]):
    def visible_to(self, account: Account) -> ProjectQuerySet:
        live = self.filter(archived_at__isnull=True)
        if account.is_superuser:
            return live
        return live.filter(members__account=account, members__active=True)

    def led_by(self, account: Account) -> ProjectQuerySet:
        """Those where the account may do what leads do."""
        from annotation.models import RIGHTS

        live = self.filter(archived_at__isnull=True)
        if account.is_superuser:
            return live
        lead = {"members__active": True, "members__role__in": RIGHTS["manage"]}
        return live.filter(members__account=account, **lead)

    def with_role_of(self, account: Account) -> ProjectQuerySet:
        """With `my_role`; null for a site admin without a place in the project."""
        from annotation.models import Membership

        mine = Membership.objects.filter(project=OuterRef("pk"), account=account, active=True)
        return self.annotate(my_role=Subquery(mine.values("role")[:1])).select_related("task_type")


class MembershipQuerySet(models.QuerySet["Membership"]):
    def seats_of(self, account: Account, slug: str) -> MembershipQuerySet:
        """The account's place in a project that is not archived, with what the project asks."""
        return self._seats(slug).filter(account=account).select_related("project__task_type")

    def seats_by_key(self, digest: str, slug: str, used_since: str, now: str) -> MembershipQuerySet:
        """The same of whom a live key to the API belongs to that was used since then, with the
        account, and what the key is for as `key_scopes`."""
        unexpired = Q(account__tokens__expires_at=None) | Q(account__tokens__expires_at__gt=now)
        return (
            self._seats(slug)
            .filter(
                unexpired,
                account__tokens__digest=digest,
                account__tokens__revoked_at=None,
                account__tokens__last_used_at__gt=used_since,
                account__is_active=True,
            )
            .annotate(key_scopes=F("account__tokens__scopes"))
            .select_related("account", "project__task_type")
        )

    def suspended_of(self, account: Account) -> MembershipQuerySet:
        """Where the account had a place, and has none at the moment, by the project's name."""
        places = self.filter(account=account, active=False, project__archived_at=None)
        return places.select_related("project").order_by("project__name", "pk")

    def roles_of(self, account: Account) -> set[str]:
        """The account's roles in all projects that are not archived."""
        seats = self.filter(account=account, active=True, project__archived_at=None)
        return set(seats.order_by().values_list("role", flat=True))

    def _seats(self, slug: str) -> MembershipQuerySet:
        """Without the text of task types, which every request would else read: what a version
        says is known by its digest (`tasktypes.load_version`)."""
        return (
            self.filter(active=True, project__slug=slug, project__archived_at=None)
            .defer("project__task_type__definition", "project__task_type__source")
            .order_by()
        )

    def for_progress(self) -> MembershipQuerySet:
        """With how many of their labels count (`labelled` are in force), and the last time."""
        at_work = Q(labels__stage="work", labels__current=True)
        return self.annotate(
            counted=Count("labels", filter=at_work & Q(labels__counted=True)),
            last_label_at=Max("labels__created_at"),
        ).order_by("alias")

    def in_project(self, project: Project) -> MembershipQuerySet:
        return self.filter(project=project)

    def called(self, aliases: Iterable[str]) -> MembershipQuerySet:
        return self.filter(alias__in=list(aliases))

    def locked(self) -> MembershipQuerySet:
        """For this transaction alone; waits for whoever has them."""
        return self.select_for_update(no_key=True, of=("self",))

    def with_role_in(self, roles: Iterable[str]) -> MembershipQuerySet:
        """Active members who have one of the roles."""
        return self.filter(active=True, role__in=list(roles))

    def who_manage(self) -> MembershipQuerySet:
        """Those who can really sign in and do it."""
        from annotation.models import RIGHTS

        return self.with_role_in(RIGHTS["manage"]).filter(account__is_active=True)

    def who_label(self) -> MembershipQuerySet:
        """By alias, active ones, of a role that labels."""
        from annotation.models import RIGHTS

        return (
            self.filter(role__in=RIGHTS["label"], active=True)
            .select_related("project__task_type")
            .order_by("alias")
        )

    def named(self, alias: str) -> Membership | None:
        if "\0" in alias:  # which PostgreSQL refuses to look for
            return None
        return self.filter(alias=alias).select_related("project__task_type").first()


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def in_project(self, project: Project) -> InvitationQuerySet:
        return self.filter(project=project)

    def named(self, alias: str) -> InvitationQuerySet:
        return self.filter(alias=alias)

    def waiting(self) -> InvitationQuerySet:
        """Neither used nor taken back, though they may be too old."""
        return self.filter(ended_at=None)

    def usable(self, now: datetime) -> InvitationQuerySet:
        return self.waiting().filter(expires_at__gt=now, project__archived_at=None)

    def addressed(self, email: str) -> InvitationQuerySet:
        return self.filter(email__iexact=email).select_related("project", "made_by")

    def opened_by(self, digest: str) -> Invitation | None:
        return self.filter(digest=digest).select_related("project", "made_by").first()

    def end(self, now: datetime) -> int:
        """For good, without the address; how many."""
        return self.update(ended_at=now, email="")
