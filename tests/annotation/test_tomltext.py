"""Where something stands in a TOML text, and texts written out from what they say."""

import tomllib

import pytest

from annotation import tasktypes
from annotation.tomltext import line_of, written

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
    assert line_of(TEXT, place) == line


@pytest.mark.parametrize("slug", tasktypes.definitions())
def test_a_definition_that_is_written_out_reads_as_it_was(slug: str) -> None:
    definition = tasktypes.definitions()[slug]
    assert tomllib.loads(written(definition)) == definition


def test_texts_with_quotes_breaks_and_signs_are_written_so_that_they_read_again() -> None:
    definition = {"a": 'say "no"\n\\ and \t\x7f\x01 “ü”', "b": [1, -1, 0.5, True], "c": {"d": []}}
    assert tomllib.loads(written(definition)) == definition
