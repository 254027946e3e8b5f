"""Every shipped strategy, from its file to outcomes, against a server that answers what it asks."""

import pytest

from judging.strategies import frames, load_all
from tests.judging.builders_cases import CASES, ITEMS, run_case
from tests.judging.builders_judging import make_endpoint, results
from tests.services.scripted_evaluator import Script, ScriptedEvaluator
from tests.services.scripted_judge import Judge


def test_every_shipped_strategy_has_a_case_and_every_frame_is_run() -> None:
    assert CASES.keys() == load_all().keys()
    assert {load_all()[slug].frame for slug in CASES} == frames.FRAMES.keys()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("slug", CASES)
def test_a_strategy_runs_in_its_frame_to_outcomes(evaluator: ScriptedEvaluator, slug: str) -> None:
    case = CASES[slug]
    if case.over == ("vanilla",):
        # Who notices nothing scores every answer alike: only of such are explanations checked.
        evaluator.script = Script(judge=Judge(sees=0.0))
    run, _ = run_case(slug, lambda: make_endpoint(evaluator))
    assert run.state == "finished"
    assert results(run).keys() <= case.results
    assert sum(results(run).values()) == ITEMS
    assert run.outcomes.main().count() == ITEMS
    assert run.calls.count() == case.calls
    asked = [entry for entry in evaluator.log if entry["model"] == run.endpoint.model]
    assert len(asked) == (0 if case.baseline or not case.calls else case.calls)
    assert {entry["status"] for entry in evaluator.log} <= {200}
