"""Each perturber makes what it claims, and nothing else."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perturbers.changes import Perturbation
from perturbers.flags import find_flags
from perturbers.registry import PERTURBERS, perturb
from perturbers.sentences import overlaps

LIST = "Do this:\n1. Boil the water.\n2. Add the tea leaves.\n3. Wait for four minutes."


def made(slug: str, gold: str, *, prompt: str = "", seed: str = "s") -> Perturbation:
    found = perturb(PERTURBERS[slug], gold, prompt=prompt, seed=seed)
    assert found is not None
    return found


def every(slug: str, gold: str, *, prompt: str = "") -> set[str]:
    """What some seeds make of a text."""
    return {made(slug, gold, prompt=prompt, seed=str(seed)).response for seed in range(40)}


def test_a_word_is_misspelt_by_its_inner_letters_alone() -> None:
    for response in every("spelling", "A separate entrance is better."):
        wrong = [one for one in response.split() if one not in "A separate entrance is better."]
        assert len(wrong) == 1
        assert (wrong[0][0], wrong[0].rstrip(".")[-1]) in {("s", "e"), ("e", "e"), ("b", "r")}


@pytest.mark.parametrize(
    "gold",
    [
        "`separate` and $separate$ and https://separate.example/separate",
        "Separate Entrance",
        "a cat sat on it",
        "[separate entrance]",
        "self-separate",
    ],
)
def test_names_short_words_and_what_is_no_prose_are_never_misspelt(gold: str) -> None:
    assert perturb(PERTURBERS["spelling"], gold) is None


def test_a_misspelling_is_no_other_word() -> None:
    assert "It was casual." not in every("spelling", "It was causal.")
    assert "the sentence and the senetnce" not in every("spelling", "the sentence and the senetnce")


@pytest.mark.parametrize(
    ("gold", "pattern"),
    [
        ("About 1,234,000 people.", r"About \d,\d{3},000 people\."),
        ("It weighs 3.50 kg.", r"It weighs \d\.\d\d kg\."),
        ("Some 45% agree.", r"Some \d\d% agree\."),
        ("It began in 1914.", r"It began in 19\d\d\."),
        ("A spider has eight legs.", r"A spider has [a-z]+ legs\."),
        ("All 100% agree.", r"All [789]\d% agree\."),
    ],
)
def test_a_number_keeps_its_format(gold: str, pattern: str) -> None:
    for response in every("numbers", gold):
        assert response != gold
        assert re.fullmatch(pattern, response), response


@pytest.mark.parametrize(
    "gold", ["1. First\n2. Second", "H2O and COVID-19", "version 1.2.3", "on 2020-01-02", "x_1^2"]
)
def test_what_only_looks_like_a_number_stays(gold: str) -> None:
    assert perturb(PERTURBERS["numbers"], gold) is None


def test_a_unit_becomes_one_that_measures_the_same() -> None:
    assert every("units", "It is 5 km away.") == {
        f"It is 5 {unit} away." for unit in ("mm", "cm", "m")
    }
    assert every("units", r"\[ W = 50 \, \text{J} \]") == {r"\[ W = 50 \, \text{kJ} \]"}
    assert every("units", "4 square feet") == {
        f"4 square {unit}" for unit in ("inches", "yards", "miles")
    }
    assert perturb(PERTURBERS["units"], "5 meals and 3\nm") is None


def test_a_statement_is_negated_and_a_negation_is_lifted() -> None:
    one = made("negation", "Ice is lighter than water.")
    assert one.response == "Ice is not lighter than water."
    assert one.claim == "“is” is changed to “is not” in “Ice is lighter than water.”."
    assert made("negation", "Whales are not fish.").response == "Whales are fish."


@pytest.mark.parametrize(
    "gold",
    ["If it is cold, stay in.", "Who is there?", "There is no way.", "`it is so`.", "They were."],
)
def test_what_states_nothing_is_not_negated(gold: str) -> None:
    assert perturb(PERTURBERS["negation"], gold) is None


def test_a_sentence_is_left_out_with_its_space() -> None:
    one = made("removal", "Plants need light to grow. They also need water and air. And so on.")
    assert one.response == "Plants need light to grow. And so on."
    assert one.claim == "The sentence “They also need water and air.” is left out."


def test_the_only_sentence_of_a_line_is_never_left_out() -> None:
    assert perturb(PERTURBERS["removal"], LIST) is None
    assert perturb(PERTURBERS["shuffle"], LIST) is None


def test_sentences_change_places_within_their_line() -> None:
    gold = "First he packed his old bag. Then he caught the late bus."
    assert made("shuffle", gold).response == (
        "Then he caught the late bus. First he packed his old bag."
    )


def test_steps_change_places_and_keep_their_numbers() -> None:
    assert every("steps", LIST) == {
        "Do this:\n1. Add the tea leaves.\n2. Boil the water.\n3. Wait for four minutes.",
        "Do this:\n1. Boil the water.\n2. Wait for four minutes.\n3. Add the tea leaves.",
    }


def test_a_name_becomes_another_one_of_the_text() -> None:
    gold = "The road leads from Vienna past the river to Paris. It was built by Newton himself."
    assert every("entities", gold) == {
        gold.replace("Vienna", "Paris"),
        gold.replace("Paris", "Vienna"),
    }


def test_headings_and_what_is_also_spelled_small_are_no_names() -> None:
    gold = "- and **the Plastic Bag**: from Paper to Plastic, of paper and plastic alike."
    assert perturb(PERTURBERS["entities"], gold) is None


def test_errors_of_solutions() -> None:
    gold = r"7 apples cost 8 each: 7 × 8 = 56. So the answer is \boxed{56}, not 3."
    for response in every("results", gold):
        assert response.startswith("7 apples cost 8 each: 7 × 8 = ")
        assert response.endswith(r". So the answer is \boxed{56}, not 3.")
    for response in every("final-answer", gold):
        assert response.startswith("7 apples cost 8 each: 7 × 8 = 56. So the answer is \\boxed{")
        assert response.endswith("}, not 3.")
    copied = made("copying", gold, prompt="I buy 8 apples.")
    assert copied.claim.startswith("The number 8 of the prompt is copied as ")
    assert perturb(PERTURBERS["copying"], gold, prompt="I buy some apples.") is None


def test_layout_is_lost_and_every_word_stays() -> None:
    gold = "# Tea\n- **hot** water\n- leaves\n```\n# code\n```"
    assert made("layout", gold).response == "Tea\nhot water\nleaves\n```\n# code\n```"
    assert perturb(PERTURBERS["layout"], "plain text") is None


def test_a_ladder_holds_the_errors_of_the_step_below() -> None:
    gold = "The separate entrance leads through several gardens towards another building."
    ladder = [
        found
        for dose in (1, 2, 4)
        if (found := perturb(PERTURBERS["spelling"], gold, seed="s", dose=dose))
    ]
    assert [one.dose for one in ladder] == [1, 2, 4]
    for lower, higher in pairwise(ladder):
        assert set(lower.changes) < set(higher.changes)
    assert perturb(PERTURBERS["spelling"], gold, dose=100) is None


def test_a_seed_makes_the_same_everywhere_and_seeds_differ() -> None:
    gold = "The separate entrance leads through several gardens."
    assert made("spelling", gold, seed="1") == made("spelling", gold, seed="1")
    assert made("spelling", gold, seed="1").response == (
        "The separate enrrance leads through several gardens."
    )
    assert len(every("spelling", gold)) > 10


@pytest.mark.parametrize("slug", PERTURBERS)
@given(gold=st.text(max_size=300) | st.text(alphabet="aB1 .\n*-#=\\{}$", max_size=200))
def test_any_text_is_perturbed_where_the_changes_say_or_not_at_all(slug: str, gold: str) -> None:
    found = perturb(PERTURBERS[slug], gold, prompt=gold)
    if found is not None:
        assert found.response != gold
        edits = [edit for change in found.changes for edit in change.edits]
        assert edits == sorted(edits)
        response = gold
        for start, end, after in reversed(edits):
            response = response[:start] + after + response[end:]
        assert response == found.response


@given(st.text(max_size=200), st.text(max_size=200), st.sampled_from([*PERTURBERS, "other"]))
def test_any_two_texts_can_be_looked_through(gold: str, response: str, category: str) -> None:
    for flag in find_flags(category, gold, response, siblings=[gold]):
        assert flag.rule
        assert flag.reason


@pytest.mark.parametrize(
    ("start", "end", "lies_in_one"),
    [
        (0, 2, False),
        (0, 3, True),
        (3, 4, True),
        (4, 6, False),
        (4, 7, True),
        (7, 9, True),
        (8, 9, False),
    ],
)
def test_what_begins_where_code_ends_is_prose_again(
    start: int, end: int, lies_in_one: bool
) -> None:
    assert overlaps([(2, 4), (6, 8)], start, end) is lies_in_one
