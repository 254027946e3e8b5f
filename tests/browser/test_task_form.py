"""The form of a task type, with the label form as its preview."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from annotation import tasktypes
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.builders import make_item, make_member, make_project

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_a_lead_adds_a_question_and_sees_it_before_saving(
    open_page: OpenPage, width: int, scheme: str
) -> None:
    """Some ten seconds: a long form, looked at by axe, and a preview after each change."""
    lead = make_member(make_project(), role="lead")
    make_item(lead.project)
    page = open_page(lead.account, reverse("task", args=[lead.project.slug]), **look(width, scheme))
    checked(page)
    page.get_by_label("Question above the form").fill("Is this change an error?")
    expect(page.locator("#preview")).to_contain_text("Is this change an error?")
    page.get_by_role("button", name="Yes or no", exact=True).click()
    title = page.locator("[name$='.title']").last
    title.fill("Is it clear?")
    expect(page.locator("#preview")).to_contain_text("Is it clear?")
    checked(page)
    page.get_by_role("button", name="Save as a new version").click()
    expect(page.get_by_text("It applies to items opened from now on.")).to_be_visible()
    lead.project.refresh_from_db()
    task = tasktypes.load_task_type(lead.project)
    assert (task.question, task.fields[-1].title) == ("Is this change an error?", "Is it clear?")
