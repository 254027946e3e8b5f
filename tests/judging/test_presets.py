"""Settings of usual evaluators, from which a new endpoint starts."""

import json
import re
from typing import Any

import pytest
from django.test import Client

from judging.evaluators.forms import EndpointPageForm
from judging.evaluators.presets import load_presets
from judging.models import Endpoint
from tests.builders import make_account
from tests.judging.builders_judging import make_endpoint

pytestmark = pytest.mark.django_db
NEW = "/endpoints/new/"


@pytest.fixture(autouse=True)
def this_machine(settings: Any) -> None:
    """A deployment whose evaluators may run beside it."""
    settings.EVALUATOR_HOSTS = ["localhost"]


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(make_account("boss", is_superuser=True))
    return client


def fields(answer: Any) -> dict[str, str]:
    """What a browser would send of the form that a page shows."""
    page = answer.content.decode()
    found = dict(re.findall(r'<input [^>]*name="(\w+)"[^>]*? value="([^"]*)"', page))
    for name, options in re.findall(r'<select name="(\w+)".*?>(.*?)</select>', page, re.S):
        chosen = re.findall(r'value="([^"]*)" selected', options)
        found[name] = chosen[0] if chosen else ""
    for name, text in re.findall(r'<textarea name="(\w+)".*?>\n(.*?)</textarea>', page, re.S):
        found[name] = text.replace("&quot;", '"')
    return found


@pytest.mark.parametrize("slug", load_presets())
def test_with_a_name_and_a_model_every_preset_can_be_saved_as_it_is(
    admin: Client, slug: str
) -> None:
    shown = fields(admin.get(NEW, {"preset": slug}))
    assert shown["name"] == slug
    answer = admin.post(NEW, {**shown, "model": "judge-1"})
    assert answer.status_code == 302, EndpointPageForm({**shown, "model": "judge-1"}).errors
    made = Endpoint.objects.get(name=slug)
    values = dict(load_presets()[slug].values)
    assert made.parameters.items() >= values.pop("parameters", {}).items()
    assert {name: getattr(made, name) for name in values} == values


def test_a_server_on_this_machine_has_time_and_costs_nothing(admin: Client) -> None:
    shown = fields(admin.get(NEW, {"preset": "this-machine"}))
    assert (shown["in_flight"], shown["timeout"], shown["json_mode"]) == ("2", "600", "json_schema")
    assert (shown["price_in"], shown["price_out"]) == ("0", "0")
    assert json.loads(shown["parameters"]) == {"max_tokens": 1024}


def test_another_preset_keeps_what_was_typed_and_changes_the_rest(admin: Client) -> None:
    first = fields(admin.post(NEW, {"preset": "vllm", "name": "", "address": ""}))
    assert (first["from"], first["in_flight"]) == ("vllm", "64")
    typed = {**first, "model": "qwen-9", "timeout": "90", "parameters": '{"top_p": 0.5}'}
    second = fields(admin.post(NEW, {**typed, "preset": "openai"}))
    assert (second["model"], second["timeout"]) == ("qwen-9", "90")
    assert second["parameters"] == '{"top_p": 0.5}'
    assert second["address"] == "https://api.openai.com/v1"
    assert (second["name"], second["key_variable"]) == ("openai", "OPENAI_API_KEY")
    # What vLLM set and OpenAI does not is as on an empty form.
    assert (second["in_flight"], second.get("price_in", "")) == ("16", "")
    assert not Endpoint.objects.filter(provider="openai_compatible").exists()


def test_a_name_that_is_taken_gets_a_number(admin: Client) -> None:
    make_endpoint("https://api.openai.com/v1", name="openai")
    assert fields(admin.get(NEW, {"preset": "openai"}))["name"] == "openai-2"


def test_the_page_says_what_a_preset_means_and_nothing_is_saved_by_choosing(admin: Client) -> None:
    page = admin.post(NEW, {"preset": "ollama"}).content.decode()
    assert "OLLAMA_CONTEXT_LENGTH=16384" in page
    assert 'value="ollama" formnovalidate aria-pressed="true"' in page
    assert "Nothing was saved yet" not in page
    assert admin.get(NEW, {"preset": "nobody"}).status_code == 200


def test_after_an_error_the_page_still_says_where_the_form_started(admin: Client) -> None:
    shown = fields(admin.get(NEW, {"preset": "ollama"}))
    answer = admin.post(NEW, {**shown, "model": ""})
    assert answer.status_code == 422
    assert fields(answer)["from"] == "ollama"


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("openai/o4-mini", "Known family: OpenAI o-series. It takes no temperature and no top_p,"),
        ("o4-mini", "an answer to 8,192 tokens instead of 1,024."),
        (
            "us.anthropic.claude-opus-4-7-v1:0",
            "no temperature and no top_p and no top_k, so our default",
        ),
        ("gemini-2.5-pro", "Gemini 2.5 and later. It may think first"),
        ("judge-1", "Nothing is known of this model, so it gets our defaults."),
    ],
)
def test_the_form_says_what_is_known_of_the_typed_model(
    admin: Client, model: str, said: str
) -> None:
    typed = admin.get(NEW, {"model": model}, headers={"HX-Request": "true"}).content.decode()
    assert said in typed
    assert "<" not in typed
    shown = fields(admin.get(NEW, {"preset": "openai"}))
    assert typed in admin.post(NEW, {**shown, "model": model, "address": ""}).content.decode()
    # Nothing typed, nothing said.
    assert admin.get(NEW, {"model": " "}, headers={"HX-Request": "true"}).content == b""
    page = admin.get(NEW).content.decode()
    assert "Known family" not in page
    assert "Nothing is known" not in page


def test_who_may_not_add_endpoints_gets_no_presets(client: Client) -> None:
    client.force_login(make_account("somebody"))
    assert client.get(NEW, {"preset": "openai"}).status_code in (403, 404)
    assert client.post(NEW, {"preset": "openai"}).status_code in (403, 404)


@pytest.mark.parametrize("model", ["", "judge-1"])
def test_a_preset_asks_for_the_model_unless_it_is_filled_in(admin: Client, model: str) -> None:
    page = admin.get(NEW, {"preset": "openai", "model": model}).content.decode()
    assert ("Now enter the model." in page) is (not model)
