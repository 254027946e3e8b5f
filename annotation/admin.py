"""The Django admin of all tables, for site admins; tables that services write are read-only."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.utils import timezone

from annotation.accounts.admin import (
    AccountAdmin,
    ChangesOnlyAdmin,
    request_account,
    unregister_models,
)
from annotation.models import (
    Account,
    ApiToken,
    Comment,
    Cursor,
    Diff,
    Event,
    GuidelinesVersion,
    Invitation,
    Item,
    Job,
    Label,
    Mark,
    Membership,
    PracticeRound,
    Project,
    Resolution,
    Revision,
    Slot,
    TaskTypeVersion,
)
from annotation.projects import members


class ReadOnlyAdmin(admin.ModelAdmin):
    """Rows that only services write."""

    list_per_page = 50
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


admin.site.register(Account, AccountAdmin)
unregister_models()


def _audit_value(value: Any) -> Any:
    """A value as the audit log stores it: numbers, text and None as they are, others as text."""
    return value if isinstance(value, (int, str)) or value is None else str(value)


class MembershipInline(admin.TabularInline):
    """The members of a project. The admin can add members; the members page changes them."""

    model = Membership
    raw_id_fields = ("account",)
    fields = ("account", "alias", "role", "active")
    extra = 1
    can_delete = False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(Project)
class ProjectAdmin(ChangesOnlyAdmin):
    list_display = ("slug", "name", "task_type", "overlap", "hold_minutes", "archived_at")
    search_fields = ("slug", "name")
    prepopulated_fields = {"slug": ("name",)}
    inlines = (MembershipInline,)
    # The other settings are changed on the settings page, which also applies the changes to the
    # items.
    fields = (
        "slug", "name", "description", "task_type", "overlap", "hold_minutes", "sealed",
        "archived_at",
    )  # fmt: skip

    def get_readonly_fields(self, request: HttpRequest, obj: Project | None = None) -> Any:
        # Items and labels depend on these; the admin does not apply a change to them. By the slug,
        # samples of items are drawn, labels that are imported again are known, and audits and
        # former versions of task type and categories are found.
        return ("slug", "task_type", "overlap") if obj and obj.items.exists() else ()

    def get_prepopulated_fields(self, request: HttpRequest, obj: Project | None = None) -> Any:
        stays = "slug" in self.get_readonly_fields(request, obj)
        return {} if stays else self.prepopulated_fields

    def save_model(self, request: HttpRequest, obj: Project, form: Any, change: bool) -> None:
        """Save the project and record an event, with the slug of a new project, or with the old and
        new values of a changed project. Without a change, no event is recorded."""
        super().save_model(request, obj, form, change)
        kind, names = ("settings", form.changed_data) if change else ("project", ["slug"])
        old = {name: _audit_value(form.initial.get(name)) for name in names if change}
        new = {name: _audit_value(getattr(obj, name)) for name in names}
        if new:
            Event.objects.create(
                kind=kind,
                subject=obj.slug,
                project=obj,
                account=request_account(request),
                data={"old": old, "new": new},
            )

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """Save the members in the form, and record an event for each new member."""
        super().save_formset(request, form, formset, change)
        for member in formset.new_objects:
            members.record_admin_change(
                member, request_account(request), new={"role": member.role, "active": member.active}
            )

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class MembershipForm(forms.ModelForm):
    def clean(self) -> dict[str, Any]:
        """Refuse the alias or account of another member. Django looks for one only if the project
        is in the form, as it is for a new member."""
        given: dict[str, Any] = super().clean() or {}
        if self.instance.pk:
            others = Membership.objects.filter(project=self.instance.project_id)
            for name in ("alias", "account"):
                same = others.filter(**{name: given.get(name)}).exclude(pk=self.instance.pk)
                if given.get(name) and same.exists():
                    self.add_error(name, f"Another member of the project has this {name}.")
        return given


@admin.register(Membership)
class MembershipAdmin(ChangesOnlyAdmin):
    form = MembershipForm
    list_display = ("alias", "project", "account", "role", "active", "created_at")
    list_filter = ("role", "active", "project")
    list_select_related = ("project", "account")
    search_fields = ("alias", "account__username")
    raw_id_fields = ("account",)

    def get_readonly_fields(self, request: HttpRequest, obj: Membership | None = None) -> Any:
        # The slots, labels and events of a member belong to the same project.
        own = ("labelled", "practised_at", "guidelines_seen", "mentions_seen_at", "created_at")
        # A change of role and a suspension affect more than this row: use the project's members
        # page.
        return ("project", "role", "active", *own) if obj else own

    def save_model(self, request: HttpRequest, obj: Membership, form: Any, change: bool) -> None:
        """Save the member, and record an event for a new member and for a change of alias or
        account."""
        super().save_model(request, obj, form, change)
        by = request_account(request)
        if not change:
            members.record_admin_change(obj, by, new={"role": obj.role, "active": obj.active})
        elif changed := [name for name in ("alias", "account") if name in form.changed_data]:
            old: dict[str, object] = {name: str(form.initial[name]) for name in changed}
            new = {"alias": obj.alias, "account": str(obj.account_id)}
            members.record_admin_change(obj, by, old=old, new={name: new[name] for name in changed})

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyAdmin):
    list_display = ("alias", "project", "role", "made_by", "expires_at", "ended_at")
    list_filter = ("project",)
    list_select_related = ("project", "made_by")
    search_fields = ("alias",)


@admin.register(GuidelinesVersion)
class GuidelinesVersionAdmin(ReadOnlyAdmin):
    """Versions are published on the project's guidelines page, which records an event."""

    list_display = ("project", "number", "author", "created_at")
    list_filter = ("project",)
    list_select_related = ("project", "author")
    raw_id_fields = ("author",)


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    list_display = ("name", "prefix", "account", "scopes", "created_at", "expires_at", "revoked_at")
    list_select_related = ("account",)
    search_fields = ("name", "prefix", "account__username")
    actions = ("revoke",)

    @admin.action(description="Revoke the chosen tokens", permissions=["view"])
    def revoke(self, request: HttpRequest, tokens: Any) -> None:
        """Revoke the chosen tokens that are not revoked yet."""
        for token in tokens.filter(revoked_at=None):
            token.revoke(timezone.now(), request_account(request))


@admin.register(Comment)
class CommentAdmin(ReadOnlyAdmin):
    list_display = ("item", "member", "created_at", "withdrawn_at")
    list_select_related = ("item", "member")
    search_fields = ("item__key", "member__alias")
    raw_id_fields = ("item", "member", "mentions")


@admin.register(Mark)
class MarkAdmin(ReadOnlyAdmin):
    list_display = ("item", "member", "kind", "created_at", "ended_at")
    list_filter = ("kind",)
    list_select_related = ("item", "member")
    search_fields = ("item__key", "member__alias")
    raw_id_fields = ("item", "member")


@admin.register(PracticeRound)
class PracticeRoundAdmin(ReadOnlyAdmin):
    list_display = ("member", "number", "right", "answered", "size", "finished_at")
    list_select_related = ("member",)
    search_fields = ("member__alias",)


@admin.register(TaskTypeVersion)
class TaskTypeVersionAdmin(ReadOnlyAdmin):
    list_display = ("slug", "number", "digest", "created_at")
    search_fields = ("slug",)


@admin.register(Item)
class ItemAdmin(ReadOnlyAdmin):
    list_display = ("key", "project", "category", "ability", "revision_number", "deleted_at")
    list_filter = ("project", "ability", "category")
    list_select_related = ("project",)
    search_fields = ("key",)
    raw_id_fields = ("parent", "duplicate_of")


@admin.register(Revision)
class RevisionAdmin(ReadOnlyAdmin):
    list_display = ("item", "number", "digest", "author", "created_at")
    list_select_related = ("item", "author")
    search_fields = ("item__key",)
    raw_id_fields = ("item", "author")


@admin.register(Diff)
class DiffAdmin(ReadOnlyAdmin):
    list_display = ("revision", "algorithm", "edit_size", "place", "created_at")
    list_select_related = ("revision__item",)
    search_fields = ("revision__item__key",)
    raw_id_fields = ("revision",)


@admin.register(Slot)
class SlotAdmin(ReadOnlyAdmin):
    list_display = ("item", "stage", "number", "state", "member", "held_until", "returned")
    list_filter = ("project", "stage", "state")
    list_select_related = ("item", "member")
    search_fields = ("item__key", "member__alias")
    raw_id_fields = ("item", "member")


@admin.register(Cursor)
class CursorAdmin(ReadOnlyAdmin):
    list_display = ("member", "stage", "priority", "position")
    list_select_related = ("member",)
    search_fields = ("member__alias",)


@admin.register(Label)
class LabelAdmin(ReadOnlyAdmin):
    list_display = ("item", "choice", "member", "stage", "current", "counted", "created_at")
    list_filter = ("project", "stage", "choice", "current", "counted")
    list_select_related = ("item", "member")
    search_fields = ("item__key", "member__alias")
    raw_id_fields = ("item", "revision", "slot", "member", "supersedes")


@admin.register(Resolution)
class ResolutionAdmin(ReadOnlyAdmin):
    list_display = ("item", "value", "rule", "source", "current", "created_at")
    list_filter = ("value", "source", "current")
    list_select_related = ("item",)
    search_fields = ("item__key",)
    raw_id_fields = ("item", "revision", "member")


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    list_display = ("kind", "project", "state", "done", "total", "created_at", "finished_at")
    list_filter = ("kind", "state")
    list_select_related = ("project",)


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "kind", "subject", "project", "member", "account")
    list_filter = ("kind", "project")
    list_select_related = ("project", "member", "account")
    search_fields = ("subject", "member__alias")
