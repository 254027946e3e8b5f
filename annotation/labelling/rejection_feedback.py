"""What people said against items, in words and without names: what a next try has to heed."""

from collections import defaultdict
from collections.abc import Collection, Iterator

from annotation import tasktypes
from annotation.items.models import ItemQuerySet
from annotation.models import Item, Label, Project, Stage
from annotation.tasktypes import TaskType, main_field

# Of what people wrote so many characters go on, of one person and of all.
MAX_REMARK_LENGTH, MAX_FEEDBACK_LENGTH = 1_000, 4_000


def rejected_items(project: Project) -> ItemQuerySet:
    """The items that were turned down by what is held true of them, and nothing made of them
    since; those with a claim to be made anew, so none that are people's practice."""
    decides = main_field.load_main_field(project)
    values = [value for value, _ in decides.options if decides.drops(value)]
    found = Item.objects.in_project(project).originals().of_tests()
    return found.resolved_as_one_of(values).childless().order_by("position")


def collect_feedback(project: Project, items: Collection[int]) -> dict[int, str]:
    """What was said of items, by their ids: the answers of each person that has a label in force,
    and what they wrote; first what had been changed, by the claim. Items without any are left
    out."""
    task = tasktypes.load_task_type(project)
    labels = Label.objects.counted().in_project(project).at_stages([Stage.LABEL, Stage.ADJUDICATE])
    said: dict[int, list[str]] = defaultdict(list)
    for label in labels.filter(item__among=list(items)).oldest_first():
        said[label.item_id].append(" ".join(_label_remarks(task, label)))
    claims = _claims(said)
    return {
        item: "\n".join([*claims.get(item, []), *dict.fromkeys(words)])[:MAX_FEEDBACK_LENGTH]
        for item, words in said.items()
    }


def _label_remarks(task: TaskType, label: Label) -> Iterator[str]:
    for option in task.chosen(label.answers):
        yield f"{option.title}."
    written = (label.answers.get(field.name) for field in task.fields if field.kind == "text")
    for text in (*written, label.comment):
        if isinstance(text, str) and text.strip():
            yield f"“{text.strip()[:MAX_REMARK_LENGTH]}”"


def _claims(items: Collection[int]) -> dict[int, list[str]]:
    found = Item.objects.filter(pk__among=list(items)).with_current_texts()
    claims = {item.pk: item.current_revisions[0].texts.get("claim", "") for item in found}
    return {
        pk: [f"The change was: {said[:MAX_REMARK_LENGTH]}"] for pk, said in claims.items() if said
    }
