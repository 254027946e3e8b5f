"""`manage.py verify`: what must hold of the stored data, and how a breach of each rule is named."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from annotation.items.snapshots import create as snapshots
from annotation.items.snapshots.create import make_snapshot
from annotation.labelling import qualification, queue, resolution
from annotation.models import (
    Event,
    Item,
    Job,
    Label,
    Membership,
    PracticeRound,
    Project,
    Resolution,
    Revision,
    Slot,
    Snapshot,
    TaxonomyVersion,
)
from judging.archive import jobs as archive_jobs
from judging.archive.load import LOADED_EVENT
from judging.models import (
    Budget,
    Call,
    Outcome,
    Reading,
    Reply,
    Request,
    Run,
    StrategyVersion,
    Tally,
)
from judging.runs import budget, counts, lifecycle, pinning, reparse
from judging.strategies.replies.outputs import PHRASE_PARSER
from operation.integrity import CHECKS
from tests.builders import cast, make_item, make_known, make_member, make_project, say, take
from tests.judging.builders_judging import (
    answer,
    answer_as,
    make_endpoint,
    make_items,
    make_responses,
    make_run,
)

NOWHERE = "http://127.0.0.1:9/v1"
PRICES = {"price_in": Decimal(1), "price_out": Decimal(5)}


@dataclass(frozen=True)
class World:
    """A project with two annotators per item: two items are resolved, the third waits for
    adjudication. Two runs are finished, one of them a chain."""

    project: Project
    people: list[Membership]
    run: Run
    chain: Run


def verified(*only: str) -> dict[str, Any]:
    out = StringIO()
    with suppress(CommandError):
        call_command("verify", "--json", *(["--only", *only] if only else []), stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def broken(*only: str) -> dict[str, list[dict[str, Any]]]:
    return {one["name"]: one["rows"] for one in verified(*only)["checks"] if one["breaches"]}


@pytest.fixture
def world(db: None) -> World:
    project = cast().project
    project.overlap = 2
    project.save()
    for key in ("same", "other", "disputed"):
        make_item(project, key, slots=2)
    people = [make_member(project, alias=name) for name in ("mira", "noor")]
    for choice, member in zip(("valid", "invalid"), people, strict=True):
        say(member, take(member))
        say(member, take(member))
        say(member, take(member), choice)
    snapshot = snapshots.enqueue(project, people[0], "first")
    assert snapshot.job
    make_snapshot(snapshot.job)
    budget.set_cap(project, Decimal(10), None)
    make_items(project, 2)
    run = make_run(project, make_endpoint(NOWHERE, **PRICES), cap=Decimal(1))
    lifecycle.plan_calls(run)
    answer(run)
    lifecycle.finish_if_done(run)
    counts.with_item_counts([run], timezone.now())
    return World(project, people, run, finished_chain())


def finished_chain() -> Run:
    other = make_project(task_type="rubric-matrix")
    make_responses(other, ["1/0/1", "0/0/0"])
    run = make_run(other, make_endpoint(NOWHERE), "score-chain")
    lifecycle.plan_calls(run)
    while answer_as(run, lambda body: "<RESULT>s1: 1, s2: 0, s3: -1</RESULT>"):
        pass
    lifecycle.finish_if_done(run)
    return run


@pytest.mark.django_db
def test_every_rule_holds_where_nothing_is_stored() -> None:
    found = verified()
    assert found["broken"] == 0
    assert [one["name"] for one in found["checks"]] == [*CHECKS]


def test_every_rule_holds_of_what_people_and_evaluators_did(world: World) -> None:
    assert broken() == {}


def move_label(world: World) -> None:
    other = Item.objects.get(key="disputed").revision()
    Label.objects.filter(item__key="same", member=world.people[0]).update(revision=other)


def move_slot(world: World) -> None:
    Slot.objects.filter(item__key="same", number=1).update(position=77)


def empty_a_slot(world: World) -> None:
    Slot.objects.filter(item__key="same", number=1).update(state="open", member=None)


def drop_a_label(world: World) -> None:
    label = Label.objects.get(item__key="same", member=world.people[0])
    label.delete()


def open_one_more(world: World) -> None:
    item = Item.objects.get(key="same")
    Slot.objects.create(project=world.project, item=item, number=3, position=item.position)


def miscount(world: World) -> None:
    Membership.objects.filter(pk=world.people[0].pk).update(labelled=9)


def retire_a_label(world: World) -> None:
    Label.objects.filter(item__key="same", member=world.people[0]).update(current=False)


def end_without_a_time(world: World) -> None:
    Resolution.objects.filter(item__key="same").update(current=False)


def resolve_otherwise(world: World) -> None:
    Resolution.objects.filter(item__key="same").update(values={"choice": "invalid"})


def pass_without_answers(world: World) -> None:
    PracticeRound.objects.create(member=world.people[0], number=1, size=4, needed=2, answered=4)


def go_back_a_revision(world: World) -> None:
    item = Item.objects.get(key="same")
    Revision.objects.create(item=item, number=2, texts={}, digest=resolution.VERIFIED)


def change_a_text(world: World) -> None:
    revision = Item.objects.get(key="same").revision()
    Revision.objects.filter(pk=revision.pk).update(texts={**revision.texts, "gold": "Otherwise."})


def link_elsewhere(world: World) -> None:
    Item.objects.filter(key="same").update(parent=make_item(make_project()))


def forget_the_first_reply(world: World) -> None:
    Item.objects.filter(key="item-4").update(first_reply_at=None)


def change_a_frozen_state(world: World) -> None:
    without_trigger("annotation_frozen_kept_update", "annotation_frozen")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE annotation_frozen SET digest = 'changed' WHERE value = 'valid'")


def shrink_a_snapshot(world: World) -> None:
    without_trigger("annotation_snapshot_kept_update", "annotation_snapshot")
    Snapshot.objects.update(items=1)


def without_trigger(name: str, table: str) -> None:
    with connection.cursor() as cursor:
        of = f" ON {table}" if connection.vendor == "postgresql" else ""
        cursor.execute(f"DROP TRIGGER {name}{of}")


def lose_a_reply(world: World) -> None:
    reply = Reply.objects.filter(request__calls__run=world.run).order_by("pk")[0]
    Reading.objects.filter(reply=reply).delete()
    reply.delete()


def leave_money_reserved(world: World) -> None:
    Request.objects.filter(calls__run=world.run).update(reserved=1)


def reserve_more(world: World) -> None:
    Run.objects.filter(pk=world.run.pk).update(reserved=Decimal("0.5"))


def spend_twice(world: World) -> None:
    Run.objects.filter(pk=world.run.pk).update(spent=2 * world.run.spent)


def forget_what_was_spent(world: World) -> None:
    Run.objects.filter(pk=world.run.pk).update(spent=0)


def pass_the_cap(world: World) -> None:
    Run.objects.filter(pk=world.run.pk).update(cap=Decimal("0.00001"))


def pass_the_budget(world: World) -> None:
    Budget.objects.update(reserved=11)


def miscount_the_budget(world: World) -> None:
    Budget.objects.update(spent=0)


def open_an_outcome(world: World) -> None:
    Outcome.objects.filter(run=world.run).update(result="pending")


def plan_in_part(world: World) -> None:
    Call.objects.filter(run=world.run).delete()
    Outcome.objects.filter(run=world.run).update(result="pending")
    Run.objects.filter(pk=world.run.pk).update(state=Run.State.RUNNING)


def judge_other_texts(world: World) -> None:
    other = Item.objects.get(key="same").revision()
    Outcome.objects.filter(run=world.run, item__key="item-4").update(revision=other)


def exchange_runs(world: World) -> None:
    Call.objects.filter(run=world.run).update(run=world.chain)


def feed_otherwise(world: World) -> None:
    reading = Reading.objects.filter(reply__request__calls__run=world.run).first()
    Call.objects.filter(run=world.chain, step=1).update(fed_by=reading)


def change_a_pin(world: World) -> None:
    Run.objects.filter(pk=world.run.pk).update(seed=99)


def change_a_strategy(world: World) -> None:
    version = world.run.strategy
    changed = {**version.definition, "name": "Changed"}
    StrategyVersion.objects.filter(pk=version.pk).update(definition=changed)


def change_counts(world: World) -> None:
    for tally in Tally.objects.filter(kind="items"):
        tally.counts["items"] = 99
        tally.save()


def cancel_by_hand(world: World) -> None:
    Run.objects.filter(pk=world.run.pk).update(state=Run.State.CANCELLED)


def end_a_job_twice(world: World) -> None:
    Job.objects.filter(kind="snapshot").update(state="waiting", finished_at=timezone.now())


def lease_for_ever(world: World) -> None:
    until = (timezone.now() + timedelta(hours=1)).timestamp()
    Job.objects.create(
        project=world.project, kind="export", state="running", result={"until": until}
    )


def lose_an_archive(world: World) -> None:
    Job.objects.create(
        project=world.project,
        kind=archive_jobs.KIND,
        state="finished",
        finished_at=timezone.now(),
        result={"number": 1},
    )


def drop_a_trigger(world: World) -> None:
    postgresql = connection.vendor == "postgresql"
    without_trigger(f"annotation_event_kept{'' if postgresql else '_update'}", "annotation_event")


def choose_otherwise(world: World) -> None:
    Label.objects.filter(item__key="same", member=world.people[0]).update(choice="odd")


def value_otherwise(world: World) -> None:
    Resolution.objects.filter(item__key="same", current=True).update(value="odd")


def show_another_text(world: World) -> None:
    Label.objects.filter(item__key="same", current=True).update(first_shown="odd")


BREACHES: dict[str, tuple[Callable[[World], None], dict[str, Any]]] = {
    "labels-belong": (move_label, {"item": "same", "member": "mira"}),
    "slots-belong": (move_slot, {"item": "same", "number": 1}),
    "counted-labels": (empty_a_slot, {"item": "same", "slot_state": "open"}),
    "filled-slots": (drop_a_label, {"item": "same", "member": "mira"}),
    "recorded-labels": (drop_a_label, {"item": "same", "recorded": 1, "stored": 0}),
    "label-choices": (choose_otherwise, {"item": "same", "stored": "odd", "by answers": "valid"}),
    "label-orders": (show_another_text, {"item": "same", "stored": "odd"}),
    "final-values": (value_otherwise, {"item": "same", "stored": "odd", "by values": "valid"}),
    "slot-counts": (open_one_more, {"item": "same", "slots": 3, "required": 2}),
    "label-counters": (miscount, {"member": "mira", "stored": 9, "counted": 3}),
    "replaced-labels": (retire_a_label, {"item": "same", "member": "mira"}),
    "resolutions-belong": (end_without_a_time, {"item": "same", "value": "valid"}),
    "resolutions": (resolve_otherwise, {"item": "same", "problem": "differs"}),
    "qualification-rounds": (pass_without_answers, {"member": "mira", "stored": 4, "counted": 0}),
    "current-texts": (go_back_a_revision, {"item": "same", "current": 1, "last": 2}),
    "text-digests": (change_a_text, {"item": "same", "revision": 1}),
    "linked-items": (link_elsewhere, {"item": "same"}),
    "first-replies": (forget_the_first_reply, {"item": "item-4", "run": 1}),
    "snapshot-states": (change_a_frozen_state, {"item": "same", "stored": "changed"}),
    "snapshots": (shrink_a_snapshot, {"snapshot": "first", "stored items": 1, "items": 3}),
    "replies": (lose_a_reply, {"state": "answered", "reply": None}),
    "leases": (leave_money_reserved, {"state": "answered"}),
    "reserved": (reserve_more, {"run": 1}),
    "spent": (spend_twice, {"run": 1}),
    "spent-once": (forget_what_was_spent, {}),
    "run-caps": (pass_the_cap, {"run": 1}),
    "project-caps": (pass_the_budget, {"cap": "10.000000"}),
    "budgets": (miscount_the_budget, {}),
    "finished-runs": (open_an_outcome, {"run": 1, "pending": 4}),
    "planned-runs": (plan_in_part, {"run": 1, "items": 4}),
    "outcomes-belong": (judge_other_texts, {"run": 1, "item": "item-4"}),
    "calls-belong": (exchange_runs, {"run": 1, "role": "perturbed"}),
    "fed-calls": (feed_otherwise, {"run": 1, "step": 1}),
    "run-digests": (change_a_pin, {"run": 1}),
    "definitions": (change_a_strategy, {"strategy": "reference v1"}),
    "run-counts": (change_counts, {"run": 1}),
    "run-states": (cancel_by_hand, {"stored": "cancelled", "recorded": "finished"}),
    "job-ends": (end_a_job_twice, {"kind": "snapshot", "state": "waiting"}),
    "job-leases": (lease_for_ever, {}),
    "archives": (lose_an_archive, {"archive": 1, "problem": "the file is missing"}),
    "triggers": (drop_a_trigger, {"table": "annotation_event"}),
}


@pytest.mark.parametrize("name", BREACHES)
def test_each_breach_is_found_and_named(name: str, world: World) -> None:
    assert broken(name) == {}
    breaks, named = BREACHES[name]
    breaks(world)
    assert [row for row in broken(name)[name] if named.items() <= row.items()]


def test_an_item_that_lost_all_of_its_slots_is_named(world: World) -> None:
    item = make_item(world.project)
    assert broken("slot-counts") == {}
    Slot.objects.filter(item=item).delete()
    [row] = broken("slot-counts")["slot-counts"]
    assert (row["item"], row["slots"], row["required"]) == (item.key, 0, 2)


def test_a_translation_that_waits_in_a_project_of_its_own_is_fine(world: World) -> None:
    make_item(world.project, slots=0, origin="generated")
    assert broken("slot-counts") == {}


def test_a_breach_is_sought_for_every_rule() -> None:
    # References are checked below: a test's transaction allows none that are broken.
    assert {*BREACHES} == CHECKS.keys() - {"references"}


@pytest.mark.django_db
def test_a_row_that_refers_to_nothing_is_named() -> None:
    if connection.vendor == "postgresql":
        assert broken("references") == {}  # PostgreSQL refuses it
        return
    member = make_member(make_project())
    Membership.objects.filter(pk=member.pk).update(project=987_654_321)
    [row] = broken("references")["references"]
    assert row["table"] == "annotation_membership"
    assert row["refers_to"] == "annotation_project"
    member.save()


@pytest.mark.postgresql
@pytest.mark.django_db
def test_a_reference_that_postgresql_does_not_check_is_named() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conname FROM pg_constraint WHERE contype = 'f'"
            " AND conrelid = 'annotation_draft'::regclass LIMIT 1"
        )
        cursor.execute(f"ALTER TABLE annotation_draft DROP CONSTRAINT {cursor.fetchone()[0]}")
    [row] = broken("references")["references"]
    assert (row["table"], row["problem"]) == ("annotation_draft", "is not checked")


@pytest.mark.django_db(transaction=True)
def test_a_value_that_cannot_be_read_is_a_breach_and_ends_no_other_check() -> None:
    member = make_member(make_project())
    make_item(member.project)
    say(member, take(member))
    Membership.objects.update(labelled=9)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE annotation_label SET answers = 'null'")
    found = broken("label-choices", "label-counters")
    assert [row["stored"] for row in found["label-counters"]] == [9]
    [row] = found["label-choices"]
    assert row["problem"].startswith("a value cannot be read (TypeError: ")


@pytest.mark.django_db(transaction=True)
def test_a_database_that_cannot_be_read_ends_with_a_sentence_and_another_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A field keeps the name of its table at first use, so later tests would look for this one.
    assert {field.cached_col.alias for field in Event._meta.fields} == {Event._meta.db_table}
    monkeypatch.setattr(Event._meta, "db_table", "nowhere")
    with pytest.raises(CommandError, match=r"could not be checked: .*nowhere") as ended:
        call_command("verify", stdout=StringIO())
    assert ended.value.returncode == 2


@pytest.mark.django_db
def test_changed_categories_are_found(world: World) -> None:
    version = TaxonomyVersion.objects.get()
    version.definition["category"][0]["name"] = "Renamed"
    version.save()
    assert broken() == {"definitions": [{"taxonomy": "fbi v1", "stored": version.digest}]}


def test_it_says_what_a_breach_means_and_ends_badly(world: World) -> None:
    out = StringIO()
    call_command("verify", "--only", "label-counters", "text-digests", stdout=out)
    assert out.getvalue().splitlines()[-1] == "All 2 rules hold."
    for member in world.people:
        Membership.objects.filter(pk=member.pk).update(labelled=9)
    said = StringIO()
    with pytest.raises(CommandError, match="1 rule is broken") as ended:
        call_command("verify", "--only", "label-counters", "--rows", "1", stdout=said)
    assert ended.value.returncode == 1
    lines = said.getvalue().splitlines()
    assert lines[0].startswith(f"Checking {connection.vendor} ")
    assert lines[1].startswith("BROKEN  label-counters")
    assert "the labels themselves are not affected" in lines[2]
    assert "stored 9, counted 3" in lines[3]  # of either person
    assert "and 1 more" in lines[4]


@pytest.mark.django_db
def test_the_rules_can_be_listed() -> None:
    out = StringIO()
    call_command("verify", "--list", stdout=out)
    assert [line.split()[0] for line in out.getvalue().splitlines()] == [*CHECKS]


def test_more_slots_are_fine_where_a_project_once_asked_for_more(world: World) -> None:
    Project.objects.filter(pk=world.project.pk).update(overlap=1)
    rows = broken("slot-counts")["slot-counts"]
    assert {row["item"] for row in rows} == {"same", "other", "disputed"}
    Event.record(
        "settings", world.project.slug, project_id=world.project.pk, member_id=None,
        old={"overlap": 2}, new={"overlap": 1},
    )  # fmt: skip
    assert broken("slot-counts") == {}


def test_a_cap_below_what_was_spent_is_a_leads_choice(world: World) -> None:
    budget.set_cap(world.project, Decimal("0.00001"), None)
    assert broken("project-caps", "budgets") == {}


def test_a_case_that_nobody_decides_is_named(world: World) -> None:
    Slot.objects.filter(stage="adjudicate").update(state="closed")
    [row] = broken("resolutions")["resolutions"]
    assert (row["item"], row["problem"]) == ("disputed", "nobody decides")


def test_what_was_resolved_under_earlier_settings_stays(world: World) -> None:
    Resolution.objects.filter(item__key="same").update(values={"choice": "invalid"})
    assert broken("resolutions")
    Event.record(
        "settings", world.project.slug, project_id=world.project.pk, member_id=None,
        old={"rules": {}}, new={"rules": {"choice": "unanimous"}},
    )  # fmt: skip
    assert broken("resolutions") == {}


@pytest.mark.parametrize("keys", [["z", "Z", "é", "a b", "日本", "😀", "ﬀ"]])
def test_the_digest_of_a_run_does_not_depend_on_how_a_database_sorts(
    keys: list[str], world: World
) -> None:
    other = make_project()
    for number, key in enumerate(keys):
        make_items(other, 1)
        Item.objects.filter(project=other, position=number + 1).update(key=key)
    run = make_run(other, make_endpoint(NOWHERE))
    assert pinning.compute_digest(run) == run.digest


def test_an_item_that_was_out_before_more_labels_were_asked_for_is_fine(db: None) -> None:
    project = make_project()
    member = make_member(project)
    make_item(project)
    offer = take(member)
    queue.store_label(
        member, offer.submission({"choice": "not-sure", "reason": "question-unclear"})
    )
    Project.objects.filter(pk=project.pk).update(overlap=2)
    assert broken("slot-counts", "resolutions") == {}


def test_a_qualification_item_that_is_repeated_is_fine(db: None) -> None:
    project = make_project()
    for _ in range(2):
        make_known(project)
    Project.objects.filter(pk=project.pk).update(practice_items=2, practice_pass=1)
    member = make_member(Project.objects.get(pk=project.pk))
    for _ in range(2):
        say(member, take(member))
    lead = make_member(project, "lead")
    qualification.start_new_round(member, lead=lead)
    take(Membership.objects.get(pk=member.pk))
    assert broken() == {}


def test_a_final_label_that_came_with_an_import_is_fine(world: World) -> None:
    item = make_item(world.project, slots=0)
    Resolution.objects.create(
        item=item, revision=item.revision(), value="valid", values={"choice": "valid"},
        rule="majority", source="labels",
    )  # fmt: skip
    Slot.objects.create(
        project=world.project, item=item, number=1, stage="baseline", position=item.position
    )
    assert broken("resolutions") == {}


def test_only_settings_that_decide_about_final_labels_hide_older_labels(world: World) -> None:
    Event.record(
        "settings", world.project.slug, project_id=world.project.pk, member_id=None,
        old={"hold_minutes": 30}, new={"hold_minutes": 20},
    )  # fmt: skip
    Resolution.objects.filter(item__key="same").update(values={"choice": "invalid"})
    assert broken("resolutions")


def test_a_database_loaded_from_an_archive_is_not_blamed_for_what_archives_leave_out(
    world: World,
) -> None:
    change_a_text(world)
    Event.of_site(LOADED_EVENT, "p", None)
    out, err = StringIO(), StringIO()
    call_command("verify", stdout=out, stderr=err)
    left_out = "final-values, label-choices, spent, spent-once, text-digests"
    assert f"Not checked: {left_out}." in err.getvalue()
    assert out.getvalue().splitlines()[-1] == f"All {len(CHECKS) - 5} rules hold."


@pytest.mark.django_db(transaction=True)
def test_all_rules_are_checked_over_connections_of_their_own() -> None:
    member = make_member(make_project(), alias="ada")
    assert broken() == {}
    Membership.objects.filter(pk=member.pk).update(labelled=9)
    assert broken() == {
        "label-counters": [
            {"project": member.project.slug, "member": "ada", "stored": 9, "counted": 0}
        ]
    }


def test_a_run_over_one_whose_replies_were_parsed_again_is_fine(db: None) -> None:
    project = make_project(task_type="error-detection")
    make_responses(project, ["error"])
    run = make_run(project, make_endpoint(NOWHERE), "detect-1a")
    lifecycle.plan_calls(run)
    answer(run, "Yes.")
    lifecycle.finish_if_done(run)
    repeat = lifecycle.clone_run(run, None, occasion="canary 1")
    reparse.switch_parser(run, None, parser=PHRASE_PARSER)
    assert pinning.compute_digest(repeat) != repeat.digest
    assert "run-digests" not in broken()
    Run.objects.filter(pk=run.pk).update(seed=99)
    assert [row["run"] for row in broken("run-digests")["run-digests"]] == [1]
