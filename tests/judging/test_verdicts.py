"""What recorded replies say of an item, by what was stored and by our parser."""

from typing import Any

import pytest

from formats.rows import BadRow, Row
from judging import strategies
from judging.runs.recorded import transcripts, verdicts
from judging.runs.recorded.transcripts import Transcript
from judging.runs.recorded.verdicts import JudgedPlace

ERROR = "Therefore, the model response contains an error."
NO_ERROR = "Therefore, the model response contains no error."


def told(*rows: dict[str, Any], slug: str = "detect-1a") -> list[Transcript]:
    numbered = [Row("f", line, {"item": "k", **row}) for line, row in enumerate(rows, start=1)]
    found = list(transcripts.parse_rows(numbered, strategies.load_all()[slug]))
    assert all(isinstance(one, Transcript) for one in found), found
    return [one for one in found if isinstance(one, Transcript)]


def judged(*rows: dict[str, Any], choice: str = "stored", slug: str = "detect-1a") -> JudgedPlace:
    (one,) = verdicts.judge_places(
        strategies.load_all()[slug], told(*rows, slug=slug), choice
    ).values()
    assert isinstance(one, JudgedPlace), one
    return one


def fault(*rows: dict[str, Any], choice: str = "stored", slug: str = "detect-1a") -> BadRow:
    (one,) = verdicts.judge_places(
        strategies.load_all()[slug], told(*rows, slug=slug), choice
    ).values()
    assert isinstance(one, BadRow), one
    return one


def test_both_verdicts_are_kept_and_the_chosen_one_decides() -> None:
    row = {"text": NO_ERROR, "value": "error"}
    by_stored, by_parsed = judged(row), judged(row, choice="parsed")
    assert (by_stored.decides.result, by_parsed.decides.result) == ("detected", "undetected")
    for one in (by_stored, by_parsed):
        kept = {name: one.values[name] for name in ("stored", "parsed", "differs")}
        assert kept == {"stored": "error", "parsed": "no_error", "differs": True}


def test_verdicts_that_agree_do_not_differ() -> None:
    one = judged({"text": ERROR, "value": "error"})
    assert not one.differs
    assert "differs" not in one.values


def test_a_verdict_against_none_differs() -> None:
    one = judged({"text": "Who knows.", "value": "error"})
    assert one.differs
    assert one.values["parsed"] is None
    assert judged({"text": "Who knows.", "value": None}).decides.cause == "unparsable"


def test_what_was_decided_of_samples_stands_beside_the_votes_of_ours() -> None:
    texts = (ERROR, ERROR, NO_ERROR, "Hm.", "Hm.")
    rows = [
        {"sample": n, "text": text, "value": None, "decided": "error"}
        for n, text in enumerate(texts)
    ]
    one = judged(*rows, slug="detect-self-consistency")
    # Two of five are no majority.
    assert (one.values["stored"], one.values["parsed"]) == ("error", "no_error")
    assert one.decides.result == "detected"


def test_a_folded_verdict_alone_decides() -> None:
    assert judged({"decided": "no_error"}, slug="majority").decides.detail == "no_error"
    assert judged({"decided": None}, slug="majority").decides.cause == "unparsable"


def test_a_reply_that_never_came_is_missing_by_its_cause() -> None:
    one = judged({"cause": "refused"}, choice="parsed")
    assert (one.decides.result, one.decides.cause) == ("missing", "refused")


def test_two_scores_decide_an_item_of_perturbed_answers() -> None:
    rows = [{"role": "gold", "value": 9}, {"role": "perturbed", "value": 4}]
    one = judged(*rows, slug="vanilla-score")
    assert (one.decides.result, one.decides.detail) == ("detected", "lower")
    assert one.parsed is None


@pytest.mark.parametrize(
    ("rows", "choice", "field", "said"),
    [
        ([{"text": "a"}, {"text": "b"}], "parsed", "item", "already has this reply, in f, line 1"),
        ([{"text": "a", "sample": 1}], "parsed", "item", "no reply for response 0, sample 0"),
        ([{"text": "a"}], "stored", "value", "--verdicts parsed"),
        ([{"value": "error"}], "parsed", "text", "--verdicts stored"),
        (
            [{"text": "a", "decided": "error"}, {"text": "b", "sample": 1}],
            "stored",
            "decided",
            "two",
        ),
    ],
)
def test_what_cannot_be_told_is_a_bad_row_with_a_remedy(
    rows: list[dict[str, Any]], choice: str, field: str, said: str
) -> None:
    bad = fault(*rows, choice=choice)
    assert bad.field == field
    assert said in bad.reason


def test_an_item_without_one_of_its_calls_is_a_bad_row() -> None:
    assert (
        "perturbed 0, sample 0" in fault({"role": "gold", "value": 9}, slug="vanilla-score").reason
    )


@pytest.mark.parametrize(
    ("row", "wanted", "chosen"),
    [
        ({"text": "a", "value": "error"}, "", "stored"),
        ({"text": "a", "value": "error"}, "parsed", "parsed"),
        ({"text": "a"}, "", "parsed"),
        ({"text": "a"}, "stored", "parsed"),
        ({"value": "error"}, "parsed", "stored"),
    ],
)
def test_of_two_kinds_of_verdict_the_only_one_there_is_decides(
    row: dict[str, Any], wanted: str, chosen: str
) -> None:
    assert verdicts.choose_verdicts(told(row), wanted) == chosen
