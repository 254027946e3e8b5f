"""Data set: what are the items? Labels, categories, words, and shares of any field (study 000,
table 1; study 001, tables 2 and 3, figures 4 and 8)."""

from collections.abc import Iterable, Mapping, Sequence

from annotation.leads.grouping import Grouping
from annotation.templatetags import figures as written
from judging.results.describing import ANSWERS, CATEGORY, LABEL, WORDS
from judging.views.results import cells, described, grids, offered, stacks
from judging.views.results.cells import Row
from judging.views.results.described import Group, Grouped, OfGroup
from judging.views.results.grids import Block, Cell, Column, Grid, Line
from judging.views.results.kinds import Ask, Asked, Drawing, Rows, Shown, View, places

ABILITY = Grouping("ability", "Ability")
EMPTY = "The project has no items yet. Once some are imported, this page says what they are."
ITEMS_WORDS = (
    "Items that repeat others and those that people practise on are no part. A share is of all"
    " items of the line, those that are still open too; an item may have several types of"
    " error. Words are counted as ROUGE-L takes them apart, in any script."
)
SHARES_WORDS = (
    "Shares are of all items of the group. An item may have several values of a field, so that"
    " shares can have a sum above 100 %. A field with more than 50 values, or with whole"
    " texts, is not listed."
)
# More kinds than this have no shades that can be told apart; the rarest go together.
MOST_KINDS = 5
REST = "all others"
# Past so many bars nobody reads a chart; the table has them all.
MOST_BARS = 40


def items(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """A line a group: its items, what they are held for, and how long their texts are."""
    page = Grouped(asked, asked.fields(Ask("")))
    groups = described.by_group(tables[0], page.by)
    every = sum(described.size(rows) for rows in groups.values())
    counted, texts = _counted(tables[0]), described.values(tables[0], WORDS)
    columns = (
        *(page.columns() or [Column("Items of", is_number=False)]),
        Column("Items", "n"),
        Column("Of all", "share"),
        *(page.column(*one) for one in counted),
        *(Column(str(name), f"words-{name}", "mean words") for name in texts),
    )

    def line(group: Group, rows: OfGroup) -> Line:
        sizes = (page.count(group, rows), cells.of_share(described.size(rows) / every))
        shares = (page.share_of(group, rows, *one) for one in counted)
        means = (_mean(rows.get((WORDS, name))) for name in texts)
        return Line((*_heads(page, group), *sizes, *shares, *means))

    lines = [line(*one) for one in groups.items()]
    return Shown(
        grids.of_lines("Items by group", columns, lines), _stacked(page, groups), ITEMS_WORDS
    )


def categories(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """Categories below their abilities, with their numbers of items (study 000, table 1)."""
    page = Grouped(asked, [ABILITY.name])
    groups = described.by_group(tables[0], page.by)
    every = sum(described.size(rows) for rows in groups.values())
    found = [
        (group, rows, sorted(described.of_kind(rows, CATEGORY), key=described.place))
        for group, rows in sorted(groups.items(), key=lambda one: ABILITY.place_of(one[0][0]))
    ]
    columns = (
        Column("Ability and category", is_number=False),
        Column("Items", "n"),
        Column("Of all items", "share"),
        Column("Of its ability", "part"),
    )
    bars = [
        (described.named(CATEGORY, row["value"]), row["count"] / every, row["count"])
        for _, _, rows in found
        for row in rows
    ]
    words = "Items that repeat others and those that people practise on are no part."
    caption = "Items by category, in the order of the taxonomy."
    blocks = tuple(_block(page, *one, every) for one in found)
    grid = Grid("Items by ability and category", columns, blocks)
    return Shown(grid, _bars(bars, "Share of all items", caption), words)


def shares(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """A block a field of the items: how many have each of its values."""
    page = Grouped(asked, asked.fields(Ask("")))
    rows = [row for row in tables[0] if row["of"] != WORDS]
    kinds = described.kinds(rows)
    columns = (
        Column("Value", is_number=False),
        *page.columns(),
        Column("Items", "count"),
        Column("Share", "share"),
    )

    def block(of: str) -> Block:
        lines = (_line(page, row) for row in rows if row["of"] == of)
        return Block((_head(described.title(of), len(columns)), *lines))

    grid = Grid("Shares of the values of each field", columns, tuple(map(block, kinds)))
    return Shown(grid, _of_first(page, rows, kinds), SHARES_WORDS)


def _counted(rows: Rows) -> list[tuple[str, str | None]]:
    """What items are counted by: what they are held for, then other answers."""
    of = [LABEL, *(one for one in described.kinds(rows) if one.startswith(ANSWERS))]
    return [(one, value) for one in of for value in described.values(rows, one)]


def _heads(page: Grouped, group: Group) -> list[Cell]:
    return page.heads(group) or [cells.words("All items")]


def _head(title: str, width: int) -> Line:
    return Line((Cell(title, is_number=False), *[Cell("")] * (width - 1)), "group")


def _line(page: Grouped, row: Row) -> Line:
    group = tuple(row[name] for name in page.by)
    return Line(
        (
            cells.words(described.value_of(row["of"], row["value"], page.labels)),
            *page.heads(group),
            page.count_of(group, row),
            Cell(written.share(row["share"]), row["share"], n=row["n"]),
        )
    )


def _block(page: Grouped, group: Group, of_group: OfGroup, rows: list[Row], every: int) -> Block:
    share = cells.of_share(described.size(of_group) / every)
    head = Cell(ABILITY.title_of(group[0]), is_number=False)
    lines = [
        Line(
            (
                cells.words(described.named(CATEGORY, row["value"])),
                page.count_of(group, row),
                cells.of_share(row["count"] / every),
                cells.of_share(row["share"]),
            )
        )
        for row in rows
    ]
    return Block((Line((head, page.count(group, of_group), share, Cell("")), "group"), *lines))


def _mean(row: Row | None) -> Cell:
    if row is None:
        return Cell(reason="no such text")
    return Cell(written.number(row["mean"]), row["mean"], n=row["count"])


def _stacked(page: Grouped, groups: Mapping[Group, OfGroup]) -> Drawing | None:
    """What the items of each group are held for; the rarest answers together."""
    rows = [row for of_group in groups.values() for row in of_group.values()]
    held = described.values(rows, LABEL)
    own = held if len(held) <= MOST_KINDS else held[: MOST_KINDS - 1]
    titles = [described.label_of(value, page.labels) for value in own]
    kinds = {f"k{place}": title for place, title in enumerate(titles)}
    kinds |= {"rest": REST} if len(own) < len(held) else {}
    bars = []
    for group, of_group in groups.items():
        counts = {value: row["count"] for (of, value), row in of_group.items() if of == LABEL}
        bar = {f"k{place}": counts.get(value, 0) for place, value in enumerate(own)}
        bar["rest"] = sum(counts.values()) - sum(bar.values())
        bars.append((": ".join(cell.text for cell in _heads(page, group)[:2]), bar))
    caption = "What the items are held for, as shares of each line; the numbers are items."
    return stacks.bars(bars, kinds, "Share of the items", caption)


def _of_first(page: Grouped, rows: Rows, kinds: Sequence[str]) -> Drawing | None:
    """The shares of the first kind that is shown."""
    if not kinds:
        return None
    of = kinds[0]
    bars = [(_label(page, row), row["share"], row["count"]) for row in rows if row["of"] == of]
    caption = f"{described.title(of)}: the share of the items with each value."
    if len(kinds) > 1:
        caption += " Choose another field above."
    return _bars(bars, "Share of the items", caption)


def _label(page: Grouped, row: Row) -> str:
    """A value, and on a second line of which group."""
    value = described.value_of(row["of"], row["value"], page.labels)
    heads = page.heads(tuple(row[name] for name in page.by))
    return ": ".join((value, *(cell.text for cell in heads[:1])))


def _bars(found: Iterable[tuple[str, float, int]], title: str, caption: str) -> Drawing | None:
    # Altair takes a second to import; nothing else should wait for it.
    from charts import bars

    every = [bars.Bar(name, share, written.share(share), n) for name, share, n in found]
    if not every:
        return None
    if len(every) > MOST_BARS:
        caption += f" The first {MOST_BARS} of {len(every)}; the table has them all."
    return Drawing(bars.bars(every[:MOST_BARS], title=title), caption)


VIEWS = (
    View(
        slug="items",
        title="Items",
        asks=(Ask("dataset"),),
        show=items,
        studies={"001": places("table 2", by=("task", "response_model"))},
        empty=EMPTY,
        groups=offered.fields,
        of_runs=False,
    ),
    View(
        slug="categories",
        title="Categories",
        asks=(Ask("dataset", "ability"),),
        show=categories,
        studies={"000": places("table 1")},
        empty=EMPTY,
        of_runs=False,
    ),
    View(
        slug="shares",
        title="Shares of any field",
        asks=(Ask("dataset"),),
        show=shares,
        studies={"001": places("table 3", "figure 4", "figure 8")},
        empty=EMPTY,
        groups=offered.fields,
        columns=("of",),
        titles={"of": "Field"},
        named=described.in_words,
        of_runs=False,
    ),
)
