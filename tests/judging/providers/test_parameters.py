"""What models take of the parameters of a request, and what their refusals name."""

import re
from typing import Any

import pytest

from judging.evaluators.providers import PROVIDERS
from judging.evaluators.providers.parameters import (
    UNKNOWN_FAMILY,
    _load_families,
    find_family,
    find_refused,
    fit_token_limit,
    merge_parameters,
    with_token_limit,
)
from judging.evaluators.providers.transport import parse_error_body

OPENAI, ANTHROPIC, GEMINI = "openai_compatible", "anthropic", "gemini"


def pinned(provider: str, model: str, *layers: dict[str, Any]) -> dict[str, Any]:
    return merge_parameters(provider, model, PROVIDERS[provider].default_parameters, *layers)


@pytest.mark.parametrize(
    "model",
    [
        "gpt-5", "gpt-5-mini", "gpt-5-2025-08-07", "openai/gpt-5-nano", "GPT-5-pro", "gpt-5:free",
        "o1", "o3-mini", "o4-mini-2025-04-16", "o1-preview", "azure/o3",
        "claude-opus-4-7", "claude-opus-4-8-20260501", "anthropic/claude-opus-4.7",
        "us.anthropic.claude-opus-4-7-v1:0", "vertex_ai/claude-opus-4-7@default",
        "anthropic/claude-4.7-opus", "claude-sonnet-5", "claude-opus-5-5", "claude-fable-5.1",
    ],
)  # fmt: skip
def test_a_family_that_refuses_a_temperature_is_asked_without(model: str) -> None:
    assert "temperature" in find_family(model).refuses
    assert pinned(OPENAI, model) == pinned(ANTHROPIC, model) == {"temperature": None}


@pytest.mark.parametrize(
    "model",
    [
        "gpt-4o", "gpt-4.1-mini", "gpt-5-chat-latest", "gpt-5.1", "gpt-5.2-2025-12-11", "gpt-50",
        "claude-opus-4-6", "claude-opus-4-1-20250805", "claude-opus-4-20250514", "claude-haiku-4-5",
        "claude-3-7-sonnet-20250219", "anthropic/claude-opus-4.6", "gemini-2.5-pro", "gemini-3-pro",
        "marco-o1", "o3-like", "llama3.1:8b", "qwen3:8b", "deepseek-r1", "judge-1", "",
    ],
)  # fmt: skip
def test_all_others_are_asked_with_our_default(model: str) -> None:
    assert pinned(OPENAI, model) == pinned(GEMINI, model) == {}


def test_what_somebody_sets_is_sent_also_to_a_family_that_refuses_it() -> None:
    assert pinned(OPENAI, "gpt-5", {"temperature": 1}) == {"temperature": 1}
    layers = {"temperature": 0.2, "seed": 1}, {"temperature": 0.5}, {"temperature": None}
    assert pinned(OPENAI, "gpt-5", *layers) == {"temperature": None, "seed": 1}


def test_parameters_are_spelled_as_the_model_s_family_spells_them() -> None:
    over = {"max_tokens": 500}, {"max_completion_tokens": 100}
    assert pinned(OPENAI, "gpt-5.1", *over) == {"max_completion_tokens": 100}
    assert pinned(OPENAI, "gpt-5.1", *reversed(over)) == {"max_completion_tokens": 500}
    assert pinned(OPENAI, "gpt-4o", *over) == {"max_tokens": 500, "max_completion_tokens": 100}
    assert pinned(ANTHROPIC, "claude-haiku-4-5", {"stop": "\n"}) == {"stop_sequences": ["\n"]}
    assert pinned(ANTHROPIC, "m", {"stop": ["a", "b"]}) == {"stop_sequences": ["a", "b"]}
    assert pinned(ANTHROPIC, "m", *over) == pinned(GEMINI, "m", *over) == {"max_tokens": 100}
    # Its own module spells this one, in requests that are stored.
    assert pinned(GEMINI, "m", {"stop": ["a"]}) == {"stop": ["a"]}


@pytest.mark.parametrize(
    ("provider", "model", "given", "stored"),
    [
        (OPENAI, "llama3.1:8b", {}, {"max_tokens": 1024}),
        (OPENAI, "gpt-4o", {"seed": 1}, {"seed": 1, "max_tokens": 1024}),
        # Thoughts are part of the answer there, and 1,024 tokens would cut most answers off.
        (OPENAI, "gpt-5", {}, {"max_completion_tokens": 8192}),
        (OPENAI, "Qwen/Qwen3-8B", {}, {"max_tokens": 8192}),
        (OPENAI, "Qwen/Qwen3-4B-Instruct-2507", {}, {"max_tokens": 1024}),
        (GEMINI, "gemini-2.0-flash", {}, {"max_tokens": 1024}),
        (GEMINI, "gemini-2.5-flash", {}, {"max_tokens": 8192}),
        # A limit is among the protocol's defaults, and stays there.
        (ANTHROPIC, "claude-haiku-4-5", {}, {}),
        (ANTHROPIC, "claude-sonnet-5", {}, {"max_tokens": 8192}),
        # What somebody says holds, be it that there is to be no limit.
        (OPENAI, "m", {"max_tokens": None}, {"max_tokens": None}),
        (GEMINI, "m", {"maxOutputTokens": 9}, {"maxOutputTokens": 9}),
    ],
)
def test_a_new_endpoint_gets_a_limit_of_tokens(
    provider: str, model: str, given: dict[str, Any], stored: dict[str, Any]
) -> None:
    assert (
        with_token_limit(provider, model, PROVIDERS[provider].default_parameters, given) == stored
    )


def test_each_family_has_a_source_with_a_year_and_fits_what_it_is_called_for() -> None:
    families, spelled = _load_families()
    for one in families:
        assert re.search(r"\b20\d\d\b", one.source), one.name
        assert re.search("[Nn]ot called by us|Not verified", one.source), one.name
        re.compile(one.models)
    assert spelled.keys() <= PROVIDERS.keys()
    assert find_family("a model that nobody knows") is UNKNOWN_FAMILY


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("Unsupported value: 'temperature' does not support 0 with this model.", "temperature"),
        ("`temperature` is deprecated for this model.", "temperature"),
        ("invalid temperature: only 1 is allowed for this model", "temperature"),
        ("Unsupported parameter: 'max_tokens' is not supported with this model. Use", "max_tokens"),
        ("`top_p` cannot be specified for this model", "top_p"),
        ("seed: Extra inputs are not permitted", "seed"),
        ("temperature: range: 0..1", "temperature"),
        ("Temperature is off. The parameter temperature has no effect here", "temperature"),
        ("temperature is not supported by this model", "temperature"),
        ("This model does not support temperature", "temperature"),
        ("You cannot use temperature with this model", "temperature"),
        ("The temperature parameter is deprecated", "temperature"),
        ("Unrecognized request argument supplied: top_p", "top_p"),
        ("Unsupported value. (param: 'temperature')", "temperature"),
        ("max_tokens and top_p: `top_p` is deprecated, use temperature", "top_p"),
        # As Gemini spells them.
        ("generationConfig.temperature must be 1 for this model", "temperature"),
        ("* GenerateContentRequest.generation_config.top_p: is out of range", "top_p"),
        ("maxOutputTokens is not supported for this model", "max_tokens"),
        ("Unknown name \"maxOutputTokens\" at 'generation_config': Cannot find", "max_tokens"),
        ("'topP' is not supported", "top_p"),
        ("Invalid value at 'generation_config.stop_sequences'", "stop"),
        # Words that are not meant, another's parameter, and what is the fault of one prompt.
        ("User location is not supported. Please stop.", ""),
        ("There is no model bytedance/seed-oss.", ""),
        ("the temperatures of 7 regions", ""),
        ("The prompt was flagged: the temperature of the reactor rises", ""),
        ("invalid input: what is the temperature in Rome", ""),
        ("The user is not allowed to ask this model", ""),
        ("maxOutputTokens of 9000 is beyond the prompt's limit", ""),
        ("'top_k' is not supported", ""),
        ("'max_tokens' is too large: 1024. The maximum context length is 2048 tokens", ""),
        ("this cannot be asked", ""),
    ],
)
def test_a_refusal_names_a_parameter_that_was_sent(words: str, name: str) -> None:
    sent = ["max_tokens", "temperature", "top_p", "seed", "stop", "user"]
    assert find_refused(f"The provider answered 400: {words}", sent) == name
    assert find_refused(words, []) == ""


def test_a_refusal_whose_field_stands_beside_its_words_names_it() -> None:
    body = b'{"error": {"message": "Unsupported value.", "param": "temperature"}}'
    words, _ = parse_error_body(body)
    assert words == "Unsupported value. (param: 'temperature')"
    assert find_refused(words, ["temperature"]) == "temperature"
    body = b'{"error": {"message": "`temperature` is deprecated.", "param": "temperature"}}'
    assert parse_error_body(body)[0] == "`temperature` is deprecated."
    body = b'{"error": {"message": "Too long: the temperature rose.", "param": "messages"}}'
    assert find_refused(parse_error_body(body)[0], ["temperature"]) == ""


@pytest.mark.parametrize(
    ("model", "of_endpoint", "sent"),
    [
        # The strategy's limit holds, under the endpoint's name.
        ("gpt-4o", {}, {"max_tokens": 4096}),
        ("gpt-4o", {"max_tokens": 8192}, {"max_tokens": 4096}),
        ("ours", {"max_completion_tokens": 500}, {"max_completion_tokens": 4096}),
        # A model that thinks keeps a larger one of its endpoint.
        ("o3", {"max_completion_tokens": 8192}, {"max_completion_tokens": 8192}),
        ("o3", {"max_completion_tokens": 1024}, {"max_completion_tokens": 4096}),
        ("gemini-3-pro", {"max_tokens": 8192}, {"max_tokens": 8192}),
        # An endpoint that sends no limit is told the strategy's.
        ("o3", {"max_completion_tokens": None}, {"max_completion_tokens": 4096}),
    ],
)
def test_the_token_limit_of_a_strategy_leaves_room_for_thinking(
    model: str, of_endpoint: dict[str, Any], sent: dict[str, Any]
) -> None:
    strategy = {"temperature": 0.5, "max_tokens": 4096}
    assert fit_token_limit(model, of_endpoint, strategy) == {"temperature": 0.5} | sent
    assert fit_token_limit(model, of_endpoint, {"top_p": 1}) == {"top_p": 1}
