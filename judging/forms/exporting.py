"""What is asked for when a table is to be a file."""

from collections.abc import Iterable
from typing import Any

from django import forms


class ExportForm(forms.Form):
    table = forms.ChoiceField()
    format = forms.ChoiceField(
        help_text="In csv and tsv, what a spreadsheet would run as a formula gets an apostrophe in "
        "front; jsonl gives every text back as it was."
    )
    canary = forms.BooleanField(
        required=False,
        label="Mark every row as test data",
        help_text="A column asks not to train models on it, and holds a string that nothing else "
        "has: a model that knows the string has seen the data.",
    )

    def __init__(
        self, *args: Any, tables: Iterable[str], formats: Iterable[str], **values: Any
    ) -> None:
        super().__init__(*args, **values)
        for name, offered in (("table", tables), ("format", formats)):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = [(one, one) for one in offered]
