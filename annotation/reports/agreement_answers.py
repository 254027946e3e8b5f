"""Answers of several annotators to the same items, prepared for the measures of agreement."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from sys import intern
from typing import Any

import numpy as np

from annotation import tasktypes
from annotation.labelling import answer_key
from annotation.models import Label, Project, Stage, TaskTypeVersion
from stats import ratings
from stats.overlap import Passage
from stats.ratings import Ratings

NOT_SURE = "not-sure"
NO_ANSWER = "none"
TOTAL = "total"
OVERLAP = "overlap"
"""The level of a question whose answers are marked passages."""
NUMBER_PATTERN = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)

_ANSWER_COLUMNS = ("item__position", "item__cluster", "member__alias", "answers")
_LABEL_COLUMNS = (*_ANSWER_COLUMNS, "current", "counted", "informed", "task_type", "revision")
_CONTROL_COLUMNS = (*_ANSWER_COLUMNS, "revision_id")


@dataclass(frozen=True)
class Question:
    """A question on which agreement is measured: a field of the task type, or the total of points.

    `options` are the possible answers, as words, with their titles.
    """

    name: str
    title: str
    level: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def has_order(self) -> bool:
        """True if answers can be ranked; the level is then ordinal or interval."""
        return self.level in ("ordinal", "interval")

    @property
    def has_passages(self) -> bool:
        """True if the answers are marked passages."""
        return self.level == OVERLAP

    def title_of(self, name: str) -> str:
        """Return the title of an answer; the answer itself if it is not an option."""
        return dict(self.options).get(name, name)


@dataclass(frozen=True, slots=True)
class PersonAnswers:
    """The answers of one annotator to one item. `version` is the id of the version of the task type
    that asked for them; None if it is not loaded."""

    position: int
    cluster: str
    person: str
    answers: Mapping[str, Any]
    known: Mapping[str, Any] | None = None
    version: int | None = None


@dataclass(frozen=True, eq=False)
class AnswerMatrix:
    """The answers to one question, items x annotators; `positions` are the items' positions.

    `nominal` treats every answer as a class of its own. `ordered` has the answers as numbers;
    answers that are not numbers are missing. It is None if answers have no order. `known` is the
    class of each item's known answer: nan if there is no known answer, and -1 if that answer is not
    among `names`. `has_numbers` is True if the distances between answers are meaningful, not only
    their order.
    """

    positions: tuple[int, ...]
    people: tuple[str, ...]
    names: tuple[str, ...]
    nominal: Ratings
    ordered: Ratings | None
    known: np.ndarray[Any, np.dtype[np.float64]]
    has_numbers: bool

    @property
    def labels(self) -> int:
        """The number of answers over all items and annotators."""
        return int((self.nominal.codes != ratings.MISSING).sum())


@dataclass(frozen=True, eq=False)
class MarkedPassages:
    """The passages that annotators marked, items x annotators; `positions` are the items'
    positions. None: the annotator was not asked."""

    positions: tuple[int, ...]
    people: tuple[str, ...]
    marked: tuple[tuple[Collection[Passage] | None, ...], ...]
    clusters: np.ndarray[Any, np.dtype[np.int_]]

    def of(self, *columns: int) -> "MarkedPassages":
        """The items that all these annotators labelled, with their passages alone."""
        kept = [
            (row, tuple(said[column] for column in columns)) for row, said in enumerate(self.marked)
        ]
        kept = [(row, said) for row, said in kept if None not in said]
        rows = [row for row, _ in kept]
        return MarkedPassages(
            tuple(self.positions[row] for row in rows),
            tuple(self.people[column] for column in columns),
            tuple(said for _, said in kept),
            self.clusters[rows],
        )


@dataclass(frozen=True)
class AnswerPair:
    """The answers of two annotators to one item. Annotators are given by alias, answers as in
    `AnswerMatrix.names`; "" means any annotator or any answer.

    Unless both annotators are named, `a` is the one that comes first by alias.
    """

    a: str = ""
    b: str = ""
    choice_a: str = ""
    choice_b: str = ""

    def is_among(self, answers: Mapping[str, str]) -> bool:
        """True if two of these answers (by annotator) match the wanted answers."""
        return any(self._fits(*two) for two in permutations(answers.items(), 2))

    def _fits(self, one: tuple[str, str], other: tuple[str, str]) -> bool:
        (a, choice_a), (b, choice_b) = one, other
        a, b = (a, b) if self.a and self.b else sorted((a, b))
        said = ((self.a, a), (self.b, b), (self.choice_a, choice_a), (self.choice_b, choice_b))
        return all(wanted in ("", given) for wanted, given in said)


def list_questions(project: Project) -> list[Question]:
    """List the questions on which agreement can be measured, the deciding question first and
    marked passages last."""
    task = tasktypes.load_task_type(project)
    asked = sorted(task.fields, key=lambda f: (f is not task.deciding, f.marks_texts))
    found = [
        Question(f.name, f.title, level, tuple((_as_word(o.value), o.title) for o in f.options))
        for f in asked
        if (level := OVERLAP if f.marks_texts else f.level)
    ]
    points = [field for field in task.fields if field.is_summed]
    if len(points) > 1 and not any(question.name == TOTAL for question in found):
        found.append(Question(TOTAL, "Total", "interval"))
    return found


def load_label_answers(
    project: Project, category: str = "", people: Sequence[str] = (), *, only: str = ""
) -> list[PersonAnswers]:
    """Load each annotator's last label of an item that was given before the annotator could see the
    others' answers.

    The label must be of the stage label and not withdrawn, and the annotator must have a current
    label of the item that counts, of the same texts. If the item's texts have been corrected since
    then, the label does not count until the annotator labels the item again. It does not matter
    whether labels were given here or imported, and in which order. Items with known answers are
    left out.
    `people` are the wanted annotators, by alias; empty means all. With `only`, the answers to the
    other questions are left out, which take most of the memory.
    """
    last: dict[tuple[int, str], tuple[PersonAnswers, int]] = {}
    in_force: dict[tuple[int, str], int] = {}
    with_total = _total_adder(project)
    found = Label.objects.in_data_set().for_agreement(project, Stage.LABEL, category)
    found = found.of_people(people) if people else found
    for row in found.values_list(*_LABEL_COLUMNS).iterator(chunk_size=2000):
        position, cluster, person, said, current, counted, informed, version, revision = row
        if current and counted:
            in_force[position, person] = revision
        if not informed:
            answers = with_total(said)
            if only:
                answers = {only: answers.get(only)}
            person, cluster = intern(person), intern(cluster)
            last[position, person] = (
                PersonAnswers(position, cluster, person, answers, version=version),
                revision,
            )
    return [said for at, (said, revision) in last.items() if in_force.get(at) == revision]


def load_control_answers(project: Project, category: str = "") -> list[PersonAnswers]:
    """Load each annotator's last label of a control item, with the answer that is now known to be
    correct, as the page of control items does."""
    deciding, with_total = tasktypes.load_task_type(project).deciding.name, _total_adder(project)
    last: dict[tuple[int, str], PersonAnswers] = {}
    found = Label.objects.current().for_agreement(project, Stage.CONTROL, category)
    rows = list(found.values_list(*_CONTROL_COLUMNS))
    truth = answer_key.latest_answers({revision for *_, revision in rows})
    for position, cluster, person, said, revision in rows:
        if right := truth.get(revision):
            values = with_total({deciding: right.value} | right.values)
            last[position, person] = PersonAnswers(
                position, cluster, person, with_total(said), values
            )
    return list(last.values())


def load_offered_options(
    question: Question, said: Sequence[PersonAnswers]
) -> list[tuple[tuple[str, str], ...]]:
    """Load the options between which these answers were chosen, as in `Question.options`: those of
    each version of the task type that asked, the latest first; once if only their words differ."""
    versions = TaskTypeVersion.objects.filter(pk__in={one.version for one in said})
    asked = [
        tasktypes.load_version(one).field(question.name)
        for one in versions.order_by("-created_at", "-pk")
    ]
    found: dict[tuple[str, ...], tuple[tuple[str, str], ...]] = {}
    for field in filter(None, asked):
        options = tuple((_as_word(option.value), option.title) for option in field.options)
        found.setdefault(tuple(value for value, _ in options), options)
    return list(found.values())


def build_matrix(question: Question, said: Sequence[PersonAnswers]) -> AnswerMatrix:
    """Return the answers to one question as a matrix; entries without an answer are missing."""
    given = [
        (one, _as_word(one.answers[question.name])) for one in said if _has_answer(one, question)
    ]
    found = {name for _, name in given}
    names = _answer_names(question, found)
    places = {at: row for row, at in enumerate(sorted({one.position for one, _ in given}))}
    people = tuple(sorted({one.person for one, _ in given}))
    columns = {person: column for column, person in enumerate(people)}
    table = np.full((len(places), len(people)), np.nan)
    known = np.full(len(places), np.nan)
    clusters = [""] * len(places)
    for one, name in given:
        row = places[one.position]
        table[row, columns[one.person]] = names.index(name)
        clusters[row] = one.cluster
        if one.known and question.name in one.known:
            right = _as_word(one.known[question.name])
            known[row] = names.index(right) if right in names else -1
    nominal = ratings.ratings_from_values(table, range(len(names)), clusters)
    ordered = _as_ratings(question, names, nominal)
    has_numbers = any(NUMBER_PATTERN.fullmatch(name) for name in names)
    return AnswerMatrix(tuple(places), people, names, nominal, ordered, known, has_numbers)


def collect_passages(question: Question, said: Sequence[PersonAnswers]) -> MarkedPassages:
    """Collect the passages that annotators marked.

    An annotator who was asked and marked nothing, or whose other answers left the question out, has
    marked no passage. An answer is missing if its version of the task type did not have the
    question.
    """
    versions = TaskTypeVersion.objects.filter(pk__in={one.version for one in said})
    asked = {one.pk: tasktypes.load_version(one).field(question.name) for one in versions}
    given = [one for one in said if (f := asked.get(one.version or 0)) and f.marks_texts]
    positions = tuple(sorted({one.position for one in given}))
    people = tuple(sorted({one.person for one in given}))
    rows = {position: row for row, position in enumerate(positions)}
    marked: list[list[Collection[Passage] | None]] = [[None] * len(people) for _ in positions]
    clusters = [""] * len(positions)
    for one in given:
        row = rows[one.position]
        marked[row][people.index(one.person)] = _as_passages(one.answers.get(question.name))
        clusters[row] = one.cluster
    numbers = np.unique(clusters, return_inverse=True)[1]
    return MarkedPassages(positions, people, tuple(map(tuple, marked)), numbers)


def find_positions(
    question: Question, said: Iterable[PersonAnswers], wanted: AnswerPair
) -> list[int]:
    """Find the positions of items where two annotators gave the wanted answers, sorted."""
    given: dict[int, dict[str, str]] = defaultdict(dict)
    for one in said:
        if _has_answer(one, question):
            given[one.position][one.person] = _as_word(one.answers[question.name])
    return sorted(position for position, answers in given.items() if wanted.is_among(answers))


def _total_adder(project: Project) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function that adds the total to answers, if the task type has points to add up."""
    task = tasktypes.load_task_type(project)
    if not any(field.is_summed for field in task.fields):
        return lambda said: said
    return lambda said: task.totals(said) | said


def _as_passages(answer: Any) -> list[Passage]:
    """Convert a stored answer to passages that match if they are of the same text and have the same
    label, if there are labels. Their severity does not matter."""
    return [
        ((one["text"], one.get("alternative"), one.get("label")), one["start"], one["end"])
        for one in (answer if isinstance(answer, list) else [])
        if isinstance(one, Mapping)
    ]


def _has_answer(said: PersonAnswers, question: Question) -> bool:
    return said.answers.get(question.name) not in (None, "")


def _answer_names(question: Question, found: set[str]) -> tuple[str, ...]:
    """Return the declared answers in their order, then other answers that occur in labels of
    earlier versions of the task type."""
    declared = [name for name, _ in question.options]
    rest = found - set(declared)
    return (*declared, *sorted(rest, key=lambda name: (np.nan_to_num(_number(name)), name)))


def _as_ratings(question: Question, names: Sequence[str], nominal: Ratings) -> Ratings | None:
    """Convert the answers to numbers: their own values, or the positions of the options of an
    ordinal choice."""
    if not question.has_order:
        return None
    values = np.array([_number(name) for name in names])
    if question.level == "ordinal" and np.isnan(values).all():
        steps = [name for name, _ in question.options if name != NOT_SURE]
        values = np.array([steps.index(n) if n in steps else np.nan for n in names], dtype=float)
    there = nominal.codes != ratings.MISSING
    table = np.full(nominal.codes.shape, np.nan)
    table[there] = values[nominal.codes[there]]
    return ratings.ratings_from_values(table, values[~np.isnan(values)], nominal.clusters)


def _number(name: str) -> float:
    return float(name) if NUMBER_PATTERN.fullmatch(name) else np.nan


def _as_word(answer: Any) -> str:
    """Write a stored answer as one word; a set of several choices is one answer."""
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    if isinstance(answer, float) and answer.is_integer():
        return str(int(answer))
    if isinstance(answer, list | tuple):
        return " + ".join(_as_word(one) for one in answer) or NO_ANSWER
    return str(answer)
