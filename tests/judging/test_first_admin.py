"""On an empty site, `serve` prints a link at which the first site admin sets a password."""

import pytest
from django.test import Client
from django.utils import timezone

from annotation.models import Account
from judging.management.commands import serve
from tests.builders import make_account

pytestmark = pytest.mark.django_db
WORDS = "a pear in the tree 7"


def set_password(client: Client, link: str) -> int:
    """The status of the page that the link leads to; a password is set if the page asks for one."""
    page = client.get(link, follow=True)
    if "password1" in page.content.decode():
        there = page.redirect_chain[-1][0]
        assert client.post(there, {"password1": WORDS, "password2": WORDS}).status_code == 302
    return page.status_code


def test_the_first_site_admin_sets_a_password_and_begins(client: Client) -> None:
    assert not serve._has_accounts()
    set_password(client, serve._first_admin_link())
    account = Account.objects.get()
    assert (account.username, account.is_superuser, account.is_staff) == ("admin", True, True)
    assert serve._has_accounts()
    newcomer = Client()
    newcomer.post("/accounts/login/", {"login": "admin", "password": WORDS})
    assert "New project" in newcomer.get("/").content.decode()


def test_the_link_works_once_and_a_later_start_prints_another_until_then() -> None:
    first, second = serve._first_admin_link(), serve._first_admin_link()
    assert Account.objects.count() == 1
    set_password(Client(), first)
    before = Account.objects.get().password
    for used in (first, second):
        assert "password1" not in Client().get(used, follow=True).content.decode()
    assert Account.objects.get().password == before


@pytest.mark.parametrize("state", ["closed", "without a password", "an admin by another service"])
def test_where_there_is_any_other_account_no_link_is_printed(state: str) -> None:
    account = make_account(username="admin" if "admin" in state else "lead")
    account.set_unusable_password()
    account.is_active = state != "closed"
    account.last_login = timezone.now() if "admin" in state else None
    account.save()
    assert serve._has_accounts()
