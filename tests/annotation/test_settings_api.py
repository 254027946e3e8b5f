"""Settings and guidelines through the API: as on their pages, and never over what another did."""

from typing import Any

import pytest
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from annotation.models import Event, Slot
from annotation.projects import guidelines
from annotation.settings import project_settings
from annotation.settings.views.project_settings import SettingsForm
from tests.builders import Cast, make_guidelines, make_item
from tests.judging.builders_judging import api_client

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(people: Cast) -> Client:
    return api_client(people.lead)


def address(people: Cast, way: str) -> str:
    return f"/api/v1/projects/{people.project.slug}/{way}/"


def patch(client: Client, people: Cast, tag: str = "*", **values: Any) -> Any:
    headers = {"If-Match": tag}
    where = address(people, "settings")
    return client.patch(where, values, content_type="application/json", headers=headers)


def put(client: Client, people: Cast, tag: str = "*", **values: Any) -> Any:
    headers = {"If-Match": tag}
    where = address(people, "guidelines")
    return client.put(where, values, content_type="application/json", headers=headers)


def test_all_settings_are_read_and_what_is_named_is_changed_on_record(
    people: Cast, client: Client
) -> None:
    item = make_item(people.project)
    assert set(client.get(address(people, "settings")).json()) == set(
        project_settings.SETTING_NAMES
    )
    said = patch(client, people, overlap=3, rules={"choice": "unanimous"}).json()
    assert (said["overlap"], said["rules"], said["verify"]) == (3, {"choice": "unanimous"}, False)
    assert Slot.objects.filter(item=item).count() == 3
    assert patch(client, people, verify=True).json()["rules"] == {"choice": "unanimous"}
    first = Event.objects.filter(kind="settings").order_by("pk")[0]
    assert (first.member, first.data["old"]) == (people.lead, {"overlap": 1, "rules": {}})


@pytest.mark.parametrize(
    "values, field, words",
    [
        ({"overlap": 0}, "overlap", "greater than or equal to 1"),
        ({"overlap": None}, "overlap", "may not be null"),
        ({"overlapp": 2}, "body", "There is no 'overlapp'. There are name"),
        (
            {"share_percent": 10, "share_overlap": 1},
            "share_overlap",
            "in the sample must get more",
        ),
        ({"practice_items": 3}, "practice_items", "Add more first"),
        ({"rules": {"nothing": "majority"}}, "rule.nothing", "has no such question"),
        ({"rules": {"choice": "median"}}, "rule.choice", "median is not one of"),
        ({"rules": {"choice": "\0"}}, "rules", "Null characters"),
    ],
)
def test_what_cannot_be_is_refused_at_its_name(
    people: Cast, client: Client, values: dict[str, Any], field: str, words: str
) -> None:
    answer = patch(client, people, **values)
    assert answer.status_code == 422
    assert words in str(answer.json()["errors"][field])
    assert not Event.objects.filter(kind="settings").exists()


def test_what_may_be_empty_on_the_page_may_be_empty_in_a_body(people: Cast, client: Client) -> None:
    assert patch(client, people, description="So.").json()["description"] == "So."
    assert patch(client, people, description="").json()["description"] == ""
    refused = patch(client, people, name="")
    assert (refused.status_code, refused.json()["errors"]) == (
        422,
        {"name": ["This field may not be blank."]},
    )


def test_a_preview_says_how_many_items_a_change_would_touch_and_changes_nothing(
    people: Cast, client: Client
) -> None:
    make_item(people.project)
    where = address(people, "settings/preview")
    said = client.post(where, {"overlap": 3}, content_type="application/json")
    assert said.json() == {"reach": ["1 item needs more labels."]}
    assert client.post(where, {}, content_type="application/json").json() == {"reach": []}
    wrong = client.post(where, {"overlap": 0}, content_type="application/json")
    assert (wrong.status_code, list(wrong.json()["errors"])) == (422, ["overlap"])
    people.project.refresh_from_db()
    assert people.project.overlap == 1


def test_nothing_is_changed_that_its_sender_has_not_seen(people: Cast, client: Client) -> None:
    tag = client.get(address(people, "settings"))["ETag"]
    changed = patch(client, people, tag, overlap=2)
    assert patch(client, people, tag, overlap=4).status_code == 412
    assert patch(client, people, changed["ETag"], overlap=4).json()["overlap"] == 4
    assert patch(client, people, hold_minutes=5).json()["overlap"] == 4


def test_what_changes_while_a_change_is_made_is_not_written_over(people: Cast) -> None:
    project_settings.apply_change(people.project, people.lead, {"overlap": 2})
    with pytest.raises(project_settings.Stale):
        project_settings.apply_change(people.project, people.lead, {"overlap": 3}, seen=0)
    make_guidelines(people.project)
    with pytest.raises(guidelines.Stale):
        guidelines.publish(people.project, "Other.", {}, "", people.lead, base=0)


def test_guidelines_are_published_in_versions(people: Cast, client: Client) -> None:
    none = client.get(address(people, "guidelines"))
    assert (none.json()["number"], none.json()["text"], none.json()["created_at"]) == (0, "", None)
    first = put(client, people, none["ETag"], text="Read both.", note="First.")
    assert (first.json()["number"], first.json()["author"]) == (1, "lead")
    assert put(client, people, none["ETag"], text="Mine.").status_code == 412
    again = put(client, people, first["ETag"], text="Read both.")
    assert (again.json()["number"], again.json()["note"]) == (1, "First.")
    put(client, people, again["ETag"], text="Read all.", variants={"a": "Of a."})
    listed = client.get(address(people, "guidelines/versions")).json()["results"]
    assert [(one["number"], one["note"]) for one in listed] == [(2, ""), (1, "First.")]
    old = api_client(people.annotator).get(address(people, "guidelines"), {"version": 1})
    assert old.json()["text"] == "Read both."
    for number in ("3", "x", "9" * 40):
        assert client.get(address(people, "guidelines"), {"version": number}).status_code == 404


def test_guidelines_without_a_word_are_refused(people: Cast, client: Client) -> None:
    assert "guidelines are empty" in put(client, people, text=" ").json()["detail"]


def test_who_has_read_the_guidelines_says_so(people: Cast) -> None:
    make_guidelines(people.project)
    client = api_client(people.annotator)
    where = address(people, "guidelines/read")
    assert client.post(where, {"number": 1}, content_type="application/json").status_code == 204
    people.annotator.refresh_from_db()
    assert people.annotator.guidelines_seen == 1


def test_the_document_has_the_words_of_the_page() -> None:
    document = SchemaGenerator().get_schema(public=True)
    described = document["components"]["schemas"]["PatchedSettingsRequest"]["properties"]
    help_text = SettingsForm.base_fields["hold_minutes"].help_text
    assert described["hold_minutes"]["description"] == help_text
    assert (described["hold_minutes"]["minimum"], described["hold_minutes"]["maximum"]) == (
        1,
        10080,
    )


@pytest.mark.parametrize("number", ["2", "0", "1x", "0000000001", "10000000001"])
def test_a_version_of_the_guidelines_that_there_is_not_is_not_found(
    people: Cast, client: Client, number: str
) -> None:
    make_guidelines(people.project)
    where = address(people, "guidelines")
    for there in ("1", "000000001"):
        assert client.get(where, {"version": there}).status_code == 200
    assert client.get(where, {"version": number}).status_code == 404
