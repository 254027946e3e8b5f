"""What makes two requests one: nothing is paid for twice, and nothing else passes for the same."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from hypothesis import assume, given
from hypothesis import strategies as st

from annotation.models import Project
from judging.evaluators import providers
from judging.models import Call, Request, Run
from judging.runs import canaries, lifecycle
from judging.runs.engine import rendering
from judging.strategies.frames import RenderedPrompt
from tests.builders import make_project
from tests.judging.builders_judging import (
    ONE_CALL,
    TWO_CALLS,
    make_endpoint,
    make_items,
    make_run,
    make_strategy,
    work,
)
from tests.services.scripted_evaluator import ScriptedEvaluator

SAME = {"model": "same", "parameters": {"max_tokens": 50}}
ITEMS = 4

WAYS: dict[str, dict[str, str]] = {
    "chat": {"provider": "openai_compatible"},
    "completions": {
        "provider": "openai_compatible",
        "api": "completions",
        "template": "[INST] {{prompt}} [/INST]",
    },
    "anthropic": {"provider": "anthropic"},
    "gemini": {"provider": "gemini"},
}
TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)
NAME = st.from_regex(r"[a-z][a-z0-9.-]{0,20}", fullmatch=True)
VALUE = st.one_of(st.integers(-9, 9), st.floats(0, 2), st.text("ab", max_size=3), st.booleans())


def identity(
    way: str, *, text: str = "x", model: str = "m", parameters: Mapping[str, Any] | None = None
) -> str:
    """The digest of a request, made as a run makes it."""
    pinned = {"address": "https://evaluator.example/v1", **WAYS[way]}
    pinned |= {"model": model, "parameters": dict(parameters or {})}
    run = Run(pinned=pinned)
    return rendering.compute_request_digest(
        run, providers.build_body(pinned, RenderedPrompt("", text))
    )


def changed(text: str, at: int, letter: str) -> str:
    """The text with another character in one place."""
    place = at % len(text)
    return text[:place] + letter + text[place + 1 :]


@pytest.mark.parametrize("way", WAYS)
@given(text=TEXT, at=st.integers(0, 99), letter=st.characters(codec="utf-8"))
def test_one_other_character_in_a_prompt_makes_another_request(
    way: str, text: str, at: int, letter: str
) -> None:
    other = changed(text, at, letter)
    assume(other != text)
    assert identity(way, text=other) != identity(way, text=text)
    assert identity(way, text=text + letter) != identity(way, text=text)


@pytest.mark.parametrize("way", WAYS)
@given(model=NAME, at=st.integers(1, 99), letter=st.sampled_from("az09-."))
def test_one_other_character_in_a_model_makes_another_request(
    way: str, model: str, at: int, letter: str
) -> None:
    other = f"{model[:1]}{changed(model[1:] or letter, at, letter)}"
    assume(other != model)
    assert identity(way, model=other) != identity(way, model=model)


@pytest.mark.parametrize("way", WAYS)
@given(name=st.sampled_from(["seed", "top_p", "max_tokens", "stop"]), one=VALUE, other=VALUE)
def test_another_value_of_a_parameter_makes_another_request(
    way: str, name: str, one: object, other: object
) -> None:
    assume(repr(one) != repr(other))
    requests = {
        identity(way),
        identity(way, parameters={name: one}),
        identity(way, parameters={name: other}),
    }
    assert len(requests) == 3


@pytest.mark.parametrize("way", WAYS)
def test_the_order_of_parameters_makes_no_other_request(way: str) -> None:
    one, other = {"seed": 1, "top_p": 0.5}, {"top_p": 0.5, "seed": 1}
    assert identity(way, parameters=one) == identity(way, parameters=other)


def test_every_way_to_ask_makes_requests_of_its_own() -> None:
    assert len({identity(way) for way in WAYS}) == len(WAYS)


@pytest.fixture
def project() -> Project:
    project = make_project()
    make_items(project, ITEMS)
    return project


def asked(evaluator: ScriptedEvaluator) -> Counter[int]:
    """How many requests were sent for the first, second ... time."""
    return Counter(entry["attempt"] for entry in evaluator.log)


@pytest.mark.django_db(transaction=True)
def test_what_one_run_asked_no_other_run_asks_again(
    evaluator: ScriptedEvaluator, project: Project
) -> None:
    first = work(make_run(project, make_endpoint(evaluator, **SAME), TWO_CALLS))
    # Again, as another endpoint with the same model at the same address, in another project, and
    # as a copy.
    work(make_run(project, first.endpoint, TWO_CALLS, seed=2))
    work(make_run(project, make_endpoint(evaluator, **SAME), TWO_CALLS))
    elsewhere = make_project()
    make_items(elsewhere, ITEMS)
    work(make_run(elsewhere, first.endpoint, TWO_CALLS))
    work(lifecycle.clone_run(first, None, as_pinned=True))
    assert asked(evaluator) == {1: 2 * ITEMS}
    assert {run.state for run in Run.objects.all()} == {Run.State.FINISHED}
    assert Call.objects.count() == 5 * 2 * ITEMS


@pytest.mark.django_db(transaction=True)
def test_another_model_or_parameter_asks_anew(
    evaluator: ScriptedEvaluator, project: Project
) -> None:
    for other in ({}, {"model": "samf"}, {"parameters": {"max_tokens": 51}}):
        work(make_run(project, make_endpoint(evaluator, **{**SAME, **other})))
    assert asked(evaluator) == {1: 3 * ITEMS}
    assert Request.objects.count() == 3 * ITEMS


@pytest.mark.django_db(transaction=True)
def test_repeats_ask_for_what_is_lacking_and_each_asking_of_a_canary_for_all_of_it(
    evaluator: ScriptedEvaluator, project: Project
) -> None:
    endpoint = make_endpoint(evaluator, **SAME)
    work(make_run(project, endpoint, ONE_CALL))
    work(make_run(project, endpoint, ONE_CALL, samples=3))
    assert asked(evaluator) == {1: ITEMS, 2: ITEMS, 3: ITEMS}
    work(make_run(project, endpoint, ONE_CALL, samples=2))
    assert sum(asked(evaluator).values()) == 3 * ITEMS
    strategy = make_strategy(ONE_CALL)
    canary = work(canaries.start_canary(project, strategy=strategy, endpoint=endpoint))
    work(canaries.repeat_canary(canary))
    assert asked(evaluator) == {1: ITEMS, 2: ITEMS, 3: ITEMS, 4: ITEMS, 5: ITEMS}


@pytest.mark.django_db(transaction=True)
def test_one_request_serves_all_items_of_the_published_data_that_share_their_gold_answer(
    shared_data: Path,
) -> None:
    archive = str(shared_data / "fbi" / "data.zip")
    call_command("import_items", archive, project="fbi", create=True, accept=True, verbosity=0)
    endpoint = make_endpoint("https://evaluator.example/v1")
    run = make_run(Project.objects.get(slug="fbi"), endpoint, TWO_CALLS)
    lifecycle.plan_calls(run)
    gold = run.calls.filter(role="gold")
    assert gold.count() == 2400
    assert gold.values("request").distinct().count() == 760
