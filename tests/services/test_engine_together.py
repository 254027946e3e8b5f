"""Two runs that want the same at the same moment, planned and asked by two processes."""

from collections import Counter
from collections.abc import Iterator

import pytest

from judging.models import Reply, Run
from tests.builders import make_project
from tests.judging.builders_judging import TWO_CALLS, make_endpoint, make_items, make_run, results
from tests.services.processes import Processes, finish
from tests.services.scripted_evaluator import Script, ScriptedEvaluator, running

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]
ITEMS = 150


@pytest.fixture
def evaluator() -> Iterator[ScriptedEvaluator]:
    with running(Script(latency=0.05)) as evaluator:
        yield evaluator


# With Redis every process asks for both runs, without it each run is asked for by one of them.
@pytest.mark.redis
@pytest.mark.parametrize("limits", ["redis", "memory"])
def test_two_processes_with_runs_that_want_the_same_send_each_request_once(
    evaluator: ScriptedEvaluator, processes: Processes, limits: str
) -> None:
    runs: list[Run] = []
    for _ in range(2):
        project = make_project()
        make_items(project, ITEMS)
        runs.append(make_run(project, make_endpoint(evaluator, model="same"), TWO_CALLS))
    shared = {"REDIS_URL": processes.broker()} if limits == "redis" else {}
    processes.work_loop("--workers", "2", **shared)
    for run in runs:
        finish(run)
    assert Counter(entry["attempt"] for entry in evaluator.log) == {1: 2 * ITEMS}
    assert Reply.objects.count() == 2 * ITEMS
    assert results(runs[0]) == results(runs[1])
    assert sum(results(runs[0]).values()) == ITEMS
