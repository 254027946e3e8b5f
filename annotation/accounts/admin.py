"""Accounts in the Django admin, for site admins; every change is in the audit log."""

from importlib import import_module
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group
from django.db.models import Model
from django.http import HttpRequest

from annotation.models import Account
from annotation.projects import audit

ACCOUNT_RIGHTS = ("is_active", "is_staff", "is_superuser", "creates_projects")
# The Django admin would change these models of sign-in and rights without an audit entry. What a
# site admin needs to do with them is available as actions on accounts.
UNREGISTERED_MODELS = (
    *(EmailAddress, Authenticator, UserSession),
    *(SocialAccount, SocialApp, SocialToken),
    Group,
)
PERSONAL_FIELDS = ("username", "first_name", "last_name", "email")


class ChangesOnlyAdmin(admin.ModelAdmin):
    """Saves only the fields that somebody changed on the page: one that stayed open must not take
    back what others changed meanwhile, such as a suspension or a seal."""

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """A form field whose value as it was shown is sent with the form."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        shown = f"initial-{db_field.name}"
        if field and (request.method != "POST" or any(n.startswith(shown) for n in request.POST)):
            field.show_hidden_initial = True
        return field

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        columns = {field.name for field in obj._meta.concrete_fields}
        obj.save(update_fields=columns & set(form.changed_data) if change else None)


class AccountAdmin(ChangesOnlyAdmin, UserAdmin):
    """People who can sign in. The audit log records changes, but never a name or an address."""

    actions = ("end_second_step", "unlink")
    fieldsets = (
        *(UserAdmin.fieldsets or ()),
        ("Projects", {"fields": ("creates_projects",)}),
    )
    add_fieldsets = (
        *UserAdmin.add_fieldsets,
        ("Projects", {"fields": ("creates_projects",)}),
    )

    @admin.action(description="Switch two-step sign-in off (lost device)", permissions=["change"])
    def end_second_step(self, request: HttpRequest, accounts: Any) -> None:
        """Delete the authenticators and recovery codes of these accounts, and record an event for
        each account that had any."""
        for account in accounts:
            if Authenticator.objects.filter(user=account).delete()[0]:
                said = {"two-step sign-in": "off"}
                audit.record_account_change(account, request_account(request), new=said)

    @admin.action(description="Unlink the external sign-in service", permissions=["change"])
    def unlink(self, request: HttpRequest, accounts: Any) -> None:
        """Delete the links of these accounts to the sign-in service, and record an event for each
        account that had a link."""
        for account in accounts:
            if SocialAccount.objects.filter(user=account).delete()[0]:
                said = {"sign-in by another service": "unlinked"}
                audit.record_account_change(account, request_account(request), new=said)

    def save_model(self, request: HttpRequest, obj: Account, form: Any, change: bool) -> None:
        """Save the account and record an event, with old and new value for rights, and only the
        field name for personal fields."""
        super().save_model(request, obj, form, change)
        new: dict[str, Any] = {} if change else {"account": "made"}
        rights = [name for name in ACCOUNT_RIGHTS if name in form.changed_data or not change]
        named = [name for name in PERSONAL_FIELDS if change and name in form.changed_data]
        audit.record_account_change(
            obj,
            request_account(request),
            old={name: form.initial.get(name) for name in rights if change},
            new=new
            | {name: getattr(obj, name) for name in rights}
            | dict.fromkeys(named, "changed"),
        )

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Save groups and permissions, and record an event for a change of groups and for a change
        of permissions."""
        super().save_related(request, form, formsets, change)
        for name in {"groups", "user_permissions"} & set(form.changed_data):
            old = sorted(str(one) for one in form.initial.get(name, ()))
            new = sorted(str(one) for one in form.cleaned_data[name])
            audit.record_account_change(
                form.instance, request_account(request), old={name: old}, new={name: new}
            )

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> Any:
        """Show the page to set a password. A redirect means that the password was changed; then an
        event is recorded."""
        answer = super().user_change_password(request, id, form_url)
        if answer.status_code == 302:
            account = Account.objects.get(pk=id)
            audit.record_account_change(
                account, request_account(request), new={"password": "set anew"}
            )
        return answer

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        # Stored work refers to accounts, so accounts of people who leave are made inactive, not
        # deleted.
        return False


def unregister_models() -> None:
    """Unregister models that other applications have registered."""
    for name in ("account", "mfa", "socialaccount", "usersessions"):
        import_module(f"allauth.{name}.admin")
    import_module("django.contrib.auth.admin")
    for model in UNREGISTERED_MODELS:
        admin.site.unregister(model)


def request_account(request: HttpRequest) -> Account:
    """The signed-in account of an admin request; only signed-in accounts can open the admin."""
    assert isinstance(request.user, Account)
    return request.user
