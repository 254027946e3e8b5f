"""A correction of a gold answer is carried into the answers that were made from it."""

import random
import time

import pytest

from annotation.items.diffing.merging import Places, carry_correction

OLD = "A spider has eight legs."


@pytest.mark.parametrize(
    "new, changed, carried",
    [
        (
            OLD[:-1] + ", an insect six.",
            "A spider has six legs.",
            "A spider has six legs, an insect six.",
        ),
        (
            OLD + " So does a mite.",
            "A spider has six legs.",
            "A spider has six legs. So does a mite.",
        ),
        ("A spider has eight limbs.", "A spider has six legs.", "A spider has six limbs."),
        ("A spider has eight limbs.", OLD, "A spider has eight limbs."),
        ("The spider has eight legs.", "A spider has\neight legs.", "The spider has\neight legs."),
    ],
)
def test_a_correction_elsewhere_is_made_in_the_changed_answer(
    new: str, changed: str, carried: str
) -> None:
    assert carry_correction(OLD, new, changed) == carried


@pytest.mark.parametrize(
    "old, new, changed",
    [
        (OLD, "A spider has seven legs.", "A spider has six legs."),
        # The same change: nothing would be left of it.
        (OLD, "A spider has six legs.", "A spider has six legs."),
        (OLD, "A spider has eight limbs.", "A spider has eight."),
        # Different digits of the same number.
        ("It costs 1,200 euros.", "It costs 1,300 euros.", "It costs 1,250 euros."),
        # The corrected sentence has moved.
        (
            "One is odd.\nTwo is even.\nSix is big.",
            "One is strange.\nTwo is even.\nSix is big.",
            "Two is even.\nOne is odd.\nSix is big.",
        ),
        ("One two.", "Three.", "Four five six."),
        # The added word would show as another change.
        ("red is is.", "is is.", "red is is is."),
    ],
)
def test_a_correction_at_the_place_of_the_change_is_not(old: str, new: str, changed: str) -> None:
    assert carry_correction(old, new, changed) is None


def test_very_many_changes_and_corrections_take_no_minutes() -> None:
    """Each of 20,000 changes was looked at beside each of 20,000 corrections."""
    chance = random.Random(5)
    parts = ("\n".join(chance.choices("ab", k=40_000)) for _ in range(4))
    first, second, other_first, other_second = parts
    old, new, changed = (
        f"{start}\nboth\n{end}"
        for start, end in ((first, second), (first, other_second), (other_first, second))
    )
    started = time.process_time()
    assert carry_correction(old, new, changed) == f"{other_first}\nboth\n{other_second}"
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    "new, quote, moved",
    [
        (OLD, "eight", 13),
        (OLD + " So does a mite.", "eight", 13),
        ("The big spider has eight legs.", "eight", 19),
        ("A spider has eight limbs.", "eight", 13),
        ("A spider always has eight legs.", "A spider", 0),
        ("A spider has seven legs.", "has eight legs", None),
        ("A spider has just eight legs.", "has eight legs", None),
        ("A spider has legs.", "eight", None),
    ],
)
def test_a_passage_is_found_again_unless_it_was_corrected(
    new: str, quote: str, moved: int | None
) -> None:
    start = OLD.index(quote)
    assert Places(OLD, new).move(start, start + len(quote)) == moved
    assert moved is None or new[moved:].startswith(quote)
