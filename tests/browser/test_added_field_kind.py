"""CONTRIBUTING's promise: the scripts of the label screen know no kind of field by its name."""

from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from annotation import tasktypes
from annotation.models import Label
from tests.annotation.added_kinds import add_kind
from tests.browser.conftest import OpenPage
from tests.browser.screen import label_screen, wait_for
from tests.builders import make_item, make_member, make_project

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SOURCE = '''"""A number that is typed."""

from dataclasses import dataclass

from annotation.tasktypes.fields.base import Field


@dataclass(frozen=True, kw_only=True)
class Percent(Field):
    """A whole number from 0 to 100."""

    kind = "percent"
    asks_for = "a number from 0 to 100"

    @property
    def takes(self):
        return "type a whole number from 0 to 100."

    def clean(self, answer):
        if not str(answer).isdigit() or int(answer) > 100:
            raise self.error()
        return int(answer)
'''
TEMPLATE = """<fieldset class="asked" {% include "annotation/fields/_attributes.html" %}>
  {% include "annotation/fields/_head.html" %}
  <input type="number" name="{{ field.field.name }}" value="{{ field.value }}" min="0" max="100"
    aria-label="{{ field.field.title }}">
</fieldset>
"""
FIELD = """
[[fields]]
name = "confidence"
kind = "percent"
title = "Confidence"
"""


@pytest.fixture
def percent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    add_kind("percent", SOURCE, TEMPLATE, tmp_path, monkeypatch, settings)


def test_a_number_is_typed_kept_as_a_draft_and_sent(percent: None, open_page: OpenPage) -> None:
    project = make_project(task_type="rating")
    lead = make_member(project, role="lead")
    source = tasktypes.load_sources()["rating"] + FIELD
    page = open_page(lead.account, reverse("task", args=[project.slug]) + "?tab=toml")
    page.fill("[name=source]", source)
    page.click("text=Save as a new version")
    expect(page.get_by_text("It applies to items opened from now on.")).to_be_visible()
    for number in (1, 2):
        make_item(project, f"item-{number}", texts={"prompt": "?", "gold": ["a"], "response": "b"})

    member = make_member(project)
    page = label_screen(open_page, member, "item-1")
    for key in "321":
        page.keyboard.press(key)
    number = page.locator("[name=confidence]")
    expect(number).to_be_focused()
    page.keyboard.type("41")
    page.keyboard.press("ArrowUp")
    expect(number).to_have_value("42")
    expect(number).to_be_focused()
    with page.expect_response("**/draft/"):
        pass
    page.reload()
    wait_for(page, "item-1")
    expect(number).to_have_value("42")
    page.keyboard.press("Control+Enter")
    wait_for(page, "item-2")
    answers = {"naturalness": 3, "relatedness": 2, "correctness": 1, "confidence": 42}
    assert Label.objects.get().answers == answers
