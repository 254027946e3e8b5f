"""The page Pairwise comparisons, and its tables in files and the API, on labels by hand."""

import json
from html import unescape
from math import log
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from annotation.labelling import queue
from annotation.models import Project
from annotation.reports import pairwise, tables
from annotation.tasktypes import versions
from tests.builders import browser_of, make_member, make_project
from tests.judging.builders_compared import BAD, FIRST, GOOD, SECOND, make_pair, say_better

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return make_project("rivers", task_type="pairwise")


def rows(project: Project, counted: str = "final") -> list[dict[str, Any]]:
    return [row for row in pairwise.system_rows(project) if row["counted"] == counted]


def make_study(project: Project) -> None:
    """alpha against beta: 7 wins, 2 ties, 3 losses, some with beta first; beta against gamma: one
    win, one loss."""
    for one, other, said, times in (
        ("alpha", "beta", FIRST, 5),
        ("beta", "alpha", SECOND, 2),
        ("alpha", "beta", GOOD, 1),
        ("beta", "alpha", BAD, 1),
        ("alpha", "beta", SECOND, 2),
        ("beta", "alpha", FIRST, 1),
        ("beta", "gamma", FIRST, 1),
        ("gamma", "beta", FIRST, 1),
    ):
        for _ in range(times):
            make_pair(project, one, other, said)


def test_wins_are_those_of_the_system_wherever_its_response_stands(project: Project) -> None:
    make_study(project)
    found = {row["system"]: row for row in rows(project)}
    counts = {
        name: tuple(row[one] for one in ("n", "wins", "ties", "losses", "rate"))
        for name, row in found.items()
    }
    assert counts == {
        "alpha": (12, 7, 2, 3, pytest.approx(8 / 12)),
        "beta": (14, 4, 2, 8, pytest.approx(5 / 14)),
        "gamma": (2, 1, 0, 1, 0.5),
    }
    # alpha to beta 8 to 4, beta to gamma even: alpha is log 2 above both, so 2/3 log 2 above the
    # mean.
    strengths = [row["strength"] for row in found.values()]
    assert strengths == pytest.approx([2 / 3 * log(2), -log(2) / 3, -log(2) / 3])
    assert list(found) == ["alpha", "gamma", "beta"]


def test_answers_of_a_choice_that_is_gone_count_as_before(project: Project) -> None:
    make_study(project)
    before = {counted: rows(project, counted) for counted in pairwise.COUNTED}
    replace_last_choice(project)
    assert {counted: rows(project, counted) for counted in pairwise.COUNTED} == before


def test_a_choice_that_is_gone_leaves_out_items_only_if_it_did(project: Project) -> None:
    make_study(project)
    replace_last_choice(project, '[[fields.choices]]\nvalue = "odd"\ntitle = "Odd"\ndrops = true\n')
    make_pair(project, "alpha", "beta", "odd")
    assert [(one.value, one.n) for one in tables.measure_dropped(project).drops] == [("odd", 1)]
    replace_last_choice(project, gone="odd")
    assert [(one.value, one.n) for one in tables.measure_dropped(project).drops] == [("odd", 1)]


def replace_last_choice(project: Project, new: str = "", gone: str = "both_bad") -> None:
    source = versions.version_source(project.task_type)
    kept = source[: source.index(f'[[fields.choices]]\nvalue = "{gone}"')]
    adapted, lead = versions.parse_source(project, kept + new), make_member(project, role="lead")
    assert versions.save_version(project, adapted, member=lead, shown=project.task_type_id)
    project.refresh_from_db()


def test_pairs_are_told_by_the_stronger_system(project: Project) -> None:
    make_study(project)
    found = [row for row in pairwise.pair_rows(project) if row["counted"] == "final"]
    told = [
        (row["system_a"], row["system_b"], row["wins"], row["ties"], row["losses"]) for row in found
    ]
    assert told == [("alpha", "beta", 7, 2, 3), ("gamma", "beta", 1, 0, 1)]
    assert found[0]["rate"] == pytest.approx(8 / 12)
    # Wilson's interval of 8 in 12: centre (0.66667 + 3.84146 / 24) / 1.32012 = 0.62625, half
    # 1.95996 / 1.32012 x sqrt(0.0185185 + 3.84146 / 576) = 0.23563.
    assert (found[0]["low"], found[0]["high"]) == pytest.approx((0.39062, 0.86188), abs=2e-5)


def test_what_cannot_be_counted_is_left_out_and_said(project: Project) -> None:
    make_pair(project, "alpha", "beta", FIRST)
    make_pair(project, "alpha", "beta")
    make_pair(project, "alpha", "", FIRST)
    make_pair(project, "alpha", " alpha", FIRST)
    make_pair(project, "x", "y", FIRST, purpose="control")
    gone = make_pair(project, "x", "y", FIRST)
    gone.deleted_at = timezone.now()
    gone.save()
    found = pairwise.load_comparisons(project, "final")
    assert (len(found.found), found.unnamed, found.same, found.dropped) == (1, 1, 1, 0)
    page = browser_of(make_member(project, role="lead")).get("/projects/rivers/results/pairwise/")
    said = (
        "Left out: answers 1 of items that do not name both systems, 1 of items that name the same"
    )
    assert said in page.content.decode()


def test_systems_may_be_named_by_numbers(project: Project) -> None:
    make_pair(project, "", "", FIRST, fields={"system_1": 7, "system_2": 13})
    assert [row["system"] for row in rows(project)] == ["7", "13"]


def test_labels_count_one_by_one_if_that_is_chosen(project: Project) -> None:
    make_pair(project, "alpha", "beta"), make_pair(project, "alpha", "beta")
    people = [make_member(project) for _ in range(3)]
    for member, said in zip(people, ((FIRST, FIRST), (FIRST, GOOD), (SECOND, FIRST)), strict=True):
        for one in said:
            say_better(member, one)
    assert [row["n"] for row in rows(project)] == [2, 2]
    [alpha, beta] = rows(project, "labels")
    assert (alpha["n"], alpha["wins"], alpha["ties"], alpha["losses"]) == (6, 4, 1, 1)
    assert beta["rate"] == pytest.approx(1.5 / 6)


def test_the_place_of_a_response_is_told_from_labels(project: Project) -> None:
    ada, bo = make_member(project, alias="ada"), make_member(project, alias="bo")
    for number in range(12):
        make_pair(project, "alpha", "beta", cluster=str(number))
    firsts = seconds = 0
    for number in range(12):
        offer = queue.next_offer(ada)
        assert isinstance(offer, queue.Offer)
        # ada takes A three times in four, whatever it is; bo always finds both good.
        [other] = {FIRST, SECOND} - {offer.first}
        said = other if number % 4 == 0 else offer.first
        firsts, seconds = firsts + (said == offer.first), seconds + (said == other)
        queue.store_label(ada, offer.submission({"preference": said}))
    say_better(bo, GOOD)
    found = {row["annotator"]: row for row in pairwise.position_rows(project)}
    assert (firsts, seconds) == (9, 3)
    for name, ties in (("", 1), ("ada", 0)):
        row = found[name]
        assert [row[one] for one in ("n", "first", "second", "ties", "rate")] == [
            12,
            9,
            3,
            ties,
            0.75,
        ]
        # Wilson's interval of 9 in 12.
        assert (row["low"], row["high"]) == pytest.approx((0.46770, 0.91105), abs=2e-4)
    assert (found["bo"]["n"], found["bo"]["rate"], found["bo"]["reason"]) == (0, None, "no items")


def test_a_system_that_always_wins_has_no_strength_but_a_win_rate(project: Project) -> None:
    for _ in range(3):
        make_pair(project, "alpha", "beta", SECOND)
    [beta, alpha] = rows(project)
    assert (beta["system"], beta["rate"], alpha["rate"]) == ("beta", 1.0, 0.0)
    assert (beta["strength"], beta["strength_low"]) == (None, None)
    assert "won every comparison" in beta["strength_reason"]
    page = browser_of(make_member(project, role="lead")).get("/projects/rivers/results/pairwise/")
    assert "won every comparison" in page.content.decode()


def test_a_count_leads_to_its_items(project: Project) -> None:
    make_study(project)
    lead = browser_of(make_member(project, role="lead"))
    page = unescape(lead.get("/projects/rivers/results/pairwise/?view=pairs").content.decode())
    start = page.index("/projects/rivers/items/?pairwise=")
    address = page[start : page.index('"', start)]
    listed = lead.get(address).content.decode()
    assert "12 items" in listed or listed.count("/projects/rivers/items/item-") >= 12
    row = {"counted": "final", "system_a": "gamma", "system_b": "beta"}
    assert len(pairwise.item_positions(project, row)) == 2
    assert len(pairwise.item_positions(project, {"system": "beta"})) == 14
    assert lead.get("/projects/rivers/items/?pairwise=[]").status_code == 200


def test_page_file_and_api_say_the_same(project: Project) -> None:
    make_study(project)
    lead = browser_of(make_member(project, role="researcher"))
    page = lead.get("/projects/rivers/results/pairwise/").content.decode()
    assert "alpha" in page
    assert "0.46" in page  # 2/3 log 2
    for table in ("pairwise", "pairwise_pairs", "pairwise_position"):
        told = lead.get(f"/api/v1/projects/rivers/results/{table}/").json()
        assert lead.get(f"/projects/rivers/results/{table}.json").json() == told
        assert lead.get(f"/projects/rivers/results/{table}.csv").status_code == 200
    told = lead.get("/api/v1/projects/rivers/results/pairwise/").json()["rows"]
    assert told == json.loads(json.dumps(list(pairwise.system_rows(project))))
    assert lead.get("/projects/rivers/results/pairwise/?counted=labels").status_code == 200


@pytest.mark.parametrize("view", ["systems", "pairs", "position"])
def test_an_empty_page_says_what_to_do(project: Project, view: str) -> None:
    lead = browser_of(make_member(project, role="lead"))
    page = lead.get(f"/projects/rivers/results/pairwise/?view={view}").content.decode()
    assert "No figures here yet" in page
    assert ("system_1" in page) == (view != "position")


def test_only_projects_with_a_pair_are_led_to_the_page(project: Project) -> None:
    address = reverse("results-page", args=["rivers", "pairwise"])
    for role, is_there in (("lead", True), ("researcher", True), ("annotator", False)):
        page = browser_of(make_member(project, role=role)).get("/projects/rivers/")
        assert (address in page.content.decode()) == is_there
    other = make_project("vetting")
    page = browser_of(make_member(other, role="lead")).get("/projects/vetting/").content.decode()
    assert "results/pairwise" not in page
    assert list(pairwise.system_rows(other)) == list(pairwise.position_rows(other)) == []
