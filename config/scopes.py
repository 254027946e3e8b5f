"""The scope that a token needs for each route of the API: `read` to read, and to write the scope
listed here. If a writing route is not listed, tokens cannot use it."""

import re
from typing import TYPE_CHECKING

from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

if TYPE_CHECKING:  # rest_framework.views imports this module
    from rest_framework.views import APIView

READ_SCOPE = "read"
WRITE_ROUTES = {
    # Creates a file with data that the token can read anyway.
    READ_SCOPE: "api-exports api-export-cancel",
    "label": (
        "api-next api-labels api-corrections api-undo api-verify-next api-verify-labels"
        " api-case-next api-case-labels api-case-requests api-comments api-comments-withdraw"
        " api-guidelines-read api-skip"
    ),
    "run": (
        "api-runs api-runs-estimate api-runs-pilot api-runs-derive api-run-pause api-run-resume"
        " api-run-cancel api-run-retry api-run-supplement api-run-supplement-estimate"
        " api-run-archive api-run-unarchive api-run-clone api-run-move"
        " api-run"
        " api-run-ask-without api-run-canary api-run-reparse api-run-reparse-preview api-strategies"
        " api-strategy-retire api-strategy-delete api-strategy-back api-strategy-versions"
        " api-strategy-preview api-strategy-parse api-strategy-import api-endpoint-test"
    ),
    "manage": (
        "api-known api-known-release api-assignments api-assignments-back api-priorities"
        " api-abilities api-abilities-undo api-run-suggestions"
        " api-archives api-run-items api-endpoints api-endpoint"
        " api-endpoint-archive api-endpoint-restore api-endpoint-end-pause"
        " api-member api-hand-over api-invitations api-invitation"
        " api-settings api-settings-preview api-guidelines api-budget"
        " api-job-cancel api-job-again api-snapshots"
        " api-generations"
        " api-webhooks api-webhook api-webhook-secret api-webhook-ping api-webhook-again"
        " api-imports api-import-columns api-import-start api-import-cancel"
    ),
}
_SCOPES = {name: scope for scope, names in WRITE_ROUTES.items() for name in names.split()}


class TokenHasScope(BasePermission):
    """Permission that checks the scope of the request's token, if it has one, against the route."""

    message = "No token can be used for this."

    def has_permission(self, request: Request, view: "APIView") -> bool:
        """True if the token has the scope that the route and method need. Also True without a
        token, since sessions have no scopes, and for methods that the view refuses anyway."""
        method, match, held = request.method or "", request.resolver_match, request.auth
        if held is None or method not in view.allowed_methods:  # the view itself answers 405
            return True
        scope = required_scope(match.url_name or "" if match else "", method)
        self.message = f"This token does not allow that. Create one with the scope “{scope}”."
        return isinstance(held, frozenset) and scope in held


def required_scope(name: str, method: str) -> str:
    """Return the scope that a token needs for the route with this name; "" if tokens cannot use
    it."""
    return READ_SCOPE if method in SAFE_METHODS else _SCOPES.get(name, "")


def list_routes(resolver: URLResolver | None = None, before: str = "/api/v1/") -> dict[str, str]:
    """Return the names of all API routes, by their paths as in the OpenAPI document."""
    found: dict[str, str] = {}
    for entry in (resolver or get_resolver("config.api")).url_patterns:
        if isinstance(entry, URLResolver):
            found |= list_routes(entry, before + str(entry.pattern))
        elif isinstance(entry, URLPattern) and entry.name:
            found[before + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", str(entry.pattern))] = entry.name
    return found
