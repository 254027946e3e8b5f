"""`/readyz`: what has to be there, named one by one."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from redis import Redis

from annotation.db import clock
from judging.jobs import heartbeat
from judging.models import Worker
from operation import readiness
from operation.findings import Grade


def named(client: Client, query: str = "") -> dict[str, tuple[str, str]]:
    checks = client.get(f"/readyz{query}").json()["checks"]
    return {one["name"]: (one["grade"], one["says"]) for one in checks}


def live(**values: object) -> None:
    life = heartbeat.WorkerStatus()
    heartbeat.record(life, clock.now())
    Worker.objects.filter(name=life.name).update(**values)


@pytest.mark.django_db(transaction=True)
def test_a_service_with_a_worker_that_gets_on_is_ready(client: Client) -> None:
    live(progressed_at=clock.now())
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["ready"]) == (200, True)
    assert "no-cache" in answer["Cache-Control"]
    assert {grade for grade, _ in named(client).values()} == {"fine"}


@pytest.mark.django_db(transaction=True)
def test_without_a_worker_it_is_not_ready_and_says_why(client: Client) -> None:
    assert client.get("/readyz").status_code == 503
    assert named(client)["worker"] == ("wrong", "No worker is running.")


@pytest.mark.django_db
def test_a_worker_that_lives_but_gets_nowhere_is_wrong() -> None:
    now = clock.now()
    live(progressed_at=now - timedelta(minutes=9), started_at=now - timedelta(hours=1))
    found = readiness.check_workers()
    assert found.grade == Grade.WRONG
    assert found.says.startswith("1 worker is alive, but without progress for 9 minutes")


@pytest.mark.django_db
def test_a_worker_is_given_time_after_its_start() -> None:
    live(progressed_at=None, started_at=clock.now())
    assert readiness.check_workers().grade == Grade.FINE


@pytest.mark.django_db
def test_a_worker_whose_slices_mostly_fail_is_doubtful() -> None:
    live(progressed_at=clock.now(), slices=2, failures=3)
    assert readiness.check_workers().grade == Grade.DOUBTFUL


@pytest.mark.django_db
def test_a_worker_elsewhere_is_none_here() -> None:
    live(host="elsewhere", progressed_at=clock.now())
    assert readiness.check_workers().grade == Grade.FINE
    assert readiness.check_workers_on("here").says == "No worker is running."


@pytest.mark.django_db
def test_a_migration_that_is_not_applied_is_named() -> None:
    assert readiness.check_migrations().grade == Grade.FINE
    MigrationRecorder(connection).record_unapplied("judging", "0001_initial_0_2_0")
    found = readiness.check_migrations()
    assert found.grade == Grade.WRONG
    assert "judging.0001_initial_0_2_0" in found.says


@pytest.mark.django_db
def test_tables_newer_than_the_program_do_not_end_its_work() -> None:
    MigrationRecorder(connection).record_applied("judging", "9999_of_tomorrow")
    assert readiness.check_migrations().grade == Grade.FINE


def test_a_redis_that_is_away_is_named(settings: object) -> None:
    settings.REDIS_URL = "redis://:hunter2@127.0.0.1:1/0"
    found = readiness.check_broker()
    assert found.grade == Grade.WRONG
    assert "hunter2" not in found.says + found.remedy


def test_a_redis_that_answers_is_fine(settings: object, redis_url: str) -> None:
    settings.REDIS_URL = redis_url
    assert readiness.check_broker().says == "Redis answers."


def test_a_redis_that_refuses_to_store_is_named(settings: object, redis_url: str) -> None:
    name, word = f"reader-{uuid4().hex}", uuid4().hex
    with Redis.from_url(redis_url) as admin:
        admin.acl_setuser(
            name, enabled=True, passwords=[f"+{word}"], commands=["-@all", "+@read", "+select"]
        )
        try:
            settings.REDIS_URL = redis_url.replace("://", f"://{name}:{word}@")
            found = readiness.check_broker()
        finally:
            admin.acl_deluser(name)
    assert found.grade == Grade.WRONG
    assert "refuses to store" in found.says
    assert "'set'" in found.remedy


@pytest.mark.django_db(transaction=True)
def test_parts_can_be_asked_for_alone(client: Client) -> None:
    answer = client.get("/readyz?only=database&only=migrations")
    assert answer.status_code == 200
    assert [*named(client, "?only=broker")] == ["broker"]
    assert client.get("/readyz?only=coffee").status_code == 400


def test_a_process_is_alive_whatever_else_is_away(client: Client) -> None:
    # No database may be asked here.
    answer = client.get("/healthz")
    assert (answer.status_code, answer.content) == (200, b"ok\n")
    assert "no-cache" in answer["Cache-Control"]
