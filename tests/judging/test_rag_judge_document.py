"""docs/rag-judge.md: its data, its strategy and its verdicts, as they are printed, give the figures
that it prints."""

import re
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

from annotation import importing, tasktypes
from annotation.importing import column_mapping
from annotation.items import taxonomy
from annotation.models import Item, Membership, Project, Role
from annotation.projects import creation
from annotation.tasktypes import versions
from formats.readers import FORMATS
from judging.models import Outcome, Run
from judging.results.tables import undetected
from judging.runs import lifecycle
from judging.strategies import catalogue, editing
from tests.builders import make_member, make_project, say, take
from tests.judging.builders_judging import make_endpoint, results, work
from tests.services.scripted_evaluator import Script, ScriptedEvaluator
from tests.services.scripted_judge import Judge, digest_of

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = (settings.BASE_DIR / "docs" / "rag-judge.md").read_text(encoding="utf-8")
CATEGORIES, CONTEXT, STRATEGY = re.findall(r"^```toml\n(.+?)^```$", TEXT, re.MULTILINE | re.DOTALL)
[ITEMS] = re.findall(r"^```csv\n(.+?)^```$", TEXT, re.MULTILINE | re.DOTALL)
[VERDICTS] = re.findall(r"^```json\n(.+?)^```$", TEXT, re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (\w+)(?:: false alarms)? \| ([\d.]+) % \| ([\d.]+) % to ([\d.]+) % \| (\d+)")
SLUG = "library-answers"


@dataclass(frozen=True)
class NotingJudge(Judge):
    """A scripted judge that notes what it is asked."""

    asked: list[str] = field(default_factory=list)

    def answer(self, prompt: str) -> str:
        self.asked.append(prompt)
        return super().answer(prompt)


@pytest.fixture
def lead() -> Membership:
    """The lead of a project with the categories and the task type of the page."""
    project = make_project(SLUG)
    project.taxonomy = creation.store_taxonomy(taxonomy.read_toml(CATEGORIES))
    project.save(update_fields=["taxonomy"])
    member = make_member(project, Role.LEAD)
    source = versions.version_source(project.task_type)
    before, prompt, after = re.split(
        r'(?ms)^(\[\[texts\]\]\nname = "prompt".+?)(?=^\[\[)', source, maxsplit=1
    )
    text = versions.parse_source(project, f"{before}{prompt}{CONTEXT}\n{after}")
    assert text.problems == ()
    versions.save_version(project, text, member=member, shown=project.task_type_id)
    project.refresh_from_db()
    return member


@pytest.fixture
def items(lead: Membership, tmp_path: Path) -> list[Item]:
    """The items of the page, with the final labels that it asks for."""
    file = tmp_path / "library.csv"
    file.write_text(ITEMS, encoding="utf-8")
    task, known = tasktypes.load_task_type(lead.project), taxonomy.load_taxonomy(lead.project)
    columns = ITEMS.partition("\n")[0].split(",")
    named = column_mapping.guess_columns(task, columns)
    rows = column_mapping.rename_columns(FORMATS["csv"].read(file), named)
    report = importing.store_items(lead.project, importing.parse_items(rows, task, known))
    assert (report.new, report.bad) == (6, [])
    for _ in range(report.new):
        offer = take(lead)
        say(lead, offer, "score-invariant" if offer.item.category == "reworded" else "valid")
    return list(Item.objects.in_project(lead.project).order_by("position"))


@pytest.fixture
def project(lead: Membership, items: list[Item]) -> Project:
    """The project with the strategy of the page."""
    vanilla = catalogue.find_version(lead.project, "vanilla")
    assert vanilla
    editing.copy_strategy(lead.project, vanilla, slug="rag-grounded", member=lead)
    draft = editing.parse_source(STRATEGY, "rag-grounded", taxonomy.load_taxonomy(lead.project))
    assert draft.problems == ()
    assert editing.save_version(lead.project, draft, shown=1, member=lead)
    return lead.project


def test_a_judge_is_asked_with_the_passages_and_every_reply_is_a_verdict(
    project: Project, items: list[Item], evaluator: ScriptedEvaluator
) -> None:
    texts = {item.key: item.revision().texts for item in items}
    wrong = {digest_of(texts[key]["perturbed"]) for key in ("c1", "c2", "u1", "u2")}
    judge = NotingJudge(sees=1, wrong=frozenset(wrong))
    evaluator.script = Script(judge=judge)
    version = catalogue.find_version(project, "rag-grounded")
    assert version
    run = lifecycle.start_run(
        project,
        strategy=version,
        endpoint=make_endpoint(evaluator),
        config=lifecycle.RunConfig(seed=1),
    )
    assert work(run).state == "finished"
    assert results(run) == {"detected": 4, "undetected": 2}
    assert len(judge.asked) == 12
    for of in texts.values():
        shown = [
            prompt for prompt in judge.asked if f"{of['prompt']}\n\n{of['context']}\n" in prompt
        ]
        assert len(shown) == 2


def test_the_printed_verdicts_give_the_printed_figures(project: Project, tmp_path: Path) -> None:
    file = tmp_path / "verdicts.jsonl"
    file.write_text(VERDICTS, encoding="utf-8")
    [typed] = re.findall(r"manage\.py import_replies (.+)", TEXT)
    words = [str(file) if word == file.name else word for word in typed.split()]
    call_command("import_replies", *words, stdout=StringIO())
    run = Run.objects.get(project=project)
    assert not Outcome.objects.filter(run=run, result="missing").exists()
    rows = {row["category"]: row for row in undetected.tabulate_undetected([run], ("category",))}
    printed = [found for line in TEXT.splitlines() if (found := ROW.match(line))]
    assert len(printed) == 3
    for name, *numbers, n in (one.groups() for one in printed):
        row = rows[name.lower()]
        shown = (row["detection_rate"], 1 - row["high"], 1 - row["low"])
        assert [f"{100 * one:.1f}" for one in shown] == numbers
        assert row["parsed"] == int(n)
