"""The audit at the end of `make soak`: what was acknowledged and is not stored is seen."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from annotation.models import Comment, Job, Membership, Project
from benchmarks.soak import audit
from benchmarks.soak.journal import Journal
from benchmarks.soak.people import JUDGED, LABELLED, submission_of
from judging.models import Run
from judging.runs import lifecycle
from tests.builders import make_item, make_member, make_project, say, take
from tests.judging.builders_judging import answer, make_endpoint, make_items, make_run

CAP = Decimal(1)


@pytest.fixture
def project(db: None) -> Project:
    return make_project(LABELLED)


@pytest.fixture
def member(project: Project) -> Membership:
    make_item(project, "a")
    return make_member(project, alias="ada")


@pytest.fixture
def run(project: Project) -> Run:
    judged = make_project(JUDGED)
    make_items(judged, 3)
    run = make_run(
        judged, make_endpoint("http://127.0.0.1:9/v1", price_in=Decimal(1), price_out=Decimal(5))
    )
    lifecycle.plan_calls(run)
    answer(run)
    lifecycle.finish_if_done(run)
    return run


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.jsonl")


def evaluator_log(folder: Path, *digests: str) -> Path:
    path = folder / "evaluator.jsonl"
    entries = [{"digest": one, "fault": "", "answered": 5.0} for one in digests]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


def wrong(journal: Journal, folder: Path, *digests: str) -> dict[str, int]:
    lines = audit.audit(journal, evaluator_log(folder, *digests), CAP)
    found = {line.name: line.wrong for line in lines if line.wrong}
    return {name: n for name, n in found.items() if not name.startswith("did not happen")}


def told(journal: Journal, kind: str, **values: Any) -> None:
    journal.note(kind, **{"who": "ada", "item": "a", "good": True, "status": 201, **values})


def test_nothing_is_wrong_where_all_is_stored(
    member: Membership, run: Run, journal: Journal, tmp_path: Path
) -> None:
    offer = take(member)
    say(member, offer)
    told(journal, "sent", submission=submission_of(offer.key))
    told(journal, "label", submission=submission_of(offer.key))
    assert wrong(journal, tmp_path, "x", "y", "z") == {}


def test_what_was_acknowledged_and_is_not_stored_is_lost(
    member: Membership, run: Run, journal: Journal, tmp_path: Path
) -> None:
    told(journal, "label", submission="never stored")
    told(journal, "decision", submission="never stored")
    told(journal, "skip")
    told(journal, "undo", submission="never stored")
    for kind in ("comment", "correction"):
        told(journal, kind, mark="never stored")
    assert wrong(journal, tmp_path, "x", "y", "z", "answered and not stored") == {
        "labels lost (acknowledged, not stored)": 1,
        "undos lost": 1,
        "decisions lost": 1,
        "comments lost": 1,
        "corrections lost": 1,
        "skips lost": 1,
        "answers without a stored reply": 1,
    }


def test_a_draft_is_lost_unless_its_item_was_labelled(
    member: Membership, run: Run, journal: Journal, tmp_path: Path
) -> None:
    told(journal, "draft", mark="draft 1")
    assert wrong(journal, tmp_path)["drafts lost"] == 1
    say(member, take(member))
    assert "drafts lost" not in wrong(journal, tmp_path)


def test_what_is_doubled_or_has_no_end_is_seen(
    member: Membership, run: Run, journal: Journal, tmp_path: Path
) -> None:
    label = say(member, take(member))
    for _ in range(2):
        Comment.objects.create(item=label.item, member=member, text="comment 1")
    told(journal, "comment", mark="comment 1")
    Job.objects.create(project=member.project, kind="places", state="running")
    Run.objects.filter(pk=run.pk).update(spent=9)
    journal.note("spent", cap="1", spent="2")
    found = wrong(journal, tmp_path)
    assert found["comments doubled"] == 1
    assert found["jobs without an end"] == 1
    assert found["spent"] == 1
    assert found["times that the run was seen above its cap"] == 1
    assert found["labels stored that nobody sent"] == 1
    assert found["rules of `verify` that are broken"] >= 1


def test_a_trial_in_which_too_little_happened_proves_nothing(
    member: Membership, run: Run, journal: Journal, tmp_path: Path
) -> None:
    journal.note("crash", who="ada", said="KeyError")
    lines = audit.audit(journal, evaluator_log(tmp_path), CAP)
    found = {line.name for line in lines if line.wrong}
    assert {
        "did not happen: faults",
        "did not happen: imports that finished",
        "did not happen: pauses by the cap",
        "did not happen: acknowledged: label",
        "ada stopped with an error",
    } <= found


def test_a_job_that_nobody_sent_is_one_too_many(
    member: Membership, run: Run, journal: Journal, tmp_path: Path
) -> None:
    ended = {"state": "finished", "finished_at": timezone.now(), "result": {"number": 1}}
    for _ in range(2):
        Job.objects.create(project=member.project, kind="generation", **ended)
    journal.note("job sent", what="generation")
    journal.note("job sent", what="export")
    told(journal, "job", what="export", number=1, state="finished")
    found = wrong(journal, tmp_path)
    assert found["jobs doubled or lost: generation"] == 1
    assert found["jobs doubled or lost: export"] == 1


def test_a_second_run_is_one_too_many(
    member: Membership, run: Run, journal: Journal, tmp_path: Path
) -> None:
    make_run(run.project)
    assert wrong(journal, tmp_path)["runs"] == 1
