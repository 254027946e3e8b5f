"""The filters of the lists of items, labels and resolutions, for pages and the API."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import django_filters as filters
from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator

from annotation import tasktypes
from annotation.importing import flags
from annotation.items import search, taxonomy
from annotation.items.models import WAITS, ItemQuerySet, with_choice
from annotation.items.taxonomy import Taxonomy
from annotation.labelling.models.labels import LabelQuerySet
from annotation.models import Item, Label, Project, Resolution
from annotation.reports import agreement_items, pairwise
from annotation.tasktypes import TaskType
from annotation.tasktypes.fields import Field

UNRESOLVED = "none"
PURPOSE_CHOICES = [("tests", "Without duplicates, qualification and control items")]
# These filters together must match one label.
LABEL_FILTERS = ("annotator", "choice", "longer_than", "wrote")


def _parse_object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
        plain = json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):  # brackets can be nested too deeply
        return None
    # No stored value holds a NUL, and PostgreSQL refuses to search for one.
    return found if isinstance(found, dict) and b"\\u0000" not in plain else None


def _behind_row(
    items: ItemQuerySet, value: str, positions: Callable[[Project, dict[str, Any]], list[int]]
) -> ItemQuerySet:
    """Return the items at the positions that a report finds for its row, given as JSON."""
    row, first = _parse_object(value), items.order_by().values("project")[:1]
    project = Project.objects.filter(pk__in=first).select_related("task_type").first()
    if row is None or project is None:
        return items.none()
    return items.at_positions(positions(project, row))


_NUMBER = r"-?\d+(\.\d+)?"
# What the API says about a choice; pages list what can be chosen.
_CHOICE_HELP = (
    "A value of the deciding field. Where a label has several scores: FIELD:NUMBER, such as "
    "`correctness:3`; or all its scores in their order, such as `3/2/3`; of points, their total."
)


def _is_choice(value: str, task: TaskType, scores: Collection[Field]) -> bool:
    """True if a label can have this choice: options of the deciding field joined by "/". For a task
    with ratings: numbers or "-" joined by "/", or one of these scores, as FIELD:NUMBER."""
    if not task.rates:
        offered = [str(option.value) for option in task.deciding.options]
        return all(part in offered for part in value.split("/"))
    name, colon, score = value.partition(":")
    if colon:
        is_known = name in [field.name for field in scores]
        return is_known and bool(re.fullmatch(_NUMBER, score, re.ASCII))
    return bool(re.fullmatch(rf"(-|{_NUMBER})(/(-|{_NUMBER}))*", value, re.ASCII))


def _offer_choices(task: TaskType, scores: Sequence[Field]) -> list[tuple[str, Any]]:
    """Return the choices of a form's field. If a label's choice is made up of several scores, there
    is a group for each score, and one for the total of points."""
    if len(task.scores) < 2:
        return [(str(option.value), option.title) for option in task.deciding.options]
    groups: list[tuple[str, Any]] = [
        (
            field.title,
            [
                (f"{field.name}:{option.value}", f"{field.title}: {field.describe(option.value)}")
                for option in field.options
            ],
        )
        for field in scores
    ]
    if task.deciding.is_summed and len(scores) == len(task.scores):
        totals: set[int | float] = {0}
        for field in task.scores:
            points = [option.value for option in field.options if not isinstance(option.value, str)]
            totals = {total + more for total in totals for more in points}
        groups.append(("Total", [(str(one), f"Total: {one}") for one in sorted(totals)]))
    return groups


def _resolved_scores(task: TaskType) -> list[Field]:
    """Return the scores that become part of a final label."""
    return [field for field in task.scores if field in task.resolved]


def _list_values(choices: Iterable[tuple[str, Any]]) -> list[str]:
    """Return the values of a form field's choices, in groups or not."""
    return [
        value
        for name, title in choices
        for value in ([name] if isinstance(title, str) else [one for one, _ in title])
    ]


def _unknown_choice(value: str, offered: Iterable[str]) -> ValidationError:
    return ValidationError(
        f"Select a valid choice. {value} is not one of the available choices: {', '.join(offered)}."
    )


def _check_words(value: str) -> None:
    """Raise `ValidationError` for a search that has no word."""
    try:
        search.parse_query(value)
    except search.SearchError as error:
        raise ValidationError(str(error)) from error


class ItemFilter(filters.FilterSet):
    """Filter items by words of their texts and comments (see `annotation.items.search`), category,
    ability, resolution ("none": unresolved), flag and part of the key.

    `annotator`, `choice`, `longer_than` (seconds) and `wrote` (the name of a field of the task type
    that has an answer) must all match one current label. `fields` is
    a JSON object of names and values of the item's own fields. `answers` is a JSON object of
    answers in its final label other than the deciding one. `agreement` is a JSON object that
    selects the items behind a row: field, measure and people for a row of the agreement table;
    field, a, b, choice_a and choice_b for a row of the confusion table. `pairwise` does the same
    for a row of the tables pairwise and pairwise_pairs: counted, and system, or system_a and
    system_b.
    """

    text = filters.CharFilter(
        method="having_words",
        label="Words in texts and comments",
        max_length=500,
        help_text='All words must occur. "Exact phrase", begin*, -without.',
    )
    category = filters.CharFilter(label="Category", max_length=80)
    ability = filters.CharFilter(label="Ability", max_length=80)
    resolution = filters.CharFilter(
        method="resolved_as",
        label="Final label",
        max_length=80,
        help_text=f"`none`: without a final label. {_CHOICE_HELP}",
    )
    flag = filters.ChoiceFilter(
        choices=[*flags.FLAG_TITLES.items()], method="flagged", empty_label="Any", label="Flag"
    )
    waits = filters.ChoiceFilter(
        choices=[*WAITS.items()], method="waiting", empty_label="Any", label="Waits for"
    )
    annotator = filters.CharFilter(method="said_to_be", label="Labelled by", max_length=80)
    choice = filters.CharFilter(
        method="said_to_be", label="Labelled as", max_length=80, help_text=_CHOICE_HELP
    )
    longer_than = filters.NumberFilter(
        method="said_to_be", label="Labelling time over (seconds)", min_value=0
    )
    # A database takes digits for a position in a list, and PostgreSQL refuses too many of them.
    wrote = filters.CharFilter(
        method="said_to_be",
        label="Has text in",
        max_length=80,
        validators=[RegexValidator(r"\A[a-z]", "Fields have names that begin with a letter.")],
    )
    search = filters.CharFilter(method="search_key", label="Key contains", max_length=200)
    items = filters.ChoiceFilter(
        choices=PURPOSE_CHOICES, method="as_tests", empty_label="Any", label="Items"
    )
    fields = filters.CharFilter(method="having", label="Fields, as JSON", max_length=2000)
    answers = filters.CharFilter(method="answered", label="Final answers, as JSON", max_length=2000)
    agreement = filters.CharFilter(
        method="behind_agreement", label="Row of the agreement table, as JSON", max_length=2000
    )
    pairwise = filters.CharFilter(
        method="behind_pairwise", label="Row of a pairwise table, as JSON", max_length=2000
    )

    class Meta:
        model = Item
        fields: list[str] = []

    def __init__(self, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        for name, check in (
            ("text", _check_words),
            ("category", self._check_category),
            ("ability", self._check_ability),
            ("resolution", self._check_resolution),
            ("choice", self._check_choice),
        ):
            self.form.fields[name].validators.append(check)

    def filter_without(self, names: Collection[str]) -> ItemQuerySet:
        """Return the items that match all filters but these."""
        items: Any = self.queryset
        self.form.is_valid()  # or there is no cleaned data
        for name, value in self.form.cleaned_data.items():
            if name not in names:
                items = self.filters[name].filter(items, value)
        return items

    @cached_property
    def _task(self) -> TaskType | None:
        """The task type of the items; None without items."""
        return tasktypes.load_version(self._project.task_type) if self._project else None

    @cached_property
    def _project(self) -> Project | None:
        """The project of the items; None without items."""
        first = self.queryset.order_by().values("project")[:1]
        return Project.objects.filter(pk__in=first).select_related("task_type").first()

    def _check_category(self, value: str) -> None:
        """Raise `ValidationError` for a category that neither the project nor an item has."""
        known = taxonomy.load_taxonomy(self._project).category_names() if self._project else {}
        self._check_known(value, "category", known)

    def _check_ability(self, value: str) -> None:
        """Raise `ValidationError` for an ability that neither the project nor an item has."""
        known = taxonomy.load_taxonomy(self._project).ability_names() if self._project else {}
        self._check_known(value, "ability", known)

    def _check_known(self, value: str, name: str, known: Collection[str]) -> None:
        items: Any = self.queryset
        if self._project is None or value in known:
            return
        # A database may refuse to search for characters that cannot be printed.
        if not value.isprintable() or not items.filter(**{name: value}).exists():
            raise _unknown_choice(value, known)

    def _check_resolution(self, value: str) -> None:
        """Raise `ValidationError` for a value that no resolution in the project can have. Without
        items the project is unknown, so that every value is accepted."""
        project, task = self._project, self._task
        if value == UNRESOLVED or project is None or task is None:
            return
        held = Resolution.objects.filter(item__project=project, value=value)
        scores = _resolved_scores(task)
        # A database may refuse to search for characters that cannot be printed.
        if not _is_choice(value, task, scores) and not (value.isprintable() and held.exists()):
            raise _unknown_choice(value, [UNRESOLVED, *_list_values(_offer_choices(task, scores))])

    def _check_choice(self, value: str) -> None:
        """Raise `ValidationError` for a score that no label in the project can have."""
        task = self._task
        if task and ":" in value and not _is_choice(value, task, task.scores):
            raise _unknown_choice(value, _list_values(_offer_choices(task, task.scores)))

    def resolved_as(self, items: ItemQuerySet, name: str, value: str) -> ItemQuerySet:
        """Return the items with this final label; for `UNRESOLVED`, the items without a final
        label."""
        if value == UNRESOLVED:
            return items.unresolved()
        if self._task and self._task.deciding.is_summed and ":" not in value:
            # The total of two medians between whole points is stored as 3.0.
            return items.resolved_as_one_of([value, f"{value}.0"])
        return items.resolved_as(value)

    def having_words(self, items: ItemQuerySet, name: str, value: str) -> ItemQuerySet:
        """Return the items whose texts or comments match what was typed."""
        terms = search.parse_query(value)
        return search.find_items(items, self._project, terms) if self._project else items

    def flagged(self, items: ItemQuerySet, name: str, value: str) -> ItemQuerySet:
        return items.flagged(value)

    def waiting(self, items: ItemQuerySet, name: str, value: str) -> ItemQuerySet:
        return items.waiting_for(value)

    def said_to_be(self, items: ItemQuerySet, name: str, value: Any) -> ItemQuerySet:
        """Return the items with at least one current label that matches all label filters of the
        form."""
        asked = self.form.cleaned_data
        given = {one: asked[one] for one in LABEL_FILTERS if asked.get(one) not in ("", None)}
        if name != next(iter(given)):
            return items  # all label filters are applied together, with the first
        seconds = given.get("longer_than")
        longer_than = None if seconds is None else float(seconds)
        annotator, choice = given.get("annotator", ""), given.get("choice", "")
        return items.said_to_be(annotator, choice, longer_than, given.get("wrote", ""))

    def as_tests(self, items: ItemQuerySet, name: str, value: str) -> ItemQuerySet:
        """Leave out duplicates, qualification and control items, whatever the value is."""
        return items.originals().of_tests()

    def having(self, items: ItemQuerySet, name: str, value: str) -> ItemQuerySet:
        """Return the items with these field values; no items if the value is not a JSON object."""
        said = _parse_object(value)
        return items.none() if said is None else items.having(said)

    def answered(self, items: ItemQuerySet, name: str, value: str) -> ItemQuerySet:
        """Return the items whose final label has these answers; no items if the value is not a JSON
        object."""
        said = _parse_object(value)
        return items.none() if said is None else items.answered(said)

    def behind_agreement(self, items: ItemQuerySet, name: str, value: str) -> ItemQuerySet:
        """Return the items that a row of the agreement table counts; no items if the value is not a
        JSON object."""
        return _behind_row(items, value, agreement_items.item_positions)

    def behind_pairwise(self, items: ItemQuerySet, name: str, value: str) -> ItemQuerySet:
        """Return the items that a row of a pairwise table counts; no items if the value is not a
        JSON object."""
        return _behind_row(items, value, pairwise.item_positions)

    def search_key(self, items: ItemQuerySet, name: str, value: str) -> ItemQuerySet:
        return items.with_key_like(value)


class ItemPageFilter(ItemFilter):
    """An `ItemFilter` whose form offers the project's choices, people and categories.

    `former` has the titles of choices that are no longer offered, by their value. The form has no
    category and ability fields if the items have no category: `categories` is None.
    """

    def __init__(
        self,
        *args: Any,
        former: Mapping[str, str],
        people: list[str],
        task: TaskType,
        categories: Taxonomy | None,
        **values: Any,
    ) -> None:
        super().__init__(*args, **values)
        self._word_groups = categories.word_groups if categories else str
        # Of several scores, the deciding one alone is no choice.
        gone = [] if len(task.scores) > 1 else [*former.items()]
        gone = [(value, f"{title} (no longer offered)") for value, title in gone]
        for name, scores, first in (
            ("resolution", _resolved_scores(task), [(UNRESOLVED, "None yet")]),
            ("choice", task.scores, []),
        ):
            offered = [*first, *_offer_choices(task, scores), *gone]
            value = str(self.data.get(name) or "")
            if value not in _list_values(offered) and value and _is_choice(value, task, scores):
                offered.append((value, value))  # from a link
            self._offer(name, offered)
        self._offer("annotator", [(alias, alias) for alias in people])
        texts = [(one.name, one.title) for one in task.fields if one.kind == "text"]
        self._offer("wrote", texts)
        if categories:
            self._offer("category", [*categories.category_names().items()])
            self._offer("ability", [*categories.ability_names().items()])
        rare = ("fields", "items", "answers", "agreement", "pairwise", "longer_than")
        unused = [name for name in rare if not self.data.get(name)]
        unused += [] if categories else ["category", "ability"]
        unused += [] if texts else ["wrote"]
        for name in unused:
            del self.form.fields[name]

    def _offer(self, name: str, offered: list[tuple[str, Any]]) -> None:
        label = self._word_groups(self.form.fields[name].label or "")
        self.form.fields[name] = forms.ChoiceField(
            choices=[("", "Any"), *offered], required=False, label=label
        )


class LabelFilter(filters.FilterSet):
    """Filter labels by item, annotator and choice, by whether they are current and by whether they
    count."""

    item = filters.CharFilter(field_name="item__key", max_length=200)
    annotator = filters.CharFilter(field_name="member__alias", max_length=80)
    choice = filters.CharFilter(method="with_choice", max_length=80, help_text=_CHOICE_HELP)
    current = filters.BooleanFilter()
    counted = filters.BooleanFilter(method="counting")

    class Meta:
        model = Label
        fields: list[str] = []

    def with_choice(self, labels: LabelQuerySet, name: str, value: str) -> Any:
        return with_choice(labels, "choice", "answers", value)

    def counting(self, labels: LabelQuerySet, name: str, value: bool) -> LabelQuerySet:
        return labels.counted() if value else labels.not_counted()


class ResolutionFilter(filters.FilterSet):
    """Filter resolutions by item, value and source, and by whether they are current."""

    item = filters.CharFilter(field_name="item__key", max_length=200)
    value = filters.CharFilter(method="with_value", max_length=80, help_text=_CHOICE_HELP)
    source = filters.ChoiceFilter(choices=Resolution.Source.choices)
    current = filters.BooleanFilter()

    class Meta:
        model = Resolution
        fields: list[str] = []

    def with_value(self, resolutions: Any, name: str, value: str) -> Any:
        return with_choice(resolutions, "value", "values", value)
