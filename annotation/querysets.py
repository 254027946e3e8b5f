"""Sets of rows in the words of the field; a view, a task or a command never filters by itself."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Count, Exists, F, Max, OuterRef, Prefetch, Q, Subquery
from django.db.models.functions import Cast

if TYPE_CHECKING:
    from annotation.models import Account, Item, Membership, Project, Slot

# The classes of design 1: what a resolution makes of an item in a run.
ERROR_ITEM = "valid"
SI_ITEM = "score-invariant"


class ProjectQuerySet(models.QuerySet["Project"]):
    def visible_to(self, account: Account) -> ProjectQuerySet:
        live = self.filter(archived_at__isnull=True)
        if account.is_superuser:
            return live
        return live.filter(members__account=account, members__active=True)

    def with_role_of(self, account: Account) -> ProjectQuerySet:
        """With `my_role`; null for a site admin without a place in the project."""
        from annotation.models import Membership

        mine = Membership.objects.filter(project=OuterRef("pk"), account=account, active=True)
        return self.annotate(my_role=Subquery(mine.values("role")[:1])).select_related("task_type")


class MembershipQuerySet(models.QuerySet["Membership"]):
    def of(self, account: Account, project: Project) -> Membership | None:
        return (
            self.filter(account=account, project=project, active=True)
            .select_related("project__task_type")
            .first()
        )

    def for_progress(self) -> MembershipQuerySet:
        """With how many labels each has in force and how many of them count, and the last time."""
        at_work = Q(labels__stage="work", labels__current=True)
        return self.annotate(
            labelled=Count("labels", filter=at_work),
            counted=Count("labels", filter=at_work & Q(labels__counted=True)),
            last_label_at=Max("labels__created_at"),
        ).order_by("alias")

    def in_project(self, project: Project) -> MembershipQuerySet:
        return self.filter(project=project)


class ItemQuerySet(models.QuerySet["Item"]):
    def locked(self) -> ItemQuerySet:
        """For this transaction alone; waits for whoever has them."""
        return self.select_for_update(no_key=True, of=("self",))

    def live(self) -> ItemQuerySet:
        return self.filter(deleted_at__isnull=True)

    def in_project(self, project: Project) -> ItemQuerySet:
        return self.live().filter(project=project)

    def originals(self) -> ItemQuerySet:
        """Without the items that repeat another one word for word."""
        return self.filter(duplicate_of__isnull=True)

    def resolved_as(self, value: str) -> ItemQuerySet:
        return self.filter(Exists(self._resolutions().filter(item=OuterRef("pk"), value=value)))

    def unresolved(self) -> ItemQuerySet:
        return self.filter(~Exists(self._resolutions().filter(item=OuterRef("pk"))))

    def flagged(self, flag: str) -> ItemQuerySet:
        # SQLite cannot look into a JSON list; flags are slugs, so their quotes mark them off.
        return self.annotate(flags_text=Cast("flags", models.TextField())).filter(
            flags_text__contains=f'"{flag}"'
        )

    def with_key_like(self, part: str) -> ItemQuerySet:
        return self.filter(key__icontains=part)

    def for_list(self) -> ItemQuerySet:
        """With what a list says of each, and no texts."""
        return self.with_resolution().select_related("duplicate_of").defer("fields")

    def for_page(self, key: str) -> Item | None:
        """The item of this key with what its page says of it; None if there is none."""
        if "\0" in key:  # which PostgreSQL refuses to look for
            return None
        found = self.with_resolution().filter(key=key)
        return (
            found.select_related("duplicate_of", "project__task_type")
            .prefetch_related("revisions__author")
            .first()
        )

    def with_resolution(self) -> ItemQuerySet:
        """With `resolution`, `resolution_source` and `resolution_rule`, null if there is none."""
        settled = self._resolutions().filter(item=OuterRef("pk"))
        return self.annotate(
            resolution=Subquery(settled.values("value")[:1]),
            resolution_source=Subquery(settled.values("source")[:1]),
            resolution_rule=Subquery(settled.values("rule")[:1]),
        )

    def with_current_texts(self) -> ItemQuerySet:
        """With `current_revisions`, a list of one, fetched chunk by chunk."""
        from annotation.models import Revision

        current = Revision.objects.filter(number=F("item__revision_number"))
        return self.prefetch_related(Prefetch("revisions", current, to_attr="current_revisions"))

    def _resolutions(self) -> models.QuerySet[Any]:
        from annotation.models import Resolution

        return Resolution.objects.filter(current=True)

    def per_project(self, projects: Iterable[Project]) -> dict[int, int]:
        """Counts by the project's id; projects without any are left out."""
        return _counts(self.filter(project__in=projects), "project")

    def by_category_and_repeats(self) -> models.QuerySet[Any, dict[str, Any]]:
        repeating = Q(duplicate_of__isnull=False)
        return (
            self.values("ability", "category")
            .annotate(items=Count("pk", filter=~repeating), repeats=Count("pk", filter=repeating))
            .order_by()
        )

    def by_category(self) -> models.QuerySet[Any, dict[str, Any]]:
        return self.values("ability", "category").annotate(items=Count("pk")).order_by()


class SlotQuerySet(models.QuerySet["Slot"]):
    def at(self, project_id: int, stage: str) -> SlotQuerySet:
        return self.filter(project_id=project_id, stage=stage)

    def fresh(self) -> SlotQuerySet:
        return self.filter(state="open", returned=False)

    def returned(self) -> SlotQuerySet:
        return self.filter(state="open", returned=True)

    def expired(self, now: datetime) -> SlotQuerySet:
        return self.filter(state="held", held_until__lte=now)

    def held(self, now: datetime) -> SlotQuerySet:
        return self.filter(state="held", held_until__gt=now)

    def beside(self, slot: Slot) -> SlotQuerySet:
        """The slots of the same item at the same stage, this one among them."""
        return self.filter(item=slot.item_id, stage=slot.stage).in_order()

    def of_others_than(self, item: Item) -> SlotQuerySet:
        return self.exclude(item=item)

    def untouched_by(self, member_id: int) -> SlotQuerySet:
        """Slots of items at which the member neither holds nor filled a place of the stage."""
        mine = self.model.objects.filter(
            item=OuterRef("item"), stage=OuterRef("stage"), member_id=member_id
        )
        return self.filter(~Exists(mine))

    def of_live_items(self) -> SlotQuerySet:
        return self.filter(item__deleted_at__isnull=True)

    def held_by(self, member_id: int) -> SlotQuerySet:
        return self.filter(state="held", member=member_id)

    def free(self, now: datetime) -> SlotQuerySet:
        """Nobody's, or held by somebody whose time is over."""
        return self.filter(Q(state="open") | Q(state="held", held_until__lte=now))

    def locked(self, *, passing: bool = False) -> SlotQuerySet:
        """For this transaction alone; waits for slots that others have locked, or passes them."""
        return self.select_for_update(no_key=True, of=("self",), skip_locked=passing)

    def in_order(self) -> SlotQuerySet:
        return self.order_by("priority", "position", "number")


class LabelQuerySet(models.QuerySet["Any"]):
    def in_project(self, project: Project) -> LabelQuerySet:
        return self.filter(project=project)

    def for_export(self) -> LabelQuerySet:
        """All of them, oldest first, with what a row names."""
        named = ("item", "revision", "member", "task_type", "guidelines", "supersedes")
        bulky = ("revision__texts", "item__fields", "task_type__definition", "guidelines__text")
        return self.select_related(*named).defer(*bulky).order_by("created_at", "pk")

    def current(self) -> LabelQuerySet:
        return self.filter(current=True)

    def counted(self) -> LabelQuerySet:
        return self.filter(current=True, counted=True)

    def of_item(self, item: Item) -> LabelQuerySet:
        return self.filter(item=item)

    def at_stage(self, stage: str) -> LabelQuerySet:
        return self.filter(stage=stage)

    def of_account(self, account: Account) -> LabelQuerySet:
        return self.filter(member__account=account)

    def per_project(self, projects: Iterable[Project]) -> dict[int, int]:
        """Counts by the project's id; projects without any are left out."""
        return _counts(self.filter(project__in=projects), "project")

    def for_page(self) -> LabelQuerySet:
        """All of them, oldest first, with who said it of which revision."""
        return (
            self.select_related("member", "revision")
            .defer("revision__texts")
            .order_by("created_at", "pk")
        )

    def not_counted(self) -> LabelQuerySet:
        return self.exclude(current=True, counted=True)

    def by_member(self, member_id: int, stage: str) -> LabelQuerySet:
        return self.filter(member_id=member_id, stage=stage).order_by("-created_at", "-pk")


class ResolutionQuerySet(models.QuerySet["Any"]):
    def current(self) -> ResolutionQuerySet:
        return self.filter(current=True)

    def of_current_texts(self) -> ResolutionQuerySet:
        return self.current().filter(revision__number=F("item__revision_number"))

    def judgeable(self) -> ResolutionQuerySet:
        """Of items that evaluators can be tested with: error items and score-invariant ones."""
        items = {"item__deleted_at": None, "item__purpose": "test"}
        return self.filter(value__in=[ERROR_ITEM, SI_ITEM], **items)

    def of_live_originals(self) -> ResolutionQuerySet:
        """Of the current texts of items that are neither deleted nor repeat others."""
        return self.of_current_texts().filter(item__deleted_at=None, item__duplicate_of=None)

    def per_project(self, projects: Iterable[Project]) -> dict[int, int]:
        """Counts by the project's id; projects without any are left out."""
        return _counts(self.filter(item__project__in=projects), "item__project")

    def per_category(self, project: Project) -> dict[str, int]:
        return _counts(self.filter(item__project=project), "item__category")


def _counts(rows: models.QuerySet[Any], field: str) -> dict[Any, int]:
    return dict(rows.order_by().values_list(field).annotate(Count("pk")))
