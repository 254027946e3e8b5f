"""Exports that are asked for in the browser, and made by a worker."""

import csv
import json
import re
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from annotation.items import taxonomy
from annotation.jobs import job_queue, subprocesses
from annotation.jobs.subprocesses import ProgramResult
from annotation.models import Event, Item, Job, Project
from formats import fbi
from formats.readers import FORMATS
from formats.rows import Row
from judging.exporting import jobs
from judging.jobs import worker
from tests.annotation.own_categories import with_own_categories
from tests.builders import TEXTS, Cast, cast, make_item, make_resolution, make_revision

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("in_this_program")]
PAGE = "/projects/fbi/exports/"
# An item of the published archive, which others of its files may repeat.
SAME = "score-invariant/score_invariant:lf-7_x"


@pytest.fixture
def people(settings: Any, tmp_path: Path) -> Cast:
    settings.VAR_DIR = tmp_path
    made = cast()
    Project.objects.filter(pk=made.project.pk).update(slug="fbi")
    for key in ("a", "b", "=c"):
        make_item(made.project, key)
    make_resolution(Item.objects.get(key="b"))
    return made


@pytest.fixture
def lead(people: Cast) -> Client:
    return signed_in(people, "lead")


def signed_in(people: Cast, person: str) -> Client:
    client = Client()
    account = people.account(person)
    assert account
    client.force_login(account)
    return client


def ask(client: Client, **asked: str) -> Job:
    asked = {"table": "items", "format": "jsonl", **asked}
    assert client.post(PAGE, asked).status_code == 302
    return Job.objects.filter(kind=jobs.KIND).latest("pk")


def made(client: Client, **asked: str) -> str:
    job = ask(client, **asked)
    assert jobs.run_job(job.pk)
    taken = client.get(f"{PAGE}{job.result['number']}/")
    assert "attachment" in taken.headers["Content-Disposition"]
    return taken.getvalue().decode()


def test_a_lead_asks_for_an_export_and_takes_it(lead: Client) -> None:
    job = ask(lead)
    assert "Waiting for a worker" in lead.get(PAGE).content.decode()
    assert lead.get(f"{PAGE}1/").status_code == 302
    assert jobs.due_job_ids(timezone.now()) == [job.pk]
    assert jobs.run_job(job.pk)
    taken = lead.get(f"{PAGE}1/")
    assert "fbi-items-1.jsonl" in taken.headers["Content-Disposition"]
    rows = [json.loads(line) for line in taken.getvalue().splitlines()]
    assert [row["key"] for row in rows] == ["a", "b", "=c"]
    assert "Download" in lead.get(PAGE, headers={"HX-Request": "true"}).content.decode()


def test_the_page_says_what_each_table_and_each_kind_of_zip_is(lead: Client) -> None:
    shown = lead.get(PAGE).content.decode()
    told = re.findall(r'<option value="([a-z]+)">\1: ', shown)
    assert {*jobs.EXPORT_TABLES, "fbi", "hub"} == {*told}


def test_how_far_an_export_is_shows_as_a_bar(lead: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "PROGRESS_ROWS", 2)
    job, lines = ask(lead), list[int]()
    assert job_queue.take_lease(job.pk, jobs.KIND)
    assert jobs.write_export(job, lines.append) == 3
    assert lines == [0, 2, 3]
    jobs._note_progress(job, "2")
    jobs._note_progress(job, "no number")
    page = lead.get(PAGE).content.decode()
    assert '<progress class="meter" max="3" value="2"' in page
    assert "2 of 3</span>" in page


@pytest.mark.parametrize("table", jobs.EXPORT_TABLES)
def test_the_rows_of_a_table_are_counted_beforehand(lead: Client, people: Cast, table: str) -> None:
    make_revision(Item.objects.get(key="a"), {"gold": "8"}, author=people.lead)
    job = ask(lead, table=table)
    count = jobs.write_export(job)
    assert Job.objects.get().total in (None, count)


def test_items_are_narrowed_as_on_their_page(lead: Client) -> None:
    rows = made(lead, resolution="valid", annotator="", search="").splitlines()
    assert [json.loads(row)["key"] for row in rows] == ["b"]
    assert "resolution: valid" in lead.get(PAGE).content.decode()


def test_control_and_qualification_items_are_left_out_unless_asked_for(lead: Client) -> None:
    Item.objects.filter(key="a").update(purpose="probe")
    Item.objects.filter(key="=c").update(purpose="practice")
    assert [json.loads(row)["key"] for row in made(lead).splitlines()] == ["b"]
    assert "with control" not in lead.get(PAGE).content.decode()
    rows = made(lead, with_control="on").splitlines()
    assert [json.loads(row)["key"] for row in rows] == ["a", "b", "=c"]
    assert "with control and qualification items" in lead.get(PAGE).content.decode()


def test_the_layout_of_study_000_is_offered_only_where_it_has_places(
    lead: Client, people: Cast
) -> None:
    offered = '<option value="fbi">'
    assert offered in lead.get(PAGE).content.decode()
    with_own_categories(people.project, ("made-up-citation", "grammar"))
    assert offered not in lead.get(PAGE).content.decode()


def test_formulas_are_defused_and_every_row_bears_the_canary(lead: Client) -> None:
    rows = list(csv.DictReader(made(lead, format="csv", canary="on").splitlines()))
    assert [row["key"] for row in rows] == ["a", "b", "'=c"]
    [canary] = {row["canary"] for row in rows}
    assert "Do not train models on it" in canary
    assert canary in lead.get(PAGE).content.decode()
    assert canary not in made(lead, format="csv", canary="on")
    assert "canary" not in made(lead, format="csv")


def test_the_audit_says_who_made_which_export(lead: Client, people: Cast) -> None:
    made(lead, resolution="valid")
    event = Event.objects.get(kind="export")
    assert (event.member, event.subject) == (people.lead, "items")
    assert (event.data["rows"], event.data["filters"]) == (1, {"resolution": "valid"})


def test_of_exports_that_wait_the_oldest_comes_first(lead: Client) -> None:
    first, second = ask(lead), ask(lead)
    assert jobs.due_job_ids(timezone.now()) == [first.pk, second.pk]


def test_a_file_can_be_taken_for_some_days_and_is_deleted_then(
    lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(lead)
    job, later = Job.objects.get(), timezone.now() + jobs.RETENTION
    assert jobs.due_job_ids(timezone.now()) == []
    monkeypatch.setattr(timezone, "now", lambda: later)
    assert lead.get(f"{PAGE}1/").status_code == 302
    assert jobs.due_job_ids(later) == [job.pk]
    assert jobs.run_job(job.pk)
    assert not jobs.get_path(job).exists()
    assert jobs.due_job_ids(later) == []
    assert "the file is deleted" in lead.get(PAGE).content.decode()


def test_an_export_that_is_cancelled_leaves_nothing(
    lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, write = ask(lead), jobs.write_export

    def cancelled_meanwhile(*given: Any) -> int:
        lead.post(f"{PAGE}1/cancel/")
        return write(*given)

    monkeypatch.setattr(jobs, "write_export", cancelled_meanwhile)
    assert not jobs.run_job(job.pk)
    assert not jobs.get_path(job).exists()
    assert jobs.due_job_ids(timezone.now()) == []
    assert not Event.objects.filter(kind="export").exists()
    assert "Cancelled by" in lead.get(PAGE).content.decode()


def test_what_is_done_cannot_be_cancelled(lead: Client) -> None:
    made(lead)
    page = lead.post(f"{PAGE}1/cancel/", follow=True).content.decode()
    assert "finished before it could be cancelled" in page
    assert "Download" in page


def test_researchers_have_tables_of_results_and_no_others(people: Cast, lead: Client) -> None:
    client = signed_in(people, "researcher")
    asked = [set(one.get(PAGE).context["form"].fields) for one in (client, lead)]
    offered = dict(client.get(PAGE).context["form"].fields["table"].choices)
    assert list(offered) == ["runs", "calls", "outcomes"]
    # What is of items alone is asked of those alone who have them.
    assert asked[1] - asked[0] == {"snapshot", "licence", "with_control"}
    assert client.post(PAGE, {"table": "items", "format": "csv"}).status_code == 422
    made(lead)
    assert "None yet." in client.get(PAGE).content.decode()
    assert client.get(f"{PAGE}1/").status_code == 302
    assert made(client, table="outcomes", format="csv").startswith("run,endpoint,")


def test_what_a_worker_is_at_is_left_to_it_until_it_is_gone(lead: Client) -> None:
    job = ask(lead)
    assert job_queue.take_lease(job.pk, jobs.KIND)
    assert not jobs.run_job(job.pk)
    assert jobs.due_job_ids(timezone.now() + job_queue.LEASE_TIME + timedelta(seconds=1)) == [
        job.pk
    ]


def test_a_file_is_not_deleted_by_a_worker_that_comes_late(lead: Client) -> None:
    made(lead)
    assert not jobs.run_job(Job.objects.get().pk)
    assert lead.get(f"{PAGE}1/").status_code == 200


@pytest.mark.parametrize(
    "ended, state, said",
    [
        (ProgramResult(1, "No space is left."), "failed", "No space is left."),
        (ProgramResult(None, ""), "waiting", "Waiting for a worker"),
    ],
)
def test_an_end_that_was_not_wanted_leaves_no_file(
    lead: Client, monkeypatch: pytest.MonkeyPatch, ended: Any, state: str, said: str
) -> None:
    job = ask(lead)

    def run(*_: Any, **__: Any) -> Any:
        jobs.write_export(job)
        return ended

    monkeypatch.setattr(subprocesses, "run_program", run)
    assert not jobs.run_job(job.pk)
    assert not jobs.get_path(job).exists()
    assert (Job.objects.get().state, said in lead.get(PAGE).content.decode()) == (state, True)


def test_a_worker_that_stood_still_leaves_the_file_of_who_took_over(
    lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes back while the other one writes the file, or once that has ended."""
    job = ask(lead)

    def come_back_late(*_: Any, **__: Any) -> Any:
        later = timezone.now() + job_queue.LEASE_TIME + timedelta(seconds=1)
        other = job_queue.take_lease(job.pk, jobs.KIND, now=later)
        assert other
        jobs.write_export(other)
        if ends:
            jobs._finish(other, ProgramResult(0, ""))
        return ProgramResult(0, "")

    monkeypatch.setattr(subprocesses, "run_program", come_back_late)
    for ends in (False, True):
        Job.objects.filter(pk=job.pk).update(state=Job.State.WAITING)
        assert not jobs.run_job(job.pk)
        assert jobs.get_path(job).exists()
        assert (Job.objects.get().finished_at is not None) == ends
    assert Event.objects.filter(kind="export").count() == 1


def test_the_layout_of_a_study_is_for_items_and_a_zip(lead: Client) -> None:
    page = lead.post(PAGE, {"table": "labels", "format": "fbi"})
    assert (page.status_code, "for the table of items" in page.content.decode()) == (422, True)
    job = ask(lead, format="fbi")
    Item.objects.update(category="own")
    with pytest.raises(CommandError, match="The export failed: row 1, column"):
        call_command("make_export", str(job.pk))
    assert jobs.get_path(job).suffix == ".zip"


def test_the_layout_of_study_000_holds_what_its_files_can_say(lead: Client, people: Cast) -> None:
    Item.objects.update(purpose="practice")  # those of the other tests
    labelled = [
        ("valid", "number-errors", "valid"),
        ("invariant", "number-errors", "score-invariant"),
        ("rejected", "number-errors", "invalid"),
        ("unlabelled", "number-errors", ""),
        ("paraphrase", "score-invariant", "score-invariant"),
        ("found", "score-invariant", "valid"),
        ("bold", "formatting", "score-invariant"),
        ("broken", "formatting", "valid"),
        (SAME, "score-invariant", "score-invariant"),
        ("long-form/formatting-errors:lf-7_x", "formatting", "score-invariant"),
        ("again", "formatting", "score-invariant"),
    ]
    for key, category, value in labelled:
        item = make_item(people.project, key)
        Item.objects.filter(pk=item.pk).update(source_ability="long-form", category=category)
        if value:
            make_resolution(item, value=value)
    repeats = Item.objects.filter(key__in=["long-form/formatting-errors:lf-7_x", "again"])
    original = Item.objects.get(key=SAME)
    repeats.update(duplicate_of=original)
    corrected = make_item(
        people.project, "long-form/superficial-errors:lf-7_x", duplicate_of=original
    )
    Item.objects.filter(pk=corrected.pk).update(source_ability="long-form", category="superficial")
    make_resolution(corrected, value="score-invariant")
    make_revision(corrected, TEXTS | {"perturbed": "Six legs."}, author=people.lead)
    job = ask(lead, format="fbi")
    assert jobs.run_job(job.pk)
    found = [row.values for row in FORMATS["fbi"].read(jobs.get_path(job)) if isinstance(row, Row)]
    assert sorted((row["category"], row["origin"], row["repeats"]) for row in found) == [
        ("formatting", "generated", ""),  # bold
        ("formatting", "generated", SAME),
        ("number-errors", "generated", ""),
        ("score-invariant", "paraphrase", ""),
        ("score-invariant", "relabelled", ""),
        ("score-invariant", "relabelled", ""),  # what the duplicate repeats
    ]
    page = lead.get(PAGE).content.decode()
    assert "6 items left out: this layout only has places for valid errors" in page
    path, said = jobs.get_path(job).with_name("out.zip"), StringIO()
    call_command("export", "items", project="fbi", format="fbi", output=path, stderr=said)
    assert said.getvalue().endswith("valid errors and score-invariant changes.\n")
    assert path.read_bytes() == jobs.get_path(job).read_bytes()


def test_the_layout_knows_which_categories_of_its_study_cost_nothing() -> None:
    assert sorted(taxonomy.load_shipped().with_effect("none")) == sorted(fbi.INVARIANT)


def test_a_filter_that_no_page_offers_is_refused(lead: Client) -> None:
    asked = {"table": "items", "format": "csv", "flag": "blue"}
    assert lead.post(PAGE, asked).status_code == 422
    assert not Job.objects.filter(kind=jobs.KIND).exists()


def test_a_filter_by_a_category_that_was_removed_meanwhile_does_not_export_all_items(
    lead: Client, people: Cast
) -> None:
    job = ask(lead, category="wrong-formula")
    with_own_categories(people.project)
    with pytest.raises(CommandError, match="The filters no longer fit the project"):
        call_command("make_export", str(job.pk))


def test_the_program_writes_only_what_waits(lead: Client) -> None:
    made(lead)
    with pytest.raises(CommandError, match="No export"):
        call_command("make_export", str(Job.objects.get().pk))


def test_every_worker_looks_for_exports() -> None:
    assert "export job" in {kind.name for kind in worker.list_kinds()}
