"""Data set: what are the items? Labels, categories, words, and shares of any field (study 000,
table 1; study 001, tables 2 and 3, figures 4 and 8)."""

from collections.abc import Iterable, Mapping, Sequence

from annotation.reports.grouping import Grouping
from annotation.templatetags import figures as written
from judging.results.data_set import ANSWERS, CATEGORY, LABEL, WORDS
from judging.results.views import cells, data_set_rows, grids, group_fields, stacked_charts
from judging.results.views.cells import Row
from judging.results.views.data_set_rows import GroupedItems, GroupValues, RowsOfGroup
from judging.results.views.grids import Cell, Column, Grid, GridLine, LineBlock
from judging.results.views.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    TableQuery,
    ViewContent,
    study_figures,
)

ABILITY = Grouping("ability", "Ability")
EMPTY = "The project has no items yet. Import items to see this page."
ITEMS_WORDS = (
    "Duplicates and qualification items are left out. Shares are of all items in the row, "
    "including open ones; an item may have several types of error. Words are counted with "
    "the ROUGE-L tokeniser, in any script."
)
SHARES_WORDS = (
    "Shares are of all items in the group. An item may have several values of a field, so "
    "shares can add up to more than 100 %. Fields with more than 50 values or with long "
    "texts are not listed."
)
# More kinds than this have no shades that can be told apart; the rarest go together.
MOST_LABELS = 5
OTHER_LABELS = "all others"
# Past so many bars nobody reads a chart; the table has them all.
MOST_BARS = 40


def show_items(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """A line a group: its items, what they are held for, and how long their texts are."""
    page = GroupedItems(asked, asked.fields(TableQuery("")))
    groups = data_set_rows.group_rows(tables[0], page.by)
    every = sum(data_set_rows.get_size(rows) for rows in groups.values())
    counted, texts = _counted_values(tables[0]), data_set_rows.list_values(tables[0], WORDS)
    columns = (
        *(page.columns() or [Column("Items of", is_number=False)]),
        Column("Items", "n"),
        Column("Share of all", "share"),
        *(page.column(*one) for one in counted),
        *(Column(str(name), f"words-{name}", "mean words") for name in texts),
    )

    def line(group: GroupValues, rows: RowsOfGroup) -> GridLine:
        sizes = (page.count(group, rows), cells.percent_cell(data_set_rows.get_size(rows) / every))
        shares = (page.share_of(group, rows, *one) for one in counted)
        means = (_mean(rows.get((WORDS, name))) for name in texts)
        return GridLine((*_heads(page, group), *sizes, *shares, *means))

    lines = [line(*one) for one in groups.items()]
    return ViewContent(
        grids.build_grid("Items by group", columns, lines), _draw_labels(page, groups), ITEMS_WORDS
    )


def show_categories(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """Categories below their abilities, with their numbers of items (study 000, table 1)."""
    page = GroupedItems(asked, [ABILITY.name])
    groups = data_set_rows.group_rows(tables[0], page.by)
    every = sum(data_set_rows.get_size(rows) for rows in groups.values())
    found = [
        (
            group,
            rows,
            sorted(data_set_rows.select_kind(rows, CATEGORY), key=data_set_rows.category_order),
        )
        for group, rows in sorted(groups.items(), key=lambda one: ABILITY.place_of(one[0][0]))
    ]
    columns = (
        Column("Ability and category", is_number=False),
        Column("Items", "n"),
        Column("Of all items", "share"),
        Column("Share of its ability", "part"),
    )
    bars = [
        (
            data_set_rows.field_value_title(CATEGORY, row["value"]),
            row["count"] / every,
            row["count"],
        )
        for _, _, rows in found
        for row in rows
    ]
    words = "Duplicates and qualification items are left out."
    caption = "Items by category, in the order of the taxonomy."
    blocks = tuple(_block(page, *one, every) for one in found)
    grid = Grid("Items by ability and category", columns, blocks)
    return ViewContent(grid, _draw_bars(bars, "Share of all items", caption), words)


def show_shares(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """A block a field of the items: how many have each of its values."""
    page = GroupedItems(asked, asked.fields(TableQuery("")))
    rows = [row for row in tables[0] if row["of"] != WORDS]
    kinds = data_set_rows.list_kinds(rows)
    columns = (
        Column("Value", is_number=False),
        *page.columns(),
        Column("Items", "count"),
        Column("Share", "share"),
    )

    def block(of: str) -> LineBlock:
        lines = (_line(page, row) for row in rows if row["of"] == of)
        return LineBlock((_block_head(data_set_rows.kind_title(of), len(columns)), *lines))

    grid = Grid("Shares of the values of each field", columns, tuple(map(block, kinds)))
    return ViewContent(grid, _draw_first(page, rows, kinds), SHARES_WORDS)


def _counted_values(rows: Rows) -> list[tuple[str, str | None]]:
    """What items are counted by: what they are held for, then other answers."""
    of = [LABEL, *(one for one in data_set_rows.list_kinds(rows) if one.startswith(ANSWERS))]
    return [(one, value) for one in of for value in data_set_rows.list_values(rows, one)]


def _heads(page: GroupedItems, group: GroupValues) -> list[Cell]:
    return page.heads(group) or [cells.text_cell("All items")]


def _block_head(title: str, width: int) -> GridLine:
    return GridLine((Cell(title, is_number=False), *[Cell("")] * (width - 1)), "group")


def _line(page: GroupedItems, row: Row) -> GridLine:
    group = tuple(row[name] for name in page.by)
    return GridLine(
        (
            cells.text_cell(data_set_rows.value_title(row["of"], row["value"], page.labels)),
            *page.heads(group),
            page.count_of(group, row),
            Cell(written.share(row["share"]), row["share"], n=row["n"]),
        )
    )


def _block(
    page: GroupedItems, group: GroupValues, of_group: RowsOfGroup, rows: list[Row], every: int
) -> LineBlock:
    share = cells.percent_cell(data_set_rows.get_size(of_group) / every)
    head = Cell(ABILITY.title_of(group[0]), is_number=False)
    lines = [
        GridLine(
            (
                cells.text_cell(data_set_rows.field_value_title(CATEGORY, row["value"])),
                page.count_of(group, row),
                cells.percent_cell(row["count"] / every),
                cells.percent_cell(row["share"]),
            )
        )
        for row in rows
    ]
    return LineBlock(
        (GridLine((head, page.count(group, of_group), share, Cell("")), "group"), *lines)
    )


def _mean(row: Row | None) -> Cell:
    if row is None:
        return Cell(reason="no such text")
    return Cell(written.number(row["mean"]), row["mean"], n=row["count"])


def _draw_labels(page: GroupedItems, groups: Mapping[GroupValues, RowsOfGroup]) -> ChartSpec | None:
    """What the items of each group are held for; the rarest answers together."""
    rows = [row for of_group in groups.values() for row in of_group.values()]
    held = data_set_rows.list_values(rows, LABEL)
    own = held if len(held) <= MOST_LABELS else held[: MOST_LABELS - 1]
    titles = [data_set_rows.label_title(value, page.labels) for value in own]
    kinds = {f"k{place}": title for place, title in enumerate(titles)}
    kinds |= {"rest": OTHER_LABELS} if len(own) < len(held) else {}
    bars = []
    for group, of_group in groups.items():
        counts = {value: row["count"] for (of, value), row in of_group.items() if of == LABEL}
        bar = {f"k{place}": counts.get(value, 0) for place, value in enumerate(own)}
        bar["rest"] = sum(counts.values()) - sum(bar.values())
        bars.append((": ".join(cell.text for cell in _heads(page, group)[:2]), bar))
    caption = "Final labels of the items, as shares of each row; numbers are items."
    return stacked_charts.draw_bars(bars, kinds, "Share of the items", caption)


def _draw_first(page: GroupedItems, rows: Rows, kinds: Sequence[str]) -> ChartSpec | None:
    """The shares of the first kind that is shown."""
    if not kinds:
        return None
    of = kinds[0]
    bars = [(_label(page, row), row["share"], row["count"]) for row in rows if row["of"] == of]
    caption = f"{data_set_rows.kind_title(of)}: the share of the items with each value."
    if len(kinds) > 1:
        caption += " Choose another field above."
    return _draw_bars(bars, "Share of the items", caption)


def _label(page: GroupedItems, row: Row) -> str:
    """A value, and on a second line of which group."""
    value = data_set_rows.value_title(row["of"], row["value"], page.labels)
    heads = page.heads(tuple(row[name] for name in page.by))
    return ": ".join((value, *(cell.text for cell in heads[:1])))


def _draw_bars(
    found: Iterable[tuple[str, float, int]], title: str, caption: str
) -> ChartSpec | None:
    # Altair takes a second to import; nothing else should wait for it.
    from charts import bars

    every = [bars.Bar(name, share, written.share(share), n) for name, share, n in found]
    if not every:
        return None
    if len(every) > MOST_BARS:
        caption += f" The first {MOST_BARS} of {len(every)}; the table has them all."
    return ChartSpec(bars.draw_bars(every[:MOST_BARS], title=title), caption)


VIEWS = (
    ResultView(
        slug="items",
        title="Items",
        asks=(TableQuery("dataset"),),
        show=show_items,
        studies={"001": study_figures("table 2", by=("task", "response_model"))},
        empty=EMPTY,
        groups=group_fields.list_fields,
        of_runs=False,
    ),
    ResultView(
        slug="categories",
        title="Categories",
        asks=(TableQuery("dataset", "ability"),),
        show=show_categories,
        studies={"000": study_figures("table 1")},
        empty=EMPTY,
        of_runs=False,
    ),
    ResultView(
        slug="shares",
        title="Shares of any field",
        asks=(TableQuery("dataset"),),
        show=show_shares,
        studies={"001": study_figures("table 3", "figure 4", "figure 8")},
        empty=EMPTY,
        groups=group_fields.list_fields,
        columns=("of",),
        titles={"of": "Field"},
        named=data_set_rows.title_kind,
        of_runs=False,
    ),
)
