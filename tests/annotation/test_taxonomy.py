from collections import Counter

import pytest

from annotation.items import taxonomy
from annotation.items.taxonomy import TaxonomyError, UnknownSlugError

# Study 000, table 1, from top to bottom.
TABLE_1 = {
    "long-form": "grammar spelling consistency chronology coherence comprehensiveness",
    "factual": "contextual entity incorrect-fact number-errors opposite-fact remove-fact",
    "instruction-following": "do-more do-less ignore-format sequence-errors assumptions",
    "reasoning": "calculations copying-numbers final-errors incorrect-units wrong-formula",
    "score-invariant": "score-invariant",
}

ABILITY = """
[[ability]]
slug = "factual"
name = "Factual"
code = "F"
description = "Facts."
axis = "hallucination"
"""
CATEGORY = """
[[category]]
slug = "entity"
name = "Entity"
ability = "factual"
description = "A wrong name."
example = { before = "Danube", after = "Rhine" }
expected_effect = "penalty"
"""


def test_the_order_is_that_of_table_1() -> None:
    rows = [(category.ability, category.slug) for category in taxonomy.load_shipped().in_paper()]
    expected = [(ability, slug) for ability, slugs in TABLE_1.items() for slug in slugs.split()]
    assert rows == expected


def test_the_abilities_hold_6_6_5_and_5_categories() -> None:
    loaded = taxonomy.load_shipped()
    sizes = Counter(category.ability for category in loaded)
    assert [sizes[ability.slug] for ability in loaded.abilities] == [6, 6, 5, 5, 3]


def test_only_formatting_and_superficial_are_outside_the_paper() -> None:
    outside = [category.slug for category in taxonomy.load_shipped() if not category.in_paper]
    assert outside == ["formatting", "superficial"]


def test_only_score_invariant_categories_expect_no_effect() -> None:
    for category in taxonomy.load_shipped():
        unharmed = category.ability == "score-invariant"
        assert category.expected_effect == ("none" if unharmed else "penalty")


def test_every_category_can_be_decided_by_its_texts() -> None:
    for category in taxonomy.load_shipped():
        assert category.name
        assert 40 <= len(category.description) <= 200
        assert category.description.endswith(".")
        assert category.example.before != category.example.after


def test_abilities_carry_their_code_and_axis() -> None:
    axes = {ability.code: ability.axis for ability in taxonomy.load_shipped().abilities}
    assert axes == {
        "LF": "content-quality",
        "F": "hallucination",
        "IF": "task-quality",
        "R": "reasoning-accuracy",
        "SI": "",
    }


def test_a_category_leads_to_its_ability() -> None:
    assert taxonomy.load_shipped().category("do-more").name == "Do more"
    assert (
        taxonomy.load_shipped().ability(taxonomy.load_shipped().category("do-more").ability).code
        == "IF"
    )


def test_an_unknown_slug_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownSlugError, match=r"no category 'gramar'; use one of grammar, "):
        taxonomy.load_shipped().category("gramar")
    with pytest.raises(UnknownSlugError, match=r"no ability 'lf'; use one of long-form, "):
        taxonomy.load_shipped().ability("lf")


def test_a_text_of_one_ability_and_category_is_read() -> None:
    parsed = taxonomy.parse(ABILITY + CATEGORY)
    assert [category.slug for category in parsed] == ["entity"]
    assert parsed.category("entity").in_paper


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ABILITY + CATEGORY + CATEGORY, "category slug 'entity'; rename one"),
        (ABILITY + ABILITY + CATEGORY, "ability slug 'factual'; rename one"),
        (ABILITY + CATEGORY + 'colour = "red"', "Category 'entity': unknown field 'colour'; use"),
        (ABILITY + CATEGORY.replace('name = "Entity"', ""), "Category 'entity': name is missing"),
        (ABILITY + CATEGORY.replace('"Entity"', '" "'), "'entity': name is empty"),
        (ABILITY + CATEGORY.replace('"Entity"', "7"), "'entity': name must be of type str, not 7"),
        (ABILITY + CATEGORY.replace('"penalty"', '"pain"'), "'pain'; make it one of penalty, none"),
        (
            ABILITY + CATEGORY.replace('"factual"', '"fact"'),
            "no ability 'fact'; use one of factual",
        ),
        (
            ABILITY + CATEGORY.replace(', after = "Rhine"', ""),
            "'entity', example: after is missing",
        ),
        (ABILITY + CATEGORY + "[[extra]]", "Unknown table 'extra'"),
        ("[[ability", "not valid TOML"),
        ("ability = 3\ncategory = 4", r"write it as \[\[ability\]\] entries"),
    ],
)
def test_a_bad_taxonomy_names_the_entry_and_the_remedy(text: str, message: str) -> None:
    with pytest.raises(TaxonomyError, match=message):
        taxonomy.parse(text)


def test_a_category_is_made_of_answers_of_its_ability_and_invariance_of_any() -> None:
    loaded = taxonomy.load_shipped()
    assert loaded.is_made_of("spelling", "long-form")
    assert not loaded.is_made_of("spelling", "factual")
    assert loaded.is_made_of("score-invariant", "factual")
    assert loaded.is_made_of("formatting", "reasoning")
    assert not loaded.is_made_of("none", "factual")
