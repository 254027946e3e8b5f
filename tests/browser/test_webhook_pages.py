"""A lead sets up a webhook, tests it and sees what the receiver answers."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections
from playwright.sync_api import expect

from judging.models import Delivery
from judging.webhooks import delivery
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.builders import make_member, make_project
from tests.services.webhook_receiver import Receiver

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.WEBHOOK_HOSTS = ["127.0.0.1"]
    made = Receiver()
    yield made
    made.close()


def serve() -> None:
    """What a worker does if it looks now; the browser's own loop keeps this thread."""

    def work() -> None:
        delivery.run_slice()
        connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_a_lead_sets_up_a_webhook_and_follows_a_test(
    open_page: OpenPage, receiver: Receiver, width: int, scheme: str
) -> None:
    """Some seconds: axe looks at each page in both colours."""
    lead = make_member(make_project("fbi"), role="lead")
    page = open_page(lead.account, "/projects/fbi/", **look(width, scheme))
    page.get_by_role("link", name="Webhooks").press("Enter")
    expect(page.get_by_role("heading", name="No webhooks yet")).to_be_visible()
    checked(page)
    page.get_by_role("link", name="New webhook").press("Enter")
    expect(page.get_by_label("Runs: finished, paused or cancelled")).to_be_checked()
    page.get_by_label("Address").fill(receiver.address)
    checked(page)
    page.get_by_label("Address").press("Enter")
    page.get_by_text("Secret", exact=True).press("Enter")
    expect(page.locator(".secret")).to_contain_text("whsec_")
    receiver.answers = [(410, "<b>Gone for good.</b> " + "x" * 300)]
    page.get_by_role("button", name="Send a test").press("Enter")
    expect(page.get_by_text("waiting")).to_be_visible()
    checked(page)
    serve()
    # The list follows by itself.
    expect(page.get_by_text("failed", exact=True)).to_be_visible()
    page.get_by_text("Answer", exact=True).click()
    expect(page.get_by_text("<b>Gone for good.</b>")).to_be_visible()
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("it wants no more messages")
    checked(page)
    page.get_by_role("button", name="Switch on").press("Enter")
    page.get_by_role("button", name="Send all that failed again (1)").press("Enter")
    expect(page.get_by_text("waiting")).to_be_visible()
    serve()
    expect(page.get_by_text("delivered", exact=True)).to_be_visible()
    assert Delivery.objects.get().state == "delivered"
    page.get_by_role("link", name="Webhooks").first.press("Enter")
    expect(page.get_by_role("link", name=receiver.address)).to_be_visible()
    checked(page)
