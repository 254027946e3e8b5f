"""The form of a task as it is drawn, without a script."""

import re
from typing import Any
from urllib.parse import urlencode

import pytest
from django.http import QueryDict
from django.template.loader import render_to_string

from annotation import tasktypes
from annotation.items.diffing import difference as diffing_difference
from annotation.labelling.forms import LabelForm

FILES = tasktypes.load_definitions()


def drawn(slug: str, answers: dict[str, Any] | None = None, **context: Any) -> str:
    task = tasktypes.parse_definition(FILES[slug])
    context = {"task": task, "answers": answers or {}, "phase": "label", **context}
    return render_to_string("annotation/fields/_form.html", context)


@pytest.mark.parametrize("slug", FILES)
def test_every_field_and_option_of_every_task_is_drawn_and_can_be_sent(slug: str) -> None:
    page = drawn(slug)
    for field in tasktypes.parse_definition(FILES[slug]).fields:
        assert f'data-field="{field.name}" data-kind="{field.kind}"' in page
        for option in field.options if field.kind != "claim_check" else ():
            assert re.search(rf'name="{field.name}" value="{option.value}"', page)
            assert all(example in page for example in option.examples)
    assert "data-store" in page


def test_one_key_is_a_label_only_where_the_task_says_so() -> None:
    assert page_has_submit_buttons("perturbation-vetting", "choice")
    assert not page_has_submit_buttons("error-detection", "verdict")


def page_has_submit_buttons(slug: str, name: str) -> bool:
    return f'<button class="choice" name="{name}"' in drawn(slug)


def test_what_was_answered_is_drawn_as_answered() -> None:
    said = {"verdict": "error", "error_type": ["context-faithfulness"], "explanation": "<b>2</b>"}
    page = drawn("error-detection", said)
    assert re.findall(r'value="([\w-]+)" checked', page) == ["error", "context-faithfulness"]
    assert "&lt;b&gt;2&lt;/b&gt;</textarea>" in page
    assert 'value="2" checked' in drawn("rating", {"naturalness": "2"})
    assert 'value="2" checked' in drawn("rating", {"naturalness": 2})


def test_a_first_look_asks_its_own_questions() -> None:
    page = drawn("perturbation-vetting", {"error": False}, phase="blind")
    assert "Is there an error in this answer?" in page
    assert 'value="no" checked' in page
    assert 'data-field="choice"' not in page


def test_keys_are_printed_as_everybody_has_them_for_the_script_to_change() -> None:
    page = drawn("perturbation-vetting")
    assert 'data-key="1"' in page
    assert "<kbd>1</kbd>" in page


def test_a_condition_is_said_in_words_for_who_has_no_script() -> None:
    assert "Only if your answer is “Not sure”." in drawn("perturbation-vetting")


def test_each_changed_piece_can_be_checked_against_the_claim() -> None:
    difference = diffing_difference.compare("A spider has eight legs.", "A spider has six legs!")
    numbers = [part.number for part in difference.segments if part.kind != "equal"]
    assert len(numbers) == 2
    page = drawn(
        "perturbation-vetting",
        {"claim_check": {str(numbers[0]): "explained"}},
        difference=difference,
    )
    checked = rf'name="claim_check.{numbers[0]}" value="explained" checked'
    assert re.search(checked, page)
    assert f'name="claim_check.{numbers[1]}" value="collateral"' in page
    assert "eight" in page


def test_an_item_without_a_claim_is_not_asked_what_its_claim_explains() -> None:
    texts = {"prompt": "How many?", "gold": "Eight.", "perturbed": "Six."}
    asked = 'data-field="claim_check"'
    assert asked not in drawn("perturbation-vetting", texts=texts)
    assert asked not in drawn("perturbation-vetting", texts={**texts, "claim": ""})
    assert asked in drawn("perturbation-vetting", texts={**texts, "claim": "Six for eight."})
    assert asked in drawn("perturbation-vetting", texts={})  # the editor, without an item


def test_the_form_is_read_by_its_fields_whatever_stage_it_is_of() -> None:
    task = tasktypes.parse_definition(FILES["perturbation-vetting"])
    sent = "key=k&item=a&revision=1&choice=not-sure&reason=&claim_check.3=explained&error=yes"
    form = LabelForm(QueryDict(sent), task)
    assert form.answers == {
        "choice": "not-sure",
        "claim_check": {"3": "explained"},
        "error": "yes",
    }


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        ('{"3": "explained"}', {"3": "explained"}),
        ("{}", None),
        ("{3", "{3"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_the_answers_to_changes_may_come_as_one(sent: str, answer: object) -> None:
    task = tasktypes.parse_definition(FILES["perturbation-vetting"])
    form = LabelForm(QueryDict(urlencode({"claim_check": sent})), task)
    assert form.answers.get("claim_check") == answer
