"""The history of a project's items as tables: revisions, resolutions, comments, marks.

The tables are complete: columns show which rows are no longer current.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.db.models import Model, QuerySet

from annotation import tasktypes
from annotation.db.batches import bulky_id_batches
from annotation.models import Comment, Mark, Project, Resolution, Revision, TaskTypeVersion
from annotation.tasktypes import TaskType


def revision_rows(project: Project) -> Iterator[dict[str, Any]]:
    """Yield every revision of every item's texts with its origin: the import or a correction."""
    found = Revision.objects.order_by("item__position", "number")
    whole, mine = found.defer("item__fields"), found.filter(item__project=project)
    for revision in _read_batches(whole, mine, "item", "author", bulky=["texts"]):
        yield {
            "item": revision.item.key,
            "revision": revision.number,
            "current": revision.number == revision.item.revision_number,
            "origin": "correction" if revision.author else "import",
            "author": revision.author.alias if revision.author else None,
            "note": revision.note,
            "digest": revision.digest,
            "created_at": revision.created_at,
            "texts": revision.texts,
        }


def resolution_rows(project: Project) -> Iterator[dict[str, Any]]:
    """Yield every resolution that an item ever had, with a column for the value of each field."""
    names = resolved_fields(project)
    found = Resolution.objects.order_by("item__position", "created_at", "pk")
    bulky = found.defer("revision__texts", "item__fields", "taxonomy__definition")
    mine = found.of_project(project)
    named = ("item", "revision", "member", "taxonomy")
    for one in _read_batches(bulky, mine, *named, bulky=["values"]):
        yield {
            "item": one.item.key,
            "revision": one.revision.number,
            "value": one.value,
            "values": one.values,
            "source": one.source,
            "rule": one.rule,
            "decided_by": one.member.alias if one.member else None,
            "reason": one.reason,
            "comment": one.comment,
            "current": one.current,
            "created_at": one.created_at,
            "ended_at": one.ended_at,
            "taxonomy": one.taxonomy.slug if one.taxonomy else None,
            "taxonomy_version": one.taxonomy.number if one.taxonomy else None,
            **{f"values.{name}": one.values.get(name) for name in names},
        }


def comment_rows(project: Project) -> Iterator[dict[str, Any]]:
    """Yield the comments on items; `mentions` are aliases."""
    found = Comment.objects.prefetch_related("mentions").order_by("created_at", "pk")
    found = found.defer("item__fields")
    for comment in _read_batches(found, found.filter(item__project=project), "item", "member"):
        yield {
            "item": comment.item.key,
            "annotator": comment.member.alias,
            "text": comment.text,
            "mentions": sorted(member.alias for member in comment.mentions.all()),
            "created_at": comment.created_at,
            "withdrawn_at": comment.withdrawn_at,
        }


def mark_rows(project: Project) -> Iterator[dict[str, Any]]:
    """Yield skips, flags and records that a member saw others' answers, with start and end
    times."""
    found = Mark.objects.order_by("created_at", "pk").defer("item__fields")
    for mark in _read_batches(found, found.filter(item__project=project), "item", "member"):
        yield {
            "item": mark.item.key,
            "annotator": mark.member.alias,
            "kind": mark.kind,
            "note": mark.note,
            "created_at": mark.created_at,
            "ended_at": mark.ended_at,
        }


def row_counter(model: type[Model]) -> Callable[[Project], int]:
    """Return a function that counts the rows of a project, for a model whose rows belong to
    items."""
    return lambda project: model._default_manager.filter(item__project=project).count()


def _read_batches(
    every: QuerySet[Any], mine: QuerySet[Any], *named: str, bulky: Sequence[str] = ()
) -> Iterator[Any]:
    """Yield the rows of `mine` with their related objects, in batches; few rows at once if their
    JSON in the columns `bulky` is long."""
    for ids in bulky_id_batches(mine, *bulky):
        yield from every.filter(pk__among=ids).select_related(*named)


def resolution_columns(project: Project) -> tuple[str, ...]:
    """Return the columns of the project's final labels: the common columns, then a column for each
    resolved field."""
    return (*RESOLUTION_COLUMNS, *(f"values.{name}" for name in resolved_fields(project)))


def resolved_fields(project: Project) -> tuple[str, ...]:
    """Return the fields that may have a value in the project's resolutions, in order."""
    names = (field.name for task in label_task_types(project) for field in task.resolved)
    return tuple(dict.fromkeys(names))


def label_task_types(project: Project) -> list[TaskType]:
    """Return the current task type, and all versions of it under which the project's labels were
    given."""
    given = project.labels.order_by().values("task_type").distinct()
    older = TaskTypeVersion.objects.filter(pk__in=given).exclude(pk=project.task_type_id)
    stored = (project.task_type, *older.order_by("-number"))
    return [tasktypes.load_version(version) for version in stored]


REVISION_COLUMNS = (
    "item", "revision", "current", "origin", "author", "note", "digest", "created_at", "texts",
)  # fmt: skip
RESOLUTION_COLUMNS = (
    "item", "revision", "value", "values", "source", "rule", "decided_by", "reason", "comment",
    "current", "created_at", "ended_at", "taxonomy", "taxonomy_version",
)  # fmt: skip
COMMENT_COLUMNS = ("item", "annotator", "text", "mentions", "created_at", "withdrawn_at")
MARK_COLUMNS = ("item", "annotator", "kind", "note", "created_at", "ended_at")
