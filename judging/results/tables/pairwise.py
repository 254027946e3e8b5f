"""Which system's responses do people prefer? The tables `pairwise`, `pairwise_pairs` and
`pairwise_position`, and the page Pairwise comparisons. They ignore runs."""

import json
from collections.abc import Callable, Sequence
from urllib.parse import urlencode

from django.urls import reverse

from annotation.reports import pairwise
from judging.results import chart_parts, columns, lines
from judging.results.cells import Row
from judging.results.columns import Table
from judging.results.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    Switch,
    TableQuery,
    ViewContent,
)
from stats.estimates import Estimate

COUNTED_SWITCH = Switch(
    "counted", "Count", {pairwise.FINAL: "Final labels", pairwise.LABELS: "All labels"}
)
EMPTY = (
    "In a project with a pairwise task, items need two fields that name the systems, such as "
    "system_1 and system_2 (import the items again with these columns), and final labels."
)
COUNTS = (
    columns.Count("n", "Comparisons", columns.items()),
    columns.Share("wins", "Wins", part_of="n"),
    columns.Share("ties", "Ties", part_of="n"),
    columns.Share("losses", "Losses", part_of="n"),
    columns.Rate("rate", "Win rate", n="n", missing="", unit="a tie is half a win"),
    *columns.plain("low", "high", "reason"),
)
SYSTEMS = Table(
    "pairwise",
    (
        columns.Column("counted"),
        columns.Text("system", "System"),
        *COUNTS,
        columns.Figure("strength", "Strength", unit="Bradley-Terry, log-odds"),
        *columns.plain("strength_low", "strength_high", "strength_reason"),
    ),
    lambda project, runs, by: pairwise.system_rows(project),
    at_once=None,
    about="A row per system, for final labels and for all labels: wins, ties and losses "
    "against the others, and the strength that follows; the strongest first.",
    meanings={
        "counted": "what is counted: `final` labels or all `labels`",
        "system": "name of the system",
        "n": "number of comparisons with other systems",
        "wins": "number of these in which its response was preferred",
        "ties": "number of these in which neither response was preferred",
        "losses": "number of these in which the other response was preferred",
        "rate": "(wins + ties / 2) divided by n",
        "strength": "Bradley-Terry strength in log-odds; the mean over systems is 0",
    },
)
PAIRS = Table(
    "pairwise_pairs",
    (
        columns.Column("counted"),
        columns.Text("system_a", "System"),
        columns.Text("system_b", "Compared with"),
        *COUNTS,
    ),
    lambda project, runs, by: pairwise.pair_rows(project),
    at_once=None,
    about="A row per pair of systems, for final labels and for all labels: how often each was "
    "preferred; the rate is that of the first.",
    meanings={
        "counted": "what is counted: `final` labels or all `labels`",
        "system_a": "first system of the pair, the stronger one",
        "system_b": "second system of the pair",
        "n": "number of comparisons of the two",
        "wins": "number of these in which the first was preferred",
        "ties": "number of these in which neither was preferred",
        "losses": "number of these in which the second was preferred",
        "rate": "(wins + ties / 2) divided by n",
    },
)
POSITION = Table(
    "pairwise_position",
    (
        columns.Text(
            "annotator", "Annotator", write=lambda row: row["annotator"] or "All annotators"
        ),
        columns.Count("n", "Labels that prefer one"),
        columns.Share("first", "Prefer A", part_of="n"),
        columns.Share("second", "Prefer B", part_of="n"),
        columns.Count("ties", "Prefer neither"),
        columns.Rate("rate", "Share of A", n="n", missing=""),
        *columns.plain("low", "high", "reason"),
    ),
    lambda project, runs, by: pairwise.position_rows(project),
    at_once=None,
    about="A row for all annotators and one for each: how often the response that is shown "
    "first is preferred.",
    meanings={
        "annotator": "name of the annotator in the project; empty for all annotators",
        "n": "number of labels that prefer one of two responses shown in a drawn order",
        "first": "number of these that prefer the response shown first",
        "second": "number of these that prefer the other one",
        "ties": "number of labels that prefer neither",
        "rate": "first divided by n; 0.5 if the position does not matter",
    },
)


class _Compared(columns.Leading):
    """Rows whose figures link to the items on which the systems of the row were compared."""

    def items_url(self, row: Row, **which: str) -> str:
        named = ("counted", "system", "system_a", "system_b")
        of_row = {name: row[name] for name in named if name in row}
        query = urlencode({"pairwise": json.dumps(of_row, ensure_ascii=False)})
        return f"{reverse('items', args=[self.asked.project.slug])}?{query}"


def _counted_rows(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    counted = asked.switch_value(COUNTED_SWITCH.name)
    return [row for row in tables[0] if row["counted"] == counted]


def _left_out(asked: PageQuery) -> str:
    """A sentence on the answers that are not counted; "" if all are."""
    found = pairwise.load_comparisons(asked.project, asked.switch_value(COUNTED_SWITCH.name))
    parts = (
        (found.unnamed, "of items that do not name both systems"),
        (found.same, "of items that name the same system twice"),
        (found.dropped, "that drop the item"),
    )
    told = ", ".join(f"{n:,} {words}" for n, words in parts if n)
    return f" Left out: answers {told}." if told else ""


def build_systems(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per system, the strongest first."""
    return _build_lines(
        asked,
        tables,
        SYSTEMS,
        ("system", "n", "wins", "ties", "losses", "rate", "strength"),
        "A difference of strengths of 0 is an even match, of 1.1 one of 3 to 1; the mean is 0. "
        "There are no strengths if a system won or lost every comparison, or if not all are "
        "connected by comparisons.",
        _draw_systems,
    )


def build_pairs(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per pair of systems; the first is the stronger."""
    return _build_lines(
        asked,
        tables,
        PAIRS,
        ("system_a", "system_b", "n", "wins", "ties", "losses", "rate"),
        "Wins, losses and the win rate are those of the system on the left.",
        _draw_pairs,
    )


def _build_lines(
    asked: PageQuery,
    tables: Sequence[Rows],
    table: Table,
    shown: tuple[str, ...],
    words: str,
    draw: Callable[[PageQuery, Rows], ChartSpec | None],
) -> ViewContent:
    final = asked.switch_value(COUNTED_SWITCH.name) == pairwise.FINAL
    what = "final labels" if final else "every annotator's current label that counts"
    return lines.Lines(
        table,
        "Pairwise comparisons",
        shown,
        f"Counts {what}. Duplicates, qualification and control items are left out. {words} 95 % "
        f"intervals allow for several comparisons per prompt.{_left_out(asked)}",
        draw,
        _counted_rows,
        _Compared,
    )(asked, tables)


def _draw_systems(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    return _draw_rates([(row["system"], row) for row in rows], "by system")


def _draw_pairs(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    return _draw_rates(
        [(f"{row['system_a']}: against {row['system_b']}", row) for row in rows], "by pair"
    )


def _draw_positions(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    found = [(row["annotator"] or "All annotators", row) for row in rows]
    return _draw_rates(found, "by annotator", "Share of A")


def _draw_rates(
    rows: Sequence[tuple[str, Row]], of: str, title: str = "Win rate"
) -> ChartSpec | None:
    dots = [
        (title, name, Estimate(row["rate"], row["low"], row["high"], row["n"], row["reason"] or ""))
        for name, row in rows[: chart_parts.MOST_BARS]
    ]
    caption = f"{title} {of}, with 95 % intervals."
    if len(rows) > len(dots):
        caption += f" The first {len(dots)} of {len(rows)}; the table has them all."
    return chart_parts.draw_dots(dots, title=title, caption=caption, series="Figure")


VIEWS = (
    ResultView(
        slug="systems",
        title="Systems",
        asks=(TableQuery(SYSTEMS, ""),),
        figures=("rate", "strength"),
        build=build_systems,
        studies={},
        empty=EMPTY,
        switches=(COUNTED_SWITCH,),
        of_runs=False,
    ),
    ResultView(
        slug="pairs",
        title="Pairs",
        asks=(TableQuery(PAIRS, ""),),
        figures=("rate",),
        build=build_pairs,
        studies={},
        empty=EMPTY,
        switches=(COUNTED_SWITCH,),
        of_runs=False,
    ),
    ResultView(
        slug="position",
        title="Position",
        asks=(TableQuery(POSITION, ""),),
        figures=("rate",),
        build=lines.Lines(
            POSITION,
            "Does the place of a response matter?",
            ("annotator", "n", "first", "second", "ties", "rate"),
            "Counts every annotator's current label that counts. A is the response shown first: on "
            "the left or, on a narrow screen, above. The order is drawn, so without an effect of "
            "the place A is preferred in half of the labels that prefer one.",
            _draw_positions,
            leading=columns.Leading,
        ),
        studies={},
        empty="There are no labels given in a drawn order yet. Label items of a pairwise task.",
        of_runs=False,
    ),
)
