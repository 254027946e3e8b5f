"""Rejected rows of an import are corrected on the page, one after the other."""

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from annotation.errors import Stale
from annotation.importing import jobs, upload_files
from annotation.models import Item, Job, Membership
from annotation.projects.models import Role
from annotation.settings import categories
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

    def form(self, line: int, file: str = "") -> dict[str, str]:
        """What the browser would send of a row."""
        context = self.client.get(self.row(line, file)).context
        sent = {
            f"row-{name}": bound.value()
            for name, bound in zip(context["form"].fields, context["form"], strict=True)
        }
        return {**sent, "shown": context["shown"]}

    def correct(self, line: int, then: str = "next", file: str = "", **values: str) -> Any:
        changed = {f"row-{name}": value for name, value in values.items()}
        sent = {**self.form(line, file), **changed, then: "yes"}
        return self.client.post(self.row(line, file), sent)


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
    assert (report["new"], report["bad"], jobs.is_unchecked(desk.job)) == (3, 1, False)
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
    assert "Remove the correction" in desk.page(desk.row(4))
    assert (
        "Correction removed"
        in desk.client.post(desk.row(4), {"undo": "yes"}, follow=True).content.decode()
    )
    assert "corrected on this page" not in desk.page()
    desk.client.post(desk.address, {"check": "yes"})
    assert (desk.job.result["report"]["new"], desk.job.result["corrections"]) == (1, [])


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
    desk.correct(1)
    assert desk.job.result["corrections"][0]["values"] == {"key": "7"}
    desk.client.post(desk.address, {"import": "yes"})
    assert jobs.run_job(desk.job.pk)
    assert Item.objects.get().fields == {"tags": ["a"]}


@pytest.mark.parametrize("line", [1, 6, 99])
def test_what_is_no_row_to_correct_leads_back(lead: Membership, line: int) -> None:
    desk = Desk(lead, (HEAD + GOOD + BAD).encode())
    assert "Correct it in the file" in desk.page(desk.row(line))
    assert "Correct it in the file" in desk.page(desk.row(line, "zzz%00"))


def test_after_the_import_nothing_is_corrected_here(lead: Membership) -> None:
    desk = Desk(lead, (HEAD + GOOD + BAD).encode())
    desk.client.post(desk.address, {"import": "yes"})
    assert "cannot be corrected here" in desk.page(desk.row(4))
    assert jobs.run_job(desk.job.pk)
    assert "cannot be corrected here" in desk.page(desk.row(4))
    assert ">Correct</a>" not in desk.page()
    missing = reverse("import-row", args=[lead.project.slug, 99, 2])
    assert "Import 99 does not exist" in desk.page(missing)


def test_too_many_corrections_are_refused(
    lead: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MAX_CORRECTIONS", 1)
    desk = Desk(lead, (HEAD + GOOD + BAD).encode())
    desk.correct(4, gold="Gold.")
    answer = desk.correct(5, category="flattery", key="what I typed")
    assert answer.status_code == 422
    assert "At most 1 rows" in answer.content.decode()
    assert "what I typed" in answer.content.decode()
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
    assert "cannot be corrected here" in desk.page(desk.row(2, "one.csv"))
    assert ">Correct</a>" not in desk.page()


def test_words_that_were_mapped_are_known_in_the_next_file_until_they_are_categories(
    lead: Membership,
) -> None:
    content = (HEAD + "r3,Sloppy,Q?,Gold.,Other.,x\n").encode()
    desk = Desk(lead, content)
    lead.project.refresh_from_db()
    shown = {"shown": lead.project.taxonomy_id, "sort": "1"}
    desk.client.post(desk.address, {**shown, "word-0": "as:rude"})
    assert desk.job.result["report"]["new"] == 1
    desk = Desk(lead, content)
    assert desk.job.result["report"]["new"] == 1
    assert '<option value="as:rude" selected>' in desk.page()
    desk.client.post(desk.address, {**shown, "word-0": ""})
    assert (desk.job.result["categories"], desk.job.result["report"]["bad"]) == ({}, 1)
    desk.client.post(desk.address, {**shown, "word-0": "as:rude"})
    values = {"name": "Sloppy", "ability": "tone", "expected_effect": "penalty"}
    changed, _ = categories.put(lead.project.taxonomy.definition, "category", "", values)
    version = lead.project.taxonomy_id
    categories.save(lead.project, changed, member=lead, shown=version, note="Added Sloppy")
    desk = Desk(lead, content)
    assert (desk.job.result["categories"], desk.job.result["report"]["new"]) == ({}, 1)


def test_a_corrected_row_that_is_rejected_again_can_be_corrected_again(lead: Membership) -> None:
    desk = Desk(lead, (HEAD + GOOD + BAD).encode())
    desk.correct(4, then="check", gold="Gold.", key="r1")
    assert desk.job.result["report"]["conflicts"] == 1
    assert "Correct 2 rows here" in desk.page()
    assert desk.client.get(desk.row(4)).context["form"]["key"].value() == "r1"
    desk.correct(4, then="check", key="r2")
    assert desk.job.result["report"]["conflicts"] == 0


def test_rows_that_cannot_be_read_do_not_block_the_way(lead: Membership) -> None:
    unread = "r0,Rude remark,Q\0?,Gold.,Other.,x\n"
    desk = Desk(lead, (HEAD + unread + BAD).encode())
    assert "Correct 2 rows here" in desk.page()
    assert desk.page().count(">Correct</a>") == 2
    assert "In the file" in desk.page()


def test_what_was_not_sent_stays_and_line_breaks_outside_of_texts_too(lead: Membership) -> None:
    head = "key,category,prompt,gold,perturbed,cluster,origin\n"
    desk = Desk(
        lead, (head + 'r1,rude,"Q\r\none\ntwo",,Other.,"What?\nNow",me\n').encode(), "a.csv"
    )
    sent = desk.form(2)
    assert sent["row-cluster"] == "What?\nNow"
    del sent["row-origin"]
    crlf = {name: value.replace("\r\n", "\n").replace("\n", "\r\n") for name, value in sent.items()}
    desk.client.post(desk.row(2), {**crlf, "row-gold": "Gold.", "check": "yes"})
    assert desk.job.result["corrections"][0]["values"] == {"gold": "Gold."}


def test_two_leads_at_one_row_do_not_overwrite_each_other(lead: Membership) -> None:
    desk = Desk(lead, (HEAD + GOOD + BAD).encode())
    early = desk.form(4)
    desk.correct(4, gold="The first.")
    late = desk.client.post(desk.row(4), {**early, "row-gold": "The second.", "next": "yes"})
    assert late.status_code == 409
    assert "Somebody else corrected this row" in late.content.decode()
    assert "The second." in late.content.decode()
    assert desk.job.result["corrections"][0]["values"] == {"gold": "The first."}


def test_an_import_is_not_started_before_corrections_are_checked(lead: Membership) -> None:
    desk = Desk(lead, (HEAD + GOOD + BAD).encode())
    desk.correct(4, gold="Gold.")
    desk.client.post(desk.address, {"import": "yes"})
    assert "Check the file again first" in desk.page()
    assert desk.job.result["step"] == upload_files.READY


def test_corrections_do_not_outlive_the_import(lead: Membership) -> None:
    desk = Desk(lead, (HEAD + GOOD + BAD).encode())
    desk.correct(4, then="check", gold="Gold.")
    desk.client.post(desk.address, {"import": "yes"})
    assert jobs.run_job(desk.job.pk)
    assert (Item.objects.count(), desk.job.result["corrections"]) == (2, [])


def test_an_import_that_an_earlier_version_checked_is_shown(lead: Membership) -> None:
    desk = Desk(lead, (HEAD + GOOD + BAD).encode())
    job = desk.job
    report = job.result["report"]
    for problem in report["problems"]:
        del problem["row"], problem["key"], problem["is_read"]
    for group in report["groups"]:
        del group["first"]
        group["lines"] = [4]
    for name in ("corrections", "categories", "note"):
        del job.result[name]
    job.save()
    upload_files.shown_rows_path(job).unlink()
    assert ">Correct</a>" not in desk.page()
    assert "cannot be corrected here" in desk.page(desk.row(4))


def test_a_correction_removed_while_a_check_begins_is_refused_in_words(
    lead: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another lead starts the check between the page and the change."""
    desk = Desk(lead, (HEAD + GOOD + BAD).encode())
    desk.correct(4, gold="Gold.")

    def busy(job: Job, *_: Any) -> None:
        raise Stale("The file is being checked or imported.")

    monkeypatch.setattr(jobs, "correct_row", busy)
    answer = desk.client.post(desk.row(4), {"undo": "yes"})
    assert answer.status_code == 409
    assert "The file is being checked or imported." in answer.content.decode()
