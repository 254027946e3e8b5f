import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.strategies import from_definition, load_all
from judging.strategies.replies import outputs
from judging.strategies.replies.outputs import ParsedReply, get_parser_version, parse_reply

VANILLA, SCORE_ONLY, PAIRWISE, ROUGE, LENGTH = (
    load_all()[slug] for slug in ("vanilla", "vanilla-score", "pairwise", "rouge-l", "length")
)
HALVES = from_definition(
    VANILLA.definition | {"slug": "halves", "scale": {"low": 1, "high": 5, "step": 0.5}}
)
TWO_WAY = from_definition(PAIRWISE.definition | {"slug": "two-way", "verdicts": ["A", "B"]})


def score(text, strategy=SCORE_ONLY):
    reading = parse_reply(strategy, text)
    return reading.value if reading.value is not None else reading.cause


def verdict(text, strategy=PAIRWISE):
    return score(text, strategy)


@pytest.mark.parametrize(
    "finish, cause",
    [
        ("length", "truncated"),
        ("refused", "refused"),
        ("filtered", "filtered"),
        ("other", "interrupted"),
    ],
)
def test_a_cut_reply_is_never_searched_for_an_answer(finish, cause):
    assert parse_reply(SCORE_ONLY, '{"score": 7}', finish) == ParsedReply(None, cause=cause)


@pytest.mark.parametrize("finish", ["stop", "unknown", ""])
def test_any_other_finish_leaves_the_text_to_speak(finish):
    assert parse_reply(SCORE_ONLY, '{"score": 7}', finish) == ParsedReply(7.0, "strict")


@pytest.mark.parametrize(
    "text, value",
    [
        ('{"score": 7}', 7.0),
        ('{"score": 7.0}', 7.0),
        ('{"score": 7e0}', 7.0),
        ('{"score": "7"}', 7.0),
        ('{"score": " 7/10 "}', 7.0),
        ('{"Score": 7}', 7.0),
        ('{"score": 0}', "off_scale"),
        ('{"score": 11}', "off_scale"),
        ('{"score": -7}', "off_scale"),
        ('{"score": 7.5}', "off_scale"),
        ('{"score": "7/100"}', "off_scale"),
        ('{"score": 1e999}', "off_scale"),
        ('{"score": %s}' % ("9" * 5000), "off_scale"),
        ('{"score": true}', "unparsable"),
        ('{"score": null}', "unparsable"),
        ('{"score": [7]}', "unparsable"),
        ('{"score": "seven"}', "unparsable"),
        ('{"score": ""}', "unparsable"),
        ('{"score": NaN}', "unparsable"),
        ('{"score": Infinity}', "unparsable"),
        ('{"score": 7, "score": 8}', "unparsable"),
        ('{"score": 7, "SCORE": 7}', "unparsable"),
    ],
)
def test_a_json_score_is_a_number_on_the_scale_or_nothing(text, value):
    assert score(text) == value


@pytest.mark.parametrize("number", [1, 1.5, 4.5, 5])
def test_half_steps_are_on_a_scale_of_halves(number):
    assert score(f'{{"score": {number}}}', HALVES) == number


@pytest.mark.parametrize("number", [0.5, 1.25, 5.5])
def test_what_is_between_the_halves_or_beyond_the_ends_is_off_the_scale(number):
    assert score(f'{{"score": {number}}}', HALVES) == "off_scale"


def test_a_baseline_says_any_number_that_its_metric_can_give():
    assert score('{"score": 0.3333333333333333}', ROUGE) == 1 / 3
    assert score('{"score": 1.5}', ROUGE) == "off_scale"
    assert score('{"score": 123456}', LENGTH) == 123456.0
    assert score('{"score": 1e999}', LENGTH) == "off_scale"


@pytest.mark.parametrize(
    "text, value",
    [
        ("Solid work. [[7]]", 7.0),
        ("Feedback: solid work. [RESULT] 7", 7.0),
        ("Feedback: solid work. [RESULT] (7)", 7.0),
        ("Feedback: solid work. [RESULT] **7**", 7.0),
        ("[RESULT] 7, though [RESULT] (a whole number from 1 to 10)", "unparsable"),
        ("<RESULT>7</RESULT>", 7.0),
        ('{"explanation": "so \\(x\\) is", "score": 7}', 7.0),
        ("Score: 7", 7.0),
        ("**Score:** 7/10\nIt is clear.", 7.0),
        ("Overall score = 7 out of 10.", 7.0),
        ("Score (1-10): 7", 7.0),
        ("## Score:\n\n**7**", 7.0),
        ("Rating [[3]], no, on reflection [[7]]", 7.0),
        ('{"explanation": "He said "no" twice", "score": 7}', 7.0),
        ('{"result": {"score": 7}}', 7.0),
        ("It deserves 7/10.", 7.0),
        ("First 3/10, in the end 7 out of 10", 7.0),
        ("7", 7.0),
        ("**7**", 7.0),
        ("7/10", 7.0),
        ("Score: 7. 3 points were lost for style.", 7.0),
        ("Score: 12", "off_scale"),
        ("Score: -7", "off_scale"),
        ("Score: −7", "off_scale"),
        ("Score: 7.5", "off_scale"),
        ("Score: 70/100", "off_scale"),
        ("[[7]] or rather [[eight]]", "unparsable"),
        ("Score: 7-8", "unparsable"),
        ("Score: 7 or 8", "unparsable"),
        ("Score: 75%", "unparsable"),
        ("Score: 7,5", "unparsable"),
        ("On 7/10/2024 the answer was given.", "unparsable"),
        ("It deserves 12/10.", "off_scale"),
        ("7/10, since 3/4 of the steps are right and 1/100 is noise", 7.0),
        ("3/4 of the steps are right", "unparsable"),
        ("The score is high.", "unparsable"),
        ("I counted 7 mistakes", "unparsable"),
        ("", "empty"),
        ("   \n", "empty"),
    ],
)
def test_a_score_in_prose_is_read_where_it_is_marked_and_the_last_counts(text, value):
    assert score(text) == value


@pytest.mark.parametrize(
    "text, value",
    [
        ('{"verdict": "A"}', "A"),
        ('{"verdict": "b"}', "B"),
        ('{"verdict": "Response B."}', "B"),
        ('{"verdict": "both good"}', "both good"),
        ('{"verdict": "Both_Unacceptable"}', "both unacceptable"),
        ('{"verdict": "[[A]]"}', "A"),
        ('{"verdict": "A is better"}', "A"),
        ('{"verdict": "tie"}', "unparsable"),
        ('{"verdict": "C"}', "unparsable"),
        ('{"verdict": "A or B"}', "unparsable"),
        ('{"verdict": "A tie"}', "unparsable"),
        ('{"verdict": ""}', "unparsable"),
        ('{"verdict": 1}', "unparsable"),
        ('{"verdict": ["A"]}', "unparsable"),
        ('{"verdict": "A", "verdict": "B"}', "unparsable"),
        ("So it is [[A]].", "A"),
        ("Verdict: A", "A"),
        ("**Verdict:** B, because it is correct.", "B"),
        ("Final verdict: Response A is better.", "A"),
        ("Verdict: both good\nBoth are right.", "both good"),
        ('{"explanation": "says "x"", "verdict": "B"}', "B"),
        ('{"verdict": "B", "explanation": "says "x" where y is meant"}', "B"),
        ("A", "A"),
        ("Both good.", "both good"),
        ("[[A]] at first sight, but then [[B]]", "B"),
        ("[[A]] at first sight, but then [[C]]", "unparsable"),
        ("Verdict: A\nVerdict: tie", "unparsable"),
        ("Verdict: A or B", "unparsable"),
        ("Verdict: A/B", "unparsable"),
        ("Verdict: A, B or both good", "unparsable"),
        ('Choose a verdict: "A", "B", "both good" or "both unacceptable"', "unparsable"),
        ("Verdict: A tie between the two, more or less, in all respects", "unparsable"),
        ("Verdict: neither", "unparsable"),
        ("A good answer would name the river.", "unparsable"),
        ("A and B", "unparsable"),
    ],
)
def test_a_verdict_is_one_of_those_offered_and_the_last_counts(text, value):
    assert verdict(text) == value


def test_a_verdict_that_this_strategy_did_not_offer_is_no_answer():
    assert verdict("[[both good]]", TWO_WAY) == "unparsable"
    assert verdict("[[A]] no, [[both good]]", TWO_WAY) == "unparsable"
    assert verdict("[[A]]", TWO_WAY) == "A"


def test_an_explanation_is_kept_only_where_it_was_asked_for():
    text = '{"explanation": "Two rivers are swapped.", "score": 7}'
    assert parse_reply(VANILLA, text).explanation == "Two rivers are swapped."
    assert parse_reply(SCORE_ONLY, text).explanation == ""


def test_an_explanation_stays_when_the_score_is_no_use():
    reading = parse_reply(VANILLA, '{"explanation": "Fine.", "score": 11}')
    assert reading == ParsedReply(None, "strict", "off_scale", "Fine.")


def test_an_explanation_holds_nothing_that_a_database_refuses():
    reading = parse_reply(VANILLA, '{"explanation": "a\\u0000b\\ud800c", "score": 7}')
    assert reading.explanation == "a\ufffdb?c"
    assert reading.explanation.encode()


def test_strategies_that_read_alike_share_a_parser_name_and_others_do_not():
    slugs = [
        "length",
        "pairwise",
        "pairwise-verdict",
        "reference",
        "rouge-l",
        "rouge-l-unicode",
        "vanilla",
        "vanilla-score",
    ]
    names = {slug: get_parser_version(load_all()[slug]) for slug in slugs}
    assert names["vanilla"] == names["reference"] == "parse-4 score 1..10/1 explained"
    assert len({*names.values(), get_parser_version(HALVES), get_parser_version(TWO_WAY)}) == 8
    assert all(len(name) <= 80 for name in names.values())


@given(st.text())
def test_whatever_the_text_there_is_either_a_value_or_a_cause(text):
    for strategy in (VANILLA, PAIRWISE, LENGTH):
        reading = parse_reply(strategy, text)
        assert (reading.value is None) == bool(reading.cause)
        assert outputs.parse_reply(strategy, text) == reading


@given(
    st.lists(
        st.sampled_from(
            ['{"score"', ": 7", "}", "{", "[[", "]]", "Score: ", "verdict", '"', "A", "```", "/10"]
        )
    ).map("".join)
)
def test_pieces_of_answers_in_any_order_give_an_admitted_value_or_a_cause(text):
    value = parse_reply(SCORE_ONLY, text).value
    assert value is None or VANILLA.scale.admits(value)
    assert parse_reply(PAIRWISE, text).value in {None, *PAIRWISE.verdicts}


@pytest.mark.parametrize(
    "unit",
    [
        *("{", '{"', '{"a":', '{"a":{},', '{"score": 7} ', '{"a": [' + "1," * 500, "```json\n{"),
        *('"', "[[", "score: ", "score (1", 'verdict: "A" or ', "7 out of ", "1", " ", "\n"),
    ],
)
@pytest.mark.parametrize("shell", ["%s", 'x {"score": "%s"}'])
def test_a_megabyte_of_hostile_text_is_read_within_seconds(unit, shell):
    text = shell % (unit * (1_000_000 // len(unit)))
    started = time.process_time()
    for strategy in (VANILLA, PAIRWISE):
        parse_reply(strategy, text)
    assert time.process_time() - started < 6
