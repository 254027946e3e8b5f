"""Access rules: a stranger gets 404, a member without the right gets 403.

Also decides who must set up two-step sign-in before anything else.
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
    """True if the settings require a second step for this account (a lead or site admin) and it has
    not set one up."""
    if not settings.SECOND_STEP_REQUIRED:
        return False
    leads = account.is_superuser or account.is_staff
    if not leads and Role.LEAD not in Membership.objects.roles_of(account):
        return False
    steps = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)
    return not Authenticator.objects.filter(user=account, type__in=steps).exists()


_MEMBERSHIP_QUERY = PreparedQuery(lambda account, slug: Membership.objects.seats_of(account, slug))


def member_for(request: HttpRequest, slug: str, right: str, *, anew: bool = False) -> Membership:
    """Return the signed-in person's active membership in a project, if it has the right.

    Raises `Http404` for an unknown or archived project and for strangers, and `PermissionDenied`
    for members without the right and for suspended ones. A site admin may do everything except
    label, which needs a membership. For everything else, an admin without a membership gets an
    unsaved one; `ensure_membership` saves it. With `anew`, what was read with the token does not
    count.
    """
    account = request.user
    if not isinstance(account, Account):
        raise Http404
    member = None if anew else account.seat
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
        return _admin_seat(account, project)
    if member is None:
        raise _suspension_error(account, project) or Http404
    raise PermissionDenied(f"Your role in this project ({member.role}) does not allow this.")


def _admin_seat(account: Account, project: Project) -> Membership:
    """Return the unsaved membership of a site admin who has none in the project."""
    return Membership(project=project, account=account, alias=f"admin-{account.pk}", role=Role.LEAD)


def _suspension_error(account: Account, project: Project) -> PermissionDenied | None:
    """Return the error for a suspended member of the project; None for people who were never
    members."""
    there = Membership.objects.in_project(project).filter(account=account).first()
    if there is None:
        return None
    return PermissionDenied(
        f"You are suspended in {project} (as {there.alias}, {there.role}). Your work is kept. Ask "
        "a lead of the project."
    )


def require_site_admin(request: HttpRequest) -> Account:
    """Return the signed-in site admin.

    Raises `Http404` for people without an active membership in any project, and `PermissionDenied`
    for members.
    """
    account = request.user
    if not isinstance(account, Account):
        raise Http404
    if account.is_superuser:
        return account
    if not Membership.objects.roles_of(account):
        raise Http404
    raise PermissionDenied("Only site admins can do this.")


def may_create_projects(account: Account) -> bool:
    """True if the person may create projects: site admins and, unless `NEW_PROJECTS` is "admins",
    the leads of any project and the people whom the administration allows it."""
    if account.is_superuser:
        return True
    if settings.NEW_PROJECTS == "admins":
        return False
    return account.creates_projects or Role.LEAD in Membership.objects.roles_of(account)


def require_project_creator(request: HttpRequest) -> Account:
    """Return the signed-in person, who may create projects.

    Raises `Http404` for people without an active membership in any project, and `PermissionDenied`
    for others without the right.
    """
    account = request.user
    assert isinstance(account, Account)
    if may_create_projects(account):
        return account
    if not Membership.objects.roles_of(account):
        raise Http404
    raise PermissionDenied("Projects are created by leads and site admins. Ask one of them.")


def archived_lead(request: HttpRequest, slug: str) -> Membership:
    """Return the signed-in person's membership in an archived project, which a lead or a site admin
    may restore. Raises like `member_for`."""
    account = request.user
    assert isinstance(account, Account)
    project = Project.objects.filter(slug=slug).exclude(archived_at=None).first()
    if project is None:
        return member_for(request, slug, right="manage")
    member = Membership.objects.in_project(project).filter(account=account, active=True).first()
    if account.is_superuser and member is None:
        return _admin_seat(account, project)
    if member is None:
        raise Http404
    if not member.can("manage"):
        raise PermissionDenied("A lead of the project can restore it.")
    return member


def check_still_lead(lead: Membership) -> None:
    """Raise `PermissionDenied` if a lead lost their rights after the request began; call this in
    the transaction that uses them. Whoever takes them meanwhile waits until it ends, so that nobody
    who is removed adds or restores a lead by a request that was under way."""
    now = Membership.objects.locked().select_related("account").get(pk=lead.pk)
    if not (now.can("manage") or (now.account and now.account.is_superuser)):
        raise PermissionDenied("You are no lead of this project any more.")


def ensure_membership(member: Membership) -> Membership:
    """Return the membership as a stored row. The row is created when a site admin acts for the
    first time."""
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
    """Return the member's alias, with a number appended if another member already uses it."""
    named = Membership.objects.in_project(member.project).filter(alias__startswith=member.alias)
    taken = set(named.values_list("alias", flat=True))
    numbered = (f"{member.alias}-{number}" for number in count(2))
    return next(name for name in chain([member.alias], numbered) if name not in taken)
