"""Data set, agreement and effort as pages: their figures by hand, and where they lead."""

import random
import re
import tracemalloc
from html import unescape

import pytest
from django.test import Client

from annotation.models import Item, Mark, Membership, Project, Revision
from annotation.reports import grouping
from judging.results.columns import GROUP_DRAW_LIMIT
from judging.results.group_fields import ANSWER_LENGTH_TITLE
from judging.results.page_parts import ResultPage
from judging.results.tables import PAGES, data_set
from tests.annotation.test_agreement import make_label, people_of
from tests.builders import make_member, make_project
from tests.judging.builders_decided import make_replied, scores
from tests.judging.builders_judging import (
    make_items,
)
from tests.judging.test_result_pages import lines

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("charts_fit_their_schema")]

INDEX = "/projects/fbi/results/"
MINE = ("data-set", "agreement", "cost")
VIEWS = [(slug, view.slug) for slug in MINE for view in PAGES[slug].views]


@pytest.fixture
def items(project: Project) -> list[Item]:
    """Three of sums, one of essays; topics are lists, and one item is open."""
    sums = make_items(project, 2, fields={"task": "sums", "topic": ["art", "law"]})
    sums += make_items(project, 1, "score-invariant", fields={"task": "sums", "topic": ["law"]})
    essay = make_items(
        project, 1, category="spelling", ability="long-form", fields={"task": "essay"}
    )
    sums[0].resolutions.update(current=False)
    return [*sums, *essay]


@pytest.fixture
def labelled(project: Project, items: list[Item]) -> list[Membership]:
    """Two people; of four items they agree on three."""
    people = people_of(project, "ann", "bob")
    said = [("valid", "valid"), ("valid", "valid"), ("valid", "invalid"), ("invalid", "invalid")]
    for item, row in zip(items, said, strict=True):
        for person, choice in zip(people, row, strict=True):
            make_label(item, person, choice, seconds=20)
    return people


@pytest.fixture
def judged(project: Project, items: list[Item]) -> None:
    make_replied(project, "vanilla", [(item, scores(9, 5)) for item in items[1:]])


def shown(browser: Client, path: str) -> str:
    answer = browser.get(INDEX + path)
    assert answer.status_code == 200, path
    return unescape(" ".join(answer.content.decode().split()))


def keys(browser: Client, address: str) -> list[str]:
    page = browser.get(address).content.decode()
    return sorted(set(re.findall(r'/items/(item-\d+)/[?"]', page)))


def links(page: str) -> list[str]:
    """Where links lead to items."""
    return re.findall(r'href="(/projects/fbi/items/\?[^"]*)"', page)


@pytest.mark.parametrize(("page", "view"), [one for one in VIEWS if one[0] != "cost"])
def test_every_view_has_a_table_and_a_chart(
    labelled: list[Membership], judged: None, browser: Client, page: str, view: str
) -> None:
    found = shown(browser, f"{page}/?view={view}&intervals=yes")
    assert lines(found)
    assert '<script id="figures-chart" type="application/json">' in found


@pytest.mark.parametrize("page", MINE)
def test_a_project_without_items_says_what_to_do(
    project: Project, browser: Client, page: str
) -> None:
    for view in PAGES[page].views:
        found = shown(browser, f"{page}/?view={view.slug}")
        assert "No figures here yet" in found or "No results yet" in found


def test_a_field_with_the_name_of_a_column_is_refused_in_words(
    project: Project, browser: Client
) -> None:
    make_items(project, 2, fields={"n": 4})
    answer = browser.get(f"{INDEX}data-set/?view=items&by=n")
    assert answer.status_code == 404
    api = browser.get("/api/v1/projects/fbi/results/dataset/?by=n")
    assert api.status_code == 400
    assert "another name" in api.content.decode()


@pytest.mark.parametrize("path", ["data-set/?view=items", "detector/", "people/?view=groups"])
def test_a_field_with_the_name_of_a_column_is_not_offered_and_the_page_says_why(
    project: Project, browser: Client, path: str
) -> None:
    items = make_items(project, 2, fields={"n": 4, "run": "a", "topic": "law"})
    make_replied(project, "vanilla", [(item, scores(9, 5)) for item in items])
    page = shown(browser, path)
    offered = page.split('aria-label="Grouped by"')[1].split("</nav>")[0]
    assert ">Topic</a>" in offered
    assert ">N</a>" not in offered
    assert ">Run</a>" not in offered
    assert "Not available for grouping: <code>n</code>, <code>run</code>." in page
    assert "Not available for grouping" not in shown(browser, "cost/")


def test_a_field_that_a_list_with_commas_would_not_give_back_is_not_offered(
    project: Project, browser: Client
) -> None:
    make_items(project, 2, fields={"a,b": "x", " c": "y", 'd"': "z", "topic": "law"})
    page = shown(browser, "data-set/?view=items")
    assert 'Not available for grouping: <code> c</code>, <code>a,b</code>, <code>d"</code>.' in page
    offered = re.findall(r'<a href="(\?[^"]*by=[^"]*)"', page)
    assert offered
    for one in offered:
        assert browser.get(f"{INDEX}data-set/{unescape(one)}").status_code == 200, one


@pytest.mark.parametrize(
    "page", [page for page in PAGES.values() if any(v.groups for v in page.views)]
)
def test_what_items_have_of_their_own_accord_is_never_taken(page: ResultPage) -> None:
    printed = {
        by for view in page.views for of in view.studies.values() for one in of for by in one.by
    }
    assert not page.taken_names & {*grouping.GROUPING_COLUMNS, *ANSWER_LENGTH_TITLE, *printed}


def test_a_line_of_the_data_set_is_a_group(items: list[Item], browser: Client) -> None:
    [essay, sums] = lines(shown(browser, "data-set/?by=task"))
    # Essay: 1 of 4 items, valid. Sums: 3 of 4; 1 valid, 1 score-invariant, 1 open.
    third = "1 33.3 % of 3"
    assert essay[:3] == ["essay", "1", "25.0 %"]
    assert sums[:6] == ["sums", "3", "75.0 %", third, third, third]
    # “How many legs have 4 spiders?” are six words, as are “4 spiders have 32 legs.” five. As many
    # pieces stand between white space.
    assert essay[6:] == [*["5 n 1"] * 4, *["6 n 1"] * 2]


def test_tokens_stand_between_white_space_and_words_between_marks_too(
    items: list[Item], browser: Client
) -> None:
    # 2, 5 and 7 are words, and so are legs and feet.
    items[3].revisions.update(texts={"prompt": "2.5 to 7 legs/feet", "gold": "", "perturbed": "!"})
    [essay, _] = lines(shown(browser, "data-set/?by=task"))
    # Gold, perturbed, prompt; each in words, then in tokens.
    assert essay[6:] == ["0 n 1", "0 n 1", "0 n 1", "1 n 1", "6 n 1", "4 n 1"]


def test_figures_of_agreement_lead_to_their_items(
    labelled: list[Membership], browser: Client
) -> None:
    everything = ["item-1", "item-2", "item-3", "item-4"]
    for who in ("everybody", "pairs", "persons"):
        found = links(shown(browser, f"agreement/?view=measures&who={who}"))
        assert found
        assert [keys(browser, one) for one in found] == [everything] * len(found)


def test_what_two_people_said_leads_to_the_items_of_which_they_did(
    project: Project, labelled: list[Membership], items: list[Item], browser: Client
) -> None:
    found = links(shown(browser, "agreement/?view=confusion"))
    # Valid with valid, with invalid, in all; then invalid with invalid, in all.
    assert [keys(browser, one) for one in found] == [
        ["item-1", "item-2"], ["item-3"], ["item-1", "item-2", "item-3"], ["item-4"], ["item-4"],
    ]  # fmt: skip
    [cleo] = people_of(project, "cleo")
    make_label(items[3], cleo, "valid", seconds=20)
    both = links(shown(browser, "agreement/?view=confusion"))
    # Over three pairs either way round: now ann and bob say of item-4 what cleo does not.
    assert [keys(browser, one) for one in both] == [
        ["item-1", "item-2"], ["item-3", "item-4"], ["item-1", "item-2", "item-3", "item-4"],
        ["item-3", "item-4"], ["item-4"], ["item-3", "item-4"],
    ]  # fmt: skip


def test_a_group_leads_to_its_items_and_those_of_a_label(
    items: list[Item], browser: Client
) -> None:
    page = shown(browser, "data-set/?by=task")
    assert [keys(browser, link) for link in links(page)] == [
        ["item-4"], ["item-4"],
        ["item-1", "item-2", "item-3"], ["item-2"], ["item-3"], ["item-1"],
    ]  # fmt: skip


def test_categories_stand_below_their_abilities(items: list[Item], browser: Client) -> None:
    assert lines(shown(browser, "data-set/?view=categories")) == [
        ["Long form", "1", "25.0 %", ""],
        ["Spelling", "1", "25.0 %", "100.0 %"],
        ["Factual", "3", "75.0 %", ""],
        ["Number errors", "3", "75.0 %", "100.0 %"],
    ]


def test_each_of_several_values_of_a_field_has_its_share(
    items: list[Item], browser: Client
) -> None:
    page = shown(browser, "data-set/?view=shares&of=fields.topic")
    # Of four items two are of art and three of law: more than all, since some are of both.
    assert lines(page)[1:] == [["art", "2", "50.0 % n 4"], ["law", "3", "75.0 % n 4"]]
    [art, _] = re.findall(r'href="(/projects/fbi/items/\?[^"]*)"', page)
    assert keys(browser, art) == ["item-1", "item-2"]


def test_agreement_is_that_of_the_table(labelled: list[Membership], browser: Client) -> None:
    found = {line[1]: line[2:] for line in lines(shown(browser, "agreement/"))}
    # Three of four pairs of labels agree.
    assert found["Percent agreement"] == ["75.0 %", "4", "2"]
    # By chance 3/4 x 1/2 + 1/4 x 1/2 = 1/2, so kappa = (3/4 - 1/2) / (1 - 1/2).
    assert found["Cohen’s kappa"] == ["0.500", "4", "2"]


def test_who_says_what_is_told_of_two_people(labelled: list[Membership], browser: Client) -> None:
    page = shown(browser, "agreement/?view=confusion")
    assert lines(page) == [
        ["Valid", "2 66.7 %", "1 33.3 %", "3"],
        ["Invalid", "0", "1 100.0 %", "1"],
    ]
    assert "by what ann (rows) and bob (columns) say" in page
    # Only where they differ: a third of the row is the second of five shades.
    assert re.findall(r'data-heat="(\d)"', page) == ["1"]


def test_pairs_of_people_count_both_ways_together(
    project: Project, items: list[Item], labelled: list[Membership], browser: Client
) -> None:
    [cid] = people_of(project, "cid")
    make_label(items[2], cid, "invalid")
    # Beside ann and bob: ann (valid) and cid (invalid), bob and cid (invalid).
    # Valid with valid 2 x 2, valid with invalid 2 either way, invalid with invalid (1 + 1) x 2.
    assert [line[1:] for line in lines(shown(browser, "agreement/?view=confusion"))] == [
        ["4 66.7 %", "2 33.3 %", "6"],
        ["2 33.3 %", "4 66.7 %", "6"],
    ]
    pair = lines(shown(browser, "agreement/?view=confusion&a=ann&b=cid"))
    assert [line[1:] for line in pair] == [["0", "1 100.0 %", "1"], ["0", "0", "0"]]


def test_effort_is_that_of_each_person(labelled: list[Membership], browser: Client) -> None:
    found = lines(shown(browser, "agreement/?view=effort"))
    assert [line[:2] for line in found] == [["ann", "4"], ["bob", "4"]]
    assert found[0][4:] == ["20 s n 4", "20 s", "20 s", "0"]


def test_labels_of_over_half_an_hour_lead_to_their_items(
    project: Project, items: list[Item], labelled: list[Membership], browser: Client
) -> None:
    ann, bob = labelled
    make_label(items[3], ann, "valid", seconds=1800.04, counted=False, current=False)
    for item, person, seconds in (
        (items[0], ann, 1800.2),
        (items[1], ann, 1800.04),
        (items[2], bob, 9000),
    ):
        person.labels.filter(item=item).update(seconds=seconds)
    page = shown(browser, "agreement/?view=effort")
    assert [line[7] for line in lines(page)] == ["1", "1"]
    late = [one for one in links(page) if "longer_than" in one]
    assert [keys(browser, one) for one in late] == [["item-1"], ["item-3"]]
    # The list was narrowed to what people did, so the member has seen that of this item.
    assert set(Mark.objects.values_list("item__key", flat=True)) >= {"item-1", "item-3"}


def test_other_answers_lead_to_the_items_that_they_are_held_true_of(browser: Client) -> None:
    errors = make_project("errors", task_type="error-detection")
    lead = make_member(errors, role="researcher")
    assert lead.account
    browser.force_login(lead.account)
    items = make_items(errors, 5, "error", fields={"checked": True})
    said = [["x", "y"], "x", "xy", True, ["y"]]
    for item, value in zip(items, said, strict=True):
        item.resolutions.update(values={"error_type": value})
    items[4].resolutions.update(current=False)
    answer = browser.get("/projects/errors/results/data-set/?view=shares")
    page = unescape(answer.content.decode())
    found = re.findall(r'href="(/projects/errors/items/\?[^"]*answers=[^"]*)"', page)
    assert [keys(browser, one) for one in found] == [
        ["item-4"], ["item-1", "item-2"], ["item-3"], ["item-1"],
    ]  # fmt: skip
    [checked] = re.findall(r'href="(/projects/errors/items/\?[^"]*checked[^"]*)"', page)
    assert len(keys(browser, checked)) == 5


@pytest.mark.parametrize("role", ["annotator", "adjudicator"])
def test_who_labels_sees_none_of_it(project: Project, client: Client, role: str) -> None:
    [member] = people_of(project, "ann")
    member.role = role
    member.save()
    assert member.account
    client.force_login(member.account)
    assert [client.get(f"{INDEX}{page}/").status_code for page in MINE] == [403] * 3


def test_the_words_of_many_items_are_counted_by_a_worker(project: Project, browser: Client) -> None:
    make_items(project, GROUP_DRAW_LIMIT)
    assert "These figures are being computed." not in shown(browser, "data-set/?view=categories")
    make_items(project, 1)
    assert "These figures are being computed." in shown(browser, "data-set/?view=categories")


def test_the_texts_of_few_items_are_in_memory_at_once(project: Project) -> None:
    make_items(project, 200)
    Revision.objects.update(texts={"prompt": "Who?", "gold": "Ann.", "perturbed": "x" * 400_000})
    tracemalloc.start()
    [row] = [one for one in data_set.tabulate(project, []) if one["value"] == "perturbed"]
    # Together, the texts have 80 MB.
    assert tracemalloc.get_traced_memory()[1] < 60_000_000
    tracemalloc.stop()
    assert row["count"] == 200


def test_long_fields_are_read_one_at_a_time_and_not_kept(project: Project) -> None:
    draws = random.Random(1)
    for number, item in enumerate(make_items(project, 20)):
        item.fields = {"task": "sums", f"note_{number}": draws.randbytes(1_000_000).hex()}
        item.save()
    tracemalloc.start()
    found = {one["of"]: one["count"] for one in data_set.tabulate(project, [])}
    # Together, the fields have 40 MB.
    assert tracemalloc.get_traced_memory()[1] < 25_000_000
    tracemalloc.stop()
    assert (found["fields.task"], len([one for one in found if "note" in one])) == (20, 0)
