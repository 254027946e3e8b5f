"""What result pages ask of people: boxes and lists in words, and none without a choice."""

import re
from pathlib import Path

import pytest
from django.test import Client

from annotation.models import Project
from tests.builders import make_member, make_project
from tests.judging.builders_decided import make_replied, scores
from tests.judging.builders_judging import make_items
from tests.judging.test_people_page import make_rated
from tests.judging.test_result_pages import lines

pytestmark = pytest.mark.django_db


def shown(client: Client, project: Project, path: str) -> str:
    member = make_member(project, role="researcher")
    assert member.account
    client.force_login(member.account)
    answer = client.get(f"/projects/{project.slug}/results/{path}")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def lists(page: str) -> dict[str, list[str]]:
    """What can be chosen of each list, by its label."""
    found = re.findall(r'<label for="by-[^"]*">(.*?)</label> <select[^>]*>(.*?)</select>', page)
    return {label: re.findall(r"<option[^>]*>(.*?)</option>", of) for label, of in found}


def is_asking(page: str) -> bool:
    return "Apply" in page


def test_a_list_has_words_and_something_to_choose(client: Client) -> None:
    project = make_project("fbi")
    items = [*make_items(project, 2), *make_items(project, 2, category="do-less", ability="x")]
    make_replied(project, "vanilla", ((item, scores(9, 5)) for item in items))
    assert lists(shown(client, project, "overview/")) == {"Ability": ["All", "Factual", "x"]}
    # Every item was made from a factual answer.
    page = shown(client, project, "by-category/?view=scores&by=ability,source_ability")
    assert list(lists(page)) == ["Ability"]


def test_a_list_of_one_stays_while_it_narrows_down(client: Client) -> None:
    project = make_project("fbi")
    make_replied(project, "vanilla", ((item, scores(9, 5)) for item in make_items(project, 2)))
    assert not is_asking(shown(client, project, "by-category/?view=scores"))
    page = shown(client, project, "by-category/?view=scores&ability=factual")
    assert lists(page) == {"Ability": ["All", "Factual"]}


def test_an_address_can_group_by_categories_without_abilities(client: Client) -> None:
    project = make_project("fbi")
    items = [*make_items(project, 2), *make_items(project, 1, "score-invariant")]
    make_replied(project, "vanilla", ((item, scores(9, 5)) for item in items))
    page = shown(client, project, "by-category/?view=counts&by=category")
    heads = re.findall(r'<th scope="row">(.*?)</th>', page)
    assert [head.strip() for head in heads] == ["Number errors", "Score-invariant"]


def test_slices_are_no_columns_to_choose_from(client: Client) -> None:
    project = make_project("fbi")
    items = [*make_items(project, 20), *make_items(project, 20, category="do-less", ability="x")]
    make_replied(project, "vanilla", ((item, scores(9, 5)) for item in items))
    page = shown(client, project, "blind-spots/?by=category&show=all")
    assert "<tbody" in page
    assert not is_asking(page)


def test_the_rest_of_a_slice_has_its_n_too(client: Client) -> None:
    project = make_project("fbi")
    items = [*make_items(project, 20), *make_items(project, 30, category="do-less", ability="x")]
    make_replied(project, "vanilla", ((item, scores(9, 5)) for item in items))
    found = lines(shown(client, project, "blind-spots/?by=category&show=all"))
    assert {line[0]: line[2:4] for line in found} == {
        "Number errors": ["0.0 % n 20", "0.0 % n 30"],
        "Do less": ["0.0 % n 30", "0.0 % n 20"],
    }


def test_metrics_and_fields_are_chosen_by_their_titles(client: Client, tmp_path: Path) -> None:
    project = make_rated(tmp_path)
    page = shown(client, project, "people/?view=items&run=1")
    assert lists(page)["Metric"][1:] == ["Correctness", "Naturalness", "Relatedness"]
    assert lists(page)["Majority"] == ["All", "no", "yes"]
    assert lists(page)["People gave"] == ["All", "1", "2", "3"]
    assert "Field" in lists(shown(client, project, "data-set/?view=shares"))
    questions = lists(shown(client, project, "agreement/"))
    assert questions["Question"][1:] == ["Correctness", "Naturalness", "Relatedness"]
    assert "Krippendorff’s alpha, ordinal" in questions["Measure"]


def test_a_switch_says_what_it_switches(client: Client, tmp_path: Path) -> None:
    page = shown(client, make_rated(tmp_path), "people/")
    switches = re.findall(r'<div class="switch"> (?:<span[^>]*>(.*?)</span> )?<nav', page)
    assert switches == ["", "In the chart", "Grouped by", "Next to each rate"]


def test_runs_are_chosen_in_the_order_of_their_numbers(client: Client) -> None:
    project = make_project("fbi")
    items = make_items(project, 2)
    for _ in range(11):
        make_replied(project, "vanilla", ((item, scores(9, 5)) for item in items))
    found = lists(shown(client, project, "compare/?view=pairs"))
    numbers = [int(words.split()[0]) for words in found["Run b"][1:]]
    assert numbers == list(range(2, 12))
