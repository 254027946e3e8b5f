"""What endpoints made from presets send fits the types of the newest official clients, which refuse
a name that they do not know."""

import inspect
import json
import pkgutil
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import anthropic.types
import openai.types
import pytest
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from google.genai import types as google
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.completion_create_params import (
    CompletionCreateParamsNonStreaming as TextParams,
)
from pydantic import TypeAdapter, ValidationError
from typing_extensions import is_typeddict

from judging.evaluators.forms import EndpointPageForm
from judging.evaluators.presets import load_presets
from judging.evaluators.providers import build_body
from tests.judging.providers.conftest import Text

SCHEMA = {
    "type": "object",
    "properties": {"explanation": {"type": "string"}, "score": {"enum": [1, 2, 3]}},
    "required": ["explanation", "score"],
    "additionalProperties": False,
}
PROMPT = Text(system="You judge.", user="How good is it?")
# A model of each provider whose parameters are known, and one of none.
MODELS = {
    "openai_compatible": ("gpt-4o", "o3", "gpt-5.2", "llama-9"),
    "anthropic": ("claude-sonnet-5", "claude-haiku-4-5"),
    "gemini": ("gemini-3-pro", "gemini-2.5-flash"),
}


def forbid_unknown_names(package: ModuleType) -> None:
    """Let pydantic refuse names that the request types of a client do not have."""
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for _, kind in inspect.getmembers(import_module(found.name), is_typeddict):
            kind.__pydantic_config__ = {"extra": "forbid", "arbitrary_types_allowed": True}


@pytest.fixture(autouse=True)
def this_machine(settings: Any) -> None:
    """A deployment whose evaluators may run beside it."""
    settings.EVALUATOR_HOSTS = ["localhost"]


def whole(body: Any) -> list[Any]:
    """A body whose messages are checked too, which happens while they are read."""
    return [*body.get("messages", ())]


@pytest.fixture(scope="module")
def check() -> dict[str, Callable[[dict[str, Any]], object]]:
    """For each provider a function that raises `ValidationError` for a body that does not fit."""
    for package in (openai.types, anthropic.types):
        forbid_unknown_names(package)
    chat, text, messages = (
        TypeAdapter(kind)
        for kind in (
            CompletionCreateParamsNonStreaming,
            TextParams,
            MessageCreateParamsNonStreaming,
        )
    )

    def check_openai(body: dict[str, Any]) -> object:
        return whole((chat if "messages" in body else text).validate_python(body))

    def check_anthropic(body: dict[str, Any]) -> object:
        return whole(messages.validate_python(body))

    def check_gemini(body: dict[str, Any]) -> object:
        assert body.keys() <= {"model", "contents", "systemInstruction", "generationConfig"}
        google.GenerationConfig.model_validate(body["generationConfig"])
        contents = [*body["contents"], body["systemInstruction"]]
        return [google.Content.model_validate(one) for one in contents]

    return {
        "openai_compatible": check_openai,
        "anthropic": check_anthropic,
        "gemini": check_gemini,
    }


def bodies(slug: str, model: str) -> list[dict[str, Any]]:
    """The bodies with and without a schema that an endpoint made from this preset sends."""
    preset = load_presets()[slug]
    form = EndpointPageForm.from_preset(preset, {"model": model}, "")
    sent = {name: form[name].value() for name in form.fields}
    sent |= {"parameters": json.dumps(preset.values.get("parameters", {}))}
    form = EndpointPageForm({name: value for name, value in sent.items() if value is not None})
    assert form.is_valid(), form.errors
    pinned = form.instance.pinned()
    return [json.loads(build_body(pinned, PROMPT, schema=schema)) for schema in (None, SCHEMA)]


CASES = [
    (slug, model)
    for slug, preset in load_presets().items()
    for model in MODELS[preset.values["provider"]]
]


@pytest.mark.django_db
@pytest.mark.parametrize(("slug", "model"), CASES)
def test_bodies_of_presets_fit_the_official_client(check: Any, slug: str, model: str) -> None:
    values = load_presets()[slug].values
    for body in bodies(slug, model):
        if values.get("json_mode") == "json_object_schema" and "response_format" in body:
            # This is llama-cpp-python's own name, which the official client has not.
            assert body["response_format"].pop("schema") == SCHEMA
        if model == "claude-haiku-4-5":
            # Models before Claude 5 take it; the client of today no longer has a name for it.
            assert body.pop("temperature") == 0
        check[values["provider"]](body)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("provider", "place"),
    [
        ("openai_compatible", ()),
        ("openai_compatible", ("messages", 0)),
        ("openai_compatible", ("response_format", "json_schema")),
        ("anthropic", ()),
        ("anthropic", ("messages", 0)),
        ("gemini", ()),
        ("gemini", ("contents", 0)),
        ("gemini", ("generationConfig",)),
    ],
)
def test_a_name_that_the_client_does_not_know_is_refused(
    check: Any, provider: str, place: tuple[Any, ...]
) -> None:
    slug = next(
        one for one, preset in load_presets().items() if preset.values["provider"] == provider
    )
    body = bodies(slug, MODELS[provider][0])[1]
    part: Any = body
    for step in place:
        part = part[step]
    part["surprise"] = 1
    with pytest.raises((ValidationError, AssertionError)):
        check[provider](body)
