import threading
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection

from annotation.db import transactions
from annotation.models import Event, Item, Project
from judging.errors import Refused
from judging.evaluators.providers import Finish
from judging.evaluators.providers.errors import Rejected
from judging.models import Budget, Call, Outcome, Request, Run
from judging.runs import derived, lifecycle, progress, supplements
from judging.runs.engine import outcomes, store
from judging.runs.engine.store import CallResult
from tests.builders import make_item, make_member, make_project, make_resolution, make_revision
from tests.judging.builders_judging import (
    ONE_CALL,
    TWO_CALLS,
    answer,
    fail,
    make_baseline,
    make_endpoint,
    make_items,
    make_judged,
    make_run,
    make_strategy,
    results,
    take,
)

pytestmark = pytest.mark.django_db
NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def project() -> Project:
    return make_project()


def planned(project: Project, strategy: str = ONE_CALL, **values: object) -> Run:
    run = make_run(
        project, values.pop("endpoint", None) or make_endpoint(NOWHERE), strategy, **values
    )
    lifecycle.plan_calls(run)
    return run


def test_a_run_is_over_what_is_resolved_as_valid_or_score_invariant(project: Project) -> None:
    valid, *_ = make_items(project, 2)
    same, *_ = make_items(project, 1, "score-invariant")
    make_items(project, 1, "invalid")
    make_item(project, "not-resolved")
    project.items.filter(key="item-2").update(purpose="practice")
    run = make_run(project)
    assert set(run.outcomes.values_list("item__key", "invariant")) == {
        (valid.key, False),
        (same.key, True),
    }


def test_a_corrected_item_is_in_no_run_until_it_is_resolved_again(project: Project) -> None:
    item, _ = make_items(project, 2)
    make_revision(item, item.revision().texts | {"perturbed": "Corrected."})
    assert make_run(project).outcomes.count() == 1
    item.resolutions.update(current=False)
    make_resolution(item)
    assert make_run(project).outcomes.get(item=item).revision.number == 2


def test_repeats_of_other_items_are_in_a_run_only_if_asked_for(project: Project) -> None:
    original, *_ = make_items(project, 1, "score-invariant")
    make_items(project, 1, "score-invariant", duplicate_of=original, category="formatting")
    assert make_run(project).outcomes.count() == 1
    run = make_run(project, with_duplicates=True)
    assert set(run.outcomes.values_list("ability", "category")) == {
        ("score-invariant", "score-invariant"),
        ("", "formatting"),
    }


def test_an_item_counts_as_what_it_was_resolved_not_as_what_it_was_meant(project: Project) -> None:
    make_items(project, 1, "score-invariant", category="number-errors")
    outcome = make_run(project).outcomes.get()
    assert (outcome.ability, outcome.category) == ("score-invariant", "score-invariant")
    assert outcome.source_ability == "factual"


def test_a_limited_run_is_a_random_part_that_the_seed_decides(project: Project) -> None:
    make_items(project, 30)

    def part(seed: int) -> list[str]:
        run = make_run(project, limit=10, seed=seed)
        return list(run.outcomes.order_by("pk").values_list("item__key", flat=True))

    assert part(1) == part(1)
    assert part(1) != part(2)
    assert len(part(1)) == 10


def test_a_run_pins_what_it_rests_on_under_one_digest(project: Project) -> None:
    make_items(project, 2)
    endpoint = make_endpoint(NOWHERE, parameters={"seed": 7})
    first, again = (make_run(project, endpoint) for _ in range(2))
    assert first.pinned == endpoint.pinned()
    assert first.parser == "parse-4 score 1..10/1 explained"
    assert (first.number, again.number) == (1, 2)
    assert first.digest == again.digest
    endpoint.parameters = {"seed": 8}
    assert make_run(project, endpoint).digest != first.digest


@pytest.mark.parametrize(
    ("strategy", "offline", "words"),
    [("rouge-l", False, "offline baseline"), (ONE_CALL, True, "needs an evaluator LLM")],
)
def test_a_strategy_and_an_endpoint_must_fit(
    project: Project, strategy: str, offline: bool, words: str
) -> None:
    make_items(project, 1)
    endpoint = make_baseline() if offline else make_endpoint(NOWHERE)
    with pytest.raises(Refused, match=words):
        make_run(project, endpoint, strategy)


def test_a_run_without_items_or_with_parameters_that_cannot_be_sent_is_refused(
    project: Project,
) -> None:
    with pytest.raises(Refused, match="No item of this project has the final label"):
        make_run(project)
    make_items(project, 1)
    with pytest.raises(Refused, match="cannot be set: stream"):
        make_run(project, make_endpoint(NOWHERE, parameters={"stream": True}))
    assert not Run.objects.exists()


def test_a_cap_of_run_or_project_needs_prices(project: Project) -> None:
    make_items(project, 1)
    endpoint = make_endpoint(NOWHERE, price_in=Decimal(1))
    with pytest.raises(Refused, match="cannot be enforced"):
        make_run(project, endpoint, cap=Decimal(1))
    Budget.objects.create(project=project, cap=Decimal(1))
    with pytest.raises(Refused, match="cannot be enforced"):
        make_run(project, endpoint)
    assert make_run(project).state == Run.State.PLANNING  # a baseline costs nothing


def test_calls_that_ask_the_same_share_a_request(project: Project) -> None:
    make_items(project, 2)
    other = project.items.get(key="item-2").revisions
    texts = project.items.get(key="item-1").revision().texts
    other.update(texts=texts | {"perturbed": "Another wrong answer."})
    run = planned(project, TWO_CALLS)
    assert Call.objects.filter(run=run).count() == 4
    assert Request.objects.count() == 3


def test_planning_that_was_stopped_goes_on_where_it_was(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "BATCH", 2)
    make_items(project, 7)
    run = make_run(project, make_endpoint(NOWHERE))
    allowed = iter([True, True, False])
    lifecycle.plan_calls(run, keep_on=lambda: next(allowed))
    assert (run.state, Call.objects.count()) == (Run.State.PLANNING, 4)
    lifecycle.plan_calls(run)
    assert (run.state, Call.objects.count()) == (Run.State.RUNNING, 7)
    assert run.outcomes.filter(calls=None).count() == 0


def test_a_batch_of_long_texts_ends_early(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "MAX_TEXT_LENGTH", 1)
    make_items(project, 3)
    run = make_run(project, make_endpoint(NOWHERE))
    allowed = iter([True, True, False])
    lifecycle.plan_calls(run, keep_on=lambda: next(allowed))
    assert (run.state, Call.objects.count()) == (Run.State.PLANNING, 2)
    lifecycle.plan_calls(run)
    assert (run.state, Call.objects.count()) == (Run.State.RUNNING, 3)


def test_the_database_counts_the_calls_of_a_large_run_each_time_they_are_twice_as_many(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "BATCH", 1)
    monkeypatch.setattr(lifecycle, "ANALYZE_FROM", 2)
    seen: list[int] = []

    def counted(*tables: str) -> None:
        seen.append(Call.objects.count())

    monkeypatch.setattr(lifecycle.bulk, "analyze_tables", counted)
    make_items(project, 5)
    planned(project)
    # One call an item; after 1 it is too few to matter, and once more when all are there.
    assert seen == [2, 4, 5]


def test_a_second_run_takes_the_stored_replies_and_asks_nothing(project: Project) -> None:
    make_items(project, 3)
    endpoint = make_endpoint(NOWHERE)
    answer(planned(project, endpoint=endpoint))
    again = planned(project, endpoint=endpoint)
    assert again.state == Run.State.FINISHED
    assert results(again) == {"detected": 3}
    assert Request.objects.count() == 3


def test_a_new_run_gives_failed_requests_another_chance(project: Project) -> None:
    make_items(project, 2)
    endpoint = make_endpoint(NOWHERE)
    first = planned(project, endpoint=endpoint)
    fail(first, Rejected("no"))
    second = planned(project, endpoint=endpoint)
    assert answer(second) == 2
    assert results(second) == {"detected": 2}
    # The first one stands as it ended, until it is retried itself; then it has the replies.
    assert results(first) == {"rejected": 2}
    assert lifecycle.retry_failed(first, None) == 0
    assert results(first) == {"detected": 2}
    assert first.state == Run.State.FINISHED


@pytest.mark.django_db(transaction=True)
def test_runs_planned_at_the_same_moment_share_every_request(project: Project) -> None:
    make_items(project, 60)
    made = [make_run(project, make_endpoint(NOWHERE, model="same"), TWO_CALLS) for _ in range(2)]
    together = threading.Barrier(2)

    def plan(run: Run) -> None:
        together.wait()
        lifecycle.plan_calls(run)
        connection.close()

    threads = [threading.Thread(target=plan, args=(run,)) for run in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Request.objects.count() == 120
    assert Call.objects.count() == 240
    assert set(Run.objects.values_list("state", flat=True)) == {"running"}


def test_a_step_that_came_too_late_is_told_in_words(project: Project) -> None:
    make_items(project, 1)
    run = planned(project)
    shown = Run.objects.get(pk=run.pk)
    answer(run)
    assert lifecycle.finish_if_done(run)
    for step, verb in ((supplements.cancel, "be cancelled"), (lifecycle.pause, "be paused")):
        with pytest.raises(Refused, match=f"is already finished, so it can no longer {verb}."):
            step(shown, None)


def test_a_run_moves_only_where_its_state_allows(project: Project) -> None:
    make_items(project, 1)
    run = planned(project)
    with pytest.raises(Refused, match="is already running"):
        lifecycle.resume(run, None)
    lifecycle.pause(run, None, reason="Lunch.")
    assert (run.state, run.reason) == (Run.State.PAUSED, "Lunch.")
    lifecycle.resume(run, None)
    assert (run.state, run.reason) == (Run.State.RUNNING, "")
    lifecycle.cancel(run, None)
    for step in (lifecycle.pause, lifecycle.resume, lifecycle.cancel, lifecycle.retry_failed):
        with pytest.raises(Refused):
            step(run, None)


def test_a_move_sees_what_another_process_did_meanwhile(project: Project) -> None:
    make_items(project, 1)
    run = planned(project)
    lifecycle.cancel(Run.objects.get(pk=run.pk), None)
    with pytest.raises(Refused, match="is already cancelled"):
        lifecycle.pause(run, None)
    assert run.state == Run.State.CANCELLED


def test_moves_are_recorded_with_who_made_them(project: Project) -> None:
    make_items(project, 1)
    lead = make_member(project, role="lead")
    run = planned(project, member=lead)
    lifecycle.pause(run, lead)
    event = Event.objects.first()
    assert event is not None
    assert (event.kind, event.subject, event.member) == ("run paused", "run 1", lead)


def test_outcomes_that_a_killed_worker_left_undecided_are_decided_before_a_run_ends(
    project: Project,
) -> None:
    make_items(project, 3)
    run = planned(project)
    answer(run, number=2)
    run.outcomes.update(result=Outcome.Result.PENDING, detail="", values={})
    assert not lifecycle.finish_if_done(run)
    answer(run)
    run.outcomes.update(result=Outcome.Result.PENDING, detail="", values={})
    assert lifecycle.finish_if_done(run)
    assert results(run) == {"detected": 3}
    assert run.state == Run.State.FINISHED
    assert run.finished_at is not None


def test_a_retry_changes_no_other_run(project: Project) -> None:
    make_items(project, 2)
    endpoint = make_endpoint(NOWHERE)
    first, second = (planned(project, endpoint=endpoint) for _ in range(2))
    fail(first, Rejected("no"))
    lifecycle.finish_if_done(first)
    lifecycle.finish_if_done(second)
    assert lifecycle.retry_failed(first, None) == 2
    assert (results(first), results(second)) == ({"pending": 2}, {"rejected": 2})
    second.refresh_from_db()
    assert second.state == Run.State.FINISHED


def test_a_retry_that_comes_while_a_run_is_being_finished_is_not_lost(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_items(project, 2)
    run = planned(project)
    answer(run, number=1)
    fail(run, Rejected("no"))
    run.outcomes.filter(result="detected").update(result=Outcome.Result.PENDING)
    monkeypatch.setattr(
        outcomes, "settle", lambda part: lifecycle.retry_failed(Run.objects.get(pk=run.pk), None)
    )
    assert not lifecycle.finish_if_done(run)
    run.refresh_from_db()
    assert run.state == Run.State.RUNNING


@pytest.mark.django_db(transaction=True)
def test_a_retry_undoes_a_decision_that_is_being_made_of_the_failure(project: Project) -> None:
    make_items(project, 1)
    run = planned(project)
    leased = take(run)
    store.store_results(run.endpoint, "worker", [CallResult(leased[0], error=Rejected("no"))])
    deciding, may_end = threading.Event(), threading.Event()

    def decide() -> None:
        with transactions.transact():
            outcomes.settle(run.outcomes.values_list("pk", flat=True))
            deciding.set()
            may_end.wait(20)
        connection.close()

    def retry() -> None:
        lifecycle.retry_failed(run, None)
        connection.close()

    threads = [threading.Thread(target=decide), threading.Thread(target=retry)]
    threads[0].start()
    assert deciding.wait(20)
    threads[1].start()
    threads[1].join(0.5)  # It waits for the decision; without a lock it is done by now.
    may_end.set()
    for thread in threads:
        thread.join()
    assert results(run) == {"pending": 1}


@pytest.mark.parametrize(
    ("text", "finish"),
    [('{"score": 5}', "stop"), ('{"score": 5}', "length"), ("I cannot say.", "stop")],
)
def test_a_run_in_which_nothing_failed_has_nothing_to_retry(
    project: Project, text: str, finish: Finish
) -> None:
    make_items(project, 1)
    run = planned(project)
    answer(run, text, finish=finish)
    lifecycle.finish_if_done(run)
    found = results(run)
    with pytest.raises(Refused, match="This run has no failed requests"):
        lifecycle.retry_failed(run, None)
    run.refresh_from_db()
    assert (run.state, results(run)) == (Run.State.FINISHED, found)


def test_progress_counts_requests_and_items_and_names_causes(project: Project) -> None:
    make_items(project, 6)
    run = planned(project, TWO_CALLS)
    fail(run, Rejected("no"), number=1)
    answer(run, number=2)
    answer(run, "I cannot say.", number=1)
    done = progress.count_progress(run)
    assert (done.requests, done.answered, done.failed, done.waiting) == (12, 3, 1, 8)
    assert done.items == 6
    assert done.share == pytest.approx(4 / 12)
    assert done.failures["rejected"] == 1
    answer(run)
    assert progress.count_progress(run).failures == {"rejected": 1, "unparsable": 1}
    assert progress.count_progress(run).settled == 6


def test_an_endpoint_that_runs_rest_on_keeps_its_address(project: Project) -> None:
    make_items(project, 1)
    endpoint = make_endpoint(NOWHERE)
    endpoint.address = "http://127.0.0.1:10/v1"
    endpoint.full_clean()
    endpoint.address = NOWHERE
    make_run(project, endpoint)
    endpoint.full_clean()
    endpoint.address = "http://127.0.0.1:10/v1"
    with pytest.raises(Exception, match="Add a new endpoint"):
        endpoint.full_clean()


def test_a_strategy_file_that_did_not_change_keeps_its_version() -> None:
    assert make_strategy() == make_strategy()


def test_an_item_in_a_run_is_not_marked_as_seen_by_planning(project: Project) -> None:
    make_items(project, 1)
    planned(project)
    assert Item.objects.filter(first_reply_at=None).count() == 1


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_sources_that_end_at_the_same_moment_leave_no_old_votes_in_a_derived_run(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    [item] = make_items(project, 1)
    sources = [make_judged(project, [(item, "detected")]) for _ in range(2)]
    run = derived.derive_run(project, strategy=make_strategy("majority"), sources=sources)
    assert results(run) == {"detected": 1}
    load = derived._load_source_outcomes

    def end_second() -> None:
        Outcome.objects.filter(run__in=sources).update(result="undetected")
        derived.refresh_outcomes(run)
        connection.close()

    second = threading.Thread(target=end_second)

    def load_as_second_ends(*given: Any) -> Any:
        found = load(*given)
        if second.ident is None:
            second.start()
            second.join(0.5)  # It waits for the first; without a lock it is done by now.
        return found

    monkeypatch.setattr(derived, "_load_source_outcomes", load_as_second_ends)
    derived.refresh_outcomes(run)
    second.join()
    assert results(run) == {"undetected": 1}
