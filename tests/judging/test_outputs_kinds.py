"""Readings of error detection, several metrics, true and false, and the texts of a chain."""

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.strategies import Metric, Scale, Step, load_all
from judging.strategies.frames import CallSpec
from judging.strategies.replies.outputs import PARSERS, ParsedReply, get_parser_version, parse_reply

VANILLA = load_all()["vanilla"]
DETECTION = replace(VANILLA, frame="detection", output="detection", scale=None)
PHRASES = replace(DETECTION, parser="phrases-001")
FLAG = replace(VANILLA, frame="explanation", output="flag", scale=None)
# The score matrix of study 002: three parts, scored 1, 0 or -1.
PARTS = tuple(Metric(f"s{n}", title, "?", Scale(-1, 1, 1)) for n, title in
    [(1, "Class"), (2, "Family of birds"), (3, "Species")])  # fmt: skip
RUBRIC = replace(VANILLA, frame="rubric", output="scores", scale=None, metrics=PARTS)
CHAIN = replace(
    RUBRIC,
    steps=(
        Step("words", "", "Put them into <RESULT> and </RESULT>.", "text"),
        Step("groups", "", "Sort {{words}}.", "text"),
        Step("points", "", "Score {{groups}}.", "scores"),
    ),
)


def said(strategy, text):
    reading = parse_reply(strategy, text)
    return reading.cause if reading.value is None else reading.value


def step(number):
    return CallSpec("response", 0, "", number)


@pytest.mark.parametrize(
    "text, value",
    [
        ('{"detection": "error"}', "error"),
        ('{"explanation": "x", "detection": "no_error"}', "no_error"),
        ('{"detection": "No error"}', "no_error"),
        ('{"detection": "error or no_error"}', "unparsable"),
        ('{"detection": "errors"}', "unparsable"),
        ('{"detection": true}', "unparsable"),
        ("[[no_error]]", "no_error"),
        ("[RESULT] error", "error"),
        ("Detection: **error**", "error"),
        ("no error", "no_error"),
        ("Therefore, the model response contains no error.", "no_error"),
        ("The response is valid. Therefore, the model response contains an error.", "error"),
        ("The model response contains an error and is valid.", "error"),
        ("The response contains an error, but the response is valid.", "unparsable"),
        ("There is an error in step 2.", "unparsable"),
        ("", "empty"),
    ],
)
def test_a_detection_is_read_from_its_key_a_mark_or_its_last_statement(text, value):
    assert said(DETECTION, text) == value


def test_the_published_parser_reads_phrases_alone():
    assert said(PHRASES, "The response is valid. It contains an error.") == "no_error"
    assert said(PHRASES, '{"detection": "error"}') == "unparsable"
    reading = parse_reply(PHRASES, " Step 2 is wrong: it contains an error. ")
    assert reading == ParsedReply(
        "error", "pattern", explanation="Step 2 is wrong: it contains an error."
    )
    assert parse_reply(PHRASES, "contains an error", "length").cause == "truncated"


def test_what_stands_before_a_statement_explains_it():
    text = "Step 2 is wrong. Therefore, the model response contains an error."
    assert parse_reply(DETECTION, text) == ParsedReply(
        "error", "pattern", explanation="Step 2 is wrong."
    )


@pytest.mark.parametrize(
    "text, value",
    [
        ('{"flag": true}', True),
        ('{"flag": false}', False),
        ('{"flag": "No"}', False),
        ('{"flag": 1}', "unparsable"),
        ('{"flag": "true or false"}', "unparsable"),
        ('{"flag": "perhaps"}', "unparsable"),
        ("[[true]]", True),
        ("Answer: No, it does not.", False),
        ("It names a wrong date.\n**True**", True),
        ("true\nOn reflection:\nfalse.", False),
        ("True.", True),
        ("It is true that the date is wrong.", "unparsable"),
        ("no", False),
        ("", "empty"),
    ],
)
def test_a_flag_is_true_or_false_in_json_or_in_words(text, value):
    assert said(FLAG, text) == value


@pytest.mark.parametrize(
    "text, path",
    [
        ('{"s1": 1, "s2": 0, "s3": -1}', "strict"),
        ('{"explanation": "x", "S1": "1", "S2": 0.0, "S3": "-1"}', "strict"),
        ('{"class": 1, "family_of_birds": 0, "Species": -1}', "strict"),
        ('{"scores": {"S1": 1, "S2": 0, "S3": -1}}', "strict"),
        ('{"s1": {"reason": "x", "score": 1}, "s2": {"score": 0}, "s3": {"score": -1}}', "strict"),
        ('```json\n{"s1": 1, "s2": 0, "s3": -1}\n```', "fenced"),
        ('So: {"s1": 1, "s2": 0, "s3": -1}', "embedded"),
        ('{"explanation": "a\\(x\\)", "s1": 1, "s2": 0, "s3": -1,}', "repaired"),
        ("<RESULT>S1: 1, S2: 0, S3: -1</RESULT>", "pattern"),
        ("S1: 0, S2: 0, S3: 0\n<RESULT>S1: 1,S2: 0,S3: −1</RESULT>", "pattern"),
        ("S1: 1 (the class is right)\nS2: 0 (none)\n**S3**: -1 (wrong)", "pattern"),
        ("S1 (class): 1/1; S2 = 0; S3: **-1**", "pattern"),
        ("Class: 1 point\nFamily of birds: 0\nSpecies: -1", "pattern"),
        ("S1: 1, S2: 1, S3: -1. No, S2: 0.", "pattern"),
        ('{"result": {"s1": 1, "s2": 0, "s3": -1}}', "pattern"),
    ],
)
def test_several_metrics_are_read_by_slug_or_title_wherever_they_stand(text, path):
    reading = parse_reply(RUBRIC, text)
    assert (reading.value, reading.path) == ({"s1": 1.0, "s2": 0.0, "s3": -1.0}, path)


@pytest.mark.parametrize(
    "text, value",
    [
        ('{"s1": 1, "s2": 2, "s3": 0}', {"s1": 1.0, "s2": "off_scale", "s3": 0.0}),
        ('{"s1": 1, "s2": 0.5, "s3": 0}', {"s1": 1.0, "s2": "off_scale", "s3": 0.0}),
        ('{"s1": 1, "s2": null}', {"s1": 1.0, "s2": "unparsable", "s3": "unparsable"}),
        ('{"s1": 1, "s1": 0, "s2": 0, "s3": 0}', {"s1": "unparsable", "s2": 0.0, "s3": 0.0}),
        ("S1: 1, S2: NA, S3: 0", {"s1": 1.0, "s2": "unparsable", "s3": 0.0}),
        ("S1: 1, S2: 0 or 1, S3: 0", {"s1": 1.0, "s2": "unparsable", "s3": 0.0}),
        ("S1: 1/3, S2: 0, S3: 0", {"s1": "off_scale", "s2": 0.0, "s3": 0.0}),
    ],
)
def test_a_metric_off_its_scale_or_unread_takes_none_of_the_others_along(text, value):
    assert parse_reply(RUBRIC, text).value == value


@pytest.mark.parametrize(
    "text, value",
    [
        ("Feedback: no family. [RESULT] 1", 1.0),
        ("[RESULT] 0\nNo: [result] 1.", 1.0),
        ("<RESULT>S1: 1</RESULT>", 1.0),
        ("[RESULT] S1: 1", 1.0),
        ('{"s1": 0} [RESULT] 1', 1.0),
        ("S1: 1, since it fits", 1.0),
        ("Feedback: good. [RESULT] 7", None),
        ("Feedback: a score of 1.", None),
    ],
)
def test_a_single_metric_is_read_after_result(text, value):
    single = replace(RUBRIC, metrics=PARTS[:1])
    assert parse_reply(single, text).value == (None if value is None else {"s1": value})


def test_several_metrics_are_not_read_after_a_result_without_their_names():
    assert parse_reply(RUBRIC, "[RESULT] 1").cause == "unparsable"


@pytest.mark.parametrize(
    "text, cause",
    [
        ('{"s1": 4, "s2": 9, "s3": 7}', "off_scale"),
        ('{"s1": 4, "s2": "none"}', "off_scale"),
        ('{"s1": true, "s2": null}', "unparsable"),
        ('{"s4": 1}', "unparsable"),
        ("S1: is the class right?", "unparsable"),
        ("As1: 1", "unparsable"),
        ("", "empty"),
    ],
)
def test_without_any_metric_there_is_no_value(text, cause):
    reading = parse_reply(RUBRIC, text)
    assert (reading.value, reading.cause) == (None, cause)


def test_a_metric_with_uneven_points_takes_those_alone():
    metric = Metric("m3", "Species", "?", Scale(0, 5), {0.0: "none", 2.0: "near", 5.0: "right"})
    strategy = replace(RUBRIC, metrics=(metric, PARTS[0]))
    assert parse_reply(strategy, '{"m3": 2, "s1": 1}').value == {"m3": 2.0, "s1": 1.0}
    assert parse_reply(strategy, '{"m3": 3, "s1": 1}').value == {"m3": "off_scale", "s1": 1.0}


@pytest.mark.parametrize(
    "text, value",
    [
        ("<RESULT>peacock, bird</RESULT>", "peacock, bird"),
        ("Here: <result>\npeacock\n</result>", "peacock"),
        ("peacock, bird", "unparsable"),
        ("<RESULT>peacock", "unparsable"),
        ("<RESULT> </RESULT>", "unparsable"),
    ],
)
def test_a_step_that_asks_for_tags_is_read_from_tags(text, value):
    reading = parse_reply(CHAIN, text, spec=step(0))
    assert (reading.value or reading.cause) == value


def test_a_step_that_asks_for_no_tags_passes_its_whole_reply_on():
    assert parse_reply(CHAIN, " Class: bird \n", spec=step(1)) == ParsedReply(
        "Class: bird", "strict"
    )
    assert parse_reply(CHAIN, " \n", spec=step(1)).cause == "empty"
    assert parse_reply(CHAIN, "bird\0", spec=step(1)).value == "bird\ufffd"


def test_a_chain_is_scored_by_its_last_step():
    assert parse_reply(CHAIN, "S1: 1", spec=step(2)) == parse_reply(CHAIN, "S1: 1")
    assert parse_reply(CHAIN, "S1: 1").value["s1"] == 1.0


@pytest.mark.parametrize("strategy", [DETECTION, FLAG, RUBRIC, CHAIN])
def test_a_cut_reply_is_not_read_whatever_the_output(strategy):
    assert (
        parse_reply(strategy, '{"s1": 1, "flag": true}', "length", spec=step(0)).cause
        == "truncated"
    )


def test_parser_names_differ_where_readings_may_and_fit_their_column():
    longer = replace(RUBRIC, metrics=tuple(replace(PARTS[0], slug=f"m{n}") for n in range(40)))
    other = replace(longer, metrics=longer.metrics[:-1])
    untagged = replace(CHAIN, steps=(replace(CHAIN.steps[0], prompt="?"), *CHAIN.steps[1:]))
    retitled = replace(RUBRIC, metrics=(replace(PARTS[0], title="Kind"), *PARTS[1:]))
    unlike = (DETECTION, PHRASES, FLAG, RUBRIC, retitled, CHAIN, untagged, longer, other)
    names = [get_parser_version(strategy) for strategy in unlike]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 80 for name in names)
    assert get_parser_version(DETECTION) == "parse-4 detection strict explained"
    assert get_parser_version(PHRASES) == "parse-4 detection phrases-001 explained"
    assert get_parser_version(
        replace(DETECTION, parser=PARSERS["detection"][0])
    ) == get_parser_version(DETECTION)


PIECES = st.lists(
    st.sampled_from(
        ['{"s1"', ": 1", "}", "{", "s2: ", "0", "</RESULT>", "<RESULT>", '"', ",", "```", "\\(",
         "true", "flag: ", "error", "detection: ", "the response ", "is valid", "contains an error",
         "if ", ". ", "\n", "[["]
    )
).map("".join)  # fmt: skip


@given(st.one_of(st.text(), PIECES))
def test_whatever_the_text_a_reading_has_an_admitted_value_or_a_cause(text):
    for strategy in (DETECTION, PHRASES, FLAG, RUBRIC, CHAIN):
        reading = parse_reply(strategy, text)
        assert (reading.value is None) == bool(reading.cause)
        assert bool(reading.path) or reading.value is None
    for value in (parse_reply(RUBRIC, text).value or {}).values():
        assert value in (-1.0, 0.0, 1.0, "off_scale", "unparsable")
    assert parse_reply(DETECTION, text).value in ("error", "no_error", None)
    assert parse_reply(FLAG, text).value in (True, False, None)
    for number in range(3):
        parse_reply(CHAIN, text, spec=step(number))


@pytest.mark.parametrize(
    "unit",
    [
        *("\n", "! ", '"', '\\"', ",}", '{"s1": 1}\\', '{"scores": {"s1": 1}', "<RESULT>"),
        *("s1: 1, ", "s1 (1", "family of ", "the model response contains ", "response is not "),
        *("response contains a b ", "not a b c that ", "flag: true or ", "true\n", "error or "),
    ],
)
def test_hostile_text_of_any_kind_is_read_within_a_second_or_two(unit):
    text = '{"a": "\\( ' + unit * (200_000 // len(unit))
    started = time.process_time()
    for strategy in (DETECTION, PHRASES, FLAG, RUBRIC, CHAIN):
        parse_reply(strategy, text)
    # linear: 0.1 to 0.5 s; anything that grows with the square takes minutes
    assert time.process_time() - started < 5
