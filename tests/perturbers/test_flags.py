"""What the rules see in perturbed answers that went wrong, and that they let pass what is right."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as some

from perturbers.flags import (
    describe_language_change,
    describe_untranslated,
    find_flags,
    has_same_words,
    is_in,
    lacks_numbers,
)

GOLD = "Bees make honey in spring. A hive holds about 40000 bees, and the queen lays the eggs."
GERMAN = "Die Bienen machen den Honig und sie sind nicht mit der Königin von einem Volk auf Reisen."


def rules(category: str, response: str, gold: str = GOLD, *siblings: str) -> list[str]:
    return [flag.rule for flag in find_flags(category, gold, response, siblings=siblings)]


@pytest.mark.parametrize(
    ("response", "rule"),
    [
        ("", "empty"),
        (" \n", "empty"),
        (GOLD, "identical"),
        (GOLD.replace(" ", "\n"), "white-space-only"),
        ("Something else was said here, of which no word stands in the gold answer.", "bound"),
        (GOLD.removesuffix("the eggs."), "truncated"),
    ],
)
def test_what_is_wrong_in_any_category(response: str, rule: str) -> None:
    assert rule in rules("grammar", response)


WORDS = some.text(some.sampled_from("ab \n\u3000\x1c"), max_size=8)


@given(WORDS, WORDS)
def test_texts_are_the_same_whose_words_are(one: str, other: str) -> None:
    assert has_same_words(one, other) == (one.split() == other.split())
    assert has_same_words(one, one.replace(" ", "\n"))


def test_what_begins_and_ends_alike_is_of_one_language_unless_much_is_between() -> None:
    sums = " ".join(f"{n} + {n} = {2 * n}." for n in range(400))
    assert describe_language_change(f"Bees. {sums}", f"Пчёлы. {sums}") == ""
    assert describe_language_change(f"{GOLD * 8} {sums}", f"{GERMAN * 8} {sums}") != ""


@pytest.mark.parametrize(("changed", "is_told"), [(9, False), (10, True)])
def test_less_than_a_tenth_of_a_text_is_no_change_of_its_language(
    changed: int, is_told: bool
) -> None:
    """A hundred letters, of which what is changed decides in which script most of them are."""
    gold, response = (f"{'б' * 46}{letter * changed}{'b' * (54 - changed)}" for letter in "xя")
    said = "It seems to be in Cyrillic script, the gold answer in Latin script."
    assert describe_language_change(gold, response) == (said if is_told else "")


@pytest.mark.parametrize(("letters", "is_told"), [(39, False), (40, True)])
def test_few_letters_do_not_tell_their_script(letters: int, is_told: bool) -> None:
    assert bool(describe_language_change("b" * letters, "б" * letters)) == is_told
    assert bool(describe_language_change("b" * 99, "б" * letters)) == is_told


@pytest.mark.parametrize(
    ("known", "others", "is_told"), [(4, 0, False), (5, 95, True), (5, 96, False)]
)
def test_few_small_words_do_not_tell_their_language(known: int, others: int, is_told: bool) -> None:
    """Five at least, and one in twenty."""
    german = " ".join(["und"] * known + ["1"] * others)
    assert bool(describe_language_change("the " * 20, german)) == is_told


NAMES = [
    *("Ada", "Grace", "Alan", "Kurt", "Emmy", "Sofia", "Mary", "Hedy", "Rosa", "Lise", "Vera"),
    *("Jane", "Rita", "Nora", "Ines"),
]


@pytest.mark.parametrize(
    ("shared", "said"), [(15, ""), (14, "It seems to be in German, the gold answer in English.")]
)
def test_what_shares_three_in_four_of_its_words_is_of_one_language(shared: int, said: str) -> None:
    gold = ["the", "and", "of", "to", "is", *NAMES]
    # Twenty words, of which so many are the gold answer's.
    response = ["der", "die", "das", "ist", "nicht", "ein"][: 20 - shared] + NAMES[:shared][::-1]
    assert describe_language_change(" ".join(gold), " ".join(response)) == said


def test_another_language_or_script_is_seen() -> None:
    long = GOLD + " The flowers of the meadow are what it is for, and that is not all of it."
    assert "language" in rules("grammar", GERMAN, long)
    assert "language" in rules("grammar", "Пчёлы делают мёд весной, а матка откладывает яйца.")
    assert "language" not in rules("grammar", long.replace("is", "are"), long)
    # Numbers stay as they are in every language.
    sums = " 2 + 2 = 4" * 30
    assert "language" in rules("grammar", GERMAN + sums, long + sums)


def test_a_sibling_that_says_the_same_is_seen() -> None:
    response = GOLD.replace("40000", "50000")
    assert rules("number-errors", response) == []
    assert rules("number-errors", response, GOLD, response + "\n") == ["duplicate"]


@pytest.mark.parametrize(
    ("category", "wrong", "right"),
    [
        ("number-errors", GOLD.replace("spring", "winter"), GOLD.replace("40000", "4000")),
        ("remove-fact", GOLD + " Drones hatch later.", GOLD.replace(" in spring", "")),
        ("do-more", GOLD.replace(" in spring", ""), GOLD + " Drones hatch later."),
        ("spelling", GOLD.replace("honey", "wax"), GOLD.replace("honey", "hoeny")),
        ("spelling", GOLD.replace("honey", "sweet honey"), GOLD.replace("queen", "qeuen")),
        (
            "chronology",
            GOLD.replace("Bees make honey in spring.", "Nobody knows why some animals ever sleep."),
            GOLD.removeprefix("Bees make honey in spring. ") + " Bees make honey in spring.",
        ),
        ("formatting", GOLD.replace("Bees", "Wasps"), GOLD.replace("Bees", "**Bees**")),
        ("final-errors", GOLD.replace("spring", "winter"), GOLD.replace("40000", "4000")),
        ("calculations", "7 * 8 is = 56 so.", "7 * 8 = 54 so."),
    ],
)
def test_a_difference_that_is_none_of_the_category_is_seen(
    category: str, wrong: str, right: str
) -> None:
    gold = "7 * 8 = 56 so." if category == "calculations" else GOLD
    assert rules(category, wrong, gold) == ["claim"]
    assert rules(category, right, gold) == []


@pytest.mark.parametrize("words", [200_000, 2])
def test_long_texts_are_looked_through_in_moments(words: int) -> None:
    gold, response = (" ".join([letter * (800_000 // words)] * words) for letter in "ab")
    begun = time.process_time()
    assert rules("spelling", response, gold)[0] == "bound"
    assert time.process_time() - begun < 5


def test_of_long_texts_those_words_differ_that_stand_in_one_alone() -> None:
    numbers = [f"{number} bees" for number in range(12_000)]
    turned, other = numbers[::-1], [*numbers[:0:-1], "one more bees"]
    assert "claim" in rules("number-errors", f"{'. '.join(turned)}.", f"{'. '.join(numbers)}.")
    assert rules("number-errors", f"{'. '.join(other)}.", f"{'. '.join(numbers)}.") == []


def test_a_riddle_may_be_wrong_without_a_number() -> None:
    assert rules("final-errors", "So it is Peter.", "So it is John.") == []
    assert rules("calculations", "A is taller than B.", "B is taller than A.") == []


HINDI = "मधुमक्खियाँ वसन्त में शहद बनाती हैं, और रानी अण्डे देती है, जैसा सब जानते हैं।" * 2


@pytest.mark.parametrize(
    ("text", "language", "said"),
    [
        (GERMAN, "German", ""),
        (GERMAN, "Swiss German", ""),
        (GERMAN, "French", "It seems to be in German, not in French."),
        (GOLD * 3, "Swedish", "It seems to be in English, not in Swedish."),
        (GOLD * 3, " english", "It seems to be in English, not in  english."),
        (GOLD * 3, "english", ""),
        (HINDI, "Hindi", ""),
        (HINDI, "French", "It seems to be in Devanagari script, not in French."),
        ("40000", "French", ""),
    ],
)
def test_a_translation_is_told_by_its_script_or_by_small_words(
    text: str, language: str, said: str
) -> None:
    assert describe_untranslated(GOLD * 3, text, language) == said
    assert not (is_in(language, text) and said)


def test_of_two_languages_in_another_script_nothing_is_told() -> None:
    assert describe_untranslated(HINDI, HINDI.replace("है", "आहे"), "Marathi") == ""


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("Ein Volk hat 40.000 Bienen.", False),
        ("४०,००० मधुमक्खियाँ", False),
        ("Von 4 Völkern hat eines 40 000 Bienen.", False),
        ("Ein Volk hat vierzigtausend Bienen.", True),
        ("Ein Volk hat 4000 Bienen.", True),
    ],
)
def test_numbers_stay_in_a_translation_however_they_are_grouped(text: str, lacks: bool) -> None:
    assert lacks_numbers(GOLD, text) is lacks
