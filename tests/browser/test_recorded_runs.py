"""The page of replies that were made elsewhere: where two verdicts differ, readable everywhere."""

import io
import json
from pathlib import Path

import pytest
from django.core.management import call_command
from django.urls import reverse
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.builders import make_member, make_project
from tests.judging.builders_judging import make_items

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_where_stored_and_parsed_verdicts_differ(
    open_page: OpenPage, tmp_path: Path, width: int, scheme: str
) -> None:
    project = make_project("p", task_type="error-detection")
    for number in range(3):
        key = f"math_problem_generation_{number}_with-a-key-that-does-not-end-soon"
        make_items(project, 1, "error", key=key)
    path = tmp_path / "replies.jsonl"
    rows = [
        {"item": key, "text": "The model response contains no error.", "value": "error"}
        for key in project.items.values_list("key", flat=True)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    named = {"project": "p", "endpoint": 'rater <b>"1"</b>', "strategy": "detect-1a"}
    call_command("import_replies", str(path), format="jsonl", stdout=io.StringIO(), **named)
    account = make_member(project, role="researcher").account
    page = open_page(account, reverse("run", args=["p", 1]), **look(width, scheme))
    differ = page.get_by_role("region", name="How the verdicts differ")
    expect(differ.locator("tbody td")).to_have_text(["error", "no error", "3"])
    checked(page)
    page.get_by_role("region", name="Items whose verdicts differ").get_by_role("link").first.click()
    expect(page.get_by_text("Its prompt is not known")).to_be_visible()
    checked(page)
