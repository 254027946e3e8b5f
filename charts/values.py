"""Values along an axis, and what is said of one beside its mark."""

import altair as alt

from charts.axes import RATES, Axis


def x_channel(field: str, title: str, axis: Axis = RATES) -> alt.X:
    """Values from left to right, over the whole axis."""
    return (
        alt.X(f"{field}:Q")
        .scale(domain=[axis.low, axis.high], nice=False)
        .axis(format=axis.ticks, tickCount=5, title=title, titlePadding=8)
    )


def y_channel(field: str, title: str, axis: Axis = RATES) -> alt.Y:
    """Values from the bottom up, over the whole axis."""
    return (
        alt.Y(f"{field}:Q")
        .scale(domain=[axis.low, axis.high], nice=False)
        .axis(format=axis.ticks, tickCount=5, title=title)
    )


def interval_tooltip(value: str, title: str, written: str = RATES.tooltip) -> list[alt.Tooltip]:
    """What is said of a value with the interval and the n of its row, in a format of Vega's."""
    return [
        alt.Tooltip(f"{value}:Q", title=title, format=written),
        alt.Tooltip("low:Q", title="95 % from", format=written),
        alt.Tooltip("high:Q", title="to", format=written),
        alt.Tooltip("n:Q", title="n", format=","),
    ]
