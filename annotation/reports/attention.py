"""What a lead can do now: numbers that lead to the page where the work is done."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from django.db.models import F, Window
from django.db.models.functions import RowNumber

from annotation import tasktypes
from annotation.db import project_counts
from annotation.labelling import cases, control_items, pilot, qualification
from annotation.models import Item, Label, Membership, Project, Slot, Stage
from annotation.tasktypes import TaskType

AWAY = timedelta(days=3)
# Who reads every word of an item needs a second for four or five.
MOST_WORDS_A_SECOND = 12
LABELS_FOR_SPEED, LEAST_FOR_SPEED = 30, 10
# A shorter item is taken in at a glance, so its time says nothing about reading.
WORDS_FOR_SPEED = 25
LEAST_CONTROL_ITEMS = 5
# The share of right answers to control items below which a lead should look, where the project has
# no pass mark.
USUAL_PASS = 0.7


@dataclass(frozen=True)
class Task:
    """A number of items or people, what they wait for, and the page with its query."""

    number: int
    text: str
    page: str
    query: str = ""
    people: tuple[str, ...] = ()


def list_tasks(lead: Membership, people: list[Membership], now: datetime) -> list[Task]:
    """List what the lead can do in the project, the most urgent first.

    `people` are the members with `last_label_at`, as `for_progress` gives them. In a large project
    the numbers may be some seconds old.
    """
    project = lead.project
    found = project_counts.get_cached_count(
        project, "tasks", lead.role, lambda: [*_item_tasks(project), *_people_tasks(project, now)]
    )
    away = _list_away(project, people, now)
    pilots = [_pilot_task(project)] if project.pilot else []
    return [one for one in (*pilots, *found, away) if one.number]


def _pilot_task(project: Project) -> Task:
    progress = pilot.load_progress(project)
    of_all = f"of {len(progress.people)} annotators finished the pilot"
    return Task(progress.finished, of_all, "pilot")


def _item_tasks(project: Project) -> Iterator[Task]:
    decide = sum(cases.count_waiting(project).values())
    yield Task(decide, _say(decide, "needs a decision", "need a decision"), "adjudicate")
    slots = Slot.objects.in_project(project.pk).at_stage(Stage.VERIFY).of_live_items().in_use()
    verify = slots.count()
    yield Task(verify, _say(verify, "waits", "wait") + " for verification", "verify")
    for wait, one, several in (
        ("flag", "has a flag without an answer", "have flags without an answer"),
        ("comment", "has a comment without an answer", "have comments without an answer"),
        (
            "nobody",
            "waits for an annotator, but nobody is left",
            "wait for annotators, but nobody is left",
        ),
        ("annotator", "waits for another annotator", "wait for another annotator"),
    ):
        number = Item.objects.in_project(project).waiting_for(wait).count()
        where = ("adjudicate", "") if wait == "nobody" else ("items", f"?waits={wait}")
        yield Task(number, _say(number, one, several), *where)


def _people_tasks(project: Project, now: datetime) -> Iterator[Task]:
    waiting = tuple(member.alias for member in qualification.find_waiting(project))
    decision = "for a decision on qualification"
    yield _of_people(waiting, f"waits {decision}", f"wait {decision}", "qualification-people")
    wrong = tuple(
        result.member.alias
        for result in control_items.load_results(project)
        if result.member.active
        and result.share.n >= LEAST_CONTROL_ITEMS
        and (result.share.value or 0.0) < _pass_share(project)
    )
    share = f"under {100 * _pass_share(project):.0f} % of the control items right"
    yield _of_people(wrong, f"has {share}", f"have {share}", "control-items")
    hasty, pace = find_hasty(project, now), "faster than one can read"
    yield _of_people(hasty, f"labels {pace}", f"label {pace}", "pace")


def find_hasty(project: Project, now: datetime) -> tuple[str, ...]:
    """The aliases of the members who lately labelled faster than one can read: half of their labels
    had over twelve words a second."""
    speeds = measure_speeds(project, now)
    return tuple(alias for alias, speed in sorted(speeds.items()) if speed > MOST_WORDS_A_SECOND)


def measure_speeds(
    project: Project, now: datetime, member: Membership | None = None
) -> dict[str, float]:
    """The median words of an item per second of labelling, by alias, of all active members or of
    this one: of the last labels of the last three days, thirty at most. Items under 25 words are
    left out, and who has fewer than ten labels of longer ones."""
    task = tasktypes.load_task_type(project)
    labels = Label.objects.in_project(project).current().at_stage(Stage.LABEL)
    recent = labels.filter(created_at__gt=now - AWAY, seconds__gt=0, member__active=True)
    recent = recent.filter(member=member) if member else recent
    place = Window(RowNumber(), partition_by=F("member"), order_by=F("pk").desc())
    last = recent.annotate(place=place).filter(place__lte=LABELS_FOR_SPEED)
    speeds: dict[str, list[float]] = defaultdict(list)
    for alias, seconds, texts in last.values_list("member__alias", "seconds", "revision__texts"):
        if (words := _count_words(task, texts)) >= WORDS_FOR_SPEED:
            speeds[alias].append(words / seconds)
    return {
        alias: median(found) for alias, found in speeds.items() if len(found) >= LEAST_FOR_SPEED
    }


def _count_words(task: TaskType, texts: dict[str, object]) -> int:
    """The words that a person must read: of two compared texts only the longer one."""
    words = {name: len(str(text).split()) for name, text in texts.items()}
    compared = [words.pop(name, 0) for name in task.diff or ()]
    return sum(words.values()) + max(compared, default=0)


def _pass_share(project: Project) -> float:
    asked = project.practice_items
    return project.practice_pass / asked if asked else USUAL_PASS


def _list_away(project: Project, people: list[Membership], now: datetime) -> Task:
    """Annotators who have not labelled for three days, or not at all in as long a time; nobody if
    no label is left to give."""
    slots = Slot.objects.in_project(project.pk).at_work().of_live_items().in_use()
    if not slots.exists():
        people = []
    away = tuple(
        one.alias
        for one in people
        if one.active
        and one.role == "annotator"
        and max(filter(None, (getattr(one, "last_label_at", None), one.created_at))) < now - AWAY
    )
    since = "not labelled for three days"
    return _of_people(away, f"has {since}", f"have {since}", "members")


def _say(number: int, one: str, several: str) -> str:
    return f"item {one}" if number == 1 else f"items {several}"


def _of_people(people: tuple[str, ...], one: str, several: str, page: str) -> Task:
    text = f"person {one}" if len(people) == 1 else f"people {several}"
    return Task(len(people), text, page, people=people)
