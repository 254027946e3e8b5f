"""Runs by every protocol, against a server that speaks it."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from judging.models import Endpoint
from judging.models.evaluators import REMAINING_EVERY
from tests.builders import make_project
from tests.judging.builders_judging import (
    ONE_CALL,
    TWO_CALLS,
    make_endpoint,
    make_items,
    make_run,
    results,
    work,
)
from tests.services.scripted_evaluator import Script, ScriptedEvaluator

WAYS: dict[str, dict[str, Any]] = {
    "chat": {"json_mode": "json_object"},
    "completions": {"api": "completions", "template": "[INST] {{system}} {{prompt}} [/INST]"},
    "anthropic": {"provider": "anthropic", "json_mode": "json_schema"},
    "gemini": {"provider": "gemini", "json_mode": "json_schema"},
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("strategy", [ONE_CALL, TWO_CALLS, "pairwise"])
def test_a_run_is_answered_in_every_frame(
    evaluator: ScriptedEvaluator, way: str, strategy: str
) -> None:
    project = make_project()
    make_items(project, 3)
    address = evaluator.gemini_address if way == "gemini" else evaluator.address
    endpoint = make_endpoint(address, **WAYS[way])
    run = work(make_run(project, endpoint, strategy))
    assert run.state == "finished"
    assert set(results(run)) <= {"detected", "undetected"}
    assert {entry["status"] for entry in evaluator.log} == {200}


@pytest.mark.django_db(transaction=True)
def test_what_is_left_is_noted_while_a_run_is_asked(evaluator: ScriptedEvaluator) -> None:
    evaluator.script = Script(headers={"anthropic-ratelimit-requests-remaining": "49"})
    project = make_project()
    make_items(project, 2)
    endpoint = make_endpoint(evaluator, provider="anthropic")
    work(make_run(project, endpoint))
    endpoint.refresh_from_db()
    assert endpoint.remaining["limits"] == {"requests": {"left": 49}}


@pytest.mark.django_db
def test_what_is_left_is_written_every_few_seconds_at_most() -> None:
    endpoint = make_endpoint("https://evaluator.example/v1")
    now = timezone.now().replace(microsecond=0)
    for seconds, left in ((0, 9), (1, 8), (4.9, 7)):
        endpoint.note_remaining({"requests": {"left": left}}, now + timedelta(seconds=seconds))
    stored = Endpoint.objects.get(pk=endpoint.pk)
    assert stored.remaining["limits"]["requests"]["left"] == 9
    stored.note_remaining({"requests": {"left": 6}}, now + REMAINING_EVERY)
    assert Endpoint.objects.get(pk=endpoint.pk).remaining["limits"]["requests"]["left"] == 6


@pytest.mark.django_db
def test_a_reply_without_such_headers_leaves_what_was_said() -> None:
    endpoint = make_endpoint("https://evaluator.example/v1")
    endpoint.note_remaining({"requests": {"left": 9}}, timezone.now() - timedelta(hours=1))
    endpoint.note_remaining({}, timezone.now())
    assert endpoint.remaining["limits"] == {"requests": {"left": 9}}
