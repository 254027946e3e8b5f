"""Long lists of the API by pages, whose cost does not grow, and which lose and repeat nothing."""

from base64 import b64encode
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotation.models import Label
from tests.builders import Cast, cast, make_item, say, take
from tests.judging.builders_judging import api_client, make_items, make_judged

pytestmark = pytest.mark.django_db


@pytest.fixture
def people() -> Cast:
    people = cast()
    make_items(people.project, 5)
    return people


def read(client: Client, address: str) -> list[dict[str, Any]]:
    """Every page, following `next`."""
    pages = []
    while address:
        pages.append(client.get(address).json())
        address = pages[-1]["next"]
    return pages


def items(people: Cast, query: str = "") -> str:
    return f"/api/v1/projects/{people.project.slug}/items/{query}"


def test_pages_hold_every_row_once_and_count_them_once(people: Cast) -> None:
    pages = read(api_client(people.lead), items(people, "?limit=2"))
    keys = [row["key"] for page in pages for row in page["results"]]
    assert keys == [f"item-{number}" for number in range(1, 6)]
    assert [page["count"] for page in pages] == [5, None, None]
    assert pages[0]["previous"] is None
    back = api_client(people.lead).get(pages[1]["previous"]).json()
    assert back["results"] == pages[0]["results"]


def test_a_row_that_comes_meanwhile_moves_none(people: Cast) -> None:
    client = api_client(people.lead)
    for number in range(3):
        make_judged(people.project, [(people.project.items.get(key="item-1"), "detected")])
        assert number + 1 == people.project.runs.count()
    first = client.get(f"/api/v1/projects/{people.project.slug}/runs/?limit=2").json()
    make_judged(people.project, [(people.project.items.get(key="item-1"), "detected")])
    rest = client.get(first["next"]).json()
    numbers = [one["number"] for page in (first, rest) for one in page["results"]]
    assert numbers == [3, 2, 1]


def test_outcomes_and_labels_come_by_pages_too(people: Cast) -> None:
    rows = [(item, "detected") for item in people.project.items.all()]
    make_judged(people.project, rows)
    client, project = api_client(people.lead), f"/api/v1/projects/{people.project.slug}"
    pages = read(client, f"{project}/runs/1/outcomes/?limit=2")
    assert [one["item"] for page in pages for one in page["results"]] == [
        f"item-{number}" for number in range(1, 6)
    ]
    for key in "abc":
        make_item(people.project, key)
        say(people.annotator, take(people.annotator))
    pages = read(client, f"{project}/labels/?limit=1")
    assert [one["item"] for page in pages for one in page["results"]] == ["a", "b", "c"]
    assert len(pages) == Label.objects.count()


def test_no_later_page_counts_or_skips_rows(people: Cast) -> None:
    client = api_client(people.lead)
    second = client.get(items(people, "?limit=2")).json()["next"]
    with CaptureQueriesContext(connection) as asked:
        client.get(second)
    queries = [query["sql"] for query in asked.captured_queries]
    assert not [sql for sql in queries if "COUNT(" in sql or "OFFSET" in sql]


@pytest.mark.parametrize("place", ["x", "1e999", "9" * 5000, "\0", "2020-01-01", "٣"])
@pytest.mark.parametrize("path", ["items/", "runs/", "labels/", ""])
def test_a_cursor_that_is_none_is_refused_or_shows_nothing_wrong(
    people: Cast, place: str, path: str
) -> None:
    cursor = b64encode(f"p={place}".encode()).decode()
    start = f"/api/v1/projects/{people.project.slug}/{path}" if path else "/api/v1/projects/"
    answer = api_client(people.lead).get(start, {"cursor": cursor})
    assert answer.status_code in {200, 400, 404}
    assert answer.status_code != 200 or not answer.json()["results"] or path in {"items/", ""}


def test_an_offset_is_refused_in_words(people: Cast) -> None:
    answer = api_client(people.lead).get(items(people, "?offset=2"))
    assert (answer.status_code, "`next`" in answer.json()["detail"]) == (400, True)


def test_a_filter_that_is_misspelt_is_refused_with_those_that_there_are(people: Cast) -> None:
    client, project = api_client(people.lead), f"/api/v1/projects/{people.project.slug}"
    for way in ("items", "labels", "runs", "comments", "jobs", "exports", "members"):
        answer = client.get(f"{project}/{way}/?categry=x&limit=2")
        assert (answer.status_code, "no 'categry'. There are" in answer.json()["detail"]) == (
            400,
            True,
        )
    assert client.get(f"{project}/items/?category=spelling&only=key&limit=2").status_code == 200
    assert client.get(f"{project}/comments/?item=item-1&limit=2").status_code == 200


def test_rows_hold_the_fields_that_are_asked_for(people: Cast) -> None:
    client = api_client(people.lead)
    pages = read(client, items(people, "?limit=3&only=key,%20category,key"))
    rows = [row for page in pages for row in page["results"]]
    assert rows[0] == {"key": "item-1", "category": "number-errors"}
    assert {tuple(row) for row in rows} == {("key", "category")}
    assert len(client.get(items(people, "?only=")).json()["results"][0]) > 2


def test_a_field_that_rows_do_not_have_is_refused_with_those_they_have(people: Cast) -> None:
    answer = api_client(people.lead).get(items(people, "?only=key,secret"))
    assert answer.status_code == 400
    assert "no secret." in answer.json()["detail"]
    assert "category" in answer.json()["detail"]
