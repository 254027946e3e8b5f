"""Archives come from anywhere: what does not fit is refused, with the name of the file."""

import io
import json
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.models import F, Sum
from django.test import Client
from django.utils import timezone

from annotation.items.diffing.difference import FORMER_ALGORITHM
from annotation.labelling import queue
from annotation.models import Diff, Item, Label, Project, Slot
from formats.rows import FormatError
from formats.sealed import MANIFEST, ArchiveWriter
from judging.archive import comparison, load
from judging.errors import Refused
from judging.models import Call, Endpoint, Outcome, Reading, Reply, Request, Run
from judging.runs import lifecycle, warnings
from judging.runs.warnings import RunWarning
from operation.integrity import CHECKS
from tests import builders
from tests.builders import make_item, make_member, make_project, say
from tests.judging.archive.builders_archive import archive, ask, label, make_items
from tests.judging.builders_judging import (
    ONE_CALL,
    answer,
    make_endpoint,
    make_run,
    results,
    take,
)

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="archives are loaded into SQLite"),
]


@pytest.fixture
def frozen(tmp_path: Path) -> Path:
    """An archive of a project that is not in the database any more."""
    with transaction.atomic():
        project = make_project("fbi")
        make_items(project, 6)
        ask(project)
        path = archive(project, tmp_path / "results.zip")
        transaction.set_rollback(True)
    assert not Project.objects.exists()
    return path


def changed(path: Path, name: str, change: Callable[[Any], object]) -> None:
    """The archive with other rows in a table or other facts, sealed as if it had been made so."""
    with zipfile.ZipFile(path) as held:
        files = {one: held.read(one) for one in held.namelist() if one != MANIFEST}
        facts = json.loads(held.read(MANIFEST))
    if name == MANIFEST:
        change(facts)
    else:
        rows = [json.loads(line) for line in files[f"data/{name}.jsonl"].splitlines()]
        change(rows)
        files[f"data/{name}.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows).encode()
    stream = io.BytesIO()
    sealing = ArchiveWriter(stream)
    for one, content in files.items():
        sealing.put(one, content)
    sealing.seal({name: fact for name, fact in facts.items() if name != "files"})
    path.write_bytes(stream.getvalue())


def test_what_was_frozen_is_in_the_database(frozen: Path) -> None:
    thawed = load.load_archive(frozen)
    run = Run.objects.get()
    assert thawed.project.slug == "fbi"
    assert run.strategy.slug == "vanilla-score"
    assert run.endpoint.name == "asked"
    assert Call.objects.filter(request__reply__model="judge-1-0613").count() == 12
    assert Reading.objects.filter(value__isnull=True).count() == 3
    assert Item.objects.get(key="item-1").revision().texts["gold"] == "x x x x " + 14 * "x"


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    """An archive of a run of which one call is in flight and two items have a reply; the run was
    paused in the middle."""
    with transaction.atomic():
        project = make_project("fbi")
        make_items(project, 4)
        run = make_run(project, make_endpoint("https://judge.invalid/v1"), ONE_CALL)
        lifecycle.plan_calls(run)
        answer(run, number=2)
        take(run, 1)
        path = archive(project, tmp_path / "results.zip")
        transaction.set_rollback(True)
    return path


@pytest.mark.parametrize("state", ["planning", "running", "paused"])
def test_a_run_that_was_not_finished_is_loaded_as_cancelled_and_says_why(
    interrupted: Path, state: str, client: Client
) -> None:
    because = "Lunch." if state == "paused" else ""
    changed(interrupted, "runs", lambda rows: rows[0].update(state=state, reason=because))
    thawed = load.load_archive(interrupted)
    run = Run.objects.get()
    assert run.state == Run.State.CANCELLED
    assert run.reason == (
        f"The archive was made while this run was {state}, with a result for 2 of 4 items. Nothing "
        f"more is asked here.{' It was paused for this reason: Lunch.' if because else ''}"
    )
    assert results(run) == {"detected": 2, "pending": 2}
    assert not Endpoint.objects.due(timezone.now()).exists()
    assert all(one.same for one in comparison.compare_archive(interrupted, thawed))
    reader = make_member(thawed.project, "researcher").account
    assert reader
    client.force_login(reader)
    page = client.get(f"/projects/fbi/runs/{run.number}/").content.decode()
    assert "Why this run is cancelled:" in page
    assert "every 1500ms" not in page
    assert [*CHECKS["leases"].find(), *CHECKS["run-states"].find()] == []


def test_a_run_that_only_had_to_be_finished_is_loaded_as_finished(frozen: Path) -> None:
    load.load_archive(frozen)
    run = Run.objects.get()
    assert (run.state, run.reason) == (Run.State.FINISHED, "")


@pytest.mark.parametrize("is_old", [False, True])
def test_a_run_keeps_what_tries_without_a_reply_cost(tmp_path: Path, is_old: bool) -> None:
    charged = Decimal(0) if is_old else Decimal("0.1")
    with transaction.atomic():
        project = make_project("fbi")
        make_items(project, 6)
        run = ask(project)
        Run.objects.filter(pk=run.pk).update(spent=F("spent") + charged)
        asked = Request.objects.order_by("pk").first()
        Request.objects.filter(pk=asked and asked.pk).update(charged=charged)
        path = archive(project, tmp_path / "results.zip")
        transaction.set_rollback(True)
    if is_old:  # from before such tries counted
        changed(path, "requests", lambda rows: [row.pop("charged", None) for row in rows])
    load.load_archive(path)
    assert Request.objects.aggregate(n=Sum("charged"))["n"] == charged
    assert [*CHECKS["spent"].find(), *CHECKS["spent-once"].find()] == []


def test_an_answer_off_its_scale_is_still_told_where_an_archive_was_loaded(tmp_path: Path) -> None:
    off = {"naturalness": {"cause": "off_scale", "said": 9}}
    with transaction.atomic():
        project = make_project("fbi")
        make_items(project, 1)
        label(project)
        Label.objects.update(missing=off)
        path = archive(project, tmp_path / "results.zip")
        transaction.set_rollback(True)
    load.load_archive(path)
    assert {json.dumps(one.missing) for one in Label.objects.all()} == {json.dumps(off)}


def test_an_archive_from_before_runs_had_names_is_read(frozen: Path) -> None:
    def forget(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            for name in ("name", "tags", "note"):
                del row[name]

    changed(frozen, "runs", forget)
    load.load_archive(frozen)
    run = Run.objects.get()
    assert (run.name, run.tags, run.note) == ("", [], "")


def test_an_archive_from_before_generators_drew_is_read(frozen: Path) -> None:
    def forget(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            assert row.pop("drawn") is None

    changed(frozen, "outcomes", forget)
    load.load_archive(frozen)
    assert set(Outcome.objects.values_list("drawn", flat=True)) == {None}
    assert not Outcome.objects.filter(drawn__isnull=False).exists()


ELO = {"name": "Elo", "value": 1251.0, "source": "LMSYS", "date": "2024-03-16"}


@pytest.mark.parametrize("is_old", [False, True])
def test_endpoints_keep_their_ratings(tmp_path: Path, is_old: bool) -> None:
    with transaction.atomic():
        project = make_project("fbi")
        make_items(project, 2)
        ask(project)
        Endpoint.objects.update(ratings=[ELO])
        path = archive(project, tmp_path / "results.zip")
        transaction.set_rollback(True)
    if is_old:
        changed(path, "endpoints", lambda rows: [row.pop("ratings") for row in rows])
    load.load_archive(path)
    assert Endpoint.objects.get(name="asked").ratings == ([] if is_old else [ELO])


@pytest.mark.parametrize("ratings", [[ELO | {"value": "high"}], [ELO, ELO], {"Elo": 3}, None])
def test_ratings_that_no_figure_can_read_are_refused(frozen: Path, ratings: Any) -> None:
    changed(frozen, "endpoints", lambda rows: [row.update(ratings=ratings) for row in rows])
    with pytest.raises(FormatError, match="ratings"):
        load.load_archive(frozen)
    assert not Project.objects.exists()


@pytest.mark.parametrize("is_old", [False, True])
def test_a_run_keeps_its_warning_of_cut_prompts(tmp_path: Path, is_old: bool) -> None:
    """An archive from before replies had the length of their prompts is read without it."""
    with transaction.atomic():
        project = make_project("fbi")
        make_items(project, 6)
        run = ask(project)
        Reply.objects.update(bytes_sent=50_000, tokens_in=1_000)
        path = archive(project, tmp_path / "results.zip")
        assert [one.kind for one in load_warnings(run)] == ["cut_prompts"]
        transaction.set_rollback(True)
    if is_old:
        changed(path, "replies", lambda rows: [row.pop("bytes_sent") for row in rows])
    load.load_archive(path)
    kinds = [one.kind for one in load_warnings(Run.objects.get())]
    assert kinds == ([] if is_old else ["cut_prompts"])


def load_warnings(run: Run) -> list[RunWarning]:
    return warnings.list_warnings(run.pinned["model"], warnings.count_facts(run))


def test_an_archive_from_before_a_cause_had_its_word_is_read(frozen: Path) -> None:
    before = {"cause": "rate-limited"}
    values = {"missing": {"score": "rate-limited"}, "parts": [before]}

    def fail(rows: list[dict[str, Any]]) -> None:
        [first] = [row for row in rows if row["result"] == "missing"][:1]
        first.update(**before, values=values)

    changed(frozen, "outcomes", fail)
    changed(frozen, "requests", lambda rows: rows[0].update(state="failed", **before))
    load.load_archive(frozen)
    assert Request.objects.get(state="failed").cause == "rate_limited"
    assert "rate-limited" not in str(Outcome.objects.values_list("cause", "values"))
    assert Outcome.objects.get(cause="rate_limited").values["parts"] == [{"cause": "rate_limited"}]


def test_an_archive_from_before_stages_had_their_words_is_read(tmp_path: Path) -> None:
    with transaction.atomic():
        project = make_project("fbi", overlap=2)
        make_items(project, 1)
        label(project)
        path = archive(project, tmp_path / "results.zip")
        transaction.set_rollback(True)
    before = {"label": "work", "qualification": "practice", "control": "probe"}

    def rename(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row["stage"] = before.get(row["stage"], row["stage"])
            if row.get("slot"):
                item, stage, number = row["slot"]
                row["slot"] = [item, before.get(stage, stage), number]

    changed(path, "slots", rename)
    changed(path, "labels", rename)
    load.load_archive(path)
    assert {*Slot.objects.values_list("stage", flat=True)} == {"label", "adjudicate"}
    assert {*Label.objects.values_list("stage", "slot__stage")} == {("label", "label")}


def test_diffs_of_answers_from_before_diffs_were_pinned_are_pinned(tmp_path: Path) -> None:
    with transaction.atomic():
        project = make_project("fbi", claim_check=True)
        for key in ("one", "two"):
            make_item(project, key)
        member = make_member(project)
        checked = builders.take(member)
        answers = {"choice": "valid", "claim_check": {"1": "explained"}}
        queue.store_label(member, checked.submission(answers))
        say(member, builders.take(member))
        ask(project)
        archive(project, tmp_path / "made.zip")  # makes the diffs of both items
        Diff.objects.update(algorithm=FORMER_ALGORITHM)
        Run.objects.update(diff_algorithm=FORMER_ALGORITHM)
        path = archive(project, tmp_path / "results.zip")
        transaction.set_rollback(True)
    changed(path, "diffs", lambda rows: [row.update(pinned=False) for row in rows])
    load.load_archive(path)
    assert Diff.objects.filter(algorithm=FORMER_ALGORITHM).count() == 2
    assert Diff.objects.get(pinned=True).revision.item.key == checked.item.key


def test_items_point_at_items_that_come_later(frozen: Path) -> None:
    changed(frozen, "items", lambda rows: rows[0].update(parent="item-5"))
    load.load_archive(frozen)
    assert Item.objects.get(key="item-1").parent == Item.objects.get(key="item-5")


def test_an_archive_is_not_loaded_beside_other_projects(frozen: Path) -> None:
    make_project()
    with pytest.raises(Refused, match="empty"):
        load.load_archive(frozen)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("outcomes", lambda rows: rows[0].update(item="no such"), "data/outcomes.jsonl"),
        ("outcomes", lambda rows: rows[0].update(revision=["item-1"]), "refers to no row"),
        ("outcomes", lambda rows: rows[0].update(revision={"a": 1}), "refers to no row"),
        ("outcomes", lambda rows: rows[0].update(share="much"), "data/outcomes.jsonl"),
        ("outcomes", lambda rows: rows[0].update(result="missing"), "data/outcomes.jsonl"),
        ("outcomes", lambda rows: rows.append(rows[0]), "data/outcomes.jsonl"),
        ("items", lambda rows: rows[0].update(position=1 << 80), "data/items.jsonl"),
        ("items", lambda rows: rows[0].update(created_at="soon"), "data/items.jsonl"),
        ("items", lambda rows: rows[0].update(key=None), "data/items.jsonl"),
        ("items", lambda rows: rows[0].update(key=["a", "b"]), "data/items.jsonl"),
        ("items", lambda rows: rows[0].update(parent="no such"), "1 rows refer to a parent"),
        ("items", lambda rows: rows[0].update(account="root"), "'account'"),
        ("calls", lambda rows: rows[0].update(fed_by=["0" * 64, "p"]), "1 rows refer to a fed_by"),
        ("runs", lambda rows: rows[0].update(pinned=[]), "run 1 does not say how it asked"),
        ("project", lambda rows: rows[0].update(slug="other"), "contains no project"),
        (MANIFEST, lambda facts: facts.update(version=2), "reads 1"),
        (MANIFEST, lambda facts: facts.update(runs=["1; DROP"]), "reads 1"),
        (MANIFEST, lambda facts: facts.update(methods=["one"]), "does not name its methods"),
        (MANIFEST, lambda facts: facts.update(format="zip"), "not an archive of results"),
    ],
)
def test_what_does_not_fit_is_refused_and_leaves_nothing(
    frozen: Path, name: str, change: Callable[[Any], object], said: str
) -> None:
    changed(frozen, name, change)
    with pytest.raises(FormatError) as refused:
        load.load_archive(frozen)
    assert said in str(refused.value)
    assert not Project.objects.exists()


@pytest.mark.parametrize(
    ("named", "said"),
    [(None, "does not name its tables"), ([["a"]], "does not name"), (["b"], "'b' is not a table")],
)
def test_an_archive_with_other_tables_than_ours_is_told_and_not_compared(
    frozen: Path, named: Any, said: str
) -> None:
    changed(frozen, MANIFEST, lambda facts: facts.update(tables=named))
    with pytest.raises(CommandError, match=said):
        call_command("thaw_results", frozen, compare=True)


@pytest.mark.parametrize(
    "content",
    [b"", b"[1]", b"[" * 100_000, b'{"columns": [["a"]], "rows": []}', b'{"columns": ["a"]}'],
)
def test_a_file_of_figures_that_is_no_table_is_told(content: bytes) -> None:
    with pytest.raises(FormatError, match=r"figures/cost\.json: is not a table of figures"):
        comparison._read_table("figures/cost.json", lambda: io.BytesIO(content))


def test_a_line_that_is_no_row_is_refused_with_its_place(frozen: Path) -> None:
    with zipfile.ZipFile(frozen) as held:
        files = {one: held.read(one) for one in held.namelist() if one != MANIFEST}
    stream = io.BytesIO()
    sealing = ArchiveWriter(stream)
    for one, content in files.items():
        sealing.put(one, b"[1]\n" if one == "data/labels.jsonl" else content)
    sealing.put("data/labels.jsonl", b'{"a": NaN}\n')
    sealing.seal({"format": "blindspot-results", "version": 1, "runs": [], "project": "fbi"})
    frozen.write_bytes(stream.getvalue())
    with pytest.raises(FormatError, match=r"data/labels\.jsonl, line 1"):
        load.load_archive(frozen)
