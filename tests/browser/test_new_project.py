"""A project from nothing, in a browser."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from annotation.items import taxonomy
from annotation.models import Project
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.builders import make_account

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_a_project_is_created_archived_and_restored(
    open_page: OpenPage, width: int, scheme: str
) -> None:
    admin = make_account(is_superuser=True)
    page = open_page(admin, reverse("home"), **look(width, scheme))
    page.get_by_role("link", name="New project").click()
    checked(page)
    page.get_by_role("textbox", name="Name").fill("Faults of reviews")
    page.get_by_label("MQM: errors of translations").check()
    page.get_by_role("button", name="Create the project").click()
    expect(page.get_by_text("you are its lead")).to_be_visible()
    expect(page.get_by_role("link", name="Import items")).to_be_visible()
    assert len(taxonomy.load_taxonomy(Project.objects.get())) == 12
    page.goto(page.url + "settings/")
    page.get_by_text("Archive this project").click()
    page.get_by_role("button", name="Archive Faults of reviews").click()
    checked(page)
    page.get_by_role("button", name="Restore Faults of reviews").click()
    expect(page.get_by_text("Faults of reviews is back.")).to_be_visible()
