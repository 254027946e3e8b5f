"""Compare: which of the runs notice more, on the items that both of two have parsed?"""

from collections.abc import Sequence

from annotation.leads.grouping import Grouping
from annotation.templatetags import figures as written
from judging.models import Run
from judging.views.results import cells, grids, measures
from judging.views.results.cells import Row
from judging.views.results.grids import Cell, Column, Line
from judging.views.results.kinds import Ask, Asked, Drawing, Rows, Shown, View

COLUMNS = (
    Column("Items", "items", is_number=False),
    Column("Run a", "run_a", is_number=False),
    Column("Run b", "run_b", is_number=False),
    Column("In both", "n"),
    Column("Only a detects", "only_a"),
    Column("Only b detects", "only_b"),
    Column("a minus b", "difference"),
    Column("p", "p"),
    Column("p, adjusted", "adjusted"),
    Column("Would show", "shows"),
    Column("Letters", "letters", is_number=False),
)


def show(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """A line a pair of runs over all error items, then one an ability."""
    runs = {run.number: run for run in measures.judging(asked)}
    rows = [row for row in tables[0] if {row["run_a"], row["run_b"]} <= set(runs)]
    lines = [_line(row, runs[row["run_a"]], runs[row["run_b"]]) for row in rows]
    words = (
        "Detection rates on the error items that both runs parsed. p is that of the clusters'"
        " signs; over all items it is adjusted for all pairs (Holm), and runs that share no letter"
        " differ. Lines of an ability are exploratory and adjusted together (Benjamini and"
        " Hochberg). Would show: the smallest difference that would be found four times in five."
    )
    return Shown(grids.of_lines("Runs in pairs", COLUMNS, lines), _drawing(rows), words)


def _line(row: Row, a: Run, b: Run) -> Line:
    of_ability = bool(row["ability"])
    adjusted = "q" if of_ability else "p_holm"
    kept = "" if of_ability else f"{row['letters_a']} | {row['letters_b']}"
    return Line(
        (
            cells.words(_group(row)),
            cells.run(a),
            cells.run(b),
            cells.count(row["n"], note=_left(row)),
            cells.count(row["only_a"]),
            cells.count(row["only_b"]),
            _difference(row),
            cells.p_value(row["p"], row["reason"]),
            cells.p_value(row[adjusted], row["reason"]),
            cells.of_share(row["shows"]),
            cells.words(kept),
        )
    )


def _group(row: Row) -> str:
    return Grouping("ability", "ability").title_of(row["ability"]) if row["ability"] else "All"


def _left(row: Row) -> str:
    """How many items of either run are not compared."""
    return f"{written.number(row['missing'])} missing" if row["missing"] else ""


def _difference(row: Row) -> Cell:
    return cells.points(row["difference"], row["low"], row["high"], row["reason"])


def _drawing(rows: Rows) -> Drawing | None:
    # Altair takes a second to import; nothing else should wait for it.
    from charts import differences

    found = [
        differences.Difference(
            f"{row['run_a']} · {row['strategy_a']}: minus {row['run_b']} · {row['strategy_b']}",
            row["difference"],
            row["low"],
            row["high"],
            row["n"],
        )
        for row in rows
        if not row["ability"] and row["difference"] is not None
    ]
    caption = (
        "Differences of detection rates over all error items that both parsed, with 95 % intervals:"
        " to the right the first run of the pair notices more."
    )
    return Drawing(differences.dots(found), caption) if found else None


VIEWS = (
    View(
        slug="pairs",
        title="Runs in pairs",
        asks=(Ask("compare", ""),),
        show=show,
        studies={},
        empty="Choose two runs or more over the same items to compare them.",
    ),
)
