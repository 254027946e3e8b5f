"""Labels become a resolution, or show that people disagree."""

from datetime import datetime
from typing import Any

from annotation import places, tasktypes
from annotation.models import Item, Label, Reason, Resolution, Revision, Slot, Stage
from annotation.rules import RULES
from annotation.tasktypes import TaskType

VERIFIED = "verified"
EXCLUDED = "excluded"


def settle(item: Item, *, now: datetime) -> Resolution | None:
    """Bring the item's resolution in line with its counted work labels, inside the caller's
    transaction, the item locked.

    Each field that is resolved has its rule (`Project.rules`, else the task type's). Once every
    place is filled and a rule still finds nothing, people disagree: more of them are asked if the
    project says so, then an adjudicator. Where a second person verifies, that is asked for
    instead of resolving. Resolutions that do not come from labels (adjudicated, imported, known)
    stand, so does one that was verified while the labels still say the same, and one that takes
    the item out until `routing` ends it.
    """
    current = Resolution.objects.current().filter(item=item).first()
    if current and (current.source != Resolution.Source.LABELS or current.rule == EXCLUDED):
        return current
    revision = item.revision()
    task = tasktypes.of_project(item.project)
    states = list(Slot.objects.at(item.project_id, Stage.WORK).of_item(item).states())
    places_left = sum(state in ("open", "held") for state in states)
    values, rule = _decide(item, revision, task, len(states) - states.count("closed"))
    if values is None and not places_left and "filled" in states:
        _ask_more(item, states.count("filled"))
    elif values is not None or places_left:
        places.close_open(item, Stage.ADJUDICATE, Reason.DISPUTED)
    if item.project.verify:
        return _verified(item, revision, current, values, now)
    return _resolve(item, current, revision, task, values, rule, now)


def decided(item: Item) -> dict[str, Any] | None:
    """What follows from the item's counted work labels, by field; None if that is not clear."""
    states = list(Slot.objects.at(item.project_id, Stage.WORK).of_item(item).states())
    task = tasktypes.of_project(item.project)
    return _decide(item, item.revision(), task, len(states) - states.count("closed"))[0]


def is_excluded(item: Item) -> bool:
    """Whether somebody who was not sure took the item out."""
    return Resolution.objects.current().filter(item=item, rule=EXCLUDED).exists()


def resolve(
    item: Item,
    values: dict[str, Any],
    *,
    rule: str,
    source: str,
    now: datetime,
    **said: Any,
) -> Resolution:
    """Hold these values true of the item's current texts, instead of what was held so far."""
    for current in Resolution.objects.current().filter(item=item):
        current.end(now)
    return Resolution.objects.create(
        item=item,
        revision=item.revision(),
        value=tasktypes.of_project(item.project).choice_of(values),
        values=values,
        rule=rule,
        source=source,
        created_at=now,
        **said,
    )


def _resolve(
    item: Item,
    current: Resolution | None,
    revision: Revision,
    task: TaskType,
    values: dict[str, Any] | None,
    rule: str,
    now: datetime,
) -> Resolution | None:
    if values is None:
        if current:
            current.end(now)
        return None
    same = (task.choice_of(values), revision.pk)
    if current and (current.value, current.revision_id) == same and current.values == values:
        return current
    return resolve(item, values, rule=rule, source=Resolution.Source.LABELS, now=now)


def _decide(
    item: Item, revision: Revision, task: TaskType, places: int
) -> tuple[dict[str, Any] | None, str]:
    """What follows for every resolved field, None if a required one is not decided; and the rule
    of the deciding one."""
    counted = Label.objects.counted().of_item(item).at_stage(Stage.WORK).of_revision(revision)
    answers = list(counted.order_by("created_at", "pk").values_list("answers", flat=True))
    values: dict[str, Any] = {}
    rules = item.project.rules
    for field in task.resolved:
        said = [answer[field.name] for answer in answers if answer.get(field.name) is not None]
        asked = field.when is None or values.get(field.when.field) in field.when.values
        decided = (
            RULES[rules.get(field.name) or field.rule or "majority"](said, places)
            if asked
            else None
        )
        if decided is not None:
            values[field.name] = decided
        elif asked and field.required:
            return None, ""
    rule = rules.get(task.deciding.name) or task.deciding.rule or "majority"
    return values, "first label" if places == 1 and rule in _ALIKE_FOR_ONE else rule


_ALIKE_FOR_ONE = ("first", "majority", "unanimous", "median", "three")


def _ask_more(item: Item, filled: int) -> None:
    """People disagree: ask as many as the project has for that, then an adjudicator."""
    more = item.project.disputed_overlap - filled
    if more > 0:
        places.add(item, Stage.WORK, more, reason=Reason.DISPUTED)
        return
    waiting = Slot.objects.at(item.project_id, Stage.ADJUDICATE).of_item(item).in_use()
    if not waiting.exists():
        places.add(item, Stage.ADJUDICATE, 1, reason=Reason.DISPUTED)


def _verified(
    item: Item,
    revision: Revision,
    current: Resolution | None,
    values: dict[str, Any] | None,
    now: datetime,
) -> Resolution | None:
    """The resolution that a second person confirmed, if it still says what the labels say."""
    if current and values is not None and current.values == values:
        return current
    if current:
        current.end(now)
    if values is None:
        places.close_open(item, Stage.VERIFY)
        return None
    verify = Slot.objects.at(item.project_id, Stage.VERIFY).of_item(item)
    if not verify.in_use().exists() and not _was_verified(item, revision):
        places.add(item, Stage.VERIFY, 1)
    return None


def _was_verified(item: Item, revision: Revision) -> bool:
    """Whether a second person has spoken, or is asked again: of labels as they are now.

    What was said before the last of the labels stops counting, and its place opens again.
    """
    of_texts = Label.objects.counted().of_item(item).of_revision(revision)
    last = of_texts.at_stage(Stage.WORK).order_by("-created_at").first()
    second = of_texts.at_stage(Stage.VERIFY).select_related("slot").first()
    if second is None or last is None or second.created_at >= last.created_at:
        return second is not None
    second.stop_counting()
    second.slot.open()
    places.close_open(item, Stage.ADJUDICATE, Reason.CONTESTED)
    return True
