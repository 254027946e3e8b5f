"""Another service says who somebody is; who comes in by it was invited, or has linked it."""

import html
import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
import requests
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount, SocialToken
from django.conf import settings
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.models import Account, Event, Invitation
from annotation.projects import invitations, members
from annotation.projects.invitations import InvitationRequest
from annotation.reports import personal_data
from config import mfa
from config.openid.protocol import MAX_EMAIL_LENGTH, verified_email
from tests.builders import PASSWORD, Cast, make_account
from tests.config.scripted_identity import Service, made_key, offered, running
from tests.config.test_mfa import code_of, switched_on

pytestmark = pytest.mark.django_db
BEGIN, BACK, LINKED = "/accounts/openid/begin/", "/accounts/openid/back/", "/accounts/openid/"
GRACE = {"sub": "g", "email": "grace@lab.example", "email_verified": True}


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    with offered(monkeypatch) as service:
        yield service


def begun(client: Client, **said: str) -> str:
    """The way to the service, as the page that leads there has it."""
    page = client.post(BEGIN, said).content.decode()
    [address] = re.findall(r'content="0; url=([^"]+)"', page)
    return html.unescape(address)


def sent_back(address: str) -> str:
    back = requests.get(address, allow_redirects=False, timeout=5).headers["Location"]
    return back.removeprefix("http://testserver")


def through(client: Client, **said: str) -> Any:
    """There and back again."""
    return client.get(sent_back(begun(client, **said)))


def is_in(client: Client) -> str:
    """The name of who is signed in; "" for nobody."""
    found = re.findall(r"<summary>([^<]+)</summary>", client.get("/help/").content.decode())
    return found[0] if found else ""


def invited(people: Cast, alias: str = "gh", **wanted: Any) -> str:
    named = InvitationRequest(**{"alias": alias, "role": "annotator", **wanted})
    return reverse(
        "invitation",
        args=[invitations.create_invitation(people.lead, named, now=timezone.now())[1]],
    )


def signed_in(account: Account) -> Client:
    client = Client()
    client.post("/accounts/login/", {"login": account.username, "password": PASSWORD})
    return client


def with_link(service: Service, account: Account) -> Client:
    """Somebody who has linked the account, as the service's person."""
    client = signed_in(account)
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    answer = through(client)
    assert answer.headers["Location"] == LINKED, answer.headers
    return client


def test_without_a_service_there_is_nothing_of_it(client: Client) -> None:
    assert client.post(BEGIN).status_code == 404
    assert client.get(BACK).status_code == 404
    client.force_login(make_account())
    assert client.get(LINKED).status_code == 404
    assert "openid" not in client.get("/help/").content.decode()
    assert "openid" not in Client().get("/accounts/login/").content.decode()


def test_who_follows_a_link_comes_in_by_the_service(service: Service, people: Cast) -> None:
    service.person = {"sub": "g", "preferred_username": "grace@lab.example"}
    client, link = Client(), invited(people, role="researcher")
    assert "Join with Lab account" in client.get(link).content.decode()
    answer = through(client, next=link)
    assert answer.headers["Location"] == reverse("project", args=[people.project.slug])
    account = Account.objects.get(username=is_in(client))
    assert (account.username, account.email, account.has_usable_password()) == ("grace", "", False)
    [member] = account.memberships.all()
    assert (member.alias, member.role) == ("gh", "researcher")
    assert is_in(Client()) == ""
    again = Client()
    assert through(again).headers["Location"] == "/"
    assert is_in(again) == "grace"


def test_who_was_invited_by_a_verified_address_needs_no_link(
    service: Service, people: Cast
) -> None:
    invited(people, email="Grace@lab.example")
    service.person = GRACE
    client = Client()
    assert through(client).status_code == 302
    assert Account.objects.get(username=is_in(client)).email == "grace@lab.example"
    assert Invitation.objects.waiting().count() == 0
    events = Event.objects.values_list("kind", "data")
    assert ("account", {"old": {}, "new": {"sign-in by another service": "linked"}}) in events
    assert "grace" not in str(events)


@pytest.mark.parametrize(
    "person",
    [
        {"email": "grace@lab.example"},
        {"email": "grace@lab.example", "email_verified": False},
        {"email": "grace@lab.example", "email_verified": "false"},
        {"email": "other@lab.example", "email_verified": True},
        {"email": "gracé@lab.example", "email_verified": True},
        {"email": "grace@lab.example\0", "email_verified": True},
        {"email": ["grace@lab.example"], "email_verified": True},
        {"email": "", "email_verified": True},
        {},
    ],
)
def test_an_address_that_is_not_verified_or_anothers_opens_nothing(
    service: Service, people: Cast, person: dict[str, Any]
) -> None:
    invited(people, email="grace@lab.example")
    invited(people, "somebody")
    service.person = {"sub": "m", **person}
    client = Client()
    answer = through(client)
    assert answer.status_code == 403
    assert "You have no account or invitation here" in answer.content.decode()
    assert is_in(client) == ""
    assert not SocialAccount.objects.exists()


@pytest.mark.parametrize(
    ("email", "verified", "known"),
    [
        ("grace@lab.example", True, True),
        ("grace@lab.example", "true", True),
        ("grace@lab.example", "false", False),
        ("grace@lab.example", None, False),
        ("gracé@lab.example", True, False),
        ("grace@lab.example\n", True, False),
        ("grace", True, False),
        ("g" * (MAX_EMAIL_LENGTH - 12) + "@lab.example", True, True),
        ("g" * (MAX_EMAIL_LENGTH - 11) + "@lab.example", True, False),
        (7, True, False),
    ],
)
def test_an_address_counts_if_it_is_verified_and_can_be_compared(
    email: Any, verified: Any, known: bool
) -> None:
    said = verified_email({"email": email, "email_verified": verified})
    assert said == (email if known else "")


def test_letters_that_a_database_takes_for_the_same_lead_to_other_people(
    service: Service, people: Cast
) -> None:
    invited(people, email="mike@lab.example")
    for email in ("mıke@lab.example", "mi\u212ae@lab.example"):
        service.person = {"sub": "m", "email": email, "email_verified": True}
        assert through(Client()).status_code == 403


def test_an_invitation_that_is_over_lets_nobody_in(service: Service, people: Cast) -> None:
    link = invited(people, email="grace@lab.example")
    service.person = GRACE
    Invitation.objects.update(expires_at=timezone.now())
    for said in ({}, {"next": link}):
        answer = through(Client(), **said)
        assert answer.status_code == 403
        assert "ask a lead" in answer.content.decode()
    assert not Account.objects.filter(email="grace@lab.example").exists()


def test_an_invitation_that_ends_during_the_sign_in_is_told(
    service: Service, people: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of two windows, which come back from the service at once, finds it."""
    invited(people, email="grace@lab.example")
    service.person = GRACE
    find = invitations.find_by_email

    def found_once(email: str, *, now: datetime) -> list[Invitation]:
        found = find(email, now=now)
        Invitation.objects.update(ended_at=now)
        return found

    monkeypatch.setattr(invitations, "find_by_email", found_once)
    answer = through(Client())
    assert answer.status_code == 403
    assert "ask a lead" in answer.content.decode()
    assert not Account.objects.filter(email="grace@lab.example").exists()


def test_nobody_gets_the_account_of_another_by_its_address(service: Service, people: Cast) -> None:
    make_account("gh", email="grace@lab.example")
    service.person = GRACE
    client = Client()
    assert through(client).status_code == 403
    answer = through(client, next=invited(people))
    assert "An account with your e-mail address exists" in answer.content.decode()
    assert is_in(client) == ""
    assert not SocialAccount.objects.exists()
    assert Invitation.objects.waiting().exists()


def test_who_has_an_account_links_it_after_saying_the_password_again(service: Service) -> None:
    client = signed_in(make_account("ada"))
    assert "not linked" in client.get(LINKED).content.decode()
    answer = through(client)
    assert answer.headers["Location"].startswith("/accounts/reauthenticate/")
    assert not SocialAccount.objects.exists()
    answer = client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    assert answer.headers["Location"] == LINKED
    assert SocialAccount.objects.get().user.username == "ada"
    other = Client()
    through(other)
    assert is_in(other) == "ada"


def test_one_identity_belongs_to_one_account(service: Service) -> None:
    with_link(service, make_account("ada"))
    eve = signed_in(make_account("eve"))
    eve.post("/accounts/reauthenticate/", {"password": PASSWORD})
    answer = through(eve)
    assert "linked to another account" in eve.get(answer.headers["Location"]).content.decode()
    assert [one.user.username for one in SocialAccount.objects.all()] == ["ada"]


def test_a_link_is_taken_away_but_never_the_last_way_in(service: Service, people: Cast) -> None:
    client = with_link(service, make_account("ada"))
    assert client.post(LINKED).status_code == 302
    assert not SocialAccount.objects.exists()
    said = [event.new for event in Event.objects.filter(kind="account").order_by("pk")]
    assert [next(iter(new.values())) for new in said] == ["linked", "unlinked"]
    service.person = {"sub": "other"}
    new = Client()
    through(new, next=invited(people))
    answer = new.post(LINKED)
    assert (answer.status_code, SocialAccount.objects.count()) == (422, 1)
    assert "no password yet" in answer.content.decode()


def test_the_second_step_is_asked_for_after_the_service_too(service: Service) -> None:
    account = make_account("ada")
    with_link(service, account)
    _, secret = switched_on(account)
    cache.clear()
    client = Client()
    assert through(client).headers["Location"] == "/accounts/two-step/sign-in/"
    assert is_in(client) == ""
    client.post("/accounts/two-step/sign-in/", {"code": code_of(secret)})
    assert is_in(client) == "ada"


def test_who_only_comes_by_the_service_adds_a_password_right_after_it_and_not_later(
    service: Service, people: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, page = Client(), "/accounts/password/set/"
    through(client, next=invited(people))
    assert client.get(page).status_code == 200
    with monkeypatch.context() as later:
        later.setattr(mfa, "REAUTHENTICATION_TIMEOUT", 0)
        again = client.get(page).headers["Location"]
    assert again == f"/accounts/login/?next={page}"
    assert "Sign in again to open it." in client.get(again).content.decode()
    assert through(client, next=page).headers["Location"] == page
    assert client.get(page).status_code == 200


def test_a_closed_account_stays_closed(service: Service) -> None:
    account = make_account("ada")
    with_link(service, account)
    Account.objects.update(is_active=False)
    client = Client()
    through(client)
    assert is_in(client) == ""


def test_only_a_digest_of_who_somebody_is_there_is_kept(service: Service, people: Cast) -> None:
    service.person = {"sub": "secret-name", "name": "Grace H.", "email": "grace@lab.example"}
    through(Client(), next=invited(people))
    [kept] = SocialAccount.objects.values()
    assert "secret-name" not in str(kept)
    assert kept["extra_data"] == {}
    assert not SocialToken.objects.exists()
    assert not EmailAddress.objects.exists()


def test_who_is_anonymised_does_not_come_back_by_the_service(service: Service) -> None:
    account = make_account("ada")
    with_link(service, account)
    assert len(personal_data.export_data(account)["sign_in_by_another_service"]) == 1
    personal_data.anonymise(account, None, now=timezone.now())
    assert not SocialAccount.objects.exists()
    assert through(Client()).status_code == 403


def test_the_same_name_at_another_service_is_somebody_else(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_link(service, make_account("ada"))
    with running() as other:
        monkeypatch.setattr(settings, "OPENID", other.settings)
        assert through(Client()).status_code == 403


def test_who_is_suspended_gets_no_second_place(service: Service, people: Cast) -> None:
    assert people.annotator.account
    with_link(service, people.annotator.account)
    members.suspend(people.lead, people.annotator)
    client, link = Client(), invited(people)
    assert through(client, next=link).headers["Location"] == link
    assert "You are suspended" in client.post(link, {"join": "1"}).content.decode()


def other_nonce(said: dict[str, Any]) -> dict[str, Any]:
    return {**said, "nonce": "another"}


def old(said: dict[str, Any]) -> dict[str, Any]:
    return {**said, "iat": int(time.time()) - 900, "exp": int(time.time()) - 600}


FORGED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "nonce": other_nonce,
    "no nonce": lambda said: {name: one for name, one in said.items() if name != "nonce"},
    "audience": lambda said: {**said, "aud": "another-site"},
    "made for": lambda said: {**said, "aud": ["blindspot", "b"], "azp": "b"},
    "issuer": lambda said: {**said, "iss": "https://evil.example"},
    "time": old,
    "nobody": lambda said: {**said, "sub": ""},
}
SIGNED: dict[str, Callable[[dict[str, Any], Any], str]] = {
    "by nobody": lambda said, _: jwt.encode(said, None, "none", {"kid": "one"}),
    "by another": lambda said, _: jwt.encode(said, made_key("of another"), "RS256", {"kid": "one"}),
    "by no key of it": lambda said, key: jwt.encode(said, key, "RS256", {"kid": "two"}),
    "by the secret": lambda said, _: jwt.encode(said, "s" * 40, "HS256", {"kid": "one"}),
    "not at all": lambda said, _: "no token",
}


@pytest.mark.parametrize("what", FORGED)
def test_a_token_that_was_made_for_another_sign_in_proves_nothing(
    service: Service, what: str
) -> None:
    with_link(service, make_account("ada"))
    service.forge = FORGED[what]
    refused(Client(), "did not prove")


@pytest.mark.parametrize("how", SIGNED)
def test_a_token_proves_nothing_without_a_key_of_the_service(service: Service, how: str) -> None:
    with_link(service, make_account("ada"))
    service.sign = SIGNED[how]
    refused(Client(), "did not prove")


def refused(client: Client, words: str) -> None:
    answer = through(client)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert is_in(client) == ""


def test_what_another_browser_began_is_not_ended_here(service: Service) -> None:
    with_link(service, make_account("ada"))
    service.person = {"sub": "eve"}
    mine = sent_back(begun(Client()))
    other = Client()
    answer = other.get(mine)
    assert answer.status_code == 422
    assert "did not start here" in answer.content.decode()
    assert other.get(BACK).status_code == 422


def test_the_way_back_works_once(service: Service) -> None:
    with_link(service, make_account("ada"))
    client = Client()
    back = sent_back(begun(client))
    assert client.get(back).status_code == 302
    client.post("/accounts/logout/")
    assert client.get(back).status_code == 422


@pytest.mark.parametrize("error", ["access_denied", "server_error"])
def test_who_is_refused_there_is_told_what_to_do(service: Service, error: str) -> None:
    service.refuses = error
    refused(Client(), "You are not signed in")


def test_a_service_that_is_away_is_told_before_and_after(service: Service) -> None:
    client = Client()
    back = sent_back(begun(client))
    service.itself = {"issuer": "https://another.example"}
    for answer in (client.post(BEGIN), client.get(back)):
        assert answer.status_code == 503
        assert "Lab account does not answer" in answer.content.decode()


def test_what_is_asked_for_is_not_the_browsers_to_say(service: Service) -> None:
    client = signed_in(make_account("ada"))
    said = "?scope=admin&auth_params=prompt%3Dnone&process=redirect"
    page = client.post(BEGIN + said, {"process": "login", "next": "https://evil.example"})
    [address] = re.findall(r'content="0; url=([^"]+)"', page.content.decode())
    asked = parse_qs(urlsplit(html.unescape(address)).query)
    assert set(asked["scope"][0].split()) == {"openid", "profile", "email"}
    assert "prompt" not in asked
    assert (
        client.get(sent_back(html.unescape(address)))
        .headers["Location"]
        .startswith("/accounts/reauthenticate/")
    )


def test_what_is_told_beside_the_token_counts_if_it_is_of_the_same_person(
    service: Service, people: Cast
) -> None:
    invited(people, email="grace@lab.example")
    service.person = {"sub": "g"}
    service.told_beside = {**GRACE, "sub": "somebody else"}
    assert through(Client()).status_code == 403
    service.told_beside = GRACE
    assert through(Client()).status_code == 302
