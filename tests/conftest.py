"""What tests may ask for. A service that is not there skips its tests, and the summary says so;
with REQUIRE_SERVICES=1 they fail instead. The published data is asked for and never required.
"""

import asyncio
import atexit
import gc
import importlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from io import StringIO
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import hypothesis
import psycopg
import pytest
import redis
from altair.utils import schemapi
from django.conf import settings
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection, transaction
from django.test import TransactionTestCase
from playwright.sync_api import Browser, sync_playwright
from whitenoise.middleware import WhiteNoiseMiddleware

from annotation.db.cache import process_cache
from annotation.jobs import subprocesses
from annotation.jobs.subprocesses import ProgramResult
from config import celery_app
from tests import databases

if TYPE_CHECKING:
    from tests.builders import Cast

ROOT = Path(__file__).resolve().parent.parent
REQUIRED = os.environ.get("REQUIRE_SERVICES") == "1"
# Folders and files of tests that take long, most of all first.
LONG = (
    *("services/", "annotation/test_queue_properties", "operation/", "judging/archive/"),
    *("config/", "test_", "judging/"),
)
# The last file of browser tests begins behind this share of the others.
SPREAD = 0.8
# Seconds that a test may take without saying why.
SLOW = 5.0
IN_CI = os.environ.get("CI") == "true"
ON_POSTGRESQL = os.environ.get("DATABASE_URL", "").startswith("postgres")
POSTGRESQL = "postgresql://127.0.0.1:5432/postgres"


def lacking(message: str) -> NoReturn:
    """Skip a test for want of a service, or fail it where services are required."""
    if REQUIRED:
        pytest.fail(f"{message} REQUIRE_SERVICES=1 makes this a failure.", pytrace=False)
    pytest.skip(message)


def pytest_configure() -> None:
    # Files, limits and what is shared by way of Redis: each process has its own.
    tempfile.tempdir = None
    folder = Path(tempfile.mkdtemp(prefix="blindspot-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["VAR_DIR"] = str(folder)
    settings.VAR_DIR = settings.FILE_UPLOAD_TEMP_DIR = folder
    settings.STATIC_ROOT = folder / "static"
    settings.REDIS_PREFIX = f"blindspot:tests-{os.getpid()}"
    if "KEY_PREFIX" in settings.CACHES["default"]:
        settings.CACHES["default"]["KEY_PREFIX"] = f"{settings.REDIS_PREFIX}:cache"
    # Messages of tests go to a queue that no worker of an installation reads.
    celery_app.conf.task_default_queue = f"tests-{os.getpid()}"
    # Hashing a password is slow by design; no test is about that.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    # Files are served where they lie; that they can be collected has a test of its own.
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
    settings.WHITENOISE_USE_FINDERS = True
    settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
    # How many examples a property is tried on: a few at each run of a person, many where nobody
    # waits, and there the same each time. EXAMPLES says another number.
    often = int(os.environ.get("EXAMPLES", "300" if IN_CI else "25"))
    hypothesis.settings.register_profile(
        "tests", max_examples=often, deadline=None, derandomize=IN_CI
    )
    hypothesis.settings.load_profile("tests")


def pytest_xdist_auto_num_workers() -> int:
    """One more than cores: some tests wait, for a browser, a worker or a clock."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run each test where it can show something.

    What asks no database, and what the browser makes of the pages, is the same on both: SQLite's
    run has it. What only PostgreSQL can show, SQLite's run leaves to `make test-postgresql`.
    """
    keep = _asks_a_database if ON_POSTGRESQL else _can_run_on_sqlite
    kept = [item for item in items if keep(item)]
    config.hook.pytest_deselected(items=[item for item in items if not keep(item)])
    twice = [name for name, number in Counter(item.nodeid for item in kept).items() if number > 1]
    if twice:
        raise pytest.UsageError(f"Only one of the tests with the same id would run: {twice[:5]}")
    items[:] = _in_order(kept)
    for item in kept:
        if not getattr(item, "obj", None).__doc__:
            item.user_properties.append(("docstring", ""))


def pytest_collection_finish() -> None:
    # All modules and tests stay: looking through them for garbage took a seventh of the time.
    gc.collect()
    gc.freeze()


def _in_order(items: list[pytest.Item]) -> list[pytest.Item]:
    """Files go to the processes whole and in this order: what takes long begins first, and those of
    the browser, which wait as much as they work, are spread among the others."""
    files = [
        [*found] for _, found in groupby(sorted(items, key=_is_short), key=lambda one: one.path)
    ]
    others = [found for found in files if "browser" not in found[0].path.parts]
    browser = [found for found in files if "browser" in found[0].path.parts]
    step = SPREAD * len(others) / max(1, len(browser))
    placed = [*((step * n, found) for n, found in enumerate(browser)), *enumerate(others)]
    return [item for _, found in sorted(placed, key=itemgetter(0)) for item in found]


def _is_short(item: pytest.Item) -> int:
    path = item.path.relative_to(ROOT / "tests").as_posix()
    known = [place for place, begins in enumerate(LONG) if path.startswith(begins)]
    return known[0] if known else len(LONG)


def _can_run_on_sqlite(item: pytest.Item) -> bool:
    return item.get_closest_marker("postgresql") is None


def _asks_a_database(item: pytest.Item) -> bool:
    if item.get_closest_marker("postgresql"):
        return True
    asked = set(getattr(item, "fixturenames", ()))
    at_work = item.get_closest_marker("django_db") or asked & {"db", "transactional_db"}
    by_process = "services" in item.path.parts or asked & {"redis_url", "postgres"}
    return bool(at_work or by_process) and "browser" not in item.path.parts


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons = Counter(_reason(report) for report in terminalreporter.stats.get("skipped", []))
    if reasons:
        terminalreporter.section("not tested here")
    for reason, count in reasons.most_common():
        terminalreporter.line(f"{count} skipped: {reason}")
    slow = [
        report
        for report in terminalreporter.stats.get("passed", [])
        if report.duration > SLOW and ("docstring", "") in report.user_properties
    ]
    if slow:
        terminalreporter.section(f"over {SLOW:g} s, and no docstring says why")
    for report in slow:
        terminalreporter.line(f"{report.duration:.1f} s {report.nodeid}")


def _reason(report: pytest.TestReport) -> str:
    place = report.longrepr
    return place[2].removeprefix("Skipped: ") if isinstance(place, tuple) else str(place)


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """A migrated database for this process alone, brought back to the same rows after each test
    that works by several connections."""
    name, server = f"blindspot_test_{os.getpid()}", os.environ.get("DATABASE_URL", "")
    if ON_POSTGRESQL:
        databases.make_postgresql(server, name, databases.postgresql_template(server))
    else:
        name = str(tmp_path_factory.mktemp("database") / "tests.sqlite3")
        databases.make_sqlite(Path(name))
    with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as patch:
        databases.use(connection, name)
        empty = databases.emptier(connection)
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda self: empty())
        with django_db_blocker.block():
            yield
        connection.close()
    if ON_POSTGRESQL:
        databases.drop_postgresql(server, name)


@pytest.fixture(scope="module")
def module_db(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """For rows that all tests of a module read and a fixture of the module makes: what each test
    changes of them is undone to there, and they are gone behind the last."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Any:
    """Foreign keys are checked once for rows that a module made: PostgreSQL would put it off to the
    end of a test, of each anew."""
    made = yield
    if "module_db" in fixturedef.argnames and ON_POSTGRESQL:
        connection.check_constraints()
    return made


@pytest.fixture
def people() -> "Cast":
    """One project with its people."""
    from tests.builders import cast

    return cast()


@pytest.fixture
def nobody_has_tried() -> Iterator[None]:
    """Nobody has tried to sign in so often that they must wait, before the test and after it."""
    cache.clear()
    yield
    cache.clear()


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> None:
    """Rows may have the ids of those of a test before, and what a process remembers goes by ids."""
    process_cache.clear()


@pytest.fixture(autouse=True, scope="session")
def _static_files_found_once() -> Iterator[None]:
    """Each client of a test makes the middlewares anew, and WhiteNoise would look through all
    style sheets and scripts for each: 20 ms."""
    find, found = WhiteNoiseMiddleware.add_files_from_finders, {}

    def known(self: Any) -> None:
        if not found:
            find(self)
            found.update(self.files)
        self.files.update(found)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", known)
        yield


@pytest.fixture(scope="module")
def charts_fit_their_schema() -> Iterator[None]:
    """What is drawn is checked against the schema of Vega-Lite: 30 ms a chart."""
    importlib.import_module("charts.marks")
    schemapi.enable_debug_mode()
    yield
    schemapi.disable_debug_mode()


@pytest.fixture
def in_this_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker does jobs here: a program of its own could not see what a test has not committed."""

    def run(command: list[str], **_: Any) -> ProgramResult:
        printed = StringIO()
        call_command(*command[2:], stdout=printed)
        return ProgramResult(0, "", (printed.getvalue().splitlines() or [""])[-1])

    monkeypatch.setattr(subprocesses, "run_program", run)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the published data, which is never part of the repository."""
    folder = Path(os.environ.get("SHARED_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("The published data is not here: put it in ../shared/data or set SHARED_DATA.")
    return folder


@pytest.fixture(scope="session")
def redis_url() -> str:
    """A Redis that answers; tests use keys of their own and never flush."""
    named = os.environ.get("TEST_REDIS_URL") or os.environ.get("REDIS_URL")
    url = named or "redis://127.0.0.1:6379/15"
    try:
        redis.Redis.from_url(url, socket_connect_timeout=2).ping()
    except redis.RedisError as error:
        lacking(f"Redis does not answer at {url}: {error}.")
    return url


@pytest.fixture(scope="session")
def postgres_server() -> str:
    """The URL of a PostgreSQL server on which tests may make databases."""
    named = os.environ.get("TEST_POSTGRES_URL")
    server = named or (os.environ["DATABASE_URL"] if ON_POSTGRESQL else POSTGRESQL)
    try:
        psycopg.connect(server, connect_timeout=2).close()
    except psycopg.OperationalError as error:
        lacking(f"PostgreSQL does not answer at {server}: {error}.")
    return server


@pytest.fixture(scope="session")
def postgres(postgres_server: str) -> Iterator[str]:
    """The URL of an empty PostgreSQL database that is dropped in the end."""
    name = f"blindspot_tests_{os.getpid()}"
    yield databases.make_postgresql(postgres_server, name)
    databases.drop_postgresql(postgres_server, name)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the browser that this system installs; none is ever downloaded."""
    named = os.environ.get("CHROMIUM")
    known = ("chromium-headless-shell", "chromium", "chromium-browser")
    path = named or next(filter(None, map(shutil.which, known)), None)
    if not path:
        lacking(
            "Chromium is not here: apt install chromium-headless-shell, or name one in CHROMIUM."
        )
    return path


@pytest.fixture(scope="session")
def running_browser(chromium: str) -> Iterator[tuple[Browser, asyncio.AbstractEventLoop]]:
    """A browser without a window for all tests of this process, and the loop that talks to it: to
    start both takes half a second of a core. Pages of one context share a process."""
    with sync_playwright() as playwright:
        few = ["--process-per-site", "--renderer-process-limit=1"]
        launched = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", *few])
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield launched, loop
        asyncio._set_running_loop(loop)
        launched.close()


@pytest.fixture(scope="module")
def browser(running_browser: tuple[Browser, asyncio.AbstractEventLoop]) -> Iterator[Browser]:
    """The browser, for the tests of a module.

    Playwright keeps an event loop running in this thread, in which `asyncio.run` fails and Django
    refuses queries unless told that the loop is not its own: other modules do not find it running.
    """
    launched, loop = running_browser
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        asyncio._set_running_loop(loop)
        yield launched
        asyncio._set_running_loop(None)
