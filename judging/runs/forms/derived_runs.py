"""What makes runs of runs, checked before a service sees it."""

from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.db.models import QuerySet

from judging.models import Endpoint, StrategyVersion

ONLY_PARSER = "The one there is, as it is now"


class RepeatRunForm(forms.Form):
    """Something is asked again; only a lead may allow it while people label the items."""

    while_labelling = forms.BooleanField(
        label="Also items that people are still labelling",
        required=False,
        help_text="That you allowed it is put on record.",
    )

    def __init__(self, data: Any = None, *, is_lead: bool) -> None:
        super().__init__(data)
        if not is_lead:
            self.fields["while_labelling"].widget = forms.HiddenInput()
            self.fields["while_labelling"].disabled = True


class CloneForm(RepeatRunForm):
    """How far a clone is the same."""

    as_pinned = forms.ChoiceField(
        label="Over which texts",
        choices=[
            ("", "The same items as they are now, with their corrections"),
            ("1", "The very revisions and examples that the run pinned"),
        ],
        required=False,
    )
    cap = forms.DecimalField(
        label="Stop before this much is spent",
        min_value=0,
        max_digits=14,
        decimal_places=6,
        required=False,
        help_text="In the currency of the endpoint's prices. Empty: no limit.",
    )
    endpoint = forms.ModelChoiceField(
        label="At which endpoint",
        queryset=Endpoint.objects.none(),
        to_field_name="name",
        required=False,
        help_text="At another one everything is asked there.",
    )
    field_order = ["endpoint", "as_pinned", "cap", "while_labelling"]

    def __init__(
        self, data: Any = None, *, is_lead: bool, same: Endpoint, others: QuerySet[Endpoint]
    ) -> None:
        super().__init__(data, is_lead=is_lead)
        _set_choices(self.fields["endpoint"], others, f"The same: {same.name}")

    def clean_as_pinned(self) -> bool:
        return bool(self.cleaned_data["as_pinned"])

    def clean_cap(self) -> Any:
        cap = self.cleaned_data["cap"]
        if cap == 0:
            raise forms.ValidationError("Nothing can be asked for 0; leave it empty for no limit.")
        return cap


class MoveForm(forms.Form):
    """Where a run is asked from now on."""

    endpoint = forms.ModelChoiceField(
        label="Endpoint",
        queryset=Endpoint.objects.none(),
        to_field_name="name",
        help_text="Site admins set endpoints up. A corrected one is a new one while runs rest on"
        " this one.",
    )

    def __init__(self, data: Any = None, *, others: QuerySet[Endpoint]) -> None:
        super().__init__(data)
        _set_choices(self.fields["endpoint"], others, "Choose one")


def _set_choices(field: forms.Field, endpoints: QuerySet[Endpoint], empty: str) -> None:
    assert isinstance(field, forms.ModelChoiceField)
    field.queryset, field.empty_label = endpoints, empty


class DeriveForm(forms.Form):
    """How the outcomes of runs become one."""

    strategy = forms.ChoiceField(label="How they are made one", widget=forms.RadioSelect)

    def __init__(self, data: Any = None, *, folds: Iterable[StrategyVersion]) -> None:
        super().__init__(data)
        self.versions = {version.slug: version for version in folds}
        field = self.fields["strategy"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(slug, one.strategy().title) for slug, one in self.versions.items()]
        self.initial["strategy"] = next(iter(self.versions), "")

    def version(self) -> StrategyVersion:
        """What was chosen, after the form was checked."""
        return self.versions[self.cleaned_data["strategy"]]


class ReparseForm(forms.Form):
    """By which parser replies are read."""

    parser = forms.ChoiceField(label="Parser", required=False)

    def __init__(self, data: Any = None, *, parsers: Sequence[str], now: str) -> None:
        super().__init__(data, initial={"parser": now})
        field = self.fields["parser"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(name, name or ONLY_PARSER) for name in parsers]
