"""Projects with their members, invitations, guidelines, task type versions and events."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from django.db import connection, models
from django.db.models import Count, F, Max, OuterRef, Q, Subquery
from django.utils import timezone

from annotation.db.sql import insert_rows

if TYPE_CHECKING:
    from annotation.models import Account


class ProjectQuerySet(models.QuerySet["Project"]):
    def visible_to(self, account: Account) -> ProjectQuerySet:
        """Return the unarchived projects in which the account is an active member; all unarchived
        ones for a superuser."""
        live = self.filter(archived_at__isnull=True)
        if account.is_superuser:
            return live
        return live.filter(members__account=account, members__active=True)

    def led_by(self, account: Account) -> ProjectQuerySet:
        """Return the projects in which the account has the rights of a lead."""

        live = self.filter(archived_at__isnull=True)
        if account.is_superuser:
            return live
        lead = {"members__active": True, "members__role__in": RIGHTS["manage"]}
        return live.filter(members__account=account, **lead)

    def archived_of(self, account: Account) -> ProjectQuerySet:
        """Return the archived projects that the account may restore, the last first."""
        archived = self.exclude(archived_at=None)
        if not account.is_superuser:
            lead = {"members__active": True, "members__role__in": RIGHTS["manage"]}
            archived = archived.filter(members__account=account, **lead)
        return archived.order_by("-archived_at", "pk")

    def with_role_of(self, account: Account) -> ProjectQuerySet:
        """Annotate each project with the account's role as `my_role`; null for a site admin without
        a membership."""

        mine = Membership.objects.filter(project=OuterRef("pk"), account=account, active=True)
        return self.annotate(my_role=Subquery(mine.values("role")[:1])).select_related("task_type")


class MembershipQuerySet(models.QuerySet["Membership"]):
    def seats_of(self, account: Account, slug: str) -> MembershipQuerySet:
        """Find the account's active membership in a project that is not archived, with its task
        type."""
        return self._seats(slug).filter(account=account).select_related("project__task_type")

    def seats_by_key(self, digest: str, slug: str, used_since: str, now: str) -> MembershipQuerySet:
        """Find the active membership for the owner of a valid API token that was last used after
        `used_since`. Includes the account, and the token's scopes as `key_scopes`."""
        unexpired = Q(account__tokens__expires_at=None) | Q(account__tokens__expires_at__gt=now)
        return (
            self._seats(slug)
            .filter(
                unexpired,
                account__tokens__digest=digest,
                account__tokens__revoked_at=None,
                account__tokens__last_used_at__gt=used_since,
                account__is_active=True,
            )
            .annotate(key_scopes=F("account__tokens__scopes"))
            .select_related("account", "project__task_type")
        )

    def suspended_of(self, account: Account) -> MembershipQuerySet:
        """Find the account's suspended memberships in projects that are not archived, by project
        name."""
        places = self.filter(account=account, active=False, project__archived_at=None)
        return places.select_related("project").order_by("project__name", "pk")

    def roles_of(self, account: Account) -> set[str]:
        """Return the account's active roles in all projects that are not archived."""
        seats = self.filter(account=account, active=True, project__archived_at=None)
        return set(seats.order_by().values_list("role", flat=True))

    def _seats(self, slug: str) -> MembershipQuerySet:
        """Leave out the texts of task types, which every request would otherwise read: versions are
        cached by their digest (`tasktypes.load_version`)."""
        return (
            self.filter(active=True, project__slug=slug, project__archived_at=None)
            .defer("project__task_type__definition", "project__task_type__source")
            .order_by()
        )

    def for_progress(self) -> MembershipQuerySet:
        """Annotate each member with `given`, the number of current labels of items that are in use
        and have no known answer, with `counted`, the number of those that count, and with
        `last_label_at`; sort by alias. (The column `labelled` is the number of all current
        labels.)"""
        labels = Q(labels__stage="label", labels__current=True)
        given = labels & Q(labels__item__purpose="test", labels__item__deleted_at=None)
        return self.annotate(
            given=Count("labels", filter=given),
            counted=Count("labels", filter=given & Q(labels__counted=True)),
            last_label_at=Max("labels__created_at", filter=labels),
        ).order_by("alias")

    def in_project(self, project: Project) -> MembershipQuerySet:
        """Return the project's members, including inactive ones."""
        return self.filter(project=project)

    def called(self, aliases: Iterable[str]) -> MembershipQuerySet:
        """Find the members with one of these aliases; aliases are unique only within a project."""
        return self.filter(alias__in=list(aliases))

    def locked(self) -> MembershipQuerySet:
        """Lock the rows for this transaction; waits until other transactions release them."""
        return self.select_for_update(no_key=True, of=("self",))

    def with_role_in(self, roles: Iterable[str]) -> MembershipQuerySet:
        """Find the active members who have one of the roles."""
        return self.filter(active=True, role__in=list(roles))

    def who_manage(self) -> MembershipQuerySet:
        """Find the active members with the right "manage" whose accounts can sign in."""

        return self.with_role_in(RIGHTS["manage"]).filter(account__is_active=True)

    def who_label(self) -> MembershipQuerySet:
        """Find the active members whose role can label, sorted by alias."""

        return (
            self.filter(role__in=RIGHTS["label"], active=True)
            .select_related("project__task_type")
            .order_by("alias")
        )

    def named(self, alias: str) -> Membership | None:
        """Find the member with this alias, with project and task type; None if there is none.
        Filter by project first."""
        if "\0" in alias:  # PostgreSQL refuses to search for NUL
            return None
        return self.filter(alias=alias).select_related("project__task_type").first()


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def in_project(self, project: Project) -> InvitationQuerySet:
        """Return the project's invitations, including used and revoked ones."""
        return self.filter(project=project)

    def named(self, alias: str) -> InvitationQuerySet:
        """Find the invitations for this alias, whatever their state."""
        return self.filter(alias=alias)

    def waiting(self) -> InvitationQuerySet:
        """Find the invitations that are neither used nor revoked; they may have expired."""
        return self.filter(ended_at=None)

    def usable(self, now: datetime) -> InvitationQuerySet:
        """Find the waiting invitations that have not expired, to projects that are not archived, by
        people who can still sign in: nobody comes back by their own link."""
        by = {"made_by__account__is_active": True}
        return self.waiting().filter(expires_at__gt=now, project__archived_at=None, **by)

    def addressed(self, email: str) -> InvitationQuerySet:
        """Find the invitations sent to this address, ignoring case, with project and inviter."""
        return self.filter(email__iexact=email).select_related("project", "made_by")

    def opened_by(self, digest: str) -> Invitation | None:
        """Find the invitation whose link has the key with this digest; None if there is none. It
        may be used, revoked or expired."""
        return self.filter(digest=digest).select_related("project", "made_by").first()

    def end(self, now: datetime) -> int:
        """End the invitations and erase their addresses; return the number of invitations."""
        return self.update(ended_at=now, email="")


class EventQuerySet(models.QuerySet["Event"]):
    def in_project(self, project: Project | None) -> EventQuerySet:
        """Return the events of a project; if it is None, the events that belong to no project."""
        return self.filter(project=project)

    def first_of(self, size: int) -> list[Event]:
        """Return the first `size` events, with their members and accounts."""
        return list(self.select_related("member", "account")[:size])

    def on_days(self, first: date | None, last: date | None) -> EventQuerySet:
        """Find the events from `first` to `last`. Both are days in UTC and included; None means no
        limit."""
        found = self.filter(created_at__gte=_day_start(first)) if first else self
        if last is None or last == date.max:
            return found
        return found.filter(created_at__lt=_day_start(last) + timedelta(days=1))

    def done_by(self, name: str) -> EventQuerySet:
        """Find the events by the member with this alias, or by the account with this user name."""
        return self.filter(Q(member__alias=name) | Q(account__username=name))

    def about(self, words: str) -> EventQuerySet:
        """Find the events whose subject contains the words, ignoring case."""
        return self.filter(subject__icontains=words)

    def before(self, at: datetime, pk: int) -> EventQuerySet:
        """Find the events that follow this one in a list with the latest first."""
        # The first condition uses the index; the second separates events of the same time.
        return self.filter(created_at__lte=at).filter(Q(created_at__lt=at) | Q(pk__lt=pk))

    def kinds(self, project: Project | None) -> list[str]:
        """Return the kinds that occur, sorted. Takes one index lookup per kind, however many events
        there are."""
        of, words = ("project_id = %s", [project.pk]) if project else ("project_id IS NULL", [])
        table = self.model._meta.db_table
        least = f"SELECT MIN(kind) FROM {table} WHERE {of}"
        with connection.cursor() as cursor:
            cursor.execute(
                f"WITH RECURSIVE k(kind) AS ({least} UNION ALL SELECT ({least} AND kind > k.kind)"
                " FROM k WHERE k.kind IS NOT NULL) SELECT kind FROM k WHERE kind IS NOT NULL",
                words * 2,
            )
            return [kind for (kind,) in cursor.fetchall()]


def _day_start(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


class Event(models.Model):
    """An entry of the audit log: who changed what, and when. Rows are never changed or deleted;
    database triggers enforce this.

    `member` is the person who acted in a project. `account` is the person who acted without a
    membership, or outside projects. Both are null for commands and workers. `data` has the changed
    values as `old` and `new`, each an object of names and values; its other entries are details. It
    never contains a name or an address of a person.
    """

    project = models.ForeignKey("Project", models.PROTECT, null=True, related_name="events")
    member = models.ForeignKey("Membership", models.PROTECT, null=True, related_name="events")
    account = models.ForeignKey("Account", models.PROTECT, null=True, related_name="+")
    kind = models.CharField(max_length=40)
    subject = models.CharField(max_length=200)
    data = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)

    objects = EventQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["project", "-created_at"], name="event_of_project"),
            models.Index(fields=["project", "kind", "-created_at"], name="event_of_kind"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"

    @classmethod
    def record(
        cls, kind: str, subject: str, *, project_id: int, member_id: int | None, **data: Any
    ) -> None:
        """Record an event of a project; `member_id` is None for commands and workers. Everything in
        `data` is stored, so it must not contain names of people."""
        event = cls(
            kind=kind, subject=subject, project_id=project_id, member_id=member_id, data=data
        )
        insert_rows(event)

    @classmethod
    def of_site(cls, kind: str, subject: str, account_id: int | None, **data: Any) -> None:
        """Record an event that does not belong to a project."""
        insert_rows(cls(kind=kind, subject=subject, account_id=account_id, data=data))

    @property
    def old(self) -> dict[str, Any]:
        """The values before the change; {} if the event has none."""
        return _object(self.data, "old")

    @property
    def new(self) -> dict[str, Any]:
        """The values after the change; {} if the event has none, or if its `new` is a number."""
        return _object(self.data, "new")

    @property
    def more(self) -> dict[str, Any]:
        """The details of the event other than `old` and `new`."""
        changed = {"old": self.old, "new": self.new}
        return {name: value for name, value in self.data.items() if not changed.get(name)}


def _object(data: dict[str, Any], name: str) -> dict[str, Any]:
    # For an import, `new` is a number: how many rows were new.
    found = data.get(name)
    return found if isinstance(found, dict) else {}


class TaskTypeVersion(models.Model):
    """A version of a task type. It is kept so that every label can refer to the questions that were
    asked."""

    slug = models.SlugField(max_length=80)
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    definition = models.JSONField()
    source = models.TextField(blank=True, help_text="The TOML source.")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["slug", "number"], name="task_type_number"),
            models.UniqueConstraint(fields=["slug", "digest"], name="task_type_digest"),
        ]

    def __str__(self) -> str:
        return f"{self.slug} v{self.number}"

    @property
    def file_slug(self) -> str:
        """The slug of the shipped file from which the version was adapted; see
        `versions.version_slug`."""
        return self.slug.split("--")[0]


class TaxonomyVersion(models.Model):
    """A version of a list of categories. It is kept so that items, runs and figures can refer to
    the categories under which they were made. Rows never change; `digest` names the content."""

    slug = models.SlugField(max_length=80)
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64, unique=True)
    definition = models.JSONField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["slug", "number"], name="taxonomy_number")]

    def __str__(self) -> str:
        return f"{self.slug} v{self.number}"


class TextFormat(models.TextChoices):
    FOUND = "found", "as each item needs: plain, Markdown or formulas"
    PLAIN = "plain", "plain text"
    MARKDOWN = "markdown", "Markdown"
    MATH = "math", "Markdown with LaTeX"


class Project(models.Model):
    """A set of items to label, with its members and settings."""

    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    task_type = models.ForeignKey(TaskTypeVersion, models.PROTECT, related_name="projects")
    # By its digest, so that pages know the categories without reading the row.
    taxonomy = models.ForeignKey(
        TaxonomyVersion, models.PROTECT, to_field="digest", related_name="projects"
    )
    overlap = models.PositiveSmallIntegerField(default=1, help_text="Annotators per item.")
    order = models.CharField(
        max_length=10,
        default="file",
        db_default="file",
        help_text="The order in which annotators get the items.",
    )
    order_field = models.CharField(
        max_length=80,
        blank=True,
        default="",
        db_default="",
        help_text="The item field that sorts the items.",
    )
    order_seed = models.PositiveIntegerField(
        default=0, db_default=0, help_text="The seed of the random order."
    )
    begun_first = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Items that somebody has labelled and that need more labels come first.",
    )
    pilot: Any = models.JSONField(
        default=list,
        blank=True,
        db_default=models.Value([], models.JSONField()),
        help_text="The ids of the items of the pilot that is running; empty without a pilot.",
    )
    hold_minutes = models.PositiveSmallIntegerField(
        default=30, help_text="Minutes that an opened item stays reserved."
    )
    share_percent = models.PositiveSmallIntegerField(
        default=0, help_text="Double-annotated sample: random share of the items, in percent."
    )
    share_overlap = models.PositiveSmallIntegerField(
        default=2, help_text="Annotators per item of the double-annotated sample."
    )
    disputed_overlap = models.PositiveSmallIntegerField(
        default=0, help_text="Labels to collect if annotators disagree; 0: adjudicate at once."
    )
    rules = models.JSONField(
        default=dict, blank=True, help_text="Aggregation of the labels, by field."
    )
    verify = models.BooleanField(
        default=False,
        help_text="Verification: a second person confirms or contests the first label.",
    )
    verify_blind = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Who verifies answers without seeing the label; an equal answer confirms it.",
    )
    blind_first = models.BooleanField(
        default=False, help_text="Items are first shown without diff, claim and rationale."
    )
    claim_check = models.BooleanField(
        default=False, help_text="Ask for each change whether the claim explains it."
    )
    expected_effect = models.BooleanField(
        default=False, help_text="Ask how many points a good evaluator should take off."
    )
    practice_items = models.PositiveSmallIntegerField(
        default=0, help_text="Items of a qualification round; 0: no qualification."
    )
    practice_pass = models.PositiveSmallIntegerField(
        default=4, help_text="Pass mark: right answers needed to pass a round."
    )
    probe_every = models.PositiveSmallIntegerField(
        default=0, help_text="About one item in this many is a control item; 0: none."
    )
    text_format = models.CharField(
        max_length=10, choices=TextFormat.choices, default=TextFormat.FOUND
    )
    guidelines_field = models.CharField(
        max_length=80, blank=True, help_text="The item field that selects the guidelines."
    )
    sealed = models.BooleanField(
        default=False,
        db_default=False,
        help_text="The texts were imported encrypted and can only be exported encrypted.",
    )
    created_at = models.DateTimeField(default=timezone.now)
    archived_at = models.DateTimeField(null=True, blank=True)

    objects = ProjectQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=models.Q(overlap__gte=1), name="overlap_positive"),
            models.CheckConstraint(condition=models.Q(hold_minutes__gte=1), name="hold_positive"),
            models.CheckConstraint(
                condition=models.Q(share_percent__lte=100), name="share_percent"
            ),
            models.CheckConstraint(
                condition=models.Q(practice_items=0)
                | models.Q(practice_pass__lte=models.F("practice_items")),
                name="practice_can_be_passed",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class GuidelinesVersion(models.Model):
    """A version of the guidelines. Each label records the version that was current."""

    project = models.ForeignKey(Project, models.PROTECT, related_name="guidelines")
    number = models.PositiveIntegerField()
    text = models.TextField(help_text="Markdown, for all items.")
    variants = models.JSONField(
        default=dict,
        blank=True,
        help_text="Markdown for each value of the project's guidelines field.",
    )
    note = models.TextField(blank=True, help_text="What changed, in one sentence.")
    author = models.ForeignKey("Membership", models.PROTECT, null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["project_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="guidelines_number")
        ]

    def __str__(self) -> str:
        return f"{self.project.slug} guidelines {self.number}"


class Role(models.TextChoices):
    ANNOTATOR = "annotator"
    ADJUDICATOR = "adjudicator"
    RESEARCHER = "researcher"
    LEAD = "lead"


# What each right allows:
#   enter    see the project's front page and the guidelines
#   label    work on the queue
#   items    see items with everybody's labels
#   adjudicate  decide items with a disagreement, or that were sent to an expert
#   results  see runs, replies and results
#   run      start and control runs (they cost money)
#   manage   settings, members, import, export
RIGHTS: dict[str, frozenset[str]] = {
    "enter": frozenset(Role.values),
    "label": frozenset({Role.ANNOTATOR, Role.ADJUDICATOR, Role.LEAD}),
    "items": frozenset({Role.ADJUDICATOR, Role.RESEARCHER, Role.LEAD}),
    "adjudicate": frozenset({Role.ADJUDICATOR, Role.LEAD}),
    "results": frozenset({Role.RESEARCHER, Role.LEAD}),
    "run": frozenset({Role.RESEARCHER, Role.LEAD}),
    "manage": frozenset({Role.LEAD}),
}


class Membership(models.Model):
    """A person's membership in a project. Labels and slots refer to the membership, never to the
    account."""

    project = models.ForeignKey("Project", models.PROTECT, related_name="members")
    account = models.ForeignKey(
        "Account", models.SET_NULL, null=True, blank=True, related_name="memberships"
    )
    alias = models.CharField(max_length=80, help_text="The name shown on screens and in exports.")
    role = models.CharField(max_length=20, choices=Role.choices)
    group = models.CharField(
        max_length=40,
        blank=True,
        default="",
        db_default="",
        help_text="A name for people who belong together, such as a course.",
    )
    active = models.BooleanField(default=True)
    labelled = models.PositiveIntegerField(
        default=0,
        help_text="Number of current labels at stage label; updated when the row is locked anyway.",
    )
    practised_at = models.DateTimeField(
        null=True, blank=True, help_text="When the qualification was passed, or waived by a lead."
    )
    guidelines_seen = models.PositiveIntegerField(
        default=0, help_text="Number of the last guidelines version that the member has read."
    )
    mentions_seen_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    objects = MembershipQuerySet.as_manager()

    class Meta:
        ordering = ["project_id", "alias"]
        constraints = [
            models.UniqueConstraint(fields=["project", "alias"], name="member_alias"),
            models.UniqueConstraint(fields=["project", "account"], name="member_account"),
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="member_role_known"
            ),
        ]

    def __str__(self) -> str:
        return self.alias

    def can(self, right: str) -> bool:
        """True if this member is active and has the right, one of `RIGHTS`. An unknown right raises
        `KeyError`."""
        return self.active and self.role in RIGHTS[right]

    @property
    def can_label(self) -> bool:
        """True if this member may label; False for the unsaved membership of a site admin."""
        return self.pk is not None and self.can("label")

    @property
    def can_adjudicate(self) -> bool:
        return self.can("adjudicate")

    @property
    def can_see_items(self) -> bool:
        return self.can("items")

    @property
    def can_see_results(self) -> bool:
        return self.can("results")

    @property
    def can_run(self) -> bool:
        return self.can("run")

    @property
    def is_lead(self) -> bool:
        return self.can("manage")

    @property
    def is_in_pilot(self) -> bool:
        """True if this member labels only the items of a pilot."""
        return bool(self.project.pilot) and self.role == Role.ANNOTATOR


class Invitation(models.Model):
    """A one-time link that makes the person who accepts it a member. Only the digest of its key is
    stored.

    The address is erased once the invitation is used or revoked, since only accounts may keep names
    and addresses.
    """

    project = models.ForeignKey("Project", models.PROTECT, related_name="invitations")
    alias = models.CharField(max_length=80)
    role = models.CharField(max_length=20, choices=Role.choices)
    group = models.CharField(max_length=40, blank=True, default="", db_default="")
    email = models.EmailField(blank=True)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    made_by = models.ForeignKey(Membership, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was used or withdrawn."
    )
    member = models.ForeignKey(
        Membership, models.PROTECT, null=True, blank=True, related_name="+",
        help_text="The member who joined with it.",
    )  # fmt: skip

    objects = InvitationQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "alias"], condition=Q(ended_at=None), name="invitation_alias"
            ),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="invitation_role_known"),
        ]

    def __str__(self) -> str:
        return f"invitation of {self.alias}"

    @staticmethod
    def digest_of(key: str) -> str:
        """Return the SHA-256 of a key in hexadecimal; only this digest is stored."""
        return hashlib.sha256(key.encode()).hexdigest()

    @classmethod
    def issue(
        cls,
        lead: Membership,
        alias: str,
        role: str,
        email: str,
        days: int,
        now: datetime,
        group: str = "",
    ) -> tuple[Invitation, str]:
        """Create an invitation. Return it and its key; the key cannot be shown again."""
        key = secrets.token_urlsafe(32)
        made = cls.objects.create(
            project=lead.project,
            alias=alias,
            role=role,
            group=group,
            email=email,
            digest=cls.digest_of(key),
            made_by=lead,
            created_at=now,
            expires_at=now + timedelta(days=days),
        )
        return made, key
