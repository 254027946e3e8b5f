"""A passkey as the second step: added, used to sign in and to confirm, and removed."""

import pytest
from allauth.mfa.models import Authenticator
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation.models import Event
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import violations
from tests.builders import PASSWORD, make_account

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def page_with_device(open_page: OpenPage) -> Page:
    """A page of nobody, on a machine with a security key. An address that is a number cannot have
    passkeys."""
    page = open_page(None, reverse("account_login"), own_context=True)
    page.goto(page.url.replace("127.0.0.1", "localhost"))
    device = page.context.new_cdp_session(page)
    device.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2", "transport": "internal", "hasResidentKey": True,
        "hasUserVerification": True, "isUserVerified": True,
    }  # fmt: skip
    device.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return page


def sign_in(page: Page) -> None:
    page.get_by_label("User name or e-mail address").fill("ada")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


def test_a_passkey_is_added_signs_in_and_is_removed(open_page: OpenPage) -> None:
    make_account("ada", email="ada@lab.example")
    page = page_with_device(open_page)
    sign_in(page)
    host = page.url.split("/")[2]
    page.goto(f"http://{host}{reverse('mfa_index')}")
    page.get_by_role("link", name="Add a passkey").click()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Name").fill("Laptop <b>")
    page.get_by_role("button", name="Add it").click()
    expect(page.get_by_text("The passkey was added.")).to_be_visible()
    page.goto(f"http://{host}{reverse('mfa_index')}")
    expect(page.get_by_text("Laptop <b>").first).to_be_visible()
    assert violations(page) == []
    page.context.clear_cookies()
    page.goto(f"http://{host}{reverse('account_login')}")
    sign_in(page)
    assert violations(page) == []
    page.get_by_role("button", name="Use your passkey").click()
    page.wait_for_url(f"http://{host}/")
    page.goto(f"http://{host}{reverse('mfa_index')}")
    page.get_by_role("link", name="Remove Laptop <b>").click()
    page.get_by_role("link", name="Use your passkey").click()
    page.get_by_role("button", name="Use your passkey").click()
    page.get_by_role("button", name="Remove it").click()
    expect(page.get_by_text("The passkey was removed.")).to_be_visible()
    assert not Authenticator.objects.exists()
    told = [event.new for event in Event.objects.filter(kind="account").order_by("pk")]
    assert [one for one in told if "passkey" in one] == [
        {"passkey": "added"}, {"passkey": "removed"}
    ]  # fmt: skip
