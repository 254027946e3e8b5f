"""Where something stands in a TOML text, and texts written out from what they say."""

import time
import tomllib
from contextlib import suppress

import pytest

from annotation import tasktypes
from annotation.tasktypes.toml_text import (
    find_line,
    parse,
    set_slug,
    set_value,
    write_definition,
)

TEXT = """\
# A comment.
slug = "x"
note = \"\"\"
[[fields]]
title = "not here"
\"\"\"

[[fields]]
name = "a"

[[fields.choices]]
value = "one"

[[fields.choices]]
value = "two"
key = "7"  # [[fields]]

[[fields]]
name = "b"
when = { field = "a", values = ["one"] }

[[fields.choices]]
value = "three"

[blind]
question = "?"

[[blind.fields]]
name = "c"
"""


@pytest.mark.parametrize(
    "place, line",
    [
        (("slug",), 2),
        (("fields", 0), 8),
        (("fields", 0, "choices", 1), 14),
        (("fields", 0, "choices", 1, "key"), 16),
        (("fields", 0, "choices", 1, "title"), 14),
        (("fields", 1, "when"), 20),
        (("fields", 1, "when", "values"), 20),
        (("fields", 1, "choices", 0, "value"), 23),
        (("blind", "question"), 26),
        (("blind", "fields", 0, "name"), 29),
        (("texts",), None),
        ((), None),
    ],
)
def test_a_place_has_its_line_or_that_of_the_table_round_it(place: tuple, line: int) -> None:
    assert find_line(TEXT, place) == line


@pytest.mark.parametrize("slug", tasktypes.load_definitions())
def test_a_definition_that_is_written_out_reads_as_it_was(slug: str) -> None:
    definition = tasktypes.load_definitions()[slug]
    assert tomllib.loads(write_definition(definition)) == definition


def test_texts_with_quotes_breaks_and_signs_are_written_so_that_they_read_again() -> None:
    definition = {"a": 'say "no"\n\\ and \t\x7f\x01 “ü”', "b": [1, -1, 0.5, True], "c": {"d": []}}
    assert tomllib.loads(write_definition(definition)) == definition


@pytest.mark.parametrize(
    "text",
    [
        "two\nlines",
        '\nof \\ and \r\n\t\x00 "quotes" and three """',
        'an end\n"in quotes"',
        "\n",
        "\u2028\n",
    ],
)
def test_a_text_over_several_lines_is_written_over_several_lines(text: str) -> None:
    shown = write_definition({"a": text, "b": 1})
    assert tomllib.loads(shown) == {"a": text, "b": 1}
    assert shown.count("\n") == 3 + text.count("\n")  # behind """, and of two lines


def test_a_key_that_is_no_bare_one_is_quoted() -> None:
    definition = {"points": {"0.5": "half", "-1": "none", "ü": {"a b": 1}}}
    assert tomllib.loads(write_definition(definition)) == definition


def test_a_slug_is_put_where_one_stands_and_else_before_everything() -> None:
    assert set_slug('a = 1\nslug = "x"\n', "y") == 'a = 1\nslug = "y"\n'
    assert set_slug("a = 1\n", "y") == 'slug = "y"\na = 1\n'
    prompt = 'prompt = """\n[BEGIN]\nslug = 1\n"""\n'
    assert set_slug(prompt, "y") == f'slug = "y"\n{prompt}'
    assert set_slug(f'{prompt}slug = "x"', "y") == f'{prompt}slug = "y"'


def test_a_break_that_is_no_line_of_toml_moves_no_line() -> None:
    assert find_line('a = "\u2028"\nb = 1\n', ("b",)) == 2


def test_a_value_with_quotes_is_put_so_that_it_reads_again() -> None:
    changed = set_value('a = 1\ntitle = "x"\n[title2]\n', "title", 'say "no" \\')
    assert tomllib.loads(changed)["title"] == 'say "no" \\'


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"[[t{number}]]" for number in range(20_000)),
        "[" + "a." * 100_000 + "a]",
        "a." * 100_000 + "a = 1",
        'a = "' + r"\"" * 100_000,
        '"".' * 40_000,
        ("a." * 49 + "a ") * 2_000,
        ("a." * 49 + f'"{"b" * 201}".') * 660 + "a = 1",
        ("a." * 49 + f"'{'b' * 201}'.") * 660 + "a = 1",
        "a = '" + "\"'" * 100_000,
        ('"' + "b" * 500 + '"') * 400,
    ],
)
def test_a_hostile_text_takes_no_time(text: str) -> None:
    started = time.process_time()
    set_slug(text, "x")
    with suppress(tomllib.TOMLDecodeError):
        parse(text)
    assert time.process_time() - started < 3
