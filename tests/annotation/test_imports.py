"""Files that leads send in the browser: looked at, checked, imported by a worker, mended."""

import csv
import io
import json
import re
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from annotation import importing
from annotation.importing import jobs, preview, program, receive, upload_files
from annotation.jobs import subprocesses
from annotation.jobs.job_queue import LEASE_TIME
from annotation.models import Event, Item, Job, Project
from formats.writers import write_file
from judging.jobs import worker
from tests.annotation.own_categories import with_own_categories
from tests.builders import TEXTS, Cast, browser_of, cast, make_item, make_resolution
from tests.judging.builders_judging import api_client

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("in_this_program")]
PAGE = "/projects/fbi/import/"
HEADER = ["Item ID", "Error type", "question", "Reference", "Changed answer", "weight"]
CELLS = ["entity", TEXTS["prompt"], TEXTS["gold"], TEXTS["perturbed"], "3"]


@pytest.fixture
def people(settings: Any, tmp_path: Path) -> Cast:
    settings.VAR_DIR = tmp_path
    made = cast()
    Project.objects.filter(pk=made.project.pk).update(slug="fbi")
    return made


@pytest.fixture
def lead(people: Cast) -> Client:
    return browser_of(people.lead)


def table(*rows: list[str], header: list[str] = HEADER) -> bytes:
    stream = io.StringIO()
    csv.writer(stream).writerows([header, *rows])
    return stream.getvalue().encode()


def keyed(*keys: str) -> bytes:
    return table(*([key, *CELLS] for key in keys))


def send(client: Client, content: bytes, name: str = "items.csv", **said: str) -> Job:
    file = SimpleUploadedFile(name, content)
    answer = client.post(PAGE, {"file": file, **said})
    assert answer.status_code == 302, answer.content.decode()
    return Job.objects.filter(kind=jobs.JOB_KIND).latest("pk")


def refused(client: Client, content: bytes, name: str = "items.csv", **said: str) -> str:
    answer = client.post(PAGE, {"file": SimpleUploadedFile(name, content), **said})
    assert (answer.status_code, Job.objects.count()) == (422, 0)
    assert list(upload_files.uploads_folder().iterdir()) == []
    return answer.content.decode()


def page(client: Client, job: Job) -> str:
    return client.get(f"{PAGE}{job.result['number']}/").content.decode()


def imported(client: Client, job: Job) -> dict[str, Any]:
    assert client.post(f"{PAGE}{job.result['number']}/", {"import": "yes"}).status_code == 302
    assert jobs.due_job_ids(timezone.now()) == [job.pk]
    assert jobs.run_job(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.FINISHED
    return {name: job.result["report"][name] for name in ("new", "unchanged", "conflicts", "bad")}


def test_a_file_with_other_column_names_is_guessed_shown_checked_and_imported(
    lead: Client, people: Cast
) -> None:
    job = send(lead, keyed("a", "b"))
    shown = page(lead, job)
    assert job.result["columns"]["gold"] == "Reference"
    assert "Saved with each item unchanged: <bdi>weight</bdi>" in shown
    assert "<ins" in shown
    assert "Import 2 items" in shown
    assert not Item.objects.exists()
    assert imported(lead, job) == {"new": 2, "unchanged": 0, "conflicts": 0, "bad": 0}
    item = Item.objects.get(key="a")
    assert (item.category, item.fields, item.slots.count()) == ("entity", {"weight": "3"}, 1)
    assert item.revision().texts == TEXTS
    event = Event.objects.get(kind="import")
    assert (event.member, event.data["new"]) == (people.lead, 2)
    assert "See the items" in page(lead, job)


def test_a_column_that_need_not_be_is_shown_where_it_was_guessed_and_read_with_the_items(
    lead: Client,
) -> None:
    cells = [*CELLS[:-1], "Eight became six."]
    shown = page(lead, send(lead, table(["a", *cells], header=[*HEADER[:-1], "Change"])))
    before, rest = shown.split("Optional columns")
    assert 'name="columns-of-claim"' in before
    assert 'name="columns-of-claim"' not in rest
    assert "Eight became six." in rest


def test_where_people_rate_the_page_asks_which_items_belong_together(lead: Client) -> None:
    Project.objects.update(task_type=importing.load_task_type_version("rating"))
    rows = [[key, "Which animal?", "A heron", "A bird"] for key in ("a", "b")]
    job = send(lead, table(*rows, header=["key", "prompt", "gold", "response"]))
    shown = page(lead, job)
    before, _ = shown.split("Optional columns")
    assert "Without a column, each item counts as its own question" in before
    assert "2 new items are each their own source question" in shown
    assert imported(lead, job)["new"] == 2
    assert Item.objects.values("cluster").distinct().count() == 2


def test_a_decided_answer_off_its_scale_is_missing_and_told_by_its_row(lead: Client) -> None:
    Project.objects.update(task_type=importing.load_task_type_version("rating"))
    texts = {"prompt": "Which animal?", "gold": "A heron", "response": "A bird"}
    numbers = {"naturalness": "3", "relatedness": "9", "correctness": "2"}
    job = send(lead, table(["a", *texts.values(), *numbers.values()],
                           header=["key", *texts, *numbers]))  # fmt: skip
    columns = {f"columns-of-{name}": name for name in ("key", *texts)} | {"columns-accept": "on"}
    assert lead.post(f"{PAGE}{job.result['number']}/", columns).status_code == 302
    shown = page(lead, job)
    assert "Missing answers" in shown
    assert "Import 1 item" in shown
    assert "Rows that cannot be taken" not in shown
    assert imported(lead, job) == {"new": 1, "unchanged": 0, "conflicts": 0, "bad": 0}
    said = api_client(job.member).get(f"/api/v1/projects/fbi/imports/{job.result['number']}/")
    why = {"line": 2, "field": "relatedness", "reason": "9 is outside the scale, so this answer is"
           " missing.", "row": 2, "key": "a"}  # fmt: skip
    assert (said.json()["report"]["off_scale"], said.json()["report"]["missing"]) == (
        1, [{"file": "items.csv", **why}]
    )  # fmt: skip
    told = lead.get(f"{PAGE}{job.result['number']}/problems.csv").getvalue().decode()
    assert 'missing,items.csv,2,relatedness,"9 is outside the scale' in told
    assert Item.objects.get().fields == {"relatedness": "9"}


def test_the_same_file_again_changes_nothing_and_says_so(lead: Client) -> None:
    imported(lead, send(lead, keyed("a", "b")))
    again = send(lead, keyed("a", "b"), "again.csv")
    assert "An import would change nothing" in page(lead, again)
    assert imported(lead, again) == {"new": 0, "unchanged": 2, "conflicts": 0, "bad": 0}
    assert "Nothing changed" in page(lead, again)
    assert Item.objects.count() == 2


def test_bad_rows_are_named_and_come_as_a_file_that_can_be_sent_once_mended(lead: Client) -> None:
    rows = [["a", *CELLS], ["b", "none", *CELLS[1:]], ["", *CELLS], ["d", "few"]]
    job = send(lead, table(*rows))
    shown = page(lead, job)
    assert "“none” is no category of the project." in shown
    assert "the row has 2 fields, the header 6" in shown
    assert imported(lead, job)["bad"] == 3
    taken = lead.get(f"{PAGE}1/rows/")
    assert 'filename="items-to-mend.csv"' in taken.headers["Content-Disposition"]
    mended = list(csv.reader(io.StringIO(taken.getvalue().decode())))
    assert mended[1:] == rows[1:]
    told = list(csv.DictReader(io.StringIO(lead.get(f"{PAGE}1/problems.csv").getvalue().decode())))
    assert [(row["place"], row["line"], row["field"]) for row in told] == [
        ("1", "3", "Error type"), ("2", "4", "Item ID"), ("3", "5", ""),
    ]  # fmt: skip
    assert {row["file"] for row in told} == {"items.csv"}
    again = send(lead, table(*([key, *CELLS] for key in "bcd")), "mended.csv")
    assert imported(lead, again)["new"] == 3


def test_what_is_here_with_other_texts_is_named_and_stays(lead: Client) -> None:
    imported(lead, send(lead, keyed("a")))
    other = send(lead, table(["a", *CELLS[:2], "Other gold.", *CELLS[3:]]))
    assert "exists with other texts" in page(lead, other)
    assert "Import " not in page(lead, other).split("</dl>")[1].split("Rows that")[0]
    assert Item.objects.get().revision().texts == TEXTS


def test_a_key_that_stands_twice_in_a_file_is_told_so(lead: Client) -> None:
    other = ["a", *CELLS[:2], "Other gold.", *CELLS[3:]]
    shown = page(lead, send(lead, table(["a", *CELLS], other)))
    assert "exists with other texts, in the project or in an earlier row" in shown
    assert "is that of an item or of an earlier row with other texts or values" in shown


def test_a_page_that_shows_an_earlier_check_does_not_start_the_import(lead: Client) -> None:
    job = send(lead, keyed("a"))
    shown = re.findall(r'name="preview" value="(\d+)"', page(lead, job))
    swapped = {**job.result["columns"], "gold": "Changed answer", "perturbed": "Reference"}
    jobs.choose_columns(job, swapped, accept=True)
    said = {"import": "yes", "preview": shown[0]}
    answer = lead.post(f"{PAGE}1/", said, follow=True).content.decode()
    assert "checked again since this page was loaded" in answer
    assert jobs.awaits_start(Job.objects.get())
    said["preview"] = re.findall(r'name="preview" value="(\d+)"', answer)[0]
    lead.post(f"{PAGE}1/", said)
    assert Job.objects.get().result["step"] == upload_files.STORE


def test_columns_that_cannot_be_guessed_are_asked_for_and_remembered(lead: Client) -> None:
    header = ["nr", "Fehler", "Frage", "Gut", "Schlecht", "weight"]
    job = send(lead, table(["a", *CELLS], header=header))
    assert job.result["step"] == upload_files.CHOOSE
    assert "Choose a column for: " in page(lead, job)
    assert lead.post(f"{PAGE}1/", {"columns-of-key": "nr"}).status_code == 422
    names = ("key", "category", "prompt", "gold", "perturbed")
    chosen = {f"columns-of-{name}": column for name, column in zip(names, header, strict=False)}
    assert lead.post(f"{PAGE}1/", chosen).status_code == 302
    assert imported(lead, job)["new"] == 1
    assert send(lead, table(["b", *CELLS], header=header)).result["report"]["new"] == 1


@pytest.mark.parametrize("separator", [";", "\t"])
def test_columns_that_are_separated_otherwise_are_told_by_the_first_row(
    lead: Client, separator: str
) -> None:
    stream = io.StringIO()
    rows = [[*HEADER[:-1], "a, b"], ["a", *CELLS], ["b", "none", *CELLS[1:]]]
    csv.writer(stream, delimiter=separator).writerows(rows)
    job = send(lead, stream.getvalue().encode("utf-8-sig"))
    assert job.result["found"] == rows[0]
    assert imported(lead, job) == {"new": 1, "unchanged": 0, "conflicts": 0, "bad": 1}
    mend = lead.get(f"{PAGE}1/rows/").getvalue().decode("utf-8-sig")
    assert list(csv.reader(io.StringIO(mend), delimiter=separator)) == [rows[0], rows[2]]
    assert send(lead, mend.encode(), "again.csv").result["found"] == rows[0]


def test_a_column_that_bears_a_name_and_is_not_chosen_is_not_taken(lead: Client) -> None:
    content = table(["a", *CELLS, "x" * 99], header=[*HEADER, "origin"])
    job = send(lead, content)
    assert job.result["report"]["bad"] == 1
    chosen = {f"columns-of-{name}": column for name, column in job.result["columns"].items()}
    lead.post(f"{PAGE}1/", chosen | {"columns-of-origin": ""})
    assert imported(lead, job)["new"] == 1
    assert Item.objects.get().origin == ""


def test_names_inside_objects_can_be_chosen(lead: Client) -> None:
    row = {"meta": {"id": "a"}, "category": "entity", **TEXTS}
    job = send(lead, json.dumps(row).encode(), "items.jsonl")
    chosen = {f"columns-of-{name}": name for name in ("category", *TEXTS)}
    lead.post(f"{PAGE}1/", chosen | {"columns-of-key": "meta.id"})
    assert imported(lead, job)["new"] == 1
    assert Item.objects.get().key == "a"


def test_a_zip_of_tables_is_imported_and_its_bad_rows_come_as_a_zip(lead: Client) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("one.csv", keyed("a", "b"))
        archive.writestr("more/two.csv", keyed("c", ""))
    job = send(lead, stream.getvalue(), "all.zip")
    assert jobs.run_job(job.pk)
    assert imported(lead, job) == {"new": 3, "unchanged": 0, "conflicts": 0, "bad": 1}
    with zipfile.ZipFile(io.BytesIO(lead.get(f"{PAGE}1/rows/").getvalue())) as mend:
        assert mend.namelist() == ["more/two.csv"]
        assert list(csv.reader(io.StringIO(mend.read("more/two.csv").decode())))[1] == ["", *CELLS]
    assert "more/two.csv" in page(lead, job)


def test_parquet_in_a_zip_is_imported_and_mended_as_lines(lead: Client, tmp_path: Path) -> None:
    """Some seconds: each look into the file starts a process of its own."""
    columns = ("key", "category", "prompt", "gold", "perturbed")
    good = dict(zip(columns, ["a", *CELLS], strict=False))
    write_file("parquet", [good, {**good, "key": ""}], columns, tmp_path / "a.parquet", {})
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.write(tmp_path / "a.parquet", "data/a.parquet")
    job = send(lead, stream.getvalue(), "all.zip")
    assert jobs.run_job(job.pk)
    assert imported(lead, job) == {"new": 1, "unchanged": 0, "conflicts": 0, "bad": 1}
    with zipfile.ZipFile(io.BytesIO(lead.get(f"{PAGE}1/rows/").getvalue())) as mend:
        [name] = mend.namelist()
        assert json.loads(mend.read(name)) == {**good, "key": ""}
    assert name == "data/a.parquet.jsonl"


def workbook(*rows: list[str], sheets: tuple[str, ...] = ()) -> bytes:
    book, stream = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    for name in sheets:
        book.create_sheet(name)
    book.save(stream)
    return stream.getvalue()


def test_a_workbook_is_imported_and_its_bad_rows_come_as_csv(lead: Client) -> None:
    rows = (HEADER, ["a", *CELLS], [], ["b", "none", *CELLS[1:]])
    job = send(lead, workbook(*rows, sheets=("Notes",)), "items.xlsx")
    shown = page(lead, job)
    assert "The first sheet, “Sheet”, was read. Not read: “Notes”." in shown
    assert "items.xlsx" in shown
    [problem] = job.result["report"]["problems"]
    assert (problem["row"], problem["key"], problem["file"]) == (4, "b", "items.xlsx")
    assert imported(lead, job) == {"new": 1, "unchanged": 0, "conflicts": 0, "bad": 1}
    mend = lead.get(f"{PAGE}1/rows/")
    assert "items-to-mend.csv" in mend.headers["Content-Disposition"]
    assert list(csv.reader(io.StringIO(mend.getvalue().decode())))[1] == ["b", "none", *CELLS[1:]]
    assert Item.objects.get().revision().texts == TEXTS


def test_a_workbook_in_a_zip_is_imported_if_it_has_one_sheet(lead: Client) -> None:
    """Some seconds: each look into the file starts a process of its own."""

    def packed(**sheets: tuple[str, ...]) -> bytes:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("a.xlsx", workbook(HEADER, ["a", *CELLS], **sheets))
        return stream.getvalue()

    assert "a.xlsx: has more than one sheet" in refused(lead, packed(sheets=("Notes",)), "all.zip")
    job = send(lead, packed(), "all.zip")
    assert jobs.run_job(job.pk)
    assert imported(lead, job) == {"new": 1, "unchanged": 0, "conflicts": 0, "bad": 0}


def test_a_json_list_is_imported(lead: Client) -> None:
    rows = [dict(zip(HEADER, [key, *CELLS], strict=True)) for key in ("a", "")]
    job = send(lead, json.dumps(rows, indent=1).encode(), "items.json")
    [problem] = job.result["report"]["problems"]
    assert (problem["row"], problem["file"]) == (2, "items.json")
    assert imported(lead, job) == {"new": 1, "unchanged": 0, "conflicts": 0, "bad": 1}


@pytest.mark.parametrize(
    "content, name, said, told",
    [
        (b"PK", "items.xls", {}, "Save the spreadsheet as XLSX or CSV"),
        (b"PK", "items.xlsx", {}, "items.xlsx: is not an XLSX workbook, or has a password"),
        (b"{}}", "items.json", {}, "items.json: is neither a list nor lines of objects"),
        (b"", "items.csv", {}, "The file is empty"),
        (b"key\n\xff\n", "items.csv", {}, "items.csv, line 2: not UTF-8"),
        (b'key\n"' + b"a" * 1_100_000 + b'"\n', "items.csv", {}, "longer than 1,000,000 bytes"),
        (b"no zip", "items.zip", {}, "items.zip: is not a zip archive"),
        (keyed("a"), "items.csv", {"password": "x"}, "Only an archive (.zip) has a password"),
        (keyed("a"), "items.csv", {"layout": "excel"}, "Select a valid choice"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words_and_not_kept(
    lead: Client, content: bytes, name: str, said: dict[str, str], told: str
) -> None:
    assert told in refused(lead, content, name, **said)


def test_files_of_a_study_are_offered_only_where_its_categories_are(lead: Client) -> None:
    assert "The archive of study 000" in lead.get(PAGE).content.decode()
    assert "Data of study 001" not in lead.get(PAGE).content.decode()
    with_own_categories(Project.objects.get(slug="fbi"))
    assert "study 000" not in lead.get(PAGE).content.decode()


def test_archives_that_climb_out_or_burst_are_refused(lead: Client) -> None:
    for name, text in (
        ("../../evil.csv", "key\na\n"),
        ("a.csv", "key\n" + f"{'a' * 900_000}\n" * 12),
    ):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, text)
        told = refused(lead, stream.getvalue(), "a.zip")
        assert "lies outside the archive" in told or "unpacks to more than" in told


def test_few_files_are_read_at_once_so_that_pages_are_answered_meanwhile(
    lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preview, "WAIT_SECONDS", 0.01)
    with preview.take_turn("a"), preview.take_turn("b"):
        assert "items.csv: other large files are being read" in refused(lead, keyed("a"))
    job = send(lead, keyed("a"))
    with preview.take_turn("a"), preview.take_turn("b"):
        busy = page(lead, job)
    assert "<ins" not in busy
    assert "Other large files are being read. Reload the page" in busy
    assert "<ins" in page(lead, job)


def test_a_file_that_is_too_large_is_not_even_taken(
    lead: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.IMPORT_BYTES = 3_000_000
    monkeypatch.setattr(receive, "receive_file", None)
    assert "is larger than 3 MB" in refused(lead, b"a" * 3_000_001)


def test_files_that_are_too_large_together_are_not_taken(lead: Client, settings: Any) -> None:
    settings.IMPORT_BYTES = 3_000_000
    files = [SimpleUploadedFile(f"{number}.csv", b"a" * 1_600_000) for number in range(2)]
    answer = lead.post(PAGE, {"file": files})
    assert "is larger than 3 MB" in answer.content.decode()


@pytest.mark.parametrize(
    ("person", "address"),
    [
        ("anonymous", "/accounts/login/"),
        ("anonymous", PAGE),
        ("anonymous", "/api/v1/projects/fbi/imports/"),
        ("lead", "/projects/fbi/settings/"),
        ("lead", "/nowhere/"),
    ],
)
def test_a_file_that_nobody_asked_for_is_never_stored(
    people: Cast, lead: Client, person: str, address: str
) -> None:
    client = lead if person == "lead" else Client()
    sent = {"file": SimpleUploadedFile("items.csv", keyed("a")), "password": "x"}
    request = client.post(address, sent).wsgi_request
    assert not request.FILES
    assert request.POST["password"] == "x"


def test_a_file_with_too_many_rows_is_refused_before_any_is_stored(
    lead: Client, settings: Any
) -> None:
    settings.IMPORT_ROWS = 2
    job = send(lead, keyed("a", "b", "c"))
    assert "items.csv: has more than 2 rows. Split it." in page(lead, job)
    assert send(lead, keyed("a", "b")).result["report"]["new"] == 2


def test_a_fault_at_the_end_of_a_file_stores_nothing(lead: Client) -> None:
    job = send(lead, keyed(*(f"k{n}" for n in range(300))) + b'"never closed')
    assert (job.state, Item.objects.exists()) == (Job.State.FAILED, False)
    assert "items.csv, line 302" in page(lead, job)


HOSTILE = [
    "<script>alert(1)</script>",
    "\u202egnp.exe\u2066",
    "=HYPERLINK(1)",
    "{{ request }}{% debug %}",
    "\x1b[31mred",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_texts_wherever_they_stand(lead: Client, text: str) -> None:
    header = [*HEADER, text]
    rows = [["a", CELLS[0], text, text, text + "!", "3", text], ["b", text, *CELLS[1:], text]]
    job = send(lead, table(*rows, header=header), f"{text.replace('/', '')}.csv")
    shown = page(lead, job) + lead.get(PAGE).content.decode()
    assert "<script>alert" not in shown
    assert imported(lead, job) == {"new": 1, "unchanged": 0, "conflicts": 0, "bad": 1}
    assert Item.objects.get().revision().texts["gold"] == text
    page(lead, job)
    problems = lead.get(f"{PAGE}1/problems.csv").getvalue().decode()
    assert not [line for line in problems.splitlines() if ",=HYP" in line]


def test_rows_with_a_null_character_are_bad_and_the_others_come_in(lead: Client) -> None:
    job = send(lead, table(["a", *CELLS], ["b", *CELLS[:-1], "\0"]))
    assert (job.result["report"]["new"], job.result["report"]["bad"]) == (1, 1)


def test_a_large_file_is_checked_by_a_worker(lead: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr(jobs, "MAX_IMMEDIATE_BYTES", 10)
    job = send(lead, keyed("a"))
    assert "Waiting for a worker" in page(lead, job)
    assert jobs.due_job_ids(timezone.now()) == [job.pk]
    part = lead.get(f"{PAGE}1/", headers={"HX-Request": "true"}).content.decode()
    assert 'aria-busy="true"' in part
    assert "<html" not in part
    assert jobs.run_job(job.pk)
    assert jobs.due_job_ids(timezone.now()) == []
    assert "Import 1 item<" in page(lead, job)


def test_a_small_file_of_many_short_rows_is_checked_by_a_worker(
    lead: Client, monkeypatch: Any
) -> None:
    monkeypatch.setattr(jobs, "MAX_IMMEDIATE_LINES", 3)
    assert "Import 2 items" in page(lead, send(lead, keyed("a", "b")))
    assert "Waiting for a worker" in page(lead, send(lead, keyed("a", "b", "c")))


def told_where_nothing_is(people: Cast) -> dict[str, str]:
    """What is said of imports where a project without items, or its queue, has nothing to show."""
    found = {}
    for member in (people.annotator, people.lead):
        client = Client()
        assert member.account
        client.force_login(member.account)
        of_leads = ("items/", "board/", "pace/", "results/data-set/") if member.is_lead else ()
        for path in ("/", *(f"/projects/fbi/{way}" for way in ("", "label/", *of_leads))):
            shown = client.get(path).content.decode()
            words = r"An import is under way|It is waiting for a worker|\d of \d rows|[Nn]o items"
            # The other result pages say what they lack.
            shown = re.sub(r'<nav class="result-pages".*?</nav>', "", shown, flags=re.DOTALL)
            said = re.findall(words, shown)
            found[f"{member.alias} {path}"] = ", ".join(said)
    return found


def test_while_an_import_is_under_way_whoever_waits_for_items_reads_how_far_it_is(
    lead: Client, people: Cast
) -> None:
    """Some seconds: the first pages of a process compile their templates."""
    job = send(lead, keyed("a", "b", "c"))
    # It waits for a person.
    assert not any("under way" in said for said in told_where_nothing_is(people).values())
    lead.post(f"{PAGE}1/", {"import": "yes"})
    for values, how_far in (
        ({}, "It is waiting for a worker"),
        ({"state": Job.State.RUNNING, "done": 2}, "2 of 3 rows"),
    ):
        Job.objects.update(**values)
        for place, said in told_where_nothing_is(people).items():
            assert said.startswith(f"An import is under way, {how_far}"), place
    Job.objects.update(state=Job.State.WAITING)
    assert jobs.run_job(job.pk)
    assert not any("under way" in said for said in told_where_nothing_is(people).values())


def test_an_import_that_is_checked_is_under_way_too(
    lead: Client, people: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MAX_IMMEDIATE_BYTES", 0)
    send(lead, keyed("a"))
    Job.objects.update(state=Job.State.RUNNING, done=1_000)
    assert jobs.describe_progress(people.project) == "Its file is being checked: 1,000 rows so far."


def test_who_has_labelled_all_reads_that_more_is_under_way(lead: Client, people: Cast) -> None:
    make_resolution(make_item(people.project, slots=0))
    send(lead, keyed("a"))
    lead.post(f"{PAGE}1/", {"import": "yes"})
    shown = lead.get("/projects/fbi/label/").content.decode()
    assert "An import is under way. It is waiting for a worker" in shown
    assert api_client(people.lead).post("/api/v1/projects/fbi/queue/next/").json()["importing"] == (
        "It is waiting for a worker and starts automatically."
    )


def test_an_import_can_be_cancelled_until_it_is_done(lead: Client, people: Cast) -> None:
    job = send(lead, keyed("a"))
    lead.post(f"{PAGE}1/cancel/")
    assert f"Cancelled by {people.lead.alias}." in page(lead, job)
    assert not jobs.run_job(job.pk)
    assert lead.post(f"{PAGE}1/", {"import": "yes"}, follow=True).status_code == 200
    assert not Item.objects.exists()
    imported(lead, send(lead, keyed("a")))
    assert "had already finished" in lead.post(f"{PAGE}2/cancel/", follow=True).content.decode()


def test_cancelling_what_is_under_way_says_what_is_in_and_is_in_the_audit(
    lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = send(lead, keyed(*(f"k{n}" for n in range(3))))
    lead.post(f"{PAGE}1/", {"import": "yes"})

    def cancelled_meanwhile(*_: Any, **__: Any) -> jobs.ProgramResult:
        Job.objects.update(done=2)
        lead.post(f"{PAGE}1/cancel/")
        return jobs.ProgramResult(None, "")

    monkeypatch.setattr(subprocesses, "run_program", cancelled_meanwhile)
    assert not jobs.run_job(job.pk)
    assert "About 2 rows had been read; imported items stay." in page(lead, job)
    assert "retry the import under" in page(lead, job)
    Job.objects.update(result=Job.objects.get().result | {"step": "ready"})
    assert "retry the import under" not in page(lead, job)
    event = Event.objects.get(kind="import cancelled")
    assert (event.data["file"], event.data["rows"]) == ("items.csv", 2)


@pytest.mark.parametrize(
    "ended, state",
    [
        (jobs.ProgramResult(1, "No space is left."), "failed"),
        (jobs.ProgramResult(None, ""), "waiting"),
    ],
)
def test_a_program_that_did_not_end_well_is_told_or_begun_anew(
    lead: Client, monkeypatch: pytest.MonkeyPatch, ended: Any, state: str
) -> None:
    job = send(lead, keyed("a"))
    lead.post(f"{PAGE}1/", {"import": "yes"})
    monkeypatch.setattr(subprocesses, "run_program", lambda *_, **__: ended)
    assert not jobs.run_job(job.pk)
    job.refresh_from_db()
    assert (job.state, job.message) == (state, ended.said)
    assert jobs.due_job_ids(timezone.now()) == ([job.pk] if state == "waiting" else [])


def test_a_file_that_is_gone_is_to_be_sent_again(lead: Client) -> None:
    job = send(lead, keyed("a"))
    upload_files.uploaded_path(job).unlink()
    names = ("key", "category", "prompt", "gold", "perturbed")
    chosen = {f"columns-of-{name}": column for name, column in zip(names, HEADER, strict=False)}
    said = lead.post(f"{PAGE}1/", chosen, follow=True).content.decode()
    assert "The file has been deleted. Upload it again." in said
    job.refresh_from_db()
    assert job.state == Job.State.WAITING


def test_what_a_worker_is_at_is_left_to_it_until_it_is_gone(lead: Client) -> None:
    job = send(lead, keyed("a"))
    lead.post(f"{PAGE}1/", {"import": "yes"})
    with jobs._hold_lease(job.pk, bool) as held, jobs._hold_lease(job.pk, bool) as other:
        assert held
        assert other is None
    assert jobs.due_job_ids(timezone.now() + LEASE_TIME + timedelta(seconds=1)) == [job.pk]


def test_an_import_that_takes_too_long_ends_and_says_what_to_do(
    lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MAX_IMMEDIATE_BYTES", 10)
    monkeypatch.setattr(jobs, "MAX_DURATION", timedelta())
    job = send(lead, keyed("a"))
    assert not jobs.run_job(job.pk)
    assert "The import took longer than 0:00:00. Split the file." in page(lead, job)


def test_an_import_tells_the_worker_at_each_part_of_the_file_that_it_gets_on(
    lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, told = send(lead, keyed("a", "b", "")), list[str]()
    monkeypatch.setattr(program, "PROGRESS_EVERY", 1)
    monkeypatch.setattr(subprocesses, "send_heartbeat", lambda: told.append("alive"))
    imported(lead, job)
    # At each of three rows, and before the table of problems and the rows to mend are written.
    assert len(told) == 3 + 1 + 1


def test_files_are_deleted_when_their_time_is_over(
    lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, done = send(lead, keyed("a")), send(lead, keyed("b", ""))
    imported(lead, done)
    later = timezone.now() + jobs.FILE_RETENTION + timedelta(seconds=1)
    monkeypatch.setattr(jobs.timezone, "now", lambda: later)
    assert jobs.due_job_ids(later) == [job.pk, done.pk]
    assert jobs.run_job(job.pk)
    assert jobs.run_job(done.pk)
    assert list(upload_files.uploads_folder().iterdir()) == []
    assert jobs.due_job_ids(later) == []
    assert "The import was not continued for 7 days" in page(lead, job)
    assert lead.get(f"{PAGE}2/rows/").status_code == 302


def test_the_archive_of_study_000_is_told_by_what_is_in_it(lead: Client, shared_data: Path) -> None:
    job = send(lead, (shared_data / "fbi" / "data.zip").read_bytes(), "data.zip")
    assert (job.result["form"], job.result["step"]) == ("fbi", upload_files.CHECK)
    assert jobs.run_job(job.pk)
    assert "Import 2,492 items" in page(lead, job)
    assert "The columns of this study are known" in page(lead, job)


def test_the_archive_of_study_001_comes_in_by_its_password_and_leaves_no_open_rows(
    lead: Client, people: Cast, shared_data: Path
) -> None:
    version = importing.load_task_type_version("error-detection")
    Project.objects.filter(pk=people.project.pk).update(task_type=version)
    archive = (shared_data / "realmistake" / "data.zip").read_bytes()
    assert "is encrypted. Give its password" in refused(lead, archive, "data.zip")
    assert "the password is wrong" in refused(lead, archive, "data.zip", password="no")
    job = send(lead, archive, "data.zip", password="open-realmistake")
    assert oct(upload_files.password_path(job).stat().st_mode)[-3:] == "600"
    assert "open-realmistake" not in page(lead, job)
    assert jobs.run_job(job.pk)
    assert imported(lead, job)["new"] == 900
    assert "error_type" not in Item.objects.first().fields
    again = send(lead, archive, "data.zip", password="open-realmistake")
    Project.objects.filter(pk=people.project.pk).update(
        task_type=importing.load_task_type_version("perturbation-vetting")
    )
    assert jobs.run_job(again.pk)
    again.refresh_from_db()
    assert (again.result["report"]["bad"], again.result["report"]["mend"]) == (900, False)
    assert "not written to an unencrypted file" in page(lead, again)


def test_the_program_works_only_on_what_is_under_way(lead: Client) -> None:
    job = send(lead, keyed("a"))
    with pytest.raises(CommandError, match="No import"):
        call_command("work_on_import", str(job.pk))


def test_every_worker_looks_for_imports() -> None:
    assert "import job" in {kind.name for kind in worker.list_kinds()}


def test_a_project_without_items_leads_to_the_page(lead: Client) -> None:
    assert f'href="{PAGE}"' in lead.get("/projects/fbi/").content.decode()
    assert f'href="{PAGE}"' in lead.get("/projects/fbi/items/").content.decode()


def test_a_file_that_is_checked_again_by_other_columns_begins_at_its_first_row(
    lead: Client, monkeypatch: Any
) -> None:
    monkeypatch.setattr(jobs, "MAX_IMMEDIATE_BYTES", 10)
    job = send(lead, keyed("a"))
    type(job).objects.filter(pk=job.pk).update(done=1)
    jobs.choose_columns(job, job.result["columns"], accept=job.result["accept"])
    job.refresh_from_db()
    assert job.done == 0


def test_columns_of_json_are_found_by_short_names_as_many_as_can_be_chosen(lead: Client) -> None:
    row = {"key": "a", "x" * 300_000: dict.fromkeys(map(str, range(300)), 1), "y" * 201: 2}
    row |= {"meta": {"z" * 201: 1, "n": 2}, "category": "entity", **TEXTS}
    more = {f"column {number}": 1 for number in range(300)}
    job = send(lead, f"{json.dumps(row)}\n{json.dumps(row | more)}\n".encode(), "items.jsonl")
    found = job.result["found"]
    assert found[:4] == ["key", "meta", "meta.n", "category"]
    assert (len(found), max(map(len, found))) == (200, len("column 100"))
    assert imported(lead, job)["new"] == 1


def test_what_is_kept_and_said_of_rejected_rows_is_short(lead: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr(program, "MAX_KEPT_LENGTH", 1_000)
    long, rest = "x" * 900, [*CELLS[1:3], "Other.", "3"]
    rows = ["a", long, *rest], ["b", "entity", "", *rest[1:]], ["c", "Sloppy", *rest]
    job = send(lead, table(*rows))
    report = job.result["report"]
    assert [one["word"] for one in report["unknown"]] == ["Sloppy"]
    assert [one["is_read"] for one in report["problems"]] == [False, True, True]
    assert max(len(one["reason"]) for one in report["problems"]) <= 500
    shown = page(lead, job)
    assert "Correct 2 rows here" in shown
    assert "In the file" in shown
