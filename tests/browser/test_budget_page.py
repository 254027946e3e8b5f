"""A project's budget, and its own strategies put away, by keyboard."""

from decimal import Decimal

import pytest
from playwright.sync_api import expect

from annotation.models import Project
from judging.models import Budget
from judging.runs import lifecycle
from judging.strategies import catalogue, editing
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.builders import make_member, make_project
from tests.judging.builders_judging import answer, make_endpoint, make_items, make_run

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def asked(project: Project, price: Decimal | None) -> None:
    make_items(project, 2)
    endpoint = make_endpoint("http://127.0.0.1:9/v1", price_in=price, price_out=price)
    run = make_run(project, endpoint)
    lifecycle.plan_calls(run)
    answer(run, tokens_in=100, tokens_out=50)


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_a_lead_sets_what_evaluators_may_cost(open_page: OpenPage, width: int, scheme: str) -> None:
    lead = make_member(make_project("fbi"), role="lead")
    page = open_page(lead.account, "/projects/fbi/", **look(width, scheme))
    page.get_by_role("link", name="Budget").press("Enter")
    expect(page.get_by_role("heading", name="Nothing spent yet")).to_be_visible()
    checked(page)
    asked(lead.project, Decimal(10))
    asked(lead.project, None)
    page.reload()
    checked(page)
    page.get_by_label("Cap").fill("2.5")
    page.get_by_label("Cap").press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("Cap saved.")
    expect(page.get_by_text("4 of 6 replies have an unknown cost")).to_be_visible()
    checked(page)
    assert Budget.objects.get().cap == Decimal("2.5")


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_own_strategies_are_retired_deleted_and_taken_back(
    open_page: OpenPage, width: int, scheme: str
) -> None:
    member = make_member(make_project("fbi"), role="researcher")
    parent = catalogue.find_version(member.project, "vanilla")
    assert parent
    editing.copy_strategy(member.project, parent, slug="ours", member=member)
    path = "/projects/fbi/strategies/ours/"
    page = open_page(member.account, path, **look(width, scheme))
    checked(page)
    page.get_by_role("button", name="Retire").press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("ours is retired")
    expect(page.get_by_role("link", name="Edit", exact=True)).to_have_count(0)
    checked(page)
    page.get_by_role("button", name="Delete").press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("ours is deleted")
    checked(page)
    page.get_by_role("button", name="Restore").press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("ours is restored")
    expect(page.get_by_role("link", name="Edit", exact=True)).to_be_visible()
