"""All that takes long, in the API: one list, cancelled and done again."""

from typing import Any

import pytest

from judging.exporting import jobs
from tests.builders import Cast, cast
from tests.judging.builders_judging import api_client, make_items, make_judged

pytestmark = pytest.mark.django_db


@pytest.fixture
def people() -> Cast:
    people = cast()
    make_judged(people.project, [(make_items(people.project, 1)[0], "detected")])
    for table in ("items", "calls"):
        jobs.enqueue(people.project, people.lead, jobs.ExportRequest(table, "csv"))
    return people


def address(people: Cast, end: str = "") -> str:
    return f"/api/v1/projects/{people.project.slug}/jobs/{end}"


def listed(people: Cast, name: str, query: str = "") -> list[Any]:
    rows = api_client(getattr(people, name)).get(address(people, query)).json()["results"]
    return [(row["kind"], row["number"], row["state"]) for row in rows]


def test_jobs_and_runs_come_in_one_list_for_who_may_see_them(people: Cast) -> None:
    both = [("export", 2, "waiting"), ("export", 1, "waiting"), ("run", 1, "finished")]
    assert listed(people, "lead") == both
    assert listed(people, "researcher") == [both[0], both[2]]


@pytest.mark.parametrize("person", ["lead", "researcher"])
def test_pages_of_jobs_hold_each_once_though_more_come_meanwhile(people: Cast, person: str) -> None:
    client = api_client(getattr(people, person))
    every, pages = listed(people, person), []
    following = address(people, "?limit=1")
    while following:
        pages.append(client.get(following).json())
        following = pages[-1]["next"]
        if len(pages) == 1:
            jobs.enqueue(people.project, people.lead, jobs.ExportRequest("calls", "csv"))
    assert [
        (one["kind"], one["number"], one["state"]) for p in pages for one in p["results"]
    ] == every
    assert [page["count"] for page in pages] == [len(every), *[None] * (len(every) - 1)]
    back = client.get(pages[-1]["previous"]).json()
    assert back["results"] == pages[-2]["results"]


def test_a_job_is_cancelled_and_done_again(people: Cast) -> None:
    client = api_client(people.lead)
    assert client.post(address(people, "export/1/again/")).status_code == 409
    assert client.post(address(people, "export/1/cancel/")).status_code == 204
    assert ("export", 1, "cancelled") in listed(people, "lead")
    assert client.post(address(people, "export/1/cancel/")).status_code == 409
    assert client.post(address(people, "export/1/again/")).status_code == 204
    assert ("export", 1, "waiting") in listed(people, "lead")


def test_nobody_steers_what_they_do_not_see(people: Cast) -> None:
    client = api_client(people.researcher)
    assert client.post(address(people, "export/1/cancel/")).status_code == 404
    assert client.post(address(people, "run/1/cancel/")).status_code == 404
    assert client.post(address(people, "export/2/cancel/")).status_code == 204
