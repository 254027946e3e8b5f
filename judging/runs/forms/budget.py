"""The form for a project's spending cap."""

from django import forms


class CapForm(forms.Form):
    """The spending cap of a project."""

    cap = forms.DecimalField(
        label="Cap",
        max_digits=14,
        decimal_places=6,
        min_value=0,
        required=False,
        help_text="In the currency of the endpoints' prices. Leave empty for no cap.",
    )
