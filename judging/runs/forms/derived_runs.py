"""Forms that clone, move, repeat, combine or parse runs again."""

from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.db.models import QuerySet

from judging.models import Endpoint, StrategyVersion

ONLY_PARSER = "Current parser"


class RepeatRunForm(forms.Form):
    """Repeat a run; only a lead may allow it while its items are being labelled."""

    while_labelling = forms.BooleanField(
        label="Include items still being labelled",
        required=False,
        help_text="The audit log records that you allowed it.",
    )

    def __init__(self, data: Any = None, *, is_lead: bool) -> None:
        super().__init__(data)
        if not is_lead:
            self.fields["while_labelling"].widget = forms.HiddenInput()
            self.fields["while_labelling"].disabled = True


class CloneForm(RepeatRunForm):
    """How to clone a run."""

    as_pinned = forms.ChoiceField(
        label="Texts",
        choices=[
            ("", "The current revisions of the same items"),
            ("1", "The revisions and examples pinned by the run"),
        ],
        required=False,
    )
    cap = forms.DecimalField(
        label="Cost cap",
        min_value=0,
        max_digits=14,
        decimal_places=6,
        required=False,
        help_text="The run pauses before it would spend more. In the currency of the endpoint's "
        "prices; leave empty for no cap.",
    )
    endpoint = forms.ModelChoiceField(
        label="Endpoint",
        queryset=Endpoint.objects.none(),
        to_field_name="name",
        required=False,
        help_text="At another endpoint, all requests are sent again.",
    )
    field_order = ["endpoint", "as_pinned", "cap", "while_labelling"]

    def __init__(
        self, data: Any = None, *, is_lead: bool, same: Endpoint, others: QuerySet[Endpoint]
    ) -> None:
        super().__init__(data, is_lead=is_lead)
        _set_choices(self.fields["endpoint"], others, f"Same: {same.name}")

    def clean_as_pinned(self) -> bool:
        return bool(self.cleaned_data["as_pinned"])

    def clean_cap(self) -> Any:
        cap = self.cleaned_data["cap"]
        if cap == 0:
            raise forms.ValidationError(
                "With a cap of 0 no request can be sent. Leave the cap empty for no limit."
            )
        return cap


class MoveForm(forms.Form):
    """The endpoint that a run uses from now on."""

    endpoint = forms.ModelChoiceField(
        label="Endpoint",
        queryset=Endpoint.objects.none(),
        to_field_name="name",
        help_text="Site admins add endpoints. An endpoint that runs use cannot be changed: add a "
        "corrected one.",
    )

    def __init__(self, data: Any = None, *, others: QuerySet[Endpoint]) -> None:
        super().__init__(data)
        _set_choices(self.fields["endpoint"], others, "Choose one")


def _set_choices(field: forms.Field, endpoints: QuerySet[Endpoint], empty: str) -> None:
    assert isinstance(field, forms.ModelChoiceField)
    field.queryset, field.empty_label = endpoints, empty


class DeriveForm(forms.Form):
    """How to combine the outcomes of runs."""

    strategy = forms.ChoiceField(label="How to combine them", widget=forms.RadioSelect)

    def __init__(self, data: Any = None, *, folds: Iterable[StrategyVersion]) -> None:
        super().__init__(data)
        self.versions = {version.slug: version for version in folds}
        field = self.fields["strategy"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(slug, one.strategy().title) for slug, one in self.versions.items()]
        self.initial["strategy"] = next(iter(self.versions), "")

    def version(self) -> StrategyVersion:
        """The chosen strategy version; call it after validation."""
        return self.versions[self.cleaned_data["strategy"]]


class ReparseForm(forms.Form):
    """The parser to read replies with."""

    parser = forms.ChoiceField(label="Parser", required=False)

    def __init__(self, data: Any = None, *, parsers: Sequence[str], now: str) -> None:
        super().__init__(data, initial={"parser": now})
        field = self.fields["parser"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(name, name or ONLY_PARSER) for name in parsers]
