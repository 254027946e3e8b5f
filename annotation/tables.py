"""Tables of rows of the human half, by name: what is exported and counted.

Rows stream. They carry keys and aliases, never ids of the database, and the labels are all that
were ever given: superseded, withdrawn and extra ones say so in columns of their own.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from annotation import baselines, probing, tasktypes, taxonomy, trails
from annotation.fields import Field
from annotation.models import Item, Label, PracticeRound, Project

CHUNK = 500


@dataclass(frozen=True)
class Table:
    """The columns of a table in their order, and its rows of a project, one dict each.

    `own` gives all columns of a project where its task type has a say in them; `columns` are then
    those that every project has.
    """

    columns: tuple[str, ...]
    rows: Callable[[Project], Iterator[dict[str, Any]]]
    own: Callable[[Project], tuple[str, ...]] | None = None

    def columns_in(self, project: Project) -> tuple[str, ...]:
        return self.own(project) if self.own else self.columns


def categories(project: Project) -> Iterator[dict[str, Any]]:
    """How many live items each category has, in the order of the taxonomy.

    Items that repeat others are counted in their category. Categories without items have no row.
    """
    place = {category.slug: number for number, category in enumerate(taxonomy.load())}
    counts = Item.objects.in_project(project).by_category()
    yield from sorted(counts, key=lambda row: place.get(row["category"], len(place)))


def items(project: Project) -> Iterator[dict[str, Any]]:
    """Every live item with its current texts and what is held true of it."""
    found = Item.objects.in_project(project).with_resolved_values().with_current_texts()
    for item in found.select_related("duplicate_of").iterator(chunk_size=CHUNK):
        yield _item(item)


def labels(project: Project) -> Iterator[dict[str, Any]]:
    """Every label ever given, oldest first, at every stage, with a column for each answer.

    `answers` has them all as they are stored; the columns behind are for those who read a table.
    """
    asked = _asked(project)
    found = Label.objects.in_project(project).for_export()
    for label in found.iterator(chunk_size=CHUNK):
        answers = {f"answers.{name}": _cell(label.answers.get(name)) for name in asked}
        yield {**_label(label), "surgicality": _surgicality(label, asked), **answers}


def practice(project: Project) -> Iterator[dict[str, Any]]:
    """Every round of practice, by member and number."""
    found = PracticeRound.objects.filter(member__project=project).select_related("member")
    for row in found.order_by("member__alias", "number"):
        yield {
            "annotator": row.member.alias,
            "round": row.number,
            "size": row.size,
            "needed": row.needed,
            "answered": row.answered,
            "right": row.right,
            "passed": row.passed,
            "feedback": row.feedback,
            "started_at": row.started_at,
            "finished_at": row.finished_at,
        }


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
        "values": item.resolution_values,
        "reason": item.resolution_reason,
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
        "informed": label.informed,
        "slot_reason": label.slot.reason if label.slot else None,
    }


def _asked(project: Project) -> dict[str, Field]:
    """Every field that labels of the project may answer, the blind ones last."""
    tasks = trails.versions(project)
    named = {field.name: field for task in tasks for field in task.fields}
    blind = {field.name: field for task in tasks if task.blind for field in task.blind.fields}
    return named | {name: field for name, field in blind.items() if name not in named}


def _surgicality(label: Label, asked: Mapping[str, Field]) -> float | None:
    """Of the changed pieces that a claim check names, the share that the claim explains."""
    for name, field in asked.items():
        said = label.answers.get(name) if field.kind == "claim_check" else None
        if said:
            return list(said.values()).count("explained") / len(said)
    return None


def _cell(answer: Any) -> Any:
    """Several choices at once as a; b: the import of labels takes them so as well."""
    return "; ".join(map(str, answer)) if isinstance(answer, list) else answer


def _label_columns(project: Project) -> tuple[str, ...]:
    return (*_LABELS, *(f"answers.{name}" for name in _asked(project)))


def _texts() -> tuple[str, ...]:
    """The texts of all task types, so that a table has the same columns in every project."""
    names = (text["name"] for one in tasktypes.definitions().values() for text in one["texts"])
    return tuple(dict.fromkeys(names))


_LABELS = (
    "label", "item", "revision", "stage", "annotator", "choice", "answers", "comment", "seconds",
    "current", "counted", "supersedes", "withdrawn_at", "created_at", "task_type",
    "task_type_version", "guidelines", "evaluator_seen", "informed", "slot_reason",
    "surgicality",
)  # fmt: skip
_ITEMS = (
    "key", "category", "ability", "source_ability", "origin", "purpose", "cluster",
    "duplicate_of", "flags", "revision", "digest", "resolution", "values", "reason", "source",
    "rule", *_texts(), "other_texts", "fields",
)  # fmt: skip

_PRACTICE = (
    "annotator", "round", "size", "needed", "answered", "right", "passed", "feedback",
    "started_at", "finished_at",
)  # fmt: skip

TABLES: dict[str, Table] = {
    "categories": Table(("ability", "category", "items"), categories),
    "items": Table(_ITEMS, items),
    "labels": Table(_LABELS, labels, _label_columns),
    "revisions": Table(trails.REVISIONS, trails.revisions),
    "resolutions": Table(trails.RESOLUTIONS, trails.resolutions, trails.resolution_columns),
    "comments": Table(trails.COMMENTS, trails.comments),
    "marks": Table(trails.MARKS, trails.marks),
    "baseline": Table(baselines.COLUMNS, baselines.rows),
    "practice": Table(_PRACTICE, practice),
    "probes": Table(probing.COLUMNS, probing.rows),
}
