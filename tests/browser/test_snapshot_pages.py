"""A lead keeps a project under a name, and sees what changed since; axe finds nothing."""

import pytest
from django.urls import reverse

from annotation.items.snapshots import create
from annotation.models import Item, Membership, Role, Snapshot
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.builders import make_item, make_member, make_project, make_resolution

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def lead() -> Membership:
    lead = make_member(make_project(), role=Role.LEAD, alias="lead")
    for key in ("a", "a-key-that-is-rather-long-and-has-no-place-to-break-at-all"):
        make_item(lead.project, key)
    return lead


def test_one_appears_once_it_is_made(open_page: OpenPage, lead: Membership) -> None:
    page = open_page(lead.account, reverse("project", args=[lead.project.slug]))
    page.click("text=Snapshots")
    page.fill("[name=name]", "v1")
    page.click("text=Create snapshot")
    page.wait_for_selector("text=Waiting for a worker")
    create.store_contents(Snapshot.objects.get())
    page.click("#made a:text('v1')")
    page.wait_for_selector(f"text={Snapshot.objects.get().digest}")


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_the_pages_of_snapshots(
    open_page: OpenPage, lead: Membership, width: int, scheme: str
) -> None:
    address = reverse("snapshots", args=[lead.project.slug])
    page = open_page(lead.account, address, **look(width, scheme))
    checked(page)
    create.store_contents(create.enqueue(lead.project, lead, "v1", "As submitted."))
    for item in Item.objects.all():
        make_resolution(item, "invalid")
    create.store_contents(
        create.enqueue(lead.project, lead, "v2, with a name that says much of it")
    )
    create.enqueue(lead.project, lead, "v3")
    page.goto(address)
    checked(page)
    page.click("a:text('v2')")
    page.wait_for_selector("text=What changed since v1")
    checked(page)
    page.click("dt:text('Added') + dd a")
    page.wait_for_selector("text=No items of this kind")
    checked(page)
