"""One-time links with which members without an e-mail address set a new password.

The link is that of a forgotten password, which otherwise comes by e-mail: it works until the
password changes, for as long as PASSWORD_RESET_TIMEOUT says. Two-step sign-in stays in force.
"""

from allauth.account.forms import default_token_generator
from allauth.account.utils import user_pk_to_url_str
from django.urls import reverse

from annotation.errors import Refused
from annotation.models import Event, Membership, Role
from annotation.reports import personal_data


def create_link(lead: Membership, member: Membership) -> str:
    """Return the path of a new link for the member, and record it in the audit log.

    Raises `Refused` for people with an e-mail address, who get the link by themselves, and for
    those whom the lead could act for by it: leads, site admins, and members of projects that the
    lead does not lead.
    """
    account = member.account
    if account is None or not member.active or not account.is_active:
        raise Refused(f"{member} cannot sign in: the account is closed, or the member suspended.")
    if account.email:
        raise Refused(f"{member} has an e-mail address: use “Forgot your password?” at sign-in.")
    is_powerful = member.role == Role.LEAD or account.is_staff or account.is_superuser
    if is_powerful or not personal_data.may_anonymise(lead, member):
        raise Refused(
            f"{member} leads a project, or is a member of a project that you do not lead. Ask a "
            "site admin."
        )
    Event.record("sign-in link", member.alias, project_id=member.project_id, member_id=lead.pk)
    key = default_token_generator.make_token(account)
    place = {"uidb36": user_pk_to_url_str(account), "key": key}
    return reverse("account_reset_password_from_key", kwargs=place)
