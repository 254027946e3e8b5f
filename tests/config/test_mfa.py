"""Two steps to sign in: a code beside the password, codes for a lost device, all on record."""

import re
import time
from types import SimpleNamespace

import pytest
from allauth.account.internal.flows import login
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth
from django.conf import settings
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from annotation.models import Account, Event
from config import mfa
from config.mfa import MFAAdapter
from tests.annotation.test_queue_threads import at_once
from tests.builders import PASSWORD, make_account

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("nobody_has_tried")]
LOGIN, SECOND = "/accounts/login/", "/accounts/two-step/sign-in/"
SETUP, OFF = "/accounts/two-step/app/", "/accounts/two-step/app/off/"
CODES = "/accounts/two-step/codes/"


@pytest.fixture
def account() -> Account:
    return make_account("ada", email="ada@lab.example")


def code_of(secret: str, periods: int = 0) -> str:
    """The code that the app shows now, or so many times half a minute later."""
    return auth.format_hotp_value(auth.hotp_value(secret, int(auth.time.time()) // 30 + periods))


def signed_in(name: str = "ada") -> Client:
    client = Client()
    client.post(LOGIN, {"login": name, "password": PASSWORD})
    return client


def asked_again(client: Client) -> Client:
    """The same, who has just said the password once more."""
    answer = client.post("/accounts/reauthenticate/", {"password": PASSWORD, "next": "/"})
    assert answer.status_code == 302
    return client


def switched_on(account: Account) -> tuple[Client, str]:
    """Somebody who has set up the second step, and the secret in their app."""
    client = asked_again(signed_in(account.username))
    page = client.get(SETUP).content.decode()
    [secret] = re.findall(r'class="secret">(\w+)<', page)
    assert client.post(SETUP, {"code": code_of(secret)}).status_code == 302
    return client, secret


def is_in(client: Client) -> bool:
    return client.get("/").status_code == 200


def said() -> list[dict[str, str]]:
    return [event.new for event in Event.objects.filter(kind="account").order_by("pk")]


@pytest.mark.django_db(transaction=True)
def test_of_requests_that_switch_it_on_at_once_one_does(account: Account) -> None:
    client = asked_again(signed_in())
    [secret] = re.findall(r'class="secret">(\w+)<', client.get(SETUP).content.decode())
    code = code_of(secret)

    def switch_on() -> str:
        other = Client()
        other.cookies = client.cookies
        return other.post(SETUP, {"code": code}).headers["Location"]

    assert sorted(at_once(*[switch_on] * 4)) == [OFF, OFF, OFF, CODES]
    assert Authenticator.objects.filter(type="totp").count() == 1


def test_with_it_a_password_alone_opens_nothing(account: Account) -> None:
    _, secret = switched_on(account)
    cache.clear()
    client = Client()
    answer = client.post(LOGIN, {"login": "ada", "password": PASSWORD})
    assert answer.headers["Location"] == SECOND
    assert not is_in(client)
    assert client.post(SECOND, {"code": "000000"}).status_code == 200
    assert not is_in(client)
    client.post(SECOND, {"code": code_of(secret)})
    assert is_in(client)


def test_a_code_works_once(account: Account) -> None:
    _, secret = switched_on(account)
    cache.clear()
    code = code_of(secret)
    for number, inside in enumerate([True, False]):
        client = signed_in()
        client.post(SECOND, {"code": code})
        assert is_in(client) == inside, number


@pytest.mark.parametrize(("periods", "inside"), [(-3, False), (-1, True), (1, True), (3, False)])
def test_a_code_of_half_a_minute_ago_or_ahead_works_and_no_other(
    account: Account, monkeypatch: pytest.MonkeyPatch, periods: int, inside: bool
) -> None:
    _, secret = switched_on(account)
    moment = time.time()
    monkeypatch.setattr(auth, "time", SimpleNamespace(time=lambda: moment))
    client = signed_in()
    client.post(SECOND, {"code": code_of(secret, periods)})
    assert is_in(client) == inside


def test_a_code_works_once_also_when_allauth_has_forgotten_it(account: Account) -> None:
    _, secret = switched_on(account)
    cache.clear()
    code = code_of(secret, 1)
    client = signed_in()
    client.post(SECOND, {"code": code})
    assert is_in(client)
    assert cache.delete(f"allauth.mfa.totp.used?user={account.pk}&code={code}")
    for shown in (code, f"{code[:3]} {code[3:]}"):
        other = signed_in()
        other.post(SECOND, {"code": shown})
        assert not is_in(other)


def test_the_administration_asks_for_the_second_step_too() -> None:
    admin = make_account("root", is_superuser=True, is_staff=True)
    switched_on(admin)
    client = signed_in("root")
    assert client.get("/admin/").status_code == 302


def test_after_some_wrong_codes_the_right_one_has_to_wait(account: Account) -> None:
    _, secret = switched_on(account)
    cache.clear()
    client = signed_in()
    for number in range(12):
        client.post(SECOND, {"code": f"{number:06}"})
    client.post(SECOND, {"code": code_of(secret)})
    assert not is_in(client)


def test_a_recovery_code_gets_one_in_once(account: Account) -> None:
    client, _ = switched_on(account)
    page = client.get(CODES).content.decode()
    codes = re.findall(r"<code>(\w+)</code>", page)
    assert len(codes) == 10
    assert client.get(CODES + "file/").headers["Content-Disposition"].startswith("attachment")
    for inside in (True, False):
        other = signed_in()
        other.post(SECOND, {"code": codes[0]})
        assert is_in(other) == inside


def test_it_is_switched_off_by_who_is_asked_again(account: Account) -> None:
    _, secret = switched_on(account)
    cache.clear()
    client = signed_in()
    client.post(SECOND, {"code": code_of(secret)})
    assert client.post(OFF).headers["Location"].startswith("/accounts/reauthenticate/")
    assert "autofocus" in client.get("/accounts/reauthenticate/").content.decode()
    assert Authenticator.objects.exists()
    asked_again(client).post(OFF)
    assert not Authenticator.objects.exists()
    assert said()[-1] == {"two-step sign-in": "off"}


def test_who_has_not_switched_it_on_is_led_to_where_that_is_done(account: Account) -> None:
    client = signed_in()
    for place in (OFF, CODES, CODES + "new/", CODES + "file/"):
        assert client.get(place).headers["Location"] == reverse("mfa_index")
    assert "off" in client.get(reverse("mfa_index")).content.decode()


def test_the_stored_secret_opens_nothing_without_the_key(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, secret = switched_on(account)
    stored = str(list(Authenticator.objects.values_list("data", flat=True)))
    assert secret not in stored
    hidden = MFAAdapter().encrypt(secret)
    assert MFAAdapter().decrypt(hidden) == secret
    monkeypatch.setattr(settings, "SECRET_KEY", "another" * 10)
    assert MFAAdapter().decrypt(hidden) not in (secret, "")
    client = signed_in()
    assert client.post(SECOND, {"code": code_of(secret)}).status_code == 200
    assert not is_in(client)


def test_a_site_admin_helps_who_lost_the_device(account: Account) -> None:
    switched_on(account)
    admin = make_account("root", is_superuser=True, is_staff=True)
    client = Client()
    client.force_login(admin)
    place = reverse("admin:annotation_account_changelist")
    client.post(place, {"action": "end_second_step", "_selected_action": [account.pk]})
    assert is_in(signed_in())
    event = Event.objects.filter(kind="account").latest("pk")
    assert (event.account, event.subject) == (admin, f"account {account.pk}")
    assert event.new == {"two-step sign-in": "off"}


@pytest.mark.django_db(transaction=True)
def test_switching_it_on_and_new_codes_are_on_record(account: Account) -> None:
    client, _ = switched_on(account)
    assert said() == [{"two-step sign-in": "on"}]
    assert client.post(CODES + "new/").status_code == 302
    assert said()[-1] == {"recovery codes": "made anew"}


PASSKEYS = "/accounts/two-step/passkeys/"
HOSTILE = [
    "", "x", "7", "null", "[]", "{}", '{"id": 1}', '{"id": "a", "rawId": "a", "response": {}}',
    '{"id": "!", "rawId": "!", "type": "public-key", "response": {"attestationObject": "oA"}}',
    '{"id": "AA", "rawId": "AA", "type": "public-key", "response": {"clientDataJSON": "AAAA",'
    ' "attestationObject": "AAAA", "authenticatorData": "AAAA", "signature": "AAAA"}}',
    '{"id": "AA", "rawId": "AA", "type": "public-key", "response": {"clientDataJSON": "e30",'
    ' "attestationObject": "gYGBgYGBgYGB", "authenticatorData": "gYGB", "signature": null}}',
    "[" * 5_000, '{"id": "%s"}' % ("a" * 30_000),
]  # fmt: skip


@pytest.mark.parametrize("credential", HOSTILE)
def test_what_is_no_passkey_is_refused_in_words(account: Account, credential: str) -> None:
    client, _ = switched_on(account)
    for page in ("new/", "again/"):
        client.get(PASSKEYS + page)
        answer = client.post(PASSKEYS + page, {"name": "Mine", "credential": credential})
        assert answer.status_code in (200, 302)
    assert [one.type for one in Authenticator.objects.order_by("type")] == [
        "recovery_codes", "totp"
    ]  # fmt: skip
    cache.clear()
    other = signed_in()
    answer = other.post(SECOND, {"credential": credential})
    assert answer.status_code == 200
    assert not is_in(other)


def test_the_name_of_a_passkey_has_80_characters_at_most(account: Account) -> None:
    client, _ = switched_on(account)
    client.get(PASSKEYS + "new/")
    answer = client.post(PASSKEYS + "new/", {"name": "x" * 81, "credential": "{}"})
    assert "at most 80 characters (it has 81)" in answer.content.decode()


def test_a_person_has_so_many_passkeys_at_most(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, _ = switched_on(account)
    monkeypatch.setattr(mfa, "MAX_PASSKEYS", 0)
    said = client.post(PASSKEYS + "new/", {"name": "x", "credential": "{}"}).content.decode()
    assert "You have 0 passkeys, which is the most." in said


def test_nobody_removes_the_passkey_of_somebody_else(account: Account) -> None:
    client, _ = switched_on(account)
    other = make_account("bob")
    kept = Authenticator.objects.create(user=other, type="webauthn", data={"name": "x"})
    for asked in (client.get, client.post):
        assert asked(f"{PASSKEYS}{kept.pk}/remove/").status_code == 404
    assert Authenticator.objects.filter(pk=kept.pk).exists()


@pytest.mark.parametrize("page", [PASSKEYS + "new/", SETUP, "/accounts/password/set/"])
def test_an_open_session_of_who_has_no_password_gives_nobody_another_way_in(page: str) -> None:
    account = Account.objects.create_user("olga", email="olga@lab.example")
    client = Client()
    client.force_login(account)  # long ago
    new = "another-long-password"
    for answer in (client.get(page), client.post(page, {"password1": new, "password2": new})):
        assert answer.headers["Location"] == f"/accounts/login/?next={page}"
    account.refresh_from_db()
    assert not account.has_usable_password()
    client.force_login(account)
    session = client.session
    session[login.AUTHENTICATION_METHODS_SESSION_KEY] = [
        {"method": "socialaccount", "at": time.time()}
    ]
    session[login._AUTHENTICATION_METHODS_USER_SESSION_KEY] = str(account.pk)
    session.save()
    assert client.get(page).status_code == 200
