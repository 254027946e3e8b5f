"""Prompts as studies have them: tables with other names, abilities by row, a bare list of texts."""

import csv
import io
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation import tasktypes
from annotation.importing import column_mapping
from annotation.items.taxonomy import load_shipped
from annotation.models import Item, Slot

pytestmark = pytest.mark.django_db

TASK = tasktypes.parse_definition(tasktypes.load_definitions()["gold-verification"])
PROMPTS = [
    "How can I sleep better, and why does light matter?",
    "What is the primary function of a capacitor?",
    "Write four lines that hold peace, sky, race and ground.",
    "A pen and a cap cost $1.10, the pen $1.00 more. What does the cap cost?",
    "Tell the story of a lighthouse; end it with a question.",
    "Which river runs through Vienna?",
    "List three fruits, each in capitals.",
    "What is 17 times 24?",
    "Compare letters with calls, in five paragraphs.",
    "Who wrote 'Emma'?",
]


def table(path: Path, header: list[str], rows: list[list[str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])
    return path


def bring(path: Path, *more: str) -> str:
    said = io.StringIO()
    asked = ["--project", "p", "--create", "--task-type", "gold-verification", *more]
    call_command("import_items", str(path), *asked, stdout=said, stderr=said)
    return said.getvalue()


@pytest.mark.parametrize("found", [["id", "question"], ["ID", "Prompt"], ["nr", "instruction"]])
def test_what_a_table_of_prompts_calls_its_columns_is_guessed(found: list[str]) -> None:
    assert column_mapping.guess_columns(TASK, found) == dict(
        zip(["key", "prompt"], found, strict=True)
    )


def test_ten_prompts_come_in_and_wait_for_their_gold_answer(tmp_path: Path) -> None:
    rows = [[f"q{number}", prompt] for number, prompt in enumerate(PROMPTS)]
    path = table(tmp_path / "prompts.csv", ["id", "question"], rows)
    with pytest.raises(CommandError, match="missing columns: key, prompt") as caught:
        bring(path)
    added = re.search(r"Did you mean (.*)", str(caught.value))
    assert added
    assert "10 imported" in bring(path, *shlex.split(added[1]))
    texts = {item.key: item.revision().texts for item in Item.objects.all()}
    assert texts == {f"q{number}": {"prompt": prompt} for number, prompt in enumerate(PROMPTS)}
    assert not Slot.objects.exists()


def test_rows_with_a_gold_answer_go_to_people_at_once(tmp_path: Path) -> None:
    rows = [["a", PROMPTS[0], "An answer."], ["b", PROMPTS[1], ""]]
    bring(table(tmp_path / "prompts.csv", ["key", "prompt", "gold"], rows))
    assert [slot.item.key for slot in Slot.objects.select_related("item")] == ["a"]


def test_a_key_by_another_name_is_asked_for_before_keys_are_made(tmp_path: Path) -> None:
    path = table(tmp_path / "prompts.csv", ["id", "prompt"], [["a", PROMPTS[0]]])
    with pytest.raises(CommandError, match="Did you mean --column key=id"):
        bring(path)


def test_a_list_of_prompts_under_one_heading_is_enough_and_again_is_nothing_new(
    tmp_path: Path,
) -> None:
    path = tmp_path / "prompts.csv"
    path.write_text("prompt\n" + "\n".join(PROMPTS) + "\n", encoding="utf-8")
    assert "10 imported" in bring(path)
    prompts = [item.revision().texts["prompt"] for item in Item.objects.order_by("position")]
    assert prompts == PROMPTS
    path.write_text("prompt\n" + "\n".join(reversed(PROMPTS)) + "\n", encoding="utf-8")
    assert "0 imported, 10 unchanged" in bring(path)


def test_an_item_of_another_task_still_needs_a_key_of_its_own(tmp_path: Path) -> None:
    path = table(tmp_path / "rows.csv", ["input", "response"], [["2+2?", "4"]])
    with pytest.raises(CommandError, match="missing columns: key"):
        call_command(
            "import_items", str(path), project="q", create=True, task_type="error-detection"
        )


def test_each_row_may_say_its_ability_by_slug_name_or_code(tmp_path: Path) -> None:
    said: dict[str, Any] = {"a": "factual", "b": "Long form", "c": "r", "d": "", "e": "of its own"}
    rows = [[key, prompt, said[key]] for key, prompt in zip(said, PROMPTS, strict=False)]
    bring(table(tmp_path / "prompts.csv", ["key", "prompt", "ability"], rows))
    kept = dict(Item.objects.values_list("key", "ability"))
    assert kept == said | {"b": "long-form", "c": "reasoning"}
    assert [one.code for one in load_shipped().sorts] == ["LF", "F", "IF", "R"]
