"""Runs by every protocol, against a server that speaks it."""

from datetime import timedelta

import pytest
from django.utils import timezone

from judging.evaluators.models import REMAINING_EVERY
from judging.models import Endpoint
from judging.strategies import frames, load_all
from tests.builders import make_project
from tests.judging.builders_cases import CASES, run_case
from tests.judging.builders_judging import (
    make_endpoint,
    make_items,
    make_run,
    results,
    work,
)
from tests.judging.providers.ways import WAYS
from tests.services.scripted_evaluator import Script, ScriptedEvaluator
from tests.services.scripted_judge import Judge

# One strategy for each frame in which an evaluator is asked, and for each form of answer.
STRATEGIES = [
    "vanilla-score", "pairwise", "reference", "prometheus", "detect-1a", "likert", "score-chain",
    "matching", "explanation-check", "generate-gold", "generate-entity",
    "generate-requirements", "suggest-ability", "translate",
]  # fmt: skip


def test_every_frame_is_asked_by_every_protocol() -> None:
    asked = {load_all()[slug].frame for slug in STRATEGIES}
    assert asked == frames.FRAMES.keys() - {"fold"}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("slug", STRATEGIES)
def test_a_run_is_answered_in_every_frame(
    evaluator: ScriptedEvaluator, way: str, slug: str
) -> None:
    evaluator.script = Script(judge=Judge(sees=0.0))
    run, _ = run_case(slug, lambda: make_endpoint(evaluator, **WAYS[way].endpoint(evaluator)))
    assert run.state == "finished"
    assert set(results(run)) <= CASES[slug].results
    assert {entry["status"] for entry in evaluator.log} == {200}


# What a fault comes to, and in which ways to something else: completions have no refusals, Gemini
# calls every refusal a filter's, and Anthropic has no filter.
CAUSES: dict[str, tuple[str, dict[str, str]]] = {
    "truncated": ("truncated", {}),
    "empty": ("empty", {}),
    "rejected": ("rejected", {}),
    "too_large": ("rejected", {}),
    "redirect": ("rejected", {}),
    "refused": ("refused", {"completions": "unparsable", "gemini": "filtered"}),
    "filtered": ("filtered", {"anthropic": ""}),
    "filtered_prompt": ("filtered", {"anthropic": ""}),
}
MISSING = [
    (way, fault, other.get(way, usual))
    for fault, (usual, other) in CAUSES.items()
    for way in WAYS
    if other.get(way, usual)
]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("way", "fault", "cause"), MISSING)
def test_what_is_no_verdict_is_missing_for_its_cause_by_every_protocol(
    evaluator: ScriptedEvaluator, way: str, fault: str, cause: str
) -> None:
    evaluator.script = Script(faults={fault: ""})
    project = make_project()
    make_items(project, 2)
    run = work(make_run(project, make_endpoint(evaluator, **WAYS[way].endpoint(evaluator))))
    # Where the very first calls are all rejected, somebody is to look before it goes on.
    state = "paused" if cause == "rejected" else "finished"
    assert (run.state, results(run)) == (state, {cause: 2})
    assert {entry["attempt"] for entry in evaluator.log} == {1}


# The reasons that the protocols document beside those of the faults above, as a gateway may pass
# them on too, and the cause of each; "" for a normal end.
ENDS = {
    "chat": {
        "stop": "",
        "tool_calls": "interrupted",
        "function_call": "interrupted",
        "error": "interrupted",
        "abort": "interrupted",
        "model_length": "truncated",
        "SAFETY": "filtered",
        "a-reason-of-tomorrow": "interrupted",
    },
    "anthropic": {
        "stop_sequence": "",
        "tool_use": "interrupted",
        "pause_turn": "interrupted",
        "compaction": "interrupted",
        "model_context_window_exceeded": "truncated",
    },
    "gemini": {
        "LANGUAGE": "filtered",
        "MODEL_ARMOR": "filtered",
        "ESCALATION": "filtered",
        "BLOCKLIST": "filtered",
        "SPII": "filtered",
        "MALFORMED_RESPONSE": "interrupted",
        "MALFORMED_FUNCTION_CALL": "interrupted",
        "UNEXPECTED_TOOL_CALL": "interrupted",
        "TOO_MANY_TOOL_CALLS": "interrupted",
        "OTHER": "interrupted",
        "FINISH_REASON_UNSPECIFIED": "interrupted",
    },
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("way", "reason", "cause"),
    [(way, reason, cause) for way, ends in ENDS.items() for reason, cause in ends.items()],
)
def test_a_reply_is_read_only_after_a_normal_end(
    evaluator: ScriptedEvaluator, way: str, reason: str, cause: str
) -> None:
    evaluator.script = Script(finish=reason, judge=Judge(sees=1.0))
    project = make_project()
    make_items(project, 1)
    run = work(make_run(project, make_endpoint(evaluator, **WAYS[way].endpoint(evaluator))))
    [result] = results(run)
    assert result == cause if cause else result in {"scored", "detected", "undetected"}


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
