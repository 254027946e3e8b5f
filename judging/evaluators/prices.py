"""Costs of calls, in the currency of the endpoint's prices, exact to the last digit."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

# Estimated bytes of UTF-8 per token: too low for English (about 4.3), nearly right for scripts with
# three bytes per character. So the reserved amount is more likely too high than too low.
BYTES_PER_TOKEN = 3
DEFAULT_MAX_TOKENS = 1024
# The parameter names of the limit on answer tokens; the name depends on the protocol and on the age
# of the model.
TOKEN_LIMIT_NAMES = ("max_completion_tokens", "max_tokens", "maxOutputTokens")


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices per million tokens, in and out; None if unknown, zero if free."""

    per_million_in: Decimal | None = None
    per_million_out: Decimal | None = None


def compute_cost(prices: Prices, tokens_in: int | None, tokens_out: int | None) -> Decimal | None:
    """Return the cost of one answer, or None if a price is unknown, or if a token count
    with a price other than zero is unknown.
    """
    sums = [
        _price_tokens(prices.per_million_in, tokens_in),
        _price_tokens(prices.per_million_out, tokens_out),
    ]
    known = [part for part in sums if part is not None]
    return sum(known, Decimal(0)) if len(known) == len(sums) else None


def estimate_cost(prices: Prices, body: bytes, parameters: Mapping[str, Any]) -> Decimal | None:
    """Estimate the cost of a request before it is sent; None if a price is unknown.

    The number of input tokens is estimated from the size of the whole body and BYTES_PER_TOKEN. The
    answer is assumed to reach the token limit in the parameters (see TOKEN_LIMIT_NAMES), or
    DEFAULT_MAX_TOKENS if they have no limit.
    """
    return compute_cost(prices, _tokens_in(body), _max_answer_tokens(parameters))


def estimate_tokens(body: bytes, parameters: Mapping[str, Any]) -> int:
    """Estimate the input and output tokens that a request may use, as in `estimate_cost`."""
    return _tokens_in(body) + _max_answer_tokens(parameters)


def _tokens_in(body: bytes) -> int:
    return -(-len(body) // BYTES_PER_TOKEN)


def _max_answer_tokens(parameters: Mapping[str, Any]) -> int:
    for name in TOKEN_LIMIT_NAMES:
        value = parameters.get(name)
        if isinstance(value, int) and value > 0:
            return value
    return DEFAULT_MAX_TOKENS


def _price_tokens(per_million: Decimal | None, tokens: int | None) -> Decimal | None:
    if per_million is None:
        return None
    if per_million == 0:
        return Decimal(0)
    return None if tokens is None else (per_million * tokens).scaleb(-6)
