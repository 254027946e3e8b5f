"""A page of a signed-in person, which fails its test if the browser complains."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from typing import Any, Literal

import pytest
from django.conf import settings
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.management import call_command
from django.core.servers.basehttp import WSGIRequestHandler
from django.core.signals import request_finished, request_started
from django.db import connections
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect
from pytest_django.live_server_helper import LiveServer

from annotation.models import Account
from judging.jobs.worker import WorkLoop
from judging.runs.engine import ask

OpenPage = Callable[..., Page]
# A page of the site that asks for nothing more.
KEPT = "/static/img/mark.svg"

# Milliseconds that a page gets for what a test waits for; a busy machine may need seconds.
PATIENCE = 20_000
expect.set_options(timeout=PATIENCE)

# Django's server writes headers and body apart, and the kernel would hold the second back until the
# browser has acknowledged the first: 40 ms for each style sheet and script of a page.
WSGIRequestHandler.disable_nagle_algorithm = True


class SharedContext:
    """A browser context for one test after the other. A page that is kept open keeps the process
    of the site, and with it what was compiled of the scripts."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.address = address
        self.context = browser.new_context(base_url=address, service_workers="block")
        self.kept = self.context.new_page()
        self.kept.goto(KEPT)
        self.debugger = self.context.new_cdp_session(self.kept)

    def empty(self) -> None:
        """Take out what a test left in it."""
        self.context.set_offline(False)
        self.context.clear_cookies()
        for page in self.context.pages:
            if page != self.kept:
                page.close()
        # What this process still knows of its storage, and what the browser does.
        self.kept.evaluate("localStorage.clear()")
        stored = "local_storage,indexeddb,cache_storage"
        self.debugger.send(
            "Storage.clearDataForOrigin", {"origin": self.address, "storageTypes": stored}
        )


@pytest.fixture(scope="session")
def idle_contexts() -> list[SharedContext]:
    """Browser contexts that no test uses now. One that is used again has style sheets and scripts
    in its cache; what a test leaves in it, pages, cookies and storage, is taken out behind it."""
    return []


@pytest.fixture
def open_page(
    browser: Browser,
    idle_contexts: list[SharedContext],
    live_server: LiveServer,
    requests_at_work: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[OpenPage]:
    """`open_page(account, path, viewport=..., color_scheme=...)`: a page of the account, None
    being a visitor.

    Without the service worker, unless a test allows it: what it fetches, Playwright cannot hold
    back. A context of other options, and one whose clock a test sets (`own_context=True`), serves
    no other test. The tour of the label screen counts as done unless a test wants it (`tour=True`).
    """
    complaints: list[str] = []
    shared: list[SharedContext] = []
    own: list[BrowserContext] = []

    def opened(
        account: Account | None,
        path: str,
        *,
        own_context: bool = False,
        tour: bool = False,
        viewport: ViewportSize | None = None,
        color_scheme: Literal["light", "dark"] | None = None,
        **options: Any,
    ) -> Page:
        looks = {"viewport": viewport, "color_scheme": color_scheme}
        if own_context or options:
            allowed = {"service_workers": "block", "base_url": live_server.url} | options
            context = browser.new_context(
                **allowed, **{name: look for name, look in looks.items() if look}
            )
            own.append(context)
        else:
            monkeypatch.setattr(StaticFilesHandler, "serve", _serve_for_an_hour)
            shared.append(
                idle_contexts.pop() if idle_contexts else SharedContext(browser, live_server.url)
            )
            context = shared[-1].context
        if account:
            _sign_in(context, account, live_server.url)
        page = context.new_page()
        if context not in own and viewport:
            page.set_viewport_size(viewport)
        if context not in own and color_scheme:
            page.emulate_media(color_scheme=color_scheme)
        page.set_default_timeout(PATIENCE)
        if account and not tour:
            done = f"localStorage.setItem('tour|{account.pk}', 'over')"
            page.add_init_script(f"if (location.pathname.endsWith('/label/')) {done}")
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: _note(complaints, message))
        page.goto(path)
        return page

    yield opened
    for context in own:
        context.close()
    for one in shared:
        one.empty()
    idle_contexts.extend(shared)
    requests_at_work()
    assert complaints == []


@pytest.fixture
def worker(in_this_program: None) -> Iterator[WorkLoop]:
    """A worker that looks for due work by itself, whose programs run in it."""
    ask.STOP.clear()
    loop = WorkLoop(every=0.2)
    loop.start()
    yield loop
    loop.stop()
    ask.STOP.clear()


@pytest.fixture
def demo(settings: Any, tmp_path: Path) -> str:
    """The example project of `make demo`; returns what is printed."""
    settings.VAR_DIR = tmp_path
    printed = StringIO()

    def make() -> None:
        call_command("demo", stdout=printed)
        connections.close_all()

    # The demo asks its baselines in an event loop, and the browser's runs in this thread.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(make).result()
    return printed.getvalue()


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
