"""Figures of agreement as people read them."""

from django import template

register = template.Library()

DASH = "—"


@register.filter
def coefficient(value: float | None) -> str:
    """A kappa or an alpha with three digits, a dash where there is none.

    1 is said of nothing less than 1.
    """
    if value is None:
        return DASH
    if 0.9995 <= value < 1:
        return "> 0.999"
    return "1" if value == 1 else f"{value:.3f}".replace("-", "−").replace("−0.000", "0.000")


@register.filter
def share(value: float | None) -> str:
    """A fraction of 1 as percent with one digit; all and none are said of nothing else."""
    if value is None:
        return DASH
    if 0 < value < 0.0005:
        return "< 0.1 %"
    if 0.9995 <= value < 1:
        return "> 99.9 %"
    return f"{100 * value:.1f} %"
