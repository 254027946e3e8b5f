"""Which mark a change carries, and at which words; tables of changes that people would call so."""

import time

import pytest

from annotation.items.diffing.difference import compare
from annotation.items.rendering import change_kinds
from annotation.items.rendering.change_kinds import ChangeKind, Passage, Side

CHANGES = [
    # gold, perturbed, before, after, marks
    ("eight", "six", "has ", " legs", "number"),
    ("1987", "1887", "", "", "number"),
    ("5", "-5", "at ", " degrees", "number"),
    ("twenty-one", "twenty-two", "", "", "number"),
    ("three", "five", "it has ", " legs", "number"),
    ("half", "a third", "", " of it", "number"),
    ("½", "¼", "", "", "number"),
    ("km", "m", "about 5 ", " long", "unit"),
    ("in", "ft", "a pipe of 3 ", " length", "unit"),
    ("kilometres", "miles", "some ", "", "unit"),
    ("$5", "€5", "for ", "", "unit"),
    ("mW", "MW", "20 ", "", "unit"),
    ("5 km", "7 miles", "", "", "number unit"),
    ("is", "is not", "it ", " cold", "negation"),
    ("is", "isn’t", "it ", " cold", "negation"),
    ("always", "never", "", "", "negation"),
    ("possible", "impossible", "", "", "negation"),
    ("not 3", "4", "", "", "negation number"),
    ("hours", "days", "the number of ", "", "unit"),
    ("5\\text{ m}", "5\\text{ km}", "$", "$", "unit"),
    ("typical", "atypical", "", "", "negation"),
    (" ", "\n", "one", "two", "white-space"),
    ("", "\n\n", "One.\n", "Two.", "white-space"),
    ("**", "", "the ", "six** legs", "formatting"),
    ("- ", "* ", "", "item", "formatting"),
    ("1.", "-", "", " item", "formatting"),
    ("## ", "", "", "Title", "formatting"),
    ("`", "", "run ", "make` now", "formatting"),
]
PLAIN = [
    # What looks like one of them and is not.
    ("large", "big", "a ", " house"),
    ("in", "at", "a house ", " town"),  # no inch without a number before it
    ("in", "of", "these are 3 ", " total"),
    ("in", "by", "one of 3 ", " London"),
    ("10,000", "10000", "", " people"),
    (" ", "", "every", "day"),  # two words made one
    ("-", "+", "5 ", " 3"),  # a sum, not a list
    ("*", "", "5 ", " 3"),
    ("*", "", "2", "3"),
    ("_", "", "snake", "case"),
    ("note", "notes", "", ""),
    ("3", "three", "it has ", " legs"),
    ("1,000", "1000", "", " people"),
    ("second", "last", "on the ", " day"),
    ("foot", "hand", "his left ", ""),
    ("late", "early", "five years ago he came ", ""),
    ("Bowline", "Clove hitch", "tie a ", " knot"),
    ("Oh no", "Oh dear", "", "!"),
    ("not only", "both", "it was ", " cold"),
    ("long", "along", "a road ", ""),
    ("", "It was built in 1894 by 300 workers from the town.", "", ""),  # all of it is new
]
# What is marked in a change: "#" is a number, "u" a unit, "¬" a negation.
WORDS = [
    ("about 42 km away", "about 24 km away", "about #42 km away", "about #24 km away"),
    ("ran 5 km", "walked 7 miles", "ran #5 u km", "walked #7 u miles"),
    ("one of 3 or 4", "two of 3 or 4", "#one of 3 or 4", "#two of 3 or 4"),
    ("is happy", "is not unhappy", "is ¬happy", "is ¬not ¬unhappy"),
    ("the answer is $5", "the answer is €5", "the answer is u$5", "the answer is u€5"),
]
SIGNS: dict[ChangeKind, str] = {"number": "#", "unit": "u", "negation": "¬"}


def signed(text: str, words: tuple[change_kinds.MarkedWord, ...]) -> str:
    """The text with the sign of its kind before each marked word; a unit also gets a blank."""
    for word in reversed(words):
        blank = " " if word.kind == "unit" and text[word.start].isalpha() else ""
        text = f"{text[: word.start]}{SIGNS[word.kind]}{blank}{text[word.start :]}"
    return text


@pytest.mark.parametrize("gold, perturbed, left, right", WORDS)
def test_a_mark_is_at_its_own_word(gold: str, perturbed: str, left: str, right: str) -> None:
    _, words = change_kinds.classify_change(Passage(gold), Passage(perturbed))
    sides: tuple[tuple[Side, str, str], ...] = (
        ("gold", gold, left),
        ("perturbed", perturbed, right),
    )
    for side, text, expected in sides:
        assert signed(text, words.get(side, ())) == expected


def marks_of(gold: str, perturbed: str, before: str = "", after: str = "") -> tuple[str, ...]:
    sides = (Passage(text, before, after) for text in (gold, perturbed))
    return change_kinds.classify_change(*sides)[0]


def test_a_row_of_signs_that_no_unit_follows_takes_linear_time() -> None:
    assert marks_of("5" + "\\ " * 20_000, "6" + "\\ " * 20_000) == ("number",)


@pytest.mark.parametrize(
    "gold, perturbed",
    [
        (" ".join(str(n * 3 % 9_973) for n in range(150_000)), "7 8 9 " * 50_000),
        ("one " * 250_000, "second " * 140_000),
        ("€" * 300_000, "£" * 300_000),
        ("$1" * 300_000, "$2" * 300_000),
    ],
    ids=["numbers", "words", "signs", "amounts"],
)
def test_a_change_of_very_many_numbers_takes_neither_minutes_nor_all_memory(
    gold: str, perturbed: str
) -> None:
    started = time.process_time()
    assert marks_of(gold, perturbed) == ()
    assert time.process_time() - started < 4


def test_a_moved_passage_is_one_change_with_two_ends() -> None:
    first, second = (
        "The first step takes a long time.\n",
        "The second one is very quick and easy.\n",
    )
    (change,) = change_kinds.classify_changes(compare(first + second, second + first))
    assert (change.marks, change.folds) == (("moved",), False)
    assert change.gold == change.perturbed == first
    # Segments: 0 the first sentence as removed, 1 the second one, 2 the first as added.
    assert (change.number, change.other_end) == (0, (2, len(first + second)))


@pytest.mark.parametrize("gold, perturbed, before, after, said", CHANGES)
def test_a_change_carries_its_marks(
    gold: str, perturbed: str, before: str, after: str, said: str
) -> None:
    assert " ".join(marks_of(gold, perturbed, before, after)) == said
    assert " ".join(marks_of(perturbed, gold, before, after)) == said


@pytest.mark.parametrize("gold, perturbed, before, after", PLAIN)
def test_another_change_carries_none(gold: str, perturbed: str, before: str, after: str) -> None:
    assert marks_of(gold, perturbed, before, after) == ()
    assert marks_of(perturbed, gold, before, after) == ()


def test_steps_in_another_order_are_no_matter_of_looks() -> None:
    assert marks_of("1.", "2.", "", " Mix") == ("number",)


def test_changes_say_where_they_are_and_whether_they_fold() -> None:
    # Segments: 0 "It has " 1 eight/six 2 " legs and " 3 **/- 4 "two" 5 **/- 6 " eyes."
    found = change_kinds.classify_changes(
        compare("It has eight legs and **two** eyes.", "It has six legs and two eyes.")
    )
    assert [change.number for change in found] == [1, 3, 5]
    assert [change.folds for change in found] == [False, True, True]
    # "It has " are 7 characters; "eight", "six" and " legs and " are 18 more.
    assert [change.offset for change in found[:2]] == [7, 25]


def test_equal_texts_have_no_changes() -> None:
    assert change_kinds.classify_changes(compare("same", "same")) == ()
