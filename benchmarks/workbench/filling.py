"""Fill a project of any size within minutes: the application creates some items, which are then
copied.

The database copies them with `INSERT ... SELECT` over a series of numbers. Every column that is not
named here is taken from the original item, so a new column needs no change here.
"""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.core.management.color import no_style
from django.db import connection, models

from annotation import importing, tasktypes
from annotation.items.diffing import stored
from annotation.labelling import queue, work_order
from annotation.models import (
    Account,
    ApiToken,
    Cursor,
    Diff,
    Event,
    Item,
    Label,
    Membership,
    Project,
    Resolution,
    Revision,
    Role,
    Slot,
    Stage,
)
from formats.rows import Row

ORIGINALS = 64
EVERY = (Item, Revision, Diff, Slot, Label, Resolution, Event)
WORDS = """
the of and a to in is that for it as was with be by on not he this are or his from at which but
have an had they you were their one all we can her has there been if more when will would who so
no said what up its about into than them only other time new some could these two may first then
do any like my now over such our man me even most made after also did many before must through
back years where much your way well down should because long each just state people too mister
good world still between nation own work life both under last being house measure energy water
cell light force number surface pressure system current century trade
"""


@dataclass(frozen=True)
class Filled:
    """The project, and an API key for each of its members."""

    slug: str
    keys: list[str]
    answers: dict[str, object]


def project(items: int, *, people: int, overlap: int, **order: Any) -> Project:
    """Create a project with this many items, with about 2 KB in each text, stored diffs, and all
    slots open.
    """
    assert items >= ORIGINALS
    made = importing.create_project("bench", overlap=overlap, **order)
    task = tasktypes.parse_definition(made.task_type.definition)
    importing.store_items(made, importing.parse_items(_rows(), task))
    for revision in Revision.objects.filter(item__project=made):
        stored.load_difference(revision)
    for number in range(people):
        account = Account.objects.create(username=f"person-{number}")
        Membership.objects.create(
            project=made, account=account, alias=f"person-{number}", role=Role.ANNOTATOR
        )
    _copy_items(items, overlap)
    tidy()  # without statistics each step of the sorting would read all slots
    if made.order != work_order.FILE:
        for _ in work_order.sort_slots(made):
            pass
        tidy()
    return made


def open_to(made: Project) -> Filled:
    """Return what the members of a project need to work on it through the API."""
    members = made.members.select_related("account").order_by("pk")
    keys = [ApiToken.issue(member.account, "bench")[1] for member in members]
    deciding = made.task_type.definition["fields"][0]
    return Filled(made.slug, keys, {deciding["name"]: deciding["choices"][0]["value"]})


def label_half(made: Project, member: Membership) -> int:
    """Label the first half of the items as this member, in order; return how many."""
    offer = queue.next_offer(member)
    assert isinstance(offer, queue.Offer)
    queue.store_label(member, offer.submission(open_to(made).answers))
    half = made.items.count() // 2
    _copy_labels(half)
    tidy()
    return half


def tidy() -> None:
    """Bring the database into the state of one that has grown over weeks: update statistics and
    write out pages.
    """
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("VACUUM ANALYZE")
            cursor.execute("CHECKPOINT")
        else:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _rows() -> Iterator[Row]:
    chance = random.Random(3)
    for number in range(1, ORIGINALS + 1):
        gold = [_sentence(chance) for _ in range(30)]
        perturbed = gold.copy()
        for place in chance.sample(range(30), 3):
            perturbed[place] = _changed(gold[place], chance)
        values = {
            "key": f"item-{number:07}",
            "category": "number-errors",
            "prompt": _sentence(chance)[:-1] + "?",
            "gold": "\n".join(" ".join(gold[at : at + 6]) for at in range(0, 30, 6)),
            "perturbed": "\n".join(" ".join(perturbed[at : at + 6]) for at in range(0, 30, 6)),
            "claim": "Three numbers were changed.",
        }
        yield Row("bench", number, values)


def _sentence(chance: random.Random) -> str:
    words = chance.choices(WORDS.split(), k=11)
    words[chance.randrange(1, 10)] = str(chance.randrange(2, 3000))
    return " ".join(words).capitalize() + "."


def _changed(sentence: str, chance: random.Random) -> str:
    words = [str(int(word) + 7) if word.isdigit() else word for word in sentence.split()]
    return " ".join(words)


def _copy_items(items: int, overlap: int) -> None:
    """Copy the originals in turn; each copy has its own key, position and cluster."""
    first = {each: each.objects.order_by("pk").first().pk for each in (Item, Revision, Diff, Slot)}
    item = f"{first[Item] - 1} + s.n"
    revision = f"{first[Revision] - 1} + s.n"
    slot = f"{first[Slot] - 1} + (s.n - 1) * {overlap} + t.number"
    original = f"{first[Item]} + (s.n - 1) % {ORIGINALS}"
    key = "substr('item-0000000', 1, 12 - length('' || s.n)) || s.n"
    series = (ORIGINALS + 1, items)
    of_item = f"t.item_id = {original}"
    with unchecked(*EVERY):
        _copy(
            Item,
            series,
            f"t.id = {original}",
            {"id": item, "position": "s.n", "key": key, "cluster": "'cluster-' || (s.n / 4)"},
        )
        _copy(Revision, series, of_item, {"id": revision, "item_id": item})
        at_revision = f"t.revision_id = {first[Revision]} + (s.n - 1) % {ORIGINALS}"
        diff = f"{first[Diff] - 1} + s.n"
        _copy(Diff, series, at_revision, {"id": diff, "revision_id": revision})
        _copy(Slot, series, of_item, {"id": slot, "item_id": item, "position": "s.n"})


def _copy_labels(half: int) -> None:
    """Copy the only label and everything created with it, once for each item to be labelled."""
    label = Label.objects.get()
    items = f"{label.item_id} + s.n"
    revisions = f"{label.revision_id} + s.n"
    step = Slot.objects.filter(item=label.item_id, stage=Stage.LABEL).count()
    slots = f"{label.slot_id} + s.n * {step}"
    series = (1, half - 1)
    with unchecked(*EVERY):
        _copy(
            Label,
            series,
            "1 = 1",
            {
                "id": f"{label.pk} + s.n",
                "item_id": items,
                "revision_id": revisions,
                "slot_id": slots,
                "submission": "'bench-' || s.n",
            },
        )
        named = {"id": "t.id + s.n", "item_id": items, "revision_id": revisions}
        _copy(Resolution, series, "1 = 1", named)
        # There may be later events after that of the label.
        behind = f"{Event.objects.latest('pk').pk} + s.n"
        key = "substr('item-0000000', 1, 12 - length('' || (s.n + 1))) || (s.n + 1)"
        _copy(Event, series, "t.kind = 'label'", named | {"id": behind, "subject": key})
        last = label.slot_id + (half - 1) * step
        filled = Slot.objects.filter(stage=label.stage, number=label.slot.number, pk__lte=last)
        filled.update(state=Slot.State.FILLED, member=label.member, held_until=None)
    Cursor.objects.filter(member=label.member, stage=label.stage).update(position=half)
    if hasattr(label.member, "labelled"):
        Membership.objects.filter(pk=label.member_id).update(labelled=half)


@contextmanager
def unchecked(*filled: type[models.Model]) -> Iterator[None]:
    """Within the block, PostgreSQL does not check foreign keys, which are correct by construction,
    and fires no triggers. Afterwards, sequences continue after the inserted ids."""
    _role("replica")
    try:
        yield
    finally:
        _role("origin")
        with connection.cursor() as cursor:
            for statement in connection.ops.sequence_reset_sql(no_style(), list(filled)):
                cursor.execute(statement)


def _role(role: str) -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SET session_replication_role = {role}")


def numbers(start: int, end: int) -> str:
    """Return the series of numbers `s.n` as the start of a statement."""
    if connection.vendor == "sqlite":
        step = f"SELECT {start} UNION ALL SELECT n + 1 FROM s WHERE n < {end}"
        return f"WITH RECURSIVE s(n) AS ({step})"
    return f"WITH s(n) AS (SELECT generate_series({start}, {end}))"


def _copy(
    model: type[models.Model], series: tuple[int, int], on: str, others: Mapping[str, str]
) -> None:
    """Copy the rows of `t` that meet the condition, once for each number `s.n`."""
    columns = [field.column for field in model._meta.concrete_fields]
    table = connection.ops.quote_name(model._meta.db_table)
    names = ", ".join(connection.ops.quote_name(column) for column in columns)
    values = ", ".join(
        others.get(column, f"t.{connection.ops.quote_name(column)}") for column in columns
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"{numbers(*series)} INSERT INTO {table} ({names})"
            f" SELECT {values} FROM s JOIN {table} t ON {on}"
        )
