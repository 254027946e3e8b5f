"""What is asked for when a table is to be a file."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms

# What a name stands for, where it does not say so itself; a name that is not here stands alone.
TABLE_HINTS = {
    "items": "with their texts and what is held true",
    "labels": "all that were ever given",
    "revisions": "every state of the texts",
    "resolutions": "what was held true, one after the other",
    "marks": "who skipped or flagged an item, or saw what others said of it",
    "baseline": "people compared with what is held true",
    "practice": "rounds, and who passed",
    "probes": "how each person did on silent checks",
    "calls": "what evaluators were asked, and replied",
    "outcomes": "what runs say of each item",
}
FORMAT_HINTS = {
    "fbi": "the archive of study 000",
    "hub": "a folder for the Hugging Face hub",
}


class ExportForm(forms.Form):
    table = forms.ChoiceField()
    format = forms.ChoiceField(
        help_text="In csv and tsv, what a spreadsheet would run as a formula gets an apostrophe in "
        "front; jsonl and parquet give every text back as it was. fbi is a zip of tables of items, "
        "one a category. hub is a zip of Parquet files of items with a data card."
    )
    snapshot = forms.ChoiceField(
        required=False,
        label="As of",
        help_text="Items as they are now, or as a snapshot holds them: all of them, not narrowed.",
    )
    licence = forms.ChoiceField(
        required=False,
        help_text="What the data card of a folder for the hub says.",
    )
    canary = forms.BooleanField(
        required=False,
        label="Mark every row as test data",
        help_text="A column asks not to train models on it, and holds a string that nothing else "
        "has: a model that knows the string has seen the data.",
    )

    encrypt = forms.BooleanField(
        required=False,
        label="Encrypt the file",
        help_text="A zip under a password that we make (AES-256, opens with 7-Zip). You alone see "
        "it here, as long as the file is there.",
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
        """`snapshots` are names; who may not have the table of items is asked for nothing that is
        of items alone."""
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
