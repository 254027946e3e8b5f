"""How people come into a project: a lead makes a link, and who opens it becomes a member.

What goes out by e-mail beside what accounts themselves send.
"""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.core.mail import send_mail
from django.db import IntegrityError
from django.template.loader import render_to_string

from annotation.db import transactions
from annotation.errors import FieldError, Refused
from annotation.models import Account, Event, Invitation, Membership
from annotation.projects import members


def send_invitation(invitation: Invitation, link: str) -> bool | None:
    """Send the link of an invitation; whether it went out, None if it was not to.

    Without a mail server nothing is sent, since the link would stand in the server's output.
    """
    if not invitation.email:
        return None
    if not settings.EMAIL_HOST:
        return False
    text = render_to_string("annotation/invitation.txt", {"invitation": invitation, "link": link})
    try:
        send_mail("An invitation to Blindspot", text, None, [invitation.email])
    except OSError:  # as all errors of smtplib are
        return False
    return True


# How many days a link can be used.
VALID_DAYS = (1, 7, 30)


@dataclass(frozen=True)
class InvitationRequest:
    """Who is invited, as what; without an address the lead hands the link over."""

    alias: str
    role: str
    email: str = ""
    days: int = 7


def create_invitation(
    lead: Membership, wanted: InvitationRequest, *, now: datetime
) -> tuple[Invitation, str]:
    """A new invitation and the key of its link, which nobody can see again.

    Raises FieldError if the project has a member of this name, or waits for one.
    """
    with transactions.transact():
        here = Invitation.objects.in_project(lead.project).named(wanted.alias).waiting()
        here.exclude(pk__in=here.usable(now)).end(now)
        if here.exists():
            raise FieldError("There is an open invitation for this name. Revoke it first.", "alias")
        if Membership.objects.in_project(lead.project).called([wanted.alias]).exists():
            raise FieldError("A member of this project has this name. Choose another.", "alias")
        made, key = Invitation.issue(
            lead, wanted.alias, wanted.role, wanted.email, wanted.days, now
        )
        _record(made, lead, "nothing", "open")
    return made, key


def revoke(lead: Membership, invitation: Invitation, *, now: datetime) -> None:
    """Make the link useless. One that was used already stays used."""
    with transactions.transact():
        if Invitation.objects.filter(pk=invitation.pk).waiting().end(now):
            _record(invitation, lead, "open", "taken back")


def find_invitation(key: str, *, now: datetime) -> Invitation | None:
    """The invitation that this key opens; None if it never did or does no more."""
    if "\0" in key:  # which PostgreSQL refuses to look for
        return None
    return Invitation.objects.usable(now).opened_by(Invitation.digest_of(key))


def accept(invitation: Invitation, account: Account, *, now: datetime) -> Membership:
    """Make the account a member. Raises Refused if it is one, or the link was used meanwhile."""
    with transactions.transact():
        there = Membership.objects.in_project(invitation.project).filter(account=account).first()
        if there:
            raise Refused(_member_already_text(there))
        if Membership.objects.in_project(invitation.project).called([invitation.alias]).exists():
            raise Refused("This name is now taken. Ask for a new invitation.")
        # By update-count: of two who press at once, one comes in.
        if not Invitation.objects.filter(pk=invitation.pk, expires_at__gt=now).waiting().end(now):
            raise Refused("This invitation was used or revoked. Ask for a new one.")
        member = Membership.objects.create(
            project=invitation.project,
            account=account,
            alias=invitation.alias,
            role=invitation.role,
            created_at=now,
        )
        Invitation.objects.filter(pk=invitation.pk).update(member=member)
        _record(invitation, member, "open", "accepted")
    return member


def accept_with_new_account(
    invitation: Invitation, username: str, password: str, *, now: datetime
) -> Membership:
    """The same for somebody without an account, who gets one with the address of the invitation.

    Raises Refused also if somebody with this address has an account, who signs in instead.
    """
    with transactions.transact():
        if has_account(invitation):
            raise Refused("An account with your e-mail address exists. Sign in with it to join.")
        try:
            account = Account.objects.create_user(
                username, email=invitation.email, password=password
            )
        except IntegrityError as error:  # the form saw it free, and another was quicker
            raise Refused("This user name has just been taken. Choose another.") from error
        return accept(invitation, account, now=now)


def find_by_email(email: str, *, now: datetime) -> list[Invitation]:
    """The invitations that were sent to just this address and can be used; none to no address."""
    if not email or "\0" in email:
        return []
    found = Invitation.objects.usable(now).addressed(email)
    # A database may take letters for the same that lead to other people's mail (ı and i).
    return [one for one in found if _same_address(one.email, email)]


def accept_from_service(
    invitations: list[Invitation], username: str, email: str, *, now: datetime
) -> Account:
    """An account without a password, of somebody whom another service knows, who is invited here.

    It has the address that the service verified, or the invitation's. Raises Refused if somebody
    has an account with that address, or one of the invitations cannot be used.
    """
    with transactions.transact():
        email = email or invitations[0].email
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
    """Whether somebody who can sign in has the address that the invitation was sent to."""
    return _is_known(invitation.email)


def _is_known(email: str) -> bool:
    known = Account.objects.filter(email__iexact=email, is_active=True)
    return bool(email) and known.exists()


def _same_address(one: str, other: str) -> bool:
    alike = one.isascii() and other.isascii() and one.lower() == other.lower()
    return one == other or alike


def _member_already_text(member: Membership) -> str:
    if member.active:
        return f"You are already a member of this project, as {member.alias}."
    return "You are suspended in this project. Ask a lead to restore you."


def _record(invitation: Invitation, by: Membership, old: str, new: str) -> None:
    # Without the address, which is the account's alone.
    Event.record(
        members.INVITATION_EVENT,
        invitation.alias,
        project_id=by.project_id,
        member_id=by.pk,
        old={"invitation": old},
        new={"invitation": new, "role": invitation.role},
    )
