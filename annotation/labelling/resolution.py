"""Compute an item's resolution from its labels, or detect that annotators disagree.

One statement loads the state of an item (labels, slots, resolution). The statement runs for each
label, so its SQL is written by hand, as in `queue.next_item`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from annotation import tasktypes
from annotation.db import sql
from annotation.labelling import slots
from annotation.models import (
    Event,
    Item,
    Label,
    Project,
    Reason,
    Resolution,
    Revision,
    Stage,
)
from annotation.tasktypes import TaskType
from annotation.tasktypes.fields import Field
from annotation.tasktypes.outcome_rules import RULES


@dataclass(frozen=True)
class ItemState:
    """The item's current resolution, the number of its label slots by state, and what else is open.

    resolution: None if there is none. waiting: open and held slots. disputed: True if an
    adjudication is open or held because of a disagreement. asked: True if any adjudication is.
    verifying: True if a verification is open or held. answers: the answers of the counted labels of
    the revision, in the order given.
    """

    resolution: "CurrentResolution | None"
    waiting: int
    filled: int
    disputed: bool
    asked: bool
    verifying: bool
    answers: list[dict[str, Any]]


@dataclass(frozen=True)
class CurrentResolution:
    """The current resolution of an item."""

    pk: int
    source: str
    rule: str
    values: dict[str, Any]
    revision_id: int


def load_item_state(item: Item, revision: Revision) -> ItemState:
    """Load the state of the item, which must be locked, for this revision."""
    words = {"item": item.pk, "revision": revision.pk}
    [found] = sql.fetch_rows(
        f"""
        SELECT r.id, r.source, r.rule, r."values", r.revision_id, s.*,
        {_ANSWERS_SQL[connection.vendor]} FROM
          (SELECT
             COUNT(CASE WHEN stage = 'label' AND state IN ('open', 'held') THEN 1 END),
             COUNT(CASE WHEN stage = 'label' AND state = 'filled' THEN 1 END),
             COUNT(CASE WHEN stage = 'adjudicate' AND state IN ('open', 'held')
                   AND reason = 'disputed' THEN 1 END),
             COUNT(CASE WHEN stage = 'adjudicate' AND state IN ('open', 'held') THEN 1 END),
             COUNT(CASE WHEN stage = 'verify' AND state IN ('open', 'held') THEN 1 END)
           FROM annotation_slot WHERE item_id = %(item)s) AS s
        LEFT JOIN annotation_resolution r ON r.item_id = %(item)s AND r.current
        """,
        words,
    )
    pk, source, rule, values, revision_id, waiting, filled, *flags, answers = found
    return ItemState(
        resolution=CurrentResolution(pk, source, rule, json.loads(values), revision_id)
        if pk
        else None,
        waiting=waiting,
        filled=filled,
        disputed=bool(flags[0]),
        asked=bool(flags[1]),
        verifying=bool(flags[2]),
        answers=json.loads(answers or "[]"),
    )


_COUNTED_LABELS_SQL = """FROM annotation_label WHERE item_id = %(item)s AND stage = 'label' AND
current
    AND counted AND revision_id = %(revision)s"""
# The answers as one JSON list, in the order in which they were given.
_ANSWERS_SQL = {
    "postgresql": f"(SELECT json_agg(answers ORDER BY created_at, id)::text {_COUNTED_LABELS_SQL})",
    "sqlite": "(SELECT json_group_array(json(answers)) FROM"
    f" (SELECT answers {_COUNTED_LABELS_SQL} ORDER BY created_at, id))",
}


VERIFIED = "verified"
EXCLUDED = "excluded"


def update_resolution(
    item: Item, *, now: datetime, revision: Revision | None = None, asks_more: bool = True
) -> None:
    """Update the item's resolution from its counted labels; the caller's transaction has locked the
    item.

    Each resolved field has a rule (`Project.rules`, else the task type's). If all slots are filled
    and a rule gives no result, annotators disagree: more labels are collected if the project's
    settings ask for it and `asks_more`, then an adjudicator decides. If the project uses
    verification, it is requested instead of resolving.

    Three kinds of resolutions stay: a resolution that does not come from labels (adjudicated,
    imported, known), a verified resolution while the labels still give the same result, and a
    resolution that excludes the item, until `effects` ends it.
    """
    revision = revision or item.revision()
    stands = load_item_state(item, revision)
    current = stands.resolution
    if current and (current.source != Resolution.Source.LABELS or current.rule == EXCLUDED):
        return
    values, rule = aggregate(item.project, stands)
    if values is None and not stands.waiting and stands.filled:
        _ask_more_people(item, stands, item.project.disputed_overlap if asks_more else 0)
    elif stands.disputed:
        slots.close_open(item, Stage.ADJUDICATE, Reason.DISPUTED)
    ended = None
    if current and (values is None or not _is_unchanged(current, values, revision)):
        _end_by_id(current.pk, now)
        ended, current = current, None
    if item.project.verify and current is None:
        _update_verification(item, revision, stands, values)
    elif values is not None and current is None:
        by = {"rule": rule, "source": Resolution.Source.LABELS}
        _store_resolution(item, revision, values, was=ended, now=now, **by)
        return
    if ended:
        sql.insert_rows(_change_event(item, ended, None))


def aggregate_labels(item: Item) -> dict[str, Any] | None:
    """The aggregated values of the item's counted labels by field; None if a rule gives no
    result."""
    return aggregate(item.project, load_item_state(item, item.revision()))[0]


def is_excluded(item: Item) -> bool:
    """True if an annotator who was not sure has excluded the item."""
    return Resolution.objects.current().filter(item=item, rule=EXCLUDED).exists()


def set_resolution(
    item: Item,
    values: dict[str, Any],
    *,
    rule: str,
    source: str,
    now: datetime,
    **said: Any,
) -> Resolution:
    """Make these values the resolution of the item's current texts, replacing the current
    resolution."""
    was = Resolution.objects.current().filter(item=item).first()
    if was:
        was.end(now)
    said |= {"rule": rule, "source": source}
    return _store_resolution(item, item.revision(), values, was=was, now=now, **said)


def end_resolution(current: Resolution, *, now: datetime) -> None:
    """End the resolution without a new resolution."""
    current.end(now)
    sql.insert_rows(_change_event(current.item, current, None))


def _store_resolution(
    item: Item,
    revision: Revision,
    values: dict[str, Any],
    *,
    was: Resolution | CurrentResolution | None,
    now: datetime,
    **said: Any,
) -> Resolution:
    made = Resolution(
        item=item,
        revision=revision,
        value=tasktypes.load_task_type(item.project).choice_of(values),
        values=values,
        taxonomy_id=item.project.taxonomy_id,
        created_at=now,
        **said,
    )
    return sql.insert_rows(made, _change_event(item, was, made))


def _change_event(
    item: Item, was: Resolution | CurrentResolution | None, made: Resolution | None
) -> Event:
    """Build the event of the change; it names no member if the resolution was computed from
    labels."""
    return Event(
        kind="resolution",
        subject=item.key,
        project_id=item.project_id,
        member_id=made.member_id if made else None,
        data={"old": _summarise(item, was), "new": _summarise(item, made)},
    )


def _summarise(item: Item, held: Resolution | CurrentResolution | None) -> dict[str, Any]:
    if held is None:
        return {}
    choice = tasktypes.load_task_type(item.project).choice_of(held.values)
    return {"resolution": choice, "by": held.rule, "from": held.source}


def _is_unchanged(current: CurrentResolution, values: dict[str, Any], revision: Revision) -> bool:
    return current.values == values and current.revision_id == revision.pk


def _end_by_id(resolution_id: int, now: datetime) -> None:
    Resolution.objects.filter(pk=resolution_id).update(current=False, ended_at=now)


def aggregate(project: Project, stands: ItemState) -> tuple[dict[str, Any] | None, str]:
    """Aggregate every resolved field by the project's rules. Returns the values, None if a required
    field has no result, and the rule of the deciding field."""
    task, rules = tasktypes.load_task_type(project), project.rules
    places = stands.waiting + stands.filled
    values: dict[str, Any] = {}
    for field in task.resolved:
        if field.when and values.get(field.when.field) not in field.when.values:
            continue
        rule = RULES[rules.get(field.name) or field.rule or "majority"]
        said = [answer[field.name] for answer in stands.answers if field.name in answer]
        decided = rule([one for one in said if one is not None], places)
        if decided is not None:
            values[field.name] = decided
        elif field.required and not (
            _is_missing(field, task, said, stands) or _is_in_words(field, said, stands)
        ):
            return None, ""
    rule_name = rules.get(task.deciding.name) or task.deciding.rule or "majority"
    alone = places == 1 and rule_name in _SAME_FOR_ONE_LABEL
    return values, "first label" if alone else rule_name


def _is_missing(field: Field, task: TaskType, said: Sequence[Any], stands: ItemState) -> bool:
    """True if the number for a field is outside its scale in every label. Then the other fields are
    resolved without this field, unless it is the deciding field."""
    decides = field.is_number and not field.is_summed and field is task.deciding
    is_given = said or not stands.answers
    return not is_given and not stands.waiting and field.is_number and not decides


def _is_in_words(field: Field, said: Sequence[Any], stands: ItemState) -> bool:
    """True if all annotators who were asked for the field wrote it in the text field that stands in
    for it, such as an error category that is not in the list."""
    is_written = any(field.unless in answer for answer in stands.answers)
    return bool(field.unless) and is_written and not said and not stands.waiting


_SAME_FOR_ONE_LABEL = ("first", "majority", "unanimous", "median", "three")


def _ask_more_people(item: Item, stands: ItemState, most: int) -> None:
    """After a disagreement, collect labels up to this number, then ask an adjudicator; nothing more
    once one is asked because of it."""
    more = most - stands.filled
    if stands.disputed:
        return
    if more > 0:
        slots.add_slots(item, Stage.LABEL, more, reason=Reason.DISPUTED)
    elif not stands.asked:
        slots.add_slots(item, Stage.ADJUDICATE, 1, reason=Reason.DISPUTED)


def _update_verification(
    item: Item, revision: Revision, stands: ItemState, values: dict[str, Any] | None
) -> None:
    """Request verification once the labels give a result, and cancel the request if they give no
    result."""
    if values is None:
        slots.close_open(item, Stage.VERIFY)
    elif not stands.verifying and not _was_verified(item, revision):
        slots.add_slots(item, Stage.VERIFY, 1)


def _was_verified(item: Item, revision: Revision) -> bool:
    """True if the current labels were verified, or if their verification is open again.

    A verification older than the latest label stops counting, and its slot reopens.
    """
    of_texts = Label.objects.counted().of_item(item).of_revision(revision)
    last = of_texts.at_stage(Stage.LABEL).order_by("-created_at").first()
    second = of_texts.at_stage(Stage.VERIFY).select_related("slot").first()
    if second is None or last is None or second.created_at >= last.created_at:
        return second is not None
    second.stop_counting()
    second.slot.reopen()
    slots.close_open(item, Stage.ADJUDICATE, Reason.CONTESTED)
    return True
