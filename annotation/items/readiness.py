"""Items that are no work yet: the text that their task type awaits is still to be written, or a
lead still has to give them to people."""

from collections.abc import Iterable

from annotation import tasktypes
from annotation.db import project_counts
from annotation.errors import Refused
from annotation.items.models import ItemQuerySet
from annotation.models import Event, Item, Project

# What brings items in that people do not get at once (see `making`).
GENERATION_EVENTS = ("answers", "made")


def lacks_texts(item: Item) -> bool:
    """Whether the item's current texts lack what people have to see; it gets no places then."""
    task = tasktypes.load_version(item.project.task_type)
    return bool(task.awaits) and not task.is_ready(item.revision().texts)


def check_ready(item: Item) -> None:
    """Raises `Refused` if the item is no work yet."""
    if lacks_texts(item):
        text = tasktypes.load_version(item.project.task_type).awaited
        title = text.title if text else ""
        raise Refused(f"{item.key} has no {title!r} yet. It can be labelled once it has one.")


def projects_with_waiting(projects: Iterable[Project]) -> set[int]:
    """The ids of the projects in which items can wait, in one query."""
    every = list(projects)
    made = Event.objects.filter(project__in=every, kind__in=GENERATION_EVENTS).order_by()
    awaiting = {one.pk for one in every if tasktypes.load_version(one.task_type).awaits}
    return awaiting | set(made.values_list("project", flat=True).distinct())


def count_waiting(project: Project, role: str = "") -> int:
    """How many items of the project wait, repeats and those with a known answer left out.

    Counting a large project takes a while, so the number may be some seconds old. One in which
    nothing can wait need not be counted (see `projects_with_waiting`).
    """
    waiting = _test_items(project).unresolved().without_places()
    return project_counts.get_cached_count(project, "awaiting", role, waiting.count)


def describe_waiting(project: Project, number: int, role: str = "") -> str:
    """What so many wait for in words, as "10 prompts wait for their gold answer."; empty for none.

    An item goes by the title of its first text, which is what it came with.
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
        sentences.append(f"{kept:,} item{them} to people.")
    return " ".join(sentences)


def _test_items(project: Project) -> ItemQuerySet:
    return Item.objects.in_project(project).originals().of_tests()


def _lower_title(title: str) -> str:
    """A title inside a sentence."""
    return title[:1].lower() + title[1:]
