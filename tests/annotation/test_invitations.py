"""Invitations: one link, one person, once, until it expires or is taken back."""

import itertools
import re
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from unittest.mock import Mock

import pytest
from django.core import mail
from django.core.mail.backends import locmem
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

from annotation.errors import FieldError, Refused
from annotation.models import Account, Event, Invitation, Membership
from annotation.projects import invitations, members
from annotation.projects.invitations import InvitationRequest
from tests.annotation.test_queue_threads import at_once
from tests.builders import PASSWORD, Cast, browser_of, cast, make_account

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 1, tzinfo=UTC)
NEW = {"username": "grace", "password1": "quite-another-word", "password2": "quite-another-word"}


def made(people: Cast, **wanted: str) -> str:
    """The address of an invitation that is open now."""
    named = InvitationRequest(**{"alias": "gh", "role": "annotator", **wanted})
    return reverse(
        "invitation",
        args=[invitations.create_invitation(people.lead, named, now=timezone.now())[1]],
    )


def member(people: Cast, alias: str = "gh") -> Membership | None:
    return Membership.objects.in_project(people.project).named(alias)


def test_a_lead_makes_a_link_that_is_shown_once(people: Cast) -> None:
    client = browser_of(people.lead.account)
    said = {"alias": "gh", "role": "annotator", "days": "7"}
    answer = client.post(reverse("members-invite", args=[people.project.slug]), said)
    link = answer.content.decode().split('class="secret">')[1].split("<")[0]
    key = link.rstrip("/").rpartition("/")[2]
    page = client.get(reverse("members", args=[people.project.slug])).content.decode()
    assert "<b>gh</b>, annotator" in page
    assert key not in page
    assert key not in str(Invitation.objects.values())
    assert Client().get(link).status_code == 200


def test_who_has_no_account_makes_one_and_is_in(people: Cast) -> None:
    client, link = Client(), made(people, email="grace@lab.example", role="researcher")
    assert client.post(link, NEW).status_code == 302
    assert client.get(reverse("results", args=[people.project.slug])).status_code != 403
    joined = member(people)
    assert joined
    assert (joined.role, joined.account.username) == ("researcher", "grace")
    assert joined.account.email == "grace@lab.example"


def test_a_weak_password_makes_no_account_and_leaves_the_link(people: Cast) -> None:
    link = made(people)
    weak = NEW | {"password1": "password", "password2": "password"}
    assert Client().post(link, weak).status_code == 422
    assert not Account.objects.filter(username="grace").exists()
    assert Client().post(link, NEW).status_code == 302


def test_who_is_signed_in_joins_with_a_press_and_not_by_looking(people: Cast) -> None:
    client, link = browser_of(people.stranger), made(people)
    assert client.get(link).status_code == 200
    assert member(people) is None
    assert client.post(link, {"join": "1"}).status_code == 302
    joined = member(people)
    assert joined
    assert joined.account == people.stranger


def test_who_signs_in_on_the_way_comes_back_to_the_invitation(people: Cast) -> None:
    client, link = Client(), made(people)
    [way] = re.findall(r'href="(/accounts/login/[^"]+)"', client.get(link).content.decode())
    said = {"login": people.stranger.username, "password": PASSWORD}
    assert client.post(way, said).headers["Location"] == link


def test_a_link_works_once(people: Cast) -> None:
    link = made(people)
    Client().post(link, NEW)
    second = Client().post(link, NEW | {"username": "other"})
    assert second.status_code == 404
    assert not Account.objects.filter(username="other").exists()


def test_of_two_who_press_at_once_one_comes_in_and_no_account_is_left_over(people: Cast) -> None:
    _, key = invitations.create_invitation(
        people.lead, InvitationRequest("gh", "annotator"), now=NOW
    )
    both = [invitations.find_invitation(key, now=NOW), invitations.find_invitation(key, now=NOW)]
    invitations.accept(both[0], people.stranger, now=NOW)
    with pytest.raises(Refused):
        invitations.accept_with_new_account(both[1], "late", "quite-another-word", now=NOW)
    assert not Account.objects.filter(username="late").exists()


def test_of_two_who_choose_a_user_name_at_once_one_gets_it(people: Cast) -> None:
    now = timezone.now()
    asked = [InvitationRequest(name, "annotator") for name in ("one", "other")]
    first, second = (invitations.create_invitation(people.lead, one, now=now)[0] for one in asked)
    invitations.accept_with_new_account(first, "grace", "quite-a-word-1", now=now)
    with pytest.raises(Refused, match="user name has just been taken"):
        invitations.accept_with_new_account(second, "grace", "quite-a-word-1", now=now)
    second.refresh_from_db()
    assert second.ended_at is None


@pytest.mark.django_db(transaction=True)
def test_of_two_links_for_one_address_that_are_opened_at_once_one_makes_an_account() -> None:
    people, now = cast(), timezone.now()
    asked = [InvitationRequest(name, "annotator", "grace@example.org") for name in ("a", "b")]
    both = [invitations.create_invitation(people.lead, one, now=now)[0] for one in asked]

    def accept(one: Invitation) -> str:
        try:
            invitations.accept_with_new_account(one, one.alias, "quite-a-word-1", now=now)
        except Refused as refused:
            return str(refused)
        return ""

    said = at_once(*(partial(accept, one) for one in both))
    assert sorted(map(bool, said)) == [False, True]
    assert "An account with your e-mail address exists." in "".join(said)
    assert Account.objects.filter(email="grace@example.org").count() == 1


def test_an_old_link_opens_nothing_and_its_name_can_be_used_again(people: Cast) -> None:
    _, key = invitations.create_invitation(
        people.lead, InvitationRequest("gh", "annotator", days=1), now=NOW
    )
    later = NOW + timedelta(days=1)
    assert invitations.find_invitation(key, now=later - timedelta(seconds=1))
    assert invitations.find_invitation(key, now=later) is None
    invitations.create_invitation(people.lead, InvitationRequest("gh", "annotator"), now=later)


def test_an_invitation_that_expires_while_it_is_read_is_refused(people: Cast) -> None:
    invitation, _ = invitations.create_invitation(
        people.lead, InvitationRequest("gh", "annotator", days=1), now=NOW
    )
    with pytest.raises(Refused, match="Ask for a new one"):
        invitations.accept(invitation, people.stranger, now=NOW + timedelta(days=2))
    assert member(people) is None


def test_a_link_that_was_taken_back_opens_nothing(people: Cast) -> None:
    link, client = made(people, email="grace@lab.example"), browser_of(people.lead.account)
    page = reverse("members", args=[people.project.slug])
    assert client.post(page, {"revoke": Invitation.objects.get().pk}).status_code == 302
    assert b"revoked" in Client().get(link).content
    assert Invitation.objects.get().email == ""


def test_nobody_takes_back_what_another_project_offers(people: Cast) -> None:
    made(people)
    elsewhere = cast_of_another()
    page = reverse("members", args=[elsewhere.project.slug])
    client = browser_of(elsewhere.lead.account)
    for number in (Invitation.objects.get().pk, "²", "-1", "9" * 30):
        assert client.post(page, {"revoke": number}).status_code == 404
    assert Invitation.objects.waiting().exists()


def cast_of_another() -> Cast:
    Account.objects.filter(username__in=("admin", "stranger")).delete()
    return cast()


def test_names_stay_one_persons_alone(people: Cast) -> None:
    with pytest.raises(FieldError, match="Choose another"):
        invitations.create_invitation(
            people.lead, InvitationRequest("annotator", "annotator"), now=NOW
        )
    invitations.create_invitation(people.lead, InvitationRequest("gh", "annotator"), now=NOW)
    with pytest.raises(FieldError, match="Revoke it first"):
        invitations.create_invitation(people.lead, InvitationRequest("gh", "lead"), now=NOW)


def test_who_is_in_already_or_suspended_is_told_so(people: Cast) -> None:
    link = made(people)
    client = browser_of(people.annotator.account)
    assert b"already a member of this project" in client.post(link, {"join": "1"}).content
    members.suspend(people.lead, people.annotator)
    answer = client.post(link, {"join": "1"})
    assert answer.status_code == 422
    assert b"You are suspended" in answer.content
    assert Client().get(link).status_code == 200


def test_the_audit_tells_who_invited_and_who_came_without_an_address(people: Cast) -> None:
    Client().post(made(people, email="grace@lab.example"), NEW)
    came, asked = members.list_changes(people.project)
    assert (asked.member, came.member) == (people.lead, member(people))
    assert asked.data["new"] == {"invitation": "open", "role": "annotator"}
    assert came.data["old"] == {"invitation": "open"}
    assert "grace" not in str(Event.objects.values())
    assert Invitation.objects.get().email == ""


@override_settings(EMAIL_HOST="mail.example")
def test_with_a_mail_server_the_link_is_sent(people: Cast) -> None:
    said = {"alias": "gh", "role": "annotator", "days": "7", "email": "grace@lab.example"}
    browser_of(people.lead.account).post(
        reverse("members-invite", args=[people.project.slug]), said
    )
    [message] = mail.outbox
    assert message.to == ["grace@lab.example"]
    [path] = re.findall(r"http://testserver(/invitations/\S+)", message.body)
    assert Client().get(path).status_code == 200


@override_settings(
    EMAIL_BACKEND="django.core.mail.backends.smtp.EmailBackend",
    EMAIL_HOST="127.0.0.1",
    EMAIL_PORT=9,
)
def test_if_the_mail_server_does_not_answer_the_lead_is_told(people: Cast) -> None:
    said = {"alias": "gh", "role": "annotator", "days": "7", "email": "grace@lab.example"}
    page = browser_of(people.lead.account).post(
        reverse("members-invite", args=[people.project.slug]), said
    )
    assert b"could not be sent" in page.content


def test_without_one_the_lead_is_told_to_hand_it_over(people: Cast) -> None:
    said = {"alias": "gh", "role": "annotator", "days": "7", "email": "grace@lab.example"}
    page = browser_of(people.lead.account).post(
        reverse("members-invite", args=[people.project.slug]), said
    )
    assert b"could not be sent" in page.content
    assert mail.outbox == []


def test_who_has_an_account_with_the_address_signs_in_and_joins(people: Cast) -> None:
    grace = make_account("gh", email="Grace@lab.example")
    link, client = made(people, email="grace@lab.example"), Client()
    page = client.get(link).content.decode()
    assert "An account with the e-mail address of this invitation exists" in page
    assert "password1" not in page
    assert client.post(link, NEW).status_code == 422
    assert not Account.objects.filter(username="grace").exists()
    answer = client.post(f"/accounts/login/?next={link}", {"login": "gh", "password": PASSWORD})
    assert answer.headers["Location"] == link
    client.post(link, {"join": "1"})
    joined = member(people)
    assert joined
    assert joined.account == grace


def test_an_invitation_without_an_address_finds_nobodys_account(people: Cast) -> None:
    make_account("gh", email="")
    assert Client().post(made(people), NEW).status_code == 302


def test_nobody_goes_by_the_address_of_another(people: Cast) -> None:
    link = made(people)
    answer = Client().post(link, NEW | {"username": "lead@lab.example"})
    assert answer.status_code == 422
    assert b"without @" in answer.content
    assert not Account.objects.filter(username__contains="@").exists()


# ----------------------------------------------------------------------------------------- several

TWELVE = """Ada Lovelace <ada@lab.example>
grace@navy.example
Edsger
Barbara\tbarbara@mit.example
Donald, donald@tex.example

"Tim, Berners-Lee"; tim@web.example
"""


def invite_many(people: Cast, text: str, status: int = 200) -> str:
    said = {"people": text, "role": "annotator", "days": "7"}
    url = reverse("members-invite", args=[people.project.slug])
    answer = browser_of(people.lead).post(url, said)
    assert answer.status_code == status, answer.content.decode()
    return answer.content.decode()


def test_a_pasted_list_makes_a_link_for_each_person(people: Cast) -> None:
    page = invite_many(people, TWELVE)
    made = dict(Invitation.objects.values_list("alias", "email"))
    assert made == {
        "Ada Lovelace": "ada@lab.example",
        "grace": "grace@navy.example",
        "Edsger": "",
        "Barbara": "barbara@mit.example",
        "Donald": "donald@tex.example",
        "Tim, Berners-Lee": "tim@web.example",
    }
    links = re.findall(r'class="secret">([^<]+)<', page)
    assert len(set(links)) == 6
    assert all(Client().get(link).status_code == 200 for link in links)
    assert f"Edsger\t\t{links[2]}" in page.replace("&#9;", "\t")
    assert [str(message.to) for message in mail.outbox] == []


@override_settings(EMAIL_HOST="mail.lab.example")
def test_who_has_an_address_gets_the_link_by_mail(people: Cast) -> None:
    page = invite_many(people, TWELVE)
    assert sorted(one for message in mail.outbox for one in message.to) == [
        "ada@lab.example", "barbara@mit.example", "donald@tex.example", "grace@navy.example",
        "tim@web.example",
    ]  # fmt: skip
    assert page.count(">sent<") == 5


@override_settings(EMAIL_HOST="mail.lab.example")
def test_all_links_of_a_list_are_sent_over_one_connection(
    people: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = list_connections(monkeypatch)
    assert invite_many(people, TWELVE).count(">sent<") == 5
    assert len(used) == 5
    assert len({id(one) for one in used}) == 1


@override_settings(EMAIL_HOST="mail.lab.example")
def test_links_are_shown_although_the_mail_server_takes_long(people: Cast) -> None:
    wanted = invitations.read_people(TWELVE, role="annotator", days=7)
    found = invitations.create_invitations(people.lead, wanted, now=timezone.now())
    # Each look at the clock is 8 s after the one before: the third address would come after 20 s.
    clock = itertools.count(step=8.0)
    sent = invitations.send_invitations(found, seconds=lambda: float(next(clock)))
    assert sent == [True, True, None, False, False, False]
    assert len(mail.outbox) == 2


@override_settings(
    EMAIL_HOST="mail.lab.example", EMAIL_BACKEND="django.core.mail.backends.smtp.EmailBackend"
)
def test_an_address_that_no_message_can_have_does_not_stop_the_others(
    people: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part of a domain may have 63 characters when it is encoded."""
    server = Mock(**{"sendmail.return_value": {}})
    monkeypatch.setattr("smtplib.SMTP", lambda *_, **__: server)
    too_long = "ä" * 60
    page = invite_many(people, f"Ada ada@{too_long}.example\ngrace@navy.example")
    assert page.count("not sent: pass on the link") == 1
    assert page.count(">sent<") == 1
    assert [call.args[1] for call in server.sendmail.call_args_list] == [["grace@navy.example"]]


def list_connections(monkeypatch: pytest.MonkeyPatch) -> list[locmem.EmailBackend]:
    """The connection that each message was sent over."""
    used: list[locmem.EmailBackend] = []
    send = locmem.EmailBackend.send_messages

    def send_and_note(self: locmem.EmailBackend, messages: list[mail.EmailMessage]) -> int:
        used.append(self)
        return send(self, messages)

    monkeypatch.setattr(locmem.EmailBackend, "send_messages", send_and_note)
    return used


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ada\nADA", "Line 2: &#x27;ADA&#x27; is named twice."),
        ("ada\nann@nowhere", "Line 2: &#x27;ann@nowhere&#x27; is no e-mail address."),
        ("x" * 81, "Line 1: a name has up to 80 characters."),
        ("   \n \n", "This field is required"),
        ("\n".join(f"p{n}" for n in range(101)), "Name one to 100 people"),
        ("new\nannotator\nresearcher", "annotator: A member of this project has this name."),
    ],
)
def test_a_list_with_a_mistake_invites_nobody_and_names_it(
    people: Cast, text: str, said: str
) -> None:
    page = invite_many(people, text, 422)
    assert said in page
    assert not Invitation.objects.exists()
    # The cursor is in the list that is refused, and the page opens there.
    assert re.findall(r"<(\w+)[^>]* autofocus", page) == ["textarea"]
    assert text.strip().splitlines()[0][:20] in page if text.strip() else True


@pytest.mark.parametrize("line", ["@" * 2_000 + ">>", "a" * 20_000, "a" + " " * 19_998 + "b"])
def test_a_line_that_names_nobody_takes_no_time(line: str) -> None:
    started = time.process_time()
    with pytest.raises(FieldError, match="Line 1"):
        invitations.read_people(line, role="annotator", days=7)
    assert time.process_time() - started < 3


def test_nobody_whose_account_was_closed_comes_back_by_their_own_link(people: Cast) -> None:
    wanted = invitations.InvitationRequest("again", "lead", days=30)
    key = invitations.create_invitation(people.lead, wanted, now=timezone.now())[1]
    account = people.lead.account
    assert account
    account.is_active = False
    account.save()
    assert Client().get(reverse("invitation", args=[key])).status_code == 404
    sent = {"username": "again", "password1": PASSWORD, "password2": PASSWORD}
    assert Client().post(reverse("invitation", args=[key]), sent).status_code == 404
    assert not Account.objects.filter(username="again").exists()


@pytest.mark.parametrize("alias", ["gh\u202e", "g\u200bh", "g\nh"])
def test_nobody_is_called_by_a_name_that_looks_like_another_or_turns_others_round(
    people: Cast, alias: str
) -> None:
    client = browser_of(people.lead.account)
    said = {"alias": alias, "role": "annotator", "days": "7"}
    answer = client.post(reverse("members-invite", args=[people.project.slug]), said)
    assert answer.status_code == 422
    assert "a character that cannot be seen" in answer.content.decode()
    path = reverse("api-invitations", args=[people.project.slug])
    answer = client.post(path, said, content_type="application/json")
    assert (answer.status_code, [*answer.json()["errors"]]) == (422, ["alias"])
    assert made(people, alias="می\u200cخواهم")
