"""Rows that were not taken, as a file of their own to mend and send again."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Item
from tests import builders

pytestmark = pytest.mark.django_db

GOOD = {"category": "number-errors", **builders.TEXTS}
COLUMNS = ["key", "category", *builders.TEXTS]


def run(path: Path, **options: Any) -> str:
    said = io.StringIO()
    told = {"project": "p", "create": True, **options}
    call_command("import_items", str(path), stdout=said, stderr=said, **told)
    return said.getvalue()


def table(path: Path, delimiter: str, *rows: dict[str, Any]) -> Path:
    with path.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize("suffix, delimiter", [("csv", ","), ("tsv", "\t")])
def test_bad_rows_are_written_as_they_stand_under_their_header_and_taken_once_mended(
    tmp_path: Path, suffix: str, delimiter: str
) -> None:
    long = 'Ten "or"\nso, \t 你.'
    rows = [
        GOOD | {"key": "a"},
        GOOD | {"key": "b", "category": "none", "gold": long},
        GOOD | {"key": "", "gold": long},
        GOOD | {"key": "d"},
    ]
    path = table(tmp_path / f"items.{suffix}", delimiter, *rows)
    mend = tmp_path / f"mend.{suffix}"
    assert f"2 rejected rows are in {mend}." in run(path, mend=mend)
    found = list(csv.DictReader(io.StringIO(mend.read_text(), newline=""), delimiter=delimiter))
    assert found == rows[1:3]
    table(mend, delimiter, found[0] | {"category": "entity"}, found[1] | {"key": "c"})
    assert "2 imported, 0 unchanged" in run(mend)
    assert sorted(Item.objects.values_list("key", flat=True)) == ["a", "b", "c", "d"]
    assert Item.objects.get(key="c").revision().texts["gold"] == long


def test_lines_that_are_no_json_and_conflicts_are_there_to_mend(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    good = json.dumps(GOOD | {"key": "a"})
    other = json.dumps(GOOD | {"key": "a", "gold": "Ünd."})
    path.write_text(f"{good}\n\n{{no\n{other}\n{json.dumps(GOOD | {'key': 'b'})}", "utf-8")
    mend = tmp_path / "mend.jsonl"
    run(path, mend=mend, dry_run=True)
    assert mend.read_text("utf-8") == f"{{no\n{other}\n"


def test_ragged_rows_and_a_last_one_without_line_end_are_whole(tmp_path: Path) -> None:
    path = table(tmp_path / "items.csv", ",", GOOD | {"key": "a"})
    path.write_bytes(path.read_bytes() + b"b,too,few")
    mend = tmp_path / "mend.csv"
    run(path, mend=mend)
    assert mend.read_text("utf-8").splitlines() == [",".join(COLUMNS), "b,too,few"]


def test_where_every_row_is_bad_all_are_there_to_mend(tmp_path: Path) -> None:
    path = table(tmp_path / "items.csv", ",", GOOD | {"key": ""})
    with pytest.raises(CommandError, match="nothing was imported"):
        run(path, mend=tmp_path / "mend.csv")
    assert (tmp_path / "mend.csv").read_bytes() == path.read_bytes().removeprefix(b"\xef\xbb\xbf")


def test_without_bad_rows_there_is_nothing_to_mend(tmp_path: Path) -> None:
    path = table(tmp_path / "items.csv", ",", GOOD | {"key": "a"})
    assert "mend" not in run(path, mend=tmp_path / "mend.csv")
    assert not (tmp_path / "mend.csv").exists()


@pytest.mark.parametrize(
    "options, told",
    [
        ({"mend": "items.csv"}, "already exists"),
        ({"mend": "nowhere/mend.csv"}, "no such folder"),
        ({"mend": "mend.csv", "format": "fbi"}, "not with fbi"),
    ],
)
def test_a_file_that_cannot_take_the_rows_is_refused_before_anything_is_done(
    tmp_path: Path, options: dict[str, str], told: str
) -> None:
    path = table(tmp_path / "items.csv", ",", GOOD | {"key": "a"}, GOOD | {"key": ""})
    with pytest.raises(CommandError, match=told):
        run(path, **{**options, "mend": tmp_path / options["mend"]})
    assert not Item.objects.exists()
