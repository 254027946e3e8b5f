"""Every strategy that is shipped can read the answer it asks for, and the one of its schema."""

import json

import pytest

from judging.strategies import Metric, Scale, criteria, frames, load_all, with_metrics
from judging.strategies.replies.outputs import parse_reply

TASK = (
    Metric("clear", "Clearness", "?", Scale(1, 3, 1)),
    Metric("right", "Truth", "?", Scale(1, 3, 1)),
)
ASKED = {slug: with_metrics(one, TASK) for slug, one in load_all().items() if one.frame != "fold"}


def least(schema):
    """The first value that a schema admits."""
    if "enum" in schema:
        return schema["enum"][0]
    values = {"string": "Clear.", "boolean": True, "integer": 1, "number": 1, "object": {"a": "b"}}
    return values[schema["type"]]


@pytest.mark.parametrize("slug", ASKED)
def test_an_answer_by_the_schema_is_read_as_strict_json(slug):
    strategy = ASKED[slug]
    for spec in frames.list_all_calls(strategy):
        schema = strategy.schema_at(spec.step)
        if schema is None:
            continue
        answer = {key: least(value) for key, value in schema["properties"].items()}
        reading = parse_reply(strategy, json.dumps(answer), spec=spec)
        assert (reading.path, reading.cause) == ("strict", "")
        assert reading.explanation == answer.get("explanation", "")


@pytest.mark.parametrize("slug", [slug for slug, one in ASKED.items() if one.output == "scores"])
def test_an_answer_in_the_form_of_the_prompt_gives_every_metric(slug):
    strategy = ASKED[slug]
    low = min(int(metric.scale.low) for metric in strategy.metrics)
    filled = criteria.render_form(strategy).replace("N", str(max(low, 1)))
    value = parse_reply(strategy, filled).value
    assert value == {metric.slug: 1.0 for metric in strategy.metrics}


@pytest.mark.parametrize(
    "slug, text, value",
    [
        ("detect-1a", "Therefore, the model response contains an error.", "error"),
        ("detect-1b", "Therefore, the model response contains no error.", "no_error"),
        ("detect-2a", "Therefore, the model response is not valid.", "error"),
        ("detect-2b", "Therefore, the model response is valid.", "no_error"),
        ("detect-steps", "Therefore, the model response contains an error.", "error"),
        ("prometheus", "Feedback: clear. [RESULT] 3", 3.0),
        ("prometheus-axis", "clear. [RESULT] (3)", 3.0),
        (
            "score-chain",
            "<RESULT>S1: 1, S2: 0, S3: -1</RESULT>",
            {"s1": 1.0, "s2": 0.0, "s3": -1.0},
        ),
    ],
)
def test_an_answer_in_words_is_read_where_words_are_asked_for(slug, text, value):
    assert parse_reply(ASKED[slug], text).value == value
