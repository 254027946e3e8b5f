"""What people said, and what the project holds true."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Count, Exists, F, Max, OuterRef, Q, Sum

from annotation.db.counting import count_by

if TYPE_CHECKING:
    from annotation.models import Account, Item, Label, Project

# The classes of design 1: what a resolution makes of an item in a run.
ERROR_ITEM = "valid"
SI_ITEM = "score-invariant"


class LabelQuerySet(models.QuerySet[Any]):
    def in_project(self, project: Project) -> LabelQuerySet:
        return self.filter(project=project)

    def for_export(self) -> LabelQuerySet:
        """All of them, oldest first, with what a row names."""
        named = ("item", "revision", "member", "task_type", "guidelines", "supersedes", "slot")
        bulky = ("revision__texts", "item__fields", "task_type__definition", "guidelines__text")
        return self.select_related(*named).defer(*bulky).oldest_first()

    def oldest_first(self) -> LabelQuerySet:
        return self.order_by("created_at", "pk")

    def current(self) -> LabelQuerySet:
        return self.filter(current=True)

    def counted(self) -> LabelQuerySet:
        return self.filter(current=True, counted=True)

    def of_item(self, item: Item) -> LabelQuerySet:
        return self.filter(item=item)

    def of_revision(self, revision: Any) -> LabelQuerySet:
        return self.filter(revision=revision)

    def at_stage(self, stage: str) -> LabelQuerySet:
        return self.filter(stage=stage)

    def at_stages(self, stages: Iterable[str]) -> LabelQuerySet:
        return self.filter(stage__in=list(stages))

    def of_member(self, member_id: int) -> LabelQuerySet:
        return self.filter(member_id=member_id)

    def for_pile(self, key: str = "", choice: str = "", category: str = "") -> LabelQuerySet:
        """With their items, the latest first; those of a key like this, a choice, a category."""
        found = self.filter(item__deleted_at__isnull=True)
        if key:
            found = found.filter(item__key__icontains=key.replace("\0", ""))
        if choice:
            found = found.filter(choice=choice)
        if category:
            found = found.filter(item__category=category)
        return found.select_related("item").defer("item__fields").order_by("-created_at", "-pk")

    def for_items(self, items: Iterable[Item]) -> LabelQuerySet:
        return self.filter(item__in=list(items)).select_related("revision")

    def of_people(self, aliases: Iterable[str]) -> LabelQuerySet:
        return self.filter(member__alias__in=list(aliases))

    def of_others_than(self, member_id: int | None) -> LabelQuerySet:
        return self.exclude(member_id=member_id)

    def with_confirmed(self) -> LabelQuerySet:
        """With `confirmed`: whether the label, of a second person, made the resolution it saw."""
        from annotation.models import Resolution

        made = Resolution.objects.filter(
            item=OuterRef("item"),
            revision=OuterRef("revision"),
            rule="verified",
            created_at=OuterRef("created_at"),
        )
        return self.annotate(confirmed=Exists(made))

    def timed(self) -> LabelQuerySet:
        return self.filter(seconds__isnull=False)

    def since(self, time: datetime) -> LabelQuerySet:
        return self.filter(created_at__gte=time)

    def of_live_items(self) -> LabelQuerySet:
        return self.filter(item__deleted_at__isnull=True)

    def answering(self, name: str) -> LabelQuerySet:
        """Labels that answer the field of this name."""
        return self.filter(answers__has_key=name)

    def of_account(self, account: Account) -> LabelQuerySet:
        return self.filter(member__account=account)

    def per_project(self, projects: Iterable[Project]) -> dict[int, int]:
        """Counts by the project's id; projects without any are left out."""
        return count_by(self.filter(project__in=projects), "project")

    def for_page(self) -> LabelQuerySet:
        """All of them, oldest first, with who said it of which revision."""
        return (
            self.select_related("member", "revision")
            .defer("revision__texts")
            .order_by("created_at", "pk")
        )

    def not_counted(self) -> LabelQuerySet:
        return self.exclude(current=True, counted=True)

    def for_strip(self) -> LabelQuerySet:
        """With the items, live ones, that they are of; no texts."""
        return self.filter(item__deleted_at=None).select_related("item").defer("item__fields")

    def by_member(self, member_id: int, stage: str) -> LabelQuerySet:
        return self.filter(member_id=member_id, stage=stage).order_by("-created_at", "-pk")

    def latest_first(self) -> LabelQuerySet:
        return self.order_by("-created_at", "-pk")

    def of_tests(self) -> LabelQuerySet:
        """Not of items that people practise on or are checked with."""
        return self.filter(item__purpose="test")

    def for_agreement(self, project: Project, stage: str, category: str = "") -> LabelQuerySet:
        """What was said of live items at a stage and not taken back, in the order given."""
        found = self.filter(
            project=project, stage=stage, withdrawn_at=None, item__deleted_at=None
        ).order_by("pk")
        if "\0" in category:  # which PostgreSQL refuses to look for
            return found.none()
        return found.filter(item__category=category) if category else found

    def state(self) -> dict[str, int | None]:
        """Numbers that change whenever labels are given, superseded, taken back or not counted."""
        said = self.filter(withdrawn_at=None, item__deleted_at=None)
        return said.aggregate(
            labels=Count("pk"),
            last=Max("pk"),
            all=Sum("pk"),
            current=Sum("pk", filter=Q(current=True)),
            counted=Sum("pk", filter=Q(counted=True)),
        )


class ResolutionQuerySet(models.QuerySet[Any]):
    def current(self) -> ResolutionQuerySet:
        return self.filter(current=True)

    def of_current_texts(self) -> ResolutionQuerySet:
        return self.current().filter(revision__number=F("item__revision_number"))

    def of_project(self, project: Project) -> ResolutionQuerySet:
        return self.filter(item__project=project)

    def for_purposes(self, purposes: Iterable[str]) -> ResolutionQuerySet:
        return self.filter(item__purpose__in=list(purposes), item__deleted_at=None)

    def for_list(self) -> ResolutionQuerySet:
        """Oldest first, without texts."""
        shown = self.select_related("item", "revision", "member").order_by("pk")
        return shown.defer("revision__texts", "item__fields")

    def adjudicated_in(self, project: Project) -> ResolutionQuerySet:
        """What was decided of live items, the last first."""
        decided = self.current().filter(item__project=project, source="adjudicated")
        live = decided.filter(item__deleted_at=None).select_related("item", "member")
        return live.order_by("-created_at", "-pk")

    def of_tests(self) -> ResolutionQuerySet:
        """Not of items that people practise on or are checked with."""
        return self.filter(item__purpose="test")

    def judgeable(self, values: Iterable[str] | None = None) -> ResolutionQuerySet:
        """Of items that evaluators can be tested with: those held for one of these values."""
        found = self.filter(item__deleted_at=None, item__purpose="test")
        return found if values is None else found.filter(value__in=list(values))

    def of_live_originals(self) -> ResolutionQuerySet:
        """Of the current texts of items that are neither deleted nor repeat others."""
        return self.of_current_texts().filter(item__deleted_at=None, item__duplicate_of=None)

    def known(self) -> ResolutionQuerySet:
        """Of items for practice and probes, whose right answers are known beforehand."""
        return self.filter(source="known")

    def of_item(self, item: Item) -> ResolutionQuerySet:
        return self.filter(item=item)

    def made_by(self, decision: Label) -> ResolutionQuerySet:
        """What a label of who decides has made, also if it holds no more."""
        made = {"source": "adjudicated", "created_at": decision.created_at}
        return self.filter(item=decision.item_id, member=decision.member_id, **made)

    def held_of(self, items: Iterable[int]) -> ResolutionQuerySet:
        """What is held true of the items of these ids."""
        return self.current().filter(item__among=items)

    def of_items(self, items: Iterable[Item]) -> ResolutionQuerySet:
        return self.filter(item__in=items)

    def not_known(self) -> ResolutionQuerySet:
        return self.exclude(source="known")

    def of_revisions(self, revisions: Iterable[int]) -> ResolutionQuerySet:
        """Those that speak of these revisions, the last one last."""
        return self.filter(revision__in=revisions).order_by("created_at", "pk")

    def state(self) -> dict[str, int | None]:
        """Numbers that change whenever one is made or ends."""
        ended = Count("pk", filter=Q(ended_at__isnull=False))
        return self.aggregate(all=Count("pk"), last=Max("pk"), ended=ended)

    def per_project(self, projects: Iterable[Project]) -> dict[int, int]:
        """Counts by the project's id; projects without any are left out."""
        return count_by(self.filter(item__project__in=projects), "item__project")

    def per_category(self, project: Project) -> dict[str, int]:
        return count_by(self.filter(item__project=project), "item__category")
