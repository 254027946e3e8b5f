"""The stored diff of a revision, made on first need."""

from annotation import diffing, tasktypes
from annotation.models import Diff, Revision


def of(revision: Revision) -> diffing.Difference:
    """What changed between the two texts that the project's task type compares."""
    texts = _compared(revision)
    stored = Diff.objects.filter(revision=revision, algorithm=diffing.ALGORITHM).first()
    if stored:
        return diffing.from_json(stored.segments)
    difference = diffing.compare(*texts)
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
