"""The stored diff of a revision, computed when first needed."""

from collections.abc import Iterator
from typing import Any

from django.db.models import Exists, Func, IntegerField, OuterRef, Q

from annotation import tasktypes
from annotation.db import transactions
from annotation.db.sql import PreparedQuery
from annotation.errors import Stale
from annotation.items.diffing import difference as diffing_difference
from annotation.models import Diff, Project, Revision

# Diffs per transaction: a hundred take about 100 ms, so other writers wait no longer than that.
BATCH_SIZE = 100

# The diff that is shown: the pinned one, otherwise that of the current algorithm.
_SHOWN_QUERY = PreparedQuery(
    lambda revision, algorithm: Diff.objects.filter(
        Q(pinned=True) | Q(algorithm=algorithm), revision=revision
    ).order_by("-pinned")
)


def load_difference(revision: Revision) -> diffing_difference.Difference | None:
    """Return the difference that is shown of the two texts that the task type compares; None if the
    revision lacks one of these texts. Raises `ValueError` if the task type does not compare
    texts."""
    texts = _compared(revision)
    if texts is None:
        return None
    stored = _load_shown(revision) or _compare_and_store(revision, *texts)
    return diffing_difference.from_json(stored.segments)


def shown_algorithm(revision: Revision) -> str:
    """Return the algorithm of the diff that is shown of the revision; it numbers the changes."""
    revision.stored_diff = _load_shown(revision)
    return revision.stored_diff.algorithm if revision.stored_diff else diffing_difference.ALGORITHM


def pin_shown(revision: Revision, algorithm: str) -> None:
    """Pin the diff that is shown of the revision, since there are answers to its single changes.

    Raises `Stale` if the answers are about a diff by another `algorithm`.
    """
    stored = _load_shown(revision)
    if stored is None and algorithm == diffing_difference.ALGORITHM:
        texts = _compared(Revision.objects.select_related("item__project").get(pk=revision.pk))
        stored = _compare_and_store(revision, *texts) if texts else None
    if stored is None or stored.algorithm != algorithm:
        raise Stale(
            "The changes are numbered in another way since an update. Check each change again."
        )
    if not stored.pinned:
        Diff.objects.filter(pk=stored.pk).update(pinned=True)


def load_json(revision: Revision) -> dict[str, Any] | None:
    """The stored difference as plain data with `edit_size`, `place`, `identical` and
    `white_space_only`; otherwise this works like `load_difference`."""
    texts = _compared(revision)
    if texts is None:
        return None
    before, after = texts
    stored = _load_shown(revision) or _compare_and_store(revision, before, after)
    return {
        **stored.segments,
        "edit_size": stored.edit_size,
        "place": stored.place,
        "identical": before == after,
        "white_space_only": before != after and before.split() == after.split(),
    }


class ChangeCount(Func):
    """The number of changes of a stored diff, in SQL. A moved passage has two segments and counts
    once, where it was removed."""

    output_field = IntegerField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Count with PostgreSQL's functions. Only changes are arrays, and those of moves have three
        elements."""
        path = (
            "'strict $.segments[*] ? (@.type() == \"array\" && (@.size() == 2 || @[0].size() > 0))'"
        )
        found = f"jsonb_path_query_array(%(expressions)s, {path})"
        return super().as_sql(
            compiler, connection, template=f"jsonb_array_length({found})", **context
        )

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Count with SQLite's functions, as in PostgreSQL."""
        each = "json_each(%(expressions)s, '$.segments')"
        once = "json_array_length(value) = 2 OR json_array_length(value, '$[0]') > 0"
        counted = f"(SELECT COUNT(*) FROM {each} WHERE type = 'array' AND ({once}))"
        return super().as_sql(compiler, connection, template=counted, **context)


def stored_diffs(project: Project) -> Any:
    """The stored diffs of the project's texts by all algorithms, each with its number of
    `changes`."""
    found = Diff.objects.filter(revision__item__project=project)
    return found.annotate(changes=ChangeCount("segments"))


def store_missing(project: Project, revisions: Any) -> Iterator[int]:
    """Compute and store the missing diffs of these revisions of a project in batches. Yields the
    number of finished diffs.

    A revision that lacks one of the compared texts gets no diff, nor does any if the task type
    compares no texts. The loop can be stopped at any time.
    """
    names = tasktypes.load_version(project.task_type).diff
    if names is None:
        return
    lacking = revisions.filter(
        ~Exists(
            Diff.objects.filter(revision=OuterRef("pk"), algorithm=diffing_difference.ALGORITHM)
        )
    )
    ids = list(lacking.order_by("pk").values_list("pk", flat=True))
    for begin in range(0, len(ids), BATCH_SIZE):
        some = Revision.objects.filter(pk__in=ids[begin : begin + BATCH_SIZE])
        found = [(pk, _pair(texts, names)) for pk, texts in some.values_list("pk", "texts")]
        rows = [
            Diff(revision_id=pk, algorithm=diffing_difference.ALGORITHM, **_compare(*pair))
            for pk, pair in found
            if pair
        ]
        if rows:
            with transactions.transact():
                Diff.objects.bulk_create(rows, ignore_conflicts=True)
        yield begin + len(found)


def _load_shown(revision: Revision) -> Diff | None:
    return revision.stored_diff or _SHOWN_QUERY.first(
        revision=revision.pk, algorithm=diffing_difference.ALGORITHM
    )


def _compare_and_store(revision: Revision, before: str, after: str) -> Diff:
    stored, _ = Diff.objects.get_or_create(
        revision=revision,
        algorithm=diffing_difference.ALGORITHM,
        defaults=_compare(before, after),
    )
    return stored


def _compare(before: str, after: str) -> dict[str, Any]:
    difference = diffing_difference.compare(before, after)
    return {
        "segments": diffing_difference.to_json(difference),
        "edit_size": difference.edit_size,
        "place": difference.place,
    }


def _compared(revision: Revision) -> tuple[str, str] | None:
    task = tasktypes.load_version(revision.item.project.task_type)
    if task.diff is None:
        raise ValueError(f"Task type {task.slug} does not compare texts.")
    return _pair(revision.texts, task.diff)


def _pair(texts: dict[str, Any], names: tuple[str, str]) -> tuple[str, str] | None:
    before, after = map(texts.get, names)
    return (before, after) if isinstance(before, str) and isinstance(after, str) else None
