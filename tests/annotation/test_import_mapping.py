"""Columns with other names than an item has: which are meant, and how they are renamed."""

import csv
import io
import re
import shlex
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from annotation import tasktypes
from annotation.importing import column_mapping
from annotation.models import Item
from formats.rows import BadRow, Row
from tests import builders

VETTING = tasktypes.parse_definition(tasktypes.load_definitions()["perturbation-vetting"])
DETECTION = tasktypes.parse_definition(tasktypes.load_definitions()["error-detection"])


@pytest.mark.parametrize(
    "found, guessed",
    [
        (["ID", "Question", "Reference answer"], {"key": "ID", "prompt": "Question"}),
        (["key", "id", "PROMPT"], {"prompt": "PROMPT"}),
        (["question_id"], {"key": "question_id"}),
        (["What was changed"], {"claim": "What was changed"}),
        (["nothing", "known"], {}),
    ],
)
def test_what_a_column_means_is_told_by_its_name(found: list[str], guessed: dict[str, str]) -> None:
    said = column_mapping.guess_columns(VETTING, found)
    assert {name: said.get(name) for name in guessed} == guessed
    assert "category" not in said


def test_names_in_a_persons_own_words_are_told() -> None:
    said = column_mapping.guess_columns(
        VETTING, ["prompt_text", "reference", "broken", "type", "nr"]
    )
    found = {"key": "nr", "prompt": "prompt_text", "gold": "reference", "perturbed": "broken"}
    assert said == found | {"category": "type"}


def test_a_column_that_an_item_has_is_never_taken_for_another() -> None:
    assert (
        column_mapping.guess_columns(VETTING, ["key", "category", "prompt", "gold", "perturbed"])
        == {}
    )


def test_no_column_stands_for_two_names_and_what_every_item_needs_comes_first() -> None:
    said = column_mapping.guess_columns(VETTING, ["id", "answer", "changed", "type"])
    assert said == {"key": "id", "category": "type", "gold": "answer", "perturbed": "changed"}


def test_the_task_type_says_which_texts_there_are() -> None:
    assert column_mapping.guess_columns(DETECTION, ["output"]) == {"response": "output"}


def test_renamed_rows_keep_what_no_name_stands_for_and_bad_rows_as_they_are() -> None:
    bad = BadRow("f", 1, "", "no")
    row = Row("f", 2, {"meta": {"id": "a"}, "q": "Why?", "weight": 3, "b.c": "So."})
    named = {"key": "meta.id", "prompt": "q", "gold": "nowhere", "perturbed": "b.c"}
    first, second = column_mapping.rename_columns(iter([bad, row]), named)
    values = {"meta": {"id": "a"}, "weight": 3, "key": "a", "prompt": "Why?", "gold": None}
    values["perturbed"] = "So."
    assert (first, second) == (bad, Row("f", 2, values))


@pytest.mark.django_db
def test_a_file_with_wrong_column_names_is_refused_with_options_that_take_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "items.csv"
    texts = builders.TEXTS
    cells = ["a", "entity", texts["prompt"], texts["gold"], texts["perturbed"], "3"]
    with path.open("w", newline="", encoding="utf-8") as stream:
        header = ["Item ID", "Error type", "question", "Reference", "Changed answer", "weight"]
        csv.writer(stream).writerows([header, cells])
    asked = ["import_items", str(path), "--project", "p", "--create"]
    with pytest.raises(CommandError, match="missing columns") as caught:
        call_command(*asked)
    added = re.search(r"Did you mean (.*)", str(caught.value))
    assert added
    call_command(*asked, *shlex.split(added[1]), stdout=io.StringIO())
    item = Item.objects.get()
    assert (item.key, item.category, item.fields) == ("a", "entity", {"weight": "3"})
    assert item.revision().texts == texts
