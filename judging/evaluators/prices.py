"""Costs of calls, in the site's currency, exact to the last digit."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

# Estimated bytes of UTF-8 per token: too low for English (about 4.3), nearly right for scripts with
# three bytes per character. So the reserved amount is more likely too high than too low.
BYTES_PER_TOKEN = 3
DEFAULT_MAX_TOKENS = 1024
# No call has more tokens. The cost of more may be larger than a database can store.
MAX_TOKENS = 100_000_000
# The parameter names of the limit on answer tokens; the name depends on the protocol and on the age
# of the model.
TOKEN_LIMIT_NAMES = (
    "max_completion_tokens",
    "max_tokens",
    "maxOutputTokens",
    "max_output_tokens",
)
# Further names by which some servers take it.
_OTHER_LIMIT_NAMES = ("max_new_tokens", "n_predict")


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices per million tokens, in and out; None if unknown, zero if free.

    Input tokens read from the provider's cache and tokens of reasoning may have prices of their
    own. If these are None, such tokens cost as much as any other input and output.
    """

    per_million_in: Decimal | None = None
    per_million_out: Decimal | None = None
    per_million_cached: Decimal | None = None
    per_million_reasoning: Decimal | None = None


class TokenCounts(Protocol):
    """The token counts of an answer or a stored reply; None if not reported. Cached tokens are a
    part of the input, tokens of reasoning a part of the output.
    """

    @property
    def tokens_in(self) -> int | None: ...

    @property
    def tokens_out(self) -> int | None: ...

    @property
    def tokens_cached(self) -> int | None: ...

    @property
    def tokens_reasoning(self) -> int | None: ...


def compute_cost(prices: Prices, counts: TokenCounts) -> Decimal | None:
    """Return the cost of one answer, or None if a price is unknown, or if a token count
    with a price other than zero is unknown.

    If the cached tokens or the tokens of reasoning are not reported, none of the tokens has their
    price.
    """
    return _add(
        _price_parts(
            prices.per_million_in,
            counts.tokens_in,
            prices.per_million_cached,
            counts.tokens_cached,
        ),
        _price_parts(
            prices.per_million_out,
            counts.tokens_out,
            prices.per_million_reasoning,
            counts.tokens_reasoning,
        ),
    )


def estimate_cost(prices: Prices, body: bytes, parameters: Mapping[str, Any]) -> Decimal | None:
    """Estimate the cost of a request before it is sent; None if a price is unknown.

    The number of input tokens is estimated from the size of the whole body and BYTES_PER_TOKEN. The
    answer is assumed to reach the highest token limit in the parameters (see TOKEN_LIMIT_NAMES), or
    DEFAULT_MAX_TOKENS if they have no limit. The limit includes the tokens of reasoning. Each token
    counts at the highest price that it may have, so that the result is an upper bound.
    """
    return bound_cost(prices, _tokens_in(body), _max_answer_tokens(parameters), max)


def bound_cost(
    prices: Prices, tokens_in: int, tokens_out: int, pick: Callable[[Iterable[Decimal]], Decimal]
) -> Decimal | None:
    """Return what these tokens cost at most (`pick` is max) or at least (min), however many of them
    come from a cache or are spent on reasoning; None if a price is unknown.
    """
    return _add(
        _price_tokens(_pick(pick, prices.per_million_in, prices.per_million_cached), tokens_in),
        _price_tokens(
            _pick(pick, prices.per_million_out, prices.per_million_reasoning), tokens_out
        ),
    )


def estimate_tokens(body: bytes, parameters: Mapping[str, Any]) -> int:
    """Estimate the input and output tokens that a request may use, as in `estimate_cost`."""
    return _tokens_in(body) + _max_answer_tokens(parameters)


def _tokens_in(body: bytes) -> int:
    return -(-len(body) // BYTES_PER_TOKEN)


def _max_answer_tokens(parameters: Mapping[str, Any]) -> int:
    return find_token_limit(parameters) or DEFAULT_MAX_TOKENS


def find_token_limit(parameters: Mapping[str, Any]) -> int | None:
    """Return the highest of the limits on the tokens of an answer, None if there is none: a server
    may know only one of their names, and take 4096.0 or "4096" for 4096."""
    names = (*TOKEN_LIMIT_NAMES, *_OTHER_LIMIT_NAMES)
    limits = [_parse_limit(parameters.get(name)) for name in names]
    return max(filter(None, limits), default=None)


def _parse_limit(value: object) -> int | None:
    """Return a token limit, at most MAX_TOKENS; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        # Too large an integer cannot become a float.
        limit = value if isinstance(value, int) else float(value)
    except ValueError:
        return None
    return math.ceil(min(limit, MAX_TOKENS)) if limit > 0 else None


def _add(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    return None if one is None or other is None else one + other


def _pick(
    pick: Callable[[Iterable[Decimal]], Decimal], price: Decimal | None, of_part: Decimal | None
) -> Decimal | None:
    return price if price is None or of_part is None else pick([price, of_part])


def _price_parts(
    per_million: Decimal | None, tokens: int | None, of_part: Decimal | None, part: int | None
) -> Decimal | None:
    """Return the cost of tokens of which a `part` may have a price of its own."""
    if tokens is None or not part or of_part is None:
        return _price_tokens(per_million, tokens)
    part = min(part, tokens)
    return _add(_price_tokens(per_million, tokens - part), _price_tokens(of_part, part))


def _price_tokens(per_million: Decimal | None, tokens: int | None) -> Decimal | None:
    if per_million is None:
        return None
    if per_million == 0:
        return Decimal(0)
    return None if tokens is None else (per_million * tokens).scaleb(-6)
