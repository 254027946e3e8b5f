"""Items that perturbers make of a project's gold answers, by command."""

import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation import importing, tasktypes
from annotation.errors import FieldError
from annotation.exporting import tables
from annotation.generation import perturbers
from annotation.generation.perturbers import PerturbRequest
from annotation.models import Item, Project, Resolution, Slot
from formats.rows import Row
from formats.writers import write_file
from perturbers.flags import find_flags
from tests.builders import make_project

pytestmark = pytest.mark.django_db

FACTS = "A spider has eight legs. It is no insect. About 45000 kinds are known since 1757."
STORY = "He packed the heavy suitcase slowly. Then he caught the crowded morning train."
SUM = "One ticket costs 12 dollars. For 3 people that is 3 × 12 = 36 dollars."


def bring(project: Project, *rows: dict[str, str]) -> None:
    task = tasktypes.load_version(project.task_type)
    given = (Row("items.jsonl", line, dict(row)) for line, row in enumerate(rows, start=1))
    report = importing.store_items(project, importing.parse_items(given, task))
    assert (report.new, report.bad) == (len(rows), [])


def row(key: str, category: str, gold: str, prompt: str) -> dict[str, str]:
    perturbed = gold.replace(" ", "  x ", 1)
    return {
        "key": key, "category": category, "prompt": prompt, "gold": gold, "perturbed": perturbed,
    }  # fmt: skip


@pytest.fixture
def project() -> Project:
    """Three gold answers of three abilities, the first of them twice."""
    made = make_project("golds")
    bring(
        made,
        row("facts", "number-errors", FACTS, "What is a spider?"),
        row("twin", "entity", FACTS, "What is a spider?"),
        row("story", "spelling", STORY, "Tell a story."),
        row("sum", "calculations", SUM, "What do 3 people pay, 12 dollars each?"),
    )
    return made


def perturb(*options: str) -> str:
    said = StringIO()
    call_command("perturb", "--project", "golds", "--seed", "s", *options, stdout=said)
    return said.getvalue()


def parent(item: Item) -> Item:
    assert item.parent
    return item.parent


def made() -> list[Item]:
    return list(Item.objects.filter(origin="perturber").order_by("position"))


def test_each_becomes_an_item_that_says_what_it_was_made_from(project: Project) -> None:
    said = perturb("--with", "numbers", "spelling", "final-answer")
    assert "number-errors          1 generated" in said
    assert "3 added, 0 unchanged, seed s" in said
    numbers, spelling, final = sorted(made(), key=lambda one: parent(one).position)
    assert [parent(one).key for one in (numbers, spelling, final)] == ["facts", "story", "sum"]
    assert [one.category for one in (numbers, spelling, final)] == [
        "number-errors", "spelling", "final-errors",
    ]  # fmt: skip
    source = Item.objects.get(key="facts")
    assert (numbers.cluster, numbers.source_ability, numbers.dose) == (source.cluster, "factual", 1)
    assert numbers.fields == {"perturber": "numbers", "seed": "s"}
    texts = numbers.revision().texts
    assert texts["gold"] == FACTS
    assert find_flags("number-errors", FACTS, texts["perturbed"]) == []
    told = re.fullmatch(r"The number “?(\w+)”? is changed to “?(\w+)”?\.", texts["claim"])
    assert told
    assert texts["perturbed"] == FACTS.replace(told[1], told[2])
    assert numbers.slots.count() == source.slots.count() > 0


def test_the_same_again_is_nothing_new_and_another_seed_is(project: Project) -> None:
    perturb("--with", "numbers")
    assert "0 added, 1 unchanged" in perturb("--with", "numbers")
    assert "1 added, 0 unchanged, seed other" in perturb("--with", "numbers", "--seed", "other")
    assert len({one.revision().texts["perturbed"] for one in made()}) == 2


def test_doses_make_a_ladder_and_what_has_too_few_places_is_counted(project: Project) -> None:
    said = perturb("--with", "spelling", "--errors", "1", "2", "4", "8", "--number", "2")
    ladder = [one for one in made() if ".1x" in one.key]
    assert [one.dose for one in ladder] == [1, 2, 4]
    claims = [one.revision().texts["claim"] for one in ladder]
    assert [claim.count("misspelt") for claim in claims] == [1, 2, 4]
    assert all(claims[0] in claim for claim in claims)
    assert "spelling               6 generated; 2 texts skipped" in said


def test_what_is_held_back_is_said(project: Project) -> None:
    said = perturb("--with", "numbers", "--share", "0")
    assert said.splitlines()[-1] == "0 released, 0 accepted without review, 1 held back"
    assert not Slot.objects.filter(item__in=made()).exists()


def test_what_cannot_be_added_is_named_and_ends_with_an_error(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    perturb("--with", "numbers")
    first = made()[0]
    Item.objects.filter(pk=first.pk).update(category="entity")
    with pytest.raises(CommandError, match="Some items were not added"):
        perturb("--with", "numbers")
    assert capsys.readouterr().err.startswith(
        "facts+numbers.s.1x1: key exists with other category."
    )


def test_a_dry_run_says_what_it_would_make(project: Project) -> None:
    said = perturb("--dry-run", "--limit", "1")
    assert made() == []
    assert "would be added" in said
    assert "spelling               0 generated" in said


def test_an_export_brings_parents_and_doses_back(project: Project, tmp_path: Path) -> None:
    perturb("--with", "numbers", "--errors", "2")
    path = tmp_path / "items.jsonl"
    columns = tables.TABLES["items"].columns_in(project)
    write_file("jsonl", tables.item_rows(project), columns, path, tables.COLUMN_KINDS)
    other = make_project("other")
    rows = [Row("i", n, json.loads(line)) for n, line in enumerate(path.open(), start=1)]
    task = tasktypes.load_version(other.task_type)
    report = importing.store_items(other, importing.parse_items(rows, task))
    assert (report.new, report.bad) == (5, [])
    back = Item.objects.get(project=other, origin="perturber")
    assert (parent(back).key, parent(back).project, back.dose) == ("facts", other, 2)
    orphan = importing.parse_items([rows[-1]], task)
    assert [bad.field for bad in importing.store_items(make_project("none"), orphan).bad] == [
        "parent"
    ]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--project", "nobody"], "There is no project 'nobody'"),
        (["--number", "0"], "--number must lie between 1 and 20"),
        (["--errors", "1", "99"], "--errors must lie between 1 and 32"),
        (["--limit", "0"], "--limit must be 1 or more"),
        (["--seed", "a b"], "--seed must be 1 to 20 letters, digits or hyphens"),
        (["--with", "nothing"], "invalid choice: 'nothing'"),
    ],
)
def test_what_cannot_be_made_is_refused(project: Project, options: list[str], told: str) -> None:
    with pytest.raises(CommandError, match=told):
        perturb(*options)


@pytest.mark.parametrize(
    "values, field",
    [
        ({"number": 1}, ""),
        ({"number": 0}, "number"),
        ({"number": 20}, ""),
        ({"number": 21}, "number"),
        ({"doses": (1, 32)}, ""),
        ({"doses": (1, 33)}, "errors"),
        ({"doses": (0, 1)}, "errors"),
        ({"doses": ()}, "errors"),
        ({"limit": 1}, ""),
        ({"limit": 0}, "limit"),
        ({"purpose": "practice"}, ""),
        ({"purpose": "control"}, "purpose"),
        ({"perturbers": ()}, "perturbers"),
        ({"perturbers": ("numbers", "none")}, "perturbers"),
        ({"seed": "s" * 20}, ""),
        ({"seed": "s" * 21}, "seed"),
        ({"seed": "a.b"}, "seed"),
    ],
)
def test_what_is_asked_of_perturbers_is_refused_just_past_its_limits(
    project: Project, values: dict[str, Any], field: str
) -> None:
    wish = PerturbRequest(**{"perturbers": ("numbers",), "seed": "s", **values})
    if not field:
        perturbers.check_request(project, wish)
        return
    with pytest.raises(FieldError) as refused:
        perturbers.check_request(project, wish)
    assert refused.value.field == field


def test_a_project_without_gold_answers_is_refused() -> None:
    make_project("golds", task_type="error-detection")
    with pytest.raises(CommandError, match="has no gold and perturbed answers"):
        perturb()


def test_probes_have_a_known_answer_and_keys_like_what_models_make(project: Project) -> None:
    said = perturb("--with", "numbers", "layout", "--purpose", "probe")
    assert "1 added" in said
    probe = Item.objects.get(purpose="probe")
    held = Resolution.objects.current().get(item=probe)
    assert (held.value, held.source) == ("valid", "known")
    assert held.comment == probe.revision().texts["claim"]
    assert re.fullmatch(r"facts\+number-errors\.[1-9]\d\.1", probe.key)
    assert not Slot.objects.filter(item=probe).exists()
    assert "0 added, 1 unchanged" in perturb("--with", "numbers", "--purpose", "probe")


def test_each_probe_of_a_gold_answer_has_a_key_of_its_own(project: Project) -> None:
    options = ("--number", "2", "--errors", "1", "2", "--purpose", "probe")
    perturb("--with", "numbers", "--limit", "1", *options)
    samples = [int(item.key.rpartition(".")[2]) for item in Item.objects.filter(purpose="probe")]
    # Of the second perturbed answer they begin behind the most errors that the first could have.
    assert sorted(samples) == [1, 2, 33, 34]


def test_no_gold_answer_is_compared_with_each_before_it(project: Project) -> None:
    """SQLite keeps no statistics, and took the index of positions for each item: for 20,000 items
    the page took half a minute."""
    firsts = Item.objects.in_project(project).sources("gold").first_of_clusters()
    assert [item.key for item in firsts.order_by("position")] == ["facts", "story", "sum"]
    assert "position<" not in firsts.explain().replace(" ", "")
