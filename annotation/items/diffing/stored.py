"""The stored diff of a revision, computed when first needed."""

from collections.abc import Iterator
from typing import Any

from django.db.models import Exists, Func, IntegerField, OuterRef

from annotation import tasktypes
from annotation.db import transactions
from annotation.db.sql import PreparedQuery
from annotation.items.diffing import difference as diffing_difference
from annotation.models import Diff, Project, Revision

# Diffs per transaction: a hundred take about 100 ms, so other writers wait no longer than that.
BATCH_SIZE = 100

_STORED_QUERY = PreparedQuery(
    lambda revision, algorithm: Diff.objects.filter(revision=revision, algorithm=algorithm)
)


def load_difference(revision: Revision) -> diffing_difference.Difference | None:
    """Return the difference of the two texts that the task type compares; None if the revision
    lacks one of these texts. Raises `ValueError` if the task type does not compare texts."""
    texts = _compared(revision)
    if texts is None:
        return None
    stored = _load_stored(revision)
    return (
        diffing_difference.from_json(stored.segments)
        if stored
        else _compare_and_store(revision, *texts)
    )


def load_json(revision: Revision) -> dict[str, Any] | None:
    """The stored difference as plain data with `edit_size`, `place`, `identical` and
    `white_space_only`; otherwise this works like `load_difference`."""
    texts = _compared(revision)
    if texts is None:
        return None
    before, after = texts
    stored = _load_stored(revision)
    if stored is None:
        _compare_and_store(revision, before, after)
        stored = Diff.objects.get(revision=revision, algorithm=diffing_difference.ALGORITHM)
    return {
        **stored.segments,
        "edit_size": stored.edit_size,
        "place": stored.place,
        "identical": before == after,
        "white_space_only": before != after and before.split() == after.split(),
    }


class ChangeCount(Func):
    """The number of changed segments of a stored diff, in SQL."""

    output_field = IntegerField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Count the segments that are JSON arrays, with PostgreSQL's functions; only changes are
        arrays."""
        path = "'strict $.segments[*] ? (@.type() == \"array\")'"
        found = f"jsonb_path_query_array(%(expressions)s, {path})"
        return super().as_sql(
            compiler, connection, template=f"jsonb_array_length({found})", **context
        )

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Count the segments that are JSON arrays, with SQLite's functions; only changes are
        arrays."""
        each = "json_each(%(expressions)s, '$.segments')"
        counted = f"(SELECT COUNT(*) FROM {each} WHERE type = 'array')"
        return super().as_sql(compiler, connection, template=counted, **context)


def stored_diffs(project: Project) -> Any:
    """The stored diffs of the project's texts, each with its number of `changes`."""
    found = Diff.objects.filter(
        algorithm=diffing_difference.ALGORITHM, revision__item__project=project
    )
    return found.annotate(changes=ChangeCount("segments"))


def store_missing(revisions: Any) -> Iterator[int]:
    """Compute and store the missing diffs of these revisions in batches. Yields the number of
    finished diffs.

    A revision that lacks one of the compared texts gets no diff. The loop can be stopped at any
    time.
    """
    lacking = revisions.filter(
        ~Exists(
            Diff.objects.filter(revision=OuterRef("pk"), algorithm=diffing_difference.ALGORITHM)
        )
    )
    ids = list(lacking.order_by("pk").values_list("pk", flat=True))
    for begin in range(0, len(ids), BATCH_SIZE):
        some = Revision.objects.filter(pk__in=ids[begin : begin + BATCH_SIZE])
        made = [_build_diff(one) for one in some.select_related("item__project__task_type")]
        if rows := [one for one in made if one]:
            with transactions.transact():
                Diff.objects.bulk_create(rows, ignore_conflicts=True)
        yield begin + len(made)


def _build_diff(revision: Revision) -> Diff | None:
    task = tasktypes.load_version(revision.item.project.task_type)
    texts = _pair(revision, task.diff) if task.diff else None
    return _row(revision, diffing_difference.compare(*texts)) if texts else None


def _row(revision: Revision, difference: diffing_difference.Difference) -> Diff:
    return Diff(
        revision=revision,
        algorithm=diffing_difference.ALGORITHM,
        segments=diffing_difference.to_json(difference),
        edit_size=difference.edit_size,
        place=difference.place,
    )


def _load_stored(revision: Revision) -> Diff | None:
    return revision.stored_diff or _STORED_QUERY.first(
        revision=revision.pk, algorithm=diffing_difference.ALGORITHM
    )


def _compare_and_store(
    revision: Revision, before: str, after: str
) -> diffing_difference.Difference:
    difference = diffing_difference.compare(before, after)
    Diff.objects.get_or_create(
        revision=revision,
        algorithm=diffing_difference.ALGORITHM,
        defaults={
            "segments": diffing_difference.to_json(difference),
            "edit_size": difference.edit_size,
            "place": difference.place,
        },
    )
    return difference


def _compared(revision: Revision) -> tuple[str, str] | None:
    task = tasktypes.load_version(revision.item.project.task_type)
    if task.diff is None:
        raise ValueError(f"Task type {task.slug} does not compare texts.")
    return _pair(revision, task.diff)


def _pair(revision: Revision, names: tuple[str, str]) -> tuple[str, str] | None:
    before, after = (revision.texts.get(name) for name in names)
    return (before, after) if isinstance(before, str) and isinstance(after, str) else None
