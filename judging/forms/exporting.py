"""What is asked for when a table is to be a file."""

from collections.abc import Iterable
from typing import Any

from django import forms

from formats.writers import FBI


class ExportForm(forms.Form):
    table = forms.ChoiceField()
    format = forms.ChoiceField(
        help_text="In csv and tsv, what a spreadsheet would run as a formula gets an apostrophe in "
        "front; jsonl and parquet give every text back as it was. fbi is the archive of study "
        "000: a zip of tables of items, one a category."
    )
    canary = forms.BooleanField(
        required=False,
        label="Mark every row as test data",
        help_text="A column asks not to train models on it, and holds a string that nothing else "
        "has: a model that knows the string has seen the data.",
    )

    def clean_format(self) -> str:
        form: str = self.cleaned_data["format"]
        if form == FBI and self.cleaned_data.get("table") != "items":
            raise forms.ValidationError("fbi is for the table of items. Choose another format.")
        return form

    def __init__(
        self, *args: Any, tables: Iterable[str], formats: Iterable[str], **values: Any
    ) -> None:
        super().__init__(*args, **values)
        for name, offered in (("table", tables), ("format", formats)):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = [(one, one) for one in offered]
