"""The members of a project and their roles; every change is in the audit log.

Members are never removed. Suspended members keep their labels, drafts and alias, and get them back
when they are restored. A project always keeps at least one lead who can sign in.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db.models import QuerySet
from django.utils import timezone

from annotation.db import transactions
from annotation.errors import Refused
from annotation.labelling import assignment, pilot
from annotation.models import Account, Event, Invitation, Membership, Project, Role, Slot
from annotation.projects import access

MEMBER_EVENT = "member"
INVITATION_EVENT = "invitation"
LINK_EVENT = "sign-in link"
MOST_OF_GROUP = 40


def change_role(lead: Membership, member: Membership, role: str) -> None:
    """Change the member's role from now on; existing work stays as it is. Raises `Refused` if no
    lead would be left."""
    with lock_project(lead):
        _save_change(lead, member, role=role)
        _check_managed(lead.project)
    pilot.include(member, now=timezone.now())


def set_group(lead: Membership, member: Membership, group: str) -> None:
    """Put the member into a group, "" for none. Raises `Refused` as `clean_group` does."""
    name = clean_group(group)
    with lock_project(lead):
        _save_change(lead, member, group=name)


def clean_group(group: str) -> str:
    """Return the name of a group with single spaces. Raises `Refused` for a name that is too long
    or cannot be printed."""
    name = " ".join(group.split())
    if len(name) > MOST_OF_GROUP or not name.isprintable():
        raise Refused(f"The name of a group has up to {MOST_OF_GROUP} characters, on one line.")
    return name


def list_groups(project: Project) -> list[str]:
    """The names of all groups of the project's active members, sorted."""
    found = Membership.objects.in_project(project).filter(active=True).exclude(group="")
    return sorted(set(found.values_list("group", flat=True)))


def suspend(lead: Membership, member: Membership) -> None:
    """Suspend the member; items reserved for them return to the queue. Raises `Refused` if leads
    suspend themselves, or if no lead would be left."""
    if lead.pk == member.pk:
        raise Refused("You cannot suspend yourself. Transfer the project first.")
    with lock_project(lead):
        _save_change(lead, member, active=False)
        _check_managed(lead.project)


def restore(lead: Membership, member: Membership) -> None:
    """Restore a suspended member with their role and work."""
    with lock_project(lead):
        _save_change(lead, member, active=True)
    pilot.include(member, now=timezone.now())


def hand_over(lead: Membership, member: Membership, role: str) -> None:
    """Make the member a lead, and give the current lead `role`. Raises `Refused` if the member
    cannot sign in."""
    with lock_project(lead):
        _save_change(lead, member, role=Role.LEAD)
        _save_change(lead, lead, role=role)
        if not Membership.objects.in_project(lead.project).who_manage().filter(pk=member.pk):
            raise Refused(f"{member} cannot sign in to this project. Choose somebody who can.")


def record_admin_change(
    member: Membership,
    by: Account,
    *,
    new: dict[str, object],
    old: dict[str, object] | None = None,
) -> None:
    """Record in the audit log what a site admin without a membership did to the member."""
    Event.objects.create(
        kind=MEMBER_EVENT,
        subject=member.alias,
        project_id=member.project_id,
        account=by,
        data={"old": old or {}, "new": new},
    )


def revoke_invitations(member: Membership, *, now: datetime) -> None:
    """Revoke open invitations by a member who is no longer a lead: all if the member is suspended,
    otherwise those for leads. So nobody becomes lead again by their own link."""
    links = Invitation.objects.in_project(member.project).waiting().filter(made_by=member)
    links = links.filter(role=Role.LEAD) if member.active else links
    place = {"project_id": member.project_id, "member_id": member.pk}
    for link in links:
        new = {"invitation": "taken back", "role": link.role}
        Event.record(INVITATION_EVENT, link.alias, **place, old={"invitation": "open"}, new=new)
    links.end(now)


def list_changes(project: Project) -> QuerySet[Event]:
    """List all events about members, invitations and sign-in links, the latest first."""
    kinds = (MEMBER_EVENT, INVITATION_EVENT, LINK_EVENT)
    return project.events.filter(kind__in=kinds).select_related("member")


@contextmanager
def lock_project(lead: Membership) -> Iterator[None]:
    """A transaction with a lock, so that two leads neither take each other's role nor invite the
    same name at the same time. Raises `PermissionDenied` for somebody who is no lead any more."""
    with transactions.transact():
        Project.objects.select_for_update(no_key=True, of=("self",)).get(pk=lead.project_id)
        access.check_still_lead(lead)
        yield


def _save_change(lead: Membership, member: Membership, **new: object) -> None:
    """Store the values that differ and record an event with old and new values. Also revoke
    invitations and reservations that the member may no longer have."""
    member.refresh_from_db(fields=list(new))
    old = {name: getattr(member, name) for name in new}
    if old == new:
        return
    for name, value in new.items():
        setattr(member, name, value)
    member.save(update_fields=list(new))
    place = {"project_id": lead.project.pk, "member_id": lead.pk}
    Event.record(MEMBER_EVENT, member.alias, **place, old=old, new=new)
    if not member.is_lead:
        revoke_invitations(member, now=timezone.now())
    if not member.can("label") and Slot.objects.kept_for(member.pk).exists():
        assignment.release_reserved(lead, member)


def _check_managed(project: Project) -> None:
    if not Membership.objects.in_project(project).who_manage().exists():
        raise Refused("The project would have no lead. Make another member lead first.")
