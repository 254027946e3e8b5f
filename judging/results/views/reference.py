"""Reference: how far errors move an answer below the top score (study 000, tables 16, 17, 20)."""

from collections.abc import Sequence

from judging.results.scores import BINS
from judging.results.views import run_group_tables, stacked_charts
from judging.results.views.cells import Column
from judging.results.views.page_parts import (
    PageQuery,
    ResultView,
    Rows,
    StudyFigure,
    TableQuery,
    ViewContent,
)
from judging.results.views.undetected_beside import UNDETECTED_COLUMN, add_rates

BIN_TITLES = {
    "low": "Lower",
    "top2": "Two below the top",
    "top1": "One below the top",
    "top": "Top",
}

_BY = ("ability", "category")
TABLES = (
    StudyFigure("table 16", ("reference",), _BY),
    StudyFigure("table 17", ("prometheus", "prometheus-axis"), _BY),
    StudyFigure("table 20", ("reference",), _BY),
)


def build_score_drops(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """Bins of the scale; only the top counts as undetected."""
    rows = add_rates([row for row in tables[0] if row["top"] is not None], tables[1])
    shares = [
        (Column(BIN_TITLES[name], name), stacked_charts.make_share_cell(name, BINS[name]))
        for name in BIN_TITLES
    ]
    grid = run_group_tables.build_table(
        asked,
        "Bins of the scale",
        rows,
        (*stacked_charts.COUNT_COLUMNS, *shares, UNDETECTED_COLUMN),
    )
    words = (
        "The answer is scored with the gold answer as reference. The top score counts as "
        "undetected, anything below as detected. On score-invariant items the top score is "
        "correct."
    )
    caption = "Scores with a reference, by distance below the top"
    return ViewContent(
        grid, stacked_charts.draw_groups(asked, rows, BIN_TITLES, "Share of items", caption), words
    )


VIEWS = (
    ResultView(
        slug="bins",
        title="Bins of the scale",
        asks=(TableQuery("scores"), TableQuery("undetected")),
        build=build_score_drops,
        studies={"000": TABLES},
        empty=(
            "None of the chosen runs scored answers with a gold reference. Choose a run with such "
            "a strategy, for example reference or prometheus."
        ),
        switches=(run_group_tables.group_switch(),),
    ),
)
