"""axe finds nothing on the reports for leads, wide and narrow, in light and dark."""

from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse

from annotation.models import Label
from tests.annotation.test_pace import give
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.builders import make_item, make_member, make_project, make_resolution

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("width, scheme", LOOKS)
@pytest.mark.parametrize("name", ["pace", "board", "project"])
def test_reports_for_leads(open_page: OpenPage, name: str, width: int, scheme: str) -> None:
    project = make_project(overlap=2, claim_check=True)
    lead = make_member(project, role="lead", alias="a-rather-long-alias-of-a-lead")
    for ago in range(3):
        doubted = {"choice": "not-sure", "reason": "gold-wrong"}
        give(lead, "not-sure", answers=doubted, seconds=4000)
        label = give(lead, seconds=12.5)
        then = datetime.now(UTC) - timedelta(days=ago)
        Label.objects.filter(pk=label.pk).update(created_at=then)
        make_resolution(label.item)
    make_item(project, category="grammar", ability="long-form")
    page = open_page(lead.account, reverse(name, args=[project.slug]), **look(width, scheme))
    if name != "project":
        page.wait_for_selector("[data-chart] svg")
    checked(page)
