"""Cells of result tables: how figures are written, why one is lacking, and how lines are sorted."""

from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl

import pytest

from annotation.templatetags.figures import DASH
from judging.results import cells
from judging.results.cells import Cell, GridLine, Header, LineBlock
from judging.results.columns import Figure, Leading, Rate
from judging.templatetags.judging import ROUGH_NOTE, write_cell
from stats.bootstrap import ROUGH


def texts(lines: tuple[GridLine, ...]) -> list[str]:
    return [line.cells[0].text for line in lines]


class Items(Leading):
    """Every figure leads to the items."""

    def __init__(self) -> None: ...

    def items_url(self, row: Any, **which: str) -> str:
        return "/items/"


def rate_cell(row: Any, **values: Any) -> Cell:
    return Rate("rate", "Rate", {}, **values).cell(row, Items())


def make_row(**values: object) -> dict[str, object]:
    told = {"rate": 0.3, "low": 0.2, "high": 0.45, "parsed": 40, "missing": 2, "reason": None}
    return {**told, **values}


def test_a_table_is_sorted_within_its_blocks_and_what_has_no_figure_comes_last() -> None:
    def line(text: str, place: float | None, kind: str = "") -> GridLine:
        return GridLine((Cell(text), Cell(place=place)), kind)

    block = LineBlock(
        (line("none", None), line("all", 2, "group"), line("b", 2), line("a", 1), line("c", 3))
    )
    grid = cells.Grid("Title", (Header("Of"), Header("Rate", "rate")), (block,))
    assert texts(grid.sorted("rate").blocks[0].lines) == ["all", "a", "b", "c", "none"]
    assert texts(grid.sorted("-rate").blocks[0].lines) == ["all", "c", "b", "a", "none"]
    for other in ("", "-", "-other"):
        assert grid.sorted(other) is grid


def test_a_table_is_empty_without_lines_and_knows_whether_it_has_intervals() -> None:
    def grid(*lines: GridLine) -> cells.Grid:
        return cells.build_grid("Title", [Header("Of")], lines)

    assert grid().is_empty
    assert not grid(GridLine((Cell(),))).is_empty
    assert not grid(GridLine((Cell(),))).has_intervals
    assert grid(GridLine((Cell(),)), GridLine((Cell(interval="1 to 2"),))).has_intervals


def test_a_text_is_sorted_by_itself_or_by_what_is_said() -> None:
    found = [cells.text_cell("b"), cells.text_cell("b", 0), cells.text_cell("", 3)]
    assert [(one.text, one.place) for one in found] == [("b", "b"), ("b", 0), (DASH, 3)]
    assert not any(one.is_number for one in found)


def test_a_count_of_nothing_leads_nowhere() -> None:
    found = [cells.count_cell(value, "/items/") for value in (1200, 0, None)]
    assert [(one.text, one.place, one.href) for one in found] == [
        ("1,200", 1200, "/items/"), ("0", 0, ""), (DASH, None, ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "cell, text, place",
    [
        (cells.number_cell(None), DASH, None),
        (cells.number_cell(-0.255), "−0.26", -0.255),
        (cells.percent_cell(0.25), "25.0 %", 0.25),
        (cells.percent_cell(None), DASH, None),
        (cells.points_cell(0.1), "+10.0", 0.1),
        (cells.points_cell(-0.1), "−10.0", -0.1),
        (cells.points_cell(0.0), "0.0", 0.0),
        (cells.points_cell(None), DASH, None),
        (cells.p_value_cell(0.0004), "< 0.001", 0.0004),
        (cells.p_value_cell(0.0005), "0.001", 0.0005),
        (cells.p_value_cell(0.25), "0.250", 0.25),
        (cells.p_value_cell(None), DASH, None),
    ],
)
def test_a_figure_is_written_with_its_sign_and_unit(
    cell: Cell, text: str, place: float | None
) -> None:
    assert (cell.text, cell.place, cell.is_there) == (text, place, text != DASH)


def test_a_difference_has_its_interval_if_both_ends_are_known() -> None:
    assert cells.points_cell(0.1, 0.05, 0.15).interval == "+5.0 to +15.0"
    assert cells.points_cell(0.1, -0.05, 0.15).interval == "−5.0 to +15.0"
    assert cells.points_cell(0.1, None, 0.15).interval == ""
    assert cells.points_cell(0.1, 0.05, None).interval == ""


def test_what_has_no_figure_has_a_reason() -> None:
    assert cells.points_cell(None, reason="one cluster").reason == "one cluster"
    assert cells.p_value_cell(None, "one cluster").reason == "one cluster"
    assert [cells.points_cell(None, reason=None).reason, cells.p_value_cell(None, None).reason] == [
        "", "",
    ]  # fmt: skip
    row = {"rho": None, "rho_low": None, "rho_high": None, "rho_reason": "one side is constant"}
    cell = cells.figure_cell(row, "rho")
    assert (cell.text, cell.interval, cell.reason) == (DASH, "", "one side is constant")
    row = {"rho": 0.5, "rho_low": -0.1, "rho_high": 0.9, "rho_reason": None}
    cell = cells.figure_cell(row, "rho")
    assert (cell.text, cell.interval, cell.reason) == ("0.50", "−0.10 to 0.90", "")


def test_a_link_says_each_value_and_commas_stay_readable() -> None:
    asked = {"by": "model,lang", "run": 3, "q": "50 % & more, où?"}
    said = cells.encode_query(asked)
    assert dict(parse_qsl(said)) == {name: str(value) for name, value in asked.items()}
    assert said.startswith("by=model,lang&run=3&q=50+")


def test_a_figure_leads_to_its_items_if_there_is_one() -> None:
    column = Figure("rho", "ρ", {}, signed=True, note=lambda row: "rough")
    row = {"rho": 0.5, "rho_low": None, "rho_high": None, "rho_reason": None}
    cell = column.cell(row, Items())
    assert (cell.text, cell.href, cell.note) == ("+0.50", "/items/", "rough")
    assert column.cell({**row, "rho": None}, Items()).href == ""


def test_a_rate_has_its_items_its_interval_and_how_bad_it_is() -> None:
    cell = rate_cell(make_row(), bad="high")
    assert (cell.text, cell.place, cell.href) == ("30.0 %", 0.3, "/items/")
    assert (cell.n, cell.missing, cell.interval) == (40, 2, "20.0 % to 45.0 %")
    assert (cell.heat, cell.reason) == (1, "")
    assert rate_cell(make_row(), bad="low").heat == 3
    assert rate_cell(make_row()).heat is None
    assert rate_cell(make_row(), missing="").missing == 0


def test_the_rest_of_a_rate_has_the_ends_of_its_interval_the_other_way_round() -> None:
    cell = rate_cell(make_row(), rest=True, bad="high")
    assert (cell.text, cell.interval, cell.heat) == ("70.0 %", "55.0 % to 80.0 %", 3)


@pytest.mark.parametrize(
    "reason, shown", [("no items", "nothing parsed"), ("one cluster", "one cluster"), (None, "")]
)
def test_a_rate_of_nothing_says_why_and_leads_nowhere(reason: str | None, shown: str) -> None:
    nothing = make_row(rate=None, low=None, high=None, parsed=0, reason=reason)
    for rest in (False, True):
        cell = rate_cell(nothing, bad="high", rest=rest)
        assert (cell.text, cell.place, cell.href) == (DASH, None, "")
        assert (cell.n, cell.interval, cell.heat, cell.reason) == (0, "", None, shown)
    assert rate_cell(None).reason == "no items"


@pytest.mark.parametrize(
    "part, n, text, note, href",
    [
        (None, 4, DASH, "", ""),
        (0, 4, "0", "0.0\u00a0%\u00a0of\u00a04", ""),
        (3, 4, "3", "75.0\u00a0%\u00a0of\u00a04", "/items/"),
        (0, 0, "0", "", ""),
    ],
)
def test_a_part_of_some_items_is_a_count_with_its_share(
    part: float | None, n: float, text: str, note: str, href: str
) -> None:
    cell = cells.share_cell(part, n, "/items/")
    assert (cell.text, cell.note, cell.href) == (text, note, href)


HOSTILE = "<b>'\"&"
ESCAPED = "&lt;b&gt;&#x27;&quot;&amp;"


def test_a_cell_escapes_whatever_comes_from_people() -> None:
    cell = Cell(
        HOSTILE,
        href=f"?a={HOSTILE}",
        n=1200,
        missing=1,
        missing_href=f"?b={HOSTILE}",
        interval=HOSTILE,
        note=HOSTILE,
        heat=3,
    )
    assert write_cell(cell, head=False, intervals=True) == (
        f'<td class="number" data-heat="3"><a class="figure" href="?a={ESCAPED}">{ESCAPED}</a>'
        f'<small>{ESCAPED}</small><small>n 1,200, <a href="?b={ESCAPED}">1 missing</a></small>'
        f"<small>{ESCAPED}</small></td>"
    )
    assert write_cell(cell, head=True, intervals=True) == (
        f'<th scope="row"><a href="?a={ESCAPED}">{ESCAPED}</a><small>{ESCAPED}</small></th>'
    )
    assert write_cell(Cell(reason=HOSTILE), head=False, intervals=False) == (
        f'<td class="number"><span>—</span><small>{ESCAPED}</small></td>'
    )


@pytest.mark.parametrize(
    ("cell", "intervals", "shown"),
    [
        (Cell("5", interval="4 to 6"), False, ""),
        (Cell("5", interval="4 to 6"), True, "<small>4 to 6</small>"),
        (Cell("5", interval="4 to 6", reason=ROUGH), True, f"<small>4 to 6{ROUGH_NOTE}</small>"),
        (Cell("5", reason="one cluster"), False, ""),
        (Cell("5", reason="one cluster"), True, "<small>no interval: one cluster</small>"),
        (Cell("5", n=0), False, "<small>n 0</small>"),
    ],
)
def test_a_cell_has_what_stands_below_its_value(cell: Cell, intervals: bool, shown: str) -> None:
    written = write_cell(cell, head=False, intervals=intervals)
    assert written == f'<td class="number"><span>5</span>{shown}</td>'


def test_links_to_one_run_are_written_without_looking_its_address_up_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cells._run_url.cache_clear()
    asked = []

    def counted(name: str, args: list[Any]) -> str:
        asked.append(args)
        return "/run/"

    monkeypatch.setattr(cells, "reverse", counted)
    run: Any = SimpleNamespace(project=SimpleNamespace(slug="fbi"), number=7)
    links = [cells.outcomes_url(run, item=f"a b&{n}") for n in range(50)]
    assert links[3] == "/run/?item=a+b%263#outcomes"
    assert asked == [["fbi", 7]]
    cells._run_url.cache_clear()
