"""Endpoints are set up in the admin, and only such as can be asked."""

from typing import Any

import pytest
from django.contrib.admin import site
from django.test import Client, RequestFactory

from judging.models import Endpoint
from tests.builders import make_account, make_member, make_project
from tests.judging.builders_judging import make_endpoint, make_items, make_run

pytestmark = pytest.mark.django_db

ADD = "/admin/judging/endpoint/add/"
GOOD = {
    "name": "judge",
    "provider": "openai_compatible",
    "address": "https://evaluator.example/v1/",
    "key_variable": "JUDGE_API_KEY",
    "model": "judge-1",
    "api": "chat",
    "parameters": "{}",
    "in_flight": 4,
    "timeout": 60,
}


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(make_account(is_staff=True, is_superuser=True))
    return client


# All else is written by the services alone, and nothing is ever deleted.
WRITTEN_BY_ADMINS = {"account", "project", "membership", "endpoint", "budget"}


def test_site_admins_write_some_tables_look_at_the_others_and_delete_nothing() -> None:
    request = RequestFactory().get("/admin/")
    request.user = make_account(is_staff=True, is_superuser=True)
    for model, held in site._registry.items():
        may_write = model._meta.model_name in WRITTEN_BY_ADMINS
        assert held.has_add_permission(request) is may_write, model
        assert held.has_change_permission(request) is may_write, model
        assert held.has_delete_permission(request) is False, model
        assert held.has_view_permission(request) is True, model


def test_members_of_a_project_are_added_in_the_admin_and_changed_elsewhere(admin: Client) -> None:
    member = make_member(make_project("p"), role="lead", alias="lea")
    sent = admin.get(f"/admin/annotation/project/{member.project_id}/change/")
    (inline,) = sent.context["inline_admin_formsets"]
    said = (inline.has_add_permission, inline.has_change_permission, inline.formset.can_delete)
    assert said == (True, False, False)


def test_a_project_keeps_its_slug_once_it_has_items(admin: Client) -> None:
    project = make_project("p")
    page = f"/admin/annotation/project/{project.pk}/change/"
    assert "slug" in admin.get(page).context["adminform"].form.fields
    make_items(project, 1)
    assert "slug" not in admin.get(page).context["adminform"].form.fields


def problems(sent: Any) -> str:
    return str(sent.context["adminform"].form.errors)


def test_an_endpoint_is_set_up(admin: Client) -> None:
    admin.post(ADD, GOOD)
    assert Endpoint.objects.get().address == "https://evaluator.example/v1"


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"address": "http://169.254.169.254/"}, "must not be called"),
        ({"address": "http://10.0.0.7/v1"}, "EVALUATOR_HOSTS"),
        ({"address": "file:///etc/passwd"}, "must begin with http"),
        ({"address": ""}, "Enter the base URL"),
        ({"parameters": "[1]"}, "JSON object"),
        ({"parameters": '{"stream": true}'}, "cannot be set: stream"),
        ({"parameters": '{"api_key": "sk-x"}'}, "looks like a key"),
        ({"price_in": "-1"}, "greater than or equal to 0"),
        ({"key_variable": "SECRET_KEY"}, "key_variable"),
        ({"in_flight": 0}, "in_flight"),
    ],
)
def test_an_endpoint_that_cannot_be_asked_is_refused(
    admin: Client, wrong: dict[str, Any], words: str
) -> None:
    assert words in problems(admin.post(ADD, GOOD | wrong))
    assert not Endpoint.objects.exists()


def test_a_refused_address_is_not_asked_for_as_if_it_were_missing(admin: Client) -> None:
    assert "base URL" not in problems(admin.post(ADD, GOOD | {"address": "http://10.0.0.7/v1"}))


def test_a_listed_private_host_may_be_named(admin: Client, settings: Any) -> None:
    settings.EVALUATOR_HOSTS = ["10.0.0.7"]
    admin.post(ADD, GOOD | {"address": "http://10.0.0.7/v1"})
    assert Endpoint.objects.exists()


def test_empty_parameters_are_an_object_with_the_limit_of_a_new_endpoint(admin: Client) -> None:
    admin.post(ADD, GOOD | {"parameters": ""})
    assert Endpoint.objects.get().parameters == {"max_tokens": 1024}


def test_who_runs_have_asked_stays_who_it_is(admin: Client) -> None:
    project = make_project()
    make_items(project, 1)
    endpoint = make_endpoint("http://127.0.0.1:9/v1")
    make_run(project, endpoint)
    page = f"/admin/judging/endpoint/{endpoint.pk}/change/"
    admin.post(page, GOOD | {"timeout": 7})
    changed = Endpoint.objects.get(pk=endpoint.pk)
    assert (changed.address, changed.timeout) == (endpoint.address, 7)


def test_an_endpoint_that_no_run_has_asked_can_be_changed(admin: Client) -> None:
    endpoint = make_endpoint("http://127.0.0.1:9/v1")
    admin.post(f"/admin/judging/endpoint/{endpoint.pk}/change/", GOOD)
    assert Endpoint.objects.get(pk=endpoint.pk).model == "judge-1"


@pytest.mark.parametrize("name", ["call", "outcome", "reading", "reply", "request", "run"])
def test_what_was_asked_and_answered_can_only_be_looked_at(admin: Client, name: str) -> None:
    assert admin.get(f"/admin/judging/{name}/").status_code == 200
    assert admin.get(f"/admin/judging/{name}/add/").status_code == 403
