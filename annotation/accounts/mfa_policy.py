"""What somebody has to do before anything else: set up two-step sign-in, where that is a duty."""

from allauth.mfa.models import Authenticator
from django.conf import settings

from annotation.models import Account, Membership, Role

MFA_REQUIRED_MESSAGE = "Leads and site admins must use two-step sign-in. Set it up to continue."


def must_set_up_mfa(account: Account) -> bool:
    """Whether the account may do much, has no second step, and the settings ask for one."""
    if not settings.SECOND_STEP_REQUIRED:
        return False
    leads = account.is_superuser or account.is_staff
    if not leads and Role.LEAD not in Membership.objects.roles_of(account):
        return False
    return not Authenticator.objects.filter(user=account, type=Authenticator.Type.TOTP).exists()
