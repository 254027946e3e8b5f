"""What is exported, imported into an empty project and exported again: the same bytes."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from hypothesis import given
from hypothesis import strategies as st

from annotation import importing, tasktypes
from annotation.exporting import tables
from annotation.importing.comparison import ItemImportReport
from annotation.models import Item, Project, Slot
from formats.readers import FORMATS
from formats.rows import Row
from formats.writers import FILE_FORMATS, ZIP_FORMATS, undo_formula_escape, write_csv, write_file
from tests.builders import (
    correct,
    make_item,
    make_member,
    make_project,
    make_resolution,
    take,
)
from tests.hostile import CORPUS

pytestmark = pytest.mark.django_db
HOSTILE = [
    *CORPUS.values(),
    "'=1",
    "''+2",
    "'",
    '["a"]',
    "{}",
    "null",
    " x ",
    "a\r\nb\tc",
    "a\u2028b",
]


def brought(
    project: Project, rows: list[dict[str, Any]], *, accept: bool = False
) -> ItemImportReport:
    task = tasktypes.load_version(project.task_type)
    given = (Row("items.jsonl", line, row) for line, row in enumerate(rows, start=1))
    return importing.store_items(
        project, importing.parse_items(given, task, accept=accept), accept=accept
    )


def exported(project: Project, form: str, path: Path) -> bytes:
    columns = tables.TABLES["items"].columns_in(project)
    write_file(form, tables.item_rows(project), columns, path, tables.COLUMN_KINDS)
    return path.read_bytes()


def again(project: Project, form: str, path: Path, *, accept: bool = True) -> Project:
    """A project that was empty, after the export of this one was imported."""
    exported(project, form, path)
    other = make_project(task_type=project.task_type.slug)
    drafts = importing.parse_items(
        FORMATS[form].read(path), tasktypes.load_version(other.task_type), accept=accept
    )
    report = importing.store_items(other, drafts, accept=accept)
    assert (report.bad, report.conflicts) == ([], [])
    return other


@pytest.fixture
def vetting() -> Project:
    """Hostile texts, fields of all kinds, repeats, corrections, known answers, decisions."""
    project = make_project()
    rows = [
        {"key": f"=k{number}", "category": "number-errors", "prompt": text, "gold": text,
         "perturbed": f"{text}.", "claim": text, "cluster": f"c{number // 2}", "origin": "made",
         "weight": number, "deep": {"a": [text, None, 1.5, True]}, "flags": ["own"], text: "name"}
        for number, text in enumerate(HOSTILE)
    ]  # fmt: skip
    rows += [
        {**rows[0], "key": "repeat", "category": "formatting", "source_ability": "factual",
         "repeats": "=k0"},
        {**rows[1], "key": "known", "purpose": "practice", "known": "invalid",
         "explanation": "=See\nthere."},
    ]  # fmt: skip
    report = brought(project, rows)
    assert (report.new, report.bad) == (len(rows), [])
    member = make_member(project)
    correct(member, take(member), "@corrected")
    first, second, third = Item.objects.filter(project=project).order_by("position")[:3]
    Item.objects.filter(project=project, key__in=["repeat", "known"]).update(parent=first, dose=2)
    make_resolution(first, values={"choice": "valid"}, source="labels", rule="majority")
    decided = {"source": "adjudicated", "reason": "slip", "comment": "=1", "rule": "lead"}
    make_resolution(second, "invalid", values={"choice": "invalid"}, **decided)
    make_resolution(third, "invalid", values={"choice": HOSTILE[0]})
    return project


@pytest.fixture
def rating() -> Project:
    """Several gold answers, and abilities that no taxonomy rules."""
    project = make_project(task_type="rating")
    rows = [
        {"key": str(number), "prompt": text, "gold": [text, "=2", "b"][: number % 3 + 1],
         "response": text, "category": "own", "ability": "of ours", "language": "de"}
        for number, text in enumerate(HOSTILE)
    ]  # fmt: skip
    assert brought(project, rows).new == len(rows)
    first = Item.objects.filter(project=project).order_by("position")[0]
    make_resolution(first, "3/3/1", values={"correctness": 1, "naturalness": 3}, source="labels")
    return project


@pytest.mark.parametrize("form", [form for form in FILE_FORMATS if form not in ZIP_FORMATS])
@pytest.mark.parametrize("which", ["vetting", "rating"])
def test_an_export_comes_back_as_the_same_bytes(
    which: str, form: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    project = request.getfixturevalue(which)
    other = again(project, form, tmp_path / "first")
    assert exported(other, form, tmp_path / "b") == exported(project, form, tmp_path / "a")
    assert exported(other, "jsonl", tmp_path / "b") == exported(project, "jsonl", tmp_path / "a")


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
def test_the_command_imports_an_export_with_its_final_labels(
    rating: Project, form: str, tmp_path: Path
) -> None:
    exported(rating, form, tmp_path / f"items.{form}")
    other = make_project(task_type=rating.task_type.slug)
    call_command(
        "import_items", str(tmp_path / f"items.{form}"), project=other.slug, accept=True,
        stdout=io.StringIO(),
    )  # fmt: skip
    assert exported(other, form, tmp_path / "again") == exported(rating, form, tmp_path / "first")


def test_the_same_export_again_changes_nothing(vetting: Project, tmp_path: Path) -> None:
    other = again(vetting, "jsonl", tmp_path / "first")
    rows = [json.loads(line) for line in (tmp_path / "first").read_bytes().splitlines()]
    report = brought(other, rows, accept=True)
    assert (report.new, report.unchanged, report.conflicts) == (0, len(rows), [])


def test_without_accepting_people_are_asked_anew(vetting: Project, tmp_path: Path) -> None:
    other = again(vetting, "jsonl", tmp_path / "first", accept=False)
    held = [row["key"] for row in tables.item_rows(other) if row["resolution"]]
    assert held == ["known"]
    assert Slot.objects.filter(item__project=other, item__key="=k0").exists()


def test_of_what_is_accepted_only_what_was_undecided_is_asked(
    vetting: Project, tmp_path: Path
) -> None:
    other = again(vetting, "jsonl", tmp_path / "first")
    slots = Slot.objects.filter(item__project=other)
    assert not slots.filter(item__key="=k0").exists()
    assert slots.filter(item__key="=k3").exists()


@pytest.mark.parametrize(
    "column, value",
    [
        ("revision", 0),
        ("revision", True),
        ("revision", "x"),
        ("source", "elsewhere"),
        ("rule", "r" * 41),
        ("fields", ["a"]),
        ("values", "{"),
    ],
)
def test_an_export_that_was_changed_by_hand_is_named(column: str, value: Any) -> None:
    project = make_project()
    make_resolution(make_item(project, "a"))
    [row] = tables.item_rows(project)
    report = brought(make_project(), [{**row, column: value}], accept=True)
    assert [(one.line, one.field) for one in report.bad] == [(1, column)]


@pytest.mark.parametrize("value", [None, "2", True, [2], 1e308])
def test_an_export_whose_numbers_are_none_is_named(rating: Project, value: Any) -> None:
    row = next(row for row in tables.item_rows(rating) if row["resolution"])
    values = {**row["values"], "correctness": value}
    report = brought(make_project(task_type="rating"), [{**row, "values": values}], accept=True)
    assert [(one.line, one.field) for one in report.bad] == [(1, "values")]


@given(st.text("'=+-@\t\r1.a"))
def test_what_was_defused_can_be_told_from_what_was_not(text: str) -> None:
    stream = io.StringIO(newline="")
    write_csv([{"a": text}], ["a"], stream)
    cell = stream.getvalue().removeprefix("a\r\n").removesuffix("\r\n").removeprefix('"')
    assert undo_formula_escape(cell.removesuffix('"')) == text
