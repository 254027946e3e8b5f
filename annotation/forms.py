"""What the browser's forms send, checked before a service sees it."""

from typing import Any

from django import forms

from annotation.tasktypes import TaskType


class ShownForm(forms.Form):
    """What every submission carries: the item and the revision on the page, and its own key."""

    key = forms.CharField(max_length=400)
    item = forms.CharField(max_length=200, strip=False)
    revision = forms.IntegerField(min_value=1)

    def shown(self) -> dict[str, Any]:
        """The arguments by which the queue knows what the page showed."""
        return {
            "key": self.cleaned_data["key"],
            "item_key": self.cleaned_data["item"],
            "revision": self.cleaned_data["revision"],
        }


class LabelForm(ShownForm):
    """A label: one answer for each field of the task type, with a comment if there is one."""

    comment = forms.CharField(required=False, max_length=10_000)
    seconds = forms.FloatField(required=False, min_value=0)

    def __init__(self, data: Any, task: TaskType) -> None:
        super().__init__(data)
        every = task.fields + (task.blind.fields if task.blind else ())
        found = ((field.name, field.from_post(data)) for field in every)
        self.answers = {name: answer for name, answer in found if answer is not None}

    def said(self) -> dict[str, Any]:
        """The arguments by which the queue knows what the person said."""
        return {
            "answers": self.answers,
            "comment": self.cleaned_data["comment"],
            "seconds": self.cleaned_data["seconds"],
        }


class CorrectionForm(ShownForm):
    """The whole corrected text, with a note on why if there is one."""

    text = forms.CharField(strip=False, max_length=1_000_000)
    note = forms.CharField(required=False, max_length=2_000)

    def clean_text(self) -> str:
        # A browser sends every line break of a text area as CR LF, whatever was in it.
        return str(self.cleaned_data["text"]).replace("\r\n", "\n")
