"""Forms that validate the browser's data before a service uses them."""

from dataclasses import replace
from typing import Any

from django import forms

from annotation.accounts import keymap
from annotation.items.taxonomy import Taxonomy
from annotation.labelling.submissions import Submission
from annotation.models import Account
from annotation.tasktypes import TaskType


class SubmissionForm(forms.Form):
    """The part that all submissions share: the page's key, and the item and revision that the page
    showed."""

    key = forms.CharField(max_length=400)
    item = forms.CharField(max_length=200, strip=False)
    revision = forms.IntegerField(min_value=1)

    def submission(self) -> Submission:
        sent = self.cleaned_data
        begun_with = tuple(self.data.get("begun-with", "").split())
        return Submission(sent["key"], sent["item"], sent["revision"], begun_with=begun_with)


class LabelForm(SubmissionForm):
    """A label: an answer for each field of the task type, and an optional comment."""

    comment = forms.CharField(required=False, max_length=10_000)
    seconds = forms.FloatField(required=False, min_value=0)

    def __init__(self, data: Any, task: TaskType) -> None:
        super().__init__(data)
        every = task.fields + (task.blind.fields if task.blind else ())
        found = ((field.name, field.from_post(data)) for field in every)
        self.answers = {name: answer for name, answer in found if answer is not None}

    def submission(self) -> Submission:
        sent = self.cleaned_data
        given = {name: sent[name] for name in ("comment", "seconds")}
        return replace(super().submission(), answers=self.answers, **given)


class CorrectionForm(SubmissionForm):
    """The whole corrected text, and an optional note on the reason."""

    text = forms.CharField(strip=False, max_length=1_000_000)
    note = forms.CharField(required=False, max_length=2_000)

    def clean_text(self) -> str:
        # Browsers send every line break of a text area as CR LF.
        return str(self.cleaned_data["text"]).replace("\r\n", "\n")


class LabelSearchForm(forms.Form):
    """A search among the member's own labels."""

    key = forms.CharField(label="Item", required=False, max_length=200)
    choice = forms.ChoiceField(label="Choice", required=False)
    category = forms.ChoiceField(label="Category", required=False)

    def __init__(self, data: Any, task: TaskType, known: Taxonomy) -> None:
        super().__init__(data)
        options = [(str(option.value), option.title) for option in task.deciding.options]
        categories = list(known.category_names().items())
        choices = {"choice": options, "category": categories if task.categories else []}
        for name, values in choices.items():
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = [("", "any"), *values]

    def search(self) -> dict[str, str]:
        """The valid search terms; invalid terms are ignored."""
        self.is_valid()
        return {name: self.cleaned_data.get(name, "") for name in self.fields}


class KeysForm(forms.Form):
    """A hotkey for each action of the label screen; each key may be used once."""

    def __init__(self, data: Any, account: Account) -> None:
        super().__init__(data)
        pressed = keymap.hotkeys(account.keys)
        for action in keymap.ACTIONS:
            self.fields[action.slug] = forms.CharField(
                label=action.title,
                required=False,
                max_length=4,
                initial=pressed[action.slug],
                widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none"}),
            )

    def changes(self) -> dict[str, str]:
        """The keys that differ from the defaults; an empty field means the default."""
        return keymap.extract_changes(self.cleaned_data)

    def clean(self) -> dict[str, Any]:
        for slug, problem in keymap.find_problems(self.changes()).items():
            self.add_error(slug, problem)
        return self.cleaned_data
