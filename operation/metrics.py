"""Prometheus metrics. Requests are counted in each process; the other metrics are read from the
database.

If there are several server processes, they share their counts through files in
PROMETHEUS_MULTIPROC_DIR. The state of the service is read from the database on each scrape, so
every process reports the same.
"""

import os
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import redis
from django.conf import settings
from django.db.models import Count, Min, Q, Sum
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, multiprocess
from prometheus_client.core import GaugeMetricFamily

from annotation.db import clock
from annotation.importing.jobs import WAITS_FOR_PERSON
from annotation.models import Job
from judging.models import Outcome, Request, Run, Worker
from operation.broker import connect

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
SECONDS_BUCKETS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
PROCESS_REGISTRY = CollectorRegistry()
_requests = Counter(
    "blindspot_http_requests",
    "Requests answered, by route and status.",
    ["method", "route", "status"],
    registry=PROCESS_REGISTRY,
)
_seconds = Histogram(
    "blindspot_http_request_seconds",
    "How long requests took.",
    ["route"],
    registry=PROCESS_REGISTRY,
    buckets=SECONDS_BUCKETS,
)
# The name of Celery's default queue.
QUEUE_NAME = "celery"


def count_request(method: str, route: str, status: int, seconds: float) -> None:
    """Count a request. Routes are URL patterns, so requests for arbitrary URLs cannot create new
    series."""
    known = method if method in METHODS else "other"
    _requests.labels(known, route or "none", str(status)).inc()
    _seconds.labels(route or "none").observe(seconds)


def render_metrics() -> bytes:
    """Render all metrics in the text format of Prometheus."""
    registry = PROCESS_REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)
    state = CollectorRegistry()
    state.register(ServiceCollector())
    return generate_latest(registry) + generate_latest(state)


class ServiceCollector:
    """Metrics from the database, about one query per family."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield all metrics of the service, read from the database and the broker at each call."""
        yield from collect_jobs()
        yield from collect_requests()
        yield from collect_missing()
        yield from collect_runs()
        yield from collect_workers()
        yield from collect_messages()


def collect_jobs() -> Iterator[GaugeMetricFamily]:
    """Count jobs by kind and state, and measure how long the oldest due job has waited. A job that
    waits for a person is not due."""
    found = Job.objects.order_by().values_list("kind", "state").annotate(Count("pk"))
    yield _family("jobs", "Jobs, by kind and state.", ["kind", "state"], list(found))
    due = Job.objects.filter(~WAITS_FOR_PERSON, state=Job.State.WAITING)
    oldest = due.aggregate(oldest=Min("created_at"))["oldest"]
    text = "How long the oldest job has waited for a worker; 0 if no job waits."
    yield _family("job_oldest_seconds", text, [], [(_age(oldest),)])


def collect_requests() -> Iterator[GaugeMetricFamily]:
    """Count the requests to evaluators that are not answered. Indexes exist for these, while there
    may be many millions of answered requests."""
    waiting = Request.objects.filter(state=Request.State.WAITING).order_by()
    listed = list(
        waiting.values_list("endpoint__name").annotate(
            every=Count("pk"),
            due=Count("pk", filter=Q(next_try__lte=clock.now())),
            oldest=Min("created_at"),
        )
    )
    rows: list[tuple[Any, ...]] = [("waiting", name, n) for name, n, *_ in listed]
    rows += [("due", name, n) for name, _, n, _ in listed]
    for state in (Request.State.LEASED, Request.State.FAILED):
        found = Request.objects.filter(state=state).order_by().values_list("endpoint__name")
        rows += [(state, *row) for row in found.annotate(Count("pk"))]
    text = "Unanswered requests to evaluators; those that are due also count as waiting."
    yield _family("evaluator_requests", text, ["state", "endpoint"], rows)
    text = "How long the oldest request to an endpoint has waited."
    ages = [(name, _age(oldest)) for name, *_, oldest in listed]
    yield _family("evaluator_request_oldest_seconds", text, ["endpoint"], ages)


def collect_missing() -> Iterator[GaugeMetricFamily]:
    """Count missing outcomes by cause."""
    missing = Outcome.objects.filter(result=Outcome.Result.MISSING).order_by()
    causes = missing.values_list("cause").annotate(Count("pk"))
    yield _family("missing", "Missing outcomes, by cause.", ["cause"], list(causes))


def collect_runs() -> Iterator[GaugeMetricFamily]:
    """Count runs by state, and sum up the cost of all runs."""
    found = Run.objects.order_by().values_list("state").annotate(Count("pk"))
    yield _family("runs", "Runs, by state.", ["state"], list(found))
    spent = Run.objects.aggregate(spent=Sum("spent"))["spent"] or 0
    yield _family("spent", f"Cost of evaluators so far, in {settings.CURRENCY}.", [], [(spent,)])


def collect_workers() -> Iterator[GaugeMetricFamily]:
    """Count the live workers, and the slices and failures of each. Dead workers are left out."""
    now = clock.now()
    alive = list(Worker.objects.alive(now))
    yield _family("workers", "Workers that are alive.", [], [(len(alive),)])
    for name in ("slices", "failures"):
        rows = [(one.host, str(one.process), getattr(one, name)) for one in alive]
        text = f"Number of {name} of each live worker since its start."
        yield _family(f"worker_{name}", text, ["host", "process"], rows)
    last = max((one.progressed_at for one in alive if one.progressed_at), default=None)
    text = "Time since a worker last made progress; 0 if none has."
    yield _family("worker_progress_seconds", text, [], [(_age(last),)])


def collect_messages() -> Iterator[GaugeMetricFamily]:
    """Count the messages waiting in the broker; no value if the broker is not available."""
    if not settings.REDIS_URL:
        return
    try:
        with connect() as asked:
            waiting = asked.llen(QUEUE_NAME)
    except redis.RedisError:
        return
    yield _family("messages", "Messages waiting in the broker.", [], [(waiting,)])


def _family(
    name: str, text: str, labels: list[str], rows: list[tuple[Any, ...]]
) -> GaugeMetricFamily:
    """Return a metric family. Each row has the labels, then the value."""
    family = GaugeMetricFamily(f"blindspot_{name}", text, labels=labels)
    for *values, number in rows:
        family.add_metric([str(value) for value in values], float(number))
    return family


def _age(moment: datetime | None) -> float:
    return max(0.0, (clock.now() - moment).total_seconds()) if moment else 0.0
