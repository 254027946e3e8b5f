import re

import pytest

from judging.strategies.replies import outputs
from judging.strategies.replies.parsing import (
    AnswerPatterns,
    FoundAnswer,
    MarkedPhrase,
    build_bare_finder,
    build_last_finder,
    build_mark_pattern,
    find_answer,
    find_tagged,
)

PATTERNS = AnswerPatterns(
    marked=build_last_finder(build_mark_pattern("score", r"\d+")),
    loose=(build_last_finder(re.compile(r"(\d+)/10")), build_bare_finder(re.compile(r"(\d+)"))),
)


def found(text):
    return find_answer(text, frozenset({"score"}), PATTERNS)


def said(answer):
    """The answer's phrase, or what stands under its key."""
    return str(answer.raw["score"] if isinstance(answer.raw, dict) else answer.raw)


def test_the_parser_version_is_the_same_under_both_names():
    assert outputs.PARSER == "parse-4"


@pytest.mark.parametrize(
    "text, path",
    [
        ('{"score": 7}', "strict"),
        (' \n{"score": 7}\n', "strict"),
        ('```json\n{"score": 7}\n```', "fenced"),
        ('Here it is:\n```\n{"score": 7}\n```\nThat is all.', "fenced"),
        ('Here it is: {"score": 7}', "embedded"),
        ('{"score": 7} That is all.', "embedded"),
        ('[{"score": 7}]', "embedded"),
        ('{"explanation": "two\nlines", "score": 7}', "repaired"),
        ('```json\n{"explanation": "two\nlines", "score": 7}\n```', "repaired"),
        ('{"explanation": "so \\( x \\) is", "score": 7}', "repaired"),
        ('{"explanation": "x", "score": 7,}', "repaired"),
        ("[[7]]", "pattern"),
        ("<RESULT>7</RESULT>", "pattern"),
        ("<result> 7 </result>", "pattern"),
        ("Score: 7", "pattern"),
        ("7/10", "pattern"),
        ("7", "pattern"),
    ],
)
def test_an_answer_says_by_which_way_it_was_found(text, path):
    answer = found(text)
    assert (said(answer).strip(), answer.path) == ("7", path)


@pytest.mark.parametrize(
    "text",
    [
        '{"score": 3} and then {"score": 7}',
        '```json\n{"score": 3}\n```\nOn reflection:\n```json\n{"score": 7}\n```',
        '```json\n{"score": 3}\n```\nOn reflection: {"score": 7}',
        '[[3]] {"score": 7}',
        '{"score": 3} [[7]]',
        '{"score": 3}\nFinal score: 7',
        "<think>score: 3</think> score: 7",
        '{"score": 7} {"other": 3}',
        '{"score": 7, "example": {"score": 3}} ok',
        '{"score": 7} The reason for the score: it is clear. Not 3/10.',
        'In \\frac{1}{2} and {x} there is nothing. {"score": 7}',
        '{"explanation": "unclosed, {"score": 7}',
    ],
)
def test_the_last_answer_counts_and_nothing_that_merely_looks_like_one(text):
    assert said(found(text)) == "7"


@pytest.mark.parametrize("text", ["", "nothing", '{"other": 7}', "[1, 2]", "null", "score:"])
def test_a_reply_without_an_answer_has_none(text):
    assert found(text) is None


def test_the_key_decides_even_where_its_value_cannot_be_used():
    assert found('{"score": 7, "Score": 8} ') == FoundAnswer({"score": None}, "strict", "")
    assert found('ok {"score": NaN}') == FoundAnswer({"score": None}, "embedded", "")


def test_a_key_that_stands_twice_elsewhere_does_no_harm():
    answer = found('{"note": 1, "note": 2, "explanation": "x", "score": 7}')
    assert (said(answer), answer.path, answer.explanation) == ("7", "strict", "x")


@pytest.mark.parametrize(
    "text, explanation",
    [
        ('{"explanation": "Clear.", "score": 7}', "Clear."),
        ('{"explanation": ["Clear."], "score": 7}', ""),
        ('{"reasoning": "Clear.", "score": 7}', "Clear."),
        ('{"Feedback": "Clear.", "score": 7}', "Clear."),
        ('So: {"score": 7, "rationale": "Clear."}', "Clear."),
        (
            '{"rationale": "Second.", "explanation": " ", "reasoning": "First.", "score": 7}',
            "First.",
        ),
        ("Clear.\nScore: 7", "Clear."),
        ("[[7]] since it is clear", "since it is clear"),
        ("Score: 7", ""),
    ],
)
def test_the_explanation_is_the_one_in_the_object_or_what_stands_round_the_mark(text, explanation):
    assert found(text).explanation == explanation


def test_where_the_search_gives_up_no_earlier_answer_counts():
    nested = '{"a":' * 100_000
    assert found('{"score": 7} ') is not None
    assert found('{"score": 7} ' + nested + ' {"score": 3}') is None


def test_many_broken_objects_in_a_reply_of_common_length_do_not_hide_its_answer():
    code = 'print({"x" + name})\n' * 300
    assert said(found(code + '{"score": 7}')) == "7"


def test_what_is_mended_is_what_cannot_touch_the_answer():
    answer = found('{"explanation": "\\(a\\) and \\"b\\", \\u00e4", "score": 7,\n}')
    fields = {"explanation": '\\(a\\) and "b", ä', "score": 7}
    assert answer == FoundAnswer(fields, "repaired", fields["explanation"])


@pytest.mark.parametrize(
    "text", ['{"score": 7', '{"score": 7 "other": 3}', '{"other": "x, "score": 7']
)
def test_no_brace_or_quote_is_put_in(text):
    answer = found(text)
    assert answer is None or answer.path == "pattern"


def test_a_mark_behind_a_mended_object_counts_instead_of_it():
    answer = found('{"explanation": "\\(x\\)", "score": 3} On reflection: [[7]]')
    assert (answer.raw, answer.path) == ("7", "pattern")


@pytest.mark.parametrize(
    "text, phrase",
    [
        ("<RESULT>bird</RESULT>", "bird"),
        ("<result>\nClass: bird\nFamily: None\n</result> ", "Class: bird\nFamily: None"),
        ("<RESULT>bird</RESULT> or rather <RESULT>crane</RESULT>", "crane"),
        ("<RESULT>bird <RESULT>crane</RESULT>", "crane"),
        ("<RESULT>bird</RESULT> and <RESULT>crane", "bird"),
    ],
)
def test_the_last_tags_that_are_closed_hold_the_answer(text, phrase):
    assert find_tagged(text, 0).phrase == phrase


@pytest.mark.parametrize("text", ["", "bird", "<RESULT>bird", "bird</RESULT>", "</RESULT><RESULT>"])
def test_tags_without_an_end_hold_none(text):
    assert find_tagged(text, 0) is None


def test_a_finder_begins_where_it_is_told_to():
    assert find_tagged("<RESULT>a</RESULT> b", 5) is None
    assert build_last_finder(re.compile(r"(\d)"))("1 2 3", 4) == MarkedPhrase("3", 4, 5)
    assert build_bare_finder(re.compile(r"(\d)"))("1 2", 1) == MarkedPhrase("2", 1, 3)
