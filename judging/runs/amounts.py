"""How amounts of money are written: with their currency, and as many decimals as are needed."""

from decimal import ROUND_UP, Decimal

from django.conf import settings


def format_amount(amount: Decimal) -> str:
    """Format an amount with its currency, without trailing zeros, with up to six decimals. An
    amount below 0.001 gets four significant digits, so that it does not look like 0."""
    return f"{_format_number(amount)} {settings.CURRENCY}"


def round_up(amount: Decimal) -> Decimal:
    """Round an amount up to the decimals that `format_amount` shows."""
    return amount.quantize(Decimal(1).scaleb(-_places(amount)), ROUND_UP)


def format_estimate(amount: Decimal | float) -> str:
    """Format a rough amount with its currency, as `format_rough_number` does."""
    return f"{format_rough_number(amount)} {settings.CURRENCY}"


def format_range(low: Decimal | float, high: Decimal | float) -> str:
    """Format a range of rough amounts with their currency."""
    return f"{format_rough_number(low)} to {format_estimate(high)}"


def format_rough_number(amount: Decimal | float) -> str:
    """Format a rough amount with two decimals, or with four significant digits if it is below 1.
    For tables, which name the currency in the head of the column."""
    return f"{amount:,.2f}" if amount >= 1 else _format_number(Decimal(f"{amount:.3e}"))


def _format_number(amount: Decimal) -> str:
    places = _places(amount) if amount else 0
    said = f"{amount:,.{places}f}"
    return said.rstrip("0").rstrip(".") if places else said


def _places(amount: Decimal) -> int:
    return max(6, 3 - amount.adjusted())
