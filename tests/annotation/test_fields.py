"""What each kind of field takes, from a form and from a program, and what it makes of it."""

from typing import Any

import pytest
from django.http import QueryDict

from annotation.errors import FieldError
from annotation.tasktypes import field_schema, fields
from annotation.tasktypes.fields.text import LONGEST_TEXT, Text
from annotation.tasktypes.toml_tables import DeclarationError, TomlTable

YES_OR_NO = [{"value": "a", "title": "A"}, {"value": "b", "title": "B"}]
ONE_TO_THREE = [{"value": number, "title": f"Point {number}"} for number in (1, 2, 3)]


def make(kind: str, **values: Any) -> fields.Field:
    entry = {"name": "said", "kind": kind, "title": "Said", **values}
    if kind in {"choice", "choices"}:
        entry.setdefault("choices", YES_OR_NO)
    if kind in {"scale", "points"}:
        entry.setdefault("choices", ONE_TO_THREE)
    if kind == "edit":
        entry.setdefault("text", "response")
    return field_schema.parse_field(TomlTable(entry))


# kind, what a form sends, what is stored, what a condition would name
TAKEN = [
    ("choice", "said=b", "b", {"b"}),
    ("choices", "said=b&said=a", ["a", "b"], {"a", "b"}),
    ("choices", "said=b&said=b", ["b"], {"b"}),
    ("scale", "said=2", 2, {"2"}),
    ("points", "said=3", 3, {"3"}),
    ("yesno", "said=yes", True, {"yes"}),
    ("yesno", "said=no", False, {"no"}),
    ("text", "said=one%0D%0Atwo", "one\ntwo", {"one\ntwo"}),
    ("edit", "said=new", "new", {"new"}),
    (
        "claim_check",
        "said.10=explained&said.2=collateral&said.3=",
        {"2": "collateral", "10": "explained"},
        {"explained", "collateral"},
    ),
]


@pytest.mark.parametrize("kind, sent, stored, said", TAKEN)
def test_a_form_and_a_program_store_the_same(
    kind: str, sent: str, stored: Any, said: set[str]
) -> None:
    field = make(kind)
    cleaned = field.clean(field.from_post(QueryDict(sent)))
    assert cleaned == stored
    assert field.clean(stored) == stored
    assert type(cleaned) is type(stored)
    assert field.answer_values(stored) == said


@pytest.mark.parametrize("kind", fields.FIELD_KINDS)
def test_a_form_without_the_field_has_no_answer(kind: str) -> None:
    assert make(kind).from_post(QueryDict("other=1&said=&saidx=2")) is None


@pytest.mark.parametrize(
    "kind, answer, said",
    [
        ("choice", "c", "choose one of a, b."),
        ("choice", None, "choose one of a, b."),
        ("choice", ["a"], "choose one of a, b."),
        ("choices", "a", "give a list of a, b."),
        ("choices", ["a", "c"], "choose one or more of a, b."),
        ("choices", [["a"]], "choose one or more of a, b."),
        ("scale", 4, "choose one of 1, 2, 3."),
        ("scale", True, "choose one of 1, 2, 3."),
        ("scale", "1.5", "choose one of 1, 2, 3."),
        ("points", {}, "choose one of 1, 2, 3."),
        ("yesno", "maybe", "choose one of yes, no."),
        ("yesno", 1, "choose one of yes, no."),
        ("text", 5, "write text."),
        ("text", "x" * 10_001, "write at most 10,000 characters."),
        ("text", "a\0b", "cannot be saved"),
        ("text", "\ud800", "cannot be saved"),
        ("claim_check", {"x": "explained"}, "the number of each changed piece"),
        ("claim_check", {"1": "fine"}, "the number of each changed piece"),
        ("claim_check", ["1"], "the number of each changed piece"),
        ("claim_check", dict.fromkeys(map(str, range(20_001)), "explained"), "at most 20,000"),
    ],
)
def test_an_answer_that_is_not_taken_is_told_what_would_be(
    kind: str, answer: object, said: str
) -> None:
    with pytest.raises(FieldError, match=r"^Said: ") as raised:
        make(kind).clean(answer)
    assert said in str(raised.value)
    assert raised.value.field == "said"


def test_numbers_may_be_below_zero_and_between_whole_ones() -> None:
    choices = [{"value": value, "title": str(value)} for value in (-1, 0, 0.5)]
    field = make("points", choices=choices)
    assert [field.clean(one) for one in ("-1", 0, "0.5")] == [-1, 0, 0.5]


def test_digits_are_given_in_order_but_for_keys_that_are_set() -> None:
    titles = [{"value": f"v{number}", "title": "V"} for number in range(12)]
    titles[0]["key"] = "3"
    keys = [option.key for option in make("choice", choices=titles).options]
    assert keys == ["3", "1", "2", "4", "5", "6", "7", "8", "9", "0", "", ""]


@pytest.mark.parametrize(
    "change, said",
    [
        ({"kind": "picture"}, "kind: is 'picture'; use one of choice,"),
        ({"name": "Said"}, "name: is 'Said'; use a-z"),
        ({"name": "comment"}, "name: is 'comment', which the form uses itself"),
        ({"title": " "}, "title: is empty; fill it in."),
        ({"required": "yes"}, "required: is 'yes'; write true or false."),
        ({"option": "colour"}, "option: is 'colour'; use one of"),
        ({"rule": "dice"}, "rule: is 'dice'; use one of"),
        ({"hint": "x"}, "hint: is not a known key; use kind, name, title"),
        ({"when": {"field": "a"}}, "when, values: is missing; add it."),
        ({"when": {"field": "a", "values": "b"}}, "when, values: is 'b'; write a list"),
        ({"choices": YES_OR_NO[:1]}, "needs at least two [[fields.choices]] entries"),
        ({"choices": {}}, "choices: is not a list of tables"),
        ({"choices": [YES_OR_NO[0]] * 2}, "choice 2, value: 'a' appears twice"),
        ({"choices": [{"value": "a b", "title": "A"}] * 2}, "choice 1, value: is 'a b'; use"),
        ({"choices": [{"value": 1, "title": "A"}] * 2}, "choice 1, value: is 1; write text"),
        ({"choices": [{**one, "key": "7"} for one in YES_OR_NO]}, "choice 2, key: is '7', which"),
        ({"choices": [{**one, "key": "d"} for one in YES_OR_NO]}, "choice 1, key: is 'd'; use one"),
        ({"choices": [{**one, "route": "x"} for one in YES_OR_NO]}, "choice 1, route: is 'x'"),
        ({"kind": "scale"}, "choice 1, value: is 'a'; write a number"),
    ],
)
def test_a_wrong_declaration_names_the_place_and_the_remedy(change: dict, said: str) -> None:
    entry = {"name": "said", "kind": "choice", "title": "Said", "choices": YES_OR_NO, **change}
    with pytest.raises(DeclarationError) as raised:
        field_schema.parse_field(TomlTable(entry, ("fields", 0)))
    assert str(raised.value).startswith("field 1")
    assert said in str(raised.value)


@pytest.mark.parametrize("kind", ["text", "edit"])
def test_a_text_has_between_one_character_and_the_longest_text(kind: str) -> None:
    for limit in (1, LONGEST_TEXT):
        field = make(kind, limit=limit)
        assert isinstance(field, Text)
        assert field.limit == limit
    assert make(kind, limit=1).clean("é") == "é"
    with pytest.raises(FieldError):
        make(kind, limit=1).clean("ab")
    for limit in (0, LONGEST_TEXT + 1, True):
        with pytest.raises(
            DeclarationError, match=f"write a whole number from 1 to {LONGEST_TEXT}"
        ):
            make(kind, limit=limit)


def test_an_answer_is_shown_in_the_words_that_were_seen() -> None:
    assert make("choice").describe("a") == "A"
    assert make("choices").describe(["a", "b"]) == "A, B"
    assert make("scale").describe(2) == "2 Point 2"
    assert make("yesno").describe(False) == "No"
    assert make("text").describe("as is") == "as is"
    shown = make("claim_check").describe({"1": "explained", "2": "collateral"})
    assert shown == "1 of 2 explained by the claim"
