"""Compare: which run detects more, on the items that both runs of a pair parsed?"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from annotation.reports.grouping import Grouping
from annotation.templatetags import figures as written
from judging.models import Run
from judging.results import drilldown
from judging.results.views import cells, page_parts, stacked_charts
from judging.results.views.cells import Cell, Column, GridLine, Row
from judging.results.views.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    Switch,
    TableQuery,
    ViewContent,
)
from stats import paired

ALL, ABILITY = "all", "ability"
SCOPE_SWITCH = Switch("of", "Over", {ALL: "All items", ABILITY: "Each ability"})
ADJUSTED_COLUMNS = {ALL: "p_holm", ABILITY: "q"}
ADJUSTMENT_WORDS = {
    ALL: "adjusted for all pairs (Holm). Runs with a letter in common do not differ.",
    ABILITY: "adjusted for all rows (Benjamini-Hochberg): exploratory.",
}
# The notes shown below a p that is not exact.
TEST_WORDS = {
    paired.DRAWN: "from a million random sign patterns",
    paired.TAIL_OF_T: "from Student’s t",
}
COLUMNS = (
    Column("Items", "items", is_number=False),
    Column("Run a", "run_a", is_number=False),
    Column("Run b", "run_b", is_number=False),
    Column("In both", "n"),
    Column("Detected only by a", "only_a"),
    Column("Detected only by b", "only_b"),
    Column("a minus b", "difference", cells.POINTS_UNIT),
    Column("p", "p"),
    Column("p, adjusted", "adjusted"),
    Column("Smallest difference found (80 % power)", "shows", cells.POINTS_UNIT),
    Column("Letters", "letters", is_number=False),
)


def build_differences(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per pair of runs, over all error items or over the error items of each ability."""
    runs = {run.number: run for run in page_parts.select_judging_runs(asked)}
    over = asked.switch_value(SCOPE_SWITCH.name)
    rows = [
        row
        for row in tables[0]
        if {row["run_a"], row["run_b"]} <= set(runs) and bool(row["ability"]) is (over == ABILITY)
    ]
    lines = [_line(row, runs[row["run_a"]], runs[row["run_b"]]) for row in rows]
    words = (
        "Detection rates on the error items that both runs parsed. p: sign-flip test over "
        "questions (a McNemar test that allows several items a question), exact unless stated "
        f"otherwise; {ADJUSTMENT_WORDS[over]} Smallest difference found: the smallest one that "
        "the test finds with 80 % power."
    )
    columns = COLUMNS if over == ALL else COLUMNS[:-1]
    return ViewContent(
        cells.build_grid("Runs in pairs", columns, lines), _drawing(rows, runs), words
    )


def _line(row: Row, a: Run, b: Run) -> GridLine:
    over = ABILITY if row["ability"] else ALL
    letters = [cells.text_cell(f"{row['letters_a']} | {row['letters_b']}")] if over == ALL else []
    return GridLine(
        (
            cells.text_cell(_group(row)),
            cells.run_cell(a),
            cells.run_cell(b),
            cells.count_cell(
                row["n"], _shared_items_url(a, b, row, drilldown.IN_BOTH), note=_left_out_note(row)
            ),
            cells.count_cell(row["only_a"], _shared_items_url(a, b, row, drilldown.ONLY_HERE)),
            cells.count_cell(row["only_b"], _shared_items_url(a, b, row, drilldown.ONLY_THERE)),
            _difference(row),
            replace(
                cells.p_value_cell(row["p"], row["reason"]), note=TEST_WORDS.get(row["test"], "")
            ),
            cells.p_value_cell(row[ADJUSTED_COLUMNS[over]], row["reason"]),
            cells.distance_cell(row["shows"]),
            *letters,
        )
    )


def _shared_items_url(a: Run, b: Run, row: Row, which: str) -> str:
    """The URL of run a's items that run b parsed too, or of those that a detected more, or less,
    than b."""
    group = {"ability": row["ability"]} if row["ability"] else {}
    return cells.items_url(a, group, items="errors", **{which: str(b.number)})


def _group(row: Row) -> str:
    return Grouping("ability", "ability").title_of(row["ability"]) if row["ability"] else "All"


def _left_out_note(row: Row) -> str:
    """A note with the number of items of either run that are not compared."""
    return f"{written.number(row['missing'])}\u00a0missing" if row["missing"] else ""


def _difference(row: Row) -> Cell:
    return cells.points_cell(row["difference"], row["low"], row["high"], row["reason"])


def _name(row: Row, runs: Mapping[int, Run]) -> str:
    """The group, unless it is all items, and the two runs, on separate lines."""
    a, b = (cells.run_name(runs[row[name]], ": ") for name in ("run_a", "run_b"))
    return ": ".join((*([_group(row)] if row["ability"] else []), a, f"minus {b}"))


def _drawing(rows: Rows, runs: Mapping[int, Run]) -> ChartSpec | None:
    # Imported here, since importing Altair takes a second and nothing else should wait for it.
    from charts import differences

    there = [row for row in rows if row["difference"] is not None]
    found = [
        differences.Difference(
            _name(row, runs),
            100 * row["difference"],
            _points(row["low"]),
            _points(row["high"]),
            row["n"],
        )
        for row in there[: stacked_charts.MOST_BARS]
    ]
    caption = (
        "Differences in detection rate on error items that both runs parsed, in percentage "
        "points, with 95 % intervals. Above 0, the first run of the pair detects more."
    )
    if len(there) > len(found):
        caption += f" The first {len(found)} of {len(there)} pairs; choose fewer runs."
    return ChartSpec(differences.draw_differences(found), caption) if found else None


def _points(end: float | None) -> float | None:
    return None if end is None else 100 * end


VIEWS = (
    ResultView(
        slug="pairs",
        title="Runs in pairs",
        asks=(TableQuery("compare", ""),),
        build=build_differences,
        studies={},
        switches=(SCOPE_SWITCH,),
        empty="Compare needs two or more runs that judge perturbed answers of the same items. For "
        "error detection and ratings, see the pages Detector and Against people.",
    ),
)
