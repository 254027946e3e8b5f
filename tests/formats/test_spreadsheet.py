"""The first sheet of a workbook is read as CSV, with the row numbers that people see."""

import io
import zipfile
from datetime import date, datetime
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from formats import unpacking
from formats.readers import FORMATS
from formats.rows import DEFAULT_LIMITS, FormatError, Limits, Row

NINE = datetime.fromisoformat("2026-03-01 09:00")


def book(path: Path, *rows: list[Any], **others: list[list[Any]]) -> Path:
    made = openpyxl.Workbook()
    made.active.title = "Items"
    for row in rows:
        made.active.append(row)
    for name, cells in others.items():
        for row in cells:
            made.create_sheet(name).append(row)
    made.save(path)
    return path


def read(path: Path, limits: Limits = DEFAULT_LIMITS) -> list[Row]:
    return list(FORMATS["xlsx"].read(path, limits))


def test_rows_have_the_numbers_of_the_sheet_and_cells_the_texts_of_csv(tmp_path: Path) -> None:
    path = book(
        tmp_path / "items.xlsx",
        [],
        ["key", " gold ", "n", "day", "at", "yes", "share"],
        [
            "a",
            'one\ntwo, "three"; 4',
            5,
            date(2026, 3, 1),
            NINE,
            True,
            0.5,
        ],
        [],
        ["b", "=1+1", 5.0],
    )
    assert [(row.number, row.values) for row in read(path)] == [
        (3, {"key": "a", "gold": 'one\ntwo, "three"; 4', "n": "5", "day": "2026-03-01",
             "at": "2026-03-01 09:00:00", "yes": "TRUE", "share": "0.5"}),
        # openpyxl stores no result of a formula.
        (5, {"key": "b", "gold": "", "n": "5", "day": "", "at": "", "yes": "", "share": ""}),
    ]  # fmt: skip


def test_names_of_columns_may_have_line_breaks_and_semicolons(tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", ["Key\n(id)", "Text; with\nbreak"], ["a", "b"])
    assert read(path)[0].values == {"Key (id)": "a", "Text; with break": "b"}


def test_numbers_keep_the_zeros_of_their_format(tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", ["key", "share"], [7, 0.5])
    made = openpyxl.load_workbook(path)
    made.active["A2"].number_format, made.active["B2"].number_format = "0000", "0%"
    made.save(path)
    assert read(path)[0].values == {"key": "0007", "share": "0.5"}


def test_one_column_may_have_commas_and_control_characters_come_back(tmp_path: Path) -> None:
    rows = read(book(tmp_path / "a.xlsx", ["prompt"], ["Who, where?"], ["a_x000D_b _x005F_x0041_"],
                     ["_xD800_"]))  # fmt: skip
    assert [row.values["prompt"] for row in rows] == ["Who, where?", "a\rb _x0041_", "_xD800_"]


def test_merged_cells_are_refused_as_the_other_rows_would_lack_their_value(tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", ["key", "cluster"], ["a", "question 1"], ["b"], ["c"])
    made = openpyxl.load_workbook(path)
    made.active.merge_cells("B2:B4")
    made.save(path)
    with pytest.raises(FormatError, match=r"a\.xlsx: has merged cells \(B2:B4\)"):
        read(path)


def test_the_error_of_a_formula_is_no_text(tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", ["key", "prompt"], ["a", "#N/A?"], ["b", "#N/A"])
    with pytest.raises(FormatError, match=r"row 3: has the error #N/A in column B\. Correct"):
        read(path)


def test_sheets_that_are_not_read_are_told(tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", ["key"], ["a"], Notes=[["x"]], Key=[["y"]])
    told = unpacking.unpack(path, ".xlsx", tmp_path / "rows.csv", DEFAULT_LIMITS)
    assert told.startswith("The first sheet, “Items”, was read. Not read: “Notes”, “Key”.")
    hidden = openpyxl.load_workbook(path)
    hidden["Items"].sheet_state = "hidden"
    hidden.save(path)
    told = unpacking.unpack(path, ".xlsx", tmp_path / "rows.csv", DEFAULT_LIMITS)
    assert told.startswith("The first sheet, “Notes”, was read. Not read: “Key”.")
    with pytest.raises(FormatError, match=r"a\.xlsx: has more than one sheet. The first sheet, “N"):
        read(path)


@pytest.mark.parametrize(
    "rows, reason",
    [
        ([], "the first sheet, “Items”, is empty"),
        ([["key", None, "gold"], ["a"]], "a column has no usable name"),
        ([["key", "key"], ["a"]], "columns named twice: key"),
        ([["key"], ["a", None, "x"]], "row 2: has a value in column C, which has no name"),
        ([["key"]], "has column names but no rows"),
    ],
)
def test_sheets_that_are_no_table_are_refused(
    tmp_path: Path, rows: list[list[Any]], reason: str
) -> None:
    with pytest.raises(FormatError, match=reason):
        read(book(tmp_path / "a.xlsx", *rows))


def packed(path: Path, **parts: str | bytes) -> Path:
    """A workbook of which some parts are replaced."""
    stream = io.BytesIO()
    with zipfile.ZipFile(book(path, ["key"], ["a"])) as old, zipfile.ZipFile(stream, "w") as new:
        for info in old.infolist():
            name = Path(info.filename).stem
            said = parts.get(name, old.read(info))
            new.writestr(info.filename, said, zipfile.ZIP_DEFLATED)
    path.write_bytes(stream.getvalue())
    return path


ENTITIES = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
SHEET = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


@pytest.mark.parametrize(
    "content, reason",
    [
        pytest.param(b"A" * 50_000_000, "unpacks to more than 1,000,000 bytes", id="bomb"),
        pytest.param(
            f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e0 "ha">{ENTITIES}]>'
            f'<worksheet {SHEET}><sheetData><row r="1"><c t="inlineStr"><is><t>&e11;</t></is></c>'
            "</row></sheetData></worksheet>",
            "is damaged, or too large",
            id="entities",
        ),
        pytest.param("<worksheet><no", "is damaged, or too large", id="cut short"),
        pytest.param(
            f'<worksheet {SHEET}><sheetData><row r="1"><c t="inlineStr"><is><t>key</t></is></c>'
            '</row><row r="99999999999"><c><v>1</v></c></row></sheetData></worksheet>',
            "unpacks to more than 1,000,000 bytes",
            id="a row far below",
        ),
    ],
)
def test_hostile_workbooks_are_refused_within_the_limits(
    tmp_path: Path, content: str | bytes, reason: str
) -> None:
    path = packed(tmp_path / "a.xlsx", sheet1=content)
    with pytest.raises(FormatError, match=reason):
        unpacking.unpack(path, ".xlsx", tmp_path / "rows.csv", Limits(total_bytes=1_000_000))


def test_a_file_that_is_no_workbook_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    path.write_bytes(b"key,gold")
    with pytest.raises(FormatError, match=r"a\.xlsx: is not an XLSX workbook, or has a password"):
        read(path)
