"""Items of the other task types: without categories, with several gold answers."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from annotation.exporting import tables
from annotation.labelling import queue
from annotation.models import ApiToken, Item, Project, Resolution, Slot
from annotation.projects.views import home
from tests.builders import make_account, make_member

pytestmark = pytest.mark.django_db

RATED = {"key": "a", "prompt": "Name a colour.", "gold": ["red", "blue"], "response": "Green."}
JUDGED = {"key": "a", "input": "Add 2 and 2.", "response": "5"}


def imported(tmp_path: Path, task_type: str, *rows: dict[str, Any], **options: Any) -> str:
    path = tmp_path / "items.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    said = io.StringIO()
    options = {"project": "p", "create": True, "task_type": task_type, **options}
    call_command("import_items", str(path), stdout=said, stderr=said, **options)
    return said.getvalue()


def test_items_of_a_task_without_categories_need_none(tmp_path: Path) -> None:
    imported(tmp_path, "error-detection", {**JUDGED, "category": "sums", "weight": 2})
    item = Item.objects.get()
    assert (item.category, item.ability, item.source_ability) == ("sums", "", "")
    assert item.fields == {"weight": 2}
    assert item.revision().texts == {"input": "Add 2 and 2.", "response": "5"}


def test_a_text_that_may_be_several_is_a_list_also_when_one_is_given(tmp_path: Path) -> None:
    rows = [RATED, {**RATED, "key": "b", "gold": "red"}]
    assert "2 imported" in imported(tmp_path, "rating", *rows)
    golds = [item.revision().texts["gold"] for item in Item.objects.order_by("key")]
    assert golds == [["red", "blue"], ["red"]]
    assert "0 imported, 2 unchanged" in imported(tmp_path, "rating", *rows)


def test_a_project_that_an_import_creates_gets_the_lead_that_is_named(tmp_path: Path) -> None:
    account = make_account("ada")
    assert "no lead" not in imported(tmp_path, "rating", RATED, lead="ada")
    lead = Project.objects.get().members.get()
    assert (lead.account, lead.role) == (account, "lead")
    assert "no lead yet" in imported(tmp_path, "rating", RATED, project="q")
    for project, name, why in (("p", "ada", "for a new project"), ("r", "eve", "no user 'eve'")):
        with pytest.raises(CommandError, match=why):
            imported(tmp_path, "rating", RATED, project=project, lead=name)
    assert Project.objects.count() == 2


def test_a_rating_has_room_for_its_three_raters(tmp_path: Path) -> None:
    imported(tmp_path, "rating", RATED)
    assert Project.objects.get().overlap == 3
    assert Slot.objects.count() == 3


@pytest.mark.parametrize(
    "change, said",
    [
        ({"gold": []}, "gold: is empty or missing"),
        ({"gold": ["", " "]}, "gold: is empty or missing"),
        ({"gold": ["red", 2]}, "gold: is neither a text nor a list of texts"),
        ({"gold": {"a": 1}}, "gold: is neither a text nor a list of texts"),
        ({"gold": ["r\0d"]}, "gold: a NUL character or half of a surrogate pair"),
        ({"prompt": ["a"]}, "prompt: is not text"),
        ({"ability": "x" * 81}, "ability: must be one line of at most 80"),
        ({"category": "two\nlines"}, "category: must be one line"),
    ],
)
def test_what_cannot_be_used_is_told(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    good = {**RATED, "key": "good"}
    assert said in imported(tmp_path, "rating", good, {**RATED, **change})
    assert Item.objects.get().key == "good"


def test_another_ability_of_a_row_is_a_conflict(tmp_path: Path) -> None:
    imported(tmp_path, "error-detection", {**JUDGED, "ability": "sums"})
    said = imported(tmp_path, "error-detection", {**JUDGED, "ability": "words"})
    assert "exists with other ability" in said


def test_columns_of_a_file_can_be_called_something_else(tmp_path: Path) -> None:
    # The shape of study 001's published files.
    row = {"input": "Add 2 and 2.", "llm_response": "5", "error_label": "error"}
    row |= {"metadata": {"id": "m-1", "task_name": "sums"}}
    named = ["response=llm_response", "key=metadata.id", "category=metadata.task_name"]
    imported(tmp_path, "error-detection", row, column=named)
    item = Item.objects.get()
    assert (item.key, item.category) == ("m-1", "sums")
    assert item.revision().texts == {"input": "Add 2 and 2.", "response": "5"}
    assert item.fields == {"error_label": "error", "metadata": {"id": "m-1", "task_name": "sums"}}


DECIDED = {
    **JUDGED,
    "verdict": "error",
    "error_type": ["reasoning-correctness"],
    "explanation": "It is 4.",
    "source": "made up",
}


def test_without_categories_an_accepted_row_says_itself_what_was_decided(tmp_path: Path) -> None:
    imported(tmp_path, "error-detection", DECIDED, accept=True)
    held = Resolution.objects.get()
    assert (held.value, held.source, held.comment) == ("error", "imported", "It is 4.")
    assert held.values == {"verdict": "error", "error_type": ["reasoning-correctness"]}
    assert held.item.fields == {"source": "made up"}
    assert not Slot.objects.exists()


def test_what_does_not_go_with_the_decision_is_kept_as_it_came(tmp_path: Path) -> None:
    imported(tmp_path, "error-detection", {**DECIDED, "verdict": "no_error"}, accept=True)
    held = Resolution.objects.get()
    assert held.values == {"verdict": "no_error", "error_type": ["reasoning-correctness"]}


@pytest.mark.parametrize(
    "change, said",
    [
        ({"verdict": ""}, "verdict: is empty or missing"),
        ({"verdict": "wrong"}, "verdict: "),
        ({"error_type": ["typos"]}, "error_type: "),
    ],
)
def test_a_decision_that_the_task_does_not_know_is_a_bad_row(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    good = {**DECIDED, "key": "b"}
    assert said in imported(tmp_path, "error-detection", {**DECIDED, **change}, good, accept=True)
    assert Resolution.objects.get().item.key == "b"


def test_a_row_that_was_decided_otherwise_is_a_conflict_and_changes_nothing(
    tmp_path: Path,
) -> None:
    imported(tmp_path, "error-detection", DECIDED, accept=True)
    other = {**DECIDED, "verdict": "no_error"}
    assert "1 in conflict" in imported(tmp_path, "error-detection", other, accept=True)
    assert "1 unchanged" in imported(tmp_path, "error-detection", DECIDED, accept=True)
    assert Resolution.objects.get().value == "error"


RATINGS = {**RATED, "naturalness": 3, "relatedness": 2, "correctness": 1}


def test_a_number_off_its_scale_is_missing_and_the_others_are_taken_as_decided(
    tmp_path: Path,
) -> None:
    row = {**RATINGS, "relatedness": 9, "source": "made up"}
    said = imported(tmp_path, "rating", row, accept=True, errors=tmp_path / "told.csv")
    assert "missing: items.jsonl, line 1, relatedness: 9 is outside the scale" in said
    assert "1 rows: 1 imported, 0 unchanged, 0 in conflict, 0 bad" in said
    assert "1 numbers are outside their scale and count as missing." in said
    assert "relatedness" in (tmp_path / "told.csv").read_text()
    held = Resolution.objects.get()
    assert (held.value, held.values) == ("3/-/1", {"naturalness": 3, "correctness": 1})
    assert held.item.fields == {"relatedness": 9, "source": "made up"}
    again = imported(tmp_path, "rating", row, accept=True)
    assert "0 imported, 1 unchanged" in again
    assert "missing: items.jsonl, line 1, relatedness: 9 is outside the scale" in again


def test_without_the_number_that_decides_the_others_are_held_true(tmp_path: Path) -> None:
    imported(tmp_path, "rating", {**RATINGS, "correctness": "0"}, accept=True)
    held = Resolution.objects.get()
    assert (held.value, held.values) == ("3/2/-", {"naturalness": 3, "relatedness": 2})
    points = dict.fromkeys(("m2", "m3", "m4", "m5"), 0)
    row = {"key": "b", "prompt": "Sum?", "gold": "4", "response": "5", "m1": 7, **points}
    imported(tmp_path, "rubric-scoring", row, accept=True, project="q")
    held = Resolution.objects.get(item__key="b")
    assert (held.value, held.values) == ("-", points)


@pytest.mark.parametrize(
    "change, field",
    [
        ({"naturalness": 9, "relatedness": 9, "correctness": 9}, "naturalness"),
        ({"relatedness": "four"}, "relatedness"),
        ({"correctness": ""}, "correctness"),
    ],
)
def test_a_decision_without_any_number_or_with_words_for_one_is_a_bad_row(
    tmp_path: Path, change: dict[str, Any], field: str
) -> None:
    with pytest.raises(CommandError, match="No valid rows"):
        imported(tmp_path, "rating", {**RATINGS, **change}, accept=True, errors=tmp_path / "bad")
    assert f",{field}," in (tmp_path / "bad").read_text()


def published(tmp_path: Path, **options: Any) -> Item:
    row = {
        "input": "Write a sum.",
        "llm_response": "1 + 1 = 3",
        "error_label": "error",
        "error_categories": ["Reasoning Correctness", "Instruction-Following"],
        "human_explanation": "It is 2.",
        "metadata": {"id": "m1", "task_name": "a_task", "llm_response_model": "m", "dataset": "d"},
    }
    path = tmp_path / "m.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")
    wanted = {"project": "p", "create": True, "format": "realmistake", **options}
    call_command("import_items", str(path), **wanted, stdout=io.StringIO())
    return Item.objects.get()


def test_study_001s_items_come_with_their_labels_and_metadata(tmp_path: Path) -> None:
    item = published(tmp_path, accept=True)
    held = item.resolutions.get()
    assert item.project.task_type.slug == "error-detection"
    assert item.fields == {
        "task": "a_task",
        "response_model": "m",
        "task_name": "a_task",
        "dataset": "d",
    }
    assert held.values["error_type"] == ["reasoning-correctness", "instruction-following"]
    assert (held.value, held.comment) == ("error", "It is 2.")


def test_study_001s_labels_stay_out_where_people_are_to_label_anew(tmp_path: Path) -> None:
    item = published(tmp_path)
    assert not item.resolutions.exists()
    assert not {"verdict", "error_type", "explanation"} & item.fields.keys()
    assert item.slots.count() == 1


def test_only_archives_take_a_password(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="Leave --password out"):
        imported(tmp_path, "error-detection", JUDGED, password="x")


def test_programs_and_exports_get_several_texts_as_a_list(tmp_path: Path) -> None:
    imported(tmp_path, "rating", RATED)
    project = Project.objects.get()
    _, key = ApiToken.issue(make_member(project).account, "test")
    program = Client(headers={"Authorization": f"Bearer {key}"})
    offer = program.post("/api/v1/projects/p/queue/next/").json()
    assert offer["item"]["texts"]["gold"] == ["red", "blue"]
    [row] = tables.item_rows(project)
    assert row["gold"] == ["red", "blue"]


def test_an_export_keeps_texts_that_only_the_project_knows(tmp_path: Path) -> None:
    imported(tmp_path, "rating", RATED)
    revision = Item.objects.get().revision()
    revision.texts["mood"] = "calm"
    revision.save()
    [row] = tables.item_rows(Project.objects.get())
    assert row["other_texts"] == {"mood": "calm"}


def test_pages_of_a_project_without_categories_speak_of_none(tmp_path: Path) -> None:
    imported(tmp_path, "error-detection", JUDGED)
    project = Project.objects.get()
    assert home.sort_by_ability(project, queue.count_by_category(project, "")) == []
    client = Client()
    client.force_login(make_member(project, role="lead").account)
    for path in ("", "items/", "items/a/"):
        page = client.get(f"/projects/p/{path}")
        assert page.status_code == 200
        assert "No category" not in page.text, path
        assert "by category" not in page.text, path


def test_a_column_that_is_not_named_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="write it as NAME=FOUND"):
        imported(tmp_path, "error-detection", JUDGED, column=["response"])


def test_the_page_of_an_item_shows_its_own_fields_and_why_it_is_held_for_that(
    tmp_path: Path, client: Client
) -> None:
    item = published(tmp_path, accept=True)
    lead = make_member(item.project, role="lead")
    client.force_login(lead.account)
    page = client.get(reverse("item", args=[item.project.slug, item.key])).content.decode()
    facts = page[page.index("facts-title") : page.index("</dl>", page.index("facts-title"))]
    assert 'response_model</code></dt><dd class="text" dir="auto">m</dd>' in facts
    assert "It is 2." in facts
    assert "Reasoning correctness, Instruction following" in facts
    assert "Category" not in facts
