"""Filters that narrow a run's outcomes down to those behind one figure; for page and API."""

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import django_filters
from django import forms
from django.db.models import Q, TextField
from django.db.models.functions import Cast

from annotation.db.sql import ObjectKeyText
from annotation.items.taxonomy import Taxonomy
from annotation.models import Resolution
from judging.models import Outcome, Run
from judging.results import drilldown, explanation_audits, raters
from judging.runs.models import OutcomeQuerySet, RunQuerySet

COMPARISON_TITLES = {
    drilldown.ONLY_HERE: "Detected more than in run",
    drilldown.ONLY_THERE: "Detected less than in run",
    drilldown.DIFFERS_FROM: "Outcome differs from run",
    drilldown.IN_BOTH: "Also parsed in run",
    drilldown.SHARED_WITH: "Also counted in run",
    drilldown.NOT_DETECTED_IN: "Not detected in run",
}
ORDER_EFFECT_TITLES = {
    "first_twice": "First position twice",
    "second_twice": "Second position twice",
    "half_tie": "A tie in one order",
}
RESULT_TITLES = {
    "parsed": "Detected or undetected",
    "detected": "Detected",
    "undetected": "Undetected",
    "missing": "Missing",
    "pending": "Pending",
}
# Filters that people rarely set; they come from the links of figures.
FIGURE_FILTERS = (
    "moved_from", "moved_below", "gold_from", "gold_to", "slice", "second_slice", "origin",
    "order_effect", *COMPARISON_TITLES, "repeats", "audited", "dose", "expected",
    "rated", "identical",
)  # fmt: skip
ITEM_TITLES = {
    "errors": "With an error",
    "invariant": "Score-invariant",
    "own": "All but duplicates",
    "repeats": "Duplicates",
}
AUDIT_TITLES = {
    "-".join(filter(None, (verdict, quality))): f"Verdict {verdict}, {quality or 'any'} explanation"
    for verdict in ("right", "wrong")
    for quality in ("", *explanation_audits.QUALITIES, explanation_audits.UNJUDGED)
}
IDENTICAL_TITLES = {"no": "Different", "yes": "Identical"}
TRUTH_TITLES = {"error": "An error", "no_error": "No error"}
COUNTED_TITLES = {"yes": "Counted", "no": "Left out"}


class RunFilter(django_filters.FilterSet):
    """Filters of runs; archived runs are left out."""

    state = django_filters.ChoiceFilter(choices=Run.State.choices, empty_label="All")
    kind = django_filters.ChoiceFilter(choices=Run.Kind.choices, empty_label="All")
    strategy = django_filters.CharFilter(
        field_name="strategy__slug", label="Strategy", max_length=80
    )
    endpoint = django_filters.CharFilter(
        field_name="endpoint__name", label="Endpoint", max_length=80
    )
    tag = django_filters.CharFilter(label="Tag", max_length=80, method="of_tag")
    archived = django_filters.BooleanFilter(
        label="Include archived runs and pilots", method="as_they_are", widget=forms.CheckboxInput
    )

    class Meta:
        model = Run
        fields: list[str] = []

    def of_tag(self, found: RunQuerySet, name: str, value: str) -> RunQuerySet:
        return found.tagged(value)

    def as_they_are(self, found: RunQuerySet, name: str, value: bool) -> RunQuerySet:
        """Return all runs, since `filter_queryset` applies this filter itself."""
        return found

    def filter_queryset(self, queryset: RunQuerySet) -> RunQuerySet:
        """The filtered runs, without archived ones unless the box is ticked. An unticked box sends
        no parameter."""
        found: RunQuerySet = super().filter_queryset(queryset)
        return found.listed(archived=bool(self.form.cleaned_data.get("archived")))

    def offer(self, kinds: Iterable[tuple[str, str]], tags: Iterable[str]) -> forms.Form:
        """Build the form of the filter, with the strategies and endpoints of these runs as choices,
        and their tags if they have any."""
        pairs = list(kinds)
        every = {
            "strategy": sorted({strategy for strategy, _ in pairs}),
            "endpoint": sorted({endpoint for _, endpoint in pairs}),
            "tag": list(tags),
        }
        for name, values in every.items():
            held = dict.fromkeys(values)
            chosen = self.data.get(name)
            choices = [(value, value) for value in (*held, *_missing_choice(chosen, held))]
            self.form.fields[name].widget = forms.Select(choices=[("", "All"), *choices])
        if not (every["tag"] or self.data.get("tag")):
            del self.form.fields["tag"]
        return self.form


class OutcomeFilter(django_filters.FilterSet):
    """Filters by fields of outcomes, and by whether figures count them."""

    ability = django_filters.CharFilter(max_length=80)
    category = django_filters.CharFilter(max_length=80)
    source_ability = django_filters.CharFilter(label="Made from", max_length=80)
    result = django_filters.ChoiceFilter(
        choices=[*RESULT_TITLES.items()], label="Result", method="with_result", empty_label="All"
    )
    items = django_filters.ChoiceFilter(
        choices=[*ITEM_TITLES.items()], label="Items", method="of_items", empty_label="All"
    )
    detail = django_filters.CharFilter(max_length=20)
    cause = django_filters.CharFilter(max_length=20)
    counted = django_filters.ChoiceFilter(
        label="In figures",
        choices=[*COUNTED_TITLES.items()],
        method="as_counted",
        empty_label="All",
    )

    moved_from = django_filters.NumberFilter(label="Scored above gold by", method="as_moved")
    moved_below = django_filters.NumberFilter(label="and by less than", method="as_moved")
    gold_from = django_filters.NumberFilter(label="Gold scored from", method="as_gold")
    gold_to = django_filters.NumberFilter(label="to", method="as_gold")
    slice = django_filters.CharFilter(label="Slice", max_length=300, method="of_slice")
    second_slice = django_filters.CharFilter(label="and", max_length=300, method="of_slice")
    origin = django_filters.CharFilter(field_name="item__origin", label="Origin", max_length=40)
    order_effect = django_filters.ChoiceFilter(
        field_name="values__order_effect",
        label="Order effect",
        choices=[*ORDER_EFFECT_TITLES.items()],
        empty_label="All",
    )
    only_here = django_filters.NumberFilter(
        label=COMPARISON_TITLES[drilldown.ONLY_HERE], method="beside"
    )
    only_there = django_filters.NumberFilter(
        label=COMPARISON_TITLES[drilldown.ONLY_THERE], method="beside"
    )
    differs_from = django_filters.NumberFilter(
        label=COMPARISON_TITLES[drilldown.DIFFERS_FROM], method="beside"
    )
    in_both = django_filters.NumberFilter(
        label=COMPARISON_TITLES[drilldown.IN_BOTH], method="beside"
    )
    shared_with = django_filters.NumberFilter(
        label=COMPARISON_TITLES[drilldown.SHARED_WITH], method="beside"
    )
    not_detected_in = django_filters.NumberFilter(
        label=COMPARISON_TITLES[drilldown.NOT_DETECTED_IN], method="beside"
    )
    repeats = django_filters.ChoiceFilter(
        label="Repeats",
        choices=[("changing", "Changed result")],
        method="of_repeated",
        empty_label="All",
    )

    identical = django_filters.ChoiceFilter(
        label="Gold and perturbed answer",
        choices=[*IDENTICAL_TITLES.items()],
        method="of_identical",
        empty_label="All",
    )

    audited = django_filters.ChoiceFilter(
        label="In an audit", choices=[*AUDIT_TITLES.items()], method="of_audited", empty_label="All"
    )

    dose = django_filters.NumberFilter(
        label="Errors in the answer", method="of_dose", min_value=0, max_value=99_999
    )
    expected = django_filters.CharFilter(
        label="Expected penalty", method="of_expected", max_length=40
    )

    rated = django_filters.CharFilter(
        label="Row of ceiling or alt_test, as JSON", method="as_rated", max_length=2000
    )

    truth = django_filters.ChoiceFilter(
        choices=[*TRUTH_TITLES.items()], label="Final label", empty_label="All"
    )
    kind = django_filters.CharFilter(label="Error category", method="of_kind", max_length=120)

    class Meta:
        model = Outcome
        fields: list[str] = []

    def of_kind(self, found: OutcomeQuerySet, name: str, value: str) -> OutcomeQuerySet:
        """Filter by `field:value` of the item's current final label; an empty value selects items
        without one."""
        field, _, kind = value.partition(":")
        # As text, since SQLite would otherwise compare with JSON.
        said = Cast(ObjectKeyText(field, "values"), TextField())
        held = Resolution.objects.current().alias(said=said)
        if not kind:
            named = held.exclude(said=None).exclude(said__in=["", "[]"])
            return found.exclude(item__in=named.values("item"))
        # A list of choices is text here, with each choice in quotes.
        has = Q(said=kind) | Q(said__contains=f'"{kind}"')
        return found.filter(item__in=held.filter(has).values("item"))

    def with_result(self, found: OutcomeQuerySet, name: str, value: str) -> OutcomeQuerySet:
        """Outcomes with this result; "parsed" means detected or undetected."""
        return found.parsed() if value == "parsed" else found.filter(result=value)

    def of_items(self, found: OutcomeQuerySet, name: str, value: str) -> OutcomeQuerySet:
        words = {
            "errors": found.with_errors,
            "invariant": found.of_invariant,
            "own": found.originals,
            "repeats": found.of_repeats,
        }
        return words[value]()

    def as_moved(self, found: OutcomeQuerySet, name: str, value: Decimal) -> OutcomeQuerySet:
        """Filter by score change: at least the value, or less than it."""
        end = "gte" if name == "moved_from" else "lt"
        return found.with_moved().filter(**{f"moved__{end}": float(value)})

    def as_gold(self, found: OutcomeQuerySet, name: str, value: Decimal) -> OutcomeQuerySet:
        """Filter by gold score: at least the value, or at most."""
        end = "gte" if name == "gold_from" else "lte"
        return drilldown.filter_by_gold_score(found, **{end: float(value)})

    def of_slice(self, found: OutcomeQuerySet, name: str, value: str) -> OutcomeQuerySet:
        return drilldown.filter_by_slice(found, value)

    def of_dose(self, found: OutcomeQuerySet, name: str, value: Decimal) -> OutcomeQuerySet:
        """Outcomes of items with this number of errors; none if it is not a whole number."""
        dose = _whole(value)
        return found.none() if dose is None else drilldown.filter_by_dose(found, dose)

    def of_expected(self, found: OutcomeQuerySet, name: str, value: str) -> OutcomeQuerySet:
        return drilldown.filter_by_expected_effect(found, value)

    def beside(self, found: OutcomeQuerySet, name: str, value: Decimal) -> OutcomeQuerySet:
        """Compare with the run of this number; an invalid number matches no run."""
        return drilldown.filter_by_other_run(found, _whole(value) or 0, name)

    def of_repeated(self, found: OutcomeQuerySet, name: str, value: str) -> OutcomeQuerySet:
        """Outcomes with a detected and an undetected sample, whatever the value."""
        return drilldown.filter_changing(found)

    def of_identical(self, found: OutcomeQuerySet, name: str, value: str) -> OutcomeQuerySet:
        return drilldown.filter_identical(found, identical=value == "yes")

    def of_audited(self, found: OutcomeQuerySet, name: str, value: str) -> OutcomeQuerySet:
        return explanation_audits.filter_outcomes(found, *value.split("-"))

    def as_rated(self, found: OutcomeQuerySet, name: str, value: str) -> OutcomeQuerySet:
        """The outcomes behind a row of the table of raters; none if the value is not a JSON
        object."""
        try:
            row = json.loads(value)
        except (ValueError, RecursionError):  # brackets may be nested too deep
            return found.none()
        return raters.filter_outcomes(found, row) if isinstance(row, dict) else found.none()

    def as_counted(self, found: OutcomeQuerySet, name: str, value: str) -> OutcomeQuerySet:
        """Filter by whether figures count the outcome. If there are several axes, only the item's
        main axis is shown, since no figure uses the others."""
        own = found.main()
        return own.counted() if value == "yes" else own.not_counted()

    def offer(self, kinds: Iterable[Mapping[str, Any]], known: Taxonomy) -> forms.Form:
        """Build the form of the filter, with only the values that occur in the run as choices."""
        kinds = list(kinds)
        self.form["ability"].label = known.word_groups("Ability")
        for name in ("ability", "category", "source_ability", "detail", "cause"):
            held = dict.fromkeys(kind[name] for kind in kinds if kind[name])
            chosen = self.data.get(name)
            choices = [
                (value, _title(known, name, value))
                for value in (*held, *_missing_choice(chosen, held))
            ]
            self.form.fields[name].widget = forms.Select(choices=[("", "All"), *choices])
        for name in (*FIGURE_FILTERS, "truth", "kind"):
            # Rarely used, and not every run has them.
            if not self.data.get(name):
                del self.form.fields[name]
        return self.form


def _whole(value: Decimal) -> int | None:
    """Return a whole number of at most nine digits, None for any other one. Of a number such as
    1e9999999, a whole number would have as many digits."""
    is_short = -(10**9) < value < 10**9
    return int(value) if is_short and value == int(value) else None


def _missing_choice(chosen: str | None, held: Mapping[str, None]) -> list[str]:
    """Return the requested value if it is not among the choices, so that the form shows it instead
    of "All"."""
    return [chosen] if chosen and chosen not in held else []


def _title(known: Taxonomy, name: str, value: str) -> str:
    if name == "category":
        found = known.find(value)
        return found.name if found else value
    if name in {"ability", "source_ability"}:
        return known.ability_names().get(value, value)
    return value
