"""Queries for items by ability: sorted or not, and with a suggested ability or without."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Case, F, Value, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Left

from annotation.items import taxonomy

if TYPE_CHECKING:
    from annotation.items.models import ItemQuerySet
    from annotation.models import Item

# Keys in the fields of an item: the ability that a model suggests, and which model.
SUGGESTED, SUGGESTED_BY = "suggested_ability", "suggested_by"
SUGGESTION = (SUGGESTED, SUGGESTED_BY)


def filter_unsorted(items: ItemQuerySet) -> ItemQuerySet:
    """Items without one of the abilities that prompts are sorted into; an import may have set
    another one."""
    return items.exclude(ability__in=_slugs())


def filter_suggested(items: ItemQuerySet) -> ItemQuerySet:
    """Unsorted items that have a suggestion."""
    return filter_unsorted(items).filter(fields__has_key=SUGGESTED)


def order_unsorted_first(items: ItemQuerySet) -> ItemQuerySet:
    """Items without a known ability first, then the others, each by position."""
    rank = Case(When(ability__in=_slugs(), then=Value(1)), default=Value(0))
    return items.alias(rank=rank).order_by("rank", "position")


def text_beginnings(items: Iterable[Item], text: str, length: int) -> dict[int, str]:
    """The first `length` characters of a text in the current revision, by item id."""
    from annotation.models import Revision

    start = Left(Cast(KeyTextTransform(text, "texts"), models.TextField()), length)
    current = Revision.objects.filter(item__in=items, number=F("item__revision_number"))
    return dict(current.annotate(start=start).values_list("item", "start"))


def _slugs() -> list[str]:
    return [ability.slug for ability in taxonomy.load().sorts()]
