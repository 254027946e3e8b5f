"""Task types as a whole: every file keeps the contract, and each asks what its study asked."""

import tomllib
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from annotation import checks, importing, tasktypes
from annotation.errors import FieldError
from annotation.tasktypes import validation
from annotation.tasktypes.field_schema import SWITCHES
from annotation.tasktypes.fields import FIELD_KINDS, Field
from tests.builders import make_project

FILES = tasktypes.load_definitions()
# What every label was made under before there was more than one field.
OLD = {
    "slug": "perturbation-vetting",
    "title": "Perturbation vetting",
    "question": "Should this change cost the answer points?",
    "correctable": "perturbed",
    "texts": [
        {"name": "prompt", "title": "Prompt", "required": True},
        {"name": "gold", "title": "Gold answer", "required": True},
        {"name": "perturbed", "title": "Perturbed answer", "required": True},
        {"name": "claim", "title": "Claim", "required": False},
    ],
    "diff": {"from": "gold", "to": "perturbed"},
    "fields": [
        {
            "name": "choice",
            "kind": "choice",
            "title": "Your choice",
            "choices": [
                {"value": "valid", "title": "Valid", "help": "Costs points."},
                {"value": "not-sure", "title": "Not sure"},
            ],
        }
    ],
}


def task(slug: str, *switches: str) -> tasktypes.TaskType:
    return tasktypes.parse_definition(FILES[slug]).with_switches(set(switches))


def every_field(read: tasktypes.TaskType) -> tuple[Field, ...]:
    return read.fields + (read.blind.fields if read.blind else ())


def first_answers(asked: tuple[Field, ...]) -> dict[str, Any]:
    """An answer to every field: its first option, a word, or a passage."""
    passage = {"text": "perturbed", "start": 0, "end": 2, "quote": "It"}
    given: dict[str, Any] = {}
    for field in asked:
        if field.marks_texts:
            given[field.name] = [passage]
            continue
        first = field.options[0].value if field.options else "word"
        given[field.name] = {"choices": [first], "claim_check": {"0": first}}.get(field.kind, first)
    return given


def test_there_is_a_file_for_each_kind_of_work() -> None:
    assert set(FILES) == {
        "perturbation-vetting",
        "gold-verification",
        "error-detection",
        "rating",
        "rubric-scoring",
        "rubric-matrix",
        "rubric-one-score",
        "explanation-audit",
        "pairwise",
    }


@pytest.mark.parametrize("slug", FILES)
def test_every_file_keeps_the_contract(slug: str) -> None:
    read = tasktypes.parse_definition(FILES[slug])
    assert checks.find_problems(read) == []
    assert tasktypes.load_sources()[slug].startswith("# Study 00")
    assert tomllib.loads(tasktypes.load_sources()[slug]) == FILES[slug]
    assert read.deciding.rule
    for field in every_field(read):
        assert field.kind in FIELD_KINDS
        assert field.option in {"", *SWITCHES}
        keys = [option.key for option in field.options if option.key]
        assert len(set(keys)) == len(keys)
        if field.kind in {"choice", "choices", "scale", "points"}:
            assert all(option.help and len(option.examples) == 2 for option in field.options)


@pytest.mark.parametrize("slug", FILES)
def test_every_file_takes_a_full_answer_and_cleans_it_twice_alike(slug: str) -> None:
    read = tasktypes.parse_definition(FILES[slug])
    for stage in ("label", "blind"):
        cleaned = read.clean(first_answers(read.fields_at(stage)), stage=stage)
        assert read.clean(cleaned, stage=stage) == cleaned
        choice = read.choice_of(cleaned, stage)
        assert choice
        assert len(choice) <= tasktypes.CHOICE_LENGTH


@pytest.mark.parametrize("slug", FILES)
def test_every_file_refuses_an_empty_answer_and_one_it_did_not_ask_for(slug: str) -> None:
    read = tasktypes.parse_definition(FILES[slug])
    with pytest.raises(FieldError):
        read.clean({})
    with pytest.raises(FieldError, match="does not ask for colour"):
        read.clean({**first_answers(read.fields), "colour": "red"})


def test_a_definition_stored_before_there_were_other_fields_still_loads() -> None:
    read = tasktypes.parse_definition(OLD)
    assert (read.quick, read.categories, read.blind, read.raters) == (True, True, None, 1)
    assert read.deciding.options[1].key == "2"
    assert read.clean({"choice": "not-sure"}) == {"choice": "not-sure"}
    assert [field.name for field in read.resolved] == ["choice"]
    assert validation.find_problems(read) == []


def test_vetting_asks_why_somebody_is_not_sure_and_knows_where_the_item_goes() -> None:
    vetting = task("perturbation-vetting")
    with pytest.raises(FieldError, match="Why are you not sure"):
        vetting.clean({"choice": "not-sure"})
    routes = {}
    for reason in ("needs-expert", "gold-wrong", "question-unclear", "tool-trouble"):
        answers = vetting.clean({"choice": "not-sure", "reason": reason})
        assert vetting.choice_of(answers) == "not-sure"
        routes[reason] = vetting.route_of(answers)
    assert list(routes.values()) == ["expert", "gold-error", "exclude", ""]


def test_answers_whose_condition_does_not_hold_are_left_out() -> None:
    vetting = task("perturbation-vetting", "expected_effect")
    said = {"choice": "valid", "reason": "gold-wrong", "effect": "little"}
    assert vetting.clean(said) == {"choice": "valid", "effect": "little"}
    assert vetting.clean({**said, "choice": "invalid"}) == {"choice": "invalid"}


def test_fields_behind_a_switch_are_asked_only_where_it_is_on(db: None) -> None:
    project = make_project(expected_effect=True)
    names = [field.name for field in tasktypes.load_task_type(project).fields]
    assert names == ["choice", "reason", "effect"]
    project.claim_check, project.expected_effect = True, False
    names = [field.name for field in tasktypes.load_task_type(project).fields]
    assert names == ["choice", "reason", "claim_check", "evidence"]


def test_programs_are_told_what_is_asked_now(db: None) -> None:
    project = make_project(claim_check=True)
    told = tasktypes.asked_definition(project)
    names = [field["name"] for field in told["fields"]]
    assert names == ["choice", "reason", "claim_check", "evidence"]
    assert tasktypes.parse_definition(told) == tasktypes.load_task_type(project)


def test_blind_questions_are_answered_at_their_own_stage() -> None:
    vetting = task("perturbation-vetting")
    assert vetting.blind is not None
    assert vetting.blind.shows == ("prompt", "perturbed")
    assert vetting.clean({"error": "no"}, stage="blind") == {"error": False}
    with pytest.raises(FieldError, match=r"Where.*Or write it in “Where, in words"):
        vetting.clean({"error": "yes", "severity": "2"}, stage="blind")
    said = vetting.clean({"error": "yes", "place": "line 2", "severity": "2"}, stage="blind")
    assert said == {"error": True, "place": "line 2", "severity": 2}
    assert vetting.choice_of(said, "blind") == "yes"


def test_an_error_needs_its_types_or_other_words_and_always_an_explanation() -> None:
    detection = task("error-detection")
    error: dict[str, Any] = {"verdict": "error", "explanation": "2 + 2 is not 5."}
    with pytest.raises(FieldError, match="Which error categories"):
        detection.clean(error)
    with pytest.raises(FieldError, match="What is wrong"):
        detection.clean({"verdict": "error", "error_type": ["reasoning-correctness"]})
    two = ["context-faithfulness", "reasoning-correctness"]
    assert detection.clean({**error, "error_type": two})["error_type"] == two[::-1]
    assert "error_type" not in detection.clean({**error, "other_type": "It is cut off."})
    assert detection.clean({"verdict": "no_error", "error_type": two}) == {"verdict": "no_error"}


def test_not_sure_takes_an_item_out_of_error_detection() -> None:
    detection = task("error-detection")
    assert detection.drops({"verdict": "not_sure", "reason": "tool-trouble"})
    assert not detection.drops({"verdict": "no_error"})


def test_a_rating_is_three_numbers_by_three_people_with_correctness_deciding() -> None:
    rating = task("rating")
    answers = rating.clean({"naturalness": "3", "relatedness": 3, "correctness": "1"})
    assert answers == {"naturalness": 3, "relatedness": 3, "correctness": 1}
    assert rating.choice_of(answers) == "3/3/1"
    assert (rating.deciding.name, rating.raters) == ("correctness", 3)
    assert {field.rule for field in rating.resolved} == {"three"}
    assert [text.name for text in rating.texts if text.many] == ["gold"]


def test_a_rubric_adds_its_metrics_up_and_has_no_total_while_one_is_missing() -> None:
    rubric = task("rubric-scoring")
    # Study 002, figure 2: 2 + 3 + 5 + 2 + 3 = 15 at most.
    best = {field.name: field.options[-1].value for field in rubric.fields}
    assert list(best.values()) == [2, 3, 5, 2, 3]
    assert rubric.totals(rubric.clean(best)) == {"total": 15}
    assert rubric.choice_of(best) == "15"
    assert rubric.totals({"m1": 2}) == {}


def test_the_first_score_matrix_goes_from_minus_one_to_one() -> None:
    matrix = task("rubric-matrix")
    answers = matrix.clean({"s1": "1", "s2": "-1", "s3": "-1"})
    assert matrix.totals(answers) == {"total": -1}
    assert matrix.choice_of(answers) == "-1"
    assert [option.key for option in matrix.fields[0].options] == ["-", "0", "1"]


def test_a_version_is_read_once_and_read_again_if_it_is_another() -> None:
    version = SimpleNamespace(digest="one of a test", definition=FILES["rating"])
    assert tasktypes.load_version(version) is tasktypes.load_version(version)
    other = SimpleNamespace(digest="another of a test", definition=FILES["rubric-matrix"])
    assert tasktypes.load_version(other).slug == "rubric-matrix"


def test_a_stored_version_keeps_the_text_that_it_was_read_from(db: None) -> None:
    version = importing.load_task_type_version("rating")
    assert tomllib.loads(version.source) == version.definition
    assert importing.load_task_type_version("rating") == version


FIELD = {"name": "mood", "kind": "choice", "title": "Mood"}
GOOD_BAD = [{"value": "good", "title": "Good"}, {"value": "bad", "title": "Bad"}]
CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"slug": "Some Task"}, "slug: 'Some Task' is not a valid slug"),
    ({"texts": []}, "texts: has no required text"),
    ({"texts": OLD["texts"] + [{"name": "category", "title": "C"}]}, "text 5, name: 'category'"),
    ({"texts": OLD["texts"] + OLD["texts"][:1]}, "text 5, name: 'prompt' appears twice"),
    ({"correctable": "claim"}, "correctable: corrects 'claim'"),
    ({"decides": "mood"}, "decides: 'mood' is not a field; use choice."),
    ({"quick": True, "decides": "mood", "+": [{**FIELD, "choices": GOOD_BAD}]}, "quick: needs"),
    ({"+": [{**FIELD, "name": "choice", "choices": GOOD_BAD}]}, "'choice' appears twice"),
    (
        {"+": [{**FIELD, "name": "dataset", "choices": GOOD_BAD}]},
        "field 2, name: is 'dataset', which forms of a browser use",
    ),
    (
        {"+": [{**FIELD, "name": "hidden", "choices": GOOD_BAD}]},
        "field 2, name: is 'hidden', which forms of a browser use",
    ),
    (
        {"+": [{**FIELD, "choices": GOOD_BAD, "when": {"field": "x", "values": ["y"]}}]},
        "field 2, when: 'x' is not a field above",
    ),
    (
        {"+": [{**FIELD, "choices": GOOD_BAD, "when": {"field": "choice", "values": ["y"]}}]},
        "field 2, when: 'y' is not an answer of choice; use not-sure, valid.",
    ),
    ({"+": [{**FIELD, "choices": GOOD_BAD, "unless": "words"}]}, "field 2, unless: 'words'"),
    ({"+": [{**FIELD, "choices": GOOD_BAD, "rule": "median"}]}, "cannot be used for a choice"),
    ({"+": [{**FIELD, "kind": "text", "rule": "majority"}]}, "cannot be used for a text"),
    ({"+": [{**FIELD, "kind": "edit", "text": "answer"}]}, "field 2, text: 'answer' is not a text"),
    (
        {"diff": None, "+": [{**FIELD, "kind": "claim_check"}]},
        "the task compares no texts; add [diff]",
    ),
    ({"fields": [{**FIELD, "kind": "text"}]}, "a text field cannot decide"),
    ({"fields": [{**FIELD, "choices": GOOD_BAD, "required": False}]}, "must always be asked"),
    ({"blind": {"shows": ["colour"], "question": "?"}}, "blind, shows: colour: not a text"),
    ({"blind": {"shows": ["gold"], "question": "?"}}, "blind, fields: asks nothing"),
]


@pytest.mark.parametrize("change, said", CHANGES)
def test_parts_that_do_not_fit_are_named_with_their_place(change: dict, said: str) -> None:
    more = change.pop("+", [])
    definition = {**OLD, **change, "fields": [*change.get("fields", OLD["fields"]), *more]}
    definition = {name: value for name, value in definition.items() if value is not None}
    found = checks.find_problems(tasktypes.parse_definition(definition))
    assert any(said in problem for problem in found), found


def test_a_definition_that_cannot_be_read_names_the_task_type_and_the_place() -> None:
    fields = [*FILES["rating"]["fields"][:2], {"name": "x", "kind": "picture"}]
    with pytest.raises(tasktypes.TaskTypeError, match="'rating': field 3, kind") as raised:
        tasktypes.parse_definition({**FILES["rating"], "fields": fields})
    assert raised.value.place == ("fields", 2, "kind")


def test_a_first_look_does_not_call_a_text_changed_in_versions_without_titles_for_it() -> None:
    old, new = tasktypes.parse_definition(OLD), task("perturbation-vetting")
    for each in (old, new):
        titles = {text.name: text.title for text in each.at_first_look().texts}
        assert titles["perturbed"] == "Answer"
        assert titles["gold"] == "Gold answer"
    called = replace(new.texts[2], blind_title="What they wrote")
    other = replace(new, texts=(*new.texts[:2], called)).at_first_look()
    assert other.texts[2].title == "What they wrote"


def test_words_of_a_choice_are_those_that_were_seen_and_numbers_stay_numbers() -> None:
    assert task("perturbation-vetting").title_of("score-invariant") == "Score-invariant"
    assert task("perturbation-vetting").title_of("gone") == "gone"
    assert task("rating").title_of("3/3/1") == "3/3/1"
    assert replace(task("rubric-scoring"), decides="m1").title_of("15") == "15"
