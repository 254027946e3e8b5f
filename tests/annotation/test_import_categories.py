"""Words of a file that are no category of the project: mapped, or made new ones."""

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from annotation import importing, tasktypes
from annotation.errors import Stale
from annotation.importing import items, jobs
from annotation.items import taxonomy
from annotation.models import Event, Item, Job, Membership, Project, Role
from annotation.projects import creation
from annotation.settings import categories as project_categories
from formats.rows import Row
from tests.annotation.own_categories import with_own_categories
from tests.builders import browser_of, make_member, make_project

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("in_this_program")]

HEAD = "ID,Question,Gold answer,Corrupted Answer,Type,What changed,Notes\n"


def file(*words: str) -> bytes:
    rows = (
        f"r{n},Q{n}?,It is {n}.,It is {n}0.,{word},A nought.,Why\n" for n, word in enumerate(words)
    )
    return (HEAD + "".join(rows)).encode()


class Desk:
    """A lead at an import."""

    def __init__(self, lead: Membership, content: bytes) -> None:
        self.lead = lead
        self.client: Client = browser_of(lead)
        sent = SimpleUploadedFile("faults.csv", content)
        self.client.post(reverse("imports", args=[lead.project.slug]), {"file": sent})

    @property
    def job(self) -> Job:
        return Job.objects.filter(kind=jobs.JOB_KIND).latest("pk")

    @property
    def address(self) -> str:
        return reverse("import", args=[self.lead.project.slug, self.job.result["number"]])

    def page(self) -> str:
        return self.client.get(self.address).content.decode()

    def post(self, **data: Any) -> str:
        self.lead.project.refresh_from_db()
        shown = {"shown": self.lead.project.taxonomy_id}
        return self.client.post(self.address, {**shown, **data}, follow=True).content.decode()

    def known(self) -> taxonomy.Taxonomy:
        self.lead.project.refresh_from_db()
        return taxonomy.load_taxonomy(self.lead.project)


def test_words_are_mapped_or_made_categories_and_the_file_is_checked_again() -> None:
    lead = make_member(with_own_categories(make_project("reviews")), Role.LEAD)
    desk = Desk(lead, file("Rude remark", "Unkind", "Unkind", "Sloppy", "Wrong page", "Sloppy"))
    said = desk.job.result
    assert said["columns"]["perturbed"] == "Corrupted Answer"
    assert said["columns"]["claim"] == "What changed"
    assert said["columns"]["rationale"] == "Notes"
    unknown = [(one["word"], one["rows"]) for one in said["report"]["unknown"]]
    assert unknown == [("Unkind", 2), ("Sloppy", 2), ("Wrong page", 1)]
    groups = [[one["row"] for one in group["first"]] for group in said["report"]["groups"]]
    assert groups == [[3, 4], [5, 7], [6]]
    assert "Words that are no category here" in desk.page()
    desk.post(**{"sort": "1", "word-0": "as:rude", "word-1": "new:evidence", "word-2": ""})
    assert desk.job.result["report"]["unknown"] == [{"word": "Wrong page", "rows": 1}]
    assert desk.job.result["report"]["new"] == 5
    assert desk.known().category("sloppy").ability == "evidence"
    desk.post(**{"import": "1"})
    assert jobs.run_job(desk.job.pk)
    kept = Item.objects.order_by("position").values_list("category", flat=True)
    assert list(kept) == ["rude", "rude", "rude", "sloppy", "sloppy"]


def test_a_list_without_groups_gets_one_with_the_first_category() -> None:
    empty = creation.store_taxonomy(taxonomy.load_templates()["empty"])
    lead = make_member(make_project("own", taxonomy=empty), Role.LEAD)
    desk = Desk(lead, file("Rude", "Sloppy", "Rude"))
    assert 'value="new:" selected' in desk.page()
    desk.post(**{"sort": "1", "word-0": "new:", "word-1": "new:"})
    assert [(one.slug, one.ability) for one in desk.known()] == [
        ("rude", "ungrouped"),
        ("sloppy", "ungrouped"),
    ]
    assert desk.job.result["report"]["new"] == 3


def test_a_new_category_of_harmless_changes_costs_nothing_from_the_start() -> None:
    empty = creation.store_taxonomy(taxonomy.load_templates()["empty"])
    lead = make_member(make_project("own", taxonomy=empty), Role.LEAD)
    desk = Desk(lead, file("Rude", "Reworded"))
    assert "No row can be used yet" in desk.page()
    desk.post(**{"sort": "1", "word-0": "new:", "effect-0": "sometimes"})
    assert not desk.known().offered, "an unknown effect adds nothing"
    desk.post(**{"sort": "1", "word-0": "new:", "word-1": "new:", "effect-1": "none"})
    assert [(one.slug, one.expected_effect) for one in desk.known()] == [
        ("rude", "penalty"),
        ("reworded", "none"),
    ]
    page = " ".join(desk.page().split())
    assert "Categories of the words in the file" in page
    effects = re.findall(r"<td> ([A-Z][^<]*) <small class=\"hint\">change it under", page)
    assert [one.split(":")[0] for one in effects] == ["Penalty", "None"]


def test_a_word_that_study_000_has_is_no_category_of_a_project_without_any() -> None:
    empty = creation.store_taxonomy(taxonomy.load_templates()["empty"])
    lead = make_member(make_project("own", taxonomy=empty), Role.LEAD)
    desk = Desk(lead, file("spelling", "Sloppy"))
    assert desk.job.result["report"]["bad"] == 2
    page = desk.post(**{"sort": "1", "word-0": "new:", "word-1": "new:"})
    assert "spelling" in page
    assert {one.slug for one in desk.known()} == {"spelling", "sloppy"}
    assert desk.job.result["report"] | {"new": 2, "bad": 0} == desk.job.result["report"]


def test_a_choice_that_cannot_be_used_is_said_and_changes_nothing() -> None:
    lead = make_member(with_own_categories(make_project("reviews")), Role.LEAD)
    desk = Desk(lead, file("x" * 90, "Harsh"))
    before = lead.project.taxonomy_id
    assert "too long for a name" in desk.post(**{"sort": "1", "word-0": "new:tone"})
    assert "Choose a category for at least one of the words" in desk.post(sort="1")
    stale = {"sort": "1", "word-1": "new:tone", "shown": "0" * 64}
    assert "Somebody else changed the categories" in desk.post(**stale)
    desk.lead.project.refresh_from_db()
    assert desk.lead.project.taxonomy_id == before
    assert not Item.objects.exists()


def test_an_import_that_meets_a_change_of_the_categories_stops_and_can_be_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(items, "BATCH", 1)
    lead = make_member(with_own_categories(make_project("reviews")), Role.LEAD)
    project, known = lead.project, taxonomy.load_taxonomy(lead.project)
    task = tasktypes.load_task_type(project)
    columns = {"category": "rude", "prompt": "Q?", "gold": "G.", "perturbed": "P."}

    def rows() -> Iterator[Row]:
        for number in range(6):
            if number == 4:
                merge(lead, "rude", "flattery")
            yield Row("f", number, {"key": f"r{number}", **columns})

    with pytest.raises(Stale, match="categories were changed during the import"):
        importing.store_items(project, importing.parse_items(rows(), task, known))
    assert 0 < Item.objects.count() < 6
    assert Event.objects.get(kind="import").data["new"] == Item.objects.count()
    project = Project.objects.select_related("task_type", "taxonomy").get()
    again = [Row("f", number, {"key": f"r{number}", **columns}) for number in range(6)]
    drafts = importing.parse_items(again, task, taxonomy.load_taxonomy(project))
    assert importing.store_items(project, drafts).conflicts == []
    assert set(Item.objects.values_list("category", flat=True)) == {"flattery"}


def merge(lead: Membership, slug: str, into: str) -> None:
    project = Project.objects.select_related("taxonomy").get(pk=lead.project_id)
    changed = deepcopy(project.taxonomy.definition)
    one = project_categories.find_category(changed, slug)
    assert one
    one |= {"retired": True, "merged_into": into}
    shown = project.taxonomy_id
    assert project_categories.save(project, changed, member=lead, shown=shown, note="merged")


def test_what_is_imported_under_a_merged_name_comes_back_when_the_merge_is_taken_back() -> None:
    lead = make_member(with_own_categories(make_project("reviews")), Role.LEAD)
    before = lead.project.taxonomy
    merge(lead, "rude", into="flattery")
    for expected in (2, 0):  # a second import of the same file finds nothing new
        desk = Desk(lead, file("Rude remark", "Flattery"))
        assert desk.job.result["report"]["new"] == expected
        if expected:
            desk.post(**{"import": "1"})
            assert jobs.run_job(desk.job.pk)
    assert set(Item.objects.values_list("category", flat=True)) == {"flattery"}
    shown = Project.objects.get(pk=lead.project_id).taxonomy_id
    project_categories.save(lead.project, before.definition, member=lead, shown=shown, note="Back")
    found = Item.objects.order_by("key").values_list("category", "ability", "fields")
    assert [*found] == [("rude", "tone", {}), ("flattery", "tone", {})]


def test_names_without_letters_match_only_themselves() -> None:
    lead = make_member(with_own_categories(make_project("reviews")), Role.LEAD)
    values = {"name": "🙂🔢", "ability": "tone", "expected_effect": "penalty"}
    changed, slug = project_categories.put(lead.project.taxonomy.definition, "category", "", values)
    assert slug == "own-1"
    shown = lead.project.taxonomy_id
    project_categories.save(lead.project, changed, member=lead, shown=shown, note="Added one")
    desk = Desk(lead, file("🙂🔢", "", "???", "🙂", "-", "category", " 🙂🔢 "))
    report = desk.job.result["report"]
    assert (report["new"], report["bad"]) == (2, 5)
    reasons = {one["key"]: one["reason"] for one in report["problems"]}
    assert reasons["r1"] == "is empty; every item has one."
    assert reasons["r2"] == "“???” is no category of the project."


def test_what_is_imported_already_stays_so_when_its_category_is_retired() -> None:
    lead = make_member(with_own_categories(make_project("reviews")), Role.LEAD)
    desk = Desk(lead, file("Rude remark", "Flattery"))
    desk.post(**{"import": "1"})
    assert jobs.run_job(desk.job.pk)
    retire(lead, "rude")
    desk = Desk(lead, file("Rude remark", "Flattery", "Rude remark"))
    report = desk.job.result["report"]
    assert (report["unchanged"], report["new"], report["bad"]) == (2, 0, 1)
    assert report["unknown"] == [{"word": "Rude remark", "rows": 1}]
    assert "is retired. Restore it" in report["problems"][0]["reason"]
    desk.post(**{"sort": "1", "word-0": "new:evidence"})
    assert desk.job.result["report"]["new"] == 1
    restored = desk.known().category("rude")
    assert (restored.retired, restored.ability) == (False, "tone")


def test_what_was_chosen_for_words_stays_when_one_choice_is_refused() -> None:
    lead = make_member(with_own_categories(make_project("reviews")), Role.LEAD)
    desk = Desk(lead, file("Unkind", "x" * 90))
    words = [one["word"] for one in desk.job.result["report"]["unknown"]]
    said = {f"word-{words.index('Unkind')}": "as:flattery"}
    said[f"word-{words.index('x' * 90)}"] = "new:tone"
    data = {"shown": lead.project.taxonomy_id, "sort": "1", **said}
    answer = desk.client.post(desk.address, data)
    assert answer.status_code == 422
    assert "is too long for a name" in answer.content.decode()
    assert '<option value="as:flattery" selected>' in answer.content.decode()


def test_the_page_says_that_final_labels_are_imported() -> None:
    lead = make_member(with_own_categories(make_project("reviews")), Role.LEAD)
    desk = Desk(lead, file("Rude remark"))
    assert "Final labels are imported" not in desk.page()
    columns = {f"columns-of-{name}": column for name, column in desk.job.result["columns"].items()}
    desk.post(**columns, **{"columns-accept": "on"})
    page = desk.page()
    assert "Final labels are imported with the items" in page
    assert desk.client.get(desk.address).context["form"]["accept"].value() is True


def retire(lead: Membership, slug: str) -> None:
    project = Project.objects.select_related("taxonomy").get(pk=lead.project_id)
    changed, _ = project_categories.put(
        project.taxonomy.definition, "category", slug, {"name": "Rude remark", "retired": True}
    )
    shown = project.taxonomy_id
    assert project_categories.save(project, changed, member=lead, shown=shown, note="Retired")


def test_rows_without_a_change_are_told_before_they_are_imported() -> None:
    lead = make_member(with_own_categories(make_project("reviews")), Role.LEAD)
    equal = b"r9,Q9?,It is 9.,It is 9.,Rude remark,Nothing.,Why\n"
    desk = Desk(lead, file("Rude remark") + equal)
    assert desk.job.result["report"]["equal"] == 1
    assert "1 new item has two texts with the same words" in desk.page()
    assert "same words" not in Desk(lead, file("Rude remark")).page()


def test_words_that_differ_in_case_and_hyphens_are_asked_for_once_and_likely_ones_chosen() -> None:
    lead = make_member(with_own_categories(make_project("reviews")), Role.LEAD)
    desk = Desk(lead, file("Sloppy work", "sloppy-work", "SLOPPY WORK", "Rude remarks"))
    page = desk.page()
    assert "also sloppy-work, SLOPPY WORK" in page
    # As the category is called Rude remark, in another word for one.
    assert '<option value="as:rude" selected>' in page
    assert 'name="word-2"' not in page
    desk.post(**{"sort": "1", "word-0": "new:evidence", "word-1": "as:rude"})
    assert desk.job.result["report"]["new"] == 4


def test_a_row_with_several_faults_tells_all_of_them() -> None:
    lead = make_member(with_own_categories(make_project("reviews")), Role.LEAD)
    desk = Desk(lead, HEAD.encode() + b"r1,,,Other.,Slopy wurk,A nought.,Why\n")
    row = desk.client.get(f"{desk.address}rows/2/").content.decode()
    assert "Prompt</strong> is empty" in row
    assert "Gold answer</strong> is empty" in row
    assert "Category</strong> “Slopy wurk” is no category" in row
    sent = dict(re.findall(r'<input type="hidden" name="(shown)" value="([^"]*)"', row))
    said = {"row-prompt": "Q?", "row-gold": "", "row-perturbed": "Other.", "row-key": "r1"}
    answer = desk.client.post(
        f"{desk.address}rows/2/", {**sent, **said, "row-category": "Slopy wurk"}
    )
    assert answer.status_code == 422
    assert answer.content.decode().count("is empty or missing; every item needs it.") >= 1
    assert "is no category" in answer.content.decode()
