"""A page of a signed-in person, which fails its test if the browser complains."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.servers.basehttp import WSGIRequestHandler
from django.core.signals import request_finished, request_started
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from annotation.models import Account

OpenPage = Callable[..., Page]
# The browser contexts that no test uses now, by the options they were made with.
IdleContexts = dict[str, list[BrowserContext]]

# Milliseconds that a page gets for what a test waits for; a busy machine may need seconds.
PATIENCE = 20_000
expect.set_options(timeout=PATIENCE)

# Django's server writes headers and body apart, and the kernel would hold the second back until the
# browser has acknowledged the first: 40 ms for each style sheet and script of a page.
WSGIRequestHandler.disable_nagle_algorithm = True


@pytest.fixture(scope="module")
def idle_contexts(browser: Browser) -> IdleContexts:
    """Contexts for the tests of a module: one that is used again has style sheets and scripts in
    its cache, and what one test leaves in it, cookies and storage, is taken out behind it."""
    return defaultdict(list)


@pytest.fixture
def open_page(
    browser: Browser,
    idle_contexts: IdleContexts,
    live_server: LiveServer,
    requests_at_work: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[OpenPage]:
    """`open_page(account, path, **context)`: a page of the account, None being a visitor.

    Without the service worker, unless a test allows it: what it fetches, Playwright cannot hold
    back. Such a context, and one whose clock a test sets (`own_context=True`), serves no other.
    """
    complaints: list[str] = []
    contexts: list[tuple[BrowserContext, str]] = []

    def opened(
        account: Account | None, path: str, *, own_context: bool = False, **options: Any
    ) -> Page:
        allowed = {"service_workers": "block"} | options
        shared = not own_context and allowed["service_workers"] == "block"
        if shared:
            monkeypatch.setattr(StaticFilesHandler, "serve", _serve_for_an_hour)
        kind = repr(sorted(allowed.items())) if shared else ""
        idle = idle_contexts[kind]
        context = idle.pop() if idle else browser.new_context(base_url=live_server.url, **allowed)
        contexts.append((context, kind))
        if account:
            _sign_in(context, account, live_server.url)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: _note(complaints, message))
        page.goto(path)
        return page

    yield opened
    for context, kind in contexts:
        if kind:
            _empty(context, live_server.url)
            idle_contexts[kind].append(context)
        else:
            context.close()
    requests_at_work()
    assert complaints == []


@pytest.fixture
def requests_at_work() -> Iterator[Callable[[], None]]:
    """A call that waits until the server has answered all: what a page asked for last, it may have
    been closed before it read, and the rows of the next test are not for it."""
    at_work: set[int] = set()
    none_left = threading.Condition()

    def began(**_: Any) -> None:
        with none_left:
            # What a test asks itself, it has waited for.
            if threading.current_thread() is not threading.main_thread():
                at_work.add(threading.get_ident())

    def ended(**_: Any) -> None:
        with none_left:
            at_work.discard(threading.get_ident())
            none_left.notify_all()

    def wait() -> None:
        with none_left:
            assert none_left.wait_for(lambda: not at_work, PATIENCE / 1000), "A request never ended"

    request_started.connect(began)
    request_finished.connect(ended)
    yield wait
    request_started.disconnect(began)
    request_finished.disconnect(ended)


_serve = StaticFilesHandler.serve


def _serve_for_an_hour(handler: StaticFilesHandler, request: Any) -> Any:
    # As in production, where names of files change with what is in them.
    answer = _serve(handler, request)
    answer["Cache-Control"] = "max-age=3600"
    return answer


def _empty(context: BrowserContext, address: str) -> None:
    """Take out what a test left in it, by the last page that is closed: storage is a page's."""
    context.set_offline(False)
    context.clear_cookies()
    for page in context.pages[1:]:
        page.close()
    (page,) = context.pages or [context.new_page()]
    stored = "local_storage,indexeddb,cache_storage"
    context.new_cdp_session(page).send(
        "Storage.clearDataForOrigin", {"origin": address, "storageTypes": stored}
    )
    page.close()


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
