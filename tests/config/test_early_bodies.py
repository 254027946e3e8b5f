"""Whoever holds back the body of a request does not act by rights that were taken meanwhile."""

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.sessions.models import Session
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart
from django.urls import reverse
from django.utils import timezone

from annotation.models import Account, ApiToken, Invitation, Job, Membership, Role
from annotation.projects import members
from tests.builders import Cast, browser_of, cast, make_item, make_member
from tests.judging.builders_judging import api_client

pytestmark = pytest.mark.django_db


class HeldBody:
    """A body that only comes once something else has happened."""

    def __init__(self, body: bytes, happens: Callable[[], object]) -> None:
        self._body, self._happens = BytesIO(body), [happens]

    def read(self, *size: int) -> bytes:
        while self._happens:
            self._happens.pop()()
        return self._body.read(*size)

    def readline(self, *size: int) -> bytes:
        return self.read(*size)

    def close(self) -> None:
        pass


@pytest.fixture
def people() -> Cast:
    return cast()


@pytest.fixture
def other(people: Cast) -> Membership:
    return make_member(people.project, role=Role.LEAD, alias="other")


def send(
    client: Client, people: Cast, method: str, way: str, body: bytes, kind: str, then: Any
) -> int:
    address = f"/api/v1/projects/{people.project.slug}/{way}"
    held = {"wsgi.input": HeldBody(body, then)}
    return client.generic(method, address, body, content_type=kind, **held).status_code


@pytest.mark.parametrize(
    ("method", "way", "said"),
    [
        ("PATCH", "members/other/", {"active": True}),
        ("POST", "invitations/", {"alias": "again", "role": "lead", "days": 30}),
    ],
)
def test_who_is_suspended_meanwhile_changes_nothing(
    people: Cast, other: Membership, method: str, way: str, said: dict[str, Any]
) -> None:
    def suspend() -> None:
        members.suspend(people.lead, other)

    body = json.dumps(said).encode()
    got = send(api_client(other), people, method, way, body, "application/json", suspend)
    other.refresh_from_db()
    assert (got, other.active) == (403, False)
    assert not Invitation.objects.exists()


def test_nor_does_who_has_a_token_that_is_revoked_meanwhile(
    people: Cast, other: Membership
) -> None:
    def revoke() -> None:
        ApiToken.objects.update(revoked_at=timezone.now())

    body = json.dumps({"alias": "again", "role": "lead", "days": 30}).encode()
    got = send(api_client(other), people, "POST", "invitations/", body, "application/json", revoke)
    assert (got, Invitation.objects.exists()) == (401, False)


def test_nor_does_an_upload_of_who_is_suspended_meanwhile(people: Cast, other: Membership) -> None:
    def suspend() -> None:
        members.suspend(people.lead, other)

    file = SimpleUploadedFile("a.csv", b"key,prompt,gold\na,b,c\n")
    body = encode_multipart(BOUNDARY, {"file": file})
    got = send(api_client(other), people, "POST", "imports/", body, MULTIPART_CONTENT, suspend)
    assert (got, Job.objects.exists()) == (403, False)


@pytest.mark.parametrize("end", ["token", "account"])
def test_nor_does_an_upload_of_who_is_let_in_no_more(
    people: Cast, other: Membership, end: str
) -> None:
    def shut_out() -> None:
        if end == "token":
            ApiToken.objects.update(revoked_at=timezone.now())
        else:
            Account.objects.filter(memberships=other).update(is_active=False)

    file = SimpleUploadedFile("a.csv", b"key,prompt,gold\na,b,c\n")
    body = encode_multipart(BOUNDARY, {"file": file})
    got = send(api_client(other), people, "POST", "imports/", body, MULTIPART_CONTENT, shut_out)
    assert (got, Job.objects.exists()) == (401, False)


@pytest.mark.parametrize("second_step", [False, True])
@pytest.mark.parametrize("end", ["account", "session", "admin"])
def test_nor_does_a_form_with_files_of_who_is_let_in_no_more(
    people: Cast, settings: Any, end: str, second_step: bool
) -> None:
    settings.SECOND_STEP_REQUIRED = second_step
    sender = Account.objects.create_user("sender")
    if end == "admin":
        Account.objects.filter(pk=sender.pk).update(is_superuser=True)
    else:
        make_member(people.project, role=Role.LEAD, alias="sender", account=sender)
    if second_step:
        Authenticator.objects.create(user=sender, type=Authenticator.Type.TOTP, data={})
    client = Client()
    client.force_login(sender)

    def shut_out() -> None:
        if end == "session":
            Session.objects.all().delete()
        else:
            Account.objects.filter(pk=sender.pk).update(
                is_active=end == "admin", is_superuser=False
            )

    said = {"alias": "again", "role": "lead", "days": "30"}
    address = reverse("members-invite", args=[people.project.slug])
    body = encode_multipart(BOUNDARY, said)
    held = {"wsgi.input": HeldBody(body, shut_out)}
    got = client.generic("POST", address, body, content_type=MULTIPART_CONTENT, **held)
    assert not Invitation.objects.exists()
    assert got.status_code == (404 if end == "admin" else 302)  # to the sign-in


def test_nor_does_a_form_with_files_of_who_must_set_up_a_second_step_meanwhile(
    people: Cast, settings: Any
) -> None:
    settings.SECOND_STEP_REQUIRED = True
    account = people.lead.account
    assert account
    Authenticator.objects.create(user=account, type=Authenticator.Type.TOTP, data={})
    client = Client()
    client.force_login(account)
    address = reverse("members-invite", args=[people.project.slug])
    body = encode_multipart(BOUNDARY, {"alias": "again", "role": "lead", "days": "30"})
    held = {"wsgi.input": HeldBody(body, Authenticator.objects.all().delete)}
    got = client.generic("POST", address, body, content_type=MULTIPART_CONTENT, **held)
    assert not Invitation.objects.exists()
    assert got.headers["Location"] == reverse("mfa_index")


@pytest.mark.parametrize("way", ["session", "token"])
@pytest.mark.parametrize("end", ["admin", "session"])
def test_nor_does_an_upload_of_who_was_a_site_admin_or_signed_in(
    people: Cast, way: str, end: str
) -> None:
    _, key = ApiToken.issue(people.admin, "test")
    program = Client(headers={"Authorization": f"Bearer {key}"})
    client = browser_of(people.admin) if way == "session" else program

    def shut_out() -> None:
        if end == "admin":
            Account.objects.update(is_superuser=False)
        else:
            Session.objects.all().delete()
            ApiToken.objects.update(revoked_at=timezone.now())

    file = SimpleUploadedFile("a.csv", b"key,prompt,gold\na,b,c\n")
    body = encode_multipart(BOUNDARY, {"file": file})
    got = send(client, people, "POST", "imports/", body, MULTIPART_CONTENT, shut_out)
    assert (got, Job.objects.exists()) == (404 if end == "admin" else 401, False)
    # Uploading would have made the site admin a lead for good.
    assert not Membership.objects.filter(account=people.admin).exists()


def test_nor_does_a_body_of_parts_that_is_no_form(people: Cast, other: Membership) -> None:
    def suspend() -> None:
        members.suspend(people.lead, other)

    make_item(people.project, "a")
    client = browser_of(other)
    address = reverse("label-draft", args=[people.project.slug])
    held = {"wsgi.input": HeldBody(b"{}", suspend)}
    got = client.generic("POST", address, b"{}", content_type="multipart/mixed", **held)
    assert got.status_code == 403
