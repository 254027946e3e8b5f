"""What webhooks can be told of. The audit log is the outbox: nothing is added where people label or
where evaluators are called.

A message says what happened and where to read more. It contains no text of an item, and names no
person.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import CharField, Exists, OuterRef, QuerySet, Value
from django.db.models.functions import Cast, Concat
from django.urls import reverse

from annotation.models import Event, Job, Project
from judging.jobs.job_list import JOB_KINDS
from judging.models import Delivery, Run, Webhook

PING = "ping"
_RUN_STATES = (Run.State.FINISHED, Run.State.PAUSED, Run.State.CANCELLED)
_MAX_MESSAGE = 1_000


@dataclass(frozen=True)
class Topic:
    """A topic: its title, the types of its messages, which rows it tells of, and how.

    `rows` finds rows since a time in the column `moment`; `build` makes a message of one.
    """

    title: str
    types: tuple[str, ...]
    rows: QuerySet[Any]
    moment: str
    build: Callable[[Project, Any], "Message"]

    def since(self, project: Any, start: Any) -> QuerySet[Any]:
        """Find the rows of a project after a time; both may be columns of an outer query."""
        return self.rows.filter(project=project, **{f"{self.moment}__gt": start})


@dataclass(frozen=True)
class Message:
    """What is delivered: its source, its type, the time of what happened, and the body."""

    source: str
    type: str
    at: datetime
    body: str


def build_message(source: str, kind: str, at: datetime, project: Project, **data: Any) -> Message:
    """Build a message about a project. The path `url` becomes an address if the site has one."""
    url = settings.SITE_URL.rstrip("/") + data.pop("url")
    said = {
        "type": kind,
        "timestamp": at.isoformat(),
        "data": {"project": project.slug, **data, "url": url},
    }
    return Message(source, kind, at, json.dumps(said, ensure_ascii=False))


def find_new(webhook: Webhook, name: str, since: datetime, limit: int) -> Iterator[Message]:
    """Build the messages of a topic since a time, the oldest first, that have no delivery to this
    webhook yet."""
    topic = TOPICS[name]
    found = topic.since(webhook.project, since)
    if topic.moment == "created_at":
        # Rows that are written once, of which there may be many: the database leaves out the known.
        sent = Delivery.objects.filter(webhook=webhook, source=OuterRef("source"))
        number = Cast("pk", CharField())
        found = found.annotate(source=Concat(Value("event "), number)).filter(~Exists(sent))
        rows = found.order_by("created_at", "pk")[:limit]
        yield from (topic.build(webhook.project, row) for row in rows)
        return
    made = [topic.build(webhook.project, row) for row in found.order_by(topic.moment, "pk")]
    known = Delivery.objects.filter(webhook=webhook, source__in=[one.source for one in made])
    sent_before = set(known.values_list("source", flat=True))
    yield from [one for one in made if one.source not in sent_before][:limit]


def _build_resolution(project: Project, event: Event) -> Message:
    return build_message(
        f"event {event.pk}",
        "resolution.changed",
        event.created_at,
        project,
        item=event.subject,
        old=event.old or None,
        new=event.new or None,
        url=reverse("item", args=[project.slug, event.subject]),
    )


def _build_run(project: Project, event: Event) -> Message:
    state = event.kind.removeprefix("run ")
    number = int(event.subject.removeprefix("run "))
    # A person's reason could name a person.
    reason = "" if event.member_id else str(event.data.get("reason", ""))
    return build_message(
        f"event {event.pk}",
        f"run.{state}",
        event.created_at,
        project,
        run=number,
        state=state,
        message=reason[:_MAX_MESSAGE],
        url=reverse("run", args=[project.slug, number]),
    )


def _build_job(project: Project, job: Job) -> Message:
    assert job.finished_at
    kind = JOB_KINDS.get(job.kind)
    title = kind.title if kind else job.kind.replace("-", " ").capitalize()
    # Of a cancelled job, the message names who cancelled it.
    failed = job.state == Job.State.FAILED
    return build_message(
        # A job that is run again ends again.
        f"job {job.pk} {job.finished_at.timestamp():.3f}",
        f"job.{job.state}",
        job.finished_at,
        project,
        job={"kind": job.kind, "number": job.result.get("number"), "title": title},
        state=job.state,
        message=job.message[:_MAX_MESSAGE] if failed else "",
        url=reverse("jobs", args=[project.slug]),
    )


TOPICS = {
    "resolutions": Topic(
        "Final labels: each change",
        ("resolution.changed",),
        Event.objects.filter(kind="resolution"),
        "created_at",
        _build_resolution,
    ),
    "runs": Topic(
        "Runs: finished, paused or cancelled",
        tuple(f"run.{state}" for state in _RUN_STATES),
        Event.objects.filter(kind__in=[f"run {state}" for state in _RUN_STATES]),
        "created_at",
        _build_run,
    ),
    # Not every job leaves an event. Leads see jobs of all kinds.
    "jobs": Topic(
        "Jobs: finished, failed or cancelled",
        ("job.finished", "job.failed", "job.cancelled"),
        Job.objects.exclude(finished_at=None),
        "finished_at",
        _build_job,
    ),
}
