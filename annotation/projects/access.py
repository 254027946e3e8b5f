"""Who may do what: a stranger gets 404, a member without the right 403 (design, style 8).

What somebody has to do before anything else: set up two-step sign-in, where that is a duty.
"""

from itertools import chain, count

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest

from annotation.db.sql import PreparedQuery
from annotation.models import Account, Event, Membership, Project, Role

MFA_REQUIRED_MESSAGE = "Leads and site admins must use two-step sign-in. Set it up to continue."


def must_set_up_mfa(account: Account) -> bool:
    """Whether the account may do much, has no second step, and the settings ask for one."""
    if not settings.SECOND_STEP_REQUIRED:
        return False
    leads = account.is_superuser or account.is_staff
    if not leads and Role.LEAD not in Membership.objects.roles_of(account):
        return False
    return not Authenticator.objects.filter(user=account, type=Authenticator.Type.TOTP).exists()


_MEMBERSHIP_QUERY = PreparedQuery(lambda account, slug: Membership.objects.seats_of(account, slug))


def member_for(request: HttpRequest, slug: str, right: str) -> Membership:
    """The signed-in person's membership of a project, if it holds the right and is not suspended.

    A site admin may do everything but label: that needs a place of their own in the project. For
    reading, an admin without one gets an unsaved membership; `ensure_membership` saves it.
    """
    account = request.user
    if not isinstance(account, Account):
        raise Http404
    member = account.seat
    if member is None or member.project.slug != slug:
        member = _MEMBERSHIP_QUERY.first(account=account.pk, slug=slug)
    if member and member.can(right):
        return member
    project = (
        Project.objects.filter(slug=slug, archived_at=None).select_related("task_type").first()
    )
    if project is None:
        raise Http404
    if account.is_superuser:
        if right == "label":
            raise PermissionDenied("Add yourself to the project as an annotator to label.")
        return Membership(
            project=project, account=account, alias=f"admin-{account.pk}", role=Role.LEAD
        )
    if member is None:
        raise _suspension_error(account, project) or Http404
    raise PermissionDenied(f"Your role in this project ({member.role}) does not allow this.")


def _suspension_error(account: Account, project: Project) -> PermissionDenied | None:
    """What somebody is told who had a place in the project; None for who never had one."""
    there = Membership.objects.in_project(project).filter(account=account).first()
    if there is None:
        return None
    return PermissionDenied(
        f"You are suspended in {project}, where you were {there.alias}, {there.role}. Your work "
        "is kept. Ask a lead of the project."
    )


def require_site_admin(request: HttpRequest) -> Account:
    """The signed-in person, if they may do everything on the site.

    404 for whoever has no place in any project, 403 for other members.
    """
    account = request.user
    if not isinstance(account, Account):
        raise Http404
    if account.is_superuser:
        return account
    if not Membership.objects.roles_of(account):
        raise Http404
    raise PermissionDenied("This is for site admins.")


def ensure_membership(member: Membership) -> Membership:
    """The membership as a stored row, made for a site admin who acts for the first time."""
    if member.pk is None:
        member, made = Membership.objects.get_or_create(
            project=member.project,
            account=member.account,
            defaults={"alias": _free_alias(member), "role": member.role},
        )
        if made:
            place = {"project_id": member.project_id, "member_id": member.pk}
            Event.record("member", member.alias, **place, old={}, new={"role": member.role})
    return member


def _free_alias(member: Membership) -> str:
    """What the member is called, with a number behind it if somebody goes by that already."""
    named = Membership.objects.in_project(member.project).filter(alias__startswith=member.alias)
    taken = set(named.values_list("alias", flat=True))
    numbered = (f"{member.alias}-{number}" for number in count(2))
    return next(name for name in chain([member.alias], numbered) if name not in taken)
