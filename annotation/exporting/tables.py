"""The annotation tables by name, with their columns, rows and row counts, for exports.

Rows are streamed. They contain keys and aliases, never database ids. The table of labels contains
every label ever given; columns mark superseded, withdrawn and extra labels.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from annotation import tasktypes
from annotation.db.batches import bulky_id_batches
from annotation.exporting import history_tables
from annotation.items import taxonomy
from annotation.items.models import ItemQuerySet
from annotation.labelling import control_items, human_baseline
from annotation.models import (
    Comment,
    Item,
    Label,
    Mark,
    PracticeRound,
    Project,
    Resolution,
    Revision,
)
from annotation.tasktypes.fields import Field


@dataclass(frozen=True)
class Table:
    """A table: its ordered columns, and a function that gives the rows of a project as dicts.

    `own` gives all columns of a project if they depend on its task type; `columns` are then the
    columns that every project has. `count` gives the number of rows if it is known in advance.
    """

    columns: tuple[str, ...]
    rows: Callable[[Project], Iterator[dict[str, Any]]]
    own: Callable[[Project], tuple[str, ...]] | None = None
    count: Callable[[Project], int] | None = None

    def columns_in(self, project: Project) -> tuple[str, ...]:
        """Return the columns that the table has for this project, in order."""
        return self.own(project) if self.own else self.columns


def category_rows(project: Project) -> Iterator[dict[str, Any]]:
    """Yield the number of live items in each category, in the order of the taxonomy.

    Duplicates are counted in their category. Categories without items have no row.
    """
    known = taxonomy.load_taxonomy(project)
    counts = Item.objects.in_project(project).by_category()
    names = ("category", "ability")
    yield from sorted(counts, key=lambda row: known.order_of({name: row[name] for name in names}))


def item_rows(project: Project, found: ItemQuerySet | None = None) -> Iterator[dict[str, Any]]:
    """Yield every live item, or every item in `found`, with its current texts and its
    resolution."""
    found = Item.objects.in_project(project) if found is None else found
    names = _texts()
    for ids in bulky_id_batches(
        found.with_revision().order_by("position"), "fields", "revision__texts"
    ):
        rows = Item.objects.filter(pk__among=ids).order_by("position").values_as_text(*_ITEM)
        yield from (_item(row, names) for row in rows)


def label_rows(project: Project) -> Iterator[dict[str, Any]]:
    """Yield every label ever given, at every stage, oldest first, with a column for each answer.

    `answers` has all answers as stored; the separate columns are for reading the table.
    """
    asked = _label_fields(project)
    found = Label.objects.in_project(project).oldest_first()
    for ids in bulky_id_batches(found, "answers"):
        rows = Label.objects.filter(pk__among=ids).oldest_first().with_diff()
        for row in rows.values_list(*_LABEL.values()):
            label = dict(zip(_LABEL, row, strict=True))
            said = label["answers"]
            if not any(field.per_change and name in said for name, field in asked.items()):
                label["diff"] = None
            answers = {f"answers.{name}": _cell(said.get(name)) for name in asked}
            yield {**label, "surgicality": _surgicality(said, asked), **answers}


def qualification_rows(project: Project) -> Iterator[dict[str, Any]]:
    """Yield every qualification round, ordered by member and number."""
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


def _item(row: tuple[Any, ...], names: tuple[str, ...]) -> dict[str, Any]:
    # This runs a million times: one tuple of values takes a third of the time of several dicts.
    *said, written, fields = row
    texts = json.loads(written)
    # Texts that only the project's own task type has.
    others = {name: text for name, text in texts.items() if name not in names}
    said[_FLAGS] = json.loads(said[_FLAGS])
    said[_VALUES] = said[_VALUES] and json.loads(said[_VALUES])
    values = (*said, *map(texts.get, names), others, json.loads(fields))
    return dict(zip(_ITEMS, values, strict=True))


def _label_fields(project: Project) -> dict[str, Field]:
    """Return every field that labels of the project may answer, with the blind fields last."""
    tasks = history_tables.label_task_types(project)
    named = {field.name: field for task in tasks for field in task.fields}
    blind = {field.name: field for task in tasks if task.blind for field in task.blind.fields}
    return named | {name: field for name, field in blind.items() if name not in named}


def _surgicality(answers: Mapping[str, Any], asked: Mapping[str, Field]) -> float | None:
    """Return the share of the changed pieces that the claim explains, according to a claim check;
    None if there was no claim check."""
    for name, field in asked.items():
        said = answers.get(name) if field.per_change else None
        if said:
            return list(said.values()).count("explained") / len(said)
    return None


def _cell(answer: Any) -> Any:
    """Return an answer as a cell. Several choices become "a; b", and passages become JSON, which
    the import of labels also accepts."""
    if not isinstance(answer, list):
        return answer
    if any(isinstance(one, Mapping) for one in answer):
        return json.dumps(answer, ensure_ascii=False)
    return "; ".join(map(str, answer))


def _label_columns(project: Project) -> tuple[str, ...]:
    return (*_LABELS, *(f"answers.{name}" for name in _label_fields(project)))


def _texts() -> tuple[str, ...]:
    """The texts of all task types, so that the table has the same columns in every project."""
    names = (text["name"] for one in tasktypes.load_definitions().values() for text in one["texts"])
    return tuple(dict.fromkeys(names))


# The columns, and where they are found in the database.
_LABEL = {
    "label": "submission",
    "item": "item__key",
    "revision": "revision__number",
    "stage": "stage",
    "annotator": "member__alias",
    "choice": "choice",
    "answers": "answers",
    "missing": "missing",
    "comment": "comment",
    "seconds": "seconds",
    "current": "current",
    "counted": "counted",
    "supersedes": "supersedes__submission",
    "withdrawn_at": "withdrawn_at",
    "created_at": "created_at",
    "task_type": "task_type__slug",
    "task_type_version": "task_type__number",
    "guidelines": "guidelines__number",
    "taxonomy": "taxonomy__slug",
    "taxonomy_version": "taxonomy__number",
    "evaluator_seen": "evaluator_seen",
    "informed": "informed",
    "slot_reason": "slot__reason",
    # The algorithm of the diff by which answers number the changes.
    "diff": "diff",
    # The text of a pair that the annotator saw as A.
    "first_shown": "first_shown",
}
_LABELS = (*_LABEL, "surgicality")
_KIND = ("key", "category", "ability", "source_ability", "origin", "purpose", "cluster")
_RESOLVED = ("resolution", *Resolution.TOLD[1:])
_HELD = tuple(f"held__{name}" for name in Resolution.TOLD)
_REVISION = ("revision__number", "revision__digest")
_ITEM = (
    *_KIND, "made_from", "dose", "repeats", "flags", *_REVISION, *_HELD, "revision__texts",
    "fields",
)  # fmt: skip
_ITEMS = (
    *_KIND, "parent", "dose", "duplicate_of", "flags", "revision", "digest", *_RESOLVED, *_texts(),
    "other_texts", "fields",
)  # fmt: skip
_FLAGS, _VALUES = _ITEM.index("flags"), _ITEM.index("held__values")

_PRACTICE = (
    "annotator", "round", "size", "needed", "answered", "right", "passed", "feedback",
    "started_at", "finished_at",
)  # fmt: skip

# The columns of all tables that are not text, by kind.
_COLUMNS_BY_KIND = {
    "json": (
        "flags", "values", "other_texts", "fields", "answers", "texts", "mentions", "wrong",
        "missing",
    ),
    "int": (
        "dose", "revision", "task_type_version", "guidelines", "taxonomy_version", "round", "size",
        "needed", "answered", "right", "checks",
    ),
    "float": ("seconds", "surgicality", "share", "low", "high"),
    "bool": ("current", "counted", "evaluator_seen", "informed", "agrees", "passed"),
    "time": ("created_at", "withdrawn_at", "ended_at", "started_at", "finished_at"),
}  # fmt: skip
COLUMN_KINDS = {name: kind for kind, names in _COLUMNS_BY_KIND.items() for name in names}

TABLES: dict[str, Table] = {
    "categories": Table(("ability", "category", "items"), category_rows),
    "items": Table(_ITEMS, item_rows, count=lambda of: Item.objects.in_project(of).count()),
    "labels": Table(_LABELS, label_rows, _label_columns, lambda of: of.labels.count()),
    "revisions": Table(
        history_tables.REVISION_COLUMNS,
        history_tables.revision_rows,
        count=history_tables.row_counter(Revision),
    ),
    "resolutions": Table(
        history_tables.RESOLUTION_COLUMNS,
        history_tables.resolution_rows,
        history_tables.resolution_columns,
        history_tables.row_counter(Resolution),
    ),
    "comments": Table(
        history_tables.COMMENT_COLUMNS,
        history_tables.comment_rows,
        count=history_tables.row_counter(Comment),
    ),
    "marks": Table(
        history_tables.MARK_COLUMNS,
        history_tables.mark_rows,
        count=history_tables.row_counter(Mark),
    ),
    "baseline": Table(human_baseline.COLUMNS, human_baseline.label_rows),
    "practice": Table(_PRACTICE, qualification_rows),
    "probes": Table(control_items.COLUMNS, control_items.result_rows),
}
