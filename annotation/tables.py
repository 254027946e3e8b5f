"""Tables of rows of the human half, by name: what is exported and counted.

Rows stream. They carry keys and aliases, never ids of the database, and the labels are all that
were ever given: superseded, withdrawn and extra ones say so in columns of their own.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from annotation import tasktypes, taxonomy
from annotation.models import Item, Label, Project

CHUNK = 500


@dataclass(frozen=True)
class Table:
    """The columns of a table in their order, and its rows of a project, one dict each."""

    columns: tuple[str, ...]
    rows: Callable[[Project], Iterator[dict[str, Any]]]


def categories(project: Project) -> Iterator[dict[str, Any]]:
    """How many live items each category has, in the order of the taxonomy.

    Items that repeat others are counted in their category. Categories without items have no row.
    """
    place = {category.slug: number for number, category in enumerate(taxonomy.load())}
    counts = Item.objects.in_project(project).by_category()
    yield from sorted(counts, key=lambda row: place.get(row["category"], len(place)))


def items(project: Project) -> Iterator[dict[str, Any]]:
    """Every live item with its current texts and what is held true of it."""
    found = Item.objects.in_project(project).with_resolution().with_current_texts()
    for item in found.select_related("duplicate_of").iterator(chunk_size=CHUNK):
        yield _item(item)


def labels(project: Project) -> Iterator[dict[str, Any]]:
    """Every label ever given, oldest first."""
    found = Label.objects.in_project(project).for_export()
    for label in found.iterator(chunk_size=CHUNK):
        yield _label(label)


def _item(item: Any) -> dict[str, Any]:
    [revision] = item.current_revisions
    texts = dict.fromkeys(_texts()) | {
        name: text for name, text in revision.texts.items() if name in _texts()
    }
    return {
        "key": item.key,
        "category": item.category,
        "ability": item.ability,
        "source_ability": item.source_ability,
        "origin": item.origin,
        "purpose": item.purpose,
        "cluster": item.cluster,
        "duplicate_of": item.duplicate_of.key if item.duplicate_of else None,
        "flags": item.flags,
        "revision": revision.number,
        "digest": revision.digest,
        "resolution": item.resolution,
        "source": item.resolution_source,
        "rule": item.resolution_rule,
        **texts,
        # Texts that only a project's own task type has.
        "other_texts": {name: text for name, text in revision.texts.items() if name not in texts},
        "fields": item.fields,
    }


def _label(label: Label) -> dict[str, Any]:
    return {
        "label": label.submission,
        "item": label.item.key,
        "revision": label.revision.number,
        "stage": label.stage,
        "annotator": label.member.alias,
        "choice": label.choice,
        "answers": label.answers,
        "comment": label.comment,
        "seconds": label.seconds,
        "current": label.current,
        "counted": label.counted,
        "supersedes": label.supersedes.submission if label.supersedes else None,
        "withdrawn_at": label.withdrawn_at,
        "created_at": label.created_at,
        "task_type": label.task_type.slug,
        "task_type_version": label.task_type.number,
        "guidelines": label.guidelines.number if label.guidelines else None,
        "evaluator_seen": label.evaluator_seen,
    }


def _texts() -> tuple[str, ...]:
    """The texts of all task types, so that a table has the same columns in every project."""
    names = (text["name"] for one in tasktypes.definitions().values() for text in one["texts"])
    return tuple(dict.fromkeys(names))


_LABELS = (
    "label", "item", "revision", "stage", "annotator", "choice", "answers", "comment", "seconds",
    "current", "counted", "supersedes", "withdrawn_at", "created_at", "task_type",
    "task_type_version", "guidelines", "evaluator_seen",
)  # fmt: skip
_ITEMS = (
    "key", "category", "ability", "source_ability", "origin", "purpose", "cluster",
    "duplicate_of", "flags", "revision", "digest", "resolution", "source", "rule", *_texts(),
    "other_texts", "fields",
)  # fmt: skip

TABLES: dict[str, Table] = {
    "categories": Table(("ability", "category", "items"), categories),
    "items": Table(_ITEMS, items),
    "labels": Table(_LABELS, labels),
}
