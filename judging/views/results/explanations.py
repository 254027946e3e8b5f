"""Explanations: what is noticed in words alone? (study 000, section 5.3, figure 2, tables 21 to
24)."""

from collections.abc import Sequence

from judging.models import Run
from judging.results import audits
from judging.views.results import cells, dots, flat, grids, stacks
from judging.views.results.cells import Rate, Row
from judging.views.results.grids import Cell, Column, Line
from judging.views.results.kinds import Ask, Asked, Drawing, Place, Rows, Shown, View, places

UNCHECKED = (
    "The explanations of none of the chosen runs were checked. Open a run whose strategy asks for"
    " explanations and press “Check explanations”."
)
KINDS = {
    "detected": "Detected by the score",
    "found": "By the explanation alone",
    "unnoticed": "Not at all",
}
QUALITIES = {
    "correct": "Correct",
    "insufficient": "Insufficient",
    "wrong": "Wrong",
    "none": "None",
}
_AFTER = Rate("rate_after", bad="high")
_FOUND = Rate("found_rate", "found_low", "found_high", "equal", missing="")
_CREDIT = Rate(
    "false_credit", "false_credit_low", "false_credit_high", "gold_checked", missing="", bad="high"
)

_BY = ("ability", "category")
TABLES = (
    Place("figure 2", ("vanilla", "axis", "rubric", "axis-rubric")),
    Place("table 21", ("vanilla",), _BY),
    Place("table 22", ("axis",), _BY),
    Place("table 23", ("rubric",), _BY),
    Place("table 24", ("axis-rubric",), _BY),
)


def show(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """What the score notices, what the explanation does, and what nothing does."""
    rows = tables[0]
    figures = (
        *stacks.COUNTED,
        (Column(KINDS["detected"], "detected"), _result("detected")),
        (Column("Equal scores", "equal"), stacks.share("equal")),
        (Column(KINDS["found"], "found"), _found),
        (Column(KINDS["unnoticed"], "unnoticed"), _unnoticed),
        (Column("Found of the equal", "found_rate"), _rate(_FOUND, "equal")),
        (Column("Undetected rate after credit", "rate_after"), _rate(_AFTER)),
    )
    grid = flat.table(asked, "What explanations add", rows, figures)
    words = (
        "Where both answers were scored equal, a check reads the explanation of the perturbed one"
        " for an error that it reports all the same. Checks that cannot be read count as not found."
    )
    whole = [row for row in rows if row["unnoticed"] is not None]
    caption = "Detected by the score, by the explanation alone, and not at all"
    return Shown(grid, stacks.drawing(asked, whole, KINDS, "Share of items", caption), words)


def credit(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """How often an error is read out of the explanation of an answer without one."""
    rows = [row for row in tables[0] if row["gold_check"] is not None]
    figures = (
        (Column("Found in perturbed answers", "found_rate"), _rate(_FOUND, "equal")),
        (Column("False credit: found in gold answers", "false_credit"), _rate(_CREDIT, "equal")),
    )
    grid = flat.table(asked, "False credit", rows, figures)
    words = (
        "The same check on the explanations of gold answers, which have no error to report. What it"
        " finds there is false credit: the nearer both rates, the less an explanation says."
    )
    return Shown(grid, _drawing(asked, rows), words)


def audited(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """What people found the explanations worth, where the verdict was right and where not."""
    rows = [{**row, "parsed": row["total"] - row["missing"]} for row in tables[0]]
    runs = {run.number: run for run in asked.runs}
    columns = (
        Column("Run", "run", is_number=False),
        Column("The verdict was", "verdict", is_number=False),
        Column("Items", "total"),
        Column("Not judged yet", "missing"),
        *(Column(title, name) for name, title in QUALITIES.items()),
    )
    lines = [_audit(runs[row["run"]], row) for row in rows]
    grid = grids.of_lines("What explanations are worth", columns, lines)
    words = (
        "People judged a sample of explanations in audits: correct if all that matters was checked"
        " and holds, insufficient if something is left out, wrong if a step is false, none if there"
        " is a verdict alone. The same items are drawn for every run of an audit; of an item that"
        " has several explanations, as one of each sample, each counts for its share."
    )
    caption = (
        "What explanations are worth, by whether the verdict was right, as shares of those that"
        " people judged; the numbers are items."
    )
    named = [
        (f"Verdict {row['verdict']}: {cells.name(runs[row['run']], ': ')}", row) for row in rows
    ]
    return Shown(grid, stacks.bars(named, QUALITIES, "Share of explanations", caption), words)


def _audit(run: Run, row: Row) -> Line:
    def at(*quality: str) -> str:
        return cells.outcomes(run, audited="-".join((row["verdict"], *quality)))

    counted = (cells.count(row["total"], at()), cells.count(row["missing"], at(audits.OPEN)))
    shares = (cells.share(row[name], row["parsed"], at(name)) for name in QUALITIES)
    return Line((cells.run(run), cells.words(row["verdict"]), *counted, *shares))


def _result(name: str) -> stacks.Draw:
    return lambda run, row: cells.share(
        row[name], row["parsed"], cells.items(run, row, result=name)
    )


def _found(run: Run, row: Row) -> Cell:
    """Leads to the items in the check that found them."""
    href = cells.items(run, row, row["check"], result="detected")
    return cells.share(row["found"], row["parsed"], href)


def _unnoticed(run: Run, row: Row) -> Cell:
    if row["unnoticed"] is None:
        return Cell(reason=row["reason"] or "")
    return cells.share(row["unnoticed"], row["parsed"], cells.items(run, row, result="undetected"))


def _rate(such: Rate, detail: str = "") -> stacks.Draw:
    which = {"result": "parsed", **({"detail": detail} if detail else {})}

    def cell(run: Run, row: Row) -> Cell:
        return cells.rate(row, such, href=cells.items(run, row, **which))

    return cell


def _drawing(asked: Asked, rows: Rows) -> Drawing | None:
    series = {"perturbed answers": _FOUND, "gold answers": _CREDIT}
    found = [
        (title, flat.label(asked, row), cells.estimate(row, such))
        for row in rows
        for title, such in series.items()
    ]
    caption = (
        "Explanations in which an error is found, of perturbed and of gold answers, with 95 %"
        " intervals."
    )
    return dots.drawing(found, title="An error is found", caption=caption, series="Of")


VIEWS = (
    View(
        slug="credit-of-words",
        title="By score and by explanation",
        asks=(Ask("explanations"),),
        show=show,
        studies={"000": TABLES},
        empty=UNCHECKED,
        switches=(flat.grouped(),),
    ),
    View(
        slug="false-credit",
        title="False credit",
        asks=(Ask("explanations"),),
        show=credit,
        studies={},
        empty=(
            "The explanations of gold answers were not checked for any of the chosen runs. Start a"
            " run of explanation-check-gold over one of them."
        ),
        switches=(flat.grouped(),),
    ),
    View(
        slug="audits",
        title="As people judge them",
        asks=(Ask("audits", ""),),
        show=audited,
        studies={"001": places("figure 6")},
        empty=(
            "People judged no explanations of the chosen runs yet. Make an audit with"
            " “manage.py make_audit” and let people label its items."
        ),
    ),
)
