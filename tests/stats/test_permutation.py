"""Lots are the same everywhere and for ever: samples that people have seen hang on them."""

import pytest

from stats.lots import draw_number


def test_a_lot_is_the_beginning_of_the_digest() -> None:
    # printf abc | sha256sum: ba7816bf8f01cfea...
    assert draw_number("abc", bits=64) == 0xBA7816BF8F01CFEA
    assert draw_number("abc", bits=63) == 0xBA7816BF8F01CFEA >> 1
    assert f"{draw_number('abc'):064x}".startswith("ba7816bf8f01cfea")


def test_lots_are_spread_over_their_range() -> None:
    lower = sum(draw_number(f"key-{number}", bits=64) < 2**63 for number in range(1000))
    # Binomial, n = 1000 and p = 1/2: the standard deviation is sqrt(250) = 15.8; four of them.
    assert abs(lower - 500) < 64


@pytest.mark.parametrize("words", ["", "é", "\ud800", "a\0b"])
def test_any_words_can_be_drawn(words: str) -> None:
    assert 0 <= draw_number(words) < 2**256
