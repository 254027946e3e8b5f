"""The pages of making in every look: what a run made, how it turned out, what is made again."""

import json

import pytest
from django.urls import reverse

from annotation.models import Membership
from judging.models import Run
from judging.runs import lifecycle
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.builders import make_item, make_member, make_project, make_resolution, say, take
from tests.judging.builders_judging import answer_as, make_endpoint, make_items, make_run

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LONG = "a/long-key-that-could-push-the-page-wider-than-a-telephone-is"
PERTURBED = {"perturbed": "Six legs. " * 40, "claim": "Eight became six.", "rationale": "Seen."}


@pytest.fixture
def lead() -> Membership:
    return make_member(make_project("fbi"), role="lead")


def made(lead: Membership) -> Run:
    """A run that made something of every item."""
    make_items(lead.project, 4)
    endpoint = make_endpoint("http://127.0.0.1:9/v1")
    run = make_run(lead.project, endpoint, "generate-score-invariant")
    lifecycle.plan_calls(run)
    answer_as(run, lambda prompt: json.dumps(PERTURBED))
    lifecycle.finish_if_done(run)
    return run


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_what_a_run_made_before_it_comes_in(
    open_page: OpenPage, lead: Membership, width: int, scheme: str
) -> None:
    address = reverse("run-bring-in", args=["fbi", made(lead).number])
    page = open_page(lead.account, address, **look(width, scheme))
    checked(page)
    page.get_by_role("button", name="Import items").click()
    page.wait_for_selector("#jobs li")
    checked(page)


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_the_board_and_what_is_made_again(
    open_page: OpenPage, lead: Membership, width: int, scheme: str
) -> None:
    fields = {"generator": "generate-number-errors v1"}
    values = {"origin": "generated", "fields": fields, "slots": 0, "flags": ["claim"]}
    for number in range(4):
        item = make_item(lead.project, f"{LONG}-{number}", **values)
        if number < 2:
            make_resolution(item, "valid", source="labels")
    make_item(lead.project, f"{LONG}-x", **values | {"slots": 1})
    say(lead, take(lead), "invalid", comment="Nobody would notice. " * 20)
    page = open_page(lead.account, reverse("generation-board", args=["fbi"]), **look(width, scheme))
    checked(page)
    page.get_by_role("link", name="Regenerate 1 rejected…").click()
    page.wait_for_url("**/generation/*/")
    checked(page)


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_the_board_of_nothing(
    open_page: OpenPage, lead: Membership, width: int, scheme: str
) -> None:
    checked(
        open_page(lead.account, reverse("generation-board", args=["fbi"]), **look(width, scheme))
    )
