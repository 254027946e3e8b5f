"""Runs in the API that are estimated, piloted, cloned, derived, read again, asked again."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from annotation.models import Project
from judging.errors import Refused
from judging.evaluators.providers.errors import Rejected
from judging.models import Endpoint, Run
from judging.runs import canaries, derived, lifecycle
from tests.builders import make_member, make_project, make_slot
from tests.judging.builders_judging import (
    answer,
    answer_as,
    api_client,
    fail,
    make_endpoint,
    make_items,
    make_judged,
    make_responses,
    make_run,
    make_strategy,
)

pytestmark = pytest.mark.django_db

API = "/api/v1/projects/fbi/"
NOBODY = "http://127.0.0.1:9/v1"
WISH = {"strategy": "reference", "endpoint": "judge", "seed": 1}


@pytest.fixture
def judge() -> Endpoint:
    return make_endpoint(NOBODY, name="judge", price_in=Decimal(10), price_out=Decimal(20))


def post(program: Client, path: str, body: Any = None, status: int = 200) -> Any:
    sent = program.post(API + path, body or {}, content_type="application/json")
    assert sent.status_code == status, sent.content
    return sent.json()


def _loses_one(body: str) -> str:
    return '{"score": 8}' if "legs have 1 spiders" in body else '{"score": 10}'


def ended(project: Project, judge: Endpoint, text: str = '{"score": 5}', **values: Any) -> Run:
    run = make_run(project, judge, **values)
    lifecycle.plan_calls(run)
    answer(run, text)
    lifecycle.finish_if_done(run)
    run.refresh_from_db()
    return run


def test_a_run_takes_everything_that_the_form_takes(
    program: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 4)
    make_items(project, 2, ability="long-form", source_ability="long-form")
    body = {
        **WISH,
        "strategy": "axis",
        "abilities": ["factual"],
        "categories": ["number-errors"],
        "keys": ["item-1", "item-2", "item-5"],
        "samples": 3,
        "votes": True,
        "axes": ["main"],
        "parameters": {"temperature": 0.7},
        "cap": "2.5",
    }
    said = post(program, "runs/", body, 201)["run"]
    assert said["pinned"]["own"] == {
        "parameters": {"temperature": 0.7},
        "axes": ["main"],
        "votes": True,
    }
    assert (said["samples"], said["cap"], said["kind"]) == (3, "2.500000", "asked")
    assert Run.objects.get().outcomes.count() == 2


@pytest.mark.parametrize(
    "body, words",
    [
        ({"keys": ["nothing"]}, "no items nothing"),
        ({"axes": ["main"]}, "has no axes"),
        ({"votes": True}, "Votes need at least 2 samples"),
        ({"samples": 0}, "samples"),
        ({"parameters": {"secret": 1}}, "looks like a key"),
        ({"parameters": []}, "parameters"),
        ({"strategy": "explanation-check"}, "Choose one"),
        ({"strategy": "majority"}, "Combine finished runs"),
    ],
)
def test_what_cannot_be_asked_is_refused_alike_by_start_estimate_and_pilot(
    program: Client, project: Project, judge: Endpoint, body: dict[str, Any], words: str
) -> None:
    make_items(project, 1)
    for path in ("runs/", "runs/estimate/", "runs/pilot/"):
        said = post(program, path, {**WISH, **body}, 422)
        assert words in str(said)
    assert not Run.objects.exists()


def test_an_estimate_starts_nothing_and_a_pilot_gives_it_an_interval(
    program: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 40)
    said = post(program, "runs/estimate/", WISH)
    assert (said["requests"], said["stored"], said["to_ask"]) == (40, 0, 40)
    assert (said["by_pilot"], said["wants_pilot"], said["pilots"]) == (None, True, [])
    assert not Run.objects.exists()
    assert post(program, "runs/pilot/", WISH)["pilots"] == [1]
    assert post(program, "runs/pilot/", WISH)["pilots"] == [1]
    pilot = Run.objects.get()
    lifecycle.plan_calls(pilot)
    answer(pilot)
    lifecycle.finish_if_done(pilot)
    said = post(program, "runs/estimate/", WISH)
    # 10 calls are left, of 100 tokens in at 10 a million and 10 out at 20: 0.0012 each.
    assert said["by_pilot"] == {"value": "0.012000", "low": "0.012000", "high": "0.012000"}
    assert (said["pilot"]["n"], said["stored"], said["pilots"]) == (30, 30, [])
    assert program.get(API + "runs/").json()["results"] == []


def test_a_run_along_axes_asks_the_own_axis_of_each_item_unless_all_are_chosen(
    program: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 2)
    wish = {**WISH, "strategy": "axis"}
    for axes, calls, pinned in (([], 4, ["main"]), (["all"], 16, ["all"])):
        said = post(program, "runs/estimate/", {**wish, "axes": axes})
        assert (said["calls"], said["axes"]) == (calls, pinned)
        number = post(program, "runs/", {**wish, "axes": axes}, 201)["run"]["number"]
        assert Run.objects.get(number=number).pinned["own"]["axes"] == pinned
    assert post(program, "runs/estimate/", WISH)["axes"] == []


def test_an_estimate_is_a_range_and_says_what_became_of_the_same_items(
    program: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 9)
    first = make_run(project, judge, limit=4)
    said = post(program, "runs/estimate/", {**WISH, "same_as": first.number})
    assert said["items"] == 4
    assert said["same_items"] == {
        "number": first.number, "items": 4, "used": 4, "changed": 0, "left_out": 0
    }  # fmt: skip
    assert Decimal(said["price"]["low"]) < Decimal(said["price"]["high"])
    assert said["price"]["high"] == said["cost"]
    assert said["tokens_out"] == {"low": 0, "high": 4 * 1024}
    assert 0 < said["tokens_in"]["low"] < said["tokens_in"]["high"]
    number = post(program, "runs/", {**WISH, "same_as": first.number}, 201)["run"]["number"]
    same = set(Run.objects.get(number=number).outcomes.values_list("item", flat=True))
    assert same == set(first.outcomes.values_list("item", flat=True))
    post(program, "runs/", {**WISH, "same_as": 99}, 404)
    assert post(program, "runs/estimate/", WISH)["same_items"] is None


def test_an_unknown_price_is_null(program: Client, project: Project) -> None:
    make_items(project, 1)
    make_endpoint(NOBODY, name="judge")
    said = post(program, "runs/estimate/", WISH)
    assert (said["cost"], said["price"]) == (None, None)


def test_only_a_lead_asks_about_items_that_are_being_labelled(
    program: Client, project: Project, judge: Endpoint
) -> None:
    [item] = make_items(project, 1)
    make_slot(item)
    assert post(program, "runs/estimate/", WISH)["labelling"] == 1
    body = {**WISH, "while_labelling": True}
    assert "ask a lead to allow it" in post(program, "runs/", WISH, 422)["detail"]
    assert "Only a lead" in post(program, "runs/", body, 422)["detail"]
    lead = api_client(make_member(project, role="lead"))
    assert post(lead, "runs/", body, 201)["run"]["while_labelling"] is True


def test_runs_are_narrowed_down(program: Client, project: Project, judge: Endpoint) -> None:
    make_items(project, 1)
    ended(project, judge)
    make_run(project, judge)
    assert post(program, "runs/1/archive/")["run"]["archived_at"]

    def numbers(query: str = "") -> list[int]:
        return [row["number"] for row in program.get(API + "runs/" + query).json()["results"]]

    assert numbers() == [2]
    assert numbers("?archived=true") == [2, 1]
    assert numbers("?state=finished") == []
    assert numbers("?kind=asked&endpoint=judge&strategy=reference") == [2]
    assert program.get(API + "runs/?state=nonsense").status_code == 400
    assert post(program, "runs/1/unarchive/")["run"]["archived_at"] is None
    assert numbers() == [2, 1]


def test_a_run_is_cloned_as_it_was_pinned(
    program: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 2)
    run = ended(project, judge)
    said = post(program, "runs/1/clone/", {"as_pinned": True, "cap": "1"}, 201)["run"]
    assert (said["number"], said["digest"], said["cap"]) == (2, run.digest, "1.000000")
    assert "cap" in str(post(program, "runs/1/clone/", {"cap": 0}, 422))


def test_votes_are_counted(program: Client, project: Project) -> None:
    items = make_items(project, 2)
    for said in (["detected", "undetected"], ["detected", "detected"]):
        make_judged(project, zip(items, said, strict=True))
    body = {"strategy": "majority", "runs": [1, 2]}
    said = post(program, "runs/derive/", body, 201)["run"]
    assert (said["kind"], said["state"], said["sources"]) == ("derived", "finished", [1, 2])
    results = [row["result"] for row in program.get(f"{API}runs/3/outcomes/").json()["results"]]
    # One of two is no majority.
    assert results == ["detected", "undetected"]
    for step in ("resume", "retry", "clone"):
        assert "sends no requests" in post(program, f"runs/3/{step}/", None, 422)["detail"]
    assert (
        program.post(
            API + "runs/derive/",
            {"strategy": "majority", "runs": [9]},
            content_type="application/json",
        ).status_code
        == 404
    )
    assert "calls an evaluator" in str(
        post(program, "runs/derive/", {"strategy": "reference", "runs": [1, 2]}, 422)
    )


def test_votes_have_weights(program: Client, project: Project) -> None:
    items = make_items(project, 2)
    for said in (["detected", "undetected"], ["undetected", "detected"]):
        make_judged(project, zip(items, said, strict=True))
    body = {"strategy": "weighted-votes", "runs": [2, 1], "weights": [3, 1]}
    post(program, "runs/derive/", body, 201)
    results = [row["result"] for row in program.get(f"{API}runs/3/outcomes/").json()["results"]]
    assert results == ["undetected", "detected"]
    for wrong, words in (
        ({"weights": [3]}, "Give one weight for each run"),
        ({"weights": []}, "Give run 1 a weight"),
        ({"weights": [0, 1]}, "A weight is a number above 0"),
        ({"weights": ["x", 1]}, "valid number"),
        ({"strategy": "minority-veto"}, "Only weighted votes have weights"),
        ({"runs": [1, 1], "weights": [1, 2]}, "each run once"),
    ):
        assert words in str(post(program, "runs/derive/", {**body, **wrong}, 422))
    assert Run.objects.count() == 3


def test_numbers_have_no_veto(program: Client) -> None:
    project = make_project("rated", task_type="rating")
    make_responses(project, ["3/2/1"])
    scored = [(item, "scored") for item in project.items.all()]
    endpoint = make_endpoint(NOBODY, name="rater")
    runs = [
        make_judged(project, scored, strategy="likert", endpoint=endpoint, seed=seed)
        for seed in (1, 2)
    ]
    with pytest.raises(Refused, match="which have no such vote"):
        derived.derive_run(project, strategy=make_strategy("minority-veto"), sources=runs)


def test_what_another_parser_would_change_is_said_and_applied(judge: Endpoint) -> None:
    project = make_project("fbi", task_type="error-detection")
    program = api_client(make_member(project, role="researcher"))
    make_responses(project, ["error", "no_error"])
    text = "At first the response is correct. Therefore, the model response contains an error."
    ended(project, judge, text, strategy="detect-1a")
    said = post(program, "runs/1/reparse/preview/", {"parser": "strict"})
    assert (said["outcomes"], said["changed"]) == (2, 2)
    assert said["counts"] == [{"before": "undetected no_error", "after": "detected error", "n": 2}]
    assert said["changes"][0]["item"] == "item-1"
    assert post(program, "runs/1/reparse/preview/")["changed"] == 0
    assert "There is no parser 'mine'" in str(
        post(program, "runs/1/reparse/", {"parser": "mine"}, 422)
    )
    applied = post(program, "runs/1/reparse/", {"parser": "strict"})["run"]
    assert "strict" in applied["parser"]
    assert applied["state"] == "finished"


def test_a_canary_is_asked_again_and_says_how_far_it_drifted(
    program: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 10)
    first = canaries.start_canary(
        project,
        strategy=make_strategy("reference"),
        endpoint=judge,
        config=lifecycle.RunConfig(seed=1),
    )
    lifecycle.plan_calls(first)
    answer(first, '{"score": 10}')
    lifecycle.finish_if_done(first)
    assert program.get(f"{API}runs/1/canary/").json() == {"askings": [1], "drifts": []}
    second = post(program, "runs/1/canary/", None, 201)["run"]["number"]
    run = Run.objects.get(number=second)
    lifecycle.plan_calls(run)
    answer_as(run, _loses_one)
    lifecycle.finish_if_done(run)
    # From any of its askings; one of ten items lost points.
    for number in (1, 2):
        [drift] = program.get(f"{API}runs/{number}/canary/").json()["drifts"]
        assert (drift["run"], drift["changed"], drift["share"]["value"]) == (2, 1, 0.1)


def test_what_is_no_canary_has_no_drift(program: Client, project: Project, judge: Endpoint) -> None:
    make_items(project, 1)
    make_run(project, judge)
    sent = program.get(f"{API}runs/1/canary/")
    assert sent.status_code == 422
    assert "is not a canary" in sent.json()["detail"]


def test_calls_come_with_their_replies_and_readings(
    program: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 3)
    run = make_run(project, judge)
    lifecycle.plan_calls(run)
    answer(run, '{"explanation": "<b>fine</b>", "score": 7}', number=1)
    fail(run, Rejected("no"), number=1)
    found = program.get(f"{API}runs/1/calls/").json()["results"]
    assert sorted(row["state"] for row in found) == ["answered", "failed", "waiting"]
    by_state = {row["state"]: row for row in found}
    assert by_state["answered"]["reply"]["text"] == '{"explanation": "<b>fine</b>", "score": 7}'
    assert by_state["answered"]["readings"][0]["value"] == 7
    assert (by_state["failed"]["cause"], by_state["failed"]["message"]) == ("rejected", "no")
    assert (by_state["waiting"]["reply"], by_state["waiting"]["readings"]) == (None, [])
    one = program.get(f"{API}runs/1/calls/?item=item-2").json()["results"]
    assert [row["item"] for row in one] == ["item-2"]


def test_calls_cost_the_same_for_few_and_for_many(
    program: Client, project: Project, judge: Endpoint, django_assert_num_queries: Any
) -> None:
    program.get(API + "runs/")  # notes the use of the key, once an hour
    for number in (2, 30):
        make_items(project, number)
        ended(project, judge)
        last = Run.objects.count()
        # One of them asks how long the replies are.
        with django_assert_num_queries(6):
            assert len(program.get(f"{API}runs/{last}/calls/").json()["results"]) >= number


def test_the_schema_describes_what_is_made_of_runs(capsys: pytest.CaptureFixture[str]) -> None:
    paths = SchemaGenerator().get_schema(request=None, public=True)["paths"]
    run = "/api/v1/projects/{slug}/runs/{number}/"
    for path in ("clone/", "canary/", "reparse/", "reparse/preview/", "archive/"):
        assert "post" in paths[run + path]
    estimate = paths["/api/v1/projects/{slug}/runs/estimate/"]["post"]
    assert "requestBody" in estimate
    assert "422" in estimate["responses"]
    assert "Warning" not in capsys.readouterr().err


def test_no_call_is_about_an_item_that_no_column_takes(
    program: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 1)
    ended(project, judge)
    assert program.get(f"{API}runs/1/calls/?item=%00").json()["results"] == []
