"""The form to choose which column of a file is used for which item column."""

from typing import Any

from django import forms

from annotation.importing.column_mapping import item_columns
from annotation.importing.item_rows import required_columns
from annotation.tasktypes import TaskType

# Titles of the item columns besides the texts.
COLUMN_TITLES = {
    "key": "Key (a unique name per item)",
    "category": "Category",
    "source_ability": "Ability of the unchanged answer",
    "origin": "Origin",
    "cluster": "Source question (items from the same question are not independent)",
    "repeats": "Duplicate of (key)",
    "purpose": "Purpose (test, practice or probe)",
    "ability": "Ability",
}


INDEPENDENCE_HELP = (
    "Items from the same question, text or picture are not independent. Without a column, each "
    "item counts as its own question; if the first items of the project were grouped by prompt, "
    "later ones are too."
)


class ColumnsForm(forms.Form):
    """Form to choose the file's column for each item column; an empty choice means none."""

    # An item column may have the same name as another field of the form.
    prefix = "columns"
    accept = forms.BooleanField(
        required=False,
        label="Import final labels",
        help_text=(
            "For published data: the final label comes from the category, or from columns named "
            "like the fields of the task. These items are not handed out."
        ),
    )

    def __init__(self, data: Any, task: TaskType, found: list[str]) -> None:
        super().__init__(data)
        self._needed = required_columns(task)
        self.names = dict(self.titles(task)) if found else {}
        choices = [("", "not in the file"), *((name, name) for name in found)]
        for name, title in self.names.items():
            self.fields[f"of-{name}"] = forms.ChoiceField(
                label=title,
                required=name in self._needed,
                choices=choices,
                error_messages={"required": "Every item needs this. Choose a column."},
            )
        if task.rates and "of-cluster" in self.fields:
            self.fields["of-cluster"].help_text = INDEPENDENCE_HELP

    @classmethod
    def from_columns(
        cls, task: TaskType, found: list[str], chosen: dict[str, str]
    ) -> "ColumnsForm":
        """The form with the current choices, unbound: errors appear only after submission."""
        form = cls(None, task, found)
        form.initial = {f"of-{name}": column for name, column in chosen.items()}
        return form

    @staticmethod
    def titles(task: TaskType) -> list[tuple[str, str]]:
        """The item columns with their titles."""
        texts = {text.name: text.title for text in task.texts}
        return [(name, texts.get(name) or COLUMN_TITLES[name]) for name in item_columns(task)]

    def chosen(self) -> dict[str, str]:
        """For each item column, the chosen column of the file, "" for none."""
        return {name: self.cleaned_data[f"of-{name}"] for name in self.names}

    @property
    def needed(self) -> list[Any]:
        return [self[f"of-{name}"] for name in self.names if name in self._needed]

    @property
    def others(self) -> list[Any]:
        return [self[f"of-{name}"] for name in self.names if name not in self._needed]
