"""The whole way in the browser: ten prompts, gold answers, perturbed ones, vetted, one made again,
frozen, judged, and a figure at the end."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation.models import Membership, Role
from judging.jobs.worker import WorkLoop
from judging.models import Run
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import checked, look
from tests.builders import make_member, make_project
from tests.judging.builders_judging import make_endpoint
from tests.services.scripted_evaluator import Script, ScriptedEvaluator, running
from tests.services.scripted_judge import Judge, chance

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PROMPTS = 10


class Author(Judge):
    """Answers questions, changes a number where it is asked to, and notices every second change."""

    def answer(self, prompt: str) -> str:
        if '{"perturbed": "' in prompt:
            number = 97 if "[BEGIN REMARKS]" in prompt else 51
            answer = prompt.split("[BEGIN ANSWER]\n")[1].split("\n[END ANSWER]")[0]
            return json.dumps(
                {
                    "perturbed": answer.replace("50", str(number)),
                    "claim": f"50 is changed to {number}.",
                    "rationale": "The count is wrong.",
                }
            )
        if "[BEGIN" in prompt:
            return json.dumps(
                {"explanation": "I looked.", "score": 4 if chance(prompt) < 0.5 else 10}
            )
        return f"About 50 are known so far, as most lists of them say. Lot {chance(prompt):.6f}."


@pytest.fixture
def evaluator(settings: Any) -> Iterator[ScriptedEvaluator]:
    settings.EVALUATOR_HOSTS = ["127.0.0.1"]
    with running(Script(judge=Author())) as evaluator:
        yield evaluator


@pytest.fixture
def lead(settings: Any, tmp_path: Path) -> Membership:
    """Leads two projects: of prompts, and of perturbed answers."""
    settings.VAR_DIR = tmp_path
    lead = make_member(make_project("prompts", task_type="gold-verification"), Role.LEAD, "lead")
    make_member(make_project("vetting", overlap=1), Role.LEAD, "lead", account=lead.account)
    return lead


def ask(page: Page, project: str, group: str, strategy: str) -> None:
    """Start a run on the page for it, and wait until it ends."""
    page.goto(f"/projects/{project}/runs/new/")
    page.locator("summary", has_text=group).click()
    page.locator(f"input[name=strategy][value={strategy}]").check()
    page.locator("input[name=endpoint][value=model]").check()
    page.get_by_role("button", name="Start the run").click()
    ended(page)


def ended(page: Page) -> None:
    state = page.locator("#progress [role=status]")
    expect(state).to_have_text("finished", timeout=20_000)


def bring_in(page: Page, share: int, **chosen: str) -> None:
    page.get_by_role("link", name="Import items…").click()
    for name, value in chosen.items():
        page.locator(f"[name={name}]").select_option(value)
    page.locator("[name=share]").fill(str(share))
    checked(page)
    page.get_by_role("button", name="Import items").click()
    expect(page.locator("#jobs")).to_contain_text("finished", timeout=20_000)


def vet(page: Page, project: str, keys: list[str]) -> None:
    """Answer what people are given, a key each, until nothing is left."""
    page.goto(reverse("label", args=[project]))
    for key in keys:
        panel = page.locator("#panel[data-ready]")
        item = panel.get_attribute("data-item")
        page.keyboard.press(key)
        page.wait_for_selector(f'#panel[data-item="{item}"]', state="detached")


def test_from_ten_prompts_to_figures(
    open_page: OpenPage,
    lead: Membership,
    evaluator: ScriptedEvaluator,
    worker: WorkLoop,
    tmp_path: Path,
) -> None:
    """Half a minute: all of a study, from its prompts to its figures."""
    make_endpoint(evaluator, name="model")
    path = tmp_path / "prompts.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        rows = [[f"q{n}", f"How many rivers has country {n}?", "factual"] for n in range(PROMPTS)]
        csv.writer(stream).writerows([["id", "question", "ability"], *rows])
    page = open_page(lead.account, "/projects/prompts/import/", **look(1440, "light"))
    page.set_input_files("[name=file]", path)
    page.click("button:text('Upload file')")
    page.click(f"button:text('Import {PROMPTS} items')")
    page.wait_for_selector("#state h2:text-is('Imported')")

    ask(page, "prompts", "Generators of answers", "generate-gold")
    bring_in(page, 25)
    vet(page, "prompts", ["1", "1", "1"])

    ask(page, "prompts", "Generators of perturbations", "generate-number-errors")
    bring_in(page, 100, into="vetting")
    vet(page, "vetting", ["2", *["1"] * (PROMPTS - 1)])

    page.goto("/projects/vetting/generation/")
    checked(page)
    page.get_by_role("link", name="Regenerate 1 rejected").click()
    page.locator("[name=endpoint]").select_option("model")
    checked(page)
    page.get_by_role("button", name="Regenerate").click()
    ended(page)
    bring_in(page, 100)
    vet(page, "vetting", ["1"])

    page.goto("/projects/vetting/snapshots/")
    page.fill("[name=name]", "vetted")
    page.click("text=Create snapshot")
    page.click("#made a:text('vetted')")

    ask(page, "vetting", "With a reference", "reference")
    run = Run.objects.latest("pk")
    detected = run.outcomes.filter(result="detected").count()
    assert 0 < detected < PROMPTS
    assert run.outcomes.filter(item__fields__has_key="gold_generator").count() == PROMPTS
    page.goto(f"/projects/vetting/results/by-category/?run={run.number}")
    row = page.get_by_role("row", name="Number errors").first
    expect(row).to_contain_text(f"{100 * detected / PROMPTS:.1f} %")
    expect(row).to_contain_text(f"n {PROMPTS}")
    checked(page)
