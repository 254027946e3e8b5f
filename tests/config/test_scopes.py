"""Every route of the API says what a token must be for."""

import re

import pytest
from drf_spectacular.generators import SchemaGenerator

from annotation.accounts.models import SCOPES
from config import scopes
from tests.test_access import RULES

BEFORE = "api/v1/"
WRITING = {"POST", "PUT", "PATCH", "DELETE"}
ROUTES = {route: rule for route, rule in RULES.items() if route.startswith(BEFORE)}
NAMES = scopes.list_routes()


def named(route: str) -> str:
    return NAMES["/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route)]


@pytest.mark.parametrize("route", [one for one in ROUTES if WRITING & ROUTES[one].keys()])
def test_every_route_that_writes_names_the_scope_it_needs(route: str) -> None:
    for method in WRITING & ROUTES[route].keys():
        assert scopes.required_scope(named(route), method) in SCOPES


def test_no_scope_is_named_for_what_does_not_write() -> None:
    writing = {named(route) for route, rule in ROUTES.items() if WRITING & rule.keys()}
    assert {name for names in scopes.WRITE_ROUTES.values() for name in names.split()} == writing
    assert set(scopes.WRITE_ROUTES) | {scopes.READ_SCOPE} == set(SCOPES)


def test_what_names_no_scope_is_closed_to_tokens() -> None:
    assert scopes.required_scope("api-new", "POST") == ""
    assert scopes.required_scope("api-new", "GET") == "read"


def test_the_document_says_the_scope_of_every_operation() -> None:
    document = SchemaGenerator().get_schema(public=True)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            [scope] = operation["security"][0]["token"]
            assert scope == scopes.required_scope(NAMES[path], method.upper())
            assert f"`{scope}`" in operation["description"]
