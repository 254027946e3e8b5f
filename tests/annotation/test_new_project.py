"""Projects that people create, archive and restore in the browser."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation import tasktypes
from annotation.items import taxonomy
from annotation.models import Account, Event, Membership, Project, Role
from tests.annotation.own_categories import with_own_categories
from tests.builders import browser_of, make_account, make_member, make_project

pytestmark = pytest.mark.django_db

NEW = {"name": "Faults of reviews", "task_type": "perturbation-vetting", "categories": "mqm"}


def create(account: Account, **values: Any) -> Any:
    return browser_of(account).post(reverse("new-project"), {**NEW, **values})


def allowed(**values: Any) -> Account:
    account = make_account()
    Account.objects.filter(pk=account.pk).update(creates_projects=True, **values)
    account.refresh_from_db()
    return account


def test_who_may_create_a_project_leads_it_and_goes_on_from_there() -> None:
    account = allowed()
    home = browser_of(account).get(reverse("home")).content.decode()
    assert "There is no project yet" in home
    assert reverse("new-project") in home
    response = create(account)
    assert response.url == reverse("project", args=["faults-of-reviews"])
    project = Project.objects.get()
    assert (project.name, project.task_type.slug) == ("Faults of reviews", "perturbation-vetting")
    assert taxonomy.load_taxonomy(project).ability("accuracy").name == "Accuracy"
    member = Membership.objects.get()
    assert (member.account, member.role, member.project) == (account, Role.LEAD, project)
    assert set(Event.objects.values_list("kind", flat=True)) == {"project", "member"}


def test_the_slug_follows_the_name_and_is_free() -> None:
    account = allowed()
    for name in ("Faults of reviews", "Faults  of reviews!", "日本語", "日本"):
        assert create(account, name=name).status_code == 302
    slugs = Project.objects.order_by("pk").values_list("slug", flat=True)
    assert list(slugs) == ["faults-of-reviews", "faults-of-reviews-2", "project", "project-2"]


def test_a_name_has_no_character_that_cannot_be_seen() -> None:
    answer = create(allowed(), name="Faults\u202e of reviews")
    assert answer.status_code == 422
    assert "cannot be seen (RLO)" in answer.content.decode()
    assert not Project.objects.exists()


def test_a_project_can_be_like_another_that_one_leads() -> None:
    project = with_own_categories(make_project(overlap=3, blind_first=True, task_type="rating"))
    lead = make_member(project, Role.LEAD)
    assert lead.account
    create(lead.account, like=project.slug)
    new = Project.objects.latest("pk")
    assert (new.overlap, new.blind_first, new.task_type) == (3, True, project.task_type)
    assert new.taxonomy == project.taxonomy
    other = with_own_categories(make_project())
    refused = create(lead.account, like=other.slug)
    assert refused.status_code == 422


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"name": " "}, "This field is required"),
        ({"task_type": "nothing"}, "Select a valid choice"),
        ({"categories": "nothing"}, "Select a valid choice"),
    ],
)
def test_what_cannot_be_created_is_said(values: dict[str, str], said: str) -> None:
    refused = create(allowed(), **values)
    assert refused.status_code == 422
    assert said in refused.content.decode()
    assert not Project.objects.exists()


def test_a_site_admin_can_keep_new_projects_for_admins(settings: Any) -> None:
    lead = make_member(make_project(), Role.LEAD)
    assert lead.account
    assert browser_of(lead).get(reverse("new-project")).status_code == 200
    settings.NEW_PROJECTS = "admins"
    assert browser_of(lead).get(reverse("new-project")).status_code == 403
    assert reverse("new-project") not in browser_of(lead).get(reverse("home")).content.decode()
    admin = make_account(is_superuser=True)
    assert browser_of(admin).get(reverse("new-project")).status_code == 200


def test_an_archived_project_is_nowhere_until_its_lead_restores_it() -> None:
    lead = make_member(make_project("gone"), Role.LEAD)
    annotator = make_member(lead.project)
    client: Client = browser_of(lead)
    address = reverse("project", args=["gone"])
    assert client.post(reverse("archive-project", args=["gone"])).url == reverse("archived")
    assert client.get(address).status_code == 404
    assert "gone" not in client.get(reverse("home")).content.decode().lower().split("archived")[0]
    assert lead.project.name in client.get(reverse("archived")).content.decode()
    assert lead.project.name not in browser_of(annotator).get(reverse("archived")).content.decode()
    restore = reverse("restore-project", args=["gone"])
    assert browser_of(annotator).post(restore).status_code == 403
    assert browser_of(make_account()).post(restore).status_code == 404
    assert client.post(restore).url == address
    assert client.get(address).status_code == 200
    kinds = Event.objects.filter(project=lead.project).values_list("kind", flat=True)
    assert {"archived", "restored"} <= set(kinds)


def test_two_projects_that_a_person_sees_have_different_names() -> None:
    account = allowed()
    make_project(name="Hidden")
    assert create(account, name="Hidden").status_code == 302
    answer = create(account, name=" hidden  ")
    assert answer.status_code == 422
    assert "There is a project of this name" in answer.content.decode()


def test_a_site_admin_allows_somebody_to_create_projects_in_the_admin() -> None:
    admin, account = browser_of(make_account(is_superuser=True, is_staff=True)), make_account()
    home = browser_of(account).get(reverse("home")).content.decode()
    assert "ticks “Creates projects”" in home
    path = reverse("admin:annotation_account_change", args=[account.pk])
    page = admin.get(path).content.decode()
    sent = dict(re.findall(r'name="([\w-]+)" value="([^"]*)"', page))
    sent |= {"creates_projects": "on", "is_active": "on", "keys": "{}"}
    assert admin.post(path, sent).status_code == 302
    account.refresh_from_db()
    assert account.creates_projects
    assert "There is no project yet" in browser_of(account).get(reverse("home")).content.decode()
    assert Event.objects.filter(kind="account", data__new__creates_projects=True).exists()


def test_a_project_without_categories_says_that_they_come_first() -> None:
    account = allowed()
    create(account, categories="empty")
    lead = browser_of(account)
    page = lead.get(reverse("project", args=["faults-of-reviews"])).content.decode()
    assert "Add categories" in page
    form = lead.get(reverse("group-new", args=["faults-of-reviews"])).content.decode()
    assert "Add, then another" in form


def test_the_help_lists_the_categories_of_ones_own_projects() -> None:
    lead = make_member(with_own_categories(make_project("reviews")), Role.LEAD)
    page = browser_of(lead).get(reverse("help")).content.decode()
    assert f"Categories of {lead.project.name}" in page
    assert "Rude remark" in page
    assert "Number errors" not in page


@pytest.mark.parametrize("task_type", ["rubric-scoring", "rubric-matrix"])
def test_a_rubric_begins_empty_or_with_the_example(task_type: str) -> None:
    account = allowed()
    create(account, task_type=task_type, empty_rubric="on")
    create(account, name="With the example", task_type=task_type)
    empty, example = Project.objects.order_by("pk")
    [criterion] = tasktypes.load_task_type(empty).fields
    assert (criterion.kind, criterion.title) == ("points", "Criterion 1")
    assert len(tasktypes.load_task_type(example).fields) > 1
    assert (
        "Criterion 1" in browser_of(account).get(f"/projects/{empty.slug}/task/").content.decode()
    )


def test_what_is_no_rubric_stays_as_it_is() -> None:
    create(allowed(), empty_rubric="on")
    assert Project.objects.get().task_type.slug == "perturbation-vetting"
