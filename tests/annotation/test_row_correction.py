"""Rejected rows of an import are corrected on the page, one after the other."""

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from annotation.importing import jobs
from annotation.models import Item, Job, Membership
from annotation.projects.models import Role
from tests.annotation.own_categories import with_own_categories
from tests.builders import browser_of, make_member, make_project

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("in_this_program")]
HEAD = "No.,Category,Question,Gold answer,Perturbed answer,Remark\n"
GOOD = 'r1,Rude remark,"Two\nlines, here?",Gold.,Other.,x\n'
# Row 3 of the sheet (line 4) has no gold answer, row 4 an unknown word and no key, row 5 is ragged.
BAD = 'r2,Rude remark,Q?,,Other.,x\n,Sloppy,"Q\r\n2?",Gold.,Other.,x\nr4,Rude remark,Q?\n'


@pytest.fixture
def lead(settings: Any, tmp_path: Path) -> Membership:
    settings.VAR_DIR = tmp_path
    return make_member(with_own_categories(make_project("reviews")), Role.LEAD)


class Desk:
    """An import of this file in the lead's browser."""

    def __init__(self, lead: Membership, content: bytes, name: str = "a.csv", **said: str) -> None:
        self.lead, self.client = lead, browser_of(lead)
        address = reverse("imports", args=[lead.project.slug])
        sent = {"file": SimpleUploadedFile(name, content), **said}
        assert self.client.post(address, sent).status_code == 302
        self.address = f"{address}{self.job.result['number']}/"

    @property
    def job(self) -> Job:
        return Job.objects.filter(kind=jobs.JOB_KIND).latest("pk")

    def row(self, line: int, file: str = "") -> str:
        return f"{self.address}rows/{line}/" + (f"?file={file}" if file else "")

    def page(self, address: str = "") -> str:
        return self.client.get(address or self.address, follow=True).content.decode()

    def correct(self, line: int, then: str = "next", file: str = "", **values: str) -> Any:
        [form] = [self.client.get(self.row(line, file)).context["form"]]
        sent = {f"row-{name}": field.value() for name, field in zip(form.fields, form, strict=True)}
        changed = {f"row-{name}": value for name, value in values.items()}
        return self.client.post(self.row(line, file), {**sent, **changed, then: "yes"})


def test_rows_are_corrected_one_after_the_other_and_the_file_is_checked_again(
    lead: Membership,
) -> None:
    desk = Desk(lead, (HEAD + GOOD + BAD).encode())
    report = desk.job.result["report"]
    assert (report["new"], report["bad"]) == (1, 3)
    shown = desk.page()
    assert "Correct 2 rows here" in shown
    assert shown.count(">Correct</a>") == 2
    assert [one["row"] for one in report["problems"]] == [3, 4, 5]

    first = desk.page(desk.row(4))
    assert "Row 3" in first
    assert "is empty or missing; every item needs it." in first
    assert next(iter(desk.client.get(desk.row(4)).context["form"].fields)) == "gold"
    again = desk.correct(4, gold=" ")
    assert again.status_code == 422
    assert "Nothing was saved yet" in again.content.decode()
    answer = desk.correct(4, gold="A gold answer.")
    assert answer["Location"] == desk.row(5)

    assert "Check the file with the corrections" in desk.page()
    assert "Import 1 item" not in desk.page()
    assert "Sloppy (in the file)" in desk.page(desk.row(5))
    fault = desk.correct(5, category="flattery").content.decode()
    assert "is empty or missing; every item needs a unique one." in fault
    answer = desk.correct(5, category="flattery", key="r3")
    assert answer["Location"] == desk.address

    report = desk.job.result["report"]
    assert (report["new"], report["bad"], desk.job.result["unchecked"]) == (3, 1, False)
    shown = desk.page()
    assert "2 rows are corrected on this page" in shown
    assert "rows here</a>" not in shown
    desk.client.post(desk.address, {"import": "yes"})
    assert jobs.run_job(desk.job.pk)
    kept = {item.key: item for item in Item.objects.all()}
    assert {*kept} == {"r1", "r2", "r3"}
    assert kept["r2"].revision().texts["gold"] == "A gold answer."
    assert kept["r3"].category == "flattery"
    assert kept["r3"].revision().texts["prompt"] == "Q\r\n2?"
    assert kept["r3"].fields == {"Remark": "x"}


def test_a_correction_can_be_changed_and_taken_back(lead: Membership) -> None:
    desk = Desk(lead, (HEAD + GOOD + BAD).encode())
    desk.correct(4, then="check", gold="One.")
    assert desk.job.result["report"]["new"] == 2
    desk.correct(4, then="check", gold="Two.", key="r9")
    [kept] = desk.job.result["corrections"]
    assert (kept["values"], kept["key"], kept["row"]) == ({"gold": "Two.", "key": "r9"}, "r9", 3)
    assert "Take the correction back" in desk.page(desk.row(4))
    desk.client.post(desk.row(4), {"undo": "yes"})
    assert desk.job.result["corrections"] == []
    desk.client.post(desk.address, {"check": "yes"})
    assert desk.job.result["report"]["new"] == 1


def test_a_row_whose_key_is_used_gets_another_one(lead: Membership) -> None:
    desk = Desk(lead, (HEAD + GOOD + "r1,Rude remark,Other?,Gold.,Other.,x\n").encode())
    assert desk.job.result["report"]["conflicts"] == 1
    # Unchanged, there is nothing to keep, and the row stays among the rejected ones.
    assert desk.correct(4)["Location"] == desk.address
    assert not desk.job.result.get("corrections")
    desk.correct(4, key="r2")
    assert (desk.job.result["report"]["new"], desk.job.result["report"]["conflicts"]) == (2, 0)


def test_rows_of_files_in_an_archive_are_told_apart(lead: Membership) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("one.csv", HEAD + "r1,Rude remark,Q?,,Other.,x\n")
        archive.writestr("two.csv", HEAD + "r2,Rude remark,Q?,,Other.,x\n")
    desk = Desk(lead, stream.getvalue(), "all.zip")
    assert jobs.run_job(desk.job.pk)
    desk.correct(2, file="two.csv", gold="Gold.")
    assert jobs.run_job(desk.job.pk)
    report = desk.job.result["report"]
    assert [(one["file"], one["key"]) for one in report["problems"]] == [("one.csv", "r1")]
    assert report["new"] == 1


def test_values_of_json_that_are_no_texts_are_corrected_as_texts(lead: Membership) -> None:
    desk = Desk(
        lead,
        b'[{"key": 7, "category": "rude", "prompt": "Q?", "gold": "G.", "perturbed": "P.",'
        b' "tags": ["a"]}]',
        "a.json",
    )
    assert "is not text" in desk.page(desk.row(1))
    desk.correct(1, key="7")
    assert desk.job.result["report"]["bad"] == 1
    desk.correct(1, key="row-7")
    desk.client.post(desk.address, {"import": "yes"})
    assert jobs.run_job(desk.job.pk)
    assert Item.objects.get().fields == {"tags": ["a"]}


@pytest.mark.parametrize("line", [1, 6, 99])
def test_what_is_no_row_to_correct_leads_back(lead: Membership, line: int) -> None:
    desk = Desk(lead, (HEAD + GOOD + BAD).encode())
    assert "Correct it in the file" in desk.page(desk.row(line))


def test_after_the_import_nothing_is_corrected_here(lead: Membership) -> None:
    desk = Desk(lead, (HEAD + GOOD + BAD).encode())
    desk.client.post(desk.address, {"import": "yes"})
    assert "can no longer be corrected here" in desk.page(desk.row(4))
    assert jobs.run_job(desk.job.pk)
    assert "can no longer be corrected here" in desk.page(desk.row(4))
    assert ">Correct</a>" not in desk.page()
    missing = reverse("import-row", args=[lead.project.slug, 99, 2])
    assert "can no longer be corrected here" in desk.page(missing)


def test_too_many_corrections_are_refused(
    lead: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MAX_CORRECTIONS", 1)
    desk = Desk(lead, (HEAD + GOOD + BAD).encode())
    desk.correct(4, gold="Gold.")
    desk.correct(5, category="flattery", key="r3")
    assert "At most 1 rows can be corrected here" in desk.page()
    assert len(desk.job.result["corrections"]) == 1


def test_hostile_texts_stay_texts_in_the_form(lead: Membership) -> None:
    text = "</textarea><script>alert(1)</script>"
    desk = Desk(lead, (HEAD + f"{text},{text},{text},,{text},x\n").encode())
    shown = desk.page(desk.row(2)) + desk.page()
    assert "<script>alert" not in shown
    assert "&lt;script&gt;alert" in shown


def test_rows_of_an_encrypted_archive_are_not_kept_unencrypted(lead: Membership) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("one.csv", HEAD + BAD)
    desk = Desk(lead, stream.getvalue(), "all.zip", password="secret")
    assert jobs.run_job(desk.job.pk)
    assert desk.job.result["report"]["bad"] == 3
    assert "can no longer be corrected here" in desk.page(desk.row(2, "one.csv"))
    assert ">Correct</a>" not in desk.page()


def test_words_that_were_mapped_are_known_in_the_next_file(lead: Membership) -> None:
    unknown = "r3,Sloppy,Q?,Gold.,Other.,x\n"
    desk = Desk(lead, (HEAD + unknown).encode())
    lead.project.refresh_from_db()
    said = {"shown": lead.project.taxonomy_id, "sort": "1", "word-0": "as:rude"}
    desk.client.post(desk.address, said)
    assert desk.job.result["report"]["new"] == 1
    assert Desk(lead, (HEAD + unknown).encode()).job.result["report"]["new"] == 1
