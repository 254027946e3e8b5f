"""By category: which errors pass? (study 000, tables 6 to 10 and 18)."""

from collections.abc import Mapping, Sequence
from typing import Any

from judging.models import Run
from judging.prompts.declared import Scale
from judging.views.results import cells, flat, matrix, measures, rated, stacks
from judging.views.results.cells import Rate, Row
from judging.views.results.grids import Cell, Column
from judging.views.results.kinds import Ask, Asked, Drawing, Place, Rows, Shown, View

TABLES = (
    Place("table 6", ("vanilla-score",)),
    Place("table 7", ("vanilla",)),
    Place("table 8", ("rubric",)),
    Place("table 9", ("axis",)),
    Place("table 10", ("axis-rubric",)),
    Place("table 18", ("vanilla",)),
)
NO_SCORES = (
    "None of the chosen runs scored the gold and the perturbed answer apart. Choose a run of such a"
    " strategy, for example vanilla, rubric or axis."
)
_NO_SCALE = NO_SCORES.replace("answer apart", "answer apart, on a scale")
_DIRECTIONS = {"lower": "Lower", "equal": "Equal", "higher": "Higher"}
# A scale of many steps shows those alone that scores made.
MOST_STEPS = 40
_ENDS = {"gold_at_bottom": "At the bottom", "between": "Between", "gold_at_top": "At the top"}


def counts(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """The study's table: of how many items how many were noticed."""
    judging = {run.number for run in measures.judging(asked)}
    rows = [row for row in tables[0] if row["run"] in judging]
    figures = (
        (Column("Total", "total"), _total),
        (Column("Missing", "missing"), _of("missing")),
        (Column("Parsed", "parsed"), _of("parsed")),
        (Column("Detected", "detected"), _of("detected")),
        (Column("Undetected", "undetected"), _of("undetected")),
        (Column("Undetected rate", "rate"), _undetected),
    )
    grid = flat.table(asked, "Detected and undetected items", rows, figures)
    kinds = {"undetected": "Undetected", "detected": "Detected"}
    drawing = stacks.drawing(asked, rows, kinds, "Share of the parsed items", "What was noticed")
    return Shown(grid, drawing, measures.MEASURES["undetected"].words)


def directions(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """Where the perturbed answer was scored against the gold one."""
    rows = _apart(tables[0])
    shares = [(Column(title, name), stacks.share(name)) for name, title in _DIRECTIONS.items()]
    means = (
        (Column("Mean of gold", "mean_gold"), _mean("mean_gold")),
        (Column("Mean of perturbed", "mean_pert"), _mean("mean_pert")),
    )
    grid = flat.table(asked, "Scores against gold", rows, (*stacks.COUNTED, *shares, *means))
    words = (
        "The score of the perturbed answer against that of the gold one. Lower is detected; equal"
        " and higher are not. On score-invariant items lower is a false alarm."
    )
    caption = "Scores of perturbed answers against gold"
    return Shown(grid, stacks.drawing(asked, rows, _DIRECTIONS, "Share of items", caption), words)


def changes(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """How far the perturbed answer was scored from the gold one, by runs with a scale: a length has
    as many steps as there are answers."""
    scales = {run.number: run.asked().scale for run in asked.runs}
    rows = [row for row in tables[0] if scales[row["run"]]]
    steps = sorted({row["change"] for row in rows})
    moved = [(Column(_signed(step), f"moved{step:g}"), _moved(step, scales)) for step in steps]
    lines = _by_step(rows)
    grid = flat.table(asked, "How far scores moved", lines, (*stacks.COUNTED, *moved))
    words = "Perturbed minus gold, in points of the scale; below zero the error was noticed."
    if len(rows) < len(tables[0]):
        words += " Runs without a scale have no steps; the files have what they say."
    return Shown(grid, _strips(asked, rows, filled(steps)), words)


def ends(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """How many golds stand where nothing more can be seen."""
    rows = [
        {**row, "between": row["parsed"] - row["gold_at_bottom"] - row["gold_at_top"]}
        for row in tables[0]
        if row["gold_at_top"] is not None
    ]
    shares = [(Column(title, name), _golds(name)) for name, title in _ENDS.items()]
    scale = (Column("Scale", "at_top"), _scale)
    grid = flat.table(
        asked, "Golds at the ends of the scale", rows, (*stacks.COUNTED, scale, *shares)
    )
    words = (
        "How many gold answers were scored at an end of the scale. From the bottom no score can be"
        " lower, so no error can be noticed there."
    )
    caption = "Scores of gold answers by their place on the scale"
    return Shown(grid, stacks.drawing(asked, rows, _ENDS, "Share of golds", caption), words)


def _total(run: Run, row: Row) -> Cell:
    return cells.count(row["total"], cells.items(run, row))


def _of(name: str) -> stacks.Draw:
    """The count in a column that is a result as well."""

    def cell(run: Run, row: Row) -> Cell:
        return cells.count(row[name], cells.items(run, row, result=name))

    return cell


def _mean(name: str) -> stacks.Draw:
    return lambda run, row: cells.number(row[name])


def _undetected(run: Run, row: Row) -> Cell:
    bad = "low" if measures.is_invariant(row) else "high"
    return cells.rate(row, Rate(bad=bad), href=cells.items(run, row, result="undetected"))


def filled(steps: Sequence[float]) -> Sequence[float]:
    """Steps from the lowest to the highest; between whole ones those that no score made, too, as
    long as they are few."""
    if not steps or any(step != int(step) for step in steps):
        return steps
    every = range(int(steps[0]), int(steps[-1]) + 1)
    return list(every) if len(every) <= MOST_STEPS else steps


def _by_step(rows: Rows) -> Rows:
    """One row a run and group, with the number of items by how far they moved."""
    found: dict[object, dict[str, Any]] = {}
    for row in rows:
        one = found.setdefault(rated.key(row), {**row, "moved": {}})
        one["moved"][row["change"]] = row["n"]
    return list(found.values())


def _moved(step: float, scales: Mapping[int, Scale | None]) -> stacks.Draw:
    """Leads to the items that moved so far, to the nearest step of the run's scale."""

    def cell(run: Run, row: Row) -> Cell:
        scale = scales[run.number]
        half = float((scale and scale.step) or 1) / 2
        ends = {"moved_from": f"{step - half:g}", "moved_below": f"{step + half:g}"}
        n = row["moved"].get(step, 0)
        return cells.share(n, row["parsed"], cells.items(run, row, result="parsed", **ends))

    return cell


def _signed(step: float) -> str:
    return f"{step:+g}".replace("-", "−") if step else "0"


def _golds(name: str) -> stacks.Draw:
    """Leads to the items whose gold answer was scored there."""

    def cell(run: Run, row: Row) -> Cell:
        low, high, inside = row["bottom"], row["at_top"], (row["at_top"] - row["bottom"]) / 10**4
        ends = {
            "gold_at_bottom": {"gold_to": f"{low:g}"},
            "between": {"gold_from": f"{low + inside:g}", "gold_to": f"{high - inside:g}"},
            "gold_at_top": {"gold_from": f"{high:g}"},
        }
        return cells.share(
            row[name], row["parsed"], cells.items(run, row, result="parsed", **ends[name])
        )

    return cell


def _scale(run: Run, row: Row) -> Cell:
    return Cell(f"{row['bottom']:g} to {row['at_top']:g}", row["at_top"])


def _apart(rows: Rows) -> Rows:
    return [row for row in rows if row["lower"] is not None]


def _strips(asked: Asked, rows: Rows, steps: Sequence[float]) -> Drawing | None:
    # Altair takes a second to import; nothing else should wait for it.
    from charts import strips

    named = [(flat.label(asked, row), row) for row in rows]
    every = list(dict.fromkeys(label for label, _ in named))
    shown = set(every[: stacks.MOST_BARS])
    found = [
        strips.Step(label, row["change"], row["share"], row["n"])
        for label, row in named
        if label in shown
    ]
    caption = "How far scores moved: share of the parsed items by perturbed minus gold."
    caption += stacks.of_first(len(every))
    drawn = strips.strips(found, steps=steps, title="Perturbed minus gold")
    return Drawing(drawn, caption) if found else None


VIEWS = (
    View(
        slug="rates",
        title="Side by side",
        asks=matrix.ASKS,
        show=matrix.show,
        studies={},
        empty=measures.UNDECIDED,
        switches=(measures.SWITCH,),
    ),
    View(
        slug="counts",
        title="Counts",
        asks=(Ask("undetected"),),
        show=counts,
        studies={"000": TABLES},
        empty=measures.UNDECIDED,
        switches=(flat.grouped(flat.CATEGORIES),),
    ),
    View(
        slug="scores",
        title="Lower, equal, higher",
        asks=(Ask("scores"),),
        show=directions,
        studies={},
        empty=NO_SCORES,
        switches=(flat.grouped(),),
    ),
    View(
        slug="changes",
        title="How far",
        asks=(Ask("score_changes"),),
        show=changes,
        studies={},
        empty=_NO_SCALE,
        switches=(flat.grouped(),),
    ),
    View(
        slug="ends",
        title="Ends of the scale",
        asks=(Ask("scores"),),
        show=ends,
        studies={},
        empty=_NO_SCALE,
        switches=(flat.grouped(),),
    ),
)
