"""Invitations: a lead creates a link, and the person who accepts it becomes a member.

Also sends the invitation e-mails.
"""

import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import get_connection, send_mail
from django.core.mail.backends.base import BaseEmailBackend
from django.core.validators import validate_email
from django.db import IntegrityError
from django.template.loader import render_to_string

from annotation.db import transactions
from annotation.errors import FieldError, Refused
from annotation.labelling import pilot
from annotation.models import Account, Event, Invitation, Membership
from annotation.projects import members
from annotation.projects.visible_names import check_visible

# After so many seconds, nothing more is sent: browsers and proxies give up after a minute, and the
# links would never be shown.
MAIL_SECONDS = 20.0


def send_invitation(
    invitation: Invitation, link: str, connection: BaseEmailBackend | None = None
) -> bool | None:
    """Send the link of an invitation. Return True if it was sent, None if the invitation has no
    address. With a connection to the mail server, that one is used, and opened if it is not open.

    Without a mail server nothing is sent, since the link would appear in the server's output.
    """
    if not invitation.email:
        return None
    if not settings.EMAIL_HOST:
        return False
    text = render_to_string("annotation/invitation.txt", {"invitation": invitation, "link": link})
    subject, address = "An invitation to Blindspot", invitation.email
    try:
        if connection:
            connection.open()
        send_mail(subject, text, None, [address], connection=connection)
    # OSError is the base class of all errors of smtplib, ValueError is for an address that no
    # message can have, such as one with a domain that is too long when it is encoded.
    except (OSError, ValueError):
        _close(connection)  # it may be broken
        return False
    return True


def send_invitations(
    made: Iterable[tuple[Invitation, str]], *, seconds: Callable[[], float] = time.monotonic
) -> list[bool | None]:
    """Send the links of invitations over one connection, since connecting takes most of the time.
    Return what `send_invitation` does for each; what could not be sent within `MAIL_SECONDS` is not
    sent."""
    connection, ends = get_connection(), seconds() + MAIL_SECONDS
    sent: list[bool | None] = []
    for invitation, link in made:
        late = bool(invitation.email) and seconds() >= ends
        sent.append(False if late else send_invitation(invitation, link, connection))
    _close(connection)
    return sent


def _close(connection: BaseEmailBackend | None) -> None:
    with suppress(OSError):
        if connection:
            connection.close()


# Choices for the number of days that a link is valid.
VALID_DAYS = (1, 7, 30)
MAX_ALIAS = 80


@dataclass(frozen=True)
class InvitationRequest:
    """The alias and role to invite. Without an address, the lead passes on the link."""

    alias: str
    role: str
    email: str = ""
    days: int = 7
    group: str = ""


MOST_AT_ONCE = 100
# An address has one @ and begins after a separator. Otherwise, the time for a line of many signs
# would grow with the cube of its length.
_WITH_ADDRESS = re.compile(
    r"(?P<alias>(?:.*?[^\s,;<])?)[\s,;<]*+(?<![^\s,;<>])(?P<email>[^\s,;<>@]++@[^\s,;<>@]++)>?"
)


def read_people(text: str, *, role: str, days: int, group: str = "") -> list[InvitationRequest]:
    """Return the people that a text names, one per line: a name, an address, or a name and an
    address, as in a spreadsheet or a mail. A person with only an address is named by the part
    before the @.

    Raises `FieldError` for a line that cannot be read, and if two lines have the same name.
    """
    lines = [line.strip() for line in text.splitlines()]
    found: dict[str, InvitationRequest] = {}
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        read = _WITH_ADDRESS.fullmatch(line)
        email = read["email"] if read else ""
        alias = (read["alias"].strip(" \t,;\"'") if read else line) or email.partition("@")[0]
        problem = _problem_with(alias, email)
        if alias.casefold() in found:
            problem = f"{alias!r} is named twice"
        if problem:
            raise FieldError(f"Line {number}: {problem}.", "people")
        found[alias.casefold()] = InvitationRequest(alias, role, email, days, group)
    if not 0 < len(found) <= MOST_AT_ONCE:
        raise FieldError(f"Name one to {MOST_AT_ONCE} people, one per line.", "people")
    return list(found.values())


def _problem_with(alias: str, email: str) -> str:
    if len(alias) > MAX_ALIAS or not alias.isprintable():
        return f"a name has up to {MAX_ALIAS} characters"
    try:
        if email:
            validate_email(email)
    except ValidationError:
        return f"{email!r} is no e-mail address"
    return ""


def create_invitations(
    lead: Membership, wanted: Iterable[InvitationRequest], *, now: datetime
) -> list[tuple[Invitation, str]]:
    """Create all invitations or none, like `create_invitation`. Raises `FieldError` that names each
    person who cannot be invited."""
    made, problems = [], []
    with transactions.transact():
        for one in wanted:
            try:
                made.append(create_invitation(lead, one, now=now))
            except FieldError as error:
                problems.append(f"{one.alias}: {error}")
        if problems:
            raise FieldError(" ".join(problems), "people")
    return made


def create_invitation(
    lead: Membership, wanted: InvitationRequest, *, now: datetime
) -> tuple[Invitation, str]:
    """Create an invitation. Return it and the key of its link; the key cannot be shown again.

    Raises `FieldError` if a member or an open invitation of the project already has this name, and
    `PermissionDenied` for somebody who is no lead any more.
    """
    group = members.clean_group(wanted.group)
    try:
        check_visible(wanted.alias)
    except ValidationError as error:
        raise FieldError(str(error.message), "alias") from error
    with members.lock_project(lead):
        here = Invitation.objects.in_project(lead.project).named(wanted.alias).waiting()
        here.exclude(pk__in=here.usable(now)).end(now)
        if here.exists():
            raise FieldError("There is an open invitation for this name. Revoke it first.", "alias")
        if Membership.objects.in_project(lead.project).called([wanted.alias]).exists():
            raise FieldError("A member of this project has this name. Choose another.", "alias")
        made, key = Invitation.issue(
            lead, wanted.alias, wanted.role, wanted.email, wanted.days, now, group
        )
        _record(made, lead, "nothing", "open")
    return made, key


def revoke(lead: Membership, invitation: Invitation, *, now: datetime) -> None:
    """Revoke an open invitation; does nothing if it was used or revoked already."""
    with transactions.transact():
        if Invitation.objects.filter(pk=invitation.pk).waiting().end(now):
            _record(invitation, lead, "open", "taken back")


def find_invitation(key: str, *, now: datetime) -> Invitation | None:
    """Find the open invitation with this key; None if the key is unknown or no longer valid."""
    if "\0" in key:  # PostgreSQL refuses to search for NUL
        return None
    return Invitation.objects.usable(now).opened_by(Invitation.digest_of(key))


def accept(invitation: Invitation, account: Account, *, now: datetime) -> Membership:
    """Make the account a member. Raises `Refused` if the account is or was a member of the project,
    if somebody else took the alias meanwhile, or if the invitation was used, revoked or has
    expired."""
    with transactions.transact():
        there = Membership.objects.in_project(invitation.project).filter(account=account).first()
        if there:
            raise Refused(_member_already_text(there))
        if Membership.objects.in_project(invitation.project).called([invitation.alias]).exists():
            raise Refused("This name is now taken. Ask for a new invitation.")
        # The row count decides: of two simultaneous requests, only one succeeds.
        if not Invitation.objects.filter(pk=invitation.pk, expires_at__gt=now).waiting().end(now):
            raise Refused("This invitation was used or revoked. Ask for a new one.")
        try:
            with transactions.transact():
                member = Membership.objects.create(
                    project=invitation.project,
                    account=account,
                    alias=invitation.alias,
                    role=invitation.role,
                    group=invitation.group,
                    created_at=now,
                )
        except IntegrityError as error:  # another invitation was accepted at the same moment
            raise Refused("You or this name are already in this project. Look again.") from error
        Invitation.objects.filter(pk=invitation.pk).update(member=member)
        _record(invitation, member, "open", "accepted")
        pilot.include(member, now=now)
    return member


def accept_with_new_account(
    invitation: Invitation, username: str, password: str, *, now: datetime
) -> Membership:
    """Create an account with the address of the invitation, then accept it like `accept`.

    Also raises `Refused` if an account with this address exists (the person can sign in with it),
    or if the user name was taken meanwhile.
    """
    with transactions.transact():
        _lock_address(invitation.email)
        if has_account(invitation):
            raise Refused("An account with your e-mail address exists. Sign in with it to join.")
        try:
            account = Account.objects.create_user(
                username, email=invitation.email, password=password
            )
        except IntegrityError as error:  # it was free when the form was validated
            raise Refused("This user name has just been taken. Choose another.") from error
        return accept(invitation, account, now=now)


def find_by_email(email: str, *, now: datetime) -> list[Invitation]:
    """Find the usable invitations that were sent to this address; [] for ""."""
    if not email or "\0" in email:
        return []
    found = Invitation.objects.usable(now).addressed(email)
    # A database may treat two letters as equal (ı and i), although the addresses are different.
    return [one for one in found if _same_address(one.email, email)]


def accept_from_service(
    invitations: list[Invitation], username: str, email: str, *, now: datetime
) -> Account:
    """Create an account without a password for an invited person who signs in by another service,
    and accept the person's invitations.

    The account gets the address that the service has verified, otherwise the address of the first
    invitation. Raises `Refused` if an account with that address exists, or if an invitation cannot
    be accepted.
    """
    with transactions.transact():
        email = email or invitations[0].email
        _lock_address(email)
        if _is_known(email):
            raise Refused(
                "An account with your e-mail address exists. Sign in with its password and link "
                "it. Then open your invitation again, if you have one."
            )
        account = Account.objects.create_user(username, email=email)
        for invitation in invitations:
            accept(invitation, account, now=now)
        return account


def has_account(invitation: Invitation) -> bool:
    """True if an active account has the address that the invitation was sent to."""
    return _is_known(invitation.email)


def _is_known(email: str) -> bool:
    known = Account.objects.filter(email__iexact=email, is_active=True)
    return bool(email) and known.exists()


def _lock_address(email: str) -> None:
    """Let others wait who were invited with this address: of two links that are opened at once, the
    second finds the account of the first."""
    if email:
        sent = Invitation.objects.addressed(email).order_by("pk")
        list(sent.select_for_update(no_key=True).values_list("pk"))


def _same_address(one: str, other: str) -> bool:
    alike = one.isascii() and other.isascii() and one.lower() == other.lower()
    return one == other or alike


def _member_already_text(member: Membership) -> str:
    if member.active:
        return f"You are already a member of this project, as {member.alias}."
    return "You are suspended in this project. Ask a lead to restore you."


def _record(invitation: Invitation, by: Membership, old: str, new: str) -> None:
    # The address is erased, since only accounts may keep addresses.
    Event.record(
        members.INVITATION_EVENT,
        invitation.alias,
        project_id=by.project_id,
        member_id=by.pk,
        old={"invitation": old},
        new={"invitation": new, "role": invitation.role},
    )
