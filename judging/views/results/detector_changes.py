"""What another way to ask changes: wording and order of the options (study 001, section 4.3), and
samples or steps beside prompt 1-A (tables 5 and 7)."""

from collections.abc import Sequence
from typing import Any

from judging.results import narrowing
from judging.views.results import cells, detectors, grids, offered
from judging.views.results.cells import Row
from judging.views.results.detectors import Detectors
from judging.views.results.grids import Cell, Column, Line
from judging.views.results.kinds import (
    Ask,
    Asked,
    Drawing,
    Place,
    Rows,
    Shown,
    Switch,
    View,
    places,
)

BIASES = {
    "wording": "Wording: type 1 minus type 2",
    "order-1": "Order, type 1: A minus B",
    "order-2": "Order, type 2: A minus B",
}
SIDES = {"wording": ("type 1", "type 2"), "order-1": ("A", "B"), "order-2": ("A", "B")}
OF_BIASES = {"recall": "Recall", "precision": "Precision"}
FIGURES = {"f1": "F1", "precision": "Precision", "recall": "Recall", "accuracy": "Accuracy"}
DRAWN = ("f1", "precision", "recall")
BIAS = Switch("bias", "What differs", BIASES)
_BY = ("task", "response_model")
PROMPTS = (
    *places("section 4.3", by=_BY),
    *places("figure 10", by=_BY),
    Place("figure 11", by=_BY, query={"bias": "order-1"}),
)
CHANGES = (
    Place("table 5", ("detect-self-consistency", "detect-1a"), _BY),
    Place("table 7", ("detect-steps", "detect-1a"), _BY),
)
EMPTY_BIAS = (
    "No evaluator was asked by two of the four prompts. Start runs of detect-1a, detect-1b,"
    " detect-2a and detect-2b at one endpoint over the same items."
)
EMPTY_CHANGES = (
    "No evaluator was asked by prompt 1-A and in another way. Start runs of detect-1a and of"
    " detect-steps or detect-self-consistency at one endpoint over the same items."
)


def biases(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """A line an evaluator and group: recall and precision of either way to ask."""
    page, bias = Detectors(asked), asked.said(BIAS.name)
    found: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in page.ordered(row for row in tables[0] if row["bias"] == bias):
        key = (row["endpoint"], *(row[one] for one in page.fields))
        found.setdefault(key, {})[row["figure"]] = row
    lines = [_of_bias(page, rows) for rows in found.values()]
    counts = (Column("Items", "n"), Column("No verdict", "missing"))
    columns = (*page.heads(), *counts, *_sides(bias))
    words = (
        "In points of a hundred, on the items that every prompt of the evaluator has. Type 1 asks"
        " for errors, type 2 whether the response is valid; A and B differ in which answer is named"
        " first. The last line is the mean over evaluators and groups with its standard deviation,"
        " as study 001 has it in section 4.3; its figure 11 draws B minus A."
    )
    drawn = [row for rows in found.values() for row in rows.values() if row["endpoint"]]
    caption = f"{BIASES[bias]}: differences of recall and precision, in points."
    shifts = [
        (label, OF_BIASES[row["figure"]], row, row["total"])
        for row, label in zip(drawn, _labels(page, drawn), strict=True)
    ]
    return Shown(grids.of_lines(BIASES[bias], columns, lines), _drawing(shifts, caption), words)


def changes(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """A line a run and group: its figures minus those of its evaluator's prompt 1-A."""
    page = Detectors(asked)
    found: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in page.ordered(tables[0]):
        key = (row["run"], *(row[one] for one in page.fields))
        found.setdefault(key, {})[row["figure"]] = row
    lines = [_of_change(page, rows) for rows in found.values()]
    columns = (
        *page.heads(),
        Column("Against run", "against", is_number=False),
        Column("Items in both", "n"),
        *(Column(title, name) for name, title in FIGURES.items()),
    )
    words = (
        "Each run minus prompt 1-A of the same evaluator, in points of a hundred, on the items that"
        " both judged. A star says p < 0.1 that the figure is higher than before: one-sided, by"
        " 1,000 paired draws of clusters, not corrected for the number of comparisons, as study 001"
        " does it; among many lines some stars are chance."
    )
    caption = "Differences from prompt 1-A in points, with 95 % intervals."
    drawn = [rows[name] for rows in found.values() for name in DRAWN]
    shifts = [
        (label, FIGURES[row["figure"]], row, row["n"])
        for row, label in zip(drawn, page.labels(drawn), strict=True)
    ]
    title = "What steps, samples and prompts change"
    return Shown(grids.of_lines(title, columns, lines), _drawing(shifts, caption), words)


def _labels(page: Detectors, rows: Sequence[Row]) -> list[str]:
    """Of an evaluator by several prompts; no run is named."""
    return page.labels([{**row, "run": None} for row in rows])


def _sides(bias: str) -> list[Column]:
    first, second = SIDES[bias]
    return [
        column
        for name, title in OF_BIASES.items()
        for column in (
            Column(f"{title}, {first}", f"{name}-first"),
            Column(f"{title}, {second}", f"{name}-second"),
            Column(f"{title}: difference", f"{name}-by", cells.POINTS),
        )
    ]


def _of_bias(page: Detectors, rows: dict[str, Row]) -> Line:
    first = next(iter(rows.values()))
    is_mean = first["endpoint"] is None
    name = cells.words(first["endpoint"] or "")
    if is_mean:
        n = first["cells"]
        name = cells.words("Mean", note=f"over {n} pair{'s' * (n > 1)} of evaluator and group")
    heads = (*page.line(first, ()).cells[:-1], name)
    counts = (cells.count(first["total"]), detectors.number(first["missing"]))
    figures = [cell for name in OF_BIASES for cell in _both(rows[name])]
    return Line((*heads, *counts, *figures), "published" if is_mean else "")


def _both(row: Row) -> tuple[Cell, Cell, Cell]:
    difference = cells.points(row["difference"], reason=row["reason"])
    if row["sd"] is not None:
        difference = Cell(difference.text, difference.place, note=f"± {100 * row['sd']:.1f}")
    elif row["reason"] and difference.is_there:
        difference = Cell(difference.text, difference.place, note=row["reason"])
    return cells.of_share(row["first"]), cells.of_share(row["second"]), difference


def _of_change(page: Detectors, rows: dict[str, Row]) -> Line:
    row = rows["f1"]
    left = f"{row['left_out']} in one alone" if row["left_out"] else ""
    base = page.runs[row["against"]]
    both = page.items(row, **{narrowing.SHARED: str(base.number)})
    counts = (cells.run(base), cells.count(row["n"], both, note=left))
    return page.line(row, (*counts, *(_change(rows[name]) for name in FIGURES)))


def _change(row: Row) -> Cell:
    cell = cells.points(row["difference"], row["low"], row["high"], row["reason"])
    if not cell.is_there:
        return cell
    before, after = (cells.of_share(row[name]).text for name in ("before", "after"))
    star = "*" if row["starred"] else ""
    note = f"{before} to {after}" + (f"; {row['reason']}" if row["reason"] else "")
    return Cell(
        f"{cell.text}{star}", cell.place, interval=cell.interval, reason=cell.reason, note=note
    )


def _drawing(shifts: Sequence[tuple[str, str, Row, int]], caption: str) -> Drawing | None:
    # Altair takes a second to import; nothing else should wait for it.
    from charts import shifts as charted

    labels = [label for label, _, row, _ in shifts if row["difference"] is not None]
    room = detectors.first(labels)
    found = [
        charted.Shift(label, figure, 100 * row["difference"], *_ends(row), n)
        for label, figure, row, n in shifts
        if row["difference"] is not None and label in room
    ]
    if not found:
        return None
    spec = charted.dots(found, title="Difference in points")
    return Drawing(spec, f"{caption}{detectors.cut(labels)}")


def _ends(row: Row) -> tuple[float | None, float | None]:
    low, high = row.get("low"), row.get("high")
    return (None, None) if low is None or high is None else (100 * low, 100 * high)


VIEWS = (
    View(
        slug="prompts",
        title="Wording and order",
        asks=(Ask("bias"),),
        show=biases,
        studies={"001": PROMPTS},
        empty=EMPTY_BIAS,
        switches=(BIAS,),
        groups=offered.fields,
    ),
    View(
        slug="changes",
        title="Steps and samples",
        asks=(Ask("changes"),),
        show=changes,
        studies={"001": CHANGES},
        empty=EMPTY_CHANGES,
        groups=offered.fields,
    ),
)
