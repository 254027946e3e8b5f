"""One-time links with which members set a new password who have no e-mail address, or have one
where no mail can be sent.

A lead creates a link and hands it over. It works for a day, until the password changes or somebody
signs in with it, and only while the lead may still create it: the link is signed together with a
digest of all that decides this. Two-step sign-in stays in force.
"""

import hashlib
from dataclasses import dataclass
from datetime import timedelta

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.core import signing

from annotation.errors import Refused
from annotation.models import Account, Event, Membership, Role
from annotation.projects.members import LINK_EVENT
from annotation.reports import personal_data

VALID_FOR = timedelta(days=1)
_SALT = "annotation.sign-in-link"


@dataclass(frozen=True)
class SignInLink:
    """The account that a link is for, and the member as whom the lead knows the person."""

    account: Account
    member: Membership


def create_link(lead: Membership, member: Membership) -> str:
    """Return the key of a new link for the member, and record it in the audit log.

    Raises `Refused` for people who can be sent mail or have another way to sign in, and for those
    whom the lead could act for by the link: leads, site admins, and members of projects that the
    lead does not lead.
    """
    check_may_link(lead, member)
    Event.record(LINK_EVENT, member.alias, project_id=member.project_id, member_id=lead.pk)
    return signing.dumps([lead.pk, member.pk, _digest_state(lead, member)], salt=_SALT)


def find_link(key: str) -> SignInLink | None:
    """Return what the link with this key is for; None if it does not work or no longer does."""
    try:
        lead_id, member_id, state = signing.loads(key, salt=_SALT, max_age=VALID_FOR)
    except signing.BadSignature:
        return None
    people = Membership.objects.select_related("account", "project").in_bulk([lead_id, member_id])
    lead, member = people.get(lead_id), people.get(member_id)
    if lead is None or member is None or state != _digest_state(lead, member):
        return None
    try:
        check_may_link(lead, member)
    except Refused:
        return None
    assert member.account
    return SignInLink(member.account, member)


def check_may_link(lead: Membership, member: Membership) -> None:
    """Raise `Refused` unless the lead may create a link for the member."""
    account = member.account
    if account is None or not member.active or not account.is_active:
        raise Refused(f"{member} cannot sign in: the account is closed, or the member suspended.")
    gets_mail = bool(account.email and settings.EMAIL_HOST)
    if gets_mail or SocialAccount.objects.filter(user=account).exists():
        raise Refused(
            f"{member} has an e-mail address or signs in by another service. With an address, "
            "“Forgot your password?” at sign-in sends a link."
        )
    leads = Membership.objects.filter(account=account, role=Role.LEAD).exists()
    is_powerful = leads or account.is_staff or account.is_superuser
    if not lead.is_lead or is_powerful or not personal_data.may_anonymise(lead, member):
        raise Refused(
            f"{member} is a site admin, leads a project, or is in a project that you do not lead. "
            "Ask a site admin to set a password."
        )


def _digest_state(lead: Membership, member: Membership) -> str:
    """A digest of the password, of the last sign-in, and of the rights of both people."""
    account = member.account
    said: list[object] = [lead.role, lead.active, lead.account_id]
    if account:
        seats = Membership.objects.filter(account=account).order_by("pk")
        said += [account.pk, account.password, account.last_login, account.email]
        said += [account.is_active, account.is_staff, account.is_superuser]
        said += seats.values_list("project", "role", "active")
    return hashlib.sha256(repr(said).encode()).hexdigest()
