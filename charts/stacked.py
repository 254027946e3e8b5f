"""Stacked bar chart: one bar per group, whose parts are shares of the group's items."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from charts import marks

BAR_HEIGHT = 26
# Whole counts, or three decimals if the repeats of an item each count as a fraction of it.
NUMBER_FORMAT = ",.3~f"


@dataclass(frozen=True, slots=True)
class BarPart:
    """The number of items of a group that are of one `kind`. It is a fraction if the repeats of an
    item each count as a fraction of it."""

    group: str
    kind: str
    n: float


def draw_stacked_bars(
    parts: Sequence[BarPart], *, kinds: Sequence[str], title: str
) -> dict[str, Any]:
    """Return a Vega-Lite specification: groups from top to bottom in order, kinds from left to
    right.

    Kinds go from dark to light, have an outline, and show their number if there is room, so that no
    colours need to be distinguished. A group without items has no bar.
    """
    groups = list(dict.fromkeys(part.group for part in parts))
    shared = {"y": marks.row_axis("group", groups), "tooltip": _tooltip()}
    bar = alt.MarkDef("bar", stroke=marks.OUTLINE, strokeWidth=1, height=alt.RelativeBandSize(0.72))
    said = f"format(datum.n, '{NUMBER_FORMAT}')"
    layers = [
        marks.layer(
            bar,
            **shared,
            x=_share("from", title),
            x2=alt.X2("to"),
            color=marks.colour_in_order("kind", kinds, ""),
        ),
        marks.layer(
            alt.MarkDef("text", fontSize=11, baseline="middle"),
            **shared,
            x=_share("middle", None),
            text=alt.Text("n:Q", format=NUMBER_FORMAT),
            color=marks.text_colour_by("kind", kinds),
            opacity=marks.hide_if_narrow("datum.share * width", f"length({said})"),
        ),
    ]
    height = max(1, len(groups)) * marks.row_height(groups, BAR_HEIGHT)
    own_scales = alt.Resolve(scale=alt.ScaleResolveMap(color="independent"))
    return marks.draw(layers, _values(parts, kinds), height, resolve=own_scales)


def _values(parts: Sequence[BarPart], kinds: Sequence[str]) -> list[dict[str, Any]]:
    """Return each part with its start and end, as shares of its group."""
    totals: dict[str, float] = {}
    for part in parts:
        totals[part.group] = totals.get(part.group, 0) + part.n
    ends: dict[str, float] = dict.fromkeys(totals, 0.0)
    found = []
    for part in sorted(parts, key=lambda part: kinds.index(part.kind)):
        if not totals[part.group]:
            continue
        share, begin = part.n / totals[part.group], ends[part.group]
        ends[part.group] = begin + share
        place = {"from": begin, "to": begin + share, "middle": begin + share / 2, "share": share}
        said = {"group": part.group, "kind": part.kind, "n": part.n, "of": totals[part.group]}
        found.append({**said, **place})
    return found


def _share(field: str, title: str | None) -> alt.X:
    axis = alt.Axis(format="%", tickCount=5, title=title, titlePadding=8)
    return alt.X(f"{field}:Q", scale=marks.SHARES, axis=axis)


def _tooltip() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("group:N", title="Items"),
        alt.Tooltip("kind:N", title="Part"),
        alt.Tooltip("n:Q", title="n", format=NUMBER_FORMAT),
        alt.Tooltip("of:Q", title="of", format=NUMBER_FORMAT),
        alt.Tooltip("share:Q", title="Share", format=".1%"),
    ]
