"""The settings of a project, which its leads change; every change is in the audit log.

Changes apply to new labels and to items opened later. Existing labels and resolutions stay. Only
the number of labels per item is updated at once: missing slots are added, and slots that nobody has
started are closed.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, QuerySet
from django.utils import timezone

from annotation import tasktypes
from annotation.db import transactions
from annotation.errors import Refused, Stale
from annotation.jobs import job_queue
from annotation.labelling import answer_key, assignment, work_order
from annotation.labelling.correct_answers import PRACTICE, PROBE
from annotation.models import Cursor, Event, Item, Job, Membership, Project
from annotation.reports.grouping import list_groupings
from annotation.tasktypes.fields import Field
from annotation.tasktypes.outcome_rules import RULE_TITLES, RULES

SETTING_NAMES = (
    "name", "description", "order", "order_field", "begun_first", "overlap", "share_percent",
    "share_overlap", "disputed_overlap", "hold_minutes", "rules", "verify", "verify_blind",
    "blind_first",
    "claim_check", "expected_effect", "practice_items", "practice_pass", "probe_every",
    "text_format", "guidelines_field",
)  # fmt: skip
# Settings that affect items that still need a label, and settings that affect all items.
LABELLING_SETTINGS = frozenset(
    {"hold_minutes", "disputed_overlap", "rules", "verify", "blind_first", "claim_check"}
    | {"expected_effect", "probe_every"}
)
DISPLAY_SETTINGS = frozenset({"text_format", "guidelines_field"})
FOLLOW_TEXTS = (
    "still needs labels and will follow the new settings.",
    "still need labels and will follow the new settings.",
)
ORDER_TEXTS = (
    "still needs labels and comes in the new order.",
    "still need labels and come in the new order.",
)
# Messages for a change of the number of slots, about one item and about several, by the outcomes of
# `assignment.preview_resize`.
OUTCOME_TEXTS = {
    "more": ("needs more labels.", "need more labels."),
    "fewer": ("needs fewer labels.", "need fewer labels."),
    "same": ("already needs this number of labels.", "already need this number of labels."),
    "begun": (
        "is already started or reserved and keeps its labels.",
        "are already started or reserved and keep their labels.",
    ),
    "excluded": (
        "was excluded by an annotator who was not sure.",
        "were excluded by annotators who were not sure.",
    ),
    "accepted": (
        "needs no labels: its final label came with the import.",
        "need no labels: their final labels came with the import.",
    ),
    "waiting": (
        "waits for a text, or for a lead to release it.",
        "wait for a text, or for a lead to release them.",
    ),
    "repeats": ("is a duplicate and needs no label.", "are duplicates and need no labels."),
    "known": ("is a control or qualification item.", "are control or qualification items."),
}
RESIZE_JOB = "places"
# Rules that calculate with the answers, so that the answers must be numbers.
_NUMBER_RULES = frozenset({"median", "three"})
# Up to this many items are updated while the lead waits, about ten seconds at most.
MAX_IMMEDIATE_ITEMS = 1_000
# What a job may have to do, with the last item that is done.
STEPS = ("sorted", "after", "settled")
# Seconds that a worker spends on the job before the next worker continues it.
SLICE_SECONDS = 30.0


@dataclass(frozen=True)
class SettingProblem:
    """A problem with a setting; the text says what to do."""

    name: str
    text: str


@dataclass(frozen=True)
class SettingsChange:
    """The changed settings by name, with old and new values; `job` is set if a worker still has to
    update slots."""

    changed: dict[str, tuple[Any, Any]]
    job: Job | None


def find_problems(project: Project, values: Mapping[str, Any]) -> list[SettingProblem]:
    """Find the problems that the settings would have with these values; [] if there are none."""
    wanted = {name: values.get(name, getattr(project, name)) for name in SETTING_NAMES}
    found = [*_count_problems(wanted), *_rule_problems(project, wanted["rules"])]
    return found + _order_problems(project, wanted) + _answer_problems(project, wanted)


def preview_change(project: Project, values: Mapping[str, Any]) -> list[str]:
    """Say how many items would change if these values were stored, and why the other items would
    not, in one sentence each; [] if the values change nothing. Nothing is stored; takes one
    query."""
    changed = _changed_values(project, values)
    if not changed:
        return []
    asked = copy(project)
    for name, value in changed.items():
        setattr(asked, name, value)
    try:
        counts = assignment.preview_resize(asked)
    except Refused as refused:
        return [str(refused)]
    said = _describe_resize(counts) if assignment.SLOT_SETTINGS & set(changed) else []
    if work_order.ORDER_SETTINGS & set(changed):
        said.append(_describe_items(counts["to_label"], *ORDER_TEXTS))
    if LABELLING_SETTINGS & set(changed):
        said.append(_describe_items(counts["to_label"], *FOLLOW_TEXTS))
    if DISPLAY_SETTINGS & set(changed):
        said.append(
            _describe_items(counts["items"], "is shown differently.", "are shown differently.")
        )
    return said or ["No item changes."]


def apply_change(
    project: Project,
    member: Membership,
    values: Mapping[str, Any],
    *,
    seen: int | None = None,
    now: datetime | None = None,
) -> SettingsChange:
    """Store the values, by name, and apply them to existing items.

    The values must have passed `find_problems`. In a large project a job updates the items. Workers
    find the job by themselves; the caller may notify a worker. Raises `Stale` if something would
    change, unless `list_changes` has `seen` events, as many as when the settings were loaded.
    """
    now = now or timezone.now()
    with transactions.transact():
        stored = Project.objects.select_for_update(no_key=True, of=("self",)).get(pk=project.pk)
        changed = {
            name: (getattr(stored, name), value)
            for name, value in _changed_values(stored, values).items()
        }
        if changed and seen is not None and list_changes(stored).count() != seen:
            raise Stale("Somebody else changed the settings. Read them again.")
        for name, (_, value) in changed.items():
            setattr(stored, name, value)
            setattr(project, name, value)
        fields = [*changed]
        if stored.order == work_order.RANDOM and not stored.order_seed:
            stored.order_seed = project.order_seed = work_order.draw_seed()
            fields.append("order_seed")
        stored.save(update_fields=fields)
        job = None
        if changed:
            _record(project, member, changed)
        if assignment.APPLIED_SETTINGS & set(changed):
            job = enqueue_job(project, member, now, set(changed))
    if (
        job
        and Item.objects.in_project(project).count() <= MAX_IMMEDIATE_ITEMS
        and run_job(job.pk, now=now)
    ):
        job = None
    return SettingsChange(changed, job)


def run_job(
    job_id: int,
    *,
    now: datetime | None = None,
    seconds: float = SLICE_SECONDS,
    stopped: Callable[[], bool] = lambda: False,
) -> bool:
    """Sort the slots if the order changed, and add or close slots as the settings require, for up
    to `seconds`. Returns True if all items are done, False if items are left or another worker runs
    the job.

    The next worker continues with the remaining items; running the job twice changes nothing more.
    If this worker fails, the job waits until its lease has expired.
    """
    now = now or timezone.now()
    with job_queue.hold_lease(job_id, RESIZE_JOB, stopped) as job:
        if job is None:
            return False
        begin = {name: job.result[name] for name in STEPS if name in job.result}
        ends, done = time.monotonic() + seconds, 0
        project = Project.objects.select_related("task_type").get(jobs=job_id)
        left: dict[str, int] | None = None
        for step, rest in _steps(project, begin, now):
            done += step.changed
            if stopped() or time.monotonic() > ends:
                left = rest
                break
        return _release_job(job_id, project, done, left)


def _steps(
    project: Project, left: dict[str, int], now: datetime
) -> Iterator[tuple[work_order.SortStep | assignment.ResizeStep, dict[str, int]]]:
    """The steps of the job, each with what is left after it, as its result is stored."""
    rest = dict(left)
    if "sorted" in rest:
        for step in work_order.sort_slots(project, rest["sorted"]):
            yield step, rest | {"sorted": step.last}
        del rest["sorted"]
    if "after" in rest or not left:
        for resized in assignment.resize_items(project, now=now, after=rest.get("after", 0)):
            yield resized, rest | {"after": resized.last}
        Cursor.objects.filter(member__project=project).delete()
    for settled in assignment.settle_disputes(project, now=now):
        yield settled, {"settled": settled.last}


def _release_job(job_id: int, project: Project, done: int, left: dict[str, int] | None) -> bool:
    """Release the job after `done` more items were changed, and return True if it is finished.
    `left` says what is left, None if all is done. If the settings changed meanwhile, the job starts
    again from the first item."""
    with transactions.transact():
        asked = Project.objects.select_for_update(no_key=True, of=("self",)).get(pk=project.pk)
        of_job = assignment.APPLIED_SETTINGS
        changed = {name for name in of_job if getattr(asked, name) != getattr(project, name)}
        finished = left is None and not changed
        Job.objects.filter(pk=job_id).update(
            done=F("done") + done,
            state=Job.State.FINISHED if finished else Job.State.WAITING,
            result=_from_the_start(changed, left or {}) if changed else left or {},
            finished_at=timezone.now() if finished else None,
        )
    return finished


def unfinished_job(project: Project) -> Job | None:
    """Find the unfinished job that updates slots; None if there is none."""
    return project.jobs.filter(kind=RESIZE_JOB, finished_at=None).first()


def list_changes(project: Project) -> QuerySet[Event]:
    """List all events about changed settings, the latest first."""
    return project.events.filter(kind="settings").select_related("member")


def allowed_rules(field: Field) -> dict[str, str]:
    """The aggregation rules that a field can have, with their titles."""
    return {
        name: RULE_TITLES[name] for name in RULES if field.is_number or name not in _NUMBER_RULES
    }


def _changed_values(project: Project, values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings among the values that differ from the project's."""
    return {
        name: value
        for name, value in values.items()
        if name in SETTING_NAMES and getattr(project, name) != value
    }


def _describe_resize(counts: Mapping[str, int]) -> list[str]:
    """Sentences that say how many items need more or fewer labels, and how many do not change."""
    found = {
        name: _describe_items(counts[name], *words)
        for name, words in OUTCOME_TEXTS.items()
        if counts[name]
    }
    if settled := counts["settled"]:
        have = "has a final label, which stays" if settled == 1 else "have final labels, which stay"
        found["more"] += f" {settled:,} of them {have} only if the existing labels decide."
    none = [] if counts["more"] or counts["fewer"] else ["No item needs more or fewer labels."]
    return [*none, *found.values()]


def _describe_items(number: int, one: str, many: str) -> str:
    said = "No item" if number == 0 else "1 item" if number == 1 else f"{number:,} items"
    return f"{said} {many if number > 1 else one}"


def _count_problems(wanted: Mapping[str, Any]) -> list[SettingProblem]:
    found = []
    if wanted["share_percent"] > 100:
        found.append(SettingProblem("share_percent", "The share can be at most 100 %."))
    if wanted["share_percent"] and wanted["share_overlap"] <= wanted["overlap"]:
        text = (
            f"Every item gets {wanted['overlap']} annotators; items in the sample must get more, "
            "or the share must be 0 %."
        )
        found.append(SettingProblem("share_overlap", text))
    most = max(wanted["overlap"], wanted["share_overlap"] if wanted["share_percent"] else 0)
    if 0 < wanted["disputed_overlap"] <= most:
        text = f"Items already get up to {most} labels; choose more, or 0."
        found.append(SettingProblem("disputed_overlap", text))
    if wanted["practice_items"] and wanted["practice_pass"] > wanted["practice_items"]:
        text = f"A round has only {wanted['practice_items']} items; choose at most that many."
        found.append(SettingProblem("practice_pass", text))
    return found


def _order_problems(project: Project, wanted: Mapping[str, Any]) -> list[SettingProblem]:
    if wanted["order"] != work_order.FIELD:
        return []
    name = wanted["order_field"]
    if name and Item.objects.in_project(project).filter(fields__has_key=name).exists():
        return []
    fields = {field for one in list_groupings(project) for field in [one.name] if one.is_field}
    said = f"Choose from {', '.join(sorted(fields))}." if fields else "Choose another order."
    problem = f"No item has a field {name!r}." if name else "Name a field."
    return [SettingProblem("order_field", f"{problem} {said}")]


def _rule_problems(project: Project, rules: Mapping[str, str]) -> list[SettingProblem]:
    task = tasktypes.load_version(project.task_type)
    asked = {field.name: field for field in task.resolved}
    return [
        SettingProblem(
            f"rule.{name}", "This field cannot have this rule. Choose one from the list."
        )
        for name, rule in rules.items()
        if name not in asked or rule not in allowed_rules(asked[name])
    ]


def _answer_problems(project: Project, wanted: Mapping[str, Any]) -> list[SettingProblem]:
    found = []
    there = len(answer_key.items_with_answer(project, PRACTICE))
    if wanted["practice_items"] > there:
        text = (
            f"The project has {there} qualification items, but a round needs "
            f"{wanted['practice_items']}. Add more first; otherwise nobody can pass."
        )
        found.append(SettingProblem("practice_items", text))
    if wanted["probe_every"] and not answer_key.items_with_answer(project, PROBE):
        text = "The project has no control items yet. Add some first, or choose 0."
        found.append(SettingProblem("probe_every", text))
    return found


def enqueue_job(
    project: Project, member: Membership | None, now: datetime, changed: Collection[str]
) -> Job:
    """Store the job that applies these changed settings to the slots that are there: their number
    and their positions in the queue."""
    waiting = unfinished_job(project)
    if waiting is None:
        return Job.objects.create(
            project=project,
            kind=RESIZE_JOB,
            member=member,
            created_at=now,
            result=_from_the_start(changed),
        )
    # Start again with the new settings; a worker with the old settings notices this when it
    # releases the job, and of one that has died nothing is left.
    Job.objects.filter(pk=waiting.pk).update(result=_from_the_start(changed, waiting.result))
    return waiting


def _from_the_start(
    changed: Collection[str], left: Mapping[str, Any] | None = None
) -> dict[str, int]:
    """What a job has to do for these changed settings and for what was left, all from the first
    item."""
    asked = {
        "sorted": work_order.ORDER_SETTINGS,
        "after": assignment.SLOT_SETTINGS,
        "settled": {"disputed_overlap"},
    }
    return {name: 0 for name in STEPS if asked[name] & set(changed) or name in (left or {})}


def _record(project: Project, member: Membership, changed: dict[str, tuple[Any, Any]]) -> None:
    Event.record(
        "settings",
        project.slug,
        project_id=project.pk,
        member_id=member.pk,
        old={name: old for name, (old, _) in changed.items()},
        new={name: new for name, (_, new) in changed.items()},
    )
