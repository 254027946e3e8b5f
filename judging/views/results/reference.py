"""Reference: how far below the top do errors bring an answer? (study 000, tables 16, 17, 20)."""

from collections.abc import Sequence

from judging.results.scoring import BINS
from judging.views.results import flat, stacks
from judging.views.results.grids import Column
from judging.views.results.kinds import Ask, Asked, Place, Rows, Shown, View
from judging.views.results.rated import UNDETECTED, with_rates

KINDS = {"low": "Lower", "top2": "Two below the top", "top1": "One below the top", "top": "Top"}

_BY = ("ability", "category")
TABLES = (
    Place("table 16", ("reference",), _BY),
    Place("table 17", ("prometheus", "prometheus-axis"), _BY),
    Place("table 20", ("reference",), _BY),
)


def show(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """Bins of the scale; only the top is undetected."""
    rows = with_rates([row for row in tables[0] if row["top"] is not None], tables[1])
    shares = [(Column(KINDS[name], name), stacks.share(name, BINS[name])) for name in KINDS]
    grid = flat.table(asked, "Bins of the scale", rows, (*stacks.COUNTED, *shares, UNDETECTED))
    words = (
        "The answer is scored against the gold one. The top is undetected, everything below it"
        " detected. On score-invariant items the top is right."
    )
    caption = "Scores against the reference, by how far they are below the top"
    return Shown(grid, stacks.drawing(asked, rows, KINDS, "Share of items", caption), words)


VIEWS = (
    View(
        slug="bins",
        title="Bins of the scale",
        asks=(Ask("scores"), Ask("undetected")),
        show=show,
        studies={"000": TABLES},
        empty=(
            "None of the chosen runs scored answers against the gold one. Choose a run of such a"
            " strategy, for example reference or prometheus."
        ),
        switches=(flat.grouped(),),
    ),
)
