"""Items that cannot be labelled yet: a text that their task type needs is missing, or a lead has
not released them yet."""

from collections.abc import Iterable

from annotation import tasktypes
from annotation.db import project_counts
from annotation.errors import Refused
from annotation.items.models import ItemQuerySet
from annotation.models import Event, Item, Project

# Events of imports whose items are not all released to annotators at once.
GENERATION_EVENTS = ("answers", "made")


def lacks_texts(item: Item) -> bool:
    """True if the item lacks a text that annotators need to see. Such an item gets no slots."""
    task = tasktypes.load_version(item.project.task_type)
    return bool(task.awaits) and not task.is_ready(item.revision().texts)


def check_ready(item: Item) -> None:
    """Raise `Refused` if the item cannot be labelled yet because it lacks a text."""
    if lacks_texts(item):
        text = tasktypes.load_version(item.project.task_type).awaited
        title = text.title if text else ""
        raise Refused(f"{item.key} has no {title!r} yet. It can be labelled once it has one.")


def projects_with_waiting(projects: Iterable[Project]) -> set[int]:
    """The ids of the projects that can have waiting items, in one query."""
    every = list(projects)
    made = Event.objects.filter(project__in=every, kind__in=GENERATION_EVENTS).order_by()
    awaiting = {one.pk for one in every if tasktypes.load_version(one.task_type).awaits}
    return awaiting | set(made.values_list("project", flat=True).distinct())


def count_waiting(project: Project, role: str = "") -> int:
    """Count the waiting items of the project, without duplicates, qualification and control items.

    Counting a large project takes a while, so the number may be some seconds old. A project that
    cannot have waiting items need not be counted (see `projects_with_waiting`).
    """
    waiting = _test_items(project).unresolved().without_places()
    return project_counts.get_cached_count(project, "awaiting", role, waiting.count)


def describe_waiting(project: Project, number: int, role: str = "") -> str:
    """Say what `number` items wait for, such as "10 prompts wait for their gold answer."; "" for 0.

    The items are named after the title of their first text, with which they were imported.
    """
    if not number:
        return ""
    task, lacking = tasktypes.load_version(project.task_type), 0
    if task.awaits:
        found = _test_items(project).lacking(task.awaits)
        lacking = min(
            number, project_counts.get_cached_count(project, "lacking", role, found.count)
        )
    came = _lower_title(task.texts[0].title)
    awaited = _lower_title(task.awaited.title) if task.awaited else ""
    sentences = []
    if lacking:
        theirs = f"s wait for their {awaited}" if lacking > 1 else f" waits for its {awaited}"
        sentences.append(f"{lacking:,} {came}{theirs}.")
    if kept := number - lacking:
        them = (
            "s wait until a lead releases them" if kept > 1 else (" waits until a lead releases it")
        )
        sentences.append(f"{kept:,} item{them} to annotators.")
    return " ".join(sentences)


def _test_items(project: Project) -> ItemQuerySet:
    return Item.objects.in_project(project).originals().of_tests()


def _lower_title(title: str) -> str:
    """Return a title with its first letter in lower case, for use inside a sentence."""
    return title[:1].lower() + title[1:]
