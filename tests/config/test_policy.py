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


def test_style_sheets_are_kept() -> None:
    assert "max-age" in Client().get("/static/css/base.css")["Cache-Control"]


@pytest.mark.parametrize("path", ["/accounts/login/", "/accounts/logout/", "/tokens/"])
def test_a_form_that_another_site_sends_is_refused(path: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_account())
    assert client.post(path, {"name": "a"}).status_code == 403
    assert client.post(path, {"csrfmiddlewaretoken": "x" * 64}).status_code == 403
