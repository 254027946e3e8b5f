import csv
import io
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import delimited, jsonlines
from formats.rows import Limits
from formats.writers import (
    FIGURE_FORMATS,
    WRITERS,
    undo_formula_escape,
    write_csv,
    write_figures,
    write_jsonl,
    write_table,
    write_tsv,
)


def written(write, rows, columns):
    stream = io.StringIO(newline="")
    assert write(rows, columns, stream) == len(rows)
    return stream.getvalue()


def csv_cell(value):
    text = written(write_csv, [{"a": value, "b": "end"}], ["a", "b"])
    return list(csv.reader(io.StringIO(text, newline="")))[1][0]


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+cmd",
        "-- x",
        "@SUM(A1)",
        "\tx",
        "\r=1",
        "-1-1",
        "+",
        "＝1＋1",
        "＠SUM",
        "\n=1",
        "\ufeff=1",
    ],
)
def test_formulas_are_defused_in_csv(text):
    assert csv_cell(text) == "'" + text


def test_a_column_name_is_defused_as_well():
    assert written(write_csv, [], ["=HYPERLINK(1)"]) == "'=HYPERLINK(1)\r\n"


@pytest.mark.parametrize(
    "value", [-3, -0.25, "-0.25", "+4", "-1.5e-7", "-.5", "a=b", "'x", "1-2", "\nx"]
)
def test_numbers_and_plain_texts_are_left_alone_in_csv(value):
    assert csv_cell(value) == str(value)


@pytest.mark.parametrize(
    "value, cell",
    [
        (None, ""),
        (True, "true"),
        (1 / 3, "0.3333333333333333"),
        (["=1", {"å": None}], '["=1", {"å": null}]'),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "2026-01-02T03:04:00+00:00"),
        (Decimal("0.125"), "0.125"),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    ],
)
def test_values_other_than_text_have_one_form_in_csv(value, cell):
    assert csv_cell(value) == cell


def test_jsonl_writes_the_chosen_columns_in_order_and_nothing_escaped():
    text = written(write_jsonl, [{"b": "blå\u2028", "c": 1}, {"a": 0.1}], ["a", "b"])
    assert text == '{"a": null, "b": "blå\u2028"}\n{"a": 0.1, "b": null}\n'


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_the_order_and_number_of_columns_is_the_table_s_not_the_row_s(write):
    rows = [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 2, "c": 3}]
    first, *others = written(write, rows, ["a", "b"]).splitlines()[-3:]
    assert others == [first, first]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_table_is_one_json_document(count):
    rows = [{"rate": 0.1 * number, "other": 1} for number in range(count)]
    stream = io.StringIO()
    assert write_table("undetected", rows, ["rate", "low"], stream) == count
    assert json.loads(stream.getvalue()) == {
        "table": "undetected",
        "columns": ["rate", "low"],
        "rows": [{"rate": row["rate"], "low": None} for row in rows],
    }


def test_tsv_quotes_what_holds_a_tab_and_defuses_formulas():
    text = written(write_tsv, [{"a": "x\ty", "b": "=1"}, {"a": None, "b": 0.5}], ["a", "b"])
    assert text == 'a\tb\r\n"x\ty"\t\'=1\r\n\t0.5\r\n'


@pytest.mark.parametrize("form", FIGURE_FORMATS)
def test_a_table_of_figures_has_the_same_cells_in_every_format(form):
    stream = io.StringIO(newline="")
    assert write_figures(form, "detector", [{"f1": 0.25, "reason": None}], ["f1"], stream) == 1
    text = stream.getvalue()
    if form == "json":
        assert json.loads(text) == {"table": "detector", "columns": ["f1"], "rows": [{"f1": 0.25}]}
    elif form == "jsonl":
        assert json.loads(text) == {"f1": 0.25}
    elif form == "latex":
        assert "f1 \\\\\n\\midrule\n0.250 \\\\\n" in text
    elif form == "markdown":
        assert text == "| f1 |\n| ---: |\n| 0.250 |\n"
    else:
        assert text == "f1\r\n0.25\r\n"


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("value", ["\ud800", ["\udfff"], math.nan, math.inf, {1}, object()])
def test_what_cannot_be_written_is_named_with_row_and_column(write, value):
    with pytest.raises(ValueError, match="row 2, column 'b' cannot be written"):
        write([{"a": 1}, {"a": 2, "b": value}], ["a", "b"], io.StringIO())


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_rows_are_written_as_they_come(write):
    stream = io.StringIO()
    sizes = []

    def rows():
        for number in range(3):
            sizes.append(len(stream.getvalue()))
            yield {"a": number}

    assert write(rows(), ["a"], stream) == 3
    assert sizes == sorted(set(sizes))


texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
tables = st.lists(st.fixed_dictionaries({"a": texts, "b": texts}), min_size=1, max_size=5)


@given(tables)
def test_jsonl_comes_back_as_it_was(table):
    stream = io.BytesIO(written(write_jsonl, table, ["a", "b"]).encode())
    assert [row.values for row in jsonlines.read_rows(stream, "items.jsonl", Limits())] == table


@given(tables)
def test_csv_comes_back_once_the_apostrophes_are_off(table):
    stream = io.BytesIO(written(write_csv, table, ["a", "b"]).encode())
    for row, read in zip(table, delimited.read_rows(stream, "a.csv", ",", Limits()), strict=True):
        assert {name: undo_formula_escape(read.values[name]) for name in row} == row


@pytest.mark.parametrize("write", [write_csv, write_tsv])
def test_no_other_separator_splits_a_cell(write):
    # LibreOffice splits a CSV file at commas, semicolons and tabs unless somebody chooses others.
    cell = "a,b;=1+1\t=2+2"
    text = written(write, [{"a": cell, "b": "a; b"}], ["a", "b"])
    line = text.splitlines()[1]
    assert line in {f'"{cell}","a; b"', f'"{cell}"\t"a; b"'}


@given(st.lists(st.text("a|\"\r\n' é"), max_size=4), st.sampled_from([",", "\t"]))
def test_other_cells_are_quoted_as_the_csv_module_does(cells, delimiter):
    cells = [cell.replace("|", delimiter) for cell in cells]
    columns = [str(number) for number in range(len(cells))]
    # A line break before such a sign is skipped.
    signs = [cell.lstrip("'").lstrip("\n")[:1] for cell in cells]
    defused = [f"'{cell}" if sign in {"\t", "\r"} else cell
               for cell, sign in zip(cells, signs, strict=True)]  # fmt: skip
    expected = io.StringIO(newline="")
    csv.writer(expected, delimiter=delimiter).writerows([columns, defused])
    write = write_csv if delimiter == "," else write_tsv
    assert written(write, [dict(zip(columns, cells, strict=True))], columns) == expected.getvalue()
