"""Strategies on their pages: listed, read, their versions compared."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.models import Project
from judging import strategies
from judging.models import StrategyVersion
from tests.builders import make_member, make_project
from tests.judging.builders_judging import make_items, make_run
from tests.judging.test_catalogue import make_own

pytestmark = pytest.mark.django_db


def page(browser: Client, *names: str, query: str = "") -> str:
    address = reverse("strategy" if names else "strategies", args=["fbi", *names])
    answer = browser.get(address + query)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_the_list_names_every_strategy_with_its_source_and_a_way_to_start(browser: Client) -> None:
    shown = page(browser)
    for slug, strategy in strategies.load_all().items():
        assert f"<code>{slug}</code>" in shown
        assert strategy.study in shown
    assert f"{reverse('run-new', args=['fbi'])}?strategy=vanilla" in shown
    assert "?strategy=majority" not in shown  # it asks nobody


def test_the_list_costs_the_same_with_many_versions_and_runs(
    browser: Client, project: Project
) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as asked:
            page(browser)
        return len(asked)

    make_items(project, 1)
    make_run(project)
    before = queries()
    for number in range(1, 6):
        make_own(project, number=number)
        make_run(project)
    assert queries() == before


def test_a_page_says_what_is_shown_asked_offered_and_decides(browser: Client) -> None:
    shown = page(browser, "pairwise-axis")
    for words in (
        "The question with both answers, in both orders.",
        "A, B, both good, both unacceptable",
        "Detected if the gold answer is chosen in both orders.",
        '<mark class="strategy-slot">{{first}}</mark>',
        "000 section 4.2",
        "Hallucination",
    ):
        assert words in shown


@pytest.mark.parametrize("slug", strategies.load_all())
def test_every_strategy_has_a_page(browser: Client, slug: str) -> None:
    assert strategies.load_all()[slug].title in page(browser, slug)


def test_a_page_shows_the_steps_of_a_chain_and_the_points_of_its_metrics(browser: Client) -> None:
    shown = page(browser, "score-chain")
    assert "Step 2: classify" in shown
    assert "<b>-1</b> A class is named, and it is not the right one." in shown


def test_metrics_of_the_task_type_are_shown_as_the_project_has_them(
    client: Client, browser: Client
) -> None:
    assert "no scales or points; choose another strategy" in page(browser, "likert")
    rater = make_member(make_project("raters", task_type="rating"), role="researcher")
    client.force_login(rater.account)
    shown = client.get(reverse("strategy", args=["raters", "likert"])).content.decode()
    assert "<code>naturalness</code>" in shown
    assert "choose another strategy" not in shown


def test_the_runs_that_pin_a_version_stand_on_its_page(browser: Client, project: Project) -> None:
    make_items(project, 1)
    make_run(project)
    assert "rouge-l v1" in page(browser, "rouge-l")
    assert reverse("run", args=["fbi", 1]) in page(browser, "rouge-l")
    assert "No run of this project uses this strategy yet." in page(browser, "vanilla")


def test_an_earlier_version_can_be_looked_at_and_compared(
    browser: Client, project: Project
) -> None:
    make_own(project, number=1)
    last = make_own(project, number=2)
    StrategyVersion.objects.filter(pk=last.pk).update(note="<b>bold</b>")
    assert "an earlier version" in page(browser, "ours", query="?version=1")
    assert "&lt;b&gt;bold&lt;/b&gt;" in page(browser, "ours")
    compared = page(browser, "ours", query="?old=ours+v1&new=ours+v2")
    assert "From ours v1 to ours v2" in compared
    assert re.search(r"<del[^>]*><mark[^>]*>1</mark></del>", compared)
    assert re.search(r"<ins[^>]*><mark[^>]*>2</mark></ins>", compared)


def test_a_copy_is_compared_with_what_it_was_copied_from(browser: Client, project: Project) -> None:
    make_own(project)
    copy = make_own(project, "second")
    copy.parent = StrategyVersion.objects.get(slug="ours")
    copy.save()
    compared = page(browser, "second", query="?old=ours+v1&new=second+v1")
    assert "From ours v1 to second v1" in compared


def test_what_people_write_into_a_strategy_is_shown_as_text(
    browser: Client, project: Project
) -> None:
    hostile = "<script>alert(1)</script>"
    definition = {
        **strategies.load_all()["axis"].definition,
        "slug": "ours",
        "title": hostile,
        "study": hostile,
        "system": hostile,
        "prompt": f"{hostile}{{{{question}}}}{{{{response}}}}{{{{axis}}}}",
        "axes": [{"slug": "a", "title": hostile, "text": hostile, "points": {"1": hostile}}],
        "parameters": {hostile: hostile},
    }
    version = make_own(project)
    StrategyVersion.objects.filter(pk=version.pk).update(definition=definition, note=hostile)
    for shown in (page(browser), page(browser, "ours")):
        assert "<script>alert" not in shown
        assert "&lt;script&gt;alert(1)" in shown
    assert '&lt;/script&gt;<mark class="strategy-slot">{{question}}</mark>' in page(browser, "ours")


@pytest.mark.parametrize("address", ["none/", "ours/?version=7", "ours/?version=x"])
def test_what_is_not_there_is_404(browser: Client, project: Project, address: str) -> None:
    make_own(project)
    assert browser.get(f"/projects/fbi/strategies/{address}").status_code == 404


def test_another_projects_strategy_is_not_there(browser: Client) -> None:
    make_own(make_project("other"), "theirs")
    assert browser.get(reverse("strategy", args=["fbi", "theirs"])).status_code == 404
