"""Queries that select items by their ability or by the ability that a model suggests."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Case, F, Value, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Left

if TYPE_CHECKING:
    from annotation.items.models import ItemQuerySet
    from annotation.models import Item

# Keys in the fields of an item: the ability that a model suggests, and the name of the model.
SUGGESTED, SUGGESTED_BY = "suggested_ability", "suggested_by"
SUGGESTION = (SUGGESTED, SUGGESTED_BY)


def filter_unsorted(items: ItemQuerySet, known: Collection[str]) -> ItemQuerySet:
    """Return the unsorted items: they have no ability, or one (from an import) that is not among
    the `known`, into which prompts are sorted."""
    return items.exclude(ability__in=known)


def filter_suggested(items: ItemQuerySet, known: Collection[str]) -> ItemQuerySet:
    """Unsorted items that have a suggestion."""
    return filter_unsorted(items, known).filter(fields__has_key=SUGGESTED)


def order_unsorted_first(items: ItemQuerySet, known: Collection[str]) -> ItemQuerySet:
    """Order by position, with the items that have no known ability before all others."""
    rank = Case(When(ability__in=known, then=Value(1)), default=Value(0))
    return items.alias(rank=rank).order_by("rank", "position")


def text_beginnings(items: Iterable[Item], text: str, length: int) -> dict[int, str]:
    """Map item ids to the first `length` characters of this text in the current revision."""
    from annotation.models import Revision

    start = Left(Cast(KeyTextTransform(text, "texts"), models.TextField()), length)
    current = Revision.objects.filter(item__in=items, number=F("item__revision_number"))
    return dict(current.annotate(start=start).values_list("item", "start"))
