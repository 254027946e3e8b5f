import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.core.management import call_command
from django.urls import reverse
from drf_spectacular import generators
from drf_spectacular.settings import spectacular_settings
from rest_framework.test import APIClient

from annotation.labelling import queue
from annotation.models import ApiToken, Item, Label, Membership, Project, Slot
from tests.builders import (
    TEXTS,
    Cast,
    make_item,
    make_member,
    make_project,
    make_resolution,
    make_revision,
    say,
    take,
)

pytestmark = pytest.mark.django_db


class Caller:
    """A program with a person's key."""

    def __init__(self, member: Membership) -> None:
        assert member.account
        self.slug = member.project.slug
        self.client = APIClient()
        _, key = ApiToken.issue(member.account, "test")
        self.client.credentials(HTTP_AUTHORIZATION=f"Bearer {key}")

    def get(self, name: str, *args: str, query: str = "") -> Any:
        return self.client.get(reverse(f"api-{name}", args=[self.slug, *args]) + query)

    def post(self, name: str, body: Any = None) -> Any:
        return self.client.post(reverse(f"api-{name}", args=[self.slug]), body, format="json")

    def submit(self, name: str = "labels", **changes: Any) -> Any:
        offer = self.post("next").json()
        body = {
            "key": offer["key"],
            "item": offer["item"]["key"],
            "revision": offer["revision"],
        }
        answers = {"answers": {"choice": "valid"}} if name == "labels" else {}
        return self.post(name, body | answers | changes)


def test_the_schema_says_all_of_it_without_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    """Some seconds: the whole schema is written and validated."""
    call_command("spectacular", validate=True, fail_on_warn=True)
    document = capsys.readouterr().out
    assert "openapi: 3.1.0" in document
    assert "nullable" not in document, "OpenAPI 3.1 has no such keyword: type: [string, 'null']"


def test_requests_that_come_together_do_not_fail_the_first_schema(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running, most = list[int](), list[int]()

    def generate(*_: object, **__: object) -> dict[str, Any]:
        running.append(1)
        most.append(len(running))
        time.sleep(0.02)
        running.pop()
        return {}

    monkeypatch.setattr(generators.SchemaGenerator, "get_schema", generate)
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(lambda _: spectacular_settings.DEFAULT_GENERATOR_CLASS().get_schema(), "1234")
        )
    assert most == [1] * 4


def test_an_item_comes_with_what_a_person_would_see_and_nothing_that_tips_them_off(
    people: Cast,
) -> None:
    make_resolution(make_item(people.project, "a", texts={"claim": "six"}))
    offer = Caller(people.annotator).post("next").json()
    assert set(offer) == {"item", "revision", "key", "phase"}
    assert offer["phase"] == "label"
    assert set(offer["item"]) == {"key", "category", "texts", "diff", "order"}
    assert offer["item"]["texts"]["claim"] == "six"
    assert offer["item"]["category"]["name"] == "Number errors"
    assert "A spider has " in offer["item"]["diff"]["segments"]


def test_what_is_to_be_judged_blind_comes_without_claim_category_and_diff(people: Cast) -> None:
    Project.objects.update(blind_first=True)
    make_item(people.project, "a", texts={"claim": "six", "rationale": "legs are counted"})
    offer = Caller(people.annotator).post("next").json()
    assert offer["phase"] == "blind"
    assert offer["item"]["texts"].keys().isdisjoint({"claim", "rationale", "gold"})
    assert offer["item"]["texts"]["perturbed"] == TEXTS["perturbed"]
    assert (offer["item"]["category"], offer["item"]["diff"]) == (None, None)


def test_an_item_whose_category_left_the_taxonomy_can_still_be_judged(people: Cast) -> None:
    make_item(people.project, category="retired")
    caller = Caller(people.annotator)
    assert caller.post("next").json()["item"]["category"] is None
    assert caller.submit().status_code == 201


def test_a_label_is_stored_and_brings_the_next_item(people: Cast) -> None:
    make_item(people.project, "a"), make_item(people.project, "b")
    caller = Caller(people.annotator)
    answer = caller.submit(comment="six legs", seconds=1.5)
    assert answer.status_code == 201
    assert (answer.json()["item"], answer.json()["counted"]) == ("a", True)
    assert "stage" not in answer.json()
    assert Label.objects.get().comment == "six legs"
    assert caller.post("next").json()["item"]["key"] == "b"


def test_when_nothing_is_free_it_says_what_one_waits_for(people: Cast) -> None:
    make_item(people.project)
    take(people.lead)
    waiting = Caller(people.annotator).post("next").json()["waiting"]
    assert waiting["held_by_others"] == 1
    assert waiting["next_free"]


@pytest.mark.parametrize(
    "changes",
    [
        {"key": "made up"},
        {"item": "other"},
        {"revision": 0},
        {"revision": 2},
        {"revision": 10**30},
        {"answers": {}},
        {"answers": {"choice": "perhaps"}},
        {"answers": {"choice": ["valid"]}},
        {"answers": "valid"},
        {"seconds": -1},
        {"seconds": "nan"},
        {"seconds": "inf"},
        {"comment": "a\0b"},
        {"comment": "x" * 10_001},
        {"key": None},
    ],
)
def test_a_submission_that_cannot_be_taken_is_422_and_says_why(
    people: Cast, changes: dict[str, Any]
) -> None:
    make_item(people.project, "a"), make_item(people.project, "other")
    answer = Caller(people.annotator).submit(**changes)
    assert answer.status_code == 422
    assert answer.json()["detail"]
    assert not Label.objects.exists()


@pytest.mark.parametrize("value", ["valid", None])
def test_a_name_that_no_message_could_give_back_is_422(people: Cast, value: str | None) -> None:
    make_item(people.project)
    caller = Caller(people.annotator)
    offer = caller.post("next").json()
    body = {"key": offer["key"], "item": offer["item"]["key"], "revision": 1}
    sent = json.dumps(body | {"answers": {"\ud800": value}})
    url = reverse("api-labels", args=[people.project.slug])
    answer = caller.client.post(url, sent, content_type="application/json")
    assert answer.status_code == 422
    assert answer.json()["errors"]["answers"]


def test_texts_that_changed_meanwhile_are_409(people: Cast) -> None:
    item = make_item(people.project)
    caller = Caller(people.annotator)
    offer = caller.post("next").json()
    make_revision(item, item.revision().texts | {"perturbed": "Seven."})
    body = {"key": offer["key"], "item": item.key, "revision": 1}
    assert caller.post("labels", body | {"answers": {"choice": "valid"}}).status_code == 409
    assert caller.post("corrections", body | {"texts": {"perturbed": "x"}}).status_code == 409


def test_a_correction_of_a_revision_that_there_is_not_is_refused(people: Cast) -> None:
    make_item(people.project)
    changes = {"revision": 7, "texts": {"perturbed": "Seven."}}
    assert Caller(people.annotator).submit("corrections", **changes).status_code == 422


def test_a_correction_brings_the_new_revision_with_a_key_of_its_own(people: Cast) -> None:
    make_item(people.project)
    caller = Caller(people.annotator)
    answer = caller.submit("corrections", texts={"perturbed": " Seven.\r\n"}, note="shorter")
    assert answer.status_code == 201
    assert answer.json()["revision"] == 2
    assert answer.json()["item"]["texts"]["perturbed"] == " Seven.\r\n"
    assert caller.submit("corrections", texts={"gold": "x"}).status_code == 422
    assert caller.submit().status_code == 201


def test_a_correction_where_no_text_can_be_corrected_is_told_so() -> None:
    project = make_project("answers", task_type="error-detection")
    make_item(project, texts={"input": "2 + 2?", "response": "5"})
    refused = Caller(make_member(project)).submit("corrections", texts={"response": "4"})
    assert (refused.status_code, "no text that can be corrected" in refused.content.decode()) == (
        422,
        True,
    )


def test_undo_brings_the_last_item_back_until_there_is_none(people: Cast) -> None:
    make_item(people.project, "a"), make_item(people.project, "b")
    caller = Caller(people.annotator)
    caller.submit()
    assert caller.post("undo").json()["item"]["key"] == "a"
    answer = caller.post("undo")
    assert answer.status_code == 409
    assert answer.json()["detail"]


def test_an_undo_that_is_sent_again_undoes_no_other_label(people: Cast) -> None:
    make_item(people.project, "a"), make_item(people.project, "b")
    caller = Caller(people.annotator)
    first, last = (caller.submit().json()["submission"] for _ in range(2))
    for named in (first, "mistyped"):
        assert caller.post("undo", {"submission": named}).status_code == 422
    for _ in range(2):
        assert caller.post("undo", {"submission": last}).json()["item"]["key"] == "b"
    assert [label.item.key for label in Label.objects.current()] == ["a"]


@pytest.mark.parametrize("body", ["{", "NaN", "[" * 100_000, "9" * 5000])
def test_a_body_that_is_no_json_is_400(people: Cast, body: str) -> None:
    client = Caller(people.annotator).client
    url = reverse("api-labels", args=[people.project.slug])
    assert client.post(url, body, content_type="application/json").status_code == 400


@pytest.mark.parametrize("accept", ["text/html", "application/xml;q=0.9", "*/*", "nonsense"])
def test_json_is_the_answer_whatever_is_asked_for(people: Cast, accept: str) -> None:
    client = Caller(people.annotator).client
    answer = client.get(reverse("api-projects"), headers={"accept": accept})
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    assert answer.json()["results"]


@pytest.mark.parametrize(
    "form", ["application/vnd.oai.openapi+json", "application/vnd.oai.openapi"]
)
def test_what_has_several_forms_is_answered_in_the_one_asked_for(people: Cast, form: str) -> None:
    client = Caller(people.annotator).client
    answer = client.get(reverse("api-schema"), headers={"accept": form})
    assert answer["Content-Type"].split(";")[0] == form


def test_projects_say_what_is_asked_and_how_far_it_is(people: Cast) -> None:
    make_resolution(make_item(people.project))
    caller = Caller(people.annotator)
    [listed] = caller.client.get(reverse("api-projects")).json()["results"]
    assert (listed["slug"], listed["role"]) == (people.project.slug, "annotator")
    detail = caller.get("project").json()
    far = {"mine": 0, "resolved": 1, "total": 1, "left": 0, "awaiting": 0}
    labels = {"todo": 1, "labels": 0, "labels_wanted": 0}
    assert detail["progress"] == far | labels
    assert detail["task"]["fields"][0]["choices"][0]["value"] == "valid"


def test_items_come_without_texts_and_one_with_all_its_revisions(people: Cast) -> None:
    item = make_item(people.project, "a b/c")
    make_revision(item, item.revision().texts | {"perturbed": "Seven."})
    make_item(people.project, "other")
    caller = Caller(people.researcher)
    [listed] = caller.get("items", query="?search=b/").json()["results"]
    assert (listed["key"], listed["resolution"]) == ("a b/c", None)
    assert "spider" not in str(listed)
    found = caller.get("item", "a b/c").json()
    assert [revision["number"] for revision in found["revisions"]] == [1, 2]
    assert found["diff"]["segments"]
    assert found["fields"] == {}


@pytest.mark.parametrize(
    "query", ["?category=none", "?flag=x", "?search=%00", "?resolution=%00", "?limit=-1"]
)
def test_a_filter_that_makes_no_sense_is_never_a_fault_of_the_server(
    people: Cast, query: str
) -> None:
    assert Caller(people.researcher).get("items", query=query).status_code in {200, 400}


def test_a_resolution_that_there_is_not_is_refused_as_an_unknown_category_is(
    people: Cast,
) -> None:
    make_resolution(make_item(people.project, "a"), value="unclear")
    caller = Caller(people.researcher)
    for name in ("category", "resolution"):
        refused = caller.get("items", query=f"?{name}=bogus")
        assert refused.status_code == 400
        assert "bogus is not one of the available choices" in refused.text
    assert "none, valid" in refused.text
    for value, count in (("none", 0), ("valid", 0), ("unclear", 1)):
        answer = caller.get("items", query=f"?resolution={value}")
        assert (answer.status_code, len(answer.json()["results"])) == (200, count)


def test_where_people_rate_a_resolution_is_named_by_its_numbers() -> None:
    project = make_project(task_type="rating")
    make_resolution(make_item(project, "a"), value="3/-/2")
    caller = Caller(make_member(project, role="researcher"))
    for value, found in (("3/-/2", 1), ("1/1/1", 0)):
        answer = caller.get("items", query=f"?resolution={value}")
        assert (answer.status_code, len(answer.json()["results"])) == (200, found)
    assert caller.get("items", query="?resolution=valid").status_code == 400


def test_labels_are_listed_with_their_history_and_without_their_stage(people: Cast) -> None:
    make_item(people.project, "a"), make_item(people.project, "b")
    say(people.annotator, take(people.annotator))
    queue.undo_label(people.annotator)
    caller = Caller(people.researcher)
    [listed] = caller.get("labels", query="?item=a").json()["results"]
    assert (listed["annotator"], listed["current"]) == (people.annotator.alias, False)
    assert "stage" not in listed
    assert caller.get("labels", query="?counted=true").json()["count"] == 0
    assert caller.get("labels", query="?counted=false&annotator=annotator").json()["count"] == 1


@pytest.mark.parametrize("key", ["nothing", "a\0b"])
def test_an_item_that_is_not_there_is_404(people: Cast, key: str) -> None:
    assert Caller(people.lead).get("item", key).status_code == 404


def test_a_list_costs_the_same_for_many_rows(people: Cast, django_assert_num_queries: Any) -> None:
    caller = Caller(people.lead)
    for _ in range(2):
        make_item(people.project)
    caller.get("items")
    with django_assert_num_queries(5, exact=False) as few:
        caller.get("items")
    for _ in range(10):
        make_item(people.project, duplicate_of=Item.objects.first(), slots=0)
    with django_assert_num_queries(len(few)):
        caller.get("items")


def test_a_key_from_the_browser_works_in_the_api_for_the_same_person_only(people: Cast) -> None:
    make_item(people.project)
    offer = take(people.annotator)
    body = {"key": offer.key, "item": offer.item.key, "revision": 1, "answers": {"choice": "valid"}}
    assert Caller(people.adjudicator).post("labels", body).status_code == 422
    assert Slot.objects.get().state == "held"
    assert Caller(people.annotator).post("labels", body).status_code == 201
