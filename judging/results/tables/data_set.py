"""What is in the data set, and what are the final labels? The table `dataset`, and the page Data
set (study 000, table 1; study 001, tables 2 and 3, figures 4 and 8)."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, F
from django.urls import reverse

from annotation import tasktypes
from annotation.db.batches import packed_id_batches
from annotation.models import Item, Project, Revision
from annotation.reports.grouping import MAX_GROUPS, Grouping
from annotation.tasktypes import main_field
from annotation.templatetags import figures as written
from judging.generation.rows import without_texts
from judging.results import cells, chart_parts, columns, detectors, group_fields
from judging.results.arrays import TEXTS_AT_A_TIME
from judging.results.cells import Cell, Grid, GridLine, Header, LineBlock, Row
from judging.results.columns import Table
from judging.results.counted import UnknownField
from judging.results.detectors import GroupKey
from judging.results.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    TableQuery,
    ViewContent,
    study_figures,
)
from stats.rouge import unicode_words

LABEL, CATEGORY, WORDS = "label", "category", "words"
# Prefixes of the names of other answers, and of the items' own fields.
ANSWERS, FIELDS = "answers.", "fields."
# The mean lengths of a text, in words and in tokens, for rows that are not about a text.
NO_MEANS = {"mean": None, "mean_tokens": None}
AT_A_TIME = 500
LONGEST_VALUE = 80
# A page or file of more groups would have hundreds of thousands of lines.
MOST_GROUPS = 5_000

# The number of items with each value, by group and field.
ValueCounts = dict[GroupKey, dict[str, Counter[str]]]


def tabulate(project: Project, by: Sequence[str]) -> list[dict[str, Any]]:
    """The table `dataset`: items are grouped by columns or own fields. Each group has a row for
    each label, each category, each value of other answers and fields, and each text.

    Of the `n` items, `count` have the label (None: no final label) or category in `value`; `share`
    is count / n. The same applies to fields such as `answers.error_type` and `fields.topic`; an
    item may have several of their values, so the shares can add up to more than 1. Texts, and
    fields with more than 50 values, have no such rows. For each text, `mean` is the mean number of
    words and `mean_tokens` that of tokens, over the `count` items that have the text. Texts are
    split into words as in ROUGE-L for any script, and into tokens at white space, as study 001
    counts them (no tokens of any model). Duplicates and items for qualification and control are
    left out. Raises `UnknownField`, also for more than `MOST_GROUPS`.
    """
    named = detectors.check_groupings(project, by)
    items = Item.objects.in_project(project).originals().of_tests()
    keys = {f"group_{place}": one.expression() for place, one in enumerate(named)}
    sizes = Counter({group: n for group, _, n in _count_items(items, keys, {})})
    if len(sizes) > MOST_GROUPS:
        raise UnknownField(
            f"Grouped by {', '.join(by)}, the items have {len(sizes):,} groups. At most "
            f"{MOST_GROUPS:,} are described: choose other fields."
        )
    held = items.filter(resolutions__current=True)
    labels = _group_counts(_count_items(held, keys, {"value": F("resolutions__value")}))
    categories = _group_counts(_count_items(items, keys, {"value": F("category")}))
    others = _merge_kinds(_count_answers(project, held, named), _count_fields(items, named))
    lengths = _count_lengths(items, named)
    return [
        {**dict(zip(by, group, strict=True)), "n": n, **row}
        for group, n in sorted(sizes.items())
        for row in (
            *_share_rows(LABEL, labels[group] | _with_open(n, labels[group]), n),
            *_share_rows(CATEGORY, categories[group], n),
            *(row for of, counts in others[group] for row in _share_rows(of, counts, n)),
            *_mean_rows(lengths[group]),
        )
    ]


def _count_items(
    items: Any, keys: dict[str, Any], value: dict[str, Any]
) -> Iterator[tuple[GroupKey, str | None, int]]:
    """Count the items by group and value; without groups and values, count all items."""
    if not keys and not value:
        yield (), None, items.count()
        return
    found = items.order_by().annotate(**{f"of_{name}": one for name, one in value.items()})
    for row in found.values(*(f"of_{name}" for name in value), **keys).annotate(n=Count("pk")):
        yield detectors.make_group_key(row[key] for key in keys), row.get("of_value"), row["n"]


def _group_counts(
    counted: Iterable[tuple[GroupKey, str | None, int]],
) -> dict[GroupKey, Counter[str | None]]:
    found: dict[GroupKey, Counter[str | None]] = defaultdict(Counter)
    for group, value, n in counted:
        found[group][value] += n
    return found


def _with_open(n: int, labels: Counter[str | None]) -> Counter[str | None]:
    """Return the number of items without a final label as a count under None."""
    left: Counter[str | None] = Counter({None: n - labels.total()})
    return +left


def _share_rows(of: str, counts: Counter[str | None], n: int) -> Iterator[dict[str, Any]]:
    for value, count in sorted(counts.items(), key=lambda one: (one[0] is None, one[0] or "")):
        yield {"of": of, "value": value, "count": count, "share": count / n, **NO_MEANS}


def _count_answers(project: Project, held: Any, named: Sequence[Grouping]) -> ValueCounts:
    """Count the items' final answers in the other fields with options."""
    task = tasktypes.load_task_type(project)
    names = [field.name for field in task.fields if field.level and field is not task.deciding]
    groups = [one.expression() for one in named]
    rows = held.order_by().values_list("resolutions__values", *groups).iterator(AT_A_TIME)
    return _count_values(
        ANSWERS, (({name: said.get(name) for name in names}, g) for said, *g in rows)
    )


def _count_fields(items: Any, named: Sequence[Grouping]) -> ValueCounts:
    groups = [one.expression() for one in named]
    rows = (
        row
        for ids in packed_id_batches(items.order_by(), "fields")
        for row in items.filter(pk__in=ids)
        .order_by()
        .values_list("fields", *groups)
        .iterator(TEXTS_AT_A_TIME)
    )
    return _count_values(FIELDS, ((without_texts(fields), group) for fields, *group in rows))


def _count_values(
    kind: str, rows: Iterable[tuple[Mapping[str, Any], Sequence[Any]]]
) -> ValueCounts:
    """Count the items with each value; an item may count for several values. Fields with too many
    values are left out."""
    found: ValueCounts = defaultdict(lambda: defaultdict(Counter))
    seen: dict[str, set[str]] = defaultdict(set)
    for fields, group in rows:
        for name, value in fields.items():
            if _names_groups(seen[name]):
                words = _value_texts(value)
                seen[name].update(words)
                found[detectors.make_group_key(group)][name].update(words)
    fit = sorted(name for name, values in seen.items() if _names_groups(values))
    return {
        group: {kind + name: fields[name] for name in fit if fields[name]}
        for group, fields in found.items()
    }


def _names_groups(values: set[str]) -> bool:
    """True if these values can name groups of items: there are few values, and none is a long
    text."""
    return len(values) <= MAX_GROUPS and all(len(one) <= LONGEST_VALUE for one in values)


def _value_texts(value: Any) -> set[str]:
    """The value of a field as texts, of long ones the beginnings; a list has several."""
    several = value if isinstance(value, list) else [value]
    return {str(one)[: LONGEST_VALUE + 1] for one in several if one not in (None, "")}


def _merge_kinds(*kinds: ValueCounts) -> dict[GroupKey, list[tuple[str, Counter[str | None]]]]:
    """Merge the counts of all fields, by group."""
    found: dict[GroupKey, list[tuple[str, Counter[str | None]]]] = defaultdict(list)
    for values in kinds:
        for group, fields in values.items():
            found[group] += [(of, Counter[str | None](n)) for of, n in fields.items()]
    return found


def _count_lengths(items: Any, named: Sequence[Grouping]) -> dict[GroupKey, dict[str, list[int]]]:
    """Count, for each group and text, the items that have the text, and the words and the tokens in
    these texts."""
    found: dict[GroupKey, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0] * 3))
    current = Revision.objects.filter(item__in=items, number=F("item__revision_number"))
    groups = [one.expression("item__") for one in named]
    rows = current.order_by().values_list("texts", *groups).iterator(TEXTS_AT_A_TIME)
    for texts, *group in rows:
        for name, text in texts.items():
            said, joined = found[detectors.make_group_key(group)][name], _join_text(text)
            said[0] += 1
            said[1] += len(unicode_words(joined))
            said[2] += len(joined.split())
    return found


def _join_text(text: Any) -> str:
    """Return a text unchanged; join several texts, such as references, into one."""
    return "\n".join(map(str, text)) if isinstance(text, list) else str(text)


def _mean_rows(lengths: dict[str, list[int]]) -> Iterator[dict[str, Any]]:
    for name, (count, *totals) in sorted(lengths.items()):
        means = dict(zip(NO_MEANS, (total / count for total in totals), strict=True))
        yield {"of": WORDS, "value": name, "count": count, "share": None, **means}


DATA_SET = Table(
    "dataset",
    (columns.FIELDS, *columns.plain("n", "of", "value", "count", "share", *NO_MEANS)),
    lambda project, runs, by: tabulate(project, by),
    group_by=detectors.BY_ITEM_FIELDS,
    # The words of all texts are counted: a second for 2,400 items of study 000.
    at_once=columns.GROUP_DRAW_LIMIT,
    of_items=True,
    about="A row per group of items and label, category, other value or text: how many items "
    "have it, with the mean length of texts.",
    meanings={
        "n": "number of items of the group",
        "of": "what the row counts: `label`, `category`, `answers.NAME`, `fields.NAME`, or "
        "`words` for a text",
        "value": "the label, the category, the value, or the name of the text; an empty label is "
        "an item without a final label",
        "count": "number of items of the group that have this value, or this text",
        "share": "count divided by n; empty for texts",
        "mean": "mean number of words of the text",
        "mean_tokens": "mean number of pieces of the text between white space, not tokens of a "
        "model",
    },
)
OPEN = "open"

# The rows of a group's items, by kind and value.
GroupValues = tuple[str, ...]
RowsOfGroup = dict[tuple[str, str | None], Row]


def title_kind(asked: PageQuery, column: str, value: str) -> str:
    """The title of a kind of shares."""
    return kind_title(value) if column == "of" else ""


def group_rows(asked: PageQuery, rows: Rows, by: Sequence[str]) -> dict[GroupValues, RowsOfGroup]:
    """The rows by group, then by kind and value; groups are in the order of their fields'
    values."""
    found: dict[GroupValues, RowsOfGroup] = {}
    for row in rows:
        of_group = found.setdefault(tuple(row[name] for name in by), {})
        of_group[row["of"], row["value"]] = row
    order = [Grouping(name, name, asked.categories) for name in by]
    return dict(
        sorted(
            found.items(),
            key=lambda one: [g.place_of(v) for g, v in zip(order, one[0], strict=True)],
        )
    )


def select_kind(rows: RowsOfGroup, of: str) -> list[Row]:
    """The rows of a group for one kind, such as one field."""
    return [row for (kind, _), row in rows.items() if kind == of]


def get_size(rows: RowsOfGroup) -> int:
    """The number of items of a group. Every row of the group has this number, so pass at least one
    row."""
    return int(next(iter(rows.values()))["n"])


def list_kinds(rows: Rows) -> list[str]:
    """The kinds of rows: fields of the items, then other answers, labels and categories."""
    order = (FIELDS, ANSWERS, LABEL, CATEGORY)
    kinds = {row["of"] for row in rows if row["of"] != WORDS}
    return sorted(kinds, key=lambda of: ([of.startswith(one) for one in order].index(True), of))


def list_values(rows: Iterable[Row], of: str) -> list[str | None]:
    """The values of a kind, the most frequent first; "open" is last."""
    counts: dict[str | None, int] = {}
    for row in rows:
        if row["of"] == of:
            counts[row["value"]] = counts.get(row["value"], 0) + row["count"]
    return sorted(counts, key=lambda value: (value is None, -counts[value], value or ""))


@dataclass(frozen=True)
class GroupedItems:
    """The items of one view, grouped by fields: columns, cells and links."""

    asked: PageQuery
    by: Sequence[str]

    @cached_property
    def labels(self) -> dict[str, str]:
        """The titles of the answers to the deciding question."""
        return dict(main_field.load_main_field(self.asked.project).options)

    def columns(self) -> list[Header]:
        """The columns of the grouping fields; [] without fields."""
        titles = self.asked.groups
        return [Header(titles.get(name, name), name, is_number=False) for name in self.by]

    def heads(self, group: GroupValues) -> list[Cell]:
        """The first cells of a group's line: the title of each value."""
        named = zip(self.by, group, strict=True)
        return [
            cells.text_cell(self.asked.group_title(name, value), value) for name, value in named
        ]

    def value_title(self, of: str, value: str | None) -> str:
        """The title of a value of this kind: a final label, or a field's value; None is shown like
        ""."""
        if of == LABEL:
            return label_title(value, self.labels)
        return self.asked.group_title(of, value or "")

    def column(self, of: str, value: str | None) -> Header:
        """The column of one value, with its field as a note."""
        note = "" if of == LABEL else kind_title(of)
        return Header(self.value_title(of, value), f"{of}-{value}", note)

    def count(self, group: GroupValues, rows: RowsOfGroup) -> Cell:
        """The number of all items of a group."""
        return cells.count_cell(get_size(rows), self.items(group))

    def count_of(self, group: GroupValues, row: Row) -> Cell:
        """The number of a group's items with the value of a row."""
        return cells.count_cell(row["count"], self.items(group, row["of"], row["value"]))

    def share_of(self, group: GroupValues, rows: RowsOfGroup, of: str, value: str | None) -> Cell:
        """The number of a group's items with a value, and their share; 0 if there are no such
        items."""
        row = rows.get((of, value))
        return cells.share_cell(
            row["count"] if row else 0, get_size(rows), self.items(group, of, value)
        )

    def items(self, group: GroupValues, of: str = "", value: str | None = "") -> str:
        """The URL of these items; "" if no list shows exactly these items, for example items
        without a value."""
        said = {name: one for name, one in zip(self.by, group, strict=True) if one}
        if of == CATEGORY:
            said[CATEGORY] = value or ""
        if of.startswith(FIELDS):
            said[of.removeprefix(FIELDS)] = value or ""
        if len(said) < len(group):
            return ""
        query = {"items": "tests"}
        if of.startswith(ANSWERS):
            query["answers"] = json.dumps({of.removeprefix(ANSWERS): value}, ensure_ascii=False)
        if said:
            query["fields"] = json.dumps(said, ensure_ascii=False)
        if of == LABEL:
            query["resolution"] = value or "none"
        return f"{reverse('items', args=[self.asked.project.slug])}?{urlencode(query)}"


def kind_title(of: str) -> str:
    """The title of a field or answer, from its name without the prefix."""
    name = of.removeprefix(FIELDS).removeprefix(ANSWERS)
    return name.replace("_", " ").capitalize()


def label_title(value: str | None, labels: Mapping[str, str]) -> str:
    """The title of a final label; `OPEN` for None, the value itself if it has no title."""
    return OPEN if value is None else labels.get(value, value)


ABILITY = "ability"
# The columns of mean lengths, by their unit.
LENGTHS = {"words": "mean", "tokens": "mean_tokens"}
EMPTY = "The project has no items yet. Import items to see this page."
ITEMS_WORDS = (
    "Duplicates and qualification items are left out. Shares are of all items in the row, "
    "including open ones; an item may have several error categories. Words are counted with "
    "the ROUGE-L tokeniser, in any script; tokens are what stands between white space."
)
SHARES_WORDS = (
    "Shares are of all items in the group. An item may have several values of a field, so "
    "shares can add up to more than 100 %. Fields with more than 50 values or with long "
    "texts are not listed."
)
# With more labels the shades are indistinguishable; the rarest are merged.
MOST_LABELS = 5
OTHER_LABELS = "all others"
# A chart with more bars is unreadable; the table has all of them.
MOST_BARS = 40


def build_items(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per group: number of items, final labels, and length of texts."""
    page = GroupedItems(asked, asked.fields())
    groups = group_rows(asked, tables[0], page.by)
    every = sum(get_size(rows) for rows in groups.values())
    counted, texts = _counted_values(tables[0]), list_values(tables[0], WORDS)
    columns = (
        *(page.columns() or [Header("Items of", is_number=False)]),
        Header("Items", "n"),
        Header("Share of all", "share"),
        *(page.column(*one) for one in counted),
        *(
            Header(str(name), f"{kind}-{name}", f"mean {kind}")
            for name in texts
            for kind in LENGTHS
        ),
    )

    def line(group: GroupValues, rows: RowsOfGroup) -> GridLine:
        sizes = (page.count(group, rows), cells.percent_cell(get_size(rows) / every))
        shares = (page.share_of(group, rows, *one) for one in counted)
        means = (
            _mean(rows.get((WORDS, name)), column) for name in texts for column in LENGTHS.values()
        )
        return GridLine((*_heads(page, group), *sizes, *shares, *means))

    lines = [line(*one) for one in groups.items()]
    return ViewContent(
        cells.build_grid("Items by group", columns, lines), _draw_labels(page, groups), ITEMS_WORDS
    )


def build_categories(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """Categories below their abilities, with their numbers of items (study 000, table 1)."""
    page = GroupedItems(asked, [ABILITY])
    word_groups = asked.categories.word_groups
    groups = group_rows(asked, tables[0], page.by)
    every = sum(get_size(rows) for rows in groups.values())

    def place(row: Row) -> Any:
        return asked.categories.order_of({"category": row["value"]})

    found = [
        (
            group,
            rows,
            sorted(select_kind(rows, CATEGORY), key=place),
        )
        for group, rows in groups.items()
    ]
    columns = (
        Header(word_groups("Ability and category"), is_number=False),
        Header("Items", "n"),
        Header("Of all items", "share"),
        Header(word_groups("Share of its ability"), "part"),
    )
    bars = [
        (
            page.value_title(CATEGORY, row["value"]),
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


def build_shares(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One block per field of the items, with the number of items for each value."""
    page = GroupedItems(asked, asked.fields())
    rows = [row for row in tables[0] if row["of"] != WORDS]
    kinds = list_kinds(rows)
    columns = (
        Header("Value", is_number=False),
        *page.columns(),
        Header("Items", "count"),
        Header("Share", "share"),
    )

    def block(of: str) -> LineBlock:
        lines = (_line(page, row) for row in rows if row["of"] == of)
        return LineBlock((_block_head(kind_title(of), len(columns)), *lines))

    grid = Grid("Shares of the values of each field", columns, tuple(map(block, kinds)))
    return ViewContent(grid, _draw_first(page, rows, kinds), SHARES_WORDS)


def _counted_values(rows: Rows) -> list[tuple[str, str | None]]:
    """The values counted in columns: final labels, then other answers."""
    of = [LABEL, *(one for one in list_kinds(rows) if one.startswith(ANSWERS))]
    return [(one, value) for one in of for value in list_values(rows, one)]


def _heads(page: GroupedItems, group: GroupValues) -> list[Cell]:
    return page.heads(group) or [cells.text_cell("All items")]


def _block_head(title: str, width: int) -> GridLine:
    return GridLine((Cell(title, is_number=False), *[Cell("")] * (width - 1)), "group")


def _line(page: GroupedItems, row: Row) -> GridLine:
    group = tuple(row[name] for name in page.by)
    return GridLine(
        (
            cells.text_cell(page.value_title(row["of"], row["value"])),
            *page.heads(group),
            page.count_of(group, row),
            Cell(written.share(row["share"]), row["share"], n=row["n"]),
        )
    )


def _block(
    page: GroupedItems, group: GroupValues, of_group: RowsOfGroup, rows: list[Row], every: int
) -> LineBlock:
    share = cells.percent_cell(get_size(of_group) / every)
    head = Cell(page.asked.group_title(ABILITY, group[0]), is_number=False)
    lines = [
        GridLine(
            (
                cells.text_cell(page.value_title(CATEGORY, row["value"])),
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


def _mean(row: Row | None, column: str) -> Cell:
    if row is None:
        return Cell(reason="no such text")
    return Cell(written.number(row[column]), row[column], n=row["count"])


def _draw_labels(page: GroupedItems, groups: Mapping[GroupValues, RowsOfGroup]) -> ChartSpec | None:
    """The final labels of the items of each group; the rarest are merged."""
    rows = [row for of_group in groups.values() for row in of_group.values()]
    held = list_values(rows, LABEL)
    own = held if len(held) <= MOST_LABELS else held[: MOST_LABELS - 1]
    titles = [label_title(value, page.labels) for value in own]
    kinds = {f"k{place}": title for place, title in enumerate(titles)}
    kinds |= {"rest": OTHER_LABELS} if len(own) < len(held) else {}
    bars = []
    for group, of_group in groups.items():
        counts = {value: row["count"] for (of, value), row in of_group.items() if of == LABEL}
        bar = {f"k{place}": counts.get(value, 0) for place, value in enumerate(own)}
        bar["rest"] = sum(counts.values()) - sum(bar.values())
        bars.append((": ".join(cell.text for cell in _heads(page, group)[:2]), bar))
    caption = "Final labels of the items, as shares of each row; numbers are items."
    return chart_parts.draw_bars(bars, kinds, "Share of the items", caption)


def _draw_first(page: GroupedItems, rows: Rows, kinds: Sequence[str]) -> ChartSpec | None:
    """The shares of the first kind that is shown."""
    if not kinds:
        return None
    of = kinds[0]
    bars = [(_label(page, row), row["share"], row["count"]) for row in rows if row["of"] == of]
    caption = f"{kind_title(of)}: the share of the items with each value."
    if len(kinds) > 1:
        caption += " Choose another field above."
    return _draw_bars(bars, "Share of the items", caption)


def _label(page: GroupedItems, row: Row) -> str:
    """A value, and on a second line its group."""
    value = page.value_title(row["of"], row["value"])
    heads = page.heads(tuple(row[name] for name in page.by))
    return ": ".join((value, *(cell.text for cell in heads[:1])))


def _draw_bars(
    found: Iterable[tuple[str, float, int]], title: str, caption: str
) -> ChartSpec | None:
    # Imported here, since Altair takes a second and nothing else should wait for it.
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
        asks=(TableQuery(DATA_SET),),
        figures=("lengths",),
        build=build_items,
        studies={"001": study_figures("table 2", by=("task", "response_model"))},
        empty=EMPTY,
        groups=group_fields.list_fields,
        of_runs=False,
    ),
    ResultView(
        slug="categories",
        title="Categories",
        asks=(TableQuery(DATA_SET, "ability"),),
        build=build_categories,
        studies={"000": study_figures("table 1")},
        empty=EMPTY,
        of_runs=False,
    ),
    ResultView(
        slug="shares",
        title="Shares of any field",
        asks=(TableQuery(DATA_SET),),
        build=build_shares,
        studies={"001": study_figures("table 3", "figure 4", "figure 8")},
        empty=EMPTY,
        groups=group_fields.list_fields,
        columns=("of",),
        titles={"of": "Field"},
        named=title_kind,
        of_runs=False,
    ),
)
