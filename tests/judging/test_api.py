"""Runs, outcomes and figures in the API."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from annotation.models import Project
from annotation.reports import grouping
from judging.evaluators.providers.errors import Rejected
from judging.models import Run
from judging.results import columns
from judging.runs import lifecycle
from judging.runs.api import calls
from tests.judging.builders_judging import (
    answer,
    fail,
    make_baseline,
    make_endpoint,
    make_items,
    make_judged,
    make_run,
)

pytestmark = pytest.mark.django_db

API = "/api/v1/projects/fbi/"


def post(program: Client, path: str, body: dict[str, Any] | None = None) -> Any:
    return program.post(API + path, body or {}, content_type="application/json")


def planned(project: Project) -> Run:
    make_items(project, 3)
    run = make_run(project, make_endpoint("http://127.0.0.1:9/v1"))
    lifecycle.plan_calls(run)
    return run


def test_a_run_is_started(program: Client, project: Project) -> None:
    make_items(project, 3)
    make_baseline()
    sent = post(
        program, "runs/", {"strategy": "rouge-l", "endpoint": "baseline", "limit": 2, "seed": 4}
    )
    assert sent.status_code == 201
    said = sent.json()
    assert (said["run"]["number"], said["run"]["seed"], said["progress"]["items"]) == (1, 4, 2)
    assert said["run"]["started_by"] == "rita"


def test_a_run_starts_with_the_items_that_were_estimated_or_not_at_all(
    program: Client, project: Project
) -> None:
    make_items(project, 3)
    make_baseline()
    body: dict[str, Any] = {"strategy": "rouge-l", "endpoint": "baseline", "seed": 4}
    body["items_digest"] = post(program, "runs/estimate/", body).json()["items_digest"]
    make_items(project, 4)
    sent = post(program, "runs/", body)
    assert sent.status_code == 409
    assert "Nothing was started. Estimate again." in sent.json()["detail"]
    assert not Run.objects.exists()
    body["items_digest"] = post(program, "runs/estimate/", body).json()["items_digest"]
    assert post(program, "runs/", body).status_code == 201


@pytest.mark.parametrize(
    "body, words",
    [
        ({"strategy": "none", "endpoint": "baseline"}, "Choose one of"),
        ({"strategy": "rouge-l", "endpoint": "none"}, "Choose one of: baseline, unpriced"),
        ({"strategy": "pairwise", "endpoint": "baseline"}, "needs an evaluator LLM"),
        ({"strategy": "vanilla", "endpoint": "unpriced", "cap": "1"}, "a cap cannot be enforced"),
        ({"strategy": "rouge-l", "endpoint": "baseline", "limit": 0}, "limit"),
        ({"strategy": "rouge-l", "endpoint": "baseline", "categorys": []}, "no 'categorys'. There"),
        ({}, "strategy"),
    ],
)
def test_a_run_that_cannot_be_started_is_refused_in_words(
    program: Client, project: Project, body: dict[str, Any], words: str
) -> None:
    make_items(project, 1)
    make_baseline()
    make_endpoint("http://127.0.0.1:9/v1", name="unpriced")
    sent = post(program, "runs/", body)
    assert sent.status_code == 422
    assert words in sent.content.decode()
    assert not Run.objects.exists()


def test_runs_are_listed_with_their_counts(program: Client, project: Project) -> None:
    items = make_items(project, 3)
    make_judged(project, [(items[0], "detected"), (items[1], "missing")])
    [listed] = program.get(API + "runs/").json()["results"]
    counts = {name: listed[name] for name in ("number", "items", "pending", "missing")}
    assert counts == {"number": 1, "items": 3, "pending": 1, "missing": 1}


def test_a_run_says_what_the_page_says(program: Client, project: Project) -> None:
    run = planned(project)
    fail(run, Rejected("no"), number=2)
    said = program.get(f"{API}runs/1/").json()
    assert said["run"]["digest"] == run.digest
    assert said["run"]["pinned"]["model"] == run.endpoint.model
    assert said["run"]["pinned"]["parameters"] == {}
    assert said["run"]["sends"] == {"temperature": 0}
    assert said["progress"]["failed"] == 2
    assert said["missing"] == {"rejected": 2}
    assert said["failed"] == [{"cause": "rejected", "message": "no", "n": 2}]
    assert said["steps"] == ["pause", "cancel", "retry"]


def test_a_run_is_steered(program: Client, project: Project) -> None:
    planned(project)
    states = [
        post(program, f"runs/1/{step}/").json()["run"]["state"]
        for step in ("pause", "resume", "cancel")
    ]
    assert states == ["paused", "running", "cancelled"]


def test_a_run_goes_on_under_a_higher_cap(program: Client, project: Project) -> None:
    run = planned(project)
    Run.objects.update(cap=Decimal("0.35"))
    lifecycle.pause(run, None)
    for body, words in (
        ({"cap": "0.2"}, "A cap can only be raised."),
        ({"cap": -1}, "greater than or equal to 0"),
        ({"caps": 1}, "There is no 'caps'. There are cap."),
    ):
        sent = post(program, "runs/1/resume/", body)
        assert (sent.status_code, words in sent.content.decode()) == (422, True)
    said = post(program, "runs/1/resume/", {"cap": "2.5"}).json()["run"]
    assert (said["state"], said["cap"]) == ("running", "2.500000")


def test_a_step_that_is_not_open_is_refused(program: Client, project: Project) -> None:
    planned(project)
    sent = post(program, "runs/1/retry/")
    assert sent.status_code == 422
    assert sent.json()["detail"] == "This run has no failed requests."


def test_a_run_whose_replies_are_of_no_use_offers_a_supplement_and_has_nothing_to_retry(
    program: Client, project: Project
) -> None:
    run = planned(project)
    answer(run, finish="length")
    lifecycle.finish_if_done(run)
    assert program.get(f"{API}runs/1/").json()["steps"] == ["supplement", "archive"]
    sent = post(program, "runs/1/retry/")
    assert sent.status_code == 422
    assert sent.json()["detail"] == "This run has no failed requests."
    assert program.get(f"{API}runs/1/").json()["run"]["state"] == "finished"


def test_outcomes_are_narrowed_down_as_on_the_page(program: Client, project: Project) -> None:
    items = make_items(project, 3)
    said = ["detected", "undetected", "missing"]
    make_judged(project, zip(items, said, strict=True))
    found = program.get(API + "runs/1/outcomes/?result=parsed&counted=yes").json()
    assert [row["item"] for row in found["results"]] == ["item-1", "item-2"]
    assert found["results"][0]["result"] == "detected"
    assert program.get(API + "runs/1/outcomes/?result=nothing").status_code == 400


def test_outcomes_cost_the_same_for_few_and_for_many(
    program: Client, project: Project, django_assert_num_queries: Any
) -> None:
    program.get(API + "runs/")  # notes the use of the key, once an hour
    for number in (2, 50):
        make_judged(project, [(item, "detected") for item in make_items(project, number)])
        last = Run.objects.count()
        with django_assert_num_queries(4):
            assert len(program.get(f"{API}runs/{last}/outcomes/").json()["results"]) >= number


@pytest.mark.parametrize(
    "path, status",
    [
        ("results/nothing/", 404),
        ("results/undetected/?run=9", 404),
        ("results/undetected/?by=size", 400),
        ("runs/9/", 404),
    ],
)
def test_what_is_not_there_is_said_so(
    program: Client, project: Project, path: str, status: int
) -> None:
    sent = program.get(API + path)
    assert sent.status_code == status
    assert "detail" in sent.json()


def test_figures_are_grouped_and_chosen(program: Client, project: Project) -> None:
    items = make_items(project, 2)
    for result in ("detected", "undetected"):
        make_judged(project, [(item, result) for item in items])
    found = program.get(API + "results/undetected/?run=2&by=").json()
    assert found["columns"][:3] == ["run", "endpoint", "strategy"]
    assert [(row["run"], row["rate"], row["total"]) for row in found["rows"]] == [(2, 1.0, 2)]


def test_a_field_named_twice_is_a_column_once(program: Client, project: Project) -> None:
    make_judged(project, [(item, "detected") for item in make_items(project, 2)])
    found = program.get(API + "results/undetected/?by=ability,%20ability").json()
    assert found["columns"][2:6] == ["strategy", "run_name", "ability", "total"]
    assert len(found["rows"]) == 1


@pytest.mark.parametrize("table", ["dataset", "strength", "soft_labels", "blindspots"])
def test_a_field_that_no_item_can_have_is_refused(
    program: Client, project: Project, table: str
) -> None:
    make_items(project, 2)
    assert program.get(f"{API}results/{table}/?by=a%00b").status_code == 400


def test_a_name_of_a_field_keeps_no_character_that_postgresql_refuses() -> None:
    assert columns.parse_fields("ability, a\0b") == ["ability", "a\ufffdb"]


@pytest.mark.parametrize("by", [*grouping.GROUPING_COLUMNS, "task"])
def test_what_the_schema_offers_to_group_by_can_be_asked_for(
    program: Client, project: Project, by: str
) -> None:
    make_items(project, 2, fields={"task": "sums"})
    schema = SchemaGenerator().get_schema(request=None, public=True)
    asked = schema["paths"]["/api/v1/projects/{slug}/results/{table}/"]["get"]["parameters"]
    [offered] = [one["description"] for one in asked if one["name"] == "by"]
    assert by in offered
    assert program.get(f"{API}results/detector/?by={by}").status_code == 200


def test_the_schema_describes_every_route(capsys: pytest.CaptureFixture[str]) -> None:
    schema = SchemaGenerator().get_schema(request=None, public=True)
    assert "/api/v1/projects/{slug}/results/{table}/" in schema["paths"]
    assert "post" in schema["paths"]["/api/v1/projects/{slug}/runs/{number}/pause/"]
    assert "Warning" not in capsys.readouterr().err


def test_a_page_of_calls_ends_before_its_replies_are_too_long(
    program: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = planned(project)
    answer(run, '{"score": 5}' + "x" * 1000)
    monkeypatch.setattr(calls, "MAX_CHARACTERS", 2500)
    first = program.get(API + "runs/1/calls/?limit=1000").json()
    assert (first["count"], len(first["results"]), first["previous"]) == (3, 2, None)
    second = program.get(first["next"]).json()
    assert (len(second["results"]), second["next"]) == (1, None)
    assert program.get(second["previous"]).json()["results"] == first["results"]
    monkeypatch.setattr(calls, "MAX_CHARACTERS", 10)
    assert len(program.get(API + "runs/1/calls/").json()["results"]) == 1
