"""The form that requests an export."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms

# Explanations of names; a name without one is shown alone.
TABLE_HINTS = {
    "items": "items and their final labels",
    "labels": "all labels, including replaced ones",
    "revisions": "all revisions of the texts",
    "resolutions": "history of final labels",
    "marks": "who skipped or flagged an item, or saw others' labels",
    "baseline": "human baseline, compared with the final labels",
    "practice": "qualification rounds, and who passed",
    "probes": "results of each annotator on control items",
    "calls": "prompts sent to evaluators, and their replies",
    "outcomes": "outcome of each item in each run",
}
FORMAT_HINTS = {
    "fbi": "the archive of study 000",
    "hub": "a folder for the Hugging Face hub",
}


class ExportForm(forms.Form):
    table = forms.ChoiceField()
    format = forms.ChoiceField(
        help_text="csv and tsv put an apostrophe before text that a spreadsheet would run as a "
        "formula; jsonl and parquet keep every text unchanged. fbi is a zip with one table of "
        "items per category. hub is a zip of Parquet files with a data card."
    )
    snapshot = forms.ChoiceField(
        required=False,
        label="As of",
        help_text="Current items, or the items of a snapshot. A snapshot is exported whole, "
        "without filters.",
    )
    licence = forms.ChoiceField(
        required=False,
        help_text="The licence named in the data card (format hub).",
    )
    canary = forms.BooleanField(
        required=False,
        label="Mark every row as test data",
        help_text="Adds a column with a request not to train on the data and a unique string. A "
        "model that knows the string has seen the data.",
    )

    encrypt = forms.BooleanField(
        required=False,
        label="Encrypt the file",
        help_text="Creates a zip with a generated password (AES-256, opens with 7-Zip). Only you "
        "see the password here, until the file is deleted.",
    )

    def __init__(
        self,
        *args: Any,
        tables: Iterable[str],
        formats: Iterable[str],
        snapshots: Iterable[str],
        licences: Iterable[tuple[str, str]],
        **values: Any,
    ) -> None:
        """`snapshots` are names. Without the table of items among `tables`, the fields that only
        apply to items are removed."""
        super().__init__(*args, **values)
        tables = list(tables)
        offered = {
            "table": [(one, _label_with_hint(one, TABLE_HINTS)) for one in tables],
            "format": [(one, _label_with_hint(one, FORMAT_HINTS)) for one in formats],
            "snapshot": [("", "now"), *((name, name) for name in snapshots)],
            "licence": list(licences),
        }
        for name, choices in offered.items():
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = choices
        if "items" not in tables:
            del self.fields["snapshot"], self.fields["licence"]


def _label_with_hint(name: str, words: Mapping[str, str]) -> str:
    return f"{name}: {words[name]}" if name in words else name
