"""A request that comes twice with the same key is done once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, connections
from django.test import Client
from django.utils import timezone

from annotation.api import idempotency
from annotation.errors import InProgress
from annotation.models import Comment, Membership, Repeatable
from judging.evaluators import endpoints
from judging.models import StrategyVersion
from tests.builders import Cast, cast
from tests.judging.builders_judging import api_client, make_items

pytestmark = pytest.mark.django_db


@pytest.fixture
def people() -> Cast:
    people = cast()
    make_items(people.project, 1)
    return people


def start(client: Client, people: Cast, key: str = "k", **said: Any) -> Any:
    body = {"strategy": "rouge-l", "endpoint": endpoints.BASELINE, **said}
    address = f"/api/v1/projects/{people.project.slug}/runs/"
    headers = {"Idempotency-Key": key}
    return client.post(address, body, content_type="application/json", headers=headers)


def test_a_run_that_is_asked_for_twice_is_started_once(people: Cast) -> None:
    client = api_client(people.lead)
    first, again = start(client, people), start(client, people)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert (first.get("Idempotency-Replayed"), again["Idempotency-Replayed"]) == (None, "true")
    assert start(client, people, key="another").json()["run"]["number"] == 2
    assert people.project.runs.count() == 2


def test_a_key_is_for_one_request_of_one_person(people: Cast) -> None:
    start(api_client(people.lead), people)
    other = start(api_client(people.lead), people, limit=1)
    assert (other.status_code, "Idempotency-Key" in other.json()["detail"]) == (422, True)
    assert start(api_client(people.researcher), people).json()["run"]["number"] == 2


def test_a_server_killed_between_the_deed_and_its_note_leaves_neither(
    people: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = api_client(people.lead)

    def killed(*_: object) -> None:
        assert people.project.runs.count() == 1
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(idempotency, "store_answer", killed)
        with pytest.raises(KeyboardInterrupt):
            start(client, people)
    assert people.project.runs.count() == 0
    assert Repeatable.objects.get().status is None
    # It is done at once, without waiting for anything.
    assert start(client, people).json()["run"]["number"] == 1
    assert start(client, people)["Idempotency-Replayed"] == "true"
    assert people.project.runs.count() == 1


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_what_is_being_done_is_answered_with_when_to_ask_again(people: Cast) -> None:
    account = people.lead.account
    assert account
    begun, is_new = idempotency.begin_request(account, "0" * 64, "0" * 64, now=timezone.now())
    assert is_new

    def repeat() -> str:
        with pytest.raises(InProgress) as told, idempotency.execute_once(begun):
            pass
        connections.close_all()
        return f"{told.value.wait} {told.value}"

    with idempotency.execute_once(begun), ThreadPoolExecutor(1) as pool:
        said = pool.submit(repeat).result()
    assert said.startswith("1 The request with this key is being executed. Send it again in 1 s")
    with idempotency.execute_once(begun) as held:
        assert held.status is None


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_what_is_done_is_told_to_all_who_ask_at_once(people: Cast) -> None:
    client = api_client(people.lead)
    start(client, people)

    def repeat() -> int:
        status = start(client, people).status_code
        connections.close_all()
        return int(status)

    with idempotency.execute_once(Repeatable.objects.get()), ThreadPoolExecutor(1) as pool:
        assert pool.submit(repeat).result() == 201


def test_a_file_that_is_being_received_is_not_received_twice(people: Cast) -> None:
    """On PostgreSQL, a transaction round it tells whether it still is."""
    if connection.vendor == "postgresql":
        return
    client = api_client(people.lead)
    address = f"/api/v1/projects/{people.project.slug}/imports/"
    headers = {"Idempotency-Key": "k"}

    def send() -> Any:
        file = SimpleUploadedFile("items.csv", b"key,gold\na,b\n")
        return client.post(address, {"file": file}, headers=headers)

    assert send().status_code == 201
    Repeatable.objects.update(status=None)
    refused = send()
    assert (refused.status_code, refused["Retry-After"]) == (409, "5")
    assert "If the server was stopped meanwhile, that works in " in refused.json()["detail"]
    Repeatable.objects.update(created_at=timezone.now() - idempotency.TAKEOVER_AFTER)
    assert send().json()["number"] == 2


def test_what_was_refused_may_be_tried_again_with_its_key(people: Cast) -> None:
    client = api_client(people.lead)
    assert start(client, people, strategy="none").status_code == 422
    assert start(client, people).status_code == 201


def test_who_lost_the_right_is_told_nothing_again(people: Cast) -> None:
    client = api_client(people.researcher)
    assert start(client, people).status_code == 201
    Membership.objects.filter(pk=people.researcher.pk).update(role="annotator")
    assert start(client, people).status_code == 403


def test_a_day_later_the_key_is_free(people: Cast) -> None:
    client = api_client(people.lead)
    start(client, people)
    Repeatable.objects.update(
        created_at=timezone.now() - idempotency.RETENTION - timedelta(minutes=1)
    )
    assert start(client, people).json()["run"]["number"] == 2
    assert Repeatable.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_is_done(people: Cast) -> None:
    clients = [api_client(people.lead) for _ in range(6)]
    body = {"strategy": "vanilla", "slug": "ours"}
    address = f"/api/v1/projects/{people.project.slug}/strategies/"

    def copy(client: Client) -> int:
        headers = {"Idempotency-Key": "k"}
        answer = client.post(address, body, content_type="application/json", headers=headers)
        connections.close_all()
        return int(answer.status_code)

    with ThreadPoolExecutor(len(clients)) as pool:
        statuses = list(pool.map(copy, clients))
    assert set(statuses) <= {201, 409}
    assert 201 in statuses
    assert StrategyVersion.objects.filter(slug="ours").count() == 1
    assert copy(clients[0]) == 201


def sent_twice(client: Client, people: Cast, way: str, body: Any, **kind: Any) -> list[Any]:
    """The answers to the same request, sent twice with one key."""
    address = f"/api/v1/projects/{people.project.slug}/{way}"
    kind = {} if kind else {"content_type": "application/json"}
    headers = {"Idempotency-Key": "k"}
    answers = [client.post(address, body(), headers=headers, **kind) for _ in range(2)]
    assert answers[0].status_code in {200, 201, 202}, answers[0].content
    assert answers[1]["Idempotency-Replayed"] == "true"
    assert answers[0].json() == answers[1].json()
    return answers


def test_comments_snapshots_and_pilots_are_made_once(people: Cast) -> None:
    client = api_client(people.lead)
    said = {"item": "item-1", "text": "Look."}
    sent_twice(client, people, "comments/", lambda: said)
    assert Comment.objects.count() == 1
    headers = {"Idempotency-Key": "another"}
    address = f"/api/v1/projects/{people.project.slug}/snapshots/"
    for _ in range(2):
        body = {"name": "v1"}
        made = client.post(address, body, content_type="application/json", headers=headers)
        assert made.status_code == 202  # without the key: the name is taken
    Repeatable.objects.all().delete()
    wish = {"strategy": "rouge-l", "endpoint": endpoints.BASELINE}
    sent_twice(client, people, "runs/pilot/", lambda: wish)


def test_a_file_is_taken_once_and_another_one_is_another_request(people: Cast) -> None:
    client = api_client(people.lead)

    def form(rows: bytes = b"key,gold\na,b\n", name: str = "items.csv") -> dict[str, Any]:
        return {"file": SimpleUploadedFile(name, rows)}

    first, again = sent_twice(client, people, "imports/", form, format="multipart")
    assert (first.json()["number"], again.json()["found"]) == (1, ["key", "gold"])
    address = f"/api/v1/projects/{people.project.slug}/imports/"
    headers = {"Idempotency-Key": "k"}
    for other in (form(b"key,gold\na,c\n"), form(name="other.csv"), form() | {"layout": "fbi"}):
        assert client.post(address, other, headers=headers).status_code == 422
    assert people.project.jobs.count() == 1
