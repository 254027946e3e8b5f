"""What is sent, to the byte: by protocol, with parameters, templates and JSON by schema."""

import json

import pytest

from judging.evaluators.providers import PROVIDERS, build_body, merge_defaults
from tests.judging.providers.conftest import Text
from tests.judging.providers.ways import TEMPLATE, WAYS

SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "integer", "minimum": 1}, "minimum": {"type": "string"}},
    "required": ["score", "minimum"],
    "additionalProperties": False,
}
ASK = Text(system="Be strict.", user="Naïve {{system}}?")


def made(way, **changed):
    values = {"model": "m", "parameters": {}, "prompt": ASK, **WAYS[way].more, **changed}
    return PROVIDERS[WAYS[way].provider].body(**values)


def sent(way, **changed):
    return json.loads(made(way, **changed))


def test_each_protocol_says_the_same_in_its_own_shape():
    assert sent("chat") == {
        "model": "m",
        "temperature": 0,
        "messages": [
            {"role": "system", "content": "Be strict."},
            {"role": "user", "content": "Naïve {{system}}?"},
        ],
    }
    assert sent("completions") == {
        "model": "m",
        "temperature": 0,
        "max_tokens": 1024,
        "prompt": "<s>[INST] Be strict.\n\nNaïve {{system}}? [/INST]",
    }
    assert sent("anthropic") == {
        "model": "m",
        "temperature": 0,
        "max_tokens": 1024,
        "system": "Be strict.",
        "messages": [{"role": "user", "content": "Naïve {{system}}?"}],
    }
    assert sent("gemini") == {
        "model": "m",
        "systemInstruction": {"parts": [{"text": "Be strict."}]},
        "contents": [{"role": "user", "parts": [{"text": "Naïve {{system}}?"}]}],
        "generationConfig": {"temperature": 0},
    }


def test_the_bytes_of_a_chat_stay_what_they_were():
    # Digests of requests rest on them: other bytes would be paid for again.
    assert made("chat", parameters={"seed": 1, "temperature": None}) == (
        b'{"messages":[{"content":"Be strict.","role":"system"},{"content":"Na\xc3\xafve'
        b' {{system}}?","role":"user"}],"model":"m","seed":1}'
    )


def test_a_template_with_a_place_for_the_system_keeps_the_two_apart():
    template = "<|system|>{{ system }}<|user|>{{prompt}}<|assistant|>"
    prompt = sent("completions", template=template)["prompt"]
    assert prompt == "<|system|>Be strict.<|user|>Naïve {{system}}?<|assistant|>"


@pytest.mark.parametrize("template", ["", "no place", "{{system}}", "{{prompt}} {{answer}}"])
def test_a_template_that_cannot_be_filled_in_is_refused(template):
    with pytest.raises(ValueError, match=r"\{\{prompt\}\}"):
        made("completions", template=template)


@pytest.mark.parametrize(
    ("way", "changed", "words"),
    [
        ("chat", {"template": TEMPLATE}, "no template"),
        ("anthropic", {"api": "completions", "template": TEMPLATE}, "chat only"),
        ("gemini", {"api": "completions", "template": TEMPLATE}, "chat only"),
        ("completions", {"parameters": {"prompt": "x"}}, "cannot be set: prompt"),
        ("completions", {"parameters": {"extra": {"messages": []}}}, "cannot contain messages"),
        ("anthropic", {"parameters": {"stream": True}}, "cannot be set: stream"),
        ("anthropic", {"parameters": {"max_tokens": None}}, "need max_tokens"),
        ("anthropic", {"json_mode": "json_object"}, "by schema"),
        ("anthropic", {"json_mode": "json_object_schema"}, "by schema"),
        ("gemini", {"json_mode": "json_object_schema"}, "by schema"),
        ("gemini", {"parameters": {"contents": []}}, "cannot be set: contents"),
        ("gemini", {"model": "m:countTokens?x"}, "letters, digits, dots and hyphens"),
        ("gemini", {"model": "../files"}, "letters, digits, dots and hyphens"),
        ("chat", {"parameters": {"response_format": {}}, "json_mode": "json_object"}, "cannot"),
    ],
)
def test_what_a_protocol_does_not_take_is_refused(way, changed, words):
    with pytest.raises(ValueError, match=words):
        made(way, **changed)


def test_parameters_go_over_the_defaults_and_none_takes_one_away():
    for way in ("chat", "completions", "anthropic"):
        assert sent(way, parameters={"temperature": 1})["temperature"] == 1
        assert "temperature" not in sent(way, parameters={"temperature": None})
    config = sent("gemini", parameters={"temperature": None, "max_tokens": 9, "top_p": 0.5})
    assert config["generationConfig"] == {"maxOutputTokens": 9, "topP": 0.5}


def test_safety_settings_of_gemini_stand_beside_its_config():
    settings = [{"category": "HARM_CATEGORY_HATE_SPEECH", "threshold": "BLOCK_NONE"}]
    found = sent("gemini", parameters={"safetySettings": settings, "thinkingConfig": {"a": 1}})
    assert found["safetySettings"] == settings
    assert found["generationConfig"] == {"temperature": 0, "thinkingConfig": {"a": 1}}


def test_a_schema_is_sent_only_where_the_endpoint_gives_json(way):
    assert made(way, schema=SCHEMA) == made(way)
    assert made(way, schema=None, json_mode="json_schema") == made(way)
    assert made(way, schema=SCHEMA, json_mode="json_schema") != made(way)


def test_each_protocol_asks_for_json_in_its_own_way():
    chat = sent("chat", schema=SCHEMA, json_mode="json_schema")["response_format"]
    assert chat["json_schema"] == {"name": "answer", "schema": SCHEMA, "strict": True}
    loose = sent("chat", schema=SCHEMA, json_mode="json_object_schema")["response_format"]
    assert loose == {"type": "json_object", "schema": SCHEMA}
    loose = sent("chat", schema=SCHEMA, json_mode="json_object")["response_format"]
    assert loose == {"type": "json_object"}
    config = sent("gemini", schema=SCHEMA, json_mode="json_schema")["generationConfig"]
    assert config["responseMimeType"] == "application/json"
    assert config["responseJsonSchema"] == SCHEMA
    config = sent("gemini", schema=SCHEMA, json_mode="json_object")["generationConfig"]
    assert "responseJsonSchema" not in config


def test_limits_that_anthropic_refuses_leave_the_schema_and_its_properties_stay():
    found = sent("anthropic", schema=SCHEMA, json_mode="json_schema")["output_config"]["format"]
    assert found["type"] == "json_schema"
    properties = {"score": {"type": "integer"}, "minimum": {"type": "string"}}
    assert found["schema"] == {**SCHEMA, "properties": properties}


def test_what_an_older_run_pins_still_means_a_chat():
    pinned = {"provider": "openai_compatible", "model": "m", "parameters": {"seed": 1}}
    assert build_body(pinned, ASK) == made("chat", parameters={"seed": 1})
    assert merge_defaults(pinned) == {"temperature": 0, "seed": 1}


def test_parameters_are_said_with_the_defaults_of_completions():
    pinned = {"provider": "openai_compatible", "parameters": {}, **WAYS["completions"].more}
    assert merge_defaults(pinned) == {"temperature": 0, "max_tokens": 1024}


def test_a_schema_keeps_its_order_since_models_write_in_it(way):
    text = {"type": "string"}
    orders = (["explanation", "correctness"], ["correctness", "explanation"])
    for names in orders:
        schema = {"type": "object", "properties": dict.fromkeys(names, text), "required": names}
        found = made(way, schema=schema, json_mode="json_schema").decode()
        places = [found.index(f'"{name}":') for name in names]
        assert places == sorted(places)
