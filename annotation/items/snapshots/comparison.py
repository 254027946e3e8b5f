"""Compares two snapshots of a project: counts the changes and lists changed items."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from annotation.db.batches import make_batches
from annotation.db.cache import process_cache
from annotation.items.models import FrozenQuerySet
from annotation.items.snapshots.facts import FACT_NAMES
from annotation.models import Frozen, FrozenIn, Resolution, Snapshot

# Seconds.
CACHE_SECONDS = 24 * 60 * 60
# The facts of an item may have megabytes of fields.
READ_TOGETHER = 10
# Titles of the changes to list, as on the page.
CHANGE_TITLES = {
    "added": "added",
    "removed": "removed",
    "changed": "changed",
    "texts": "with other texts",
    "held": "with another final label",
}
# Titles of facts, as on the page; other facts are shown by name.
FACT_TITLES = {"source_ability": "source ability", "duplicate_of": "repeats", "held": "resolution"}


@dataclass(frozen=True)
class FactChange:
    """One changed fact. `old` is None if there was no value before; `new` is None if there is no
    value now."""

    name: str
    old: Any
    new: Any


@dataclass(frozen=True)
class ItemChange:
    """An item that differs; `kind` is added, removed or changed."""

    key: str
    kind: str
    facts: tuple[FactChange, ...]


def filter_changed(before: Snapshot, after: Snapshot, kind: str) -> FrozenQuerySet:
    """Return the states of the items with this kind of change, in the order of items. The states
    are those in `after`, or for "removed" those in `before`."""
    if kind == "removed":
        states = FrozenIn.objects.of_snapshot(before).absent_from(after)
    elif kind == "added":
        states = FrozenIn.objects.of_snapshot(after).absent_from(before)
    else:
        states = FrozenIn.objects.of_snapshot(after).changed_since(before)
        states = states.retexted() if kind == "texts" else states
        states = states.reheld() if kind == "held" else states
    return states.order_by("item__position")


def count_changes(before: Snapshot, after: Snapshot) -> dict[str, int]:
    """Count the items by kind of change. The result is cached: snapshots cannot change, and
    counting a million items takes seconds."""

    def counted() -> dict[str, int]:
        return {kind: filter_changed(before, after, kind).count() for kind in CHANGE_TITLES}

    name = f"changes-{before.project_id}-{before.digest}-{after.digest}"
    kept: dict[str, int] = process_cache.get_or_set(name, counted, timeout=CACHE_SECONDS)
    return kept


def list_changes(
    states: Iterable[FrozenIn], kind: str, *, with_fields: bool = True
) -> Iterator[ItemChange]:
    """Yield the changes of these items, read with a query for each `READ_TOGETHER`; changed items
    include their changed facts, and unless `with_fields` is False those of their own fields."""
    for some in make_batches(states, READ_TOGETHER):
        there = [one.frozen_id for one in some]
        earlier = [one.before for one in some if one.before is not None]
        rows = Frozen.objects.filter(pk__among=there + earlier).values_list("pk", "facts")
        facts: dict[int, dict[str, Any]] = dict(rows)
        for one in some:
            now = facts[one.frozen_id]
            if one.before is None:
                yield ItemChange(now["key"], kind, ())
            else:
                changed = tuple(_compare_facts(facts[one.before], now, with_fields))
                yield ItemChange(now["key"], "changed", changed)


def _compare_facts(
    old: dict[str, Any], new: dict[str, Any], with_fields: bool
) -> Iterator[FactChange]:
    for name in FACT_NAMES:  # databases do not keep the order of keys
        before, after = old.get(name), new.get(name)
        if before == after or (name == "fields" and not with_fields):
            continue
        if name == "held":
            yield from _of_resolution(before or {}, after or {})
        elif name == "labels":
            yield FactChange("current labels", len(before or ()), len(after or ()))
        elif name == "fields":
            yield from _of_fields(before or {}, after or {})
        elif name != "texts":  # the revision number changes with them
            yield FactChange(FACT_TITLES.get(name, name), before, after)


def _of_resolution(old: dict[str, Any], new: dict[str, Any]) -> Iterator[FactChange]:
    for name in Resolution.TOLD:
        before, after = old.get(name) or None, new.get(name) or None
        if before != after:
            yield FactChange(
                "resolution" if name == "value" else f"{name} of the resolution", before, after
            )


def _of_fields(old: dict[str, Any], new: dict[str, Any]) -> Iterator[FactChange]:
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield FactChange(name, old.get(name), new.get(name))
