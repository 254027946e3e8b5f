"""The page of agreement between annotators on one question, for leads."""

from collections.abc import Sequence
from dataclasses import dataclass

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from annotation.items import taxonomy
from annotation.labelling import visibility
from annotation.models import Item, Membership, Project
from annotation.projects import access
from annotation.reports import agreement, agreement_answers
from annotation.reports.agreement import (
    AGAINST_KNOWN,
    AGAINST_REST,
    MEASURES,
    PAIR_MEASURES,
    Agreement,
    AgreementRow,
)
from annotation.reports.agreement_answers import AnswerPair, Question

SHADE_COUNT = 4
# The largest number of items of a cell that are listed.
MAX_SHOWN = 200


@dataclass(frozen=True)
class FigureLine:
    """A row of a table of figures: its title and, for each column, a figure or None."""

    title: str
    labels: int
    figures: tuple[AgreementRow | None, ...]


@dataclass(frozen=True)
class MatrixCell:
    """A cell of the confusion matrix, with the names of both answers. `shade` is from 0 to
    SHADE_COUNT, by the cell's share of its row."""

    said: tuple[str, str]
    n: int
    shade: int
    same: bool


@dataclass(frozen=True)
class CellItems:
    """The items of a cell, with the titles of both answers, the number of items, and the first
    items."""

    titles: tuple[str, str]
    n: int
    first: tuple[Item, ...]


@dataclass(frozen=True)
class ConfusionMatrix:
    """The confusion matrix: the answers of `a` are the rows, the answers of `b` the columns."""

    a: str
    b: str
    heads: tuple[str, ...]
    lines: tuple[tuple[str, tuple[MatrixCell, ...], int], ...]


class AgreementForm(forms.Form):
    """Form to choose the question and a category of items."""

    def __init__(self, data: QueryDict, questions: Sequence[Question], project: Project) -> None:
        super().__init__(data)
        names = taxonomy.load_taxonomy(project).category_names()
        found = [row["category"] for row in Item.objects.in_project(project).by_category()]
        used = sorted((names.get(slug, slug), slug) for slug in found if slug)
        asked = [(question.name, question.title) for question in questions]
        self.fields["field"] = forms.ChoiceField(label="Field", required=False, choices=asked)
        if used:
            every = [("", "Any"), *((slug, name) for name, slug in used)]
            self.fields["category"] = forms.ChoiceField(
                label="Category", required=False, choices=every
            )

    def chosen(self, name: str) -> str:
        """The chosen value; "" if it is invalid."""
        self.is_valid()
        return str(self.cleaned_data.get(name, ""))


class PairForm(forms.Form):
    """Form to choose the two annotators to compare; the other choices are hidden fields."""

    field = forms.CharField(widget=forms.HiddenInput, required=False)
    category = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, people: Sequence[str], **initial: str) -> None:
        super().__init__(initial=initial)
        choices = [(person, person) for person in people]
        self.fields["a"] = forms.ChoiceField(label="Rows", choices=choices)
        self.fields["b"] = forms.ChoiceField(label="Columns", choices=choices)


@require_safe
@login_required
def agreement_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one question's figures: over all annotators, for each pair, and for each annotator."""
    member = access.member_for(request, slug, right="manage")
    return render(request, "annotation/agreement.html", _context(member, request.GET))


def _context(member: Membership, query: QueryDict) -> dict[str, object]:
    questions = agreement_answers.list_questions(member.project)
    context: dict[str, object] = {"project": member.project, "member": member}
    if not questions:
        return context
    filters = AgreementForm(query, questions, member.project)
    wanted, category = filters.chosen("field"), filters.chosen("category")
    question = next((one for one in questions if one.name == wanted), questions[0])
    found = agreement.measure_agreement(member.project, question, category)
    matrix = _matrix(found, query.get("a", ""), query.get("b", ""))
    return context | {
        "filters": filters,
        "question": question,
        "found": found,
        "everybody": _overall_measures(found),
        "pair_heads": [MEASURES[name].title for name in _pair_measures(found)],
        "pairs": _pairs(found),
        "persons": [] if question.has_passages else _persons(found),
        "matrix": matrix,
        "cell": matrix and _chosen_cell(member, question, category, matrix, query),
        "pair_filter": matrix
        and PairForm(
            [person for person, _ in found.people],
            field=question.name,
            category=category,
            a=matrix.a,
            b=matrix.b,
        ),
    }


def _overall_measures(found: Agreement) -> list[tuple[bool, list[tuple[str, AgreementRow]]]]:
    """Return the measures over all annotators with their titles; measures for unordered answers are
    first."""
    rows = found.rows_of(*MEASURES, people=0)
    titled = [(MEASURES[row.measure], row) for row in rows]
    groups = [
        (by_order, [(one.title, row) for one, row in titled if one.by_order == by_order])
        for by_order in (False, True)
    ]
    return [group for group in groups if group[1]]


def _pair_measures(found: Agreement) -> list[str]:
    made = {row.measure for row in found.rows_of(*PAIR_MEASURES, people=2)}
    return [name for name in PAIR_MEASURES if name in made]


def _pairs(found: Agreement) -> list[FigureLine]:
    """Return the pairs of annotators; pairs with the most shared items are first."""
    by_pair: dict[tuple[str, ...], dict[str, AgreementRow]] = {}
    for row in found.rows_of(*PAIR_MEASURES, people=2):
        by_pair.setdefault(row.people, {})[row.measure] = row
    names = _pair_measures(found)
    lines = [
        FigureLine(" and ".join(people), rows[names[0]].n_items, tuple(map(rows.get, names)))
        for people, rows in by_pair.items()
    ]
    return sorted(lines, key=lambda line: -line.labels)


def _persons(found: Agreement) -> list[FigureLine]:
    rest = {row.people[0]: row for row in found.rows_of(AGAINST_REST, people=1)}
    known = {row.people[0]: row for row in found.rows_of(AGAINST_KNOWN, people=1)}
    labels = dict(found.people)
    return [
        FigureLine(person, labels.get(person, 0), (rest.get(person), known.get(person)))
        for person in sorted({*labels, *known})
    ]


def _matrix(found: Agreement, a: str, b: str) -> ConfusionMatrix | None:
    """Return the matrix of the requested pair, otherwise of the pair with the most shared items;
    None if there is no pair."""
    people = {person for person, _ in found.people}
    if not {a, b} <= people or a == b:
        rows = sorted(found.rows_of("percent", people=2), key=lambda row: -row.n_items)
        pairs = [row.people for row in rows if a in row.people] or [row.people for row in rows]
        if not pairs:
            return None
        a, b = sorted(pairs[0], key=lambda person: person != a)
    counts = found.matrix(a, b)
    heads = tuple(found.question.title_of(name) for name in found.names)
    lines = tuple((heads[i], _line(found.names, row, i), sum(row)) for i, row in enumerate(counts))
    return ConfusionMatrix(a, b, heads, lines)


def _line(names: Sequence[str], counts: Sequence[int], same: int) -> tuple[MatrixCell, ...]:
    whole = max(1, sum(counts))
    return tuple(
        MatrixCell(
            (names[same], names[column]), n, -(-SHADE_COUNT * n // whole), same=column == same
        )
        for column, n in enumerate(counts)
    )


def _chosen_cell(
    member: Membership, question: Question, category: str, matrix: ConfusionMatrix, query: QueryDict
) -> CellItems | None:
    """Return the items of the cell that the query names by its two answers; None if it names no
    cell.

    This also records that the member has seen the others' answers to these items.
    """
    row, column = query.get("row"), query.get("column")
    if not row or not column:
        return None
    said = agreement_answers.load_label_answers(
        member.project, category, [matrix.a, matrix.b], only=question.name
    )
    found = agreement_answers.find_positions(
        question, said, AnswerPair(matrix.a, matrix.b, row, column)
    )
    first = tuple(Item.objects.in_project(member.project).at_positions(found[:MAX_SHOWN]))
    visibility.record_all_seen(member, [item.pk for item in first], now=timezone.now())
    return CellItems((question.title_of(row), question.title_of(column)), len(found), first)
