"""What is written into the audit has a name there, and what has a name is written somewhere."""

import ast
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.contrib import admin
from django.core.management import call_command
from django.test import Client, RequestFactory
from django.urls import reverse

from annotation import importing
from annotation.models import Account, Event, Membership, Project
from annotation.projects import event_types
from judging.models import Budget, Endpoint, Run
from tests.builders import PASSWORD, cast, make_account

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("annotation", "judging", "operation", "config")
# Functions that write an event, or hand a kind to one that does; the kind is their first argument.
WRITERS = {
    *("record", "_record", "record_event", "_record_event", "build_event", "of_site"),
    *("Event", "create"),
}
# What a kind that is put together can end in.
ENDS = {
    "run {state}": [state for state in Run.State.values if state != Run.State.PLANNING],
    "run {what}": ["archived", "unarchived"],
    "strategy {what}": ["retired", "deleted", "taken back"],
}
# What the administration changes, each with an event that is tested where it is made; all else can
# only be looked at there.
CHANGED_THERE = {Account, Project, Membership, Endpoint, Budget}


def sources() -> Iterator[ast.Module]:
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            if "migrations" not in path.parts:
                yield ast.parse(path.read_text(encoding="utf-8"))


def constants(module: ast.Module) -> dict[str, str]:
    """The texts that a module gives a name."""
    return {
        node.targets[0].id: node.value.value
        for node in module.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }


def called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def kinds_of(node: ast.expr, named: dict[str, str]) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Name) and node.id in named:
        yield named[node.id]
    elif isinstance(node, ast.IfExp):
        yield from (*kinds_of(node.body, named), *kinds_of(node.orelse, named))
    elif isinstance(node, ast.JoinedStr):
        text = ast.unparse(node)[2:-1]
        head = text.partition("{")[0]
        yield from (head + end for end in ENDS[text])


def is_about_events(node: ast.Call) -> bool:
    """Of words that others use too, those that speak of events."""
    whole = ast.unparse(node.func)
    return called(node) != "create" or whole == "Event.objects.create"


def written() -> set[str]:
    found: set[str] = set()
    for module in sources():
        named = constants(module)
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and called(node) in WRITERS and is_about_events(node):
                kind = next((each.value for each in node.keywords if each.arg == "kind"), None)
                first = kind or (node.args[0] if node.args else None)
                if first is not None and not isinstance(first, ast.Starred):
                    found |= set(kinds_of(first, named))
    return found


# Written through a name that another module gave it, or chosen between two in a variable.
BY_NAME = {"invitation", "member", "project", "settings", "sign-in link"}


def test_every_kind_that_is_written_has_a_name_and_every_name_is_written() -> None:
    found = written()
    assert len(found) > 40
    assert found - set(event_types.EVENT_TITLES) == set()
    assert set(event_types.EVENT_TITLES) - found - BY_NAME == set()


def test_a_kind_of_an_older_version_is_told_by_its_own_name() -> None:
    assert event_types.event_title("something-old") == "something old"
    assert all(re.fullmatch(r"[A-Za-z ]+", words) for words in event_types.EVENT_TITLES.values())


@pytest.mark.django_db
def test_the_administration_changes_nothing_past_the_audit(rf: RequestFactory) -> None:
    request = rf.get("/admin/")
    request.user = SimpleNamespace(is_active=True, is_staff=True, has_perm=lambda *_: True)
    for model, shown in admin.site._registry.items():
        if model not in CHANGED_THERE:
            assert not shown.has_add_permission(request), model
            assert not shown.has_change_permission(request), model
        assert not shown.has_delete_permission(request), model


@pytest.mark.django_db
def test_a_cap_that_the_administration_sets_names_who_set_it() -> None:
    people = cast()
    client = Client()
    client.force_login(people.admin)
    said = {"project": people.project.pk, "cap": "5"}
    answer = client.post(reverse("admin:judging_budget_add"), said)
    assert answer.status_code == 302
    event = Event.objects.get(kind="budget")
    assert (event.account, event.member, event.new) == (people.admin, None, {"cap": "5"})


@pytest.mark.django_db
def test_site_admins_and_passwords_that_commands_make_are_on_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", PASSWORD)
    call_command("createsuperuser", "--no-input", username="root", email="", stdout=StringIO())
    account = Account.objects.get(username="root")
    made = Event.objects.get(kind="account")
    assert made.subject == f"account {account.pk}"
    assert made.new == {"account": "made", "is_staff": True, "is_superuser": True}
    assert account.check_password(PASSWORD)


@pytest.mark.django_db
def test_a_password_that_a_command_sets_is_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    account = make_account("ada")
    monkeypatch.setattr("getpass.getpass", lambda **_: "quite-another-word")
    make_account("eve")
    call_command("changepassword", "ada", stdout=StringIO())
    event = Event.objects.get(kind="account")
    assert (event.subject, event.new) == (f"account {account.pk}", {"password": "set anew"})
    account.refresh_from_db()
    assert account.check_password("quite-another-word")
    # Without a name it is that of whoever is at the machine.
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    call_command("changepassword", stdout=StringIO())
    subjects = Event.objects.filter(kind="account").values_list("subject", flat=True)
    assert list(subjects) == [event.subject] * 2


@pytest.mark.django_db
def test_a_project_that_begins_is_on_record() -> None:
    project = importing.create_audited_project("spiders")
    event = project.events.get(kind="project")
    assert event.new["slug"] == "spiders"
