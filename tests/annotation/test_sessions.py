"""One sees where one is signed in, and ends it from afar; nobody else's. What the database holds
of sessions opens none of them."""

from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from asgiref.sync import async_to_sync
from django.apps import apps
from django.conf import settings
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from annotation.accounts.sessions import SessionStore, digest_key
from annotation.models import Account
from tests.builders import PASSWORD, make_account

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("nobody_has_tried")]
PAGE = "/sessions/"


def browser(account: Account, name: str) -> Client:
    client = Client(headers={"User-Agent": name})
    said = {"login": account.username, "password": PASSWORD}
    assert client.post("/accounts/login/", said).status_code == 302
    return client


def is_in(client: Client) -> bool:
    return bool(client.get("/tokens/").status_code == 200)


def test_every_browser_is_listed_and_the_own_one_marked() -> None:
    account = make_account()
    here = browser(account, "Fox")
    browser(account, "Telephone")
    page = here.get(PAGE).content.decode()
    assert "Fox" in page
    assert "Telephone" in page
    assert page.count(">this one<") == 1


def test_a_session_is_ended_from_afar_and_this_one_goes_on() -> None:
    account = make_account()
    here, lost, third = browser(account, "Fox"), browser(account, "Lost"), browser(account, "3")
    ended = UserSession.objects.get(user_agent="Lost")
    assert here.post(PAGE, {"end": ended.pk}).status_code == 302
    assert (is_in(here), is_in(lost), is_in(third)) == (True, False, True)
    here.post(PAGE, {"end": "others"})
    assert (is_in(here), is_in(third)) == (True, False)
    assert "Lost" not in here.get(PAGE).content.decode()


@pytest.mark.parametrize("end", ["", "0", "²", "all", "9" * 30])
def test_what_is_no_session_of_ones_own_ends_nothing(end: str) -> None:
    here = browser(make_account(), "Fox")
    assert here.post(PAGE, {"end": end}).status_code == 422
    assert is_in(here)


def test_nobody_ends_anothers_session() -> None:
    other = browser(make_account(), "Other")
    number = UserSession.objects.get().pk
    here = browser(make_account(), "Fox")
    assert "Other" not in here.get(PAGE).content.decode()
    assert here.post(PAGE, {"end": number}).status_code == 422
    here.post(PAGE, {"end": "others"})
    assert is_in(other)


def test_a_new_password_ends_all_other_sessions() -> None:
    account = make_account()
    here, lost = browser(account, "Fox"), browser(account, "Lost")
    new = {"password1": "quite-another-word", "password2": "quite-another-word"}
    here.post("/accounts/password/change/", {"oldpassword": PASSWORD, **new})
    assert (is_in(here), is_in(lost)) == (True, False)
    assert "Lost" not in here.get(PAGE).content.decode()


def key_of(client: Client) -> str:
    """What the browser sends with each request."""
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def with_key(key: str) -> Client:
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = key
    return client


def test_no_key_that_stands_in_the_database_opens_a_session() -> None:
    account = make_account()
    here = browser(account, "Fox")
    there = Client()
    there.force_login(account)
    there.get(PAGE)
    kept = {*Session.objects.values_list("pk", flat=True)}
    assert kept == {*UserSession.objects.values_list("session_key", flat=True)}
    assert len(kept) == 2
    assert [is_in(with_key(key)) for key in kept] == [False, False]
    assert is_in(with_key(key_of(here)))
    rows = " ".join(str([*model.objects.values()]) for model in apps.get_models())
    assert [key_of(client) in rows for client in (here, there)] == [False, False]


def test_a_digest_that_was_taken_for_a_key_leads_to_a_session_of_its_own() -> None:
    """Who has a copy of the database cannot write into a session either."""
    here = browser(make_account(), "Fox")
    [digest] = Session.objects.values_list("pk", flat=True)
    taken = SessionStore(digest)
    taken["mine"] = True
    taken.save()
    assert taken.session_key != digest
    assert Session.objects.count() == 2
    assert "mine" not in SessionStore(key_of(here))


def test_signing_in_leaves_nothing_of_the_session_before() -> None:
    before = SessionStore()
    before["begun"] = "before"
    before.save()
    client = with_key(before.session_key)
    client.post("/accounts/login/", {"login": make_account().username, "password": PASSWORD})
    assert is_in(client)
    assert key_of(client) != before.session_key
    assert client.session["begun"] == "before"
    assert Session.objects.count() == 1
    assert not is_in(with_key(before.session_key))


def test_a_key_that_somebody_made_up_becomes_nobodys_session() -> None:
    client = with_key("chosen-by-an-attacker")
    client.post("/accounts/login/", {"login": make_account().username, "password": PASSWORD})
    assert is_in(client)
    assert not is_in(with_key("chosen-by-an-attacker"))


def test_signing_out_leaves_nothing_of_the_session() -> None:
    client = browser(make_account(), "Fox")
    key = key_of(client)
    client.post("/accounts/logout/")
    assert not Session.objects.exists()
    assert not is_in(with_key(key))


def test_a_new_password_gives_the_session_another_key() -> None:
    account = make_account()
    client = browser(account, "Fox")
    browser(account, "Lost")
    key = key_of(client)
    new = {"password1": "quite-another-word", "password2": "quite-another-word"}
    client.post("/accounts/password/change/", {"oldpassword": PASSWORD, **new})
    assert (is_in(client), is_in(with_key(key))) == (True, False)
    assert UserSession.objects.filter(session_key=digest_key(key_of(client))).exists()
    assert "Lost" not in client.get(PAGE).content.decode()
    assert UserSession.objects.count() == Session.objects.count() == 1


def over(client: Client) -> Client:
    """The same browser, after two weeks without it."""
    stored = Session.objects.filter(pk=digest_key(key_of(client)))
    assert stored.update(expire_date=timezone.now() - timedelta(days=1)) == 1
    return client


def test_a_session_that_is_over_opens_nothing_and_is_listed_no_more() -> None:
    account = make_account()
    here, old = browser(account, "Fox"), over(browser(account, "Old"))
    assert not is_in(old)
    assert Session.objects.count() == 2
    assert "Old" not in here.get(PAGE).content.decode()
    assert UserSession.objects.count() == Session.objects.count() == 1


def test_who_signs_in_leaves_nothing_of_sessions_that_are_over() -> None:
    account = make_account()
    over(browser(account, "Old"))
    browser(account, "Fox")
    assert UserSession.objects.get().user_agent == "Fox"
    assert Session.objects.count() == 1


def test_sessions_that_are_over_are_cleared_and_others_are_not() -> None:
    account = make_account()
    here = browser(account, "Fox")
    over(browser(account, "Old"))
    call_command("clearsessions")
    assert Session.objects.get().pk == digest_key(key_of(here))
    assert is_in(here)


def test_no_key_is_kept_of_a_session_that_is_used_asynchronously() -> None:
    store = SessionStore()
    async_to_sync(store.acreate)()
    async_to_sync(store.aset)("begun", "here")
    async_to_sync(store.asave)()
    assert Session.objects.get().pk == digest_key(store.session_key)
    found = SessionStore(store.session_key)
    assert async_to_sync(found.aget)("begun") == "here"
    assert async_to_sync(found.aexists)(store.session_key)
    async_to_sync(found.adelete)()
    assert not Session.objects.exists()
