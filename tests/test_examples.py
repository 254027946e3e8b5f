import csv
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from annotation import tasktypes
from annotation.importing import item_rows as drafts_of
from annotation.items import taxonomy
from annotation.projects import guidelines
from formats.rows import BadRow, Row
from tests.builders import make_member, make_project

FILE = Path(__file__).parents[1] / "examples" / "items.jsonl"
FIELDS = ["key", "category", "source_ability", "origin", "cluster"]
FIELDS += ["prompt", "gold", "perturbed", "claim", "rationale"]
ITEMS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
INVARIANT = [item for item in ITEMS if item["category"] == "score-invariant"]


def words(text: str) -> int:
    """How many tokens between white space hold a letter or a digit."""
    return sum(bool(re.search(r"\w", token)) for token in text.split())


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item["key"])
def test_every_item_is_complete_and_differs_from_its_gold(item: dict[str, str]) -> None:
    assert list(item) == FIELDS
    assert all(value and value == value.strip() for value in item.values())
    assert item["gold"].split() != item["perturbed"].split()
    assert 100 <= words(item["gold"]) <= 400
    assert 100 <= words(item["perturbed"]) <= 400


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item["key"])
def test_category_ability_and_origin_agree_with_the_taxonomy(item: dict[str, str]) -> None:
    ability = taxonomy.load_shipped().category(item["category"]).ability
    if ability == "score-invariant":
        assert item["origin"] in {"relabelled", "paraphrase"}
        assert taxonomy.load_shipped().ability(item["source_ability"]).axis
    else:
        assert item["origin"] == "generated"
        assert item["source_ability"] == ability


def test_keys_and_perturbed_answers_are_unique() -> None:
    assert len({item["key"] for item in ITEMS}) == len(ITEMS)
    assert len({item["perturbed"] for item in ITEMS}) == len(ITEMS)


def test_every_category_of_the_paper_has_two_items() -> None:
    counts = Counter(item["category"] for item in ITEMS)
    assert all(counts[category.slug] >= 2 for category in taxonomy.load_shipped().in_paper())


def test_score_invariant_items_come_from_both_origins_and_all_abilities() -> None:
    assert len(INVARIANT) >= 6
    assert Counter(item["origin"] for item in INVARIANT) == {"relabelled": 4, "paraphrase": 4}
    assert len({item["source_ability"] for item in INVARIANT}) == 4


def test_a_cluster_is_one_prompt_with_one_gold_answer() -> None:
    clusters = {item["cluster"] for item in ITEMS}
    questions = {(item["cluster"], item["prompt"], item["gold"]) for item in ITEMS}
    assert 12 <= len(clusters) <= 18
    assert len(questions) == len(clusters)
    assert len({item["prompt"] for item in ITEMS}) == len(clusters)


@pytest.mark.parametrize("mark", ["\n- ", "```python", "|---|", "$$", "## ", "ł", "é"])
def test_the_gold_answers_show_what_the_label_screen_must_render(mark: str) -> None:
    assert any(mark in item["gold"] for item in ITEMS)


def test_the_example_code_does_what_its_comments_say() -> None:
    answers = {item["key"]: item for item in ITEMS}
    for text in (answers["do-less-1"]["gold"], answers["score-invariant-3"]["perturbed"]):
        code, calls = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
        scope: dict[str, object] = {}
        exec(code, scope)
        for call, result in re.findall(r"^(median.*?)\s+# ([\d.]+)", calls, flags=re.MULTILINE):
            assert eval(call, scope) == float(result)


PRACTICE = [
    json.loads(line)
    for line in (FILE.parent / "practice.jsonl").read_text(encoding="utf-8").splitlines()
]


def test_there_are_items_to_practise_on_and_silent_checks_with_known_answers() -> None:
    assert Counter(row["purpose"] for row in PRACTICE) == {"practice": 10, "probe": 3}
    assert all(row["explanation"] == row["explanation"].strip() != "" for row in PRACTICE)
    known = Counter(row["known"] for row in PRACTICE if row["purpose"] == "practice")
    assert set(known) == {"valid", "invalid", "score-invariant", "not-relevant"}
    assert len({row["known"] for row in PRACTICE if row["purpose"] == "probe"}) == 3


def test_the_checks_look_like_the_other_items_and_repeat_none() -> None:
    keys = [row["key"] for row in ITEMS + PRACTICE]
    assert len(set(keys)) == len(keys)
    assert not {row["cluster"] for row in PRACTICE} & {item["cluster"] for item in ITEMS}
    for row in PRACTICE:
        assert row["gold"] != row["perturbed"]
        if row["purpose"] == "probe":
            assert re.fullmatch(rf"{row['category']}-\d", row["key"])


def test_the_guidelines_define_each_choice_as_the_task_type_does() -> None:
    """Study 000, appendix A: what is changed, but not in this category, is not relevant."""
    text = (FILE.parent / "guidelines.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", text, flags=re.MULTILINE)
    task = tasktypes.parse_definition(tasktypes.load_definitions()["perturbation-vetting"])
    choices = {option.title: option.help for option in task.deciding.options}
    assert dict(table) == {"choose": "when"} | choices
    assert choices["Not relevant"] == "There is a change, but it does not belong to this category."


@pytest.mark.django_db
@pytest.mark.parametrize("task_of_study", ["mathgen", "fgfactv", "anscls"])
def test_guidelines_of_study_001_define_verdicts_and_name_categories_of_the_task_type(
    task_of_study: str,
) -> None:
    text = (FILE.parent / f"guidelines-{task_of_study}.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", text, flags=re.MULTILINE)
    task = tasktypes.parse_definition(tasktypes.load_definitions()["error-detection"])
    assert dict(table) == {"choose": "when"} | {
        option.title: option.help for option in task.deciding.options
    }
    kinds = {
        option.title
        for field in task.fields
        if field.name == "error_type"
        for option in field.options
    }
    named = set(re.findall(r"^- \*\*(.+?)\*\*:", text, flags=re.MULTILINE))
    assert len(named) >= 2
    assert named <= kinds
    lead = make_member(make_project(task_type="error-detection"), role="lead")
    published = guidelines.publish(lead.project, text, {}, "", lead)
    assert published.text.startswith("## What you look at")


def test_every_item_with_a_known_answer_can_be_imported() -> None:
    task = tasktypes.parse_definition(tasktypes.load_definitions()["perturbation-vetting"])
    rows = [Row("practice.jsonl", line, row) for line, row in enumerate(PRACTICE, start=1)]
    drafts = list(drafts_of.parse_items(rows, task))
    assert [draft for draft in drafts if isinstance(draft, BadRow)] == []
    assert [draft.known.value for draft in drafts] == [row["known"] for row in PRACTICE]  # type: ignore[union-attr]


def test_the_pairs_are_items_that_name_three_systems() -> None:
    task = tasktypes.parse_definition(tasktypes.load_definitions()["pairwise"])
    assert task.pair is not None
    with FILE.with_name("pairs.csv").open(encoding="utf-8", newline="") as file:
        rows = [Row("pairs.csv", line, told) for line, told in enumerate(csv.DictReader(file), 2)]
    items = list(drafts_of.parse_items(rows, task))
    assert not any(isinstance(item, BadRow) for item in items)
    systems = [[item.fields[name] for name in task.pair.systems] for item in items]
    assert {name for both in systems for name in both} == {"small", "tuned", "large"}
    assert len({item.cluster for item in items}) == 2
