import csv
import io
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.delimited import read_rows
from formats.readers import FORMATS, pick_rows
from formats.rows import BadRow, FormatError, Limits, Row

read_csv = FORMATS["csv"].read
read_tsv = FORMATS["tsv"].read


def write(tmp_path, content, name="items.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_rows_carry_their_line_and_the_number_that_a_spreadsheet_shows(tmp_path):
    path = write(tmp_path, 'key,gold\na,"one\ntwo"\n\nb,"say ""x"""\n')
    assert list(read_csv(path)) == [
        Row("items.csv", 2, {"key": "a", "gold": "one\ntwo"}, 2),
        Row("items.csv", 5, {"key": "b", "gold": 'say "x"'}, 4),
    ]


def test_blank_rows_before_the_column_names_are_counted_and_not_picked(tmp_path):
    path = write(tmp_path, '\n\n"key\n(id)";gold\na;b\nc;d\n')
    assert list(read_csv(path)) == [
        Row("items.csv", 5, {"key\n(id)": "a", "gold": "b"}, 4),
        Row("items.csv", 6, {"key\n(id)": "c", "gold": "d"}, 5),
    ]
    assert list(pick_rows("csv", path, {6})) == ['"key\n(id)";gold\n', "c;d\n"]


def test_tabs_separate_in_tsv(tmp_path):
    path = write(tmp_path, 'key\tgold\na\t"b,\tc"\n', "items.tsv")
    assert [row.values for row in read_tsv(path)] == [{"key": "a", "gold": "b,\tc"}]


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path):
    path = write(tmp_path, b"\xef\xbb\xbfkey\r\na\r\n")
    assert list(read_csv(path)) == [Row("items.csv", 2, {"key": "a"}, 2)]


def test_texts_keep_their_line_ends(tmp_path):
    path = write(tmp_path, b'key,gold\r\na,"one\r\ntwo\rthree\n"\r\n')
    assert next(read_csv(path)).values["gold"] == "one\r\ntwo\rthree\n"


def test_ragged_rows_are_reported_and_their_neighbours_read(tmp_path):
    path = write(tmp_path, 'a,b\n1,2\n"x\ny",2,3\n4\n5,6\n')
    assert list(read_csv(path)) == [
        Row("items.csv", 2, {"a": "1", "b": "2"}, 2),
        BadRow("items.csv", 3, "", "the row has 3 fields, the header 2", number=3),
        BadRow("items.csv", 5, "", "the row has 1 fields, the header 2", number=4),
        Row("items.csv", 6, {"a": "5", "b": "6"}, 5),
    ]


def test_a_nul_character_spoils_only_its_row(tmp_path):
    bad, good = read_csv(write(tmp_path, "a,b\n1,x\0y\n2,z\n"))
    assert bad == BadRow("items.csv", 2, "b", "a NUL character cannot be stored", number=2)
    assert good.values == {"a": "2", "b": "z"}


@pytest.mark.parametrize(
    "content, message",
    [
        ("", r"items\.csv: the file is empty"),
        ("\n\n", r"items\.csv: the file is empty"),
        ("key,gold\n", r"items\.csv: has column names but no rows"),
        ("key,gold,key\n1,2,3\n", r"line 1: columns named twice: key\. Rename"),
        ("key, ,gold\n1,2,3\n", r"line 1: a column has no usable name"),
        ("key\0,gold\n1,2\n", r"line 1: a column has no usable name"),
        (b"key,gold\na,b\nc,caf\xe9\n", r"line 3: not UTF-8 \(byte 0xe9 at place 6 of the line"),
        ("key,gold\na,b\n".encode("utf-16"), r"line 1: not UTF-8 \(byte 0xff at place 1"),
        ('key,gold\na,b\nc,"open\nd,e\n', r"line 3: the row that starts here cannot be read"),
        ('key,gold\na,"b"c\n', r"line 2: the row .* double the quotation marks inside"),
        ("key,gold\ra,b\r", r"line 1: the row .* end every row with a line feed"),
    ],
)
def test_a_faulty_file_is_refused_with_place_and_remedy(tmp_path, content, message):
    with pytest.raises(FormatError, match=message):
        read_csv(write(tmp_path, content))


def test_a_fault_at_the_end_is_raised_before_any_row(tmp_path):
    path = write(tmp_path, b"key\n" + b"good\n" * 5000 + b"bad\xff\n")
    with pytest.raises(FormatError, match="line 5002"):
        read_csv(path)


def test_a_field_of_ten_megabytes_is_refused(tmp_path):
    path = write(tmp_path, "key,gold\na,b\nc," + "x" * 10_000_000 + "\n")
    with pytest.raises(FormatError, match=r"line 3: the field 'gold' is longer than 1,000,000 by"):
        read_csv(path)


@pytest.mark.parametrize("text, fits", [("é" * 50, True), ("é" * 50 + "x", False)])
def test_fields_are_measured_in_bytes(tmp_path, text, fits):
    path = write(tmp_path, f"gold\n{text}\n")
    if fits:
        assert next(read_csv(path, Limits(field_bytes=100))).values == {"gold": text}
    else:
        with pytest.raises(FormatError, match="longer than 100 bytes"):
            read_csv(path, Limits(field_bytes=100))


def test_fields_longer_than_the_csv_module_allows_by_itself_are_read(tmp_path):
    path = write(tmp_path, "gold\n" + "x" * 1_000_000 + "\n")
    assert len(next(read_csv(path)).values["gold"]) == 1_000_000


@pytest.mark.parametrize("row", ["x" * 300, '"' + "x\n" * 200, ",".join("x" * 200)])
def test_a_row_is_never_gathered_beyond_its_limit(tmp_path, row):
    path = write(tmp_path, f"gold\nfine\n{row}\n")
    with pytest.raises(FormatError, match="line 3: the row that starts here is longer than 250"):
        read_csv(path, Limits(row_bytes=250))


def test_a_header_is_as_wide_as_its_limit_and_no_wider(tmp_path):
    path = write(tmp_path, "a,b,c\n1,2,3\n")
    assert len(list(read_csv(path, Limits(columns=3)))) == 1
    with pytest.raises(FormatError, match="line 1: names more than 2 columns"):
        read_csv(path, Limits(columns=2))


def test_an_endless_line_is_given_up_at_the_limit(tmp_path):
    path = write(tmp_path, "gold\n" + "x" * 5_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="line 2: the row"):
            read_csv(path, Limits(row_bytes=100_000))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_the_file_is_never_held_as_a_whole(tmp_path):
    path = write(tmp_path, "gold\n" + ("x" * 999 + "\n") * 5000)
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_csv(path)) == 5000
        assert tracemalloc.get_traced_memory()[1] < 500_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name, fault", [("absent.csv", "no such file"), (".", "not a file")])
def test_what_is_no_file_is_refused(tmp_path, name, fault):
    with pytest.raises(FormatError, match=fault):
        read_csv(tmp_path / name)


cells = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
tables = st.lists(st.tuples(cells, cells), min_size=1, max_size=5)


@given(table=tables, delimiter=st.sampled_from(",\t"))
def test_whatever_was_quoted_comes_back(table, delimiter):
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=delimiter).writerows([("a", "b"), *table])
    read = read_rows(io.BytesIO(stream.getvalue().encode()), "items", delimiter, Limits())
    assert [tuple(row.values.values()) for row in read] == table


def test_column_names_with_an_open_quotation_mark_are_read_in_time_that_grows_with_their_lines(
    tmp_path,
):
    path = write(tmp_path, '"key\n' + "\n" * 500_000)
    started = time.process_time()
    with pytest.raises(FormatError, match="line 1: the row that starts here cannot be read"):
        next(read_csv(path))
    assert time.process_time() - started < 3


def test_names_of_columns_that_are_long_together_are_shortened_at_once(tmp_path):
    names = ",".join(f"{number} {'-?' * 1_000}" for number in range(2_000))
    path = write(tmp_path, f"{names},\n1\n")
    started = time.process_time()
    with pytest.raises(FormatError, match=r"no usable name \(found: '0 \.\.\.'"):
        next(read_csv(path))
    assert time.process_time() - started < 1
