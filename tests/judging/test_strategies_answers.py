"""A reply in the form that a strategy's prompt asks for is read by the strategy's own parser."""

import json
import re

import pytest

from annotation.items import taxonomy
from judging.strategies import load_all
from judging.strategies.frames import CallSpec, list_all_calls
from judging.strategies.replies.outputs import get_parser_version, parse_reply
from tests.judging.builders_strategies import complete

DETECTORS = [slug for slug, one in load_all().items() if one.frame == "detection"]
STRATEGIES = {slug: complete(strategy) for slug, strategy in load_all().items()}
IN_JSON = [slug for slug, strategy in STRATEGIES.items() if strategy.schema]


def instance(schema):
    """An object that the schema admits, with the first value that each part offers."""
    kinds = {"string": "Well.", "boolean": True, "number": 0.25, "object": {"gold": "Well."}}
    parts = schema["properties"].items()
    return {
        name: part["enum"][0] if "enum" in part else kinds[part["type"]] for name, part in parts
    }


def closings(strategy):
    """The sentences that a detection prompt offers to close with, in its order."""
    return list(dict.fromkeys(re.findall(r'"(Therefore[^"]+)"', strategy.prompt)))


@pytest.mark.parametrize("slug", IN_JSON)
def test_what_the_schema_admits_is_read_as_it_is(slug):
    strategy = STRATEGIES[slug]
    answer = instance(strategy.schema)
    reading = parse_reply(strategy, json.dumps(answer))
    explanation = answer.pop("explanation", "")
    several = strategy.output in ("scores", "perturbation", "input", "ability")
    expected = answer if several else next(iter(answer.values()))
    assert reading.value == expected
    assert (reading.path, reading.explanation) == ("strict", explanation)


@pytest.mark.parametrize("slug", DETECTORS)
def test_either_closing_sentence_is_read_for_what_it_says(slug):
    strategy = STRATEGIES[slug]
    read_as = [
        parse_reply(strategy, f"The sum is checked.\n\n{one}").value for one in closings(strategy)
    ]
    error_first = strategy.slug not in {"detect-1b", "detect-2b"}
    assert read_as == (["error", "no_error"] if error_first else ["no_error", "error"])


@pytest.mark.parametrize("slug", ["prometheus", "prometheus-axis"])
def test_feedback_and_result_are_read_as_explanation_and_score(slug):
    reading = parse_reply(STRATEGIES[slug], "The sum is wrong. [RESULT] 2")
    assert (reading.value, reading.explanation) == (2, "The sum is wrong.")
    assert parse_reply(STRATEGIES[slug], "All is well. [RESULT] 6").cause == "off_scale"


def test_each_step_of_the_chain_is_read_for_the_next():
    chain = STRATEGIES["score-chain"]
    replies = [
        "<RESULT>heron, bird</RESULT>",
        "<RESULT>\nClass: bird\nFamily: heron\nSpecies: None\n</RESULT>",
        "s1: 1 (a bird)\ns2: 1 (a heron)\ns3: 0 (none)\n<RESULT>s1: 1, s2: 1, s3: 0</RESULT>",
    ]
    said = [
        parse_reply(chain, reply, spec=spec).value
        for spec, reply in zip(list_all_calls(chain), replies, strict=True)
    ]
    assert said == [
        "heron, bird",
        "Class: bird\nFamily: heron\nSpecies: None",
        {"s1": 1, "s2": 1, "s3": 0},
    ]


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("Feedback: the class is right. [RESULT] 1", {"score": 1}),
        ("Feedback: all of it. <RESULT>3</RESULT>", {"score": 3}),
        ("Feedback: off the scale. [RESULT] 4", None),
    ],
)
def test_one_number_after_result_is_the_score_of_the_rubric(reply, value):
    assert parse_reply(STRATEGIES["score-rubric"], reply).value == value


def test_the_examples_in_the_chain_are_answers_that_would_be_read():
    chain = STRATEGIES["score-chain"]
    for spec in list_all_calls(chain):
        shown = re.findall(
            r"<RESULT>(?! and ).*?</RESULT>", chain.step(spec.step).prompt, re.DOTALL
        )
        assert len(shown) == 3
        assert all(parse_reply(chain, one, spec=spec).value is not None for one in shown)


def test_a_strategy_that_is_none_of_these_is_a_baseline_or_a_fold():
    covered = {*IN_JSON, *DETECTORS, "prometheus", "prometheus-axis", "score-chain", "score-rubric"}
    covered |= {"generate-gold", "generate-response"}
    left = [one for slug, one in STRATEGIES.items() if slug not in covered]
    assert all(one.metric or one.frame == "fold" for one in left)
    assert all(
        parse_reply(one, '{"score": 0.5}', spec=CallSpec("x")).value for one in left if one.metric
    )


def test_a_gold_answer_is_the_whole_reply():
    gold = STRATEGIES["generate-gold"]
    assert parse_reply(gold, '  {"score": 7} and [[7]].\n').value == '{"score": 7} and [[7]].'
    assert parse_reply(gold, " \n").cause == "empty"
    assert parse_reply(gold, "Half an ans", "length").cause == "truncated"


PARTS = {"perturbed": "Ice sinks.", "claim": "Floats became sinks.", "rationale": "It floats."}


@pytest.mark.parametrize(
    "text, cause",
    [
        (json.dumps(PARTS), ""),
        (f"Here it is:\n```json\n{json.dumps(PARTS)}\n```\nDone.", ""),
        (json.dumps(PARTS | {"claim": " "}), "incomplete"),
        (json.dumps(PARTS | {"rationale": 7}), "incomplete"),
        (json.dumps({"perturbed": "Ice sinks."}), "incomplete"),
        (json.dumps({"claim": "c", "rationale": "r"}), "unparsable"),
        ("Ice sinks.", "unparsable"),
        ("perturbed: Ice sinks.", "unparsable"),
        ("", "empty"),
    ],
)
def test_a_perturbation_has_all_three_parts_or_is_none(text, cause):
    reading = parse_reply(STRATEGIES["generate-entity"], text)
    assert reading.cause == cause
    assert reading.value == (None if cause else PARTS)


INPUT = {"input": "Is the claim supported?", "context": "line 1: Ice floats.", "rationale": "Hard."}


@pytest.mark.parametrize(
    "given, cause",
    [
        (INPUT, ""),
        (INPUT | {"input": "\n"}, "incomplete"),
        (INPUT | {"context": " "}, "incomplete"),
        (INPUT | {"rationale": ""}, "incomplete"),
        (INPUT | {"context": ["line 1"]}, "incomplete"),
        ({"input": "Why?", "rationale": "Hard."}, "incomplete"),
        ({"context": "c", "rationale": "r"}, "unparsable"),
    ],
)
def test_an_input_has_all_its_parts(given, cause):
    reading = parse_reply(STRATEGIES["generate-claims"], json.dumps(given))
    assert reading.cause == cause
    assert reading.value == (None if cause else given)


def test_only_an_input_that_is_about_something_needs_a_context():
    alone = INPUT | {"context": ""}
    assert parse_reply(STRATEGIES["generate-planted"], json.dumps(alone)).value == alone
    assert get_parser_version(STRATEGIES["generate-planted"]) != get_parser_version(
        STRATEGIES["generate-claims"]
    )


@pytest.mark.parametrize(
    "text, ability",
    [
        ('{"ability": "factual", "rationale": "It asks for a fact."}', "factual"),
        ('Sure: {"ability": " Long form ", "rationale": ""}', "long-form"),
        ('{"ability": "IF"}', "instruction-following"),
        ('{"ability": "score-invariant", "rationale": "r"}', ""),
        ('{"ability": "taste", "rationale": "r"}', ""),
        ('{"ability": ["factual"]}', ""),
        ('{"rationale": "r"}', ""),
        ("ability: factual", ""),
    ],
)
def test_an_ability_is_one_that_prompts_are_sorted_into_or_none(text, ability):
    reading = parse_reply(STRATEGIES["suggest-ability"], text)
    assert reading.cause == ("" if ability else "unparsable")
    assert (reading.value or {}).get("ability", "") == ability


def test_the_prompt_that_asks_for_an_ability_offers_every_one_there_is():
    asked = STRATEGIES["suggest-ability"].prompt
    listed = [one.slug for one in taxonomy.load_shipped().sorts]
    assert [slug for slug in listed if f"\n- {slug}: " not in asked] == []
    assert f'"one of {", ".join(listed)}"' in asked
