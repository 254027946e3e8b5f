"""Endpoints through the API: set up, changed and tested by who may do so on their pages."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator

from annotation.models import Event
from judging.evaluators.presets import load_presets
from judging.models import Endpoint, Reply
from tests.builders import Cast, make_member
from tests.judging.builders_judging import api_client, make_endpoint, make_items, make_run
from tests.services.scripted_evaluator import ScriptedEvaluator

pytestmark = pytest.mark.django_db

GOOD = {
    "name": "judge",
    "provider": "anthropic",
    "address": "https://evaluator.example/v1/",
    "key_variable": "JUDGE_API_KEY",
    "model": "judge-1",
    "json_mode": "json_schema",
    "parameters": {"max_tokens": 50},
    "price_in": "2.50",
}
KEY = "sk-test-4f1d/9b2e77aa0c31"


@pytest.fixture
def admin(people: Cast) -> Client:
    member = make_member(people.project, "lead")
    assert member.account
    member.account.is_superuser = True
    member.account.save()
    return api_client(member)


def post(client: Client, way: str = "", **values: Any) -> Any:
    return client.post(f"/api/v1/endpoints/{way}", values, content_type="application/json")


def patch(client: Client, endpoint: str, tag: str = "*", **values: Any) -> Any:
    where, headers = f"/api/v1/endpoints/{endpoint}/", {"If-Match": tag}
    return client.patch(where, values, content_type="application/json", headers=headers)


def test_a_site_admin_sets_one_up_whose_key_is_never_told(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_API_KEY", KEY)
    answer = post(admin, **GOOD)
    made = answer.json()
    assert (answer.status_code, made["address"]) == (201, "https://evaluator.example/v1")
    assert (made["parameters"], made["sends"]["max_tokens"]) == ({"max_tokens": 50}, 50)
    assert (made["in_flight"], made["timeout"], made["api"]) == (16, 120, "chat")
    assert (made["key_variable"], made["key_set"]) == ("JUDGE_API_KEY", True)
    everything = admin.get("/api/v1/endpoints/judge/").content + answer.content
    assert KEY.encode() not in everything
    assert Event.objects.filter(kind="endpoint", subject="judge").count() == 1


def test_a_new_chat_gets_a_limit_of_tokens_that_the_answer_tells(admin: Client) -> None:
    chat = GOOD | {"provider": "openai_compatible", "json_mode": "", "model": "gpt-5"}
    made = post(admin, **chat | {"parameters": {}}).json()
    assert made["parameters"] == made["sends"] == {"max_completion_tokens": 8192}


@pytest.mark.parametrize(
    "wrong, field, words",
    [
        ({"address": "http://169.254.169.254/"}, "address", "must not be called"),
        ({"address": ""}, "address", "Enter the base URL"),
        ({"name": "new"}, "name", "Choose another one"),
        ({"name": "a b"}, "name", "letters, digits"),
        ({"provider": "recorded"}, "provider", "Select a valid choice"),
        ({"parameters": {"stream": True}}, "parameters", "cannot be set: stream"),
        ({"parameters": {"api_key": "sk-x"}}, "parameters", "looks like a key"),
        ({"parameters": {"stop": "\0"}}, "parameters", "NUL"),
        ({"parameters": {"stop": "\ud800"}}, "parameters", "surrogate"),
        ({"parameters": [1]}, "parameters", "dictionary"),
        ({"key_variable": "SECRET_KEY"}, "key_variable", "Enter a valid value"),
        ({"price_in": "-1"}, "price_in", "greater than or equal to 0"),
        ({"key": KEY}, "body", "There is no 'key'."),
    ],
)
def test_one_that_cannot_be_asked_is_refused_at_its_field(
    admin: Client, wrong: dict[str, Any], field: str, words: str
) -> None:
    answer = post(admin, **{**GOOD, **wrong})
    assert answer.status_code == 422
    assert words in str(answer.json()["errors"][field])
    assert not Endpoint.objects.filter(name="judge").exists()


def test_a_change_names_what_it_changes_and_is_on_record(admin: Client) -> None:
    post(admin, **GOOD)
    changed = patch(admin, "judge", in_flight=4, price_in=None).json()
    assert (changed["in_flight"], changed["price_in"], changed["model"]) == (4, None, "judge-1")
    event = Event.objects.filter(kind="endpoint").latest("pk")
    assert (event.data["old"], event.data["new"]) == (
        {"in_flight": 16, "price_in": "2.500000"},
        {"in_flight": 4, "price_in": None},
    )
    assert "There is no 'name'" in str(patch(admin, "judge", name="other").json())


def test_what_runs_rest_on_stays(admin: Client, people: Cast) -> None:
    make_items(people.project, 1)
    endpoint = make_endpoint("https://evaluator.example/v1")
    make_run(people.project, endpoint)
    answer = patch(admin, endpoint.name, model="other", timeout=7)
    assert answer.json()["errors"] == {
        "model": ["Runs use this endpoint. Add a new endpoint instead."]
    }
    assert patch(admin, endpoint.name, model=endpoint.model, timeout=7).json()["timeout"] == 7


def test_a_script_starts_from_a_preset_as_the_form_does(admin: Client, settings: Any) -> None:
    settings.EVALUATOR_HOSTS = ["localhost"]
    offered = admin.get("/api/v1/endpoint-presets/").json()
    assert [one["slug"] for one in offered] == [*load_presets()]
    for preset in offered:
        made = post(admin, **preset["values"], name=preset["slug"], model="judge-1")
        assert made.status_code == 201, made.json()
        assert made.json()["address"] == preset["values"]["address"]
        assert "" not in (preset["title"], preset["why"])


def test_the_schema_describes_presets() -> None:
    schema = SchemaGenerator().get_schema(request=None, public=True)
    answers = schema["paths"]["/api/v1/endpoint-presets/"]["get"]["responses"]
    listed = answers["200"]["content"]["application/json"]["schema"]
    assert listed == {"type": "array", "items": {"$ref": "#/components/schemas/Preset"}}
    described = schema["components"]["schemas"]["Preset"]
    assert {*described["properties"]} == {"slug", "title", "why", "values"}


def test_two_admins_do_not_write_over_each_other(admin: Client) -> None:
    post(admin, **GOOD)
    tag = admin.get("/api/v1/endpoints/judge/")["ETag"]
    Endpoint.objects.update(remaining={"at": "2026-01-01T00:00:00Z", "limits": {}})
    assert admin.get("/api/v1/endpoints/judge/")["ETag"] != tag
    assert patch(admin, "judge", tag, timeout=7).status_code == 200
    assert patch(admin, "judge", tag, timeout=8).status_code == 412
    assert Endpoint.objects.get(name="judge").timeout == 7


def test_only_site_admins_set_up_and_change(people: Cast) -> None:
    for member, status in ((people.lead, 403), (people.researcher, 403)):
        assert post(api_client(member), **GOOD).status_code == status
        assert patch(api_client(member), "baseline", timeout=7).status_code == status


def test_a_test_call_says_what_came_of_it(people: Cast, evaluator: ScriptedEvaluator) -> None:
    endpoint = make_endpoint(evaluator, price_in=10, price_out=20)
    tried = post(api_client(people.researcher), f"{endpoint.name}/test/").json()
    assert (tried["problem"], tried["finish"], tried["model"]) == (
        "",
        "stop",
        f"{endpoint.model}-0001",
    )
    assert float(tried["cost"]) == pytest.approx(
        (tried["tokens_in"] * 10 + tried["tokens_out"] * 20) / 1e6
    )
    assert not Reply.objects.exists()
    recorded = make_endpoint("", provider="recorded")
    tried = post(api_client(people.researcher), f"{recorded.name}/test/").json()
    assert "called" in tried["problem"]
    assert tried["cost"] is None


def test_a_site_admin_ends_a_pause(admin: Client) -> None:
    endpoint = make_endpoint(
        "https://evaluator.example/v1", paused_until=timezone.now() + timedelta(hours=9)
    )
    for _ in range(2):
        assert post(admin, f"{endpoint.name}/end-pause/").json()["paused_until"] is None


def test_a_site_admin_archives_restores_and_deletes_one(admin: Client, people: Cast) -> None:
    endpoint = make_endpoint("https://evaluator.example/v1")
    address = f"/api/v1/endpoints/{endpoint.name}/"
    assert post(admin, f"{endpoint.name}/archive/").json()["archived_at"]
    make_items(people.project, 1)
    body = {"strategy": "reference", "endpoint": endpoint.name}
    runs = f"/api/v1/projects/{people.project.slug}/runs/"
    refused = admin.post(runs, body, content_type="application/json")
    assert "is archived. Restore it" in refused.json()["detail"]
    assert admin.get(address).json()["archived_at"]
    assert post(admin, f"{endpoint.name}/restore/").json()["archived_at"] is None
    run = make_run(people.project, endpoint)
    kept = admin.delete(address)
    assert (kept.status_code, "cannot be deleted" in kept.json()["detail"]) == (422, True)
    unused = make_endpoint("https://evaluator.example/v1")
    assert admin.delete(f"/api/v1/endpoints/{unused.name}/").status_code == 204
    assert [*Endpoint.objects.filter(pk__in=[unused.pk, run.endpoint_id])] == [endpoint]
