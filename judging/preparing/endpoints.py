"""Who may see and change endpoints: they belong to the site, and no project has its own."""

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from annotation.models import Account, Membership
from annotation.models.people import RIGHTS
from judging.models import Endpoint
from judging.preparing import selecting
from judging.querysets import EndpointQuerySet


def visible(request: HttpRequest) -> EndpointQuerySet:
    """All endpoints, to site admins and to whoever may start runs in some project.

    404 for whoever has no place in any project, 403 for other members.
    """
    roles = _roles(request)
    if roles is not None and not roles & RIGHTS["run"]:
        raise PermissionDenied("Endpoints are for people who may start runs.")
    return selecting.endpoints()


def named(request: HttpRequest, name: str) -> Endpoint:
    """One endpoint, to the same people."""
    return get_object_or_404(visible(request), name=name)


def changeable(request: HttpRequest) -> EndpointQuerySet:
    """All endpoints, to site admins alone: an address is called from inside the network."""
    if _roles(request) is not None:
        raise PermissionDenied("Only a site admin adds and changes endpoints.")
    return selecting.endpoints()


def _roles(request: HttpRequest) -> set[str] | None:
    """The person's roles in all projects, None for a site admin; a stranger gets 404."""
    account = request.user
    if not isinstance(account, Account):
        raise Http404
    if account.is_superuser:
        return None
    roles = Membership.objects.roles_of(account)
    if not roles:
        raise Http404
    return roles
