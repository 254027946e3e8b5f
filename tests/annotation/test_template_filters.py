"""What pages say of labels, cases and categories: the filters and tags of the templates."""

from typing import Any

import pytest

from annotation import tasktypes
from annotation.items import taxonomy
from annotation.items.rendering.sheet import ReadingPreferences, build_side_sheets
from annotation.models import Item, Label, Project, Reason
from annotation.tasktypes import TaskType, field_schema
from annotation.tasktypes.fields import Field
from annotation.tasktypes.toml_tables import TomlTable
from annotation.templatetags import cases, fields, vetting
from annotation.templatetags import taxonomy as names

LOADED = {
    slug: tasktypes.parse_definition(definition)
    for slug, definition in tasktypes.load_definitions().items()
}
CHOICES = [{"value": value, "title": value.title()} for value in ("good", "odd", "bad")]
DECIDING = field_schema.parse_field(
    TomlTable({"name": "said", "kind": "choice", "title": "Said", "choices": CHOICES})
)


def make_field(kind: str, **values: Any) -> Field:
    return field_schema.parse_field(
        TomlTable({"name": "more", "kind": kind, "title": "More", **values})
    )


def draw(field: Field, answer: Any = None, **said: Any) -> fields.Drawn:
    answers = {} if answer is None else {field.name: answer}
    found = fields.label_fields({}, (DECIDING, field), answers, **said)["drawn"]
    assert isinstance(found[1], fields.Drawn)
    return found[1]


def chosen(drawn: fields.Drawn) -> list[Any]:
    return [one.option.value for one in drawn.options if one.chosen]


def task() -> TaskType:
    return LOADED["perturbation-vetting"]


def test_the_options_that_were_answered_are_chosen() -> None:
    several = make_field("choices", choices=CHOICES)
    assert chosen(draw(several, ["odd", "bad"])) == ["odd", "bad"]
    assert chosen(draw(several)) == []
    points = [{"value": number, "title": str(number)} for number in (1, 2, 3)]
    assert chosen(draw(make_field("scale", choices=points), 2)) == [2]
    for answer, word in ((True, "yes"), (False, "no"), ("yes", "yes")):
        assert chosen(draw(make_field("yesno"), answer)) == [word]


def test_an_edit_begins_from_the_text_that_it_is_of() -> None:
    edit = make_field("edit", text="gold")
    assert draw(edit, texts={"gold": "Eight."}).value == "Eight."
    assert draw(edit, "Nine.", texts={"gold": "Eight."}).value == "Nine."
    # A cleared one stays empty.
    assert draw(edit, "", texts={"gold": "Eight."}).value == ""
    assert draw(edit, texts={"gold": ["Eight.", "8"]}).value == ""
    assert draw(edit).value == ""


def test_a_condition_names_the_answers_that_ask_the_field() -> None:
    asked = make_field("text", when={"field": "said", "values": ["odd", "bad"]})
    assert draw(asked).only_if == "“Odd” or “Bad”"
    assert draw(make_field("text")).only_if == ""


def test_the_browser_insists_on_what_is_asked_in_any_case() -> None:
    assert draw(make_field("text", required=True)).always_required
    assert not draw(make_field("text", required=False)).always_required
    when = {"field": "said", "values": ["odd"]}
    assert not draw(make_field("text", required=True, when=when)).always_required


def test_a_quick_form_sends_by_its_first_field_alone() -> None:
    asked = (DECIDING, make_field("text"))
    for quick in (True, False):
        drawn = fields.label_fields({}, asked, quick=quick)["drawn"]
        assert [one.sends for one in drawn] == [quick, False]
    assert not fields.label_fields({}, asked, quick=True)["drawn"][0].always_required
    assert fields.label_fields({}, asked)["drawn"][0].always_required


def test_points_can_be_as_many_as_their_highest_options_make() -> None:
    many = [{"value": number, "title": str(number)} for number in (0, 3, 2)]
    one, other = (make_field("points", choices=many[:upto]) for upto in (2, 3))
    found = fields.label_fields({}, (DECIDING, one, other))
    assert (found["points"], found["most"]) == ([one, other], 6)


def test_why_an_item_waits_is_said_in_words() -> None:
    assert cases.reason_title(Reason.EXPERT) == "Needs an expert"
    assert all(cases.reason_title(one) != one for one in Reason.values)
    assert cases.reason_title("of old") == "of old"
    assert cases.why_title("slip") == "Somebody made a mistake"
    assert cases.why_title("of old") == "of old"


def test_categories_and_abilities_go_by_their_names() -> None:
    slug, ability = "number-errors", "factual"
    known, project = taxonomy.load_shipped(), Project(taxonomy_id=taxonomy.shipped_digest())
    assert names.category_name(slug, project) == known.category(slug).name != slug
    assert names.ability_name(ability, project) == known.ability(ability).name != ability
    unknown = [names.category_name(one, project) for one in ("", "of-old")]
    assert unknown == ["No category", "of-old"]
    assert [names.ability_name(one, project) for one in ("", "of-old")] == ["No ability", "of-old"]


def test_a_label_is_said_in_the_words_of_its_task_type() -> None:
    option = task().deciding.options[0]
    assert vetting.choice_title(Label(choice=str(option.value)), task()) == option.title
    assert vetting.choice_title(Label(choice=""), task()) == "no choice"
    assert vetting.held_title(str(option.value), task()) == option.title
    assert [vetting.held_title(one, task()) for one in ("", None)] == ["", ""]


def test_what_is_no_field_any_more_keeps_its_name_in_a_first_look() -> None:
    label = Label(answers={"of_old": 3})
    assert vetting.first_look(label, task()) == [("of_old", "3")]


def test_an_item_is_called_by_its_key_unless_the_page_has_a_name_for_it() -> None:
    assert vetting.called(Item(pk=1, key="a"), {1: "Item 7"}) == "Item 7"
    assert vetting.called(Item(pk=2, key="a"), {1: "Item 7"}) == "a"


@pytest.mark.parametrize("given, shown", [("One", ["One"]), (["One", "Two"], ["One", "Two"])])
def test_a_text_beside_the_item_is_one_or_several(given: Any, shown: list[str]) -> None:
    with_side = [
        (one, text) for one in LOADED.values() for text in one.texts if text.place == "side"
    ]
    for found, text in with_side:
        [sheet] = build_side_sheets(found, {text.name: given}, ReadingPreferences())
        plain = [next(pane for pane in panes if pane.chosen).html for panes in sheet.parts]
        assert (sheet.name, sheet.title, plain) == (text.name, text.title, shown)
        assert build_side_sheets(found, {}, ReadingPreferences()) == []
    assert with_side
