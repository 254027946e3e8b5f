"""The items behind one figure of agreement, found by its row in the table."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from itertools import combinations
from typing import Any

import numpy as np

from annotation.models import Project
from annotation.reports import agreement, agreement_answers
from annotation.reports.agreement import AGAINST_REST, MEASURES, PASSAGE_MEASURES, AgreementRow
from annotation.reports.agreement_answers import AnswerMatrix, AnswerPair, MarkedPassages
from stats import agreement as measuring
from stats import overlap
from stats.ratings import MISSING


def item_positions(project: Project, row: Mapping[str, Any]) -> list[int]:
    """Return the sorted positions of the items behind a row of the table `agreement` or
    `confusion`.

    A row of `agreement` is identified by `field`, `measure` and `people`, as in the table. A row of
    `confusion` is identified by `field` and the given fields of an `AnswerPair`. Returns [] if
    there is no such row, and for figures of control items, since those are only for leads.
    """
    asked = {one.name: one for one in agreement_answers.list_questions(project)}
    question = asked.get(str(row.get("field")))
    if question is None:
        return []
    said = agreement_answers.load_label_answers(project, only=question.name)
    if question.has_passages:
        return _overlapping_items(agreement_answers.collect_passages(question, said), row)
    if "measure" not in row:
        named = {one.name: str(row.get(one.name) or "") for one in fields(AnswerPair)}
        return agreement_answers.find_positions(question, said, AnswerPair(**named))
    found = agreement.measure_agreement(project, question)
    for one in found.rows:
        if (one.measure, one.named) == (row["measure"], row.get("people", "")):
            return _counted_items(agreement_answers.build_matrix(question, said), one, found.k)
    return []


def _overlapping_items(said: MarkedPassages, row: Mapping[str, Any]) -> list[int]:
    """Find the items with marked passages behind a figure of all annotators or of two."""
    pairs = [said.of(a, b) for a, b in combinations(range(len(said.people)), 2)]
    for one in [said, *pairs]:
        people = "" if one is said else " / ".join(one.people)
        if people == row.get("people", "") and row.get("measure") in PASSAGE_MEASURES:
            used = overlap.pooled_f1(one.marked).used
            return [one.positions[item] for item in np.flatnonzero(used)]
    return []


def _counted_items(said: AnswerMatrix, row: AgreementRow, k: int) -> list[int]:
    """Find the items that have enough labels for the measure from the annotators that it is
    about."""
    columns = [said.people.index(person) for person in row.people if person in said.people]
    if row.measure == AGAINST_REST:
        items, _ = measuring.majorities_of_others(said.nominal, *columns)
        return _positions_of(said, items)
    if row.measure not in MEASURES:
        return []
    by_order = MEASURES[row.measure].by_order and said.ordered
    there = (by_order or said.nominal).codes != MISSING
    labels = (there[:, columns] if columns else there).sum(axis=1)
    return _positions_of(
        said, np.flatnonzero(labels == k if row.measure == "fleiss" else labels > 1)
    )


def _positions_of(said: AnswerMatrix, items: Iterable[int]) -> list[int]:
    return [said.positions[item] for item in items]
