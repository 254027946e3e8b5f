"""Rows for tests: plain functions with sensible defaults, and one cast of people."""

import re
from dataclasses import dataclass
from itertools import count
from typing import Any

from django.test import Client
from django.utils import timezone

from annotation import importing, tasktypes
from annotation.labelling import answer_key, assignment, queue, work_order
from annotation.labelling.queue import Offer
from annotation.models import (
    Account,
    GuidelinesVersion,
    Item,
    Label,
    Membership,
    Project,
    Resolution,
    Revision,
    Role,
    Slot,
    Stage,
    digest_texts,
)
from annotation.tasktypes import versions

PASSWORD = "a-long-enough-password"
TEXTS = {
    "prompt": "How many legs has a spider?",
    "gold": "A spider has eight legs.",
    "perturbed": "A spider has six legs.",
}

# Stages that are asked for at pages of their own; the others are all the workbench's.
OWN_DESKS = {Stage.VERIFY, Stage.ADJUDICATE}

_numbers = count(1)


@dataclass(frozen=True)
class Cast:
    """One project with one person for every role, and two without a place in it."""

    project: Project
    admin: Account
    lead: Membership
    researcher: Membership
    adjudicator: Membership
    annotator: Membership
    stranger: Account

    def account(self, name: str) -> Account | None:
        """The account behind a name of the cast; None for "anonymous"."""
        if name == "anonymous":
            return None
        person = getattr(self, name)
        return person.account if isinstance(person, Membership) else person


def cast() -> Cast:
    project = make_project()
    members = {role: make_member(project, role=role, alias=role) for role in Role.values}
    return Cast(
        project=project,
        admin=make_account("admin", is_superuser=True, is_staff=True),
        stranger=make_account("stranger"),
        **members,
    )


def make_account(username: str = "", **values: Any) -> Account:
    username = username or f"person{next(_numbers)}"
    return Account.objects.create_user(username, password=PASSWORD, **values)


def browser_of(person: Account | Membership | None) -> Client:
    """A browser in which this person is signed in."""
    account = person.account if isinstance(person, Membership) else person
    assert account
    client = Client()
    client.force_login(account)
    return client


def make_project(slug: str = "", **values: Any) -> Project:
    return importing.create_project(slug or f"project{next(_numbers)}", **values)


def make_member(
    project: Project, role: str = Role.ANNOTATOR, alias: str = "", **values: Any
) -> Membership:
    alias = alias or f"{role}{next(_numbers)}"
    values.setdefault("account", None)
    if values["account"] is None:
        values["account"] = make_account(f"{alias}-{next(_numbers)}")
    return Membership.objects.create(project=project, role=role, alias=alias, **values)


def make_item(
    project: Project,
    key: str = "",
    *,
    texts: dict[str, str] | None = None,
    category: str = "number-errors",
    ability: str = "factual",
    slots: int | None = None,
    **values: Any,
) -> Item:
    """An item with its first revision and as many open slots as the project's overlap."""
    position = (Item.objects.filter(project=project).count()) + 1
    item = Item.objects.create(
        project=project,
        key=key or f"item-{next(_numbers)}",
        position=position,
        category=category,
        ability=ability,
        **{"source_ability": ability, "cluster": f"cluster-{position}", **values},
    )
    make_revision(item, TEXTS | (texts or {}))
    for number in range(1, 1 + (project.overlap if slots is None else slots)):
        make_slot(item, number=number)
    return item


def make_revision(item: Item, texts: dict[str, str], **values: Any) -> Revision:
    number = item.revisions.count() + 1
    if number != item.revision_number:
        item.revision_number = number
        item.save(update_fields=["revision_number"])
    return Revision.objects.create(
        item=item, number=number, texts=texts, digest=digest_texts(texts), **values
    )


def make_slot(item: Item, **values: Any) -> Slot:
    values = {
        "number": 1,
        "position": work_order.queue_position(item.project, item.position),
        **values,
    }
    return Slot.objects.create(project=item.project, item=item, **values)


def make_resolution(item: Item, value: str = "valid", **values: Any) -> Resolution:
    values = {"rule": "accepted at import", "source": "imported", **values}
    return Resolution.objects.create(item=item, revision=item.revision(), value=value, **values)


def make_known(
    project: Project,
    key: str = "",
    *,
    purpose: str = "practice",
    right: str = "valid",
    **values: Any,
) -> Item:
    """An item whose right answer is known, with an explanation."""
    item = make_item(project, key, slots=0, **values)
    answer_key.set_answer(project, item, purpose, {"choice": right}, f"It is {right}.", None)
    item.refresh_from_db()
    return item


def make_guidelines(project: Project, text: str = "Read both answers.") -> GuidelinesVersion:
    number = project.guidelines.count() + 1
    return GuidelinesVersion.objects.create(project=project, number=number, text=text)


def take(member: Membership, **values: Any) -> Offer:
    """The item that the member holds or takes now; fails the test if there is none."""
    offer = queue.next_offer(member, **values)
    assert isinstance(offer, Offer), offer
    return offer


def say(member: Membership, offer: Offer, choice: str = "valid", **values: Any) -> Label:
    """The member's label of what was offered; a comment and seconds may stand among the values."""
    answers = {"choice": choice} | ({"reason": "needs-expert"} if choice == "not-sure" else {})
    said = {name: values.pop(name) for name in ("comment", "seconds") if name in values}
    stage = offer.slot.stage if offer.slot.stage in OWN_DESKS else Stage.LABEL
    return queue.store_label(member, offer.submission(answers, **said), stage=stage, **values)


def correct(
    member: Membership, offer: Offer, text: str = "A spider has seven legs.", **values: Any
) -> Offer:
    """The perturbed text of what was offered, as the member would have it."""
    return queue.store_correction(member, offer.submission(), {"perturbed": text}, **values)


def resize_all(project: Project) -> int:
    """Give all items the labels that the settings ask for; how many items changed."""
    return sum(step.changed for step in assignment.resize_items(project, now=timezone.now()))


def remove_question(lead: Membership, name: str) -> None:
    """The project asks what its built-in task type asks, but for this question."""
    project = lead.project
    source = tasktypes.load_sources()[project.task_type.slug]
    fields = re.split(r"(?m)^(?=\[\[fields\]\])", source)
    less = "".join(field for field in fields if f'name = "{name}"' not in field)
    adapt_task_type(lead, less)


def adapt_task_type(lead: Membership, source: str) -> None:
    """The project asks what this text says."""
    project = lead.project
    adapted = versions.parse_source(project, source)
    assert versions.save_version(project, adapted, member=lead, shown=project.task_type_id)
