"""The filters of the lists of items, labels and resolutions, for pages and the API."""

import json
import re
from collections.abc import Callable, Collection
from functools import cached_property
from typing import Any

import django_filters as filters
from django import forms
from django.core.exceptions import ValidationError

from annotation import tasktypes
from annotation.importing import flags
from annotation.items import search, taxonomy
from annotation.items.models import WAITS, ItemQuerySet
from annotation.items.taxonomy import Taxonomy
from annotation.labelling.models.labels import LabelQuerySet
from annotation.models import Item, Label, Project, Resolution
from annotation.reports import agreement_items, pairwise
from annotation.tasktypes import TaskType

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


def _is_of(value: str, task: TaskType, offered: list[str]) -> bool:
    """True if a label can have this value: options of the deciding field joined by "/", or, for a
    task with ratings, numbers or "-" joined by "/"."""
    number = r"(-|-?\d+(\.\d+)?)"
    if task.rates:
        return bool(re.fullmatch(rf"{number}(/{number})*", value, re.ASCII))
    return all(part in offered for part in value.split("/"))


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
        help_text='All must occur. "Together", begin*, -without.',
    )
    category = filters.CharFilter(label="Category", max_length=80)
    ability = filters.CharFilter(label="Ability", max_length=80)
    resolution = filters.CharFilter(method="resolved_as", label="Resolution", max_length=40)
    flag = filters.ChoiceFilter(
        choices=[*flags.FLAG_TITLES.items()], method="flagged", empty_label="Any", label="Flag"
    )
    waits = filters.ChoiceFilter(
        choices=[*WAITS.items()], method="waiting", empty_label="Any", label="Waits for"
    )
    annotator = filters.CharFilter(method="said_to_be", label="Labelled by", max_length=80)
    choice = filters.CharFilter(method="said_to_be", label="Labelled as", max_length=40)
    longer_than = filters.NumberFilter(
        method="said_to_be", label="Labelling time over (seconds)", min_value=0
    )
    wrote = filters.CharFilter(method="said_to_be", label="Has text in", max_length=80)
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
        ):
            self.form.fields[name].validators.append(check)

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
            raise ValidationError(
                f"Select a valid choice. {value} is not one of the available choices:"
                f" {', '.join(known)}."
            )

    def _check_resolution(self, value: str) -> None:
        """Raise `ValidationError` for a value that no resolution in the project can have. Without
        items the project is unknown, so that every value is accepted."""
        project = self._project
        if value == UNRESOLVED or project is None:
            return
        task = tasktypes.load_version(project.task_type)
        offered = [str(option.value) for option in task.deciding.options]
        held = Resolution.objects.filter(item__project=project, value=value)
        # A database may refuse to search for characters that cannot be printed.
        if not _is_of(value, task, offered) and not (value.isprintable() and held.exists()):
            raise ValidationError(
                f"Select a valid choice. {value} is not one of the available choices:"
                f" {', '.join([UNRESOLVED, *offered])}."
            )

    def resolved_as(self, items: ItemQuerySet, name: str, value: str) -> ItemQuerySet:
        """Return the items with this final label; for `UNRESOLVED`, the items without a final
        label."""
        return items.unresolved() if value == UNRESOLVED else items.resolved_as(value)

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

    It has no category and ability fields if the items have no category: `categories` is None.
    """

    def __init__(
        self,
        *args: Any,
        choices: list[tuple[str, str]],
        people: list[str],
        task: TaskType,
        categories: Taxonomy | None,
        **values: Any,
    ) -> None:
        super().__init__(*args, **values)
        self._word_groups = categories.word_groups if categories else str
        self._offer("resolution", [(UNRESOLVED, "Unresolved"), *choices])
        self._offer("choice", choices)
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

    def _offer(self, name: str, offered: list[tuple[str, str]]) -> None:
        label = self._word_groups(self.form.fields[name].label or "")
        self.form.fields[name] = forms.ChoiceField(
            choices=[("", "Any"), *offered], required=False, label=label
        )


class LabelFilter(filters.FilterSet):
    """Filter labels by item, annotator and choice, by whether they are current and by whether they
    count."""

    item = filters.CharFilter(field_name="item__key", max_length=200)
    annotator = filters.CharFilter(field_name="member__alias", max_length=80)
    choice = filters.CharFilter(max_length=40)
    current = filters.BooleanFilter()
    counted = filters.BooleanFilter(method="counting")

    class Meta:
        model = Label
        fields: list[str] = []

    def counting(self, labels: LabelQuerySet, name: str, value: bool) -> LabelQuerySet:
        return labels.counted() if value else labels.not_counted()


class ResolutionFilter(filters.FilterSet):
    """Filter resolutions by item, value and source, and by whether they are current."""

    item = filters.CharFilter(field_name="item__key", max_length=200)
    value = filters.CharFilter(max_length=40)
    source = filters.ChoiceFilter(choices=Resolution.Source.choices)
    current = filters.BooleanFilter()

    class Meta:
        model = Resolution
        fields: list[str] = []
