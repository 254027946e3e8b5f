"""Figures on pages: filters that format shares, coefficients, counts and times, and charts."""

from collections.abc import Iterable
from typing import Any

from django import template

register = template.Library()

DASH = "—"
HEATS = 5


@register.filter
def share(value: float | None) -> str:
    """Format a fraction from 0 to 1 as percent with one decimal; None as a dash.

    0.0 % and 100.0 % appear only for exactly 0 and exactly 1.
    """
    if value is None:
        return DASH
    if 0 < value < 0.0005:
        return "< 0.1 %"
    if 0.9995 <= value < 1:
        return "> 99.9 %"
    return f"{100 * value:.1f} %"


@register.filter
def coefficient(value: float | None) -> str:
    """Format a kappa or an alpha with three decimals; None as a dash.

    Only a value of exactly 1 is shown as 1.
    """
    if value is None:
        return DASH
    if 0.9995 <= value < 1:
        return "> 0.999"
    return "1" if value == 1 else f"{value:.3f}".replace("-", "−").replace("−0.000", "0.000")


@register.filter
def number(value: float | None) -> str:
    """Format a count with thousands separators, a mean of counts below 100 with one decimal, None
    as a dash."""
    if value is None:
        return DASH
    if isinstance(value, int) or value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}"


@register.filter
def duration(seconds: float | None) -> str:
    """Format seconds as 3.2 s, 45 s or 2 min 5 s; None as a dash."""
    if seconds is None:
        return DASH
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


@register.filter
def hundredths(share: float | None) -> int:
    """Round a share from 0 to 1 to a whole percentage, for positions; 0 for None."""
    return round(100 * (share or 0))


@register.filter
def heat(value: float | None, bad: str) -> str:
    """Grade how bad a share is, from "0" to "4"; "" for None. `bad` says which shares are bad,
    "low" or "high"."""
    if value is None:
        return ""
    badness = min(1.0, max(0.0, 1 - value if bad == "low" else value))
    return str(min(HEATS - 1, int(badness * HEATS)))


@register.inclusion_tag("annotation/reports/_share.html")
def estimate(
    found: Any,
    bad: str = "",
    *,
    bar: float | None = None,
    href: str = "",
    note: str = "",
    with_n: bool = True,
) -> dict[str, Any]:
    """A cell that shows a share and its interval as text and as a mark; darker shading is worse."""
    shade = heat(found.value, bad) if bad else ""
    told = {"href": href, "note": note, "with_n": with_n}
    return {"found": found, "shade": shade, "bar": bar, **told}


@register.inclusion_tag("components/_chart.html")
def chart(name: str, spec: dict[str, Any], caption: str) -> dict[str, Any]:
    """A chart with a caption; the page must load the chart scripts. `name` is the id of the chart,
    unique on the page."""
    return {"name": name, "spec": spec, "caption": caption}


@register.filter
def reasons_in_words(reasons: Iterable[tuple[str, int]]) -> str:
    """Write counted reasons as one text. A reason "ANSWER: WHY" stands in brackets behind its
    answer, whose number includes it."""
    counts = dict(reasons)
    inner: dict[str, list[str]] = {title: [] for title in counts}
    for title, n in counts.items():
        answer, colon, why = title.partition(": ")
        if colon and answer in counts:
            inner[answer].append(f"{why}: {number(n)}")
            del inner[title]
    return "; ".join(
        f"{title}: {number(counts[title])}" + (f" ({', '.join(whys)})" if whys else "")
        for title, whys in inner.items()
    )
