"""Questions that a page does not ask: because a lead has removed or changed them, or because they
belong to the other look. What was answered to them stays in the draft, and words are shown.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django.http import QueryDict

from annotation import tasktypes
from annotation.errors import FieldError, Stale
from annotation.items.diffing.difference import FORMER_ALGORITHM
from annotation.labelling import submissions
from annotation.labelling.submissions import SubmissionToken
from annotation.models import Draft, Membership, Project
from annotation.tasktypes import TaskType, versions
from annotation.tasktypes.fields import Field


def find_words(sent: Mapping[str, list[str]], project: Project, task: TaskType) -> str:
    """What was written for questions that only earlier versions of the task type ask, each below
    its title."""
    left = {name: values for name, values in sent.items() if not _is_asked(task, name, values)}
    if not left:
        return ""
    former = [tasktypes.load_version(one) for one in versions.project_versions(project)]
    asked = {
        name: next((f for one in former if (f := one.field(name)) and f.is_written), None)
        for name in left
    }
    return "\n\n".join(
        f"{field.title}\n{text}"
        for name, field in asked.items()
        if field
        for text in left[name]
        if text
    )


def _is_asked(task: TaskType, name: str, values: list[str]) -> bool:
    """True if the task has a field with the input of this name, which takes such values: a question
    that was not answered yet may have got another kind."""
    field = _field_of(task, name)
    if field is None or field.is_written:
        return field is not None
    post = QueryDict(mutable=True)
    for value in values:  # one of several options may have been removed
        post[name] = value
        given = field.from_post(post)
        if field.marks_texts or field.per_change:  # in JSON, and perhaps not complete
            return not isinstance(given, str)
        with suppress(FieldError):
            field.clean(given)
            return True
    return False


def _field_of(task: TaskType, name: str) -> Field | None:
    """The field with the input of this name; None if the task has no such field."""
    return task.field(name.partition(".")[0])


def keep_answers(
    begun: dict[str, Any], before: Draft, member: Membership, token: SubmissionToken
) -> dict[str, Any]:
    """The draft with what the one before has for questions that the page with this token does not
    ask: those of another version of the task type or, at a first look, of the second look, where
    texts are corrected, too."""
    task, data = submissions.load_asked_task(member, token), before.data
    of_second = {field.name for field in task.fields} if token.blind else frozenset()
    is_of_texts = before.revision == token.revision
    is_of_diff = is_of_texts and data.get(submissions.DIFF, FORMER_ALGORITHM) == token.diff

    def stays(name: str, values: list[str]) -> bool:
        field = _field_of(task, name)
        if not is_of_diff and numbers_changes(task, name):
            return False
        if field is None or field.name not in of_second:
            return not _is_asked(task, name, values)
        return True

    left = {name: said for name, said in data.get("answers", {}).items() if stays(name, said)}
    kept = {"answers": left | begun.get("answers", {})} if left else {}
    if token.blind and is_of_texts:
        kept |= {name: data[name] for name in ("text", "note") if name in data}
    return begun | kept


def numbers_changes(task: TaskType, name: str) -> bool:
    """True if the input of this name is about a single change of the texts, or may have been before
    its question was removed."""
    field = _field_of(task, name)
    return field.per_change if field else "." in name


def removed_words(member: Membership, sent: QueryDict) -> str:
    """What is written in fields of a form that the task type no longer has."""
    written = [field for field in _removed_fields(member, sent) if field.is_written]
    return "\n\n".join(text for field in written for text in sent.getlist(field.name) if text)


def check_questions(member: Membership, sent: QueryDict) -> None:
    """Raise `Stale` for a form that answers questions which the task type no longer has: nothing
    that is stored would keep these answers."""
    if any(field.from_post(sent) is not None for field in _removed_fields(member, sent)):
        raise Stale(
            "A lead has changed the questions since this page was loaded. Answer those of today."
        )


def _removed_fields(member: Membership, sent: QueryDict) -> list[Field]:
    """The fields of the task type as the page of this form asked it that are asked no more."""
    task = submissions.find_asked_task(member, sent.get("key", ""))
    today = tasktypes.load_task_type(member.project)
    return [field for field in task.fields if today.field(field.name) is None]
