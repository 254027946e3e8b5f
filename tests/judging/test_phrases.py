import pytest

from judging.strategies.replies.phrases import find_last_statement, find_published_verdict


def said(text):
    found = find_last_statement(text)
    return found.verdict if found else None


@pytest.mark.parametrize(
    "text, verdict",
    [
        ("Therefore, the model response contains an error.", "error"),
        ("Therefore, the model response contains no error.", "no_error"),
        ("Therefore, the model response is not valid.", "error"),
        ("Therefore, the model response is valid.", "no_error"),
        ("In short, the response is correct", "no_error"),
        # the phrase for "no error" wins, wherever either stands
        ("The response is valid English. It contains an error.", "no_error"),
        ("It contains no error in step 1, but contains an error in step 2.", "no_error"),
        # any subject will do
        ("Step 3 contains an error.", "error"),
        # nothing but these phrases counts, and letter case matters
        ("The model response contains errors.", None),
        ("The model response does not contain an error.", None),
        ("THE RESPONSE IS VALID", None),
        ("The response is incorrect.", None),
        ("", None),
    ],
)
def test_the_published_verdicts_follow_the_phrases_of_the_study(text, verdict):
    assert find_published_verdict(text) == verdict


@pytest.mark.parametrize(
    "text, verdict",
    [
        ("Therefore, the model response contains an error.", "error"),
        ("Therefore, the model response contains no error.", "no_error"),
        ("**Therefore, the model response is not valid.**", "error"),
        ("Therefore, the model response is valid.", "no_error"),
        ("the response is valid", "no_error"),
        ("The Response Is Invalid!", "error"),
        ("The response contains errors.", "error"),
        ("The model response contains a minor calculation error.", "error"),
        ("The model response therefore contains at least one error, in step 2.", "error"),
        ("The model response does not contain any errors.", "no_error"),
        ("The model response doesn't have an error.", "no_error"),
        ("The response is error-free.", "no_error"),
        ("The response is not entirely correct, since step 2 is wrong.", "error"),
        ("The response is valid and contains no errors.", "no_error"),
        ("The model response is not valid due to step 2.", "error"),
    ],
)
def test_a_statement_about_the_response_is_read_in_either_wording(text, verdict):
    assert said(text) == verdict


def test_the_last_statement_decides():
    assert said("The response is correct. No: the response contains an error. Well.") == "error"
    assert said("The response contains an error.\nIn all, the response is valid.") == "no_error"


@pytest.mark.parametrize(
    "text",
    [
        "The model response contains an error, and the model response contains no error.",
        'Say "the response contains an error." or "the response contains no error."',
        "The response is valid but the response is not correct.",
        "The response is valid with a minor modification.",
        "The response is valid if step 2 is left out.",
        "The response is not valid in step 2.",
        "The response is correct in its first step.",
        "Overall, the model response contains no major errors.",
        "The response contains an error. The response contains no other errors.",
    ],
)
def test_what_contradicts_itself_or_says_it_of_a_part_decides_nothing(text):
    assert said(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "Step 3 contains an error.",
        "The solution is valid.",
        "If 3 were meant, the response contains an error.",
        "We check whether the model response contains an error.",
        "It is not clear that the response contains an error.",
        "I cannot say that the model response is valid.",
        "The corrected response contains no errors.",
        "The response is validated.",
        "The response contains an erroneous step.",
        "",
    ],
)
def test_what_is_not_said_of_the_response_or_not_outright_is_no_statement(text):
    assert said(text) is None


def test_a_hedge_stands_before_what_it_hedges_and_in_the_same_sentence():
    assert said("The response contains an error, which could be mended.") == "error"
    assert said("It could be shorter. The response contains no error.") == "no_error"


def test_a_statement_says_where_its_sentence_stands():
    text = "Step 2 is right. The response is valid. Fine."
    found = find_last_statement(text)
    assert text[found.start : found.end] == "The response is valid."
