from decimal import Decimal

from judging.evaluators.prices import Prices, compute_cost, estimate_cost

PRICES = Prices(Decimal("2.50"), Decimal(10))


def test_cost_is_exact():
    # 1,234 x 2.50 / 10^6 + 56 x 10 / 10^6 = 0.003085 + 0.00056
    assert compute_cost(PRICES, 1234, 56) == Decimal("0.003645")


def test_an_unknown_price_or_count_gives_no_cost():
    assert compute_cost(Prices(Decimal(1), None), 10, 10) is None
    assert compute_cost(PRICES, None, 10) is None


def test_what_is_free_costs_nothing_even_without_counts():
    assert compute_cost(Prices(Decimal(0), Decimal(0)), None, None) == 0


def test_an_estimate_counts_the_body_and_the_longest_answer():
    # 3,001 bytes are 1,001 tokens: 0.0025025; 200 tokens out: 0.002
    assert estimate_cost(PRICES, b"x" * 3001, {"max_tokens": 200}) == Decimal("0.0045025")
    assert estimate_cost(PRICES, b"", {"maxOutputTokens": 7}) == Decimal("0.00007")
    assert estimate_cost(PRICES, b"", {"max_completion_tokens": 7, "max_tokens": 9}) == Decimal(
        "0.00007"
    )


def test_an_estimate_without_a_limit_takes_1024_tokens():
    assert estimate_cost(Prices(Decimal(0), Decimal(1000)), b"", {}) == Decimal("1.024")
    assert estimate_cost(Prices(None, Decimal(1)), b"", {}) is None
