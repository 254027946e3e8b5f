"""What a project asks of people, changed by its leads; every change is in the audit.

A change holds from now on: of labels that come, and of items that are taken up. What people have
said stays, and so do resolutions. Only how many labels an item gets is brought in line at once:
places are added where they lack, and ones that nobody has begun are closed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from annotation import assigning, known, tasktypes, writing
from annotation.answers import PRACTICE, PROBE
from annotation.fields import Field
from annotation.models import Event, Item, Job, Membership, Project
from annotation.rules import RULES, TITLES

SWITCHES = (
    "name", "description", "overlap", "share_percent", "share_overlap", "disputed_overlap",
    "hold_minutes", "rules", "verify", "blind_first", "claim_check", "expected_effect",
    "practice_items", "practice_pass", "probe_every", "text_format", "guidelines_field",
)  # fmt: skip
# What decides how many places an item has.
OF_PLACES = frozenset({"overlap", "share_percent", "share_overlap"})
IN_LINE = "places"
# Rules that reckon, so that their field must be of numbers.
_RECKONING = frozenset({"median", "three"})
# So many items are brought in line while the lead waits, about ten seconds at most.
AT_ONCE = 1_000


@dataclass(frozen=True)
class Problem:
    """What is wrong with a setting, and what to do."""

    name: str
    text: str


@dataclass(frozen=True)
class Applied:
    """What was changed, old and new by name; `job` if places are to be brought in line later."""

    changed: dict[str, tuple[Any, Any]]
    job: Job | None


def problems(project: Project, values: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with the settings as they would be with these values."""
    wanted = {name: values.get(name, getattr(project, name)) for name in SWITCHES}
    found = [*_of_counts(wanted), *_of_rules(project, wanted["rules"])]
    return found + _of_known(project, wanted)


def apply(
    project: Project,
    member: Membership,
    values: Mapping[str, Any],
    *,
    now: datetime | None = None,
) -> Applied:
    """Store the values, by name, and do at once what they ask of items that are there.

    Values that have `problems` must not come here. In a large project the caller has the job
    worked on: `bring_in_line`.
    """
    now = now or timezone.now()
    with writing.transact():
        stored = Project.objects.select_for_update(no_key=True, of=("self",)).get(pk=project.pk)
        changed = {
            name: (getattr(stored, name), value)
            for name, value in values.items()
            if name in SWITCHES and getattr(stored, name) != value
        }
        for name, (_, value) in changed.items():
            setattr(stored, name, value)
            setattr(project, name, value)
        stored.save(update_fields=list(changed))
        job = None
        if changed:
            _record(project, member, changed)
        if OF_PLACES & set(changed):
            job = _job(project, member, now)
    if job and Item.objects.in_project(project).count() <= AT_ONCE:
        bring_in_line(job, now=now)
        job = None
    return Applied(changed, job)


def bring_in_line(job: Job, *, now: datetime | None = None) -> None:
    """Give all items as many places as the settings ask for; again is nothing new."""
    now = now or timezone.now()
    job.state = Job.State.RUNNING
    job.save(update_fields=["state"])
    job.done = assigning.apply_overlap(job.project, now=now)
    job.state, job.finished_at = Job.State.FINISHED, timezone.now()
    job.save(update_fields=["done", "state", "finished_at"])


def unfinished(project: Project) -> Job | None:
    """The job that still has to bring places in line, if there is one."""
    return project.jobs.filter(kind=IN_LINE, finished_at=None).first()


def changes(project: Project) -> QuerySet[Event]:
    """All changes of the settings, the last one first."""
    return project.events.filter(kind="settings").select_related("member")


def rules_for(field: Field) -> dict[str, str]:
    """The rules that a field can have, with what they do in words."""
    numbers = field.kind in {"scale", "points"}
    return {name: TITLES[name] for name in RULES if numbers or name not in _RECKONING}


def _of_counts(wanted: Mapping[str, Any]) -> list[Problem]:
    found = []
    if wanted["share_percent"] > 100:
        found.append(Problem("share_percent", "A share is at most 100 per cent."))
    if wanted["share_percent"] and wanted["share_overlap"] <= wanted["overlap"]:
        text = f"Every item gets {wanted['overlap']}; the share must get more, or be 0 per cent."
        found.append(Problem("share_overlap", text))
    most = max(wanted["overlap"], wanted["share_overlap"] if wanted["share_percent"] else 0)
    if 0 < wanted["disputed_overlap"] <= most:
        text = f"Items get up to {most} anyway; choose more, or 0 for none."
        found.append(Problem("disputed_overlap", text))
    if wanted["practice_items"] and wanted["practice_pass"] > wanted["practice_items"]:
        text = f"A round has only {wanted['practice_items']} items; nobody could pass."
        found.append(Problem("practice_pass", text))
    return found


def _of_rules(project: Project, rules: Mapping[str, str]) -> list[Problem]:
    task = tasktypes.of_version(project.task_type)
    asked = {field.name: field for field in task.resolved}
    return [
        Problem(f"rule.{name}", "This field cannot have this rule. Choose one from the list.")
        for name, rule in rules.items()
        if name not in asked or rule not in rules_for(asked[name])
    ]


def _of_known(project: Project, wanted: Mapping[str, Any]) -> list[Problem]:
    found = []
    there = len(known.items(project, PRACTICE))
    if wanted["practice_items"] > there:
        text = (
            f"There are {there} items with known answers for practice, and a round would need "
            f"{wanted['practice_items']}. Add some first, or nobody could get to work."
        )
        found.append(Problem("practice_items", text))
    if wanted["probe_every"] and not known.items(project, PROBE):
        text = "There is no item for silent checks yet. Add some first, or choose 0."
        found.append(Problem("probe_every", text))
    return found


def _job(project: Project, member: Membership, now: datetime) -> Job:
    waiting = unfinished(project)
    return waiting or Job.objects.create(
        project=project, kind=IN_LINE, member=member, created_at=now
    )


def _record(project: Project, member: Membership, changed: dict[str, tuple[Any, Any]]) -> None:
    Event.record(
        "settings",
        project.slug,
        project_id=project.pk,
        member_id=member.pk,
        old={name: old for name, (old, _) in changed.items()},
        new={name: new for name, (_, new) in changed.items()},
    )
