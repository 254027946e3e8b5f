"""What narrows the outcomes of a run down to those behind one figure; for page and API alike."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import django_filters
from django import forms

from annotation import taxonomy
from judging.models import Outcome, Run
from judging.querysets import OutcomeQuerySet, RunQuerySet

RESULTS = {
    "parsed": "Detected or undetected",
    "detected": "Detected",
    "undetected": "Undetected",
    "missing": "Missing",
    "pending": "Pending",
}
MOVED = ("moved_from", "moved_below")
ITEMS = {
    "errors": "With an error",
    "invariant": "Score-invariant",
    "repeats": "Repeats of others",
}
COUNTED = {"yes": "Counted", "no": "Left out"}


class RunFilter(django_filters.FilterSet):
    """Runs by what they are, leaving out those that were put away."""

    state = django_filters.ChoiceFilter(choices=Run.State.choices, empty_label="All")
    kind = django_filters.ChoiceFilter(choices=Run.Kind.choices, empty_label="All")
    strategy = django_filters.CharFilter(
        field_name="strategy__slug", label="Strategy", max_length=80
    )
    endpoint = django_filters.CharFilter(
        field_name="endpoint__name", label="Endpoint", max_length=80
    )
    archived = django_filters.BooleanFilter(
        label="Archived ones and pilots too", method="as_they_are", widget=forms.CheckboxInput
    )

    class Meta:
        model = Run
        fields: list[str] = []

    def as_they_are(self, found: RunQuerySet, name: str, value: bool) -> RunQuerySet:
        return found

    def filter_queryset(self, queryset: RunQuerySet) -> RunQuerySet:
        """Narrowed down; a box that is not ticked sends nothing, and then archived ones are out."""
        found: RunQuerySet = super().filter_queryset(queryset)
        return found.shown(archived=bool(self.form.cleaned_data.get("archived")))

    def offer(self, kinds: Iterable[tuple[str, str]]) -> forms.Form:
        """The form of the filter, which offers the strategies and endpoints of these runs."""
        pairs = list(kinds)
        for place, name in enumerate(("strategy", "endpoint")):
            held = dict.fromkeys(sorted({pair[place] for pair in pairs}))
            chosen = self.data.get(name)
            choices = [(value, value) for value in (*held, *_unheld(chosen, held))]
            self.form.fields[name].widget = forms.Select(choices=[("", "All"), *choices])
        return self.form


class OutcomeFilter(django_filters.FilterSet):
    """Fields of outcomes, and whether figures count them."""

    ability = django_filters.CharFilter(max_length=80)
    category = django_filters.CharFilter(max_length=80)
    source_ability = django_filters.CharFilter(label="Made from", max_length=80)
    result = django_filters.ChoiceFilter(
        choices=[*RESULTS.items()], label="Result", method="with_result", empty_label="All"
    )
    items = django_filters.ChoiceFilter(
        choices=[*ITEMS.items()], label="Items", method="of_items", empty_label="All"
    )
    detail = django_filters.CharFilter(max_length=20)
    cause = django_filters.CharFilter(max_length=20)
    counted = django_filters.ChoiceFilter(
        label="In figures",
        choices=[*COUNTED.items()],
        method="as_counted",
        empty_label="All",
    )

    moved_from = django_filters.NumberFilter(label="Scored above gold by", method="as_moved")
    moved_below = django_filters.NumberFilter(label="and by less than", method="as_moved")

    class Meta:
        model = Outcome
        fields: list[str] = []

    def with_result(self, found: OutcomeQuerySet, name: str, value: str) -> OutcomeQuerySet:
        return found.parsed() if value == "parsed" else found.filter(result=value)

    def of_items(self, found: OutcomeQuerySet, name: str, value: str) -> OutcomeQuerySet:
        words = {
            "errors": found.with_errors,
            "invariant": found.of_invariant,
            "repeats": found.of_repeats,
        }
        return words[value]()

    def as_moved(self, found: OutcomeQuerySet, name: str, value: Decimal) -> OutcomeQuerySet:
        """At least so far, or less far than that."""
        end = "gte" if name == "moved_from" else "lt"
        return found.with_moved().filter(**{f"moved__{end}": float(value)})

    def as_counted(self, found: OutcomeQuerySet, name: str, value: str) -> OutcomeQuerySet:
        return found.counted() if value == "yes" else found.not_counted()

    def offer(self, kinds: Iterable[Mapping[str, Any]]) -> forms.Form:
        """The form of the filter, which offers what the run holds and nothing else."""
        kinds = list(kinds)
        for name in ("ability", "category", "source_ability", "detail", "cause"):
            held = dict.fromkeys(kind[name] for kind in kinds if kind[name])
            chosen = self.data.get(name)
            choices = [(value, _title(name, value)) for value in (*held, *_unheld(chosen, held))]
            self.form.fields[name].widget = forms.Select(choices=[("", "All"), *choices])
        for name in MOVED:
            # Few ask for it, and only scores of both answers have it.
            if not self.data.get(name):
                del self.form.fields[name]
        return self.form


def _unheld(chosen: str | None, held: Mapping[str, None]) -> list[str]:
    """What was asked for and is not there: shown as chosen, or the form would say "All"."""
    return [chosen] if chosen and chosen not in held else []


def _title(name: str, value: str) -> str:
    known = taxonomy.load()
    if name == "category":
        found = known.find(value)
        return found.name if found else value
    if name in {"ability", "source_ability"}:
        return next((one.name for one in known.abilities if one.slug == value), value)
    return value
