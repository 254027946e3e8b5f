"""Blind spots: slices of the items that a run misses more often than the rest."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from annotation.reports.grouping import GROUPING_COLUMNS, Grouping
from annotation.templatetags import figures as written
from judging.models import Run
from judging.results import blindspots, item_features
from judging.results.views import cells, page_parts
from judging.results.views.cells import Cell, Column, GridLine, RateColumns, Row
from judging.results.views.page_parts import (
    BY_PARAMETER,
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    Switch,
    TableQuery,
    ViewContent,
)
from stats.slices import ALL_ALIKE

SLICE_RATE = RateColumns(missing="", bad="high", n="n")
# Untested slices are not coloured as bad.
UNTESTED_RATE = RateColumns(missing="", n="n")
REST_RATE = RateColumns("rest", "rest_low", "rest_high", "rest_n", missing="")
DEFAULT_FIELDS = "ability,category,source_ability,origin"
ALL_FIELDS = ",".join((DEFAULT_FIELDS, *item_features.FEATURES))
FIELD_OPTIONS = {
    ALL_FIELDS: "All features",
    "category": "Categories",
    "edit_size,place,changes,length": "The change",
    "detectability,surgicality": "Labels of annotators",
    DEFAULT_FIELDS: "Origin",
}
SPOTS, FURTHEST, ALL = "spots", "furthest", "all"
SHOWN_OPTIONS = {SPOTS: "Blind spots", FURTHEST: "The 40 largest differences", ALL: "All slices"}
FAMILY_TITLES = {
    blindspots.GROUPS: "abilities and categories",
    blindspots.VALUES: "values of other fields",
    blindspots.PAIRS: "pairs of values",
}
# The number of slices closest to a blind spot that are shown for a run without one, and the maximum
# number shown for other runs.
NEAREST_SLICES, MOST_SLICES = 5, 40
LEADING_COLUMNS = (
    Column("Slice", "slice", is_number=False),
    Column("Run", "run", is_number=False),
    Column("Undetected rate in the slice", "rate"),
    Column("In the other items", "rest"),
    Column("Clusters", "clusters"),
    Column("Difference", "difference", note=f"{cells.POINTS_UNIT}, within categories"),
    Column("p", "p"),
    Column("q", "q"),
    Column("Blind spot", "blind", is_number=False),
)


def build_slices(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per slice, grouped by run, the largest difference first."""
    runs = {run.number: run for run in page_parts.select_judging_runs(asked)}
    rows = [row for row in tables[0] if row["run"] in runs]
    told = [
        row
        for _, of in groupby(rows, key=_run_number)
        for row in _select_slices(list(of), asked.switch_value("show"))
    ]
    grid = cells.build_grid(
        "Blind spots", LEADING_COLUMNS, [_line(runs[row["run"]], row) for row in told]
    )
    said = _headline(rows), _lines_note(rows, told, asked.switch_value("show"))
    return ViewContent(grid, _drawing(told, several=len(runs) > 1), _describe_tests(rows), *said)


def _headline(rows: Rows) -> str:
    """The result of the search in one sentence."""
    runs = {row["run"] for row in rows}
    tested = [row["run"] for row in rows if row["p"] is not None]
    if not tested:
        return f"No slice can be tested: {_why_untested(rows)}"
    searched = {*tested}
    of_runs = f" of {len(searched)} runs" if len(searched) > 1 else f" of run {tested[0]}"
    blind = sum(bool(row["blind"]) for row in rows)
    said = f"{_count_noun(blind, 'blind spot') if blind else 'No blind spot'} in "
    said += _count_noun(len(tested), "slice") + (of_runs if len(runs) > 1 else "")
    # If nothing could be tested, the run may still have blind spots.
    left = len(runs) - len(searched)
    return f"{said}; no slice of {_count_noun(left, 'other run')} can be tested" if left else said


def _lines_note(rows: Rows, told: Rows, which: str) -> str:
    """A note about the lines below the headline if these are not blind spots."""
    if which != SPOTS or all(row["blind"] for row in told):
        return ""
    if all(row["p"] is None for row in rows):
        return "The rows below are not evidence for or against a blind spot."
    if not any(row["blind"] for row in rows):
        return "None of the slices below is a blind spot; they come closest to one."
    return "For runs without a blind spot, the closest slices are shown and marked “no”."


def _why_untested(rows: Rows) -> str:
    is_alike = any(row["reason"] == ALL_ALIKE for row in rows)
    return ALL_ALIKE if is_alike else "no slice is large enough"


def _count_noun(number: int, noun: str) -> str:
    return f"{written.number(number)} {noun}{'' if number == 1 else 's'}"


def _run_number(row: Row) -> int:
    return int(row["run"])


def _select_slices(rows: Rows, which: str) -> Rows:
    """Select the slices of one run to show."""
    if which == SPOTS:
        blind = [row for row in rows if row["blind"]]
        worse = [row for row in rows if (row["difference"] or 0) > 0]
        return blind or sorted(worse or rows, key=_by_p)[:NEAREST_SLICES]
    return rows if which == ALL else rows[:MOST_SLICES]


def _by_p(row: Row) -> tuple[bool, float]:
    return row["p"] is None, row["p"] or 0.0


def _line(run: Run, row: Row) -> GridLine:
    missed = cells.items_url(run, {}, **_slice_query(row), result="undetected")
    parsed = cells.items_url(run, {}, **_slice_query(row), result="parsed")
    return GridLine(
        (
            Cell(slice_title(row), row["slice"], href=parsed, is_number=False),
            cells.run_cell(run),
            _rate(row, UNTESTED_RATE if row["blind"] is None else SLICE_RATE, missed),
            _rate(row, REST_RATE),
            cells.count_cell(row["clusters"]),
            cells.points_cell(row["difference"], reason=row["reason"]),
            cells.p_value_cell(row["p"], row["reason"]),
            cells.p_value_cell(row["q"], row["reason"]),
            _verdict(row),
        )
    )


def _rate(row: Row, such: RateColumns, href: str = "") -> Cell:
    # If the rate exists, the reason for the missing p does not apply to it.
    reason = row["reason"] if row[such.value] is None else ""
    return cells.rate_cell({**row, "reason": reason}, such, href=href)


def _verdict(row: Row) -> Cell:
    if row["blind"] is None:
        return Cell("not tested", 2, is_number=False)
    return cells.text_cell("yes, exploratory" if row["blind"] else "no", 0 if row["blind"] else 1)


def _slice_query(row: Row) -> dict[str, str]:
    """The query that narrows the run's outcomes down to the slice."""
    parts = {"slice": f"{row['field']}={row['value']}"}
    if row["second_field"]:
        parts["second_slice"] = f"{row['second_field']}={row['second_value']}"
    return parts


def slice_title(row: Row) -> str:
    """The title of a slice."""
    return " · ".join(_values(row))


def _name(row: Row, *, several: bool) -> str:
    """The title on several lines for the chart, with the run if there are several runs."""
    lines = [one.replace(": ", " ") for one in _values(row)]
    run = (f"{row['run']} · {row['strategy']}", row["endpoint"])
    return ": ".join([*lines, *run] if several else lines)


def _values(row: Row) -> list[str]:
    pairs = [(row["field"], row["value"]), (row["second_field"], row["second_value"])]
    return [_value(name, value) for name, value in pairs if name]


def _value(name: str, value: str) -> str:
    if name in item_features.FEATURES:
        return item_features.bin_title(name, value)
    if name in GROUPING_COLUMNS:
        return Grouping(name, name).title_of(value)
    return f"{name.replace('_', ' ').capitalize()}: {value}"


def _describe_tests(rows: Rows) -> str:
    tests = "; ".join(_family_texts(rows))
    return (
        "Undetected rates of error items in a slice and in the other items, with 95 % intervals "
        "clustered by question. Except for categories and abilities, the difference is taken "
        "within categories (Mantel-Haenszel), so a slice is not blind just because it has hard "
        "categories; its sign may differ from that of the two rates. p: one-sided permutation "
        "test over clusters or items, and Student’s t where permutations cannot resolve it. q: "
        "Benjamini-Hochberg correction over the slices tested in its family: abilities and "
        "categories together, single values of the other fields, or pairs of values. A blind "
        "spot has 20 items in 10 clusters or more, a difference of 10 points or more and q below "
        "0.05. A field is left out if its values always coincide with those of another field. "
        "The search is exploratory: look at the items before you trust a result. Slices tested: "
        f"{tests}."
    )


def _family_texts(rows: Rows) -> Iterator[str]:
    for number, of in groupby(rows, key=_run_number):
        found = list(of)
        parts = []
        for family, title in FAMILY_TITLES.items():
            own = [row for row in found if row["family"] == family]
            blind = sum(bool(row["blind"]) for row in own)
            if own and (tested := own[0]["tests"]):
                parts.append(f"{written.number(tested)} {title}, of which {blind or 'none'} blind")
        if parts:
            yield f"run {number}: {', '.join(parts)}"
        else:
            why = _why_untested(found)
            yield f"run {number}: not tested ({why}), so these rows are no evidence"


def _drawing(rows: Rows, *, several: bool) -> ChartSpec | None:
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import slices

    there = [row for row in rows if row["rate"] is not None and row["rest"] is not None]
    found = [
        slices.SliceRates(
            _name(row, several=several),
            rate=row["rate"],
            low=row["low"],
            high=row["high"],
            rest=row["rest"],
            rest_low=row["rest_low"],
            rest_high=row["rest_high"],
            n=row["n"],
            rest_n=row["rest_n"],
            blind=bool(row["blind"]),
        )
        for row in there[:MOST_SLICES]
    ]
    caption = (
        "Undetected rates in slices and in the other items, with 95 % intervals. A dark band "
        "marks a blind spot. Exploratory."
    )
    if len(there) > MOST_SLICES:
        caption += f" The first {MOST_SLICES} of {len(there)} lines."
    return ChartSpec(slices.draw_slices(found), caption) if found else None


VIEWS = (
    ResultView(
        slug="slices",
        title="Slices",
        asks=(TableQuery("blindspots"),),
        build=build_slices,
        studies={},
        empty="The chosen runs have no outcomes of items with a final label, or all items have "
        "the same features.",
        switches=(
            Switch(BY_PARAMETER, "Slices by", FIELD_OPTIONS),
            Switch("show", "Shown", SHOWN_OPTIONS),
        ),
    ),
)
