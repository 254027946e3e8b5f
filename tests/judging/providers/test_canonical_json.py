"""Bodies of requests are the same bytes as those that are on record, written by the standard
library."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.evaluators.providers.canonical_json import OrderedMapping, canonical_json

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
)  # fmt: skip


class Marked(str):
    """A text of a class of its own, as templates make."""


def write_plainly(value: Any) -> bytes:
    said = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return said.encode()


@given(VALUES)
def test_bytes_are_those_of_the_standard_library(value: Any) -> None:
    assert canonical_json(value) == write_plainly(value)


def test_each_character_is_written_alike() -> None:
    every = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))
    assert canonical_json([every]) == write_plainly([every])


@pytest.mark.parametrize("number", [1e-05, 1e16, 1e22, -0.0, 5e-324, 10**30, 0.1])
def test_numbers_are_written_as_python_writes_them(number: float) -> None:
    assert canonical_json({"n": number}) == f'{{"n":{number!r}}}'.encode()


def test_a_mapping_can_keep_its_order_and_tuples_are_lists() -> None:
    value = {"b": OrderedMapping(z=(1, {"d": 2, "c": 3}), a=Marked("x"))}
    assert canonical_json(value) == b'{"b":{"z":[1,{"c":3,"d":2}],"a":"x"}}'


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), "\ud800", "a\udfff"])
def test_what_json_has_no_form_for_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        canonical_json([value])


def test_other_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="A complex cannot be written as JSON"):
        canonical_json([1j])
