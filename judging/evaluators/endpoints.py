"""Access to endpoints, and what site admins change of them. They belong to the site, not to a
project."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError
from django.http import Http404, HttpRequest
from django.utils import timezone

from annotation.db import clock, transactions
from annotation.errors import FieldError, Refused
from annotation.models import Account, Event, Membership
from annotation.projects.models import RIGHTS
from judging.evaluators import limits
from judging.evaluators.forms import EndpointForm
from judging.evaluators.models import EndpointQuerySet
from judging.models import Endpoint, Request

BASELINE = "baseline"


def list_all() -> EndpointQuerySet:
    """List all endpoints. The offline baseline needs no setup, so it is created here if it does not
    exist."""
    Endpoint.objects.get_or_create(
        name=BASELINE, defaults={"provider": "baseline", "model": "offline", "in_flight": 64}
    )
    return Endpoint.objects.all()


def list_visible(request: HttpRequest) -> EndpointQuerySet:
    """Return all endpoints, for site admins and for users who may start runs in any project.

    Other users get 403 if they are members of a project, otherwise 404.
    """
    roles = _roles(request)
    if roles is not None and not roles & RIGHTS["run"]:
        raise PermissionDenied("Only members who can start runs see endpoints.")
    return list_all()


def get_visible(request: HttpRequest, name: str) -> Endpoint:
    """Return one endpoint, for the same users as `list_visible`."""
    return _named(list_visible(request), name)


def list_changeable(request: HttpRequest) -> EndpointQuerySet:
    """Return all endpoints, for site admins only: the server calls their addresses from inside the
    network.
    """
    if _roles(request) is not None:
        raise PermissionDenied("Only site admins can add and change endpoints.")
    return list_all()


def get_changeable(request: HttpRequest, name: str) -> Endpoint:
    """Return the endpoint to change, for site admins only."""
    return _named(list_changeable(request), name)


def save_endpoint(form: EndpointForm, by: Account) -> Endpoint:
    """Save a valid endpoint form, and record the changes in the audit log. Raises `FieldError` if
    somebody else has just added an endpoint with this name."""
    new_one = form.instance.pk is None
    # Also record the parameters of a new endpoint, since some of them were added automatically.
    changed = [*dict.fromkeys([*form.changed_data, *(["parameters"] if new_one else [])])]
    with transactions.transact():
        try:
            with transactions.transact():
                saved: Endpoint = form.save()
        except IntegrityError as error:
            if not (new_one and Endpoint.objects.named(form.instance.name)):
                raise
            taken = f"{form.instance.name} was just added by somebody else. Choose another name."
            raise FieldError(taken, "name") from error
        old = {name: _to_json(form.initial.get(name)) for name in changed if not new_one}
        new = {name: _to_json(getattr(saved, name)) for name in changed}
        if changed:
            Event.of_site("endpoint", saved.name, by.pk, old=old, new=new)
    return saved


def archive_endpoint(endpoint: Endpoint, by: Account) -> None:
    """Offer an endpoint no longer for new runs; runs that use it go on, and nothing is deleted."""
    _set_archived(endpoint, by, timezone.now())


def restore_endpoint(endpoint: Endpoint, by: Account) -> None:
    """Offer an archived endpoint for new runs again."""
    _set_archived(endpoint, by, None)


def delete_endpoint(endpoint: Endpoint, by: Account) -> None:
    """Delete an endpoint. Raises `Refused` if runs use it."""
    _check_removable(endpoint)
    with transactions.transact():
        # A run that starts meanwhile holds this row until it is stored.
        locked = Endpoint.objects.select_for_update().filter(pk=endpoint.pk).first()
        if locked is None:
            return
        if locked.is_used():
            raise Refused(f"Runs use {locked.name}, so it cannot be deleted. Archive it instead.")
        old = {"provider": locked.provider, "address": locked.address, "model": locked.model}
        locked.delete()
        Event.of_site("endpoint deleted", endpoint.name, by.pk, old=old, new={})


def end_pause(endpoint: Endpoint, by: Account) -> None:
    """Call an endpoint again before the time until which its provider asked for no calls: credit
    was added, say, or the time was wrong. What waits for another try is sent again at once. Does
    nothing without a pause; raises `Refused` if Redis, which has the limits, does not answer."""
    now = clock.now()
    if not endpoint.is_paused(now):
        return
    _end_pause_of_limits(endpoint.name)
    with transactions.transact():
        if Endpoint.objects.filter(pk=endpoint.pk, paused_until__gt=now).update(paused_until=None):
            alike = Endpoint.objects.alike(endpoint)  # it may have sent their requests, too
            waiting = Request.objects.filter(endpoint__in=alike, state="waiting")
            waiting.filter(next_try__gt=now).update(next_try=now)
            Event.of_site("endpoint pause ended", endpoint.name, by.pk)
    endpoint.paused_until = None


def _end_pause_of_limits(name: str) -> None:
    limits.end_pause(name)
    if not settings.REDIS_URL:
        return
    # The client of Redis takes a tenth of the start of a command.
    from redis.exceptions import RedisError

    from judging.evaluators import shared_limits

    key = shared_limits.build_key(settings.REDIS_PREFIX, name)
    try:
        shared_limits.end_pause(settings.REDIS_URL, key)
    except RedisError as error:
        raise Refused("Redis does not answer. Try again in a moment.") from error


# Actions on an endpoint, by their name in pages and the API.
STEPS: dict[str, Callable[[Endpoint, Account], None]] = {
    "archive": archive_endpoint,
    "restore": restore_endpoint,
    "delete": delete_endpoint,
    "end-pause": end_pause,
}


def list_open_steps(endpoint: Endpoint) -> list[str]:
    """List the possible actions on an endpoint: one that runs use can only be archived."""
    if endpoint.is_offline:
        return []
    restore = ["restore"] if endpoint.archived_at else []
    if not endpoint.is_used():
        return [*restore, "delete"]
    return restore or ["archive"]


def _set_archived(endpoint: Endpoint, by: Account, at: datetime | None) -> None:
    _check_removable(endpoint)
    with transactions.transact():
        found = Endpoint.objects.filter(pk=endpoint.pk, archived_at__isnull=at is not None)
        if found.update(archived_at=at):
            Event.of_site("endpoint archived" if at else "endpoint restored", endpoint.name, by.pk)
    endpoint.archived_at = at


def _check_removable(endpoint: Endpoint) -> None:
    if endpoint.is_offline:
        raise Refused(f"{endpoint.name} makes no calls, so it stays. It needs no key and no price.")


def _named(endpoints: EndpointQuerySet, name: str) -> Endpoint:
    found = endpoints.named(name)
    if found is None:
        raise Http404
    return found


def _to_json(value: Any) -> Any:
    """Convert a value for JSON: a price becomes a string."""
    return str(value) if isinstance(value, Decimal) else value


def _roles(request: HttpRequest) -> set[str] | None:
    """Return the user's roles in all projects, or None for a site admin. A user without any
    membership gets 404.
    """
    account = request.user
    if not isinstance(account, Account):
        raise Http404
    if account.is_superuser:
        return None
    roles = Membership.objects.roles_of(account)
    if not roles:
        raise Http404
    return roles
