"""Parquet: what is written comes back, and what is broken is named."""

import math
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formats import parquet
from formats.readers import FORMATS
from formats.rows import BadRow, FormatError, Limits, Row
from formats.writers import write_file

read_parquet = FORMATS["parquet"].read

KINDS = {"n": "int", "x": "float", "is": "bool", "at": "time", "more": "json"}
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def written(path: Path, rows: list[dict[str, Any]], columns: list[str]) -> Path:
    assert write_file("parquet", rows, columns, path, KINDS) == len(rows)
    return path


def values(path: Path, limits: Limits | None = None) -> list[dict[str, Any]]:
    rows = FORMATS["parquet"].read(path, limits or Limits())
    return [row.values for row in rows if isinstance(row, Row)]


def test_columns_have_the_type_of_their_kind(tmp_path: Path) -> None:
    rows = [
        {"n": 1, "x": Decimal("0.5"), "is": True, "at": NOON, "more": {"b": [1]}, "t": "=1"},
        {"t": ["a"], "n": None},
    ]
    path = written(tmp_path / "a", rows, ["n", "x", "is", "at", "more", "t"])
    types = [str(field.type) for field in pq.read_schema(path)]
    assert types == ["int64", "double", "bool", "timestamp[us, tz=UTC]", "string", "string"]
    first, second = values(path)
    assert first == {
        "n": 1, "x": 0.5, "is": True, "at": NOON.isoformat(), "more": {"b": [1]}, "t": "=1",
    }  # fmt: skip
    assert (second["n"], second["more"], second["t"]) == (None, None, '["a"]')


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4))
def test_texts_come_back_as_they_were(tmp_path: Path, texts: list[str]) -> None:
    rows = [{"t": text, "more": [text, {text: None}]} for text in texts]
    assert values(written(tmp_path / "a", rows, ["t", "more"])) == rows


def test_long_texts_are_counted_however_deep_they_are() -> None:
    rows: list[dict[str, Any]] = [{"t": [{"a": ["x" * 9]}]}, {"t": {"y" * 9: None}}, {"t": 1}]
    assert list(parquet.split_rows(rows, 100, 9)) == [rows[:1], rows[1:2], rows[2:]]


def test_rows_are_written_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "BATCH_ROWS", 2)
    monkeypatch.setattr(parquet, "BATCH_CHARACTERS", 10)
    monkeypatch.setattr(parquet, "GROUP_BYTES", 1)
    texts = ["a", "b", "long enough", "c", "d"]
    path = written(tmp_path / "a", [{"t": text} for text in texts], ["t"])
    assert pq.ParquetFile(path).metadata.num_row_groups == 3
    assert [row["t"] for row in values(path)] == texts
    assert len(list(FORMATS["parquet"].preview(path))) == 5


def test_a_table_without_rows_still_names_its_columns(tmp_path: Path) -> None:
    path = written(tmp_path / "a", [], ["n", "t"])
    assert pq.read_schema(path).names == ["n", "t"]
    with pytest.raises(FormatError, match="has no rows"):
        values(path)


@pytest.mark.parametrize(
    "column, value",
    [("n", "3"), ("n", True), ("n", 1 << 63), ("x", math.nan), ("t", "\ud800"), ("is", 1),
     ("at", "now"), ("more", {1}), ("t", object())],
)  # fmt: skip
def test_what_cannot_be_written_is_named(tmp_path: Path, column: str, value: Any) -> None:
    rows = [{"t": "a"}, {column: value}]
    with pytest.raises(ValueError, match=f"row 2, column '{column}' cannot be written"):
        write_file("parquet", rows, ["t", column], tmp_path / "a", KINDS)


def test_ids_and_days_are_texts(tmp_path: Path) -> None:
    rows = [{"t": UUID(int=7), "d": NOON.date()}]
    [row] = values(written(tmp_path / "a", rows, ["t", "d"]))
    assert row == {"t": "00000000-0000-0000-0000-000000000007", "d": "2026-01-02"}


def test_what_is_no_parquet_is_refused_whole(tmp_path: Path) -> None:
    path = written(tmp_path / "a", [{"t": "a" * 1000}], ["t"])
    (tmp_path / "b").write_bytes(path.read_bytes()[:-9])
    (tmp_path / "c").write_bytes(b"key,prompt\n")
    for name in "bc":
        with pytest.raises(FormatError, match="cannot be read as Parquet"):
            read_parquet(tmp_path / name)
    with pytest.raises(FormatError, match="no such file"):
        read_parquet(tmp_path / "none")


@pytest.mark.parametrize(
    "limits, said",
    [(Limits(total_bytes=100), "unpacks to more than 100 bytes"),
     (Limits(field_bytes=50), "longer than 50 bytes"), (Limits(row_bytes=10), "rows are too long")],
)  # fmt: skip
def test_no_more_is_taken_than_the_limits_say(tmp_path: Path, limits: Limits, said: str) -> None:
    path = written(tmp_path / "a", [{"t": "a" * 2000 + str(n)} for n in range(9)], ["t"])
    with pytest.raises(FormatError, match=said):
        read_parquet(path, limits)


def test_files_of_others_are_read_and_what_json_cannot_hold_is_a_bad_row(tmp_path: Path) -> None:
    table = pa.table({
        "list": [["a"], ["b"]], "deep": [{"a": 1}, {"a": 2}], "x": [0.5, math.inf],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "a")
    first, second = read_parquet(tmp_path / "a")
    assert isinstance(first, Row)
    assert first.values == {"list": ["a"], "deep": {"a": 1}, "x": 0.5}
    assert second == BadRow("a", 2, "x", "cannot be stored: inf is not finite")
    pq.write_table(pa.table({"b": [b"\x00"]}), tmp_path / "b")
    assert [type(row) for row in read_parquet(tmp_path / "b")] == [BadRow]
