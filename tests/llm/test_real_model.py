"""Every shipped strategy over one item, or MODEL_ITEMS of them, with a real language model: it ends
in a reading or in a named cause, never in a wrong value, and never hangs. `make test-llm`, half an
hour.

The model is small, so most of its replies are of no use. Which they are is of no interest here.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judging import demo_model
from judging.demo_model import LocalModel
from judging.errors import Refused
from judging.models import Endpoint, Outcome, Reply, Run
from judging.runs import progress
from judging.strategies import load_all
from tests.judging.builders_cases import CASES, run_case
from tests.judging.builders_judging import make_endpoint

ITEMS = int(os.environ.get("MODEL_ITEMS", "1"))
# A reply of 400 tokens takes some ten seconds on an idle core.
SECONDS = 900 * ITEMS
ASKED = [slug for slug, case in CASES.items() if case.calls and not case.baseline]
# What a check of explanations is told if the run that it is over has no reading of an undetected
# error.
NOTHING_TO_CHECK = "there is nothing to check"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    gguf, python = Path(os.environ["MODEL_GGUF"]), Path(os.environ["MODEL_PYTHON"])
    log = tmp_path_factory.mktemp("model") / "model.log"
    with demo_model.running_server(LocalModel(gguf, python, 8099, log)) as address:
        yield address


def make_local(address: str, **ways: Any) -> Endpoint:
    """An endpoint of the served model with what "a server on this machine" sets, but for a shorter
    reply."""
    usual = {"in_flight": 2, "timeout": 600, "parameters": {"max_tokens": 200}}
    return make_endpoint(address, **{**usual, "json_mode": "json_schema", **ways})


def assert_told(run: Run) -> None:
    """Each outcome is a reading of what the model said, or has a cause."""
    replies = list(Reply.objects.filter(request__endpoint=run.endpoint))
    failed = progress.count_progress(run).failures
    assert replies or failed
    assert not run.outcomes.filter(result="pending").exists() or run.state == Run.State.PAUSED
    for outcome in run.outcomes.all():
        if outcome.result == Outcome.Result.MISSING:
            assert outcome.cause
        elif outcome.result != Outcome.Result.PENDING:
            assert_read(outcome, [reply.text for reply in replies])


def assert_read(outcome: Outcome, said: list[str]) -> None:
    """Every number that an outcome holds was said by the model, apart from counts and means."""
    numbers = {float(one) for text in said for one in re.findall(r"-?\d+(?:\.\d+)?", text)}
    for name in ("gold", "perturbed", "score"):
        value = outcome.values.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            assert float(value) in numbers, (name, value, said)


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(2 * SECONDS)
@pytest.mark.parametrize("slug", ASKED)
def test_a_strategy_ends_in_readings_or_in_named_causes(address: str, slug: str) -> None:
    """Up to some minutes: a real model writes every token."""
    try:
        run, _ = run_case(slug, lambda: make_local(address), limit=ITEMS, seconds=SECONDS)
    except Refused as problem:
        if not CASES[slug].over or NOTHING_TO_CHECK not in str(problem):
            raise
        return
    assert run.state in {Run.State.FINISHED, Run.State.PAUSED}
    assert run.state == Run.State.FINISHED or run.reason
    assert_told(run)


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(2 * SECONDS)
@pytest.mark.parametrize(
    "way",
    [
        {"api": "chat"},
        {"api": "completions", "json_mode": "", "template": "{{system}}\n\n{{prompt}}\n"},
        {"provider": "anthropic"},
    ],
    ids=["chat", "completions", "anthropic"],
)
def test_the_server_is_understood_in_both_of_its_protocols(
    address: str, way: dict[str, Any]
) -> None:
    """A minute: a real model writes every token."""
    run, _ = run_case("vanilla-score", lambda: make_local(address, **way), limit=1, seconds=SECONDS)
    assert run.state == Run.State.FINISHED
    replies = Reply.objects.filter(request__endpoint=run.endpoint)
    assert replies.count() == 2
    for reply in replies:
        assert reply.text
        assert reply.tokens_in
        assert reply.tokens_out
    assert_told(run)


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(2 * SECONDS)
def test_by_schema_every_reply_is_the_object_that_was_asked_for(address: str) -> None:
    """A minute: a real model writes every token."""
    run, _ = run_case("vanilla-score", lambda: make_local(address), limit=1, seconds=SECONDS)
    schema = load_all()["vanilla-score"].schema
    assert schema
    for reply in Reply.objects.filter(request__endpoint=run.endpoint):
        assert json.loads(reply.text).keys() == schema["properties"].keys()
