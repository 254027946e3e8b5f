"""How often the API may be called, and how what one has already is not sent again."""

from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from annotation.models import Membership
from config import limits
from judging.models import Budget
from tests.annotation.test_queue_threads import at_once
from tests.builders import Cast, cast
from tests.judging.builders_judging import api_client

pytestmark = pytest.mark.django_db


@pytest.fixture
def people() -> Iterator[Cast]:
    cache.clear()
    yield cast()
    cache.clear()


def budget(people: Cast) -> str:
    return f"/api/v1/projects/{people.project.slug}/budget/"


def test_who_calls_too_often_is_told_how_long_to_wait(
    people: Cast, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits.time, "time", lambda: 600_015.0)
    settings.API_PER_MINUTE = 2
    client, again = (api_client(people.lead) for _ in range(2))
    assert [one.get("/api/v1/projects/").status_code for one in (client, again)] == [200, 200]
    refused = client.get("/api/v1/projects/")
    assert (refused.status_code, refused["Retry-After"]) == (429, "45")
    assert refused["Content-Type"] == "application/problem+json"
    assert api_client(people.annotator).get("/api/v1/projects/").status_code == 200
    monkeypatch.setattr(limits.time, "time", lambda: 600_060.0)
    assert client.get("/api/v1/projects/").status_code == 200


def test_what_one_has_already_is_not_sent_again(people: Cast) -> None:
    client = api_client(people.lead)
    first = client.get(budget(people))
    assert "private" in first["Cache-Control"]
    again = client.get(budget(people), headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    set_cap(client, people, "5")
    changed = client.get(budget(people), headers={"If-None-Match": first["ETag"]})
    assert (changed.status_code, changed["ETag"] == first["ETag"]) == (200, False)


def set_cap(client: Client, people: Cast, cap: str, **headers: str) -> int:
    body = {"cap": cap}
    answer = client.put(budget(people), body, content_type="application/json", headers=headers)
    return int(answer.status_code)


@pytest.mark.django_db(transaction=True)
def test_of_two_who_set_a_budget_at_once_after_the_same_look_one_is_refused(people: Cast) -> None:
    tag = api_client(people.lead).get(budget(people))["ETag"]

    def set_own(cap: str) -> int:
        return set_cap(api_client(people.lead), people, cap, **{"If-Match": tag})

    assert sorted(at_once(partial(set_own, "7"), partial(set_own, "8"))) == [200, 412]


def test_a_budget_that_somebody_else_changed_meanwhile_is_not_set(people: Cast) -> None:
    client = api_client(people.lead)
    seen = client.get(budget(people))["ETag"]
    assert set_cap(client, people, "7") == 200
    assert set_cap(client, people, "9", **{"If-Match": seen}) == 412
    found = client.get(budget(people))
    assert Decimal(found.json()["project"]["cap"]) == 7
    assert set_cap(client, people, "9", **{"If-Match": found["ETag"]}) == 200
    assert set_cap(client, people, "8", **{"If-Match": "*"}) == 200


def test_a_page_has_no_tag(people: Cast) -> None:
    client = Client()
    assert isinstance(people.lead, Membership)
    assert people.lead.account
    client.force_login(people.lead.account)
    assert "ETag" not in client.get("/")


def test_what_is_spent_meanwhile_is_no_change_of_a_budget(people: Cast) -> None:
    client = api_client(people.lead)
    assert set_cap(client, people, "7") == 200
    seen = client.get(budget(people))
    Budget.objects.filter(project=people.project).update(spent=Decimal(2))
    assert client.get(budget(people))["ETag"] != seen["ETag"]
    assert set_cap(client, people, "9", **{"If-Match": seen["ETag"]}) == 200
