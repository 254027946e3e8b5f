"""What people enter about strategies: the name of a copy, and all that stands on the desk."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from django import forms
from django.http import QueryDict

from judging.strategies.editing import MAX_NOTE_LENGTH, MAX_SLUG_LENGTH

SAID_PREFIX = "said-"
LONGEST_TITLE = 120


class CopyForm(forms.Form):
    """A copy: the name by which the project asks for it, a title, why it is made."""

    slug = forms.CharField(
        label="Name",
        max_length=MAX_SLUG_LENGTH,
        help_text="Small letters, digits and hyphens. It cannot be changed later; runs are listed "
        "under it.",
        widget=forms.TextInput({"autocomplete": "off", "autocapitalize": "none"}),
    )
    title = forms.CharField(label="Title", max_length=LONGEST_TITLE)
    note = forms.CharField(
        label="Note",
        max_length=MAX_NOTE_LENGTH,
        required=False,
        help_text="What the copy is for. Shown with its first version.",
    )


@dataclass(frozen=True)
class EditorInput:
    """What somebody wrote and chose where a strategy is written and tried; nothing of it is lost
    when something else is wrong.

    `source` is None where the stored text is meant. `shown` is the number of the version that the
    text was made from, 0 if the page did not say. `said` stands for earlier replies, by name.
    """

    source: str | None = None
    shown: int = 0
    note: str = ""
    item: str = ""
    call: str = ""
    endpoint: str = ""
    reply: str = ""
    finish: str = "stop"
    said: Mapping[str, str] = field(default_factory=dict)


def parse_editor_input(data: QueryDict) -> EditorInput:
    """What a page sent; whatever it is, it is kept as text."""
    sent = {
        name: str(value).replace("\0", "\N{REPLACEMENT CHARACTER}") for name, value in data.items()
    }
    shown = sent.get("shown", "")
    return EditorInput(
        source=sent.get("source"),
        shown=int(shown) if shown.isascii() and shown.isdecimal() and len(shown) < 10 else 0,
        note=sent.get("note", ""),
        item=sent.get("item", "").strip(),
        call=sent.get("call", ""),
        endpoint=sent.get("endpoint", ""),
        reply=sent.get("reply", ""),
        finish=sent.get("finish", "") or "stop",
        said={
            name.removeprefix(SAID_PREFIX): text
            for name, text in sent.items()
            if name.startswith(SAID_PREFIX)
        },
    )
