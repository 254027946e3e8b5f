"""Agreement between the annotators of a project.

Each page of figures is about one question (a field of the task type). There are measures over all
annotators, for each pair of annotators, and for each annotator against the majority of the others
and against known answers. There are also confusion counts. Every figure is given with its n and its
interval; if there is no interval, the reason is given.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from annotation.db.cache import computing, process_cache
from annotation.models import Label, Project, Reason, Resolution, Slot, Stage
from annotation.reports import agreement_answers
from annotation.reports.agreement_answers import AnswerMatrix, MarkedPassages, Question
from stats import agreement as measuring
from stats import bootstrap, overlap
from stats.bootstrap import Figure
from stats.estimates import Estimate
from stats.ratings import MISSING, Ratings

# Part of every cache key; increase it when the definition of a figure changes.
VERSION = 3
KEEP_SECONDS = 24 * 60 * 60


@dataclass(frozen=True)
class Measure:
    """A measure of agreement.

    Measures with `by_order` treat answers as numbers; other measures treat each answer as a class.
    `make` takes the ratings and, for Fleiss's kappa, the number of labels per item. Measures with
    `of_passages` are about marked passages, which `make` takes instead of ratings.
    """

    title: str
    by_order: bool
    make: Callable[[Any, int], Figure | Estimate]
    of_passages: bool = False


MEASURES: dict[str, Measure] = {
    "percent": Measure("Percent agreement", False, lambda r, k: measuring.percent_agreement(r)),
    "cohen": Measure("Cohen’s kappa", False, lambda r, k: measuring.cohen_kappa(r)),
    "fleiss": Measure("Fleiss’ kappa", False, measuring.fleiss_kappa),
    "alpha-nominal": Measure(
        "Krippendorff’s alpha, nominal", False, lambda r, k: measuring.krippendorff_alpha(r)
    ),
    "ac1": Measure("Gwet’s AC1", False, lambda r, k: measuring.gwet_ac(r)),
    "cohen-linear": Measure(
        "Cohen’s kappa, linear weights", True, lambda r, k: measuring.cohen_kappa(r, "linear")
    ),
    "cohen-quadratic": Measure(
        "Cohen’s kappa, quadratic weights", True, lambda r, k: measuring.cohen_kappa(r, "quadratic")
    ),
    "alpha-ordinal": Measure(
        "Krippendorff’s alpha, ordinal",
        True,
        lambda r, k: measuring.krippendorff_alpha(r, "ordinal"),
    ),
    "alpha-interval": Measure(
        "Krippendorff’s alpha, interval",
        True,
        lambda r, k: measuring.krippendorff_alpha(r, "interval"),
    ),
    "ac2": Measure(
        "Gwet’s AC2, quadratic weights", True, lambda r, k: measuring.gwet_ac(r, "quadratic")
    ),
    "overlap-f1": Measure("Overlap F1", False, lambda marked, k: overlap.pooled_f1(marked), True),
    "overlap-f1-mean": Measure(
        "Overlap F1, mean of items", False, lambda marked, k: overlap.mean_f1(marked), True
    ),
}
PASSAGE_MEASURES = tuple(name for name, one in MEASURES.items() if one.of_passages)
PAIR_MEASURES = ("percent", "cohen", "cohen-linear", "cohen-quadratic", *PASSAGE_MEASURES)
MORE_IF_DISPUTED = "items on which annotators disagree have more labels"
SEVERAL_SCALES = "people answered on several scales"
AGAINST_REST = "against-rest"
AGAINST_KNOWN = "against-known"


@dataclass(frozen=True)
class AgreementRow:
    """One figure. `people` names the one or two annotators that it is about; if it is empty, the
    figure is about all annotators.

    `n_raters` is the number of annotators whose labels the figure uses; for Fleiss's kappa it is
    the number of labels per item. Values are unrounded, and None where undefined.
    """

    field: str
    measure: str
    people: tuple[str, ...]
    n_items: int
    n_raters: int
    value: float | None
    low: float | None
    high: float | None
    reason: str

    @property
    def named(self) -> str:
        """The names of the annotators as shown in the table."""
        return " / ".join(self.people)


@dataclass(frozen=True)
class ConfusionCell:
    """The number of items that one annotator answered with one answer and the other annotator with
    another."""

    people: tuple[str, str]
    said: tuple[str, str]
    n: int


@dataclass(frozen=True)
class Agreement:
    """All figures of one question, with the data behind them."""

    question: Question
    people: tuple[tuple[str, int], ...]
    names: tuple[str, ...]
    labels: int
    items: int
    clusters: int
    k: int
    rows: tuple[AgreementRow, ...]
    cells: tuple[ConfusionCell, ...]

    def rows_of(self, *measures: str, people: int) -> list[AgreementRow]:
        """Return the figures of these measures that are about `people` annotators; 0 means all
        annotators."""
        return [r for r in self.rows if r.measure in measures and len(r.people) == people]

    def matrix(self, a: str, b: str) -> list[list[int]]:
        """Confusion counts of a (rows) against b (columns), in the order of `names`."""
        counts = {cell.said: cell.n for cell in self.cells if cell.people == (a, b)}
        counts |= {cell.said[::-1]: cell.n for cell in self.cells if cell.people == (b, a)}
        return [[counts.get((row, column), 0) for column in self.names] for row in self.names]


def measure_agreement(project: Project, question: Question, category: str = "") -> Agreement:
    """Compute the figures of one question. They are cached until the labels change."""
    key = _key(project, question, category)
    kept: Agreement | None = process_cache.get(key)
    if kept is None:
        with computing:
            kept = process_cache.get(key)
            if kept is None:
                kept = _compute_agreement(project, question, category)
                process_cache.set(key, kept, KEEP_SECONDS)
    return kept


def agreement_rows(project: Project) -> Iterator[dict[str, Any]]:
    """Return the table `agreement`: the figures of all questions, without figures of control items.

    Researchers see the results too, but figures of control items are only for leads.
    """
    for question in agreement_answers.list_questions(project):
        for row in measure_agreement(project, question).rows:
            if row.measure != AGAINST_KNOWN:
                yield row_as_dict(row)


def confusion_rows(project: Project) -> Iterator[dict[str, Any]]:
    """Return the table `confusion`: how often one annotator gave one answer and another annotator
    gave another."""
    for question in agreement_answers.list_questions(project):
        for cell in measure_agreement(project, question).cells:
            yield cell_as_dict(question, cell)


def row_as_dict(row: AgreementRow) -> dict[str, Any]:
    """Return a row of the agreement table by `COLUMNS`, with the annotators in words."""
    values = dict(zip(COLUMNS, astuple(row), strict=True))
    return values | {"people": row.named}


def cell_as_dict(question: Question, cell: ConfusionCell) -> dict[str, Any]:
    """Return a row of the confusion table by `CONFUSION_COLUMNS`."""
    values = (question.name, *cell.people, *cell.said, cell.n)
    return dict(zip(CONFUSION_COLUMNS, values, strict=True))


COLUMNS = (
    "field", "measure", "people", "n_items", "n_raters", "value", "low", "high", "reason",
)  # fmt: skip
CONFUSION_COLUMNS = ("field", "a", "b", "choice_a", "choice_b", "n")


def _compute_agreement(project: Project, question: Question, category: str) -> Agreement:
    if question.has_passages:
        return _compute_overlap(project, question, category)
    answers = agreement_answers.load_label_answers(project, category, only=question.name)
    offered = agreement_answers.load_offered_options(question, answers)
    asked = replace(question, options=offered[0]) if offered else question
    said = agreement_answers.build_matrix(asked, answers)
    checks = agreement_answers.build_matrix(
        question, agreement_answers.load_control_answers(project, category)
    )
    counted = (said.nominal.codes != MISSING).sum(axis=1)
    shared = counted[counted > 1]
    k = _fleiss_k(project, shared)
    seed = f"agreement {VERSION} {project.slug} {category} {question.name}"
    undefined = {"fleiss": MORE_IF_DISPUTED} if _has_disputed_labels(project) else {}
    if question.has_order and len(offered) > 1:
        undefined |= {"ac1": SEVERAL_SCALES, "ac2": SEVERAL_SCALES}
    found = [
        *_overall_rows(question, said, k, seed, undefined),
        *_pair_rows(question, said, seed),
        *_person_rows(question, said),
        *_control_rows(question, checks),
    ]
    labels = (said.nominal.codes != MISSING).sum(axis=0).tolist()
    return Agreement(
        question=question,
        people=tuple(zip(said.people, labels, strict=True)),
        names=said.names,
        labels=said.labels,
        items=len(shared),
        clusters=len(np.unique(said.nominal.clusters[counted > 1])),
        k=k,
        rows=tuple(found),
        cells=tuple(_cells(said)),
    )


def _compute_overlap(project: Project, question: Question, category: str) -> Agreement:
    """Compute the figures of a question whose answers are marked passages."""
    said = agreement_answers.collect_passages(
        question, agreement_answers.load_label_answers(project, category, only=question.name)
    )
    there = np.array([[one is not None for one in item] for item in said.marked], dtype=bool)
    there = there.reshape(len(said.positions), len(said.people))
    shared = there.sum(axis=1) > 1
    seed = f"agreement {VERSION} {project.slug} {category} {question.name}"
    pairs = [said.of(a, b) for a, b in combinations(range(len(said.people)), 2)]
    return Agreement(
        question=question,
        people=tuple(zip(said.people, there.sum(axis=0).tolist(), strict=True)),
        names=(),
        labels=int(there.sum()),
        items=int(shared.sum()),
        clusters=len(np.unique(said.clusters[shared])),
        k=0,
        rows=tuple(
            _overlap_row(question, name, people, one, seed)
            for people, one in [((), said), *((one.people, one) for one in pairs if one.marked)]
            for name in PASSAGE_MEASURES
        ),
        cells=(),
    )


def _overlap_row(
    question: Question, name: str, people: tuple[str, ...], said: MarkedPassages, seed: str
) -> AgreementRow:
    marked = [[sorted(one, key=str) if one else one for one in item] for item in said.marked]
    parts = json.dumps([people, name, marked, said.clusters.tolist()])
    digest = hashlib.sha256(f"{seed} {parts}".encode("utf-8", "surrogatepass")).digest()
    rng = np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "big")))
    figure = MEASURES[name].make(said.marked, 0)
    assert isinstance(figure, Figure)
    estimate = bootstrap.estimate(figure, said.clusters, rng)
    return _row(question, name, people, len(said.people), estimate)


def _fleiss_k(project: Project, shared: Any) -> int:
    """Return the project's overlap. If it is 1, return the most frequent number of labels per item
    above 1."""
    if project.overlap > 1 or not len(shared):
        return max(2, project.overlap)
    return int(np.bincount(shared).argmax())


def _has_disputed_labels(project: Project) -> bool:
    """True if items have further labels because annotators disagreed. Those with exactly k labels
    are then the items on which annotators agree."""
    slots = Slot.objects.in_project(project.pk).at_stage(Stage.LABEL).in_data_set()
    return slots.filter(reason=Reason.DISPUTED, state=Slot.State.FILLED).exists()


def _overall_rows(
    question: Question, said: AnswerMatrix, k: int, seed: str, undefined: Mapping[str, str]
) -> Iterator[AgreementRow]:
    """The figures over all annotators; `undefined` says why measures have no value, by name."""
    for name, ratings in _suitable_measures(said, tuple(MEASURES)):
        estimate = _estimate(name, ratings, k, seed)
        if name in undefined:
            estimate = Estimate(None, None, None, estimate.n, undefined[name])
        raters = k if name == "fleiss" else _raters(ratings)
        yield _row(question, name, (), raters, estimate)


def _pair_rows(question: Question, said: AnswerMatrix, seed: str) -> Iterator[AgreementRow]:
    for a, b in _pairs(said):
        people = said.people[a], said.people[b]
        for name, ratings in _suitable_measures(said, PAIR_MEASURES):
            estimate = _estimate(name, ratings.shared(a, b), 2, f"{seed} {json.dumps(people)}")
            yield _row(question, name, people, 2, estimate)


def _person_rows(question: Question, said: AnswerMatrix) -> Iterator[AgreementRow]:
    for column, person in enumerate(said.people):
        estimate = measuring.agreement_with_majority(said.nominal, column)
        yield _row(question, AGAINST_REST, (person,), _raters(said.nominal), estimate)


def _control_rows(question: Question, checks: AnswerMatrix) -> Iterator[AgreementRow]:
    for column, person in enumerate(checks.people):
        estimate = measuring.accuracy_against_known(checks.nominal, column, checks.known)
        yield _row(question, AGAINST_KNOWN, (person,), 1, estimate)


def _suitable_measures(said: AnswerMatrix, names: tuple[str, ...]) -> Iterator[tuple[str, Ratings]]:
    """Return the measures that suit the answers, each with the ratings that it needs."""
    for name in names:
        if MEASURES[name].of_passages:
            continue
        if not MEASURES[name].by_order:
            yield name, said.nominal
        elif said.ordered is not None and (name != "alpha-interval" or said.has_numbers):
            yield name, said.ordered


def _estimate(name: str, ratings: Ratings, k: int, seed: str) -> Estimate:
    made = MEASURES[name].make(ratings, k)
    if isinstance(made, Estimate):
        return made
    rng = np.random.Generator(np.random.PCG64(_seed_of_ratings(f"{seed} {name}", ratings)))
    return bootstrap.estimate(made, ratings.clusters, rng)


def _seed_of_ratings(seed: str, ratings: Ratings) -> int:
    """Return a seed that depends only on the labels, so that every machine draws the same
    samples."""
    digest = hashlib.sha256(seed.encode("utf-8", "surrogatepass"))
    for array in (ratings.codes, ratings.clusters):
        digest.update(array.astype("<i4").tobytes())
    digest.update(ratings.values.astype("<f8").tobytes())
    return int.from_bytes(digest.digest()[:16], "big")


def _pairs(said: AnswerMatrix) -> list[tuple[int, int]]:
    """Return each pair of annotators (as column numbers) who have labelled at least one item in
    common."""
    there = (said.nominal.codes != MISSING).astype(float)
    shared = there.T @ there
    return [(a, b) for a, b in combinations(range(len(said.people)), 2) if shared[a, b]]


def _cells(said: AnswerMatrix) -> Iterator[ConfusionCell]:
    for a, b in _pairs(said):
        counts = measuring.confusion_matrix(said.nominal, a, b)
        for i, j in np.argwhere(counts).tolist():
            people, names = (said.people[a], said.people[b]), (said.names[i], said.names[j])
            yield ConfusionCell(people, names, int(counts[i, j]))


def _raters(ratings: Ratings) -> int:
    return int((ratings.codes != MISSING).any(axis=0).sum())


def _row(
    question: Question, name: str, people: tuple[str, ...], raters: int, got: Estimate
) -> AgreementRow:
    return AgreementRow(
        question.name, name, people, got.n, raters, got.value, got.low, got.high, got.reason
    )


def _key(project: Project, question: Question, category: str) -> str:
    """Return the cache key. It contains everything that the figures depend on: question, labels,
    people and known answers. Labels are those that are loaded, since items can change too: their
    category, or whether they are control items."""
    said = Label.objects.in_data_set().for_agreement(project, Stage.LABEL, category)
    checks = Label.objects.for_agreement(project, Stage.CONTROL, category)
    state = {
        "version": VERSION,
        "project": [project.pk, project.overlap, project.task_type_id],
        "filters": category,
        "question": astuple(question),
        "labels": [said.state(), checks.state()],
        "known": Resolution.objects.known().of_project(project).state(),
        "people": sorted(project.members.values_list("pk", "alias")),
    }
    # Sums are Decimal on PostgreSQL.
    text = json.dumps(state, default=str)
    return f"agreement:{hashlib.sha256(text.encode()).hexdigest()}"
