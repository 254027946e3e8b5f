import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.jsonlines import check_lines, read_rows
from formats.readers import FORMATS
from formats.rows import BadRow, FormatError, Limits, Row

read_jsonl = FORMATS["jsonl"].read


def write(tmp_path, content):
    path = tmp_path / "items.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_objects_come_as_they_are_and_blank_lines_count_only_as_lines(tmp_path):
    path = write(tmp_path, '\ufeff{"a": "x\\ny", "n": [1, {"b": null}]}\r\n\n{"a": 0.5}')
    assert list(read_jsonl(path)) == [
        Row("items.jsonl", 1, {"a": "x\ny", "n": [1, {"b": None}]}),
        Row("items.jsonl", 3, {"a": 0.5}),
    ]


@pytest.mark.parametrize(
    "line, field, reason",
    [
        ('{"a": 1', "", "not JSON: "),
        ('{"a": 1} {"a": 2}', "", "not JSON: Extra data, at place 10"),
        ('"text"', "", "not a JSON object"),
        ("null", "", "not a JSON object"),
        ('{"a": NaN}', "", "NaN is not a JSON number"),
        ('{"a": -Infinity}', "", "Infinity is not a JSON number"),
        ('{"a": 1e999}', "", "1e999 is too large"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "", "twice"),
        ('{"a": "x\\u0000"}', "a", "NUL"),
        ('{"a": 1, "b": [{"c": ["\\ud83d"]}]}', "b", "surrogate"),
        ('{"b\\udc00": 1}', "'b\\udc00'", "surrogate"),
        ('{"a": ' + "[" * 100_000, "", "recursion"),
        ('{"a": ' + "[" * 101 + "]" * 101 + "}", "", "nested more than 100 deep"),
        ('{"a": ' + "9" * 5000 + "}", "", "cannot be stored"),
        (json.dumps(dict.fromkeys(range(10_001))), "", "more than 10,000 columns"),
        ('{"a": ' + "9" * 5000 + ".0}", "", "9…"),
    ],
)
def test_an_unusable_line_is_reported_and_its_neighbours_read(tmp_path, line, field, reason):
    first, bad, last = read_jsonl(write(tmp_path, f'{{"a": 1}}\n{line}\n{{"a": 2}}\n'))
    assert (first.values, last.values) == ({"a": 1}, {"a": 2})
    assert isinstance(bad, BadRow)
    assert (bad.line, bad.field) == (2, field)
    assert reason in bad.reason


def test_whole_characters_from_escapes_are_fine(tmp_path):
    path = write(tmp_path, r'{"a": "\ud83d\ude00 \\u0000 \\\\u0000"}')
    assert next(read_jsonl(path)).values == {"a": r"😀 \u0000 \\u0000"}


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ('[\n{"a": 1}\n]\n', "line 1: starts a JSON array. Give one object per line"),
        (b'{"a": 1}\n{"a": "\xff"}\n', "line 2: not UTF-8"),
        ('{"a": 1}\n{"b": "' + "x" * 10_000_000 + '"}', "line 2: the field 'b' is longer than"),
    ],
)
def test_a_faulty_file_is_refused_with_place_and_remedy(tmp_path, content, message):
    with pytest.raises(FormatError, match=message):
        read_jsonl(write(tmp_path, content))


def test_nested_values_are_measured_too(tmp_path):
    path = write(tmp_path, json.dumps({"a": ["x" * 60, "y" * 60]}))
    with pytest.raises(FormatError, match="field 'a' is longer than 100 bytes"):
        read_jsonl(path, Limits(field_bytes=100))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc\\u "), inner),
    max_leaves=4,
)
objects = st.dictionaries(st.text("abc\\u "), json_values)


@given(table=st.lists(objects, min_size=1, max_size=3), escaped=st.booleans())
def test_every_storable_object_comes_back(table, escaped):
    """Ten seconds with the many examples of CI."""
    text = "".join(json.dumps(row, ensure_ascii=escaped) + "\n" for row in table)
    read = read_rows(io.BytesIO(text.encode()), "items.jsonl", Limits())
    assert [row.values for row in read] == table


@pytest.mark.parametrize(
    "content",
    [
        '{"a": 1}\nno JSON\n{"a": "\\u0000"}\n',
        '\n\n[{"a": 1}]\n',
        '{"a": 1}\n[1]\n',
        "\n \n",
        b'{"a": 1}\n\xff\n',
        '{"a": 1}\n{"a": "' + "x" * 99 + '"}\n',
        '{"a": 1}\n{"a": "' + "x" * 30 + '", "b": "' + "x" * 30 + '"}\n',
        '{"a": 1}\n' + " " * 300 + "\n",
    ],
)
def test_the_first_reading_finds_every_fault_of_the_file_and_no_other(content):
    limits = Limits(field_bytes=60, row_bytes=200)
    content = content if isinstance(content, bytes) else content.encode()

    def fault(read):
        try:
            read(io.BytesIO(content), "f", limits)
        except FormatError as error:
            return str(error)
        return ""

    assert fault(check_lines) == fault(lambda *given: list(read_rows(*given)))


@pytest.mark.parametrize(
    "form, content", [("jsonl", b'\n\n{"a": 1}\n\n'), ("csv", b"\n\na\n1\n\n")]
)
def test_a_file_of_blank_lines_is_given_up(tmp_path, form, content):
    path = write(tmp_path, content)
    read = FORMATS[form].read
    assert len(list(read(path, Limits(blank_rows=3)))) == 1
    with pytest.raises(FormatError, match=r"line [45]: the file has too many blank lines"):
        list(read(path, Limits(blank_rows=2)))
