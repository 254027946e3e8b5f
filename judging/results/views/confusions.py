"""Who says what where another says something: the answers of two people as a table."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from annotation.reports import agreement_answers
from annotation.templatetags import figures as written
from judging.results.views import cells, grids
from judging.results.views.grids import Cell, Column, GridLine
from judging.results.views.page_parts import ChartSpec, PageQuery, Rows, ViewContent


@dataclass(frozen=True)
class AnswerTable:
    """How many items two people met at with which answers; `answers` in their order, with titles.

    `people` are the two, or nobody where several pairs are counted, each both ways; `of` then says
    what the pairs have in common.
    """

    counts: Mapping[tuple[str, str], int]
    answers: Mapping[str, str]
    people: tuple[str, str] | None
    of: Mapping[str, str]

    @property
    def sides(self) -> tuple[str, str]:
        """Who stands in rows and who in columns, in words."""
        return self.people or ("One annotator", "the other annotator")

    def n(self, one: str, other: str) -> int:
        return self.counts.get((one, other), 0)

    def whole(self, one: str) -> int:
        return sum(self.n(one, other) for other in self.answers)


def show(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """What one says where another says something, of one question; everybody if no two are named.

    Over several pairs each counts both ways, so that the field is the same either way round.
    """
    titles = question_titles(asked)
    field = next((name for name in titles if any(row["field"] == name for row in tables[0])), "")
    rows = [row for row in tables[0] if row["field"] == field]
    met = _build_answer_table(asked, field, rows)
    of_rows, _ = met.sides
    columns = (
        Column(f"{of_rows} says" if met.people else of_rows, is_number=False),
        *(Column(title, f"says-{name}") for name, title in met.answers.items()),
        Column("Together", "n"),
    )
    lines = [_line(asked, met, name) for name in met.answers]
    grid = grids.build_grid("Answers of two annotators", columns, lines)
    pairs = len({(row["a"], row["b"]) for row in rows})
    return ViewContent(grid, _draw_heatmap(met), _words(met, titles.get(field, field), pairs))


def question_titles(asked: PageQuery) -> dict[str, str]:
    """What people can agree on, by name, with its title."""
    return {one.name: one.title for one in agreement_answers.list_questions(asked.project)}


def items_url(asked: PageQuery, row: Mapping[str, str]) -> str:
    """Where the items behind a row of the table `agreement` or `confusion` are listed."""
    query = urlencode({"agreement": json.dumps(row, ensure_ascii=False)})
    return f"{reverse('items', args=[asked.project.slug])}?{query}"


def _build_answer_table(asked: PageQuery, field: str, rows: Rows) -> AnswerTable:
    pairs = {(row["a"], row["b"]) for row in rows}
    counts = _count_pairs(rows, both_ways=len(pairs) > 1)
    alike = {side: {row[side] for row in rows} for side in ("a", "b")}
    named = {side: next(iter(people)) for side, people in alike.items() if len(people) == 1}
    people = next(iter(pairs)) if len(pairs) == 1 else None
    return AnswerTable(
        counts, _answer_titles(asked, field, counts), people, {"field": field, **named}
    )


def _count_pairs(rows: Rows, *, both_ways: bool) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for row in rows:
        said = (row["choice_a"], row["choice_b"])
        for one in (said, said[::-1]) if both_ways else (said,):
            found[one] = found.get(one, 0) + row["n"]
    return found


def _answer_titles(
    asked: PageQuery, field: str, counts: Mapping[tuple[str, str], int]
) -> dict[str, str]:
    """The answers that were given, in the order in which they are offered, with their titles."""
    given = {one for said in counts for one in said}
    question = next(
        (one for one in agreement_answers.list_questions(asked.project) if one.name == field), None
    )
    declared = [name for name, _ in question.options] if question else []
    order = [*(name for name in declared if name in given), *sorted(given - set(declared))]
    return {name: question.title_of(name) if question else name for name in order}


def _words(met: AnswerTable, question: str, pairs: int) -> str:
    of_rows, of_columns = met.sides
    shade = " Darker: a larger share of the row on which they differ."
    asked = f"The question “{question}”"
    if met.people:
        return f"{asked}: items by what {of_rows} (rows) and {of_columns} (columns) say.{shade}"
    return (
        f"{asked}, over {pairs} pairs of annotators, with each item of a pair counted both "
        f"ways.{shade} Choose two annotators to see only their pair."
    )


def _line(asked: PageQuery, met: AnswerTable, name: str) -> GridLine:
    of_line = {**met.of, "choice_a": name}
    counts = (_count_cell(asked, met, name, other) for other in met.answers)
    whole = cells.count_cell(met.whole(name), items_url(asked, of_line))
    return GridLine((cells.text_cell(met.answers[name]), *counts, whole))


def _count_cell(asked: PageQuery, met: AnswerTable, one: str, other: str) -> Cell:
    """How bad it is, is how large a share of the row it is on which they differ."""
    n, whole = met.n(one, other), met.whole(one)
    if not n:
        return Cell(written.number(n), n)
    heat = None if one == other else int(written.heat(n / whole, "high"))
    href = items_url(asked, {**met.of, "choice_a": one, "choice_b": other})
    return Cell(written.number(n), n, href, heat=heat, note=written.share(n / whole))


def _draw_heatmap(met: AnswerTable) -> ChartSpec | None:
    # Altair takes a second to import; nothing else should wait for it.
    from charts import confusion as drawn

    found = [
        drawn.AnswerPair(title, met.answers[other], n, n / whole if whole else 0)
        for one, title in met.answers.items()
        for whole in [met.whole(one)]
        for other in met.answers
        for n in [met.n(one, other)]
    ]
    if not found:
        return None
    caption = "Items by the answers of two annotators. Darker: a larger share of the row."
    rows, columns = met.sides
    return ChartSpec(
        drawn.draw_heatmap(found, list(met.answers.values()), rows=rows, columns=columns), caption
    )
