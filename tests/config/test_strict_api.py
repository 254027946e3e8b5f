"""What the API refuses instead of guessing, and how its document says so."""

import base64
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.urls import reverse
from drf_spectacular.generators import SchemaGenerator

from judging.results import tables
from tests.builders import Cast, browser_of, make_item

pytestmark = pytest.mark.django_db


@pytest.fixture
def items(people: Cast) -> Any:
    """The items of a project as a lead asks for them."""
    for key in "abc":
        make_item(people.project, key)
    client = Client()
    assert people.lead.account
    client.force_login(people.lead.account)
    return lambda **query: client.get(reverse("api-items", args=[people.project.slug]), query)


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found: dict[str, Any] = SchemaGenerator().get_schema(public=True)
    return found


@pytest.mark.parametrize("limit", ["0", "-5", "null", "", "1.5", "1001", "٣", "9" * 30])
def test_a_page_has_as_many_rows_as_were_asked_for_or_none(items: Any, limit: str) -> None:
    assert len(items(limit="2").json()["results"]) == 2
    refused = items(limit=limit)
    assert refused.status_code == 400
    assert "`limit` must be a whole number from 1 to 1,000" in refused.json()["detail"]


@pytest.mark.parametrize("cursor", ["", "null", "!", "cD0=", "cj0xJm89eA=="])
def test_a_cursor_that_no_page_gave_is_refused(items: Any, cursor: str) -> None:
    refused = items(cursor=cursor)
    assert refused.status_code == 400
    assert "This cursor is not valid" in refused.json()["detail"]


def test_a_cursor_of_a_time_that_no_database_knows_is_refused(people: Cast) -> None:
    client = browser_of(people.lead.account)
    for time in ("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"):
        cursor = base64.b64encode(urlencode({"p": time}).encode()).decode()
        address = reverse("api-jobs", args=[people.project.slug])
        assert client.get(address, {"cursor": cursor}).status_code == 400


def test_bodies_have_no_other_names_and_no_empty_texts_that_are_refused(
    document: dict[str, Any],
) -> None:
    schemas = document["components"]["schemas"]
    bodies = [
        operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].split("/")[-1]
        for methods in document["paths"].values()
        for operation in methods.values()
        if "application/json" in operation.get("requestBody", {}).get("content", {})
    ]
    assert len(bodies) > 40
    assert [one for one in bodies if schemas[one]["additionalProperties"] is not False] == []
    assert schemas["SnapshotBodyRequest"]["properties"]["name"]["minLength"] == 1
    assert "minLength" not in schemas["SnapshotBodyRequest"]["properties"]["note"]


def test_names_that_are_known_are_listed(document: dict[str, Any]) -> None:
    def parameter(path: str, name: str) -> dict[str, Any]:
        [found] = [
            one
            for one in document["paths"][f"/api/v1/projects/{{slug}}/{path}"]["get"]["parameters"]
            if one["name"] == name
        ]
        return dict(found["schema"])

    assert parameter("results/{table}/", "table")["enum"] == sorted(tables.RESULT_TABLES)
    only = parameter("items/", "only")
    assert (only["type"], "key" in only["items"]["enum"]) == ("array", True)
    assert (parameter("items/", "limit")["minimum"], parameter("items/", "limit")["maximum"]) == (
        1,
        1000,
    )
