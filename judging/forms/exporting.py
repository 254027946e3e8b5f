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
    snapshot = forms.ChoiceField(
        required=False,
        label="As of",
        help_text="Items as they are now, or as a snapshot holds them: all of them, not narrowed.",
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
        self,
        *args: Any,
        tables: Iterable[str],
        formats: Iterable[str],
        snapshots: Iterable[str],
        **values: Any,
    ) -> None:
        """`snapshots` are names; who may not have the table of items is not asked for one."""
        super().__init__(*args, **values)
        tables = list(tables)
        for name, offered in (("table", tables), ("format", formats)):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = [(one, one) for one in offered]
        if "items" not in tables:
            del self.fields["snapshot"]
            return
        asked = self.fields["snapshot"]
        assert isinstance(asked, forms.ChoiceField)
        asked.choices = [("", "now"), *((name, name) for name in snapshots)]
