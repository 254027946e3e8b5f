"""`/metrics`: who gets the numbers, and what they count."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.test import Client
from django.utils import timezone

from annotation.db import clock
from annotation.models import Job
from judging.jobs import heartbeat
from judging.models import Request
from operation import metrics
from tests.builders import make_project
from tests.judging.builders_judging import make_endpoint

TOKEN = "a-token-of-twenty-characters"


def numbers() -> dict[str, float]:
    lines = metrics.render_metrics().decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(number) for name, _, number in pairs}


def make_request(endpoint: object, digest: str, **values: object) -> None:
    Request.objects.create(endpoint=endpoint, digest=digest, place=1, **values)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("token", "given", "status"),
    [
        ("", "", 404),
        ("", "Bearer ", 404),
        (TOKEN, "", 401),
        (TOKEN, "Bearer something-else", 401),
        (TOKEN, "Bearer \u00fc", 401),
        (TOKEN, f"Bearer {TOKEN}", 200),
    ],
)
def test_only_who_has_the_token_gets_numbers(
    client: Client, settings: SimpleNamespace, token: str, given: str, status: int
) -> None:
    settings.METRICS_TOKEN = token
    answer = client.get("/metrics", headers={"authorization": given})
    assert answer.status_code == status
    assert (b"blindspot_" in answer.content) is (status == 200)


@pytest.mark.django_db
def test_requests_are_counted_by_the_pattern_of_their_route(client: Client) -> None:
    labels = 'method="GET",route="invitations/<str:invitation>/",status="404"'
    name = f"blindspot_http_requests_total{{{labels}}}"
    before = numbers().get(name, 0)
    client.get("/invitations/one/")
    client.get("/invitations/another/")
    assert numbers()[name] == before + 2
    assert "another" not in metrics.render_metrics().decode()


@pytest.mark.django_db
def test_nobody_makes_up_series(client: Client) -> None:
    client.generic("BREW", "/a/b/c/")
    assert 'method="other",route="none"' in metrics.render_metrics().decode()


@pytest.mark.django_db
def test_jobs_are_counted_by_kind_and_state_with_the_oldest_that_waits() -> None:
    project, hour = make_project(), timedelta(hours=1)
    Job.objects.create(project=project, kind="export", created_at=timezone.now() - hour)
    Job.objects.create(project=project, kind="export", state="failed")
    for_a_person = {"kind": "import", "result": {"step": "ready"}}
    Job.objects.create(project=project, created_at=timezone.now() - 2 * hour, **for_a_person)
    found = numbers()
    assert found['blindspot_jobs{kind="export",state="waiting"}'] == 1
    assert found['blindspot_jobs{kind="export",state="failed"}'] == 1
    assert 3600 <= found["blindspot_job_oldest_seconds"] < 3700


@pytest.mark.django_db
def test_requests_to_evaluators_are_counted_by_state_and_cause() -> None:
    endpoint, later = make_endpoint("https://evaluator.example/v1"), clock.now()
    make_request(endpoint, "a")
    make_request(endpoint, "b", next_try=later + timedelta(hours=1))
    make_request(endpoint, "c", state="failed", cause="timed_out")
    make_request(endpoint, "d", state="answered")
    found = numbers()
    of = 'blindspot_evaluator_requests{{endpoint="' + endpoint.name + '",state="{}"}}'
    assert found[of.format("waiting")] == 2
    assert found[of.format("due")] == 1
    assert found[of.format("failed")] == 1
    assert of.format("answered") not in found
    assert found[f'blindspot_evaluator_request_oldest_seconds{{endpoint="{endpoint.name}"}}'] >= 0


@pytest.mark.django_db
def test_workers_are_counted_with_what_they_did() -> None:
    life = heartbeat.WorkerStatus(slices=3, failures=1)
    heartbeat.record(life, clock.now())
    found = numbers()
    assert found["blindspot_workers"] == 1
    assert [n for name, n in found.items() if name.startswith("blindspot_worker_slices{")] == [3]
    assert [n for name, n in found.items() if name.startswith("blindspot_worker_failures{")] == [1]
    assert 0 <= found["blindspot_worker_progress_seconds"] < 60


@pytest.mark.django_db
def test_a_broker_that_is_away_takes_no_other_number_with_it(settings: SimpleNamespace) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    found = numbers()
    assert "blindspot_messages" not in found
    assert "blindspot_workers" in found


@pytest.mark.django_db
def test_messages_in_the_broker_are_counted(settings: SimpleNamespace, redis_url: str) -> None:
    settings.REDIS_URL = redis_url
    assert numbers()["blindspot_messages"] >= 0
