"""Which mark a change carries; a table of changes that people would call so."""

import pytest

from annotation.items.diffing.difference import compare
from annotation.items.rendering import change_kinds

CHANGES = [
    # gold, perturbed, before, after, marks
    ("eight", "six", "has ", " legs", "number"),
    ("1987", "1887", "", "", "number"),
    ("5", "-5", "at ", " degrees", "number"),
    ("twenty-one", "twenty-two", "", "", "number"),
    ("½", "¼", "", "", "number"),
    ("km", "m", "about 5 ", " long", "unit"),
    ("kilometres", "miles", "some ", "", "unit"),
    ("$5", "€5", "for ", "", "unit"),
    ("mW", "MW", "20 ", "", "unit"),
    ("5 km", "7 miles", "", "", "number unit"),
    ("is", "is not", "it ", " cold", "negation"),
    ("is", "isn’t", "it ", " cold", "negation"),
    ("always", "never", "", "", "negation"),
    ("possible", "impossible", "", "", "negation"),
    ("not 3", "4", "", "", "negation number"),
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
    ("10,000", "10000", "", " people"),
    (" ", "", "every", "day"),  # two words made one
    ("-", "+", "5 ", " 3"),  # a sum, not a list
    ("*", "", "5 ", " 3"),
    ("*", "", "2", "3"),
    ("_", "", "snake", "case"),
    ("note", "notes", "", ""),
]


@pytest.mark.parametrize("gold, perturbed, before, after, said", CHANGES)
def test_a_change_carries_its_marks(
    gold: str, perturbed: str, before: str, after: str, said: str
) -> None:
    assert " ".join(change_kinds.classify_change(gold, perturbed, before, after)) == said
    assert " ".join(change_kinds.classify_change(perturbed, gold, before, after)) == said


@pytest.mark.parametrize("gold, perturbed, before, after", PLAIN)
def test_another_change_carries_none(gold: str, perturbed: str, before: str, after: str) -> None:
    assert change_kinds.classify_change(gold, perturbed, before, after) == ()


def test_steps_in_another_order_are_no_matter_of_looks() -> None:
    assert change_kinds.classify_change("1.", "2.", "", " Mix") == ("number",)


def test_changes_say_where_they_are_and_whether_they_fold() -> None:
    # Segments: 0 "It has " 1 eight/six 2 " legs and " 3 **/- 4 "two" 5 **/- 6 " eyes."
    found = change_kinds.classify_changes(
        compare("It has eight legs and **two** eyes.", "It has six legs and two eyes.")
    )
    assert [change.number for change in found] == [1, 3, 5]
    assert [change.place for change in found] == [1, 2, 3]
    assert [change.folds for change in found] == [False, True, True]
    # "It has " are 7 characters; "eight", "six" and " legs and " are 18 more.
    assert [change.offset for change in found[:2]] == [7, 25]


def test_equal_texts_have_no_changes() -> None:
    assert change_kinds.classify_changes(compare("same", "same")) == ()
