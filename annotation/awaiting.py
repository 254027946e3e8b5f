"""Items that are no work yet, since the text that their task type awaits is still to be written."""

from annotation import seldom, tasktypes
from annotation.errors import Refused
from annotation.models import Item, Project


def lacks(item: Item) -> bool:
    """Whether the item's current texts lack what people have to see; it gets no places then."""
    task = tasktypes.of_version(item.project.task_type)
    return bool(task.awaits) and not task.is_ready(item.revision().texts)


def check(item: Item) -> None:
    """Raises `Refused` if the item is no work yet."""
    if lacks(item):
        text = tasktypes.of_version(item.project.task_type).awaited
        title = text.title if text else ""
        raise Refused(f"{item.key} has no {title!r} yet. It can be asked about once it has one.")


def count(project: Project, role: str = "") -> int:
    """How many items of the project wait, repeats and those with a known answer left out.

    Counting a large project takes a while, so the number may be some seconds old.
    """
    awaits = tasktypes.of_version(project.task_type).awaits
    if not awaits:
        return 0
    waiting = Item.objects.in_project(project).originals().of_tests().lacking(awaits)
    return seldom.remembered(project, "awaiting", role, waiting.count)


def said(project: Project, number: int) -> str:
    """The same in words, as "10 prompts wait for their gold answer."; empty for none.

    An item goes by the title of its first text, which is what it came with.
    """
    task = tasktypes.of_version(project.task_type)
    if not number or task.awaited is None:
        return ""
    came, awaited = _inside(task.texts[0].title), _inside(task.awaited.title)
    if number == 1:
        return f"1 {came} waits for its {awaited}."
    return f"{number:,} {came}s wait for their {awaited}."


def _inside(title: str) -> str:
    """A title inside a sentence."""
    return title[:1].lower() + title[1:]
