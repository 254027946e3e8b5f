"""From stored replies to outcomes; what each frame decides is shown in test_decisions."""

import tracemalloc

import pytest

from annotation.models import Project
from judging.evaluators.providers.errors import TimedOut
from judging.models import Outcome, Reading, Reply, Run
from judging.runs import lifecycle
from judging.runs.engine import outcomes
from tests.builders import make_project
from tests.judging.builders_judging import (
    answer,
    fail,
    make_baseline,
    make_endpoint,
    make_items,
    make_run,
    results,
)

pytestmark = pytest.mark.django_db
NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def project() -> Project:
    project = make_project()
    make_items(project, 3)
    return project


def planned(project: Project, strategy: str) -> Run:
    run = make_run(project, make_endpoint(NOWHERE), strategy)
    lifecycle.plan_calls(run)
    return run


def test_a_reading_is_kept_beside_the_reply_with_its_path(project: Project) -> None:
    run = planned(project, "reference")
    answer(run, '{"explanation": "Six is wrong.", "score": 4}')
    reading = Reading.objects.first()
    assert reading is not None
    assert (reading.value, reading.path, reading.cause) == (4.0, "strict", "")
    assert (reading.parser, reading.explanation) == (run.parser, "Six is wrong.")


def test_a_reply_is_read_once_for_one_parser(project: Project) -> None:
    run = planned(project, "reference")
    answer(run)
    Outcome.objects.update(result="pending", detail="", values={})
    assert outcomes.settle(Outcome.objects.values_list("pk", flat=True)) == 3
    assert Reading.objects.count() == Reply.objects.count() == 3


def test_what_another_parser_read_is_not_taken_for_our_own(project: Project) -> None:
    run = planned(project, "reference")
    answer(run)
    Reading.objects.update(parser="another", value=10)
    Outcome.objects.update(result="pending", detail="", values={})
    lifecycle.finish_if_done(run)
    assert results(run) == {"detected": 3}
    assert Reading.objects.count() == 6


def test_the_texts_of_few_replies_are_in_memory_at_once(project: Project) -> None:
    run = make_run(project, make_endpoint(NOWHERE), "reference", samples=100)
    lifecycle.plan_calls(run)
    answer(run)
    long = f'{{"explanation": "{"x" * 300_000}", "score": 4}}'
    Reply.objects.update(text=long)
    Reading.objects.all().delete()
    tracemalloc.start()
    try:
        for _ in range(2):  # the second time, the readings are stored
            assert outcomes.compute_decisions(run, list(run.outcomes.all()))
        # Together, the texts have 90 MB, and their explanations as many.
        assert tracemalloc.get_traced_memory()[1] < 60_000_000
    finally:
        tracemalloc.stop()
    assert len(Reading.objects.all()[99].explanation) == 300_000


def test_a_decided_outcome_is_not_decided_again(project: Project) -> None:
    run = planned(project, "reference")
    answer(run)
    Outcome.objects.update(result="undetected")
    assert outcomes.settle(Outcome.objects.values_list("pk", flat=True)) == 0
    assert results(run) == {"undetected": 3}


@pytest.mark.parametrize(
    ("text", "finish", "cause"),
    [
        ("No idea.", "stop", "unparsable"),
        ('{"score": 11}', "stop", "off_scale"),
        ('{"score": 4}', "length", "truncated"),
        ('{"score": 4}', "filtered", "filtered"),
        ('{"score": 4}', "refused", "refused"),
    ],
)
def test_a_reply_without_an_answer_is_missing_by_its_cause(
    project: Project, text: str, finish: str, cause: str
) -> None:
    run = planned(project, "reference")
    answer(run, text, finish=finish)
    assert results(run) == {cause: 3}
    assert set(Reading.objects.values_list("value", "cause")) == {(None, cause)}


def test_a_pair_with_one_failed_order_is_missing_for_that(project: Project) -> None:
    run = planned(project, "pairwise-verdict")
    failed = run.calls.filter(order=1).values("request")
    lifecycle.Request.objects.filter(pk__in=failed).update(tried={"timed_out": 2}, place=-1)
    fail(run, TimedOut("no"), number=3)
    answer(run, '{"verdict": "A"}')
    assert results(run) == {"one_order": 3}
    outcome = run.outcomes.first()
    assert outcome is not None
    assert outcome.values["missing"] == "timed_out"
    assert outcome.values["chose_gold"] is False  # A was the perturbed answer


def test_each_order_of_a_pair_speaks_of_what_it_showed(project: Project) -> None:
    run = planned(project, "pairwise-verdict")
    lifecycle.Request.objects.filter(calls__order=1).update(place=-1)
    answer(run, '{"verdict": "A"}', number=3)
    answer(run, '{"verdict": "B"}')
    assert set(run.outcomes.values_list("result", "detail")) == {("detected", "G")}


@pytest.mark.django_db(transaction=True)
def test_a_baseline_s_outcome_holds_its_score(project: Project) -> None:
    from tests.judging.builders_judging import work

    run = work(make_run(project, make_baseline(), "length"))
    # All perturbed answers are as long as the gold ones or shorter by a digit.
    assert set(results(run)) <= {"detected", "undetected"}
    outcome = run.outcomes.get(item__key="item-2")
    # "2 spiders have 16 legs." and "2 spiders have 12 legs."
    assert outcome.values == {"gold": 23.0, "perturbed": 23.0}
    assert outcome.detail == "equal"
