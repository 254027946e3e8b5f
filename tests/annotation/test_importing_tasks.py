"""Items of the other task types: without categories, with several gold answers."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from annotation import reports, tables
from annotation.models import ApiToken, Item, Project, Slot
from tests.builders import make_member

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


def test_what_cannot_be_done_without_categories_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="this task has none"):
        imported(tmp_path, "error-detection", JUDGED, accept=True)
    with pytest.raises(CommandError, match="write it as NAME=FOUND"):
        imported(tmp_path, "error-detection", JUDGED, column=["response"])


def test_programs_and_exports_get_several_texts_as_a_list(tmp_path: Path) -> None:
    imported(tmp_path, "rating", RATED)
    project = Project.objects.get()
    _, key = ApiToken.issue(make_member(project).account, "test")
    program = Client(headers={"Authorization": f"Bearer {key}"})
    offer = program.post("/api/v1/projects/p/queue/next/").json()
    assert offer["item"]["texts"]["gold"] == ["red", "blue"]
    [row] = tables.items(project)
    assert row["gold"] == ["red", "blue"]


def test_an_export_keeps_texts_that_only_the_project_knows(tmp_path: Path) -> None:
    imported(tmp_path, "rating", RATED)
    revision = Item.objects.get().revision()
    revision.texts["mood"] = "calm"
    revision.save()
    [row] = tables.items(Project.objects.get())
    assert row["other_texts"] == {"mood": "calm"}


def test_pages_of_a_project_without_categories_say_so(tmp_path: Path) -> None:
    imported(tmp_path, "error-detection", JUDGED)
    project = Project.objects.get()
    [ability] = reports.by_ability(project)
    assert (ability.ability, ability.items) == ("", 1)
    client = Client()
    client.force_login(make_member(project, role="lead").account)
    for path in ("", "items/", "items/a/"):
        page = client.get(f"/projects/p/{path}")
        assert page.status_code == 200
        assert "No category" in page.text, path
