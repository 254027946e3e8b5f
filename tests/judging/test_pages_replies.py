"""One item in one run: what was sent, what came back, what was read in it."""

import pytest
from django.test import Client

from annotation.models import Membership, Project
from judging import runs
from judging.models import Request, Run
from judging.providers.errors import Rejected
from tests.builders import make_member, make_project, make_revision
from tests.judging.builders_judging import answer, fail, make_endpoint, make_items, make_run

pytestmark = pytest.mark.django_db

HOSTILE = '<script>alert("caught")</script>'


@pytest.fixture
def project() -> Project:
    return make_project("fbi")


@pytest.fixture
def member(project: Project) -> Membership:
    return make_member(project, role="researcher")


@pytest.fixture
def browser(client: Client, member: Membership) -> Client:
    client.force_login(member.account)
    return client


def planned(project: Project, strategy: str = "reference", number: int = 1) -> Run:
    make_items(project, number)
    run = make_run(project, make_endpoint("http://127.0.0.1:9/v1"), strategy)
    runs.plan(run)
    run.refresh_from_db()
    return run


def shown(browser: Client, path: str = "/projects/fbi/runs/1/items/item-1/") -> str:
    answer = browser.get(path)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_a_reply_stands_there_as_it_came(browser: Client, project: Project) -> None:
    answer(planned(project), '{"score": 5}', model="judge-0001", tokens_in=17)
    page = shown(browser)
    assert "{&quot;score&quot;: 5}" in page
    for words in ("judge-0001", "17 in", "<b>5</b>", "by way of", "digest verified", "detected"):
        assert words in page


def test_a_hostile_reply_is_text(browser: Client, project: Project) -> None:
    answer(planned(project), HOSTILE)
    page = shown(browser)
    assert HOSTILE not in page
    assert "&lt;script&gt;alert(&quot;caught&quot;)&lt;/script&gt;" in page
    assert "<b>unparsable</b>" in page


def test_both_orders_of_a_pair_are_shown(browser: Client, project: Project) -> None:
    answer(planned(project, "pairwise"), '{"verdict": "A", "explanation": "first"}')
    page = shown(browser)
    assert "gold shown first as A" in page
    assert "perturbed shown first as A" in page
    assert "first twice" in page


def test_a_failed_request_has_its_cause_and_the_providers_words(
    browser: Client, project: Project
) -> None:
    fail(planned(project), Rejected("The provider answered 400: too long"))
    page = shown(browser)
    assert "No reply: rejected" in page
    assert "The provider answered 400: too long" in page


def test_what_was_not_asked_yet_says_so(browser: Client, project: Project) -> None:
    planned(project)
    assert "Not answered yet" in shown(browser)


def test_a_prompt_that_is_not_what_was_sent_is_called_so(browser: Client, project: Project) -> None:
    run = planned(project)
    answer(run)
    Request.objects.update(digest="0" * 64)
    assert "does not match the request's digest" in shown(browser)


def test_the_texts_are_those_that_were_judged(browser: Client, project: Project) -> None:
    answer(planned(project))
    item = project.items.get()
    make_revision(item, {"prompt": "?", "gold": "new gold", "perturbed": "new text"})
    page = shown(browser)
    assert "new text" not in page
    assert "it is at revision 2 now" in page


def test_a_baseline_shows_what_it_compared(browser: Client, project: Project) -> None:
    make_items(project, 1)
    run = make_run(project)
    runs.plan(run)
    assert '<h3>metric</h3><pre class="text">rouge-l</pre>' in shown(browser)


def test_an_item_of_another_run_or_project_is_not_found(browser: Client, project: Project) -> None:
    planned(project)
    assert browser.get("/projects/fbi/runs/1/items/item-9/").status_code == 404
    assert browser.get("/projects/fbi/runs/2/items/item-1/").status_code == 404


def test_the_item_page_leads_researchers_to_every_runs_replies(
    browser: Client, project: Project
) -> None:
    answer(planned(project))
    page = shown(browser, "/projects/fbi/items/item-1/")
    assert 'href="/projects/fbi/runs/1/items/item-1/"' in page


def test_the_item_page_tells_adjudicators_nothing_of_evaluators(
    client: Client, project: Project
) -> None:
    answer(planned(project))
    client.force_login(make_member(project, role="adjudicator").account)
    assert "/runs/" not in shown(client, "/projects/fbi/items/item-1/")
