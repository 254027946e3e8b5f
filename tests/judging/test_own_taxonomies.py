"""Two studies with categories of their own, from an empty project to figures: forty types of error
in four groups, from a file, and the five sets of a benchmark, made with the forms."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils.html import strip_tags

from annotation.importing import jobs
from annotation.items import taxonomy
from annotation.models import Item, Job, Label, Membership, Project
from judging.models import Run
from judging.results.tables import PAGES
from tests.builders import browser_of, make_account, say, take
from tests.judging.builders_judging import api_client, make_baseline, work

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("in_this_program"),
]
GROUPS = ("Wording", "Content", "Format", "Reasoning about numbers")
TYPES = {f"Type {n:02}": GROUPS[n % 4] for n in range(40)}
SETS = {
    "Natural": "Natural",
    "Neighbor": "Adversarial",
    "GPTInst": "Adversarial",
    "GPTOut": "Adversarial",
    "Manual": "Adversarial",
}


class Study:
    """A lead who begins a study on an empty site."""

    def __init__(self, name: str) -> None:
        account = make_account(is_superuser=True)
        self.browser: Client = browser_of(account)
        asked = {"name": name, "task_type": "perturbation-vetting", "categories": "empty"}
        answer = self.browser.post(reverse("new-project"), asked)
        assert answer.status_code == 302, answer.content.decode()
        self.member = Membership.objects.select_related("project__task_type").get()

    @property
    def project(self) -> Project:
        return Project.objects.select_related("taxonomy", "task_type").get()

    def post(self, page: str, **data: Any) -> str:
        address = reverse(page, args=[self.member.project.slug])
        shown = {"shown": self.project.taxonomy_id}
        answer = self.browser.post(address, {**shown, **data}, follow=True)
        assert answer.status_code == 200, answer.content.decode()
        return answer.content.decode()

    def page(self, name: str, *more: str | int, query: str = "") -> str:
        address = reverse(name, args=[self.member.project.slug, *more])
        answer = self.browser.get(f"{address}?{query}")
        assert answer.status_code == 200
        return answer.content.decode()

    def bring_in(self, categories: dict[str, str], each: int) -> None:
        """Import items of each category by its name, label all of them as valid."""
        stream = io.StringIO()
        rows = csv.writer(stream)
        rows.writerow(["ID", "Instruction", "Better output", "Worse output", "Subset"])
        for n, name in enumerate([*categories] * each):
            texts = (f"Task {n}?", f"The answer {n} is short.", f"The answer {n} is very long.")
            rows.writerow([f"i{n:03}", *texts, name.upper()])
        sent = SimpleUploadedFile("data.csv", stream.getvalue().encode())
        self.post("imports", file=sent)
        job = Job.objects.get(kind=jobs.JOB_KIND)
        columns = {
            "columns-of-key": "ID",
            "columns-of-category": "Subset",
            "columns-of-prompt": "Instruction",
            "columns-of-gold": "Better output",
            "columns-of-perturbed": "Worse output",
        }
        address = reverse("import", args=[self.member.project.slug, job.result["number"]])
        self.browser.post(address, columns)
        job.refresh_from_db()
        assert (job.result["report"]["new"], job.result["report"]["bad"]) == (
            len(categories) * each,
            0,
        )
        self.browser.post(address, {"import": "yes"})
        assert jobs.run_job(job.pk)
        member = Membership.objects.select_related("project__task_type").get()
        for _ in range(Item.objects.count()):
            say(member, take(member), "valid")
        assert Label.objects.count() == len(categories) * each

    def judge(self) -> Run:
        make_baseline()
        self.post("run-new", strategy="length", endpoint="baseline", seed=1)
        return work(Run.objects.get())

    def figures(self, by: str) -> list[dict[str, Any]]:
        address = f"/api/v1/projects/{self.member.project.slug}/results/undetected/"
        rows: list[dict[str, Any]] = api_client(self.member).get(address, {"by": by}).json()["rows"]
        return rows


def write_file(path: Path) -> bytes:
    """A file of categories, as a lead gets one from the page of another project."""
    lines = ['slug = "types"\n']
    for n, name in enumerate(GROUPS):
        lines.append(f'[[ability]]\nslug = "group-{n}"\nname = "{name}"\n')
    for n, (name, group) in enumerate(TYPES.items()):
        lines.append(
            f'[[category]]\nslug = "type-{n:02}"\nname = "{name}"\n'
            f'ability = "group-{GROUPS.index(group)}"\nexpected_effect = "penalty"\n'
        )
    path.write_text("\n".join(lines))
    return path.read_bytes()


def text_of(page: str) -> str:
    """What a page shows in its main part, without the names in commands."""
    main = page.partition("<main")[2].partition("</main>")[0]
    shown = re.sub(r"<(script|style|code|pre)\b.*?</\1>", "", main, flags=re.DOTALL)
    return strip_tags(shown)


def check(study: Study, categories: dict[str, str], each: int) -> None:
    """Every table and page is by these categories and groups, and by no others."""
    run = study.judge()
    assert (run.state, run.outcomes.count()) == ("finished", len(categories) * each)
    known = taxonomy.load_taxonomy(study.project)
    assert {one.name: known.ability(one.ability).name for one in known} == categories
    counts = {row["category"]: int(row["parsed"]) for row in study.figures("category")}
    assert counts == {one.slug: each for one in known}
    groups = {row["ability"]: int(row["parsed"]) for row in study.figures("ability")}
    names = [*categories.values()]
    assert groups == {one.slug: each * names.count(one.name) for one in known.abilities}
    for page, shown in (("by-category", categories), ("overview", names)):
        content = study.page("results-page", page)
        assert [name for name in shown if name not in content] == [], page
    board = study.page("board")
    assert all(name in board for name in categories)
    pages = [study.page(page) for page in ("project", "items", "run-new", "board", "results")]
    pages += [study.page("run", run.number), study.page("item", "i000"), study.page("strategies")]
    for slug, page in PAGES.items():
        pages += [study.page("results-page", slug, query=f"view={v.slug}") for v in page.views]
    seen = " ".join(" ".join(text_of(page).split()) for page in pages)
    foreign = re.findall(r"(?i).{,60}\b(?:long form|ability|abilities)\b.{,40}", seen)
    assert not foreign, "\n".join(foreign)
    assert "Group and category" in seen


def test_forty_types_in_four_groups_from_a_file(tmp_path: Path, settings: Any) -> None:
    """Some seconds: a whole study, and every page and table of it."""
    settings.VAR_DIR = tmp_path
    study = Study("Forty types")
    sent = SimpleUploadedFile("types.toml", write_file(tmp_path / "types.toml"))
    study.post("categories", do="file", file=sent)
    study.bring_in(TYPES, 2)
    check(study, TYPES, 2)


def test_five_sets_made_with_the_forms(tmp_path: Path, settings: Any) -> None:
    """Some seconds: a whole study, and every page and table of it."""
    settings.VAR_DIR = tmp_path
    study = Study("Five sets")
    for name in dict.fromkeys(SETS.values()):
        study.post("group-new", name=name)
    for name, group in SETS.items():
        values = {"name": name, "ability": group.lower(), "expected_effect": "penalty"}
        study.post("category-new", **values)
    study.bring_in(SETS, 4)
    check(study, SETS, 4)
