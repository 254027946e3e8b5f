"""One sees where one is signed in, and ends it from afar; nobody else's."""

import pytest
from allauth.usersessions.models import UserSession
from django.test import Client

from annotation.models import Account
from tests.builders import PASSWORD, make_account

pytestmark = pytest.mark.django_db
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
