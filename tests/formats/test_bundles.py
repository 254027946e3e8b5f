"""Archives of tables: read one after the other, told apart from those of studies, picked from."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from formats import bundles
from formats.readers import FORMATS
from formats.rows import BadRow, FormatError, Limits, Row
from formats.writers import write_file

read_zip = FORMATS["zip"].read

LIMITS = Limits()


def packed(tmp_path: Path, **members: str) -> Path:
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), content)
    return path


def test_every_table_is_read_under_its_own_columns(tmp_path: Path) -> None:
    path = packed(
        tmp_path,
        b_tsv="key\tweight\nb\t3\n",
        a__a_csv='key,gold\na,"x, y"\nragged\n',
        c_jsonl=json.dumps({"key": "c"}),
        README_txt="no rows",
    )
    found = list(read_zip(path))
    assert [(row.file, row.line) for row in found] == [
        ("a/a.csv", 2), ("a/a.csv", 3), ("b.tsv", 2), ("c.jsonl", 1),
    ]  # fmt: skip
    assert [row.values for row in found if isinstance(row, Row)] == [
        {"key": "a", "gold": "x, y"}, {"key": "b", "weight": "3"}, {"key": "c"},
    ]  # fmt: skip
    assert isinstance(found[1], BadRow)


def test_an_archive_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="contains no CSV, TSV, JSON Lines, Parquet or XLSX"):
        read_zip(packed(tmp_path, README_txt="no rows"))


def test_a_fault_at_the_end_is_told_before_the_first_row(tmp_path: Path) -> None:
    path = packed(tmp_path, a_csv="key\na\n", b_csv='key\n"a\n')
    with pytest.raises(FormatError, match=r"b\.csv, line 2"):
        read_zip(path)
    assert next(FORMATS["zip"].preview(path)) == Row("a.csv", 2, {"key": "a"}, 2)


@pytest.mark.parametrize(
    "members, layout",
    [
        ({"data__factual__number-errors_tsv": "x"}, "fbi"),
        ({"factual__number-errors_tsv": "x", "own_tsv": "x"}, "zip"),
        ({"items_csv": "x"}, "zip"),
    ],
)
def test_the_names_inside_tell_the_layout(
    tmp_path: Path, members: dict[str, str], layout: str
) -> None:
    assert bundles.detect_layout(packed(tmp_path, **members), LIMITS) == layout


def test_the_folders_of_study_001_tell_its_layout(tmp_path: Path) -> None:
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data/answerability_classification/gpt-4.jsonl", "{}")
    assert bundles.detect_layout(path, LIMITS) == "realmistake"


def test_a_small_parquet_file_in_an_archive_must_not_unpack_to_a_large_one(tmp_path: Path) -> None:
    """A text that many rows hold stands once in the file, and once for each row behind it."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 2_000, pa.int32()), ["b" * 5_000])
    pq.write_table(pa.table({"key": texts}), tmp_path / "a.parquet", compression="zstd")
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.write(tmp_path / "a.parquet", "a.parquet")
    assert (tmp_path / "data.zip").stat().st_size < 5_000
    with pytest.raises(FormatError, match=r"a\.parquet: unpacks to more than 5,000,000 bytes"):
        list(read_zip(tmp_path / "data.zip", Limits(small_bytes=5_000_000)))


def test_rows_are_picked_file_by_file_as_they_stand(tmp_path: Path) -> None:
    path = packed(tmp_path, a_csv='key\na\n"b\nb"\nc\n', b_jsonl="{}\n{no\n", d_csv="key\nd\n")
    starts: dict[str, Any] = {"a.csv": {3}, "b.jsonl": {2}, "gone.csv": {1}}
    found = {name: "".join(lines) for name, lines in bundles.pick_rows(path, LIMITS, starts)}
    assert found == {"a.csv": 'key\n"b\nb"\n', "b.jsonl": "{no\n"}


def test_an_archive_that_bursts_or_climbs_out_is_refused(tmp_path: Path) -> None:
    bomb = packed(tmp_path, a_csv="key\n" + "a" * 900_000)
    with pytest.raises(FormatError, match="unpacks to more than 800,000 bytes"):
        read_zip(bomb, Limits(small_bytes=800_000))
    with zipfile.ZipFile(tmp_path / "climbs.zip", "w") as archive:
        archive.writestr("../../a.csv", "key\na\n")
    with pytest.raises(FormatError, match="lies outside the archive's folder"):
        read_zip(tmp_path / "climbs.zip")


def with_parquet(folder: Path, *keys: str) -> Path:
    write_file("parquet", [{"key": key} for key in keys], ["key"], folder / "b.parquet", {})
    path = packed(folder, a_csv="key\na\n")
    with zipfile.ZipFile(path, "a") as archive:
        archive.write(folder / "b.parquet", "more/b.parquet")
    return path


def test_parquet_in_an_archive_is_read_and_picked_as_lines(tmp_path: Path) -> None:
    path = with_parquet(tmp_path, "b", "c")
    told = [(row.file, row.line, row.values) for row in read_zip(path) if isinstance(row, Row)]
    assert told == [
        ("a.csv", 2, {"key": "a"}),
        ("more/b.parquet.jsonl", 1, {"key": "b"}),
        ("more/b.parquet.jsonl", 2, {"key": "c"}),
    ]
    starts = {"more/b.parquet.jsonl": {2}}
    found = {name: "".join(lines) for name, lines in bundles.pick_rows(path, LIMITS, starts)}
    assert found == {"more/b.parquet.jsonl": '{"key": "c"}\n'}


def test_parquet_in_an_archive_is_refused_by_its_name(tmp_path: Path) -> None:
    path = packed(tmp_path, a_csv="key\na\n", more__b_parquet="PAR1")
    with pytest.raises(FormatError, match=r"b\.parquet: cannot be read as Parquet"):
        read_zip(path)
    twice = with_parquet(tmp_path, "b")
    with zipfile.ZipFile(twice, "a") as archive:
        archive.writestr("more/b.parquet.jsonl", "{}")
    with pytest.raises(FormatError, match=r"more/b\.parquet and more/b\.parquet\.jsonl"):
        read_zip(twice)
