"""Drafts: unsent answers and texts, kept until the label is stored.

A form starts with the member's draft; without a draft, with the member's previous label.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db.models import Sum, TextField
from django.db.models.functions import Cast, Length
from django.http import QueryDict
from django.utils import timezone

from annotation import tasktypes
from annotation.db import transactions
from annotation.errors import Refused
from annotation.items.diffing import stored
from annotation.items.diffing.difference import FORMER_ALGORITHM
from annotation.labelling import blind_names, other_questions, slots, submissions
from annotation.labelling.models.notes import DraftQuerySet
from annotation.labelling.queue import Offer, claims
from annotation.labelling.submissions import Submission, SubmissionToken
from annotation.models import Draft, Item, Label, Membership
from annotation.tasktypes import TaskType
from annotation.tasktypes.field_schema import RESERVED


@dataclass(frozen=True)
class FormEntries:
    """The entries of a form: answers by field, and texts.

    `stale_text` is a correction of an older revision, unless the current text is already the same.
    `unasked` has what was written for questions that the task type asks no more.
    """

    answers: dict[str, Any] = field(default_factory=dict)
    comment: str = ""
    text: str = ""
    note: str = ""
    stale_text: str = ""
    unasked: str = ""
    draft: Draft | None = None


def load_entries(member: Membership, offer: Offer, task: TaskType) -> FormEntries:
    """Load the member's draft on the offered item, or else the previous label, beside which the
    draft may be a correction; empty if there is neither."""
    draft = find_draft(member, offer.item)
    begun = _from_draft(draft, offer, task) if draft else FormEntries()
    said = offer.previous
    if said is None or (draft and _has_answers(draft)):
        return begun
    same = said.revision_id == offer.revision.pk
    answers = said.answers if same else task.without_changes(said.answers)
    return replace(begun, answers=answers, comment=said.comment)


def _has_answers(draft: Draft) -> bool:
    """True if the draft is more than a correction."""
    return bool(draft.data.keys() & {"answers", "comment"})


def to_form_data(answers: Mapping[str, Any]) -> dict[str, list[str]]:
    """Convert stored answers to form data, by the names of the inputs."""
    sent: dict[str, list[str]] = {}
    for name, answer in answers.items():
        if isinstance(answer, Mapping):
            sent |= {f"{name}.{part}": [str(said)] for part, said in answer.items()}
        elif isinstance(answer, bool):
            sent[name] = ["yes" if answer else "no"]
        elif isinstance(answer, list) and any(isinstance(one, Mapping) for one in answer):
            sent[name] = [json.dumps(answer, ensure_ascii=False)]
        else:
            sent[name] = [str(one) for one in (answer if isinstance(answer, list) else [answer])]
    return sent


def _from_draft(draft: Draft, offer: Offer, task: TaskType) -> FormEntries:
    data = draft.data
    text = data.get("text", "")
    fresh = draft.revision == offer.revision.number
    current = offer.revision.texts.get(task.correctable)
    stale = [data.get(FORMER, ""), "" if fresh else text]
    answers = _answers(data.get("answers", {}), offer, task)
    if task.names_changes(answers):
        diff = data.get(submissions.DIFF, FORMER_ALGORITHM)
        same_diff = fresh and diff == stored.shown_algorithm(offer.revision)
        if not same_diff:  # the numbers of their changes belong to another one
            answers = task.without_changes(answers)
    return FormEntries(
        answers=answers,
        comment=data.get("comment", ""),
        text=text if fresh else "",
        note=data.get("note", "") if fresh else "",
        stale_text="\n\n".join(one for one in stale if one and one != current),
        unasked=other_questions.find_words(data.get("answers", {}), offer.item.project, task),
        draft=draft,
    )


def _answers(sent: Mapping[str, list[str]], offer: Offer, task: TaskType) -> dict[str, Any]:
    """Convert the draft's form data to answers, which may be incomplete."""
    post = QueryDict(mutable=True)
    for name, values in sent.items():
        post.setlist(name, values)
    asked = task.fields_at("blind" if offer.phase == "blind" else "label")
    given = {field.name: field.from_post(post) for field in asked}
    return {name: answer for name, answer in given.items() if answer is not None}


# The maximum length of a text, plus room for the answers.
MAX_LENGTH = 1_200_000
MAX_DRAFTS = 500
# All drafts of a member together may have so many characters. Drafts up to their share of it need
# not be added up.
MAX_TOTAL_LENGTH = 20_000_000
TEXT_NAMES = ("comment", "text", "note")
# In a draft, the correction of an earlier revision, which is no correction of the present one.
FORMER = "former"


class Outdated(Refused):
    """Another page has changed the draft: its version now, and the words in it."""

    def __init__(self, draft: Draft, words: list[str]) -> None:
        super().__init__("You went on with this draft on another page.")
        self.version, self.words = draft.version, words


def save_draft(
    member: Membership,
    shown: Submission,
    data: Mapping[str, Any],
    version: str | None = None,
    is_left: bool = False,
    *,
    now: datetime | None = None,
) -> Draft | None:
    """Store the member's draft on a shown item; return None if the draft is empty or its label is
    already stored. Of a draft whose label is stored, a correction that was not saved is kept. What
    an earlier draft has for questions that the page does not ask stays in it, and so does its
    correction of an earlier revision.

    `version` is that of the draft that the page began with, "" for none, and None if unknown.
    `is_left` is True if nobody looks at the item now.

    Raises `Refused` for an item that the page did not show, and if the draft is too long or the
    member has too many; `Outdated` if there is a draft with other words by now, or with other
    answers than one that was left.
    """
    begun = _tidy(data)
    item, token = _shown_item(member, shown)
    origin = {submissions.DIFF: token.diff, submissions.PAGE: submissions.digest_token(shown.key)}
    with transactions.transact():
        # Drafts and labels that come at the same moment wait for each other.
        claims.lock_member(member)
        if Label.objects.filter(submission=origin[submissions.PAGE]).exists():
            begun = {name: begun[name] for name in ("text", "note") if name in begun}
            if "text" not in begun:
                return None
        before = find_draft(member, item)
        if before:
            begun = other_questions.keep_answers(begun, before, member, token)
            begun |= _former_correction(before, token)
        if version is not None and before and before.version != version:
            task = tasktypes.load_task_type(member.project)
            words = _words_of(task, before.data)
            is_later = is_left and before.data | origin != begun | origin
            if is_later or (words and words != _words_of(task, begun)):
                raise Outdated(before, words)
        if not begun:
            delete_draft(member, item)
            return None
        _check_room(member, item, len(json.dumps(begun)))
        draft, _ = Draft.objects.update_or_create(
            member=member,
            item=item,
            defaults={
                "revision": shown.revision,
                "data": begun | origin,
                "updated_at": now or timezone.now(),
            },
        )
    return draft


def _former_correction(before: Draft, token: SubmissionToken) -> dict[str, str]:
    """What the draft before corrects in a revision that is older than that of the page."""
    data, former = before.data, before.data.get(FORMER, "")
    if before.revision < token.revision:
        words = "\n\n".join(data[name] for name in ("text", "note") if data.get(name))
        if "text" in data and words not in former:
            former = f"{former}\n\n{words}".strip("\n")
    return {FORMER: former} if former else {}


def save_refused_form(member: Membership, sent: QueryDict) -> bool:
    """Store the content of a refused form in the draft, keeping the draft's other entries; return
    True if it was stored. A draft with words from another page since is left as it is."""
    data = _form_data(sent)
    number = sent.get("revision", "")
    revision = int(number[:9]) if number.isdecimal() else 0
    begun_with = tuple(sent.get("begun-with", "").split())
    shown = Submission(sent.get("key", ""), sent.get("item", ""), revision, begun_with=begun_with)
    before = Draft.objects.of_member(member.pk).filter(item__key=_storable(shown.item_key)).first()
    task = tasktypes.load_task_type(member.project)
    if before and not shown.knows(before) and _words_of(task, before.data):
        return False
    filled = {name: value for name, value in data.items() if value}
    left = before.data if before else {}
    if before and before.revision != revision:  # this is of other texts
        left = {
            name: said for name, said in left.items() if name not in ("text", "note", "answers")
        }
        answers = before.data.get("answers", {})
        left["answers"] = {
            name: values
            for name, values in answers.items()
            if not other_questions.numbers_changes(task, name)
        }
    try:
        kept = save_draft(member, shown, {**left, **filled})
    except Refused:
        return False
    return kept is not None


def form_words(member: Membership, sent: QueryDict) -> str:
    """What is written in the fields of a form, with blank lines between."""
    task = submissions.find_asked_task(member, sent.get("key", ""))
    return "\n\n".join(_words_of(task, _form_data(sent)))


def _form_data(sent: QueryDict) -> dict[str, Any]:
    answers = {name: sent.getlist(name) for name in sent if name not in RESERVED}
    return {"answers": answers} | {name: sent.get(name, "") for name in TEXT_NAMES}


def move_to_revision(member: Membership, item: Item, revision: int, sent: Submission) -> None:
    """Move the draft to the new revision, without the correction that is stored now. A draft that
    was written on another page meanwhile stays as it is."""
    draft = find_draft(member, item)
    if draft is None or not sent.knows(draft):
        return
    left = {name: said for name, said in draft.data.items() if name not in ("text", "note")}
    if not left.keys() - {submissions.DIFF, submissions.PAGE}:
        delete_draft(member, item)
        return
    draft.data, draft.revision = left, revision
    draft.save(update_fields=["data", "revision"])


def restore_from_label(member: Membership, label: Label, answers: Mapping[str, list[str]]) -> None:
    """Make a draft from a withdrawn label; an existing draft is kept, and gets what the label says
    if it is only a correction of the same texts."""
    begun = _tidy({"answers": answers, "comment": label.comment})
    if not begun:
        return
    begun[submissions.DIFF] = stored.shown_algorithm(label.revision)
    draft, _ = Draft.objects.get_or_create(
        member=member,
        item=label.item,
        defaults={"revision": label.revision.number, "data": begun},
    )
    if draft.revision == label.revision.number and not _has_answers(draft):
        draft.data |= begun
        draft.updated_at = timezone.now()  # the version, for a page that has the former one
        draft.save(update_fields=["data", "updated_at"])


def list_drafts(member: Membership) -> DraftQuerySet:
    """The member's drafts with their items, newest first."""
    return Draft.objects.of_member(member.pk).select_related("item").defer("item__fields")


def find_draft(member: Membership, item: Item) -> Draft | None:
    """The member's draft on this item; None if there is none."""
    return Draft.objects.of_member(member.pk).filter(item=item).first()


def delete_draft(member: Membership, item: Item) -> None:
    """Delete the draft, if there is one."""
    Draft.objects.of_member(member.pk).filter(item=item).delete()


def _tidy(data: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the draft's answers to lists of strings by field; return them and the texts, without
    empty entries.

    Raises `Refused` if the draft is too long or not a mapping.
    """
    if not isinstance(data, Mapping) or len(json.dumps(data)) > MAX_LENGTH:
        raise Refused("This draft is too long to be saved. Shorten it, or send it.")
    begun: dict[str, Any] = {
        name: _storable(value) for name in TEXT_NAMES if isinstance(value := data.get(name), str)
    }
    answers = data.get("answers")
    if isinstance(answers, Mapping):
        given = {_storable(name): _as_list(value) for name, value in answers.items()}
        begun["answers"] = {name: values for name, values in given.items() if any(values)}
    return {name: value for name, value in begun.items() if value}


def _words_of(task: TaskType, data: Mapping[str, Any]) -> list[str]:
    """The texts of a draft, and what is written in its fields."""
    answers = data.get("answers", {})
    asked = (*task.fields, *(task.blind.fields if task.blind else ()))
    written = [answers[field.name] for field in asked if field.is_written and field.name in answers]
    texts = [data[name] for name in TEXT_NAMES if data.get(name)]
    return texts + [text for values in written for text in values if text]


def _as_list(value: object) -> list[str]:
    return [_storable(str(one)) for one in (value if isinstance(value, list) else [value])]


def _storable(text: str) -> str:
    """Remove NUL and lone surrogates from the text: JSON can contain them, but the database cannot
    store them."""
    return text.replace("\0", "").encode("utf-8", "ignore").decode("utf-8")


def _shown_item(member: Membership, shown: Submission) -> tuple[Item, SubmissionToken]:
    """Find the item that the page with this key showed, and the token of that page. The key is
    checked so that nobody can open an arbitrary item by saving a draft."""
    ticket = submissions.read_token(shown.key, member)
    items = Item.objects.filter(project=member.project_id)
    stages = slots.WORKBENCH_STAGES
    item = (
        items.filter(pk=ticket.item_id)
        if ticket.item_id
        else items.filter(slots=ticket.slot_id, slots__stage__in=stages)
    ).first()
    if item is None:
        raise Refused("This page belongs to another user. Reload the page.")
    if (
        not blind_names.matches_name(shown.item_key, member, item, blind=ticket.blind)
        or ticket.revision != shown.revision
    ):
        raise Refused("The page showed another item. Reload the page.")
    return item, ticket


def _check_room(member: Membership, item: Item, length: int) -> None:
    others = Draft.objects.of_member(member.pk).exclude(item=item)
    if others.count() >= MAX_DRAFTS:
        raise Refused(f"You have {MAX_DRAFTS} drafts. Finish or discard some first.")
    if length > MAX_TOTAL_LENGTH // MAX_DRAFTS:
        stored = others.aggregate(total=Sum(Length(Cast("data", TextField()))))["total"] or 0
        if stored + length > MAX_TOTAL_LENGTH:
            raise Refused(
                "Your drafts are too long together to save another long one. Send or discard some "
                "first, under My items, Drafts."
            )
