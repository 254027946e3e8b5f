"""What stands in the form when an item is painted: a draft, else what the person said before."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict

from annotation.labelling import drafts
from annotation.labelling.queue import Offer
from annotation.models import Draft, Membership
from annotation.tasktypes import TaskType


@dataclass(frozen=True)
class FormEntries:
    """Answers by field, and words.

    `stale_text` is a correction of texts that are no more, unless it is what they say now.
    """

    answers: dict[str, Any] = field(default_factory=dict)
    comment: str = ""
    text: str = ""
    note: str = ""
    stale_text: str = ""
    draft: Draft | None = None


def load_entries(member: Membership, offer: Offer, task: TaskType) -> FormEntries:
    """What the member had begun on the offered item, or said of it before."""
    draft = drafts.find_draft(member, offer.item)
    if draft:
        return _from_draft(draft, offer, task)
    said = offer.previous
    return FormEntries(answers=said.answers, comment=said.comment) if said else FormEntries()


def to_form_data(answers: Mapping[str, Any]) -> dict[str, list[str]]:
    """Stored answers as a form would send them, by the names of its inputs."""
    sent: dict[str, list[str]] = {}
    for name, answer in answers.items():
        if isinstance(answer, Mapping):
            sent |= {f"{name}.{part}": [str(said)] for part, said in answer.items()}
        elif isinstance(answer, bool):
            sent[name] = ["yes" if answer else "no"]
        else:
            sent[name] = [str(one) for one in (answer if isinstance(answer, list) else [answer])]
    return sent


def _from_draft(draft: Draft, offer: Offer, task: TaskType) -> FormEntries:
    data = draft.data
    text = data.get("text", "")
    fresh = draft.revision == offer.revision.number
    is_stored = text == offer.revision.texts.get(task.correctable)
    return FormEntries(
        answers=_answers(data.get("answers", {}), offer, task),
        comment=data.get("comment", ""),
        text=text if fresh else "",
        note=data.get("note", "") if fresh else "",
        stale_text="" if fresh or is_stored else text,
        draft=draft,
    )


def _answers(sent: Mapping[str, list[str]], offer: Offer, task: TaskType) -> dict[str, Any]:
    """What a form had in its fields, as half answers."""
    post = QueryDict(mutable=True)
    for name, values in sent.items():
        post.setlist(name, values)
    asked = task.at("blind" if offer.phase == "blind" else "label")
    given = {field.name: field.from_post(post) for field in asked}
    return {name: answer for name, answer in given.items() if answer is not None}
