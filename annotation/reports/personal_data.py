"""Personal data: export on request, and anonymisation of an account.

A person's work stays, under the person's alias in each project. Names and addresses are stored only
in the account, so clearing that one row makes the person unrecognisable.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.contrib.admin.models import LogEntry
from django.contrib.auth import SESSION_KEY
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.db.models import Q

from annotation.accounts.sessions import SessionStore
from annotation.db import transactions
from annotation.errors import Refused
from annotation.labelling import assignment, blind_names
from annotation.models import (
    WORK_LIKE_STAGES,
    Account,
    ApiToken,
    Comment,
    Draft,
    Event,
    Invitation,
    Item,
    Label,
    Mark,
    Membership,
    Project,
    Revision,
    Slot,
)
from annotation.projects import audit, members

_OF_ACCOUNT = ("username", "first_name", "last_name", "email", "date_joined", "last_login", "keys")
_OF_TOKEN = ("name", "prefix", "created_at", "last_used_at", "revoked_at")
_OF_SESSION = ("ip", "user_agent", "created_at", "last_seen_at")
_OF_LABEL = (
    "stage", "choice", "answers", "comment", "seconds", "current", "created_at", "first_shown",
)  # fmt: skip
_OF_COMMENT = ("text", "created_at", "withdrawn_at")
_OF_MARK = ("kind", "note", "created_at", "ended_at")
_OF_ROUND = ("number", "size", "right", "answered", "feedback", "started_at", "finished_at")


def export_data(account: Account) -> dict[str, Any]:
    """Return all data about a person as plain values, without secrets and without data about
    others.

    Items have the names that the person's own pages show; control items cannot be told from other
    items.
    """
    places = Membership.objects.filter(account=account).select_related("project")
    return {
        "account": {name: getattr(account, name) for name in _OF_ACCOUNT},
        "addresses": list(
            EmailAddress.objects.filter(user=account).values("email", "verified", "primary")
        ),
        "two_step_sign_in": Authenticator.objects.filter(user=account).exists(),
        "sign_in_by_another_service": list(
            SocialAccount.objects.filter(user=account).values("date_joined", "last_login")
        ),
        "tokens": list(account.tokens.values(*_OF_TOKEN)),
        "sessions": list(UserSession.objects.filter(user=account).values(*_OF_SESSION)),
        "done_to_the_site": _events(Event.objects.filter(account=account)),
        "projects": [_membership_data(member) for member in places.order_by("project__slug")],
    }


def check_can_anonymise(account: Account) -> None:
    """Raise Refused if a project would be left without a lead, or the site without an admin."""
    for member in Membership.objects.filter(account=account).select_related("project"):
        leads = Membership.objects.in_project(member.project).who_manage()
        if leads.filter(pk=member.pk).exists() and leads.count() == 1:
            raise Refused(f"{member.project} would have no lead. Transfer the project first.")
    admins = Account.objects.filter(is_superuser=True, is_active=True)
    if account.is_superuser and not admins.exclude(pk=account.pk).exists():
        raise Refused("The site would have no site admin. Make somebody else a site admin first.")


def may_anonymise(lead: Membership, member: Membership) -> bool:
    """True if the lead may anonymise the member. Site admins may; leads may if they are leads of
    all the person's projects, since these projects share one account."""
    if lead.account and lead.account.is_superuser:
        return not _is_same_person(lead, member)
    if member.account is None or member.account.is_superuser or _is_same_person(lead, member):
        return False
    of_lead = Membership.objects.who_manage().filter(account=lead.account).values("project")
    elsewhere = Membership.objects.filter(account=member.account).exclude(project__in=of_lead)
    return not elsewhere.exists()


def anonymise(account: Account, by: Account | None, *, now: datetime) -> None:
    """Clear and close the account, and end its sessions and keys. The person's work stays.

    This cannot be undone. Raises Refused as `check_can_anonymise` does.
    """
    with transactions.transact():
        # Whoever takes a lead's role waits for these too, so that no project loses all its leads at
        # the same moment.
        places = Project.objects.filter(members__account=account).order_by("pk")
        list(places.select_for_update(no_key=True, of=("self",)).values_list("pk"))
        account = Account.objects.select_for_update().get(pk=account.pk)
        check_can_anonymise(account)
        words = {word for word in (account.username, account.email) if word}
        _delete_mentions(account, now)
        _delete_credentials(account, words)
        _clear_account(account)
        for member in Membership.objects.filter(account=account, active=True):
            _suspend(member, by or account, now)
        audit.record_account_change(account, by, new={"account": "anonymised"})


def _clear_account(account: Account) -> None:
    account.username, account.email = f"nobody-{account.pk}", ""
    account.first_name = account.last_name = ""
    account.is_active = account.is_staff = account.is_superuser = False
    account.keys, account.last_login = {}, None
    account.set_unusable_password()
    account.save()
    account.groups.clear()
    account.user_permissions.clear()


def _delete_credentials(account: Account, words: set[str]) -> None:
    """Delete sessions, including unfinished sign-ins, keys, codes and addresses."""
    for session in Session.objects.iterator():
        said = SessionStore().decode(session.session_data)
        # Other signed-in users keep their session, even if it contains the name as part of a word.
        whose = said.get(SESSION_KEY)
        if whose == str(account.pk) or (whose is None and any(w in str(said) for w in words)):
            session.delete()
    UserSession.objects.filter(user=account).delete()
    tokens = [str(pk) for pk in account.tokens.values_list("pk", flat=True)]
    _rename_log_entries(ApiToken, tokens, "a deleted key")
    account.tokens.all().delete()
    Authenticator.objects.filter(user=account).delete()
    EmailAddress.objects.filter(user=account).delete()
    SocialAccount.objects.filter(user=account).delete()


def _delete_mentions(account: Account, now: datetime) -> None:
    """Remove other mentions of the person, in open invitations and in the admin log."""
    if account.email:
        Invitation.objects.filter(email__iexact=account.email).end(now)
    _rename_log_entries(Account, [str(account.pk)], f"nobody-{account.pk}")
    for model in (UserSession, EmailAddress, Authenticator):
        mine = model.objects.filter(user=account).values_list("pk", flat=True)
        _rename_log_entries(model, [str(pk) for pk in mine], "something deleted")


def _rename_log_entries(model: type[Any], ids: Iterable[str], words: str) -> None:
    """Replace the names of these rows in the admin log, which stores their earlier names."""
    of_model = ContentType.objects.get_for_model(model)
    entries = LogEntry.objects.filter(content_type=of_model, object_id__in=list(ids))
    entries.update(object_repr=words)


def _suspend(member: Membership, by: Account, now: datetime) -> None:
    member.active = False
    member.save(update_fields=["active"])
    members.revoke_invitations(member, now=now)
    members.record_admin_change(member, by, old={"active": True}, new={"active": False})
    if Slot.objects.kept_for(member.pk).exists():
        assignment.release_reserved(member, member)


def _membership_data(member: Membership) -> dict[str, Any]:
    # Also those that were excluded since: what was said of them stays.
    items = Item.objects.filter(project=member.project).filter(
        Q(labels__member=member)
        | Q(comments__member=member)
        | Q(drafts__member=member)
        | Q(marks__member=member)
    )
    called = blind_names.display_names(member, items.distinct())
    labels = Label.objects.filter(member=member).order_by("created_at", "pk")
    comments = Comment.objects.filter(member=member).order_by("created_at", "pk")
    marks = Mark.objects.filter(member=member, kind__in=["skip", "flag"])
    marks = marks.order_by("created_at", "pk")
    drafts = Draft.objects.filter(member=member).order_by("updated_at", "pk")
    written = Revision.objects.filter(author=member).order_by("created_at", "pk")
    said = ("item__key", "number", "texts", "note", "created_at")
    return {
        "project": member.project.slug,
        "alias": member.alias,
        "role": member.role,
        "active": member.active,
        "since": member.created_at,
        "labels": [
            _hide_control_stage(one)
            for one in _name_items(labels.values("item_id", *_OF_LABEL), called)
        ],
        "corrections": list(written.values(*said)),
        "comments": _name_items(comments.values("item_id", *_OF_COMMENT), called),
        "marks": _name_items(marks.values("item_id", *_OF_MARK), called),
        "drafts": _name_items(drafts.values("item_id", "data", "updated_at"), called),
        "practice": list(member.practice_rounds.order_by("number").values(*_OF_ROUND)),
        "events": _events(Event.objects.filter(member=member)),
    }


def _name_items(rows: Iterable[Any], called: dict[int, str]) -> list[dict[str, Any]]:
    """Replace the item ids in rows by the names that the person's pages show."""
    return [
        {"item": called[row["item_id"]], **{k: v for k, v in row.items() if k != "item_id"}}
        for row in rows
    ]


def _hide_control_stage(label: dict[str, Any]) -> dict[str, Any]:
    stage = "label" if label["stage"] in WORK_LIKE_STAGES else label["stage"]
    return {**label, "stage": stage}


def _events(events: Any) -> list[dict[str, Any]]:
    """Return only kind and time of events; the person sees the permitted details in the other
    parts."""
    return list(events.order_by("created_at", "pk").values("kind", "created_at"))


def _is_same_person(lead: Membership, member: Membership) -> bool:
    return lead.account_id == member.account_id
