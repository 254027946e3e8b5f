"""The content policy is in force wherever an answer comes from."""

import pytest
from django.test import Client

from tests.builders import make_account

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/accounts/login/", {}, 200),
        ("/admin/login/", {}, 302),
        ("/accounts/password/reset/", {}, 200),
        ("/api/v1/projects/", {}, 401),
        ("/nowhere/", {}, 404),
        ("/healthz", {}, 200),
        ("/accounts/login/", {"host": "elsewhere.example"}, 400),
    ],
)
def test_every_answer_carries_a_policy_without_inline_code(
    path: str, headers: dict[str, str], status: int
) -> None:
    answer = Client(raise_request_exception=False).get(path, headers=headers)
    assert answer.status_code == status
    policy = answer["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize("path", ["css/base.css", "js/ahead.js"])
def test_files_without_a_digest_are_kept_and_compared_at_each_use(path: str) -> None:
    answer = Client().get(f"/static/{path}")
    assert answer["Cache-Control"] == "max-age=0, public"
    seen = {"If-None-Match": answer["ETag"]} if "ETag" in answer else {}
    seen["If-Modified-Since"] = answer["Last-Modified"]
    assert Client().get(f"/static/{path}", headers=seen).status_code == 304


@pytest.mark.parametrize("path", ["/accounts/login/", "/accounts/logout/", "/tokens/"])
def test_a_form_that_another_site_sends_is_refused(path: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_account())
    assert client.post(path, {"name": "a"}).status_code == 403
    assert client.post(path, {"csrfmiddlewaretoken": "x" * 64}).status_code == 403
