"""The stored diff of a revision, made on first need."""

from typing import Any

from annotation import diffing, tasktypes
from annotation.models import Diff, Revision
from annotation.prepared import Prepared

_STORED = Prepared(
    lambda revision, algorithm: Diff.objects.filter(revision=revision, algorithm=algorithm)
)


def of(revision: Revision) -> diffing.Difference:
    """What changed between the two texts that the project's task type compares."""
    texts = _compared(revision)
    stored = _stored(revision)
    return diffing.from_json(stored.segments) if stored else _made(revision, *texts)


def as_json(revision: Revision) -> dict[str, Any]:
    """The same as plain data, as it is stored, with what can be said of the two texts."""
    before, after = _compared(revision)
    stored = _stored(revision)
    if stored is None:
        _made(revision, before, after)
        stored = Diff.objects.get(revision=revision, algorithm=diffing.ALGORITHM)
    return {
        **stored.segments,
        "edit_size": stored.edit_size,
        "place": stored.place,
        "identical": before == after,
        "white_space_only": before != after and before.split() == after.split(),
    }


def _stored(revision: Revision) -> Diff | None:
    return revision.stored_diff or _STORED.first(revision=revision.pk, algorithm=diffing.ALGORITHM)


def _made(revision: Revision, before: str, after: str) -> diffing.Difference:
    difference = diffing.compare(before, after)
    Diff.objects.get_or_create(
        revision=revision,
        algorithm=diffing.ALGORITHM,
        defaults={
            "segments": diffing.to_json(difference),
            "edit_size": difference.edit_size,
            "place": difference.place,
        },
    )
    return difference


def _compared(revision: Revision) -> tuple[str, str]:
    task = tasktypes.of_version(revision.item.project.task_type)
    if task.diff is None:
        raise ValueError(f"Task type {task.slug} compares no texts.")
    before, after = task.diff
    return revision.texts[before], revision.texts[after]
