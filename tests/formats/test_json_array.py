"""A JSON list of objects is read like JSON Lines; the fifth object is row 5."""

import json
from pathlib import Path

import pytest

from formats import json_array
from formats.readers import FORMATS
from formats.rows import DEFAULT_LIMITS, BadRow, FormatError, Limits, Row


def read(tmp_path: Path, content: str | bytes, limits: Limits = DEFAULT_LIMITS) -> list[object]:
    path = tmp_path / "items.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(FORMATS["json"].read(path, limits))


OBJECTS = [{"key": "a", "n": [1, {"x": "],[ \n"}]}, {"key": "ü\u2028", "gold": '\\ " }'}, {}]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("part", [1, 3, 1 << 20])
def test_every_object_is_a_row_however_the_file_is_written(
    tmp_path: Path, indent: int | None, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_array, "_CHUNK", part)
    path = tmp_path / "a.json"
    path.write_text("\ufeff\n " + json.dumps(OBJECTS, indent=indent, ensure_ascii=False) + "\n")
    lines = list(json_array.convert(path, DEFAULT_LIMITS, print))
    assert [json.loads(line) for line in lines] == OBJECTS
    assert all(line.count("\n") == 1 for line in lines)


def test_rows_and_bad_rows_are_numbered(tmp_path: Path) -> None:
    first, bad, last = read(tmp_path, '[{"key": "a"}, 5, {"key": "b"}]')
    assert (first, last) == (
        Row("items.json", 1, {"key": "a"}),
        Row("items.json", 3, {"key": "b"}),
    )
    assert isinstance(bad, BadRow)
    assert (bad.line, bad.reason) == (2, "cannot be stored: the line is not a JSON object")


def test_a_file_with_one_object_per_line_is_read_too(tmp_path: Path) -> None:
    assert len(read(tmp_path, '{"key": "a"}\n\n{"key": "b"}\n')) == 2


@pytest.mark.parametrize(
    "content, reason",
    [
        ("", "is not a list of objects"),
        ("  ", "is not a list of objects"),
        ('"text"', "is not a list of objects"),
        ("[]", "the file is empty"),
        ('{\n"data": []}', "is neither a list nor lines of objects"),
        ('[{"key": "a"}', "object 1: cannot be read .the list does not end"),
        ('[{"key": "a"} {"key": "b"}]', "after object 1: there is no comma"),
        ('[{"key": "a"},]', "object 2: cannot be read .not JSON"),
        ('[{"key": "a}]', "object 1: cannot be read .not JSON: Unterminated string"),
        ('[{"key": "a"}] x', "has text after the end of the list"),
        (b'[{"key": "\xff"}]', "is not UTF-8"),
        ("[" * 100_000, "object 1: nested too deeply"),
    ],
)
def test_what_is_no_list_is_refused_with_the_place(
    tmp_path: Path, content: str | bytes, reason: str
) -> None:
    with pytest.raises(FormatError, match=reason):
        read(tmp_path, content)


def test_an_object_that_is_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_array, "_CHUNK", 10)
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"key": "a"}, {"key": "a" * 200}, {"key": "b"}]))
    with pytest.raises(FormatError, match="object 2: cannot be read"):
        list(json_array.convert(path, Limits(row_bytes=100), print))
    assert len(list(json_array.convert(path, Limits(row_bytes=220), print))) == 3


def test_a_number_of_many_digits_spoils_only_its_row(tmp_path: Path) -> None:
    bad, good = read(tmp_path, '[{"n": ' + "1" * 5_000 + '}, {"key": "a"}]')
    assert isinstance(bad, BadRow)
    assert isinstance(good, Row)
