"""A page of a signed-in person, which fails its test if the browser complains."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.core.servers.basehttp import WSGIRequestHandler
from django.test import Client
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from annotation.models import Account

OpenPage = Callable[..., Page]

# Milliseconds that a page gets for what a test waits for; a busy machine may need seconds.
PATIENCE = 20_000
expect.set_options(timeout=PATIENCE)

# Django's server writes headers and body apart, and the kernel would hold the second back until the
# browser has acknowledged the first: 40 ms for each style sheet and script of a page.
WSGIRequestHandler.disable_nagle_algorithm = True


@pytest.fixture
def open_page(browser: Browser, live_server: LiveServer) -> Iterator[OpenPage]:
    """`open_page(account, path, **context)`: a page of the account, None being a visitor. Without
    the service worker, unless a test allows it: what it fetches, Playwright cannot hold back."""
    complaints: list[str] = []
    contexts = []

    def opened(account: Account | None, path: str, **options: Any) -> Page:
        allowed = {"service_workers": "block"} | options
        context = browser.new_context(base_url=live_server.url, **allowed)
        contexts.append(context)
        if account:
            _sign_in(context, account, live_server.url)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: _note(complaints, message))
        page.goto(path)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def _sign_in(context: Any, account: Account, address: str) -> None:
    client = Client()
    client.force_login(account)
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    cookie = {"name": settings.SESSION_COOKIE_NAME, "value": session, "url": address}
    context.add_cookies([cookie])


def _note(complaints: list[str], message: Any) -> None:
    # What a test breaks on purpose, the network and the answers 4xx and 5xx, the browser reports
    # by itself; a test looks at what the page makes of it.
    expected = ("Failed to load resource", "Failed to fetch")
    if message.type == "error" and not any(words in message.text for words in expected):
        complaints.append(message.text)
