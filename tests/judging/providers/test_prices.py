from decimal import Decimal
from typing import NamedTuple

from judging.evaluators.prices import Prices, compute_cost, estimate_cost

PRICES = Prices(Decimal("2.50"), Decimal(10))
WITH_PARTS = Prices(Decimal(2), Decimal(10), Decimal("0.5"), Decimal(12))


class Counts(NamedTuple):
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None
    tokens_reasoning: int | None = None


def test_cost_is_exact():
    # 1,234 x 2.50 / 10^6 + 56 x 10 / 10^6 = 0.003085 + 0.00056
    assert compute_cost(PRICES, Counts(1234, 56)) == Decimal("0.003645")


def test_an_unknown_price_or_count_gives_no_cost():
    assert compute_cost(Prices(Decimal(1), None), Counts(10, 10)) is None
    assert compute_cost(PRICES, Counts(None, 10)) is None


def test_what_is_free_costs_nothing_even_without_counts():
    assert compute_cost(Prices(Decimal(0), Decimal(0)), Counts()) == 0


def test_an_estimate_counts_the_body_and_the_longest_answer():
    # 3,001 bytes are 1,001 tokens: 0.0025025; 200 tokens out: 0.002
    assert estimate_cost(PRICES, b"x" * 3001, {"max_tokens": 200}) == Decimal("0.0045025")
    assert estimate_cost(PRICES, b"", {"maxOutputTokens": 7}) == Decimal("0.00007")
    assert estimate_cost(PRICES, b"", {"max_output_tokens": 7}) == Decimal("0.00007")
    # A server may know only one of the names, and read numbers of any kind.
    for seven in (7, 7.0, 6.5, "7", " 7.0"):
        for one in ("max_completion_tokens", "max_tokens", "maxOutputTokens", "n_predict"):
            limits = {"max_completion_tokens": 1, "max_tokens": 2, one: seven}
            assert estimate_cost(PRICES, b"", limits) == Decimal("0.00007")
    # What is no limit is ignored.
    usual = estimate_cost(PRICES, b"", {})
    for other in (0, -1, -(10**400), True, None, "much", "nan", [7], 0.0):
        assert estimate_cost(PRICES, b"", {"max_tokens": other}) == usual


def test_an_estimate_of_any_limit_can_be_stored():
    most = estimate_cost(PRICES, b"", {"max_tokens": 100_000_000})
    for more in (10**400, 1e300, "1e999"):
        assert estimate_cost(PRICES, b"", {"max_tokens": more}) == most


def test_cached_and_reasoning_tokens_have_their_own_prices():
    # 600 x 2 + 400 x 0.50 + 20 x 10 + 80 x 12, each / 10^6
    assert compute_cost(WITH_PARTS, Counts(1000, 100, 400, 80)) == Decimal("0.00256")


def test_without_own_prices_or_counts_the_parts_cost_as_the_whole():
    assert compute_cost(PRICES, Counts(1000, 100, 400, 80)) == Decimal("0.0035")
    assert compute_cost(WITH_PARTS, Counts(1000, 100)) == Decimal("0.003")


def test_a_part_that_is_larger_than_the_whole_is_the_whole():
    assert compute_cost(WITH_PARTS, Counts(10, 10, 99, 99)) == Decimal("0.000125")


def test_an_own_price_does_not_make_an_unknown_price_or_count_known():
    assert compute_cost(Prices(None, Decimal(0), Decimal(1)), Counts(10, 10, 10)) is None
    assert compute_cost(WITH_PARTS, Counts(None, 10, 10)) is None


def test_an_estimate_is_an_upper_bound_whichever_tokens_cost_more():
    cheap = Prices(Decimal(2), Decimal(10), Decimal("0.5"), Decimal(5))
    for prices in (WITH_PARTS, cheap):
        most = estimate_cost(prices, b"x" * 300, {"max_tokens": 100})
        assert most is not None
        for cached in (0, 50, 100):
            for reasoning in (0, 50, 100):
                cost = compute_cost(prices, Counts(100, 100, cached, reasoning))
                assert cost is not None
                assert cost <= most
    # The bound is met: 100 x 2 + 100 x 12.
    assert estimate_cost(WITH_PARTS, b"x" * 300, {"max_tokens": 100}) == Decimal("0.0014")


def test_an_estimate_without_a_limit_takes_1024_tokens():
    assert estimate_cost(Prices(Decimal(0), Decimal(1000)), b"", {}) == Decimal("1.024")
    assert estimate_cost(Prices(None, Decimal(1)), b"", {}) is None
