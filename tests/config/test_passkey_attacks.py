"""A passkey opens one account, once for each challenge, and only from this site."""

import json
import re
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.core.cache import cache
from django.test import Client

from annotation.models import Account
from tests.annotation.test_queue_threads import at_once
from tests.builders import make_account
from tests.config.soft_passkey import Passkey
from tests.config.test_mfa import SECOND, asked_again, is_in, signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("nobody_has_tried")]
NEW = "/accounts/two-step/passkeys/new/"


def options(client: Client, page: str) -> dict[str, Any]:
    """What the page gives the browser to ask the device for."""
    text = client.get(page).content.decode()
    found = re.search(r'id="passkey-options" type="application/json">(.*?)</script>', text, re.S)
    assert found
    told: dict[str, Any] = json.loads(found[1])
    return told["creation_options" if page == NEW else "request_options"]


def with_passkey(account: Account) -> tuple[Client, Passkey, dict[str, str]]:
    """Somebody who has just added a passkey, and what was sent for that."""
    client, passkey = asked_again(signed_in(account.username)), Passkey()
    sent = {"name": "key", "credential": passkey.create(options(client, NEW))}
    assert client.post(NEW, sent).status_code == 302
    cache.clear()
    return client, passkey, sent


def asked(account: Account) -> tuple[Client, dict[str, Any]]:
    """Somebody who has said the password and is asked for the passkey."""
    cache.clear()
    client = signed_in(account.username)
    return client, options(client, SECOND)


def answer(client: Client, credential: str) -> bool:
    """Whether this answer lets in."""
    client.post(SECOND, {"credential": credential})
    return is_in(client)


@pytest.fixture
def ada() -> Account:
    return make_account("ada")


def test_an_answer_lets_in_once(ada: Account) -> None:
    _, passkey, _ = with_passkey(ada)
    client, told = asked(ada)
    credential = passkey.get(told)
    assert answer(client, credential)
    client.post("/accounts/logout/")
    for again in (signed_in("ada"), asked(ada)[0]):
        assert not answer(again, credential)


def test_an_answer_to_another_session_does_not_let_in(ada: Account) -> None:
    _, passkey, _ = with_passkey(ada)
    (_, told), (other, _) = asked(ada), asked(ada)
    assert not answer(other, passkey.get(told))


def test_the_passkey_of_another_account_does_not_let_in(ada: Account) -> None:
    _, passkey, _ = with_passkey(ada)
    bob, others, _ = with_passkey(make_account("bob"))
    client, told = asked(ada)
    assert not answer(client, others.get(told))
    # Nor one that is added under the name of the right one.
    others.id = passkey.id
    asked_again(bob).post(NEW, {"name": "x", "credential": others.create(options(bob, NEW))})
    client, told = asked(ada)
    assert not answer(client, others.get(told))
    client, told = asked(ada)
    assert answer(client, passkey.get(told))


def test_an_answer_that_another_site_was_given_does_not_let_in(ada: Account, settings: Any) -> None:
    # As where SITE_URL is set.
    settings.MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = False
    settings.CSRF_TRUSTED_ORIGINS = ["https://testserver"]
    passkey = Passkey(origin="https://evil.testserver")
    client = asked_again(signed_in("ada"))
    sent = {"name": "key", "credential": passkey.create(options(client, NEW))}
    assert client.post(NEW, sent).status_code == 200
    passkey.origin = "https://testserver"
    sent = {"name": "key", "credential": passkey.create(options(client, NEW))}
    assert client.post(NEW, sent).status_code == 302
    for site, origin in (
        ("testserver", "https://evil.example"),
        ("testserver", "https://evil.testserver"),
        ("testserver", "https://testserver:8443"),
        ("testserver", "http://testserver"),
        ("evil.example", "https://testserver"),
    ):
        passkey.site, passkey.origin = site, origin
        client, told = asked(ada)
        assert not answer(client, passkey.get(told)), (site, origin)
    # Whoever passes the answer on names their own port as the host that was asked.
    client, told = asked(ada)
    passkey.site, passkey.origin = "testserver", "https://testserver:8443"
    host, sent = {"host": "testserver:8443"}, {"credential": passkey.get(told)}
    client.post(SECOND, sent, headers=host, secure=True)
    assert not is_in(client)
    passkey.origin = "https://testserver"
    client, told = asked(ada)
    assert answer(client, passkey.get(told))


def test_what_was_sent_to_add_a_passkey_adds_it_once(ada: Account) -> None:
    client, passkey, sent = with_passkey(ada)
    bob = asked_again(signed_in(make_account("bob").username))
    for other in (client, bob):
        assert other.post(NEW, sent).status_code == 200
        options(other, NEW)
        assert other.post(NEW, sent).status_code == 200
    # A device that is there already is told so before; who sends it all the same is refused.
    again = {"name": "again", "credential": passkey.create(options(client, NEW))}
    assert client.post(NEW, again).status_code == 200
    assert Authenticator.objects.filter(type="webauthn").count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_requests_that_add_one_passkey_at_once_one_adds_it(ada: Account) -> None:
    client, passkey = asked_again(signed_in("ada")), Passkey()
    sent = {"name": "key", "credential": passkey.create(options(client, NEW))}

    def add() -> int:
        other = Client()
        other.cookies = client.cookies
        return other.post(NEW, sent).status_code

    assert sorted(at_once(*[add] * 4)) == [200, 200, 200, 302]
    assert Authenticator.objects.filter(type="webauthn").count() == 1
