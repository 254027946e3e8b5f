"""Lines of the log: whose request they belong to, and that no text and no key stands in them."""

import json
import logging
import socket
import sys
from collections.abc import Callable, Iterator

import pytest
from django.test import Client

from operation import celery_context, logs
from tests.builders import PASSWORD, cast

KEY = "sk-hunter2-hunter2"
TEXT = "How many legs has a spider?"


@pytest.fixture
def written() -> Iterator[Callable[[], list[dict[str, object]]]]:
    """What is logged meanwhile, as a deployment writes it."""
    lines: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(logs.JSONFormatter().format(record))

    handler, root, told = Kept(), logging.getLogger(), logging.getLogger("request")
    level = told.level
    root.addHandler(handler)
    told.setLevel("INFO")
    yield lambda: [json.loads(line) for line in lines]
    root.removeHandler(handler)
    told.setLevel(level)


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SOME_API_KEY", KEY)
    monkeypatch.setenv("EMAIL_URL", f"smtp://user:{KEY}-of-mail@mail.example")
    logs._secrets.cache_clear()
    yield
    logs._secrets.cache_clear()


def line_of(error: Exception, form: logging.Formatter) -> str:
    try:
        raise error
    except Exception:
        record = logging.LogRecord("x", logging.ERROR, "f", 1, "It failed.", None, sys.exc_info())
    return form.format(record)


@pytest.mark.parametrize("form", [logs.JSONFormatter(), logs.PlainFormatter()])
def test_an_error_is_told_by_its_kind_and_place_without_what_it_quotes(
    form: logging.Formatter,
) -> None:
    line = line_of(ValueError(f"cannot store {TEXT!r}"), form)
    assert TEXT not in line
    assert "builtins.ValueError" in line
    assert "test_logs.py" in line


def test_the_cause_of_an_error_is_told_as_well() -> None:
    try:
        try:
            raise KeyError(TEXT)
        except KeyError as error:
            raise RuntimeError(TEXT) from error
    except RuntimeError:
        record = logging.LogRecord("x", logging.ERROR, "f", 1, "", None, sys.exc_info())
    told = logs.record_facts(record)
    assert [place.split()[0] for place in told["where"]] == ["KeyError", "RuntimeError"]
    assert TEXT not in str(told)


def test_an_error_that_a_line_quotes_is_named_by_its_kind() -> None:
    record = logging.LogRecord(
        "x", logging.WARNING, "f", 1, "Not now (%s), %d left.", (OSError(TEXT), 3), None
    )
    assert logs.record_facts(record)["message"] == "Not now (OSError), 3 left."


def test_a_line_of_the_development_server_has_no_url() -> None:
    words = ('"GET /invitation/secret/ HTTP/1.1"', "200", "17")
    record = logging.LogRecord("django.server", logging.INFO, "f", 1, "%s %s %s", words, None)
    record.request, record.status_code = socket.socket(), 200
    with record.request:
        said = logs.record_facts(record)
    assert said["message"] == "development server 200 info"


@pytest.mark.parametrize("form", [logs.JSONFormatter(), logs.PlainFormatter()])
@pytest.mark.usefixtures("secret")
def test_a_secret_of_the_environment_stands_in_no_line(form: logging.Formatter) -> None:
    record = logging.LogRecord(
        "x", logging.INFO, "f", 1, "sent %s and %s-of-mail", (KEY, KEY), None
    )
    assert "sent [hidden] and [hidden]" in form.format(record)


def test_a_secret_that_begins_as_another_does_leaves_no_end(
    monkeypatch: pytest.MonkeyPatch, secret: None
) -> None:
    ends = ["-" * count for count in range(1, 8)]
    for end in ends:
        monkeypatch.setenv(f"OTHER{len(end)}_API_KEY", KEY + end)
    logs._secrets.cache_clear()
    assert {logs.hide_secrets(KEY + end) for end in ends} == {"[hidden]"}


def test_a_line_stays_a_line_whatever_it_is_told() -> None:
    record = logging.LogRecord(
        "x", logging.INFO, "f", 1, "a\nb\x1b[31m\u202e" + "y" * 9_000, None, None
    )
    line = logs.JSONFormatter().format(record)
    assert "\n" not in line
    assert line.isascii()
    assert len(line) < 3_000


@pytest.mark.django_db
def test_each_request_has_a_line_with_route_status_and_id_and_no_address(
    written: Callable[[], list[dict[str, object]]],
) -> None:
    people = cast()
    client = Client(headers={"x-request-id": "from-the-proxy-1"})
    client.force_login(people.lead.account)
    answer = client.get(f"/projects/{people.project.slug}/items/?q={TEXT}&key={KEY}")
    assert answer["X-Request-ID"] == "from-the-proxy-1"
    [line] = [line for line in written() if line["logger"] == "request"]
    assert line["message"] == "GET projects/<slug:slug>/items/"
    assert (line["status"], line["slug"]) == (200, people.project.slug)
    assert (line["request_id"], line["account"]) == ("from-the-proxy-1", people.lead.account_id)
    assert TEXT not in str(written())
    assert KEY not in str(written())


@pytest.mark.parametrize("given", ["short", "x" * 65, "with space in it", "line\\nbreak-in-it", ""])
def test_an_id_that_could_be_a_text_is_not_taken(client: Client, given: str) -> None:
    answer = client.get("/healthz", headers={"x-request-id": given})
    assert answer["X-Request-ID"] != given
    assert len(answer["X-Request-ID"]) == 16


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path",
    [
        f"/invitations/{KEY}/",
        f"/accounts/password/reset/key/1-{KEY}/",
        f"/nowhere/{KEY}/",
        f"/projects/none/items/{KEY}/",
    ],
)
def test_what_an_address_holds_stands_in_no_line(
    written: Callable[[], list[dict[str, object]]], path: str
) -> None:
    Client(raise_request_exception=False).get(path)
    Client(raise_request_exception=False).post(path, {"login": TEXT, "password": PASSWORD})
    assert written()
    assert KEY not in str(written())
    assert TEXT not in str(written())


@pytest.mark.django_db
def test_a_wrong_password_stands_in_no_line(
    written: Callable[[], list[dict[str, object]]],
) -> None:
    Client().post("/accounts/login/", {"login": TEXT, "password": PASSWORD})
    assert written()
    assert PASSWORD not in str(written())
    assert TEXT not in str(written())


@pytest.mark.django_db
def test_an_error_in_a_page_is_told_with_its_request_and_without_its_words(
    written: Callable[[], list[dict[str, object]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    people = cast()

    def fails(*args: object, **kwargs: object) -> None:
        raise ValueError(TEXT)

    monkeypatch.setattr("annotation.projects.access.member_for", fails)
    client = Client(raise_request_exception=False)
    client.force_login(people.lead.account)
    answer = client.get(f"/projects/{people.project.slug}/items/")
    assert answer.status_code == 500
    [line] = [line for line in written() if line["level"] == "ERROR"]
    assert line["request_id"] == answer["X-Request-ID"]
    assert line["error"] == "builtins.ValueError"
    assert TEXT not in str(written())


def test_a_message_to_a_worker_carries_the_id_of_the_request() -> None:
    headers: dict[str, object] = {}
    with logs.log_context(request_id="abc"):
        celery_context._add_request_id(headers=headers)
    assert headers == {"request_id": "abc"}


def test_a_workers_lines_carry_the_id_until_its_task_ends() -> None:
    class Task:
        name = "judging.work"
        request = type("Request", (), {"request_id": "abc"})

    celery_context._begin_task(Task())
    assert logs.current_request_id() == "abc"
    celery_context._end_task()
    assert logs.current_request_id() == ""
