"""Which replies of generators are unfit beside the texts of their item, and which only look it."""

import time
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from annotation.items import taxonomy
from formats import fbi
from formats.rows import Limits, Row
from judging.strategies import load_all
from judging.strategies.replies.outputs import ParsedReply
from judging.strategies.replies.unusable_texts import find_cause, mark_unusable
from tests.services.scripted_forms import GERMAN

ENTITY, CLAIMS = load_all()["generate-entity"], load_all()["generate-claims"]
SAID_ANEW = load_all()["generate-score-invariant"]
GOLD = (
    "The Loire is the longest river of France. It rises in the Ardèche and flows to the west, where"
    " it meets the Atlantic at Saint-Nazaire. The Seine is the one that flows through Paris."
)
TEXTS = {"prompt": "Which is the longest river of France?", "gold": GOLD}
CHANGED = GOLD.replace("Saint-Nazaire", "Bordeaux")
CLAIM = "The Loire meets the Atlantic at Bordeaux, and no longer at Saint-Nazaire."
WHY = "It ends at Saint-Nazaire."


def said(perturbed: str, claim: str = CLAIM, rationale: str = WHY) -> dict[str, str]:
    return {"perturbed": perturbed, "claim": claim, "rationale": rationale}


@pytest.mark.parametrize(
    "value",
    [
        said(CLAIM, CHANGED),
        said(WHY, CLAIM, CHANGED),
        said(CLAIM, CHANGED + " It is a wide river in summer too, with many islands of sand."),
        said("“Saint-Nazaire” was changed to “Bordeaux”.", CHANGED),
    ],
)
def test_parts_that_stand_in_each_others_places_are_seen(value: dict[str, str]) -> None:
    assert find_cause(ENTITY, value, TEXTS) == "swapped"


LAST = " The Seine is the one that flows through Paris."
MORE = "Its banks are low, and no dam stops it, so that a wet spring floods the meadows for weeks."


@pytest.mark.parametrize(
    "value",
    [
        said(CHANGED),
        # What was left out is most of the answer, and the claim quotes it.
        said(LAST, f"Left out: “{GOLD.removesuffix(LAST)}”"),
        # Few words stay, and the claim quotes all of it before and after.
        said("France has no longer stream.", f"“{GOLD}” became “France has no longer stream.”"),
        # Little stays, and the claim says so at length in words of its own.
        said("A river.", f"All of it went: where the river is, and what the sea is. {MORE}"),
        # Much was put in, and the claim quotes where.
        said(f"{GOLD} {MORE}", f"More stands behind: “{GOLD[:88]}”."),
    ],
)
def test_an_answer_of_which_little_is_left_is_no_claim(value: dict[str, str]) -> None:
    assert find_cause(ENTITY, value, TEXTS) == ""


@pytest.mark.parametrize(
    "value", [said(CLAIM, f"“{CLAIM.upper()}”"), said(WHY, rationale=f"  {WHY.lower()}")]
)
def test_an_answer_that_is_the_claim_is_none(value: dict[str, str]) -> None:
    assert find_cause(ENTITY, value, TEXTS) == "swapped"
    assert find_cause(SAID_ANEW, value, TEXTS) == ""


def test_of_an_answer_that_keeps_the_text_a_fifth_of_the_words_is_the_gold_answers() -> None:
    gold = "one two three four five six seven eight nine ten"
    assert find_cause(ENTITY, said("One more stands here now."), {"gold": gold}) == ""
    assert find_cause(ENTITY, said("One more stands here by now."), {"gold": gold}) == "unrelated"
    assert (
        find_cause(ENTITY, said("No word of it stays."), {"gold": gold.removesuffix(" ten")}) == ""
    )


@pytest.mark.parametrize("strategy", ["generate-score-invariant", "generate-assumptions"])
def test_what_may_be_written_anew_needs_no_word_of_the_gold_answer(strategy: str) -> None:
    assert find_cause(load_all()[strategy], said("Nobody knows."), TEXTS) == ""


def test_scripts_without_spaces_are_compared_letter_by_letter() -> None:
    gold = "北京是中国的首都。它位于华北平原的北部。"
    texts = {"gold": gold}
    assert (
        find_cause(ENTITY, said(gold.replace("北京", "上海").replace("北部", "南部")), texts) == ""
    )
    assert find_cause(ENTITY, said("香蕉很好吃，我每天早上都要买五个回家。"), texts) == "unrelated"


def test_published_pairs_are_related_unless_an_assumption_was_made(shared_data: Path) -> None:
    found = Counter[str]()
    for row in islice(fbi.read_rows(shared_data / "fbi" / "data.zip", Limits()), 0, None, 10):
        assert isinstance(row, Row)
        texts = {name: str(row.values[name]) for name in ("gold", "perturbed")}
        strategy = replace(ENTITY, category=str(row.values["category"]))
        strategy = strategy.with_categories(taxonomy.load_shipped())
        found[find_cause(strategy, said(texts["perturbed"]), texts)] += 1
    assert found["unrelated"] == 0
    assert found.total() > 200


@pytest.mark.parametrize(
    ("gold", "perturbed", "claim"),
    [
        ("Paris.", "London.", "Paris was replaced."),
        ("Paris.", "London.", "London"),
        ("The answer is 42.", "The answer is 43.", "The answer is 42 became another one."),
    ],
)
def test_a_claim_about_a_very_short_answer_may_quote_it(
    gold: str, perturbed: str, claim: str
) -> None:
    assert find_cause(ENTITY, said(perturbed, claim), {"gold": gold}) == ""


def test_white_space_alone_makes_no_perturbed_answer() -> None:
    assert find_cause(ENTITY, said(GOLD.replace(". ", ".\n\n")), TEXTS) == "echoed"
    assert find_cause(ENTITY, said(GOLD.replace("Loire", "loire")), TEXTS) == ""


@pytest.mark.parametrize(("words", "found"), [(10, "swapped"), (9, "")])
def test_a_part_with_half_of_the_gold_answers_words_is_long_enough(words: int, found: str) -> None:
    gold = "one two three four five six seven eight nine ten " * 2
    part = " ".join(gold.split()[:words])
    assert find_cause(ENTITY, said("One word was changed.", part), {"gold": gold}) == found


def test_the_longest_texts_are_compared_in_no_time() -> None:
    begun = time.monotonic()
    gold, answer = ("a b " * 1_000_000, "b a " * 1_000_000)
    assert find_cause(ENTITY, said(answer, gold + "."), {"gold": gold}) == "swapped"
    assert time.monotonic() - begun < 20


def test_another_language_is_no_perturbed_answer() -> None:
    assert find_cause(ENTITY, said(GERMAN), TEXTS) == "language"
    assert find_cause(ENTITY, said(GERMAN), {"gold": GERMAN.replace("Auge", "Ohr")}) == ""


def test_of_several_gold_answers_one_that_fits_is_enough_and_none_may_come_back() -> None:
    golds = {"gold": [GERMAN, GOLD]}
    assert find_cause(ENTITY, said(CHANGED), golds) == ""
    assert find_cause(ENTITY, said(GERMAN + " "), golds) == "echoed"
    assert find_cause(ENTITY, said(CHANGED), {"gold": []}) == ""


def test_an_input_may_not_be_the_prompt_nor_in_another_language() -> None:
    def made(text: str) -> dict[str, str]:
        return {"input": text, "context": GOLD, "rationale": WHY}

    seed = {"prompt": GOLD}
    assert find_cause(CLAIMS, made(GOLD + "\n"), seed) == "echoed"
    assert find_cause(CLAIMS, made(GERMAN), seed) == "language"
    assert find_cause(CLAIMS, made(f"Is this so? {CLAIM}"), seed) == ""
    assert find_cause(CLAIMS, made(GOLD), {"input": GOLD}) == "echoed"
    assert find_cause(CLAIMS, made(GOLD), {}) == ""


def test_an_answer_may_be_anything_and_what_was_not_read_keeps_its_cause() -> None:
    assert find_cause(load_all()["generate-response"], GOLD, {"prompt": GOLD}) == ""
    unread = ParsedReply(None, cause="unparsable")
    assert mark_unusable(ENTITY, unread, TEXTS) is unread
    fit = ParsedReply(said(CHANGED), "strict")
    assert mark_unusable(ENTITY, fit, TEXTS) is fit
    assert mark_unusable(ENTITY, ParsedReply(said(GOLD), "fenced"), TEXTS) == ParsedReply(
        None, "fenced", "echoed"
    )
