"""The way in: who gets in, who has to wait, and how one comes by a new password."""

import re
import time
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.hashers import MD5PasswordHasher
from django.contrib.sessions.models import Session
from django.core import mail
from django.core.cache import cache
from django.core.mail.backends import locmem
from django.db import connection
from django.test import Client

from annotation.models import Account, ApiToken, Event
from config import auth_forms
from tests.builders import PASSWORD, make_account

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("nobody_has_tried")]
LOGIN = "/accounts/login/"
RESET = "/accounts/password/reset/"
NEW = {"password1": "quite-another-word", "password2": "quite-another-word"}


@pytest.fixture
def account() -> Account:
    return make_account("ada", email="ada@lab.example")


def asked_for_a_link(client: Client, email: str, **more: Any) -> Any:
    """The answer to who asks for a new password, once letters are written."""
    answer = client.post(RESET, {"email": email}, **more)
    auth_forms.MAIL_EXECUTOR.submit(int).result()
    return answer


class Slow(locmem.EmailBackend):
    """A mail server that takes its time."""

    def send_messages(self, messages: Any) -> int:
        time.sleep(0.7)
        return int(super().send_messages(messages))


class Down(locmem.EmailBackend):
    def send_messages(self, messages: Any) -> int:
        raise ConnectionRefusedError("nobody is there")


def gets_in(client: Client, login: str, password: str) -> bool:
    return bool(client.post(LOGIN, {"login": login, "password": password}).status_code == 302)


@pytest.mark.parametrize("login", ["ada", "ada@lab.example"])
def test_one_signs_in_by_user_name_or_address(client: Client, account: Account, login: str) -> None:
    assert not gets_in(client, login, "wrong")
    assert gets_in(client, login, PASSWORD)
    assert client.get("/").status_code == 200


def test_a_closed_account_stays_out_even_with_its_password(client: Client) -> None:
    make_account("gone", is_active=False)
    client.post(LOGIN, {"login": "gone", "password": PASSWORD})
    assert client.get("/").status_code == 302


@pytest.mark.usefixtures("account")
def test_a_wrong_password_takes_as_long_whether_or_not_there_is_an_account(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nearly all of the time is that of the digests of passwords."""
    digests: list[str] = []
    encode = MD5PasswordHasher.encode

    def encode_and_note(self: MD5PasswordHasher, password: str, salt: str) -> str:
        digests.append(login)
        return encode(self, password, salt)

    monkeypatch.setattr(MD5PasswordHasher, "encode", encode_and_note)
    logins = ["ada", "ada@lab.example", "nobody", "nobody@lab.example"]
    for login in logins:
        assert not gets_in(client, login, "wrong")
    assert digests == logins


def test_after_five_wrong_passwords_the_right_one_has_to_wait(
    client: Client, account: Account
) -> None:
    assert not any(gets_in(client, "ada", f"wrong{number}") for number in range(5))
    assert not gets_in(client, "ada", PASSWORD)
    cache.clear()
    assert gets_in(client, "ada", PASSWORD)


def test_wrong_passwords_elsewhere_do_not_lock_the_right_person_out(
    client: Client, account: Account
) -> None:
    stranger = Client(REMOTE_ADDR="198.51.100.7")
    assert not any(gets_in(stranger, "ada", f"wrong{number}") for number in range(5))
    assert not gets_in(stranger, "ada", PASSWORD)
    assert gets_in(client, "ada", PASSWORD)


def test_name_and_address_are_one_account_where_wrong_passwords_are_counted(
    client: Client, account: Account
) -> None:
    names = ["ada", "ADA", "ada@lab.example", "Ada@lab.example", "ada"]
    assert not any(gets_in(client, name, "wrong") for name in names)
    assert not gets_in(client, "ada@lab.example", PASSWORD)


def test_many_wrong_passwords_from_many_addresses_make_everybody_wait(
    account: Account, settings: Any
) -> None:
    settings.ACCOUNT_RATE_LIMITS = {"login_failed_for_account": "4/h/key"}
    for number in range(4):
        stranger = Client(REMOTE_ADDR=f"198.51.100.{number}")
        assert not gets_in(stranger, "ada", "wrong")
        assert gets_in(Client(), "ada", PASSWORD) == (number < 3)
    cache.clear()
    assert gets_in(Client(), "ada", PASSWORD)


def test_who_tries_very_often_is_told_to_wait_on_a_page_of_ours(client: Client) -> None:
    answers = [client.post(LOGIN, {"login": f"a{n}", "password": "x"}) for n in range(31)]
    assert answers[-1].status_code == 429
    assert b"Too many attempts" in answers[-1].content


def test_the_administration_has_no_door_of_its_own(client: Client) -> None:
    answer = client.post("/admin/login/", {"username": "ada", "password": PASSWORD})
    assert answer.headers["Location"].startswith(f"{LOGIN}?next=")


def test_nobody_signs_up_by_themselves(client: Client) -> None:
    assert client.get("/accounts/signup/").status_code == 404


def test_signing_out_takes_a_press(client: Client, account: Account) -> None:
    client.force_login(account)
    client.get("/accounts/logout/")
    assert client.get("/").status_code == 200
    client.post("/accounts/logout/")
    assert client.get("/").status_code == 302


def test_a_new_password_comes_by_a_link_that_works_once(client: Client, account: Account) -> None:
    asked_for_a_link(client, "ada@lab.example")
    [message] = mail.outbox
    assert message.to == ["ada@lab.example"]
    link = re.findall(r"http://testserver(/\S+)", message.body)[0]
    form = client.get(link).headers["Location"]
    assert client.post(form, NEW).status_code == 302
    assert gets_in(Client(), "ada", NEW["password1"])
    assert b"is no longer valid" in Client().get(link).content
    event = Event.objects.get(kind="account")
    assert (event.account, event.new) == (account, {"password": "set anew"})


@pytest.mark.parametrize("asked", ["Ada.Byron@Lab.Example", "ada.byron@lab.example"])
def test_capitals_of_an_address_do_not_matter(client: Client, asked: str) -> None:
    account = make_account("ada", email="Ada.Byron@Lab.Example")
    assert gets_in(Client(), asked, PASSWORD)
    asked_for_a_link(client, asked)
    assert [message.to for message in mail.outbox] == [[account.email]]


def test_addresses_from_before_are_written_in_small_letters() -> None:
    account = make_account("ada")
    Account.objects.filter(pk=account.pk).update(email="Ada.Byron@Lab.Example")
    migration = import_module("annotation.migrations.0003_addresses_in_small_letters")
    migration.write_small(apps, None)
    account.refresh_from_db()
    assert account.email == "ada.byron@lab.example"


def test_a_new_password_by_a_link_ends_the_tokens_of_whoever_had_the_account(
    client: Client, account: Account
) -> None:
    token, key = ApiToken.issue(account, "notebook")
    program = Client(headers={"Authorization": f"Bearer {key}"})
    asked_for_a_link(client, "ada@lab.example")
    assert program.get("/api/v1/projects/").status_code == 200
    link = re.findall(r"http://testserver(/\S+)", mail.outbox[0].body)[0]
    done = client.post(client.get(link).headers["Location"], NEW, follow=True)
    assert "API tokens from before no longer work" in done.content.decode()
    assert program.get("/api/v1/projects/").status_code == 401
    event = Event.objects.get(kind="token", subject=token.prefix, data__new__token="revoked")
    assert event.account == account


def test_the_database_does_not_tell_the_link_that_somebody_just_followed(
    client: Client, account: Account, settings: Any
) -> None:
    asked_for_a_link(client, "ada@lab.example")
    link = re.findall(r"http://testserver(/\S+)", mail.outbox[0].body)[0]
    client.get(link)
    key = client.session["_password_reset_key"]
    assert key in link
    # Django's own engine signs what it stores and does not hide it.
    assert Session.objects.get().get_decoded() == {}
    settings.SECRET_KEY = "another" * 10
    assert "_password_reset_key" not in client.session


def test_who_asks_for_a_reset_does_not_learn_who_has_an_account(
    client: Client, account: Account
) -> None:
    known = asked_for_a_link(client, "ada@lab.example")
    unknown = asked_for_a_link(client, "nobody@lab.example")
    assert known.headers["Location"] == unknown.headers["Location"]
    assert known.content == unknown.content
    assert [message.to for message in mail.outbox] == [["ada@lab.example"]]


def test_nor_does_the_time_tell_how_long_the_mail_server_takes(
    client: Client, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail, "get_connection", lambda *_, **__: Slow())
    begun = time.perf_counter()
    assert client.post(RESET, {"email": "ada@lab.example"}).status_code == 302
    assert time.perf_counter() - begun < 0.6
    auth_forms.MAIL_EXECUTOR.submit(int).result()
    assert len(mail.outbox) == 1


def test_nor_a_mail_server_that_is_down(
    client: Client,
    account: Account,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(mail, "get_connection", lambda *_, **__: Down())
    assert asked_for_a_link(client, "ada@lab.example").status_code == 302
    assert "could not be sent" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_the_thread_of_the_letters_keeps_no_connection_that_could_be_lost(
    client: Client, account: Account
) -> None:
    """The letter of somebody who was signed in reads their session."""
    client.force_login(account)
    asked_for_a_link(client, "ada@lab.example")
    assert len(mail.outbox) == 1
    held = auth_forms.MAIL_EXECUTOR.submit(lambda: connection.connection).result()
    assert held is None


def test_one_changes_the_password_knowing_the_old_one(client: Client, account: Account) -> None:
    client.force_login(account)
    client.post("/accounts/password/change/", {"oldpassword": "wrong", **NEW})
    assert gets_in(Client(), "ada", PASSWORD)
    client.post("/accounts/password/change/", {"oldpassword": PASSWORD, **NEW})
    assert gets_in(Client(), "ada", NEW["password1"])
    assert client.get("/").status_code == 200


def test_rights_that_end_while_a_new_password_is_set_stay_ended(
    client: Client, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    Account.objects.update(is_staff=True, is_superuser=True)
    account.refresh_from_db()
    client.force_login(account)
    digest = Account.set_password

    def end_meanwhile(this: Account, password: str | None) -> None:
        Account.objects.update(is_active=False, is_staff=False, is_superuser=False, email="")
        digest(this, password)

    monkeypatch.setattr(Account, "set_password", end_meanwhile)
    client.post("/accounts/password/change/", {"oldpassword": PASSWORD, **NEW})
    account.refresh_from_db()
    assert account.check_password(NEW["password1"])
    rights = account.is_active, account.is_staff, account.is_superuser
    assert (*rights, account.email) == (False, False, False, "")


@pytest.mark.parametrize(
    "there",
    [
        "//evil.example/",
        "https://evil.example",
        "/\\evil.example",
        "https:evil.example",
        "javascript:1",
        "http://[::1",
    ],
)
def test_signing_in_and_out_leads_nowhere_else(
    client: Client, account: Account, there: str
) -> None:
    said = {"login": "ada", "password": PASSWORD, "next": there}
    assert client.post(LOGIN, said).headers["Location"] == "/"
    assert client.get(LOGIN, {"next": there}).headers["Location"] == "/"
    gone = client.post("/accounts/logout/", {"next": there})
    assert gone.headers["Location"].startswith("/accounts/login/")


@pytest.mark.parametrize("header", ["host", "x-forwarded-host"])
def test_no_request_writes_its_own_host_into_a_link(
    client: Client, account: Account, header: str
) -> None:
    answer = asked_for_a_link(client, "ada@lab.example", headers={header: "evil.example"})
    assert answer.status_code in {302, 400}
    assert not any("evil.example" in message.body for message in mail.outbox)
