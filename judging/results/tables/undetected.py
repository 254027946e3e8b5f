"""Which errors do the runs miss? The table `undetected`, the page Overview (study 000, tables 3 to
5), and the views Side by side and Counts of By category (tables 6 to 10 and 18)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from annotation.labelling.models.labels import SI_ITEM
from annotation.templatetags import figures as written
from judging.models import Run
from judging.results import (
    cells,
    chart_parts,
    columns,
    counted,
    frames,
    lines,
    published_rates,
)
from judging.results.cells import Cell, Grid, GridLine, Header, LineBlock, Row
from judging.results.page_parts import (
    INTERVAL_WORDS,
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    StudyFigure,
    Switch,
    TableQuery,
    ViewContent,
)
from judging.results.published_rates import RateColumn
from stats.estimates import Estimate
from stats.rates import bound_wrong_labels, clustered_wilson

PAIR_FRAME = "pair"
NO_PAIR = Estimate(None, None, None, 0, "not a pair")


def tabulate_undetected(
    runs: Iterable[Run], by: Sequence[str] = ("ability", "category")
) -> list[dict[str, Any]]:
    """Undetected rates of runs by fields of their outcomes, in the order of the taxonomy.

    rate = undetected / parsed; for score-invariant items this is the share left unchanged.
    `undetected_rate` is the same, and `detection_rate` = 1 - rate, for score-invariant items the
    false-alarm rate; `low` and `high` belong to `rate`. If nothing was parsed, the rates are None
    with a reason. `total` = parsed + missing. An item with repeats counts in `undetected` by the
    share of its repeats, so that `undetected` and `detected` may be fractional. For pairs,
    `both_good_rate` is the share of the parsed ones whose answers were called equally good in both
    orders: what an evaluator should say of score-invariant items (study 000, section 5.4). The
    intervals take clusters into account. If `by` is empty, there is one row per run.

    An outcome counts only if the revision that it judged has a current resolution, and if there are
    several axes, only the axis of the item's ability counts. Outcomes that must not be summed
    together are kept apart. If `by` has neither ability nor category, score-invariant items are
    left out, since their rate has the opposite meaning. Unless `by` has both, duplicates are left
    out. Duplicates in one category make two rows if some are score-invariant and some are not.
    Detectors and ratings have no such rate and no row. Raises `UnknownField`.
    """
    rated, _ = frames.split_by_rate(runs)
    asked = counted.load_strategies(rated)
    pairs = {run.pk for run in rated if asked[run.pk].frame == PAIR_FRAME}
    rates = {"undetected": (counted.PARSED_SQL, counted.UNDETECTED_SQL)}
    if pairs:
        both = counted.one_if("o.detail = 'both_good'")
        rates["both_good"] = (counted.PARSED_SQL, both)
    return [
        {
            **found.head(),
            "parsed": found.parsed,
            "detected": counted.round_sum(found.parsed - found.rates["undetected"].y),
            "undetected": found.rates["undetected"].y,
            **counted.undetected_columns(clustered_wilson(found.rates["undetected"])),
            **_both_good_columns(found, is_pair=found.run.pk in pairs),
            "score_invariant": found.invariant,
        }
        for found in counted.sum_outcomes(rated, by, rates=rates)
    ]


def _both_good_columns(found: counted.GroupSums, *, is_pair: bool) -> dict[str, Any]:
    one = clustered_wilson(found.rates["both_good"]) if is_pair else NO_PAIR
    columns_of = counted.estimate_columns(one)
    return {f"both_good_{name}": value for name, value in columns_of.items()}


def _note_invariant(row: Row) -> str:
    """What an undetected rate means in a row of score-invariant items."""
    return "no false alarm" if columns.is_invariant(row) else ""


UNDETECTED = columns.summed_table(
    "undetected",
    tabulate_undetected,
    columns.Count("total", "Total", columns.items()),
    columns.MISSING,
    columns.PARSED,
    columns.Count("detected", "Detected", columns.items(result="detected")),
    columns.Count("undetected", "Undetected", columns.items(result="undetected")),
    columns.Rate(
        "rate",
        "Undetected rate",
        columns.items(result="undetected"),
        bad=columns.bad_if_undetected,
        note=_note_invariant,
    ),
    *columns.NAMED_RATES,
    *columns.plain("low", "high", "reason"),
    *columns.plain("both_good_rate", "both_good_low", "both_good_high", "both_good_reason"),
    *columns.plain("score_invariant"),
    about="A row per run and group: how many errors were detected, went undetected or are missing.",
    meanings={
        "detected": "number of items whose error was detected, on score-invariant items the "
        "number of false alarms; an item with repeats counts by the share of its repeats",
        "undetected": "number of items whose error was not detected, counted in the same way",
        "rate": "undetected divided by parsed; on score-invariant items the share without a false "
        "alarm",
        "detection_rate": "detected divided by parsed; on score-invariant items the false-alarm "
        "rate",
        "undetected_rate": "the same as `rate`",
        "both_good_rate": "pairs only: share of the parsed pairs whose answers were called "
        "equally good in both orders",
    },
)


class _BothGood(columns.Rate):
    """The share of pairs whose answers were called equally good."""

    def cell(self, row: Row | None, of: columns.Leading) -> Cell:
        if row and row["both_good_reason"] == NO_PAIR.reason:
            return Cell(reason=NO_PAIR.reason)
        return super().cell(row, of)


# On the page Overview, how study 000 reads pairs of score-invariant items (section 5.4).
BOTH_GOOD = _BothGood(
    "both_good_rate",
    "Both good",
    columns.items(result="parsed", detail="both_good"),
    n_link=columns.items(result="parsed"),
    prefix="both_good_",
    # The column beside it lists what is missing.
    missing="",
    bad="low",
)
_BOTH_GOOD_WORDS = (
    " Pairs of score-invariant items have two columns. Both good is how study 000 reads them "
    "(section 5.4): the share of pairs whose two answers the run called equally good in both "
    "orders; high is good. A false alarm is only the gold answer chosen in both orders, and every "
    "other pair counts as left unmoved. An evaluator that draws one of the four verdicts at random "
    "leaves 15 of 16 pairs unmoved, but calls both answers good in 1 of 16."
)


@dataclass(frozen=True)
class RateMeasure:
    """A measure: its rate for error items, and the name of the rate for score-invariant items, of
    which `good_on_invariant` values are good."""

    rate: columns.Rate
    on_invariant: str
    good_on_invariant: str
    words: str


_READING_NOTE = (
    " n counts items with a usable reply; missing items are listed next to it and count in no "
    f"rate. {INTERVAL_WORDS}"
)
SHADES = "Stronger colour is worse."
_UNDETECTED_RATE = columns.Rate(
    "rate",
    "Undetected rate",
    columns.items(result="undetected"),
    missing_link=columns.items(result="missing"),
    bad=columns.bad_if_undetected,
)
MEASURES = {
    "detection": RateMeasure(
        replace(
            _UNDETECTED_RATE,
            title="Detection rate",
            link=columns.items(result="detected"),
            bad=columns.bad_if_detected,
            rest=True,
        ),
        "false alarms",
        "low",
        "Share of error items in which the run detected the error: high is good. On "
        f"score-invariant items a detection is a false alarm: low is good.{_READING_NOTE}",
    ),
    "undetected": RateMeasure(
        _UNDETECTED_RATE,
        "no false alarm",
        "high",
        "Share of error items in which the run did not detect the error: low is good. On "
        "score-invariant items it is the share without a false alarm, left unmoved: high is good."
        f"{_READING_NOTE}",
    ),
}
NOTHING_DECIDED = (
    "The chosen runs have no outcomes of perturbed answers with a final label. For error detection "
    "and ratings, see the pages Detector and Against people."
)
MEASURE_SWITCH = Switch("measure", "Rate", {"detection": "Detection", "undetected": "Undetected"})


# How many percent of the final labels a reader supposes to be wrong.
WRONG_SWITCH = Switch(
    "wrong", "If labels were wrong", {"0": "none", "2": "2 %", "5": "5 %", "10": "10 %"}
)
_WRONG_WORDS = (
    " Below each rate: its range if {} % of the final labels of its items were wrong, whichever "
    "these are; how many are wrong, a second look at a sample of labels can tell."
)


def _suppose_wrong(asked: PageQuery, cell: Cell) -> Cell:
    """The cell of a rate, with a note on its range if the URL supposes that labels were wrong."""
    share = int(asked.switch_value(WRONG_SWITCH.name)) / 100
    if not share or cell.place is None or not cell.n:
        return cell
    bounds = bound_wrong_labels(float(cell.place), cell.n, share)
    ends = f"{written.share(bounds.lowest)} to {written.share(bounds.highest)}"
    return replace(cell, note=f"{ends} if {100 * share:.0f} % wrong")


def _explain_wrong(asked: PageQuery) -> str:
    said = asked.switch_value(WRONG_SWITCH.name)
    return _WRONG_WORDS.format(said) if said != "0" else ""


def _get_measure(asked: PageQuery) -> RateMeasure:
    """The measure that the URL selects."""
    return MEASURES[asked.switch_value(MEASURE_SWITCH.name)]


def build_overview(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per run: its rate over all error items and by ability, including false alarms and,
    for pairs of score-invariant items, how many were called equally good."""
    measure = _get_measure(asked)
    leading = columns.Leading(asked, tables[1])
    runs = {run.number: run for run in asked.judging_runs}
    alone: dict[int, Row] = {row["run"]: row for row in tables[0]}
    rows = [row for row in tables[1] if row["run"] in runs]
    shown = _list_overview_columns(asked, measure, rows)
    told = {row["run"] for row in rows}
    found = [
        GridLine(
            (
                cells.run_cell(run),
                _suppose_wrong(asked, measure.rate.cell(alone.get(number), leading)),
                *(
                    _suppose_wrong(asked, one.rate.cell(one.rows.get(number), leading))
                    for one in shown.values()
                ),
            )
        )
        for number, run in runs.items()
        if number in told
    ]
    headers = [Header("Run", "run", is_number=False), Header("All errors", "all")]
    headers += [Header(one.title, name, one.note) for name, one in shown.items()]
    published = published_rates.build_lines(asked, shown) if found else []
    blocks = (LineBlock(tuple(found)), LineBlock(tuple(published), "published"))
    grid = Grid(f"{measure.rate.title} by run and ability", tuple(headers), blocks)
    words = measure.words + (_BOTH_GOOD_WORDS if published_rates.BOTH_GOOD in shown else "")
    words += _explain_wrong(asked)
    return ViewContent(grid, _draw_overview(asked, shown, measure), words, SHADES)


def _list_overview_columns(
    asked: PageQuery, measure: RateMeasure, rows: Sequence[Row]
) -> published_rates.RateColumns:
    """The columns of the page by ability, in the order of the taxonomy. Pairs of score-invariant
    items have a second one."""
    by_ability: dict[str, dict[int, Row]] = {}
    for row in sorted(rows, key=lambda row: asked.categories.order_of({"ability": row["ability"]})):
        by_ability.setdefault(row["ability"], {})[row["run"]] = row
    shown: published_rates.RateColumns = {}
    for ability, of in by_ability.items():
        title = asked.group_title("ability", ability)
        note = measure.on_invariant if ability == SI_ITEM else ""
        shown[ability] = RateColumn(title, note, measure.rate, of)
        if ability == SI_ITEM and any(
            row["both_good_reason"] != NO_PAIR.reason for row in of.values()
        ):
            shown[published_rates.BOTH_GOOD] = RateColumn(title, "both good", BOTH_GOOD, of)
    return shown


def _draw_overview(
    asked: PageQuery, shown: published_rates.RateColumns, measure: RateMeasure
) -> ChartSpec | None:
    found = [
        (cells.run_name(asked.runs_by_number[number]), one.group, one.rate.estimate(row))
        for one in shown.values()
        for number, row in one.rows.items()
    ]
    faint = list(published_rates.build_dots(asked, shown))
    both = " and both good" if published_rates.BOTH_GOOD in shown else ""
    caption = (
        f"{measure.rate.title} by ability, with 95 % intervals; for score-invariant items"
        f" {measure.on_invariant}{both}. The table has the same figures."
    )
    if faint:
        caption += (
            " Published figures are faint, with plain Wilson intervals from the printed n, "
            "because their clusters are not known."
        )
    return chart_parts.draw_dots(
        found,
        faint=faint,
        title=measure.rate.title,
        caption=caption,
        runs=[cells.run_name(run) for run in asked.judging_runs],
    )


NAMES = ("ability", "category", "source_ability")
REPEATS = "Duplicates (no ability)"


class MatrixKey(NamedTuple):
    """The group of a line; "" stands for all.

    `invariant` is true if the items are score-invariant; duplicates among them have no ability.
    """

    ability: str
    category: str
    source_ability: str
    invariant: bool

    @property
    def group(self) -> dict[str, str]:
        """The fields of the group by name, as in the rows of the tables."""
        return {name: getattr(self, name) for name in NAMES}

    @property
    def is_part(self) -> bool:
        """True if the line is a part of an ability: a category or an origin."""
        return bool(self.category or self.source_ability)

    def title(self, asked: PageQuery) -> str:
        """The title of the line."""
        if self.source_ability:
            return f"made from {asked.group_title('ability', self.source_ability)}"
        if self.category == SI_ITEM:
            return "of other categories"
        name = "category" if self.category else "ability"
        return asked.group_title(name, getattr(self, name))

    def note(self, measure: RateMeasure) -> str:
        """A note if the rate of the line has the opposite meaning."""
        if self.ability == SI_ITEM and not self.invariant:
            return "labelled as errors: no false alarms"
        if not self.invariant or self.source_ability or (self.ability and self.category):
            return ""
        said = f"{measure.on_invariant}, {measure.good_on_invariant} is good"
        return f"reversed: {said}" if self.ability else f"score-invariant: {said}"


RowsByKey = dict[MatrixKey, dict[int, Row]]


def build_side_by_side(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """A block per ability with a line per category (for score-invariant items: also per source
    ability), and a column per run. Groups without any run are left out."""
    measure, runs = _get_measure(asked), asked.judging_runs
    word_groups = asked.categories.word_groups
    heads, parts, made_from = (_group_by_key(rows) for rows in tables)
    leading = columns.Leading(asked, tables[0])

    def place(key: MatrixKey) -> tuple[list[tuple[int, str]], bool]:
        return asked.categories.order_of(key.group), key.invariant

    def line(key: MatrixKey, rows: dict[int, Row], kind: str = "") -> GridLine:
        title = Cell(key.title(asked), note=key.note(measure), is_number=False)
        # Items that were meant to be score-invariant may be labelled as errors.
        bad = measure.rate.bad if key.invariant else measure.good_on_invariant
        rate = replace(measure.rate, bad=bad)
        found = (rate.cell(rows.get(run.number), leading) for run in runs)
        return GridLine((title, *(_suppose_wrong(asked, one) for one in found)), kind)

    def block(ability: str) -> LineBlock:
        invariant = ability == SI_ITEM
        mine = [key for key in sorted(parts, key=place) if key.ability == ability and key.is_part]
        # Where no category is made to cost nothing, there is only one line of them.
        if {key.category for key in mine} <= {SI_ITEM}:
            mine = []
        found = [line(key, parts[key]) for key in mine]
        if invariant:
            found += [
                line(key, made_from[key])
                for key in sorted(made_from, key=place)
                if key.ability == ability and key.is_part
            ]
        head = GridLine(
            (Cell(word_groups(REPEATS), is_number=False), *(Cell("") for _ in runs)), "group"
        )
        if ability:
            key = MatrixKey(ability, "", "", invariant)
            head = line(key, heads.get(key, {}), "group")
        return LineBlock((head, *found), "invariant" if invariant else "")

    known = sorted({*heads, *parts}, key=place)
    blocks = [block(ability) for ability in dict.fromkeys(key.ability for key in known)]
    first = Header(word_groups("Ability and category"), is_number=False)
    headers = (first, *map(_run_header, runs))
    grid = Grid(f"{measure.rate.title}s by ability and category", headers, tuple(blocks))
    dots = [
        (cells.run_name(run), key.title(asked), measure.rate.estimate(parts[key][run.number]))
        for run in runs
        for key in sorted(parts, key=place)
        if key.category and not key.invariant and run.number in parts[key]
    ]
    caption = (
        f"{measure.rate.title} by category, with 95 % intervals. The table has the same figures."
    )
    drawn = chart_parts.draw_dots(dots, title=measure.rate.title, caption=caption)
    return ViewContent(grid, drawn, measure.words + _explain_wrong(asked), SHADES)


def _group_by_key(rows: Iterable[Row]) -> RowsByKey:
    found: RowsByKey = {}
    for row in rows:
        ability, category, source = (row.get(name, "") for name in NAMES)
        key = MatrixKey(ability, category, source, row["score_invariant"])
        found.setdefault(key, {})[row["run"]] = row
    return found


def _run_header(run: Run) -> Header:
    cell = cells.run_cell(run)
    return Header(cell.text, f"run-{run.number}", note=cell.note, href=cell.href)


def _judging(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    return [row for row in tables[0] if asked.is_judging(row)]


_SCORE_STRATEGIES = ("vanilla-score", "vanilla", "rubric", "axis", "axis-rubric")
_PAIR_STRATEGIES = (
    "pairwise-verdict", "pairwise", "pairwise-rules", "pairwise-axis", "pairwise-axis-rules"
)  # fmt: skip
# The measure that is printed in the study.
_UNDETECTED_QUERY = {"measure": "undetected"}
OVERVIEW = (
    ResultView(
        slug="abilities",
        title="By ability",
        asks=(TableQuery(UNDETECTED, ""), TableQuery(UNDETECTED, "ability")),
        figures=("rate", "both_good"),
        build=build_overview,
        studies={
            "000": (
                StudyFigure(
                    "table 3",
                    (*_SCORE_STRATEGIES, *_PAIR_STRATEGIES, "reference"),
                    query=_UNDETECTED_QUERY,
                ),
                StudyFigure(
                    "table 4",
                    ("vanilla", "pairwise-axis-rules", "reference", "prometheus-axis"),
                    query=_UNDETECTED_QUERY,
                ),
                StudyFigure(
                    "table 5",
                    ("rubric", "rubric-5", "axis-rubric", "axis-rubric-5"),
                    query=_UNDETECTED_QUERY,
                ),
            )
        },
        empty=NOTHING_DECIDED,
        switches=(MEASURE_SWITCH, WRONG_SWITCH),
        choices=published_rates.list_choices,
        table_first=True,
    ),
)
BY_CATEGORY = (
    ResultView(
        slug="rates",
        title="Side by side",
        asks=(
            TableQuery(UNDETECTED, "ability"),
            TableQuery(UNDETECTED, "ability,category"),
            TableQuery(UNDETECTED, "ability,source_ability"),
        ),
        figures=("rate",),
        build=build_side_by_side,
        studies={},
        empty=NOTHING_DECIDED,
        switches=(MEASURE_SWITCH, WRONG_SWITCH),
        table_first=True,
    ),
    ResultView(
        slug="counts",
        title="Counts",
        asks=(TableQuery(UNDETECTED),),
        figures=("rate",),
        build=lines.Lines(
            UNDETECTED,
            "Detected and undetected items",
            ("total", "missing", "parsed", "detected", "undetected", "rate"),
            words=MEASURES["undetected"].words,
            chart=lines.Stacked(
                ("undetected", "detected"), "Share of the parsed items", "Detected and undetected"
            ),
            select=_judging,
            screen_words=SHADES,
        ),
        studies={
            "000": (
                StudyFigure("table 6", ("vanilla-score",)),
                StudyFigure("table 7", ("vanilla",)),
                StudyFigure("table 8", ("rubric",)),
                StudyFigure("table 9", ("axis",)),
                StudyFigure("table 10", ("axis-rubric",)),
                StudyFigure("table 18", ("vanilla",)),
            )
        },
        empty=NOTHING_DECIDED,
        switches=(lines.group_switch(lines.BY_CATEGORY),),
        table_first=True,
    ),
)


def with_undetected(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    """The rows of the first table, each with the row of the second, `undetected`, for the same run
    and group, for the column `RATE_BESIDE`."""
    found = {lines.row_key(row): row for row in tables[1]}
    return [{**row, "of_rate": found.get(lines.row_key(row))} for row in tables[0]]


@dataclass(frozen=True)
class _RateBeside(columns.Rate):
    """The undetected rate in a line of another table."""

    def cell(self, row: Row | None, of: columns.Leading) -> Cell:
        return super().cell(row and row["of_rate"], of)


RATE_BESIDE = _RateBeside(
    "rate",
    "Undetected rate",
    columns.items(result="undetected"),
    bad=columns.bad_if_undetected,
    note=_note_invariant,
)
