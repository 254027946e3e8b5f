"""Strategies that a project no longer wants: retired, deleted, taken back."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Event, Membership, Project
from judging.errors import Refused
from judging.models import Run, StrategyVersion
from judging.runs import choices, lifecycle
from judging.strategies import catalogue, editing, retirement
from tests.judging.builders_judging import make_endpoint, make_items

pytestmark = pytest.mark.django_db

NOBODY = "http://127.0.0.1:9/v1"
API = "/api/v1/projects/fbi/strategies/"


@pytest.fixture
def ours(member: Membership) -> StrategyVersion:
    parent = catalogue.find_version(member.project, "reference")
    assert parent
    return editing.copy_strategy(member.project, parent, slug="ours", member=member)


def used(project: Project, version: StrategyVersion) -> Run:
    make_items(project, 1)
    endpoint = make_endpoint(NOBODY, name="judge")
    return lifecycle.start_run(
        project, strategy=version, endpoint=endpoint, config=lifecycle.RunConfig(seed=1)
    )


def page(browser: Client, name: str = "strategies", *args: str) -> str:
    answer = browser.get(reverse(name, args=["fbi", *args]))
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def press(browser: Client, step: str, slug: str = "ours") -> str:
    answer = browser.post(reverse(f"strategy-{step}", args=["fbi", slug]), follow=True)
    return " ".join(answer.content.decode().split())


def test_what_is_deleted_is_gone_and_can_be_taken_back(
    browser: Client, project: Project, ours: StrategyVersion
) -> None:
    assert "ours is deleted. You can restore it" in press(browser, "delete")
    assert catalogue.find_version(project, "ours") is None
    assert browser.get(reverse("strategy", args=["fbi", "ours"])).status_code == 404
    assert "ours is restored." in press(browser, "back")
    assert catalogue.find_version(project, "ours") == ours
    kinds = Event.objects.filter(subject="ours").order_by("pk").values_list("kind", flat=True)
    assert list(kinds) == ["strategy deleted", "strategy taken back"]


def test_nobody_takes_the_name_of_what_was_deleted(
    member: Membership, ours: StrategyVersion
) -> None:
    retirement.delete(member.project, "ours", member)
    with pytest.raises(editing.Refused, match="A deleted strategy is named ours"):
        editing.copy_strategy(member.project, ours, slug="ours", member=member)


def test_what_runs_rest_on_is_not_deleted(
    browser: Client, project: Project, ours: StrategyVersion
) -> None:
    used(project, ours)
    assert "1 run depends on ours, so it cannot be deleted" in press(browser, "delete")
    shown = page(browser, "strategy", "ours")
    assert ">Retire<" in shown
    assert ">Delete<" not in shown


def test_what_is_retired_is_read_but_not_offered(
    browser: Client, project: Project, ours: StrategyVersion
) -> None:
    used(project, ours)
    assert 'value="ours"' in page(browser, "run-new")
    assert "ours is retired" in press(browser, "retire")
    # Its run can still be named, to take the same items.
    assert 'value="ours"' not in page(browser, "run-new")
    shown = page(browser, "strategy", "ours")
    assert ">retired<" in shown
    assert "Run 1" in shown
    with pytest.raises(Refused, match="is retired"):
        choices.get_version(project, "ours")
    press(browser, "back")
    assert 'value="ours"' in page(browser, "run-new")


def test_a_run_of_a_retired_strategy_can_be_cloned(
    project: Project, member: Membership, ours: StrategyVersion
) -> None:
    run = used(project, ours)
    retirement.retire(project, "ours", member)
    assert lifecycle.clone_run(run, member).strategy == ours


def test_a_strategy_that_is_deleted_while_a_run_is_chosen_starts_none(
    project: Project, member: Membership, ours: StrategyVersion
) -> None:
    retirement.delete(project, "ours", member)
    with pytest.raises(Refused, match="has been deleted"):
        used(project, ours)


def test_a_retired_text_is_not_changed(
    browser: Client, project: Project, member: Membership, ours: StrategyVersion
) -> None:
    retirement.retire(project, "ours", member)
    address = reverse("strategy-edit", args=["fbi", "ours"])
    assert browser.get(address).status_code == 302
    source = catalogue.get_source(ours).replace("title = ", "# new\ntitle = ", 1)
    answer = browser.post(address, {"source": source, "shown": 1})
    assert answer.status_code == 422
    assert "Restore it to change it" in answer.content.decode()
    assert "# new" in answer.content.decode()


def test_what_is_shipped_stays(browser: Client, project: Project) -> None:
    for step in ("retire", "delete", "back"):
        assert "does not belong to this project" in press(browser, step, "reference")
    assert "reference" in page(browser)


def test_a_program_does_the_same(program: Client, project: Project, ours: StrategyVersion) -> None:
    def listed() -> dict[str, Any]:
        return {one["slug"]: one["offered"] for one in program.get(API).json()}

    assert listed()["ours"] is True
    assert program.post(f"{API}ours/retire/").status_code == 204
    assert listed()["ours"] is False
    assert program.post(f"{API}ours/delete/").status_code == 204
    assert "ours" not in listed()
    assert program.post(f"{API}ours/back/").status_code == 204
    assert listed()["ours"] is True
    used(project, ours)
    refused = program.post(f"{API}ours/delete/")
    assert refused.status_code == 422
    assert "Retire it" in refused.json()["detail"]
