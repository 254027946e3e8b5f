"""A real worker's slice against a scripted evaluator: what is asked, and what becomes of faults."""

import asyncio
import io
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.management.base import CommandError, OutputWrapper
from django.db import connection
from django.utils import timezone

from annotation.models import Event, Item, Project
from judging.evaluators import endpoints, http_client
from judging.evaluators.limits import MemoryLedger
from judging.evaluators.retries import POLICIES
from judging.jobs.worker import WorkKind, WorkLoop
from judging.management import run_commands
from judging.models import Endpoint, Outcome, Reply, Request, Run
from judging.runs import lifecycle, progress
from judging.runs.engine import ask as engine_ask
from judging.runs.engine import lease
from judging.runs.engine import store as engine_store
from judging.runs.engine.ask import TimeSlice
from judging.runs.engine.store import CallResult
from tests.builders import make_account, make_project
from tests.judging.builders_judging import (
    ONE_CALL,
    TWO_CALLS,
    make_endpoint,
    make_items,
    make_responses,
    make_run,
    results,
    work,
)
from tests.services.processes import wait_for
from tests.services.scripted_evaluator import Script, ScriptedEvaluator
from tests.services.scripted_judge import Judge

pytestmark = pytest.mark.django_db(transaction=True)


def fault(evaluator: ScriptedEvaluator, name: str, when: str = "", **values: object) -> None:
    evaluator.script = Script(faults={name: when}, **values)


def last_try(run: Run) -> None:
    """Plan a run and let each of its requests have one attempt left."""
    lifecycle.plan_calls(run)
    spent = {cause: policy.attempts - 1 for cause, policy in POLICIES.items()}
    Request.objects.update(tried=spent)


def meanwhile(action: Callable[[], object], when: Callable[[], bool]) -> threading.Thread:
    """Do something in a thread as soon as a condition holds; the thread closes its connection."""

    def wait() -> None:
        ends = time.monotonic() + 20
        while not when() and time.monotonic() < ends:
            time.sleep(0.01)
        action()
        connection.close()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_every_call_is_asked_once_and_every_item_decided(evaluator: ScriptedEvaluator) -> None:
    evaluator.script = Script(judge=Judge(sees=1.0))
    project = make_project()
    make_items(project, 30)
    run = work(make_run(project, make_endpoint(evaluator), TWO_CALLS))
    assert run.state == Run.State.FINISHED
    assert run.finished_at is not None
    assert results(run) == {"undetected": 30}
    assert len({entry["digest"] for entry in evaluator.log}) == len(evaluator.log) == 60
    assert set(Request.objects.values_list("state", "attempts")) == {("answered", 1)}


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("truncated", "truncated"),
        ("refused", "refused"),
        ("filtered", "filtered"),
        ("filtered_prompt", "filtered"),
        ("rate_limited", "rate_limited"),
        ("server_error", "unavailable"),
        ("broken_json", "unavailable"),
        ("cut", "unavailable"),
    ],
)
def test_a_failure_is_counted_by_its_cause_and_is_never_a_verdict(
    evaluator: ScriptedEvaluator, name: str, cause: str
) -> None:
    fault(evaluator, name)
    project = make_project()
    make_items(project, 3)
    run = make_run(project, make_endpoint(evaluator, timeout=1))
    last_try(run)
    # What could be asked with success later is not left out before somebody has decided that.
    state = Run.State.PAUSED if cause in POLICIES else Run.State.FINISHED
    assert work(run).state == state
    assert results(run) == {cause: 3}
    assert progress.count_progress(run).failures == {cause: 3}
    assert len(evaluator.log) == 3


def test_a_run_whose_first_calls_are_all_rejected_pauses_with_the_provider_s_words(
    evaluator: ScriptedEvaluator,
) -> None:
    fault(evaluator, "rejected", latency=0.02)
    project = make_project()
    make_items(project, 60)
    run = work(make_run(project, make_endpoint(evaluator, in_flight=2)))
    assert run.state == Run.State.PAUSED
    # As many more as were asked while the first were being stored.
    assert re.match(r"The first [23]\d requests were all rejected\. The provider an", run.reason)
    assert "answered 400: this cannot be asked." in run.reason
    assert len(evaluator.log) < 50
    # Whoever resumes has seen that; what failed stays counted by its cause.
    lifecycle.resume(run, None)
    assert work(run).state == Run.State.FINISHED
    assert results(run) == {"rejected": 60}
    assert len(evaluator.log) == 60


def test_a_run_whose_first_calls_all_time_out_pauses_and_names_the_numbers_to_change(
    evaluator: ScriptedEvaluator,
) -> None:
    """Some two seconds: two calls of one second each, and those that follow before it is seen."""
    fault(evaluator, "hang")
    project = make_project()
    make_items(project, 20)
    run = work(make_run(project, make_endpoint(evaluator, in_flight=2, timeout=1)))
    assert run.state == Run.State.PAUSED
    assert run.reason.startswith("The first 2 calls were all stopped after 1 s")
    assert "raise the timeout (1 s) or lower the calls in flight (2)" in run.reason
    assert len(evaluator.log) <= 6
    evaluator.script = Script()
    Endpoint.objects.update(timeout=10)
    lifecycle.resume(run, None)
    assert set(Request.objects.values_list("state", flat=True)) == {"waiting"}
    assert not Request.objects.exclude(tried={}).exists()
    assert work(run).state == Run.State.FINISHED
    assert Reply.objects.count() == 20


def test_a_failed_request_keeps_the_provider_s_words(evaluator: ScriptedEvaluator) -> None:
    fault(evaluator, "rejected")
    project = make_project()
    make_items(project, 1)
    work(make_run(project, make_endpoint(evaluator)))
    assert "this cannot be asked" in Request.objects.get().message


@pytest.mark.parametrize("name", ["rate_limited", "server_error", "broken_json", "cut"])
def test_a_passing_failure_is_tried_again(evaluator: ScriptedEvaluator, name: str) -> None:
    fault(evaluator, name, "first:1", judge=Judge(sees=1.0))
    project = make_project()
    make_items(project, 3)
    run = work(make_run(project, make_endpoint(evaluator)))
    assert results(run) == {"detected": 3}
    assert set(Request.objects.values_list("attempts", flat=True)) == {2}


def test_the_wait_that_a_provider_asks_for_is_kept(evaluator: ScriptedEvaluator) -> None:
    fault(evaluator, "rate_limited", "first:1", retry_after=1.5)
    project = make_project()
    make_items(project, 1)
    work(make_run(project, make_endpoint(evaluator)))
    first, second = (entry["received"] for entry in evaluator.log)
    assert second - first >= 1.5


def test_a_pause_that_a_provider_asks_for_does_not_hold_the_worker(
    evaluator: ScriptedEvaluator,
) -> None:
    fault(evaluator, "rate_limited", retry_after=3600)
    project = make_project()
    make_items(project, 9)
    run = make_run(project, make_endpoint(evaluator, in_flight=2))
    begun = time.monotonic()
    engine_ask.run_slice(run.endpoint_id, seconds=1)
    assert time.monotonic() - begun < 60
    assert len(evaluator.log) <= 2
    assert not Request.objects.filter(state="leased").exists()
    until = progress.load_status(Run.objects.get(pk=run.pk)).paused_until
    assert until is not None
    assert until > timezone.now() + timedelta(minutes=59)
    assert lease.find_due_endpoints(timezone.now()) == []
    assert lease.find_due_endpoints(until) == [run.endpoint_id]


def test_once_somebody_ended_a_pause_all_requests_are_sent(evaluator: ScriptedEvaluator) -> None:
    fault(evaluator, "rate_limited", retry_after=3600)
    project = make_project()
    make_items(project, 9)
    run = make_run(project, make_endpoint(evaluator, in_flight=2))
    engine_ask.run_slice(run.endpoint_id, seconds=1)
    evaluator.script = Script()
    # Requests of another endpoint at the same address are sent by any of them.
    Request.objects.update(endpoint=make_endpoint(evaluator, name="another"))
    admin = make_account()
    for _ in range(2):
        endpoints.end_pause(Endpoint.objects.get(pk=run.endpoint_id), admin)
    assert Event.objects.get(kind="endpoint pause ended").account == admin
    assert work(run).state == Run.State.FINISHED


def test_a_run_that_starts_while_a_provider_wants_a_pause_is_planned_and_not_asked(
    evaluator: ScriptedEvaluator,
) -> None:
    project = make_project()
    make_items(project, 2)
    endpoint = make_endpoint(evaluator, paused_until=timezone.now() + timedelta(hours=1))
    run = make_run(project, endpoint)
    assert engine_ask.run_slice(endpoint.pk, seconds=1)
    run.refresh_from_db()
    assert (run.state, evaluator.log) == (Run.State.RUNNING, [])
    Endpoint.objects.update(paused_until=timezone.now())
    assert work(run).state == Run.State.FINISHED


def test_where_a_key_is_refused_its_variable_is_named(
    evaluator: ScriptedEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_API_KEY", "wrong")
    fault(evaluator, "unauthorised")
    project = make_project()
    make_items(project, 1)
    run = work(make_run(project, make_endpoint(evaluator, key_variable="LAB_API_KEY")))
    assert "set LAB_API_KEY to a key that may use" in run.reason


@pytest.mark.parametrize(
    ("name", "words", "remedy"),
    [
        (
            "unauthorised",
            "this key is wrong",
            "No key was sent. Enter the key's environment variable",
        ),
        ("quota", "the quota is used up", "used up. Add credit or raise the limit at the provider"),
    ],
)
def test_what_a_person_must_mend_pauses_in_the_provider_s_words(
    evaluator: ScriptedEvaluator, name: str, words: str, remedy: str
) -> None:
    fault(evaluator, name)
    project = make_project()
    make_items(project, 40)
    run = work(make_run(project, make_endpoint(evaluator, in_flight=2)))
    assert run.state == Run.State.PAUSED
    assert words in run.reason
    assert remedy in run.reason
    # Nothing is used up: all requests wait as if they had not been tried.
    assert set(Request.objects.values_list("state", "attempts")) == {("waiting", 0)}
    assert len(evaluator.log) <= 2
    fault(evaluator, name, "0")
    lifecycle.resume(run, None)
    assert work(run).state == Run.State.FINISHED


def test_a_key_that_is_not_set_pauses_with_the_remedy(
    evaluator: ScriptedEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project()
    make_items(project, 2)
    run = make_run(project, make_endpoint(evaluator, key_variable="OUR_API_KEY"))
    assert work(run).state == Run.State.PAUSED
    assert run.reason.startswith("OUR_API_KEY is not set. Set it in the environment")
    assert evaluator.log == []
    monkeypatch.setenv("OUR_API_KEY", "secret-secret")
    lifecycle.resume(run, None)
    assert work(run).state == Run.State.FINISHED


def test_an_address_that_was_changed_gets_neither_requests_nor_keys(
    evaluator: ScriptedEvaluator,
) -> None:
    project = make_project()
    make_items(project, 2)
    endpoint = make_endpoint("http://127.0.0.1:9/v1")
    run = make_run(project, endpoint)
    type(endpoint).objects.update(address=evaluator.address)
    assert work(run).state == Run.State.PAUSED
    assert f"The address of {endpoint.name} was changed" in run.reason
    assert evaluator.log == []


def test_failed_requests_are_asked_again_and_no_other(evaluator: ScriptedEvaluator) -> None:
    fault(evaluator, "rejected", "0.5")
    project = make_project()
    make_items(project, 20)
    run = work(make_run(project, make_endpoint(evaluator)))
    failed = results(run)["rejected"]
    assert 0 < failed < 20
    evaluator.script, asked = Script(), len(evaluator.log)
    assert lifecycle.retry_failed(run, None) == failed
    assert run.state == Run.State.RUNNING
    assert "rejected" not in results(work(run))
    assert len(evaluator.log) - asked == failed


def saw(evaluator: ScriptedEvaluator, *, answered: int, left: int) -> bool:
    """Whether so many calls had their answer and from so many the caller went away, which the
    server may notice a moment later."""

    def counted() -> tuple[int, int]:
        log = evaluator.log
        return sum(bool(one["answered"]) for one in log), sum(bool(one["left"]) for one in log)

    wait_for(lambda: sum(counted()) >= answered + left, "the server saw how all calls ended")
    return counted() == (answered, left)


@pytest.mark.parametrize("step", [lifecycle.pause, lifecycle.cancel])
@pytest.mark.parametrize("over", [False, True], ids=["while it asks", "when its time is over"])
def test_stopping_a_run_hangs_up_its_calls_in_flight(
    evaluator: ScriptedEvaluator,
    monkeypatch: pytest.MonkeyPatch,
    step: Callable[[Run, None], None],
    over: bool,
) -> None:
    fault(evaluator, "hang")
    project = make_project()
    make_items(project, 30)
    # Unless they are hung up, they end as failures after ten seconds.
    prices = {"price_in": Decimal(1), "price_out": Decimal(1)}
    run = make_run(project, make_endpoint(evaluator, in_flight=2, timeout=10, **prices))
    if over:
        monkeypatch.setattr(TimeSlice, "closing", lambda work: len(evaluator.log) == 2)

    def is_time() -> bool:
        # Once its time is over, a slice gives back all that is not in flight.
        leased = Request.objects.filter(state="leased").count()
        return len(evaluator.log) == 2 and (leased == 2 if over else leased > 2)

    stop = meanwhile(lambda: step(Run.objects.get(pk=run.pk), None), is_time)
    engine_ask.run_slice(run.endpoint_id, seconds=20)
    stop.join()
    run.refresh_from_db()
    assert run.state in {Run.State.PAUSED, Run.State.CANCELLED}
    assert saw(evaluator, answered=0, left=2)
    # Nothing is used up or owed: all requests wait as if they had not been tried.
    columns = ("state", "attempts", "tried", "cause", "message", "reserved")
    assert list(Request.objects.order_by().values_list(*columns).distinct()) == [
        ("waiting", 0, {}, "", "", 0)
    ]
    assert (run.reserved, run.spent, Reply.objects.count()) == (0, 0, 0)


def test_a_paused_run_asks_again_what_was_hung_up(evaluator: ScriptedEvaluator) -> None:
    fault(evaluator, "hang")
    project = make_project()
    make_items(project, 30)
    run = make_run(project, make_endpoint(evaluator, in_flight=2))
    pause = meanwhile(
        lambda: lifecycle.pause(Run.objects.get(pk=run.pk), None), lambda: len(evaluator.log) == 2
    )
    assert work(run).state == Run.State.PAUSED
    pause.join()
    evaluator.script = Script()
    lifecycle.resume(run, None)
    assert work(run).state == Run.State.FINISHED
    assert Counter(entry["attempt"] for entry in evaluator.log) == {1: 30, 2: 2}
    assert set(Request.objects.values_list("state", "attempts")) == {("answered", 1)}


@pytest.mark.parametrize("step", [lifecycle.pause, lifecycle.cancel])
def test_a_call_that_another_run_wants_is_not_hung_up(
    evaluator: ScriptedEvaluator, step: Callable[[Run, None], None]
) -> None:
    evaluator.script = Script(latency=3)
    project = make_project()
    make_items(project, 4)
    endpoint = make_endpoint(evaluator)
    runs = [make_run(project, endpoint), make_run(project, endpoint)]
    asked_for: set[int | None] = set()

    def stop_asking_run() -> None:
        asked_for.update(Request.objects.values_list("leased_for", flat=True))
        step(Run.objects.get(pk__in=asked_for), None)

    stop = meanwhile(stop_asking_run, lambda: len(evaluator.log) == 4)
    work(runs[0])
    stop.join()
    assert len(asked_for) == 1
    [other] = Run.objects.exclude(pk__in=asked_for)
    assert other.state == Run.State.FINISHED
    assert saw(evaluator, answered=4, left=0)
    assert Counter(entry["attempt"] for entry in evaluator.log) == {1: 4}


def test_where_the_program_pauses_a_run_calls_in_flight_end_and_are_kept(
    evaluator: ScriptedEvaluator,
) -> None:
    evaluator.script = Script(latency=3)
    project = make_project()
    make_items(project, 4)
    run = make_run(project, make_endpoint(evaluator))
    pause = meanwhile(
        lambda: lease.pause_endpoint_runs(run.endpoint, "The key is refused."),
        lambda: len(evaluator.log) == 4,
    )
    assert work(run).state == Run.State.PAUSED
    pause.join()
    assert saw(evaluator, answered=4, left=0)
    assert Reply.objects.count() == 4


def test_each_worker_hangs_up_the_calls_that_it_made(
    evaluator: ScriptedEvaluator, settings: Any, redis_url: str
) -> None:
    settings.REDIS_URL = redis_url
    fault(evaluator, "hang")
    project = make_project()
    make_items(project, 80)
    # Nothing may time out before the second worker is there.
    run = make_run(project, make_endpoint(evaluator, in_flight=2, timeout=60))
    lifecycle.plan_calls(run)
    workers: set[str] = set()

    def ask() -> None:
        engine_ask.run_slice(run.endpoint_id)
        connection.close()

    def cancel() -> None:
        leased = Request.objects.filter(state="leased")
        workers.update(leased.values_list("leased_by", flat=True))
        lifecycle.cancel(Run.objects.get(pk=run.pk), None)

    first = threading.Thread(target=ask)
    first.start()
    wait_for(lambda: len(evaluator.log) == 2, "the first worker asks")
    # So that there is room for the second one beside it.
    Endpoint.objects.update(in_flight=4)
    cancelled = meanwhile(cancel, lambda: len(evaluator.log) == 4)
    ask()
    for thread in (first, cancelled):
        thread.join()
    assert len(workers) == 2
    assert saw(evaluator, answered=0, left=4)
    assert set(Request.objects.values_list("state", "attempts")) == {("waiting", 0)}


def most_at_once(evaluator: ScriptedEvaluator) -> int:
    """How many calls were open together, as the server saw them. The caller may have an answer a
    moment before the server notes that it went out."""
    calls = [(one["received"], one["answered"] - 0.03) for one in evaluator.log]
    return max(sum(begun <= at < ended for begun, ended in calls) for at, _ in calls)


@pytest.mark.parametrize("limits", ["memory", pytest.param("redis", marks=pytest.mark.redis)])
def test_a_slow_call_leaves_no_other_place_idle(
    evaluator: ScriptedEvaluator,
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
    request: pytest.FixtureRequest,
    limits: str,
) -> None:
    """Slices of 0.3 s, in which one place asks some five calls while the other one is taken."""
    settings.REDIS_URL = request.getfixturevalue("redis_url") if limits == "redis" else ""
    asks = WorkKind(
        "endpoint",
        lease.find_due_endpoints,
        lambda pk: engine_ask.run_overlapping_slice(pk, seconds=0.3),
    )
    monkeypatch.setattr("judging.jobs.worker.list_kinds", lambda: [asks])
    answer, may_end = evaluator._answer, threading.Event()

    async def slowly(asked: Any, script: Script, response: Any, entry: Any) -> Any:
        if entry is evaluator.log[0]:
            await asyncio.to_thread(may_end.wait, 30)
        return await answer(asked, script, response, entry)

    monkeypatch.setattr(evaluator, "_answer", slowly)
    evaluator.script = Script(latency=0.05)
    project = make_project()
    make_items(project, 30)
    run = make_run(project, make_endpoint(evaluator, in_flight=2, timeout=60))
    loop = WorkLoop(every=0.05)
    loop.start()
    try:
        wait_for(lambda: len(evaluator.log) == 30, "all others were asked beside the slow call")
        assert evaluator.log[0]["answered"] is None
        may_end.set()
        wait_for(lambda: not Run.objects.running().exists(), "the run ended")
    finally:
        may_end.set()
        loop.stop()
    assert Counter(entry["attempt"] for entry in evaluator.log) == {1: 30}
    assert most_at_once(evaluator) == 2
    assert sum(results(run).values()) == Reply.objects.count() == 30


def test_a_run_is_finished_while_a_call_of_another_run_still_takes_long(
    evaluator: ScriptedEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one slice, which waits for all calls in flight before it ends."""
    monkeypatch.setattr(engine_ask, "FINISH_EVERY", 0.05)
    answer, may_end = evaluator._answer, threading.Event()

    async def slowly(asked: Any, script: Script, response: Any, entry: Any) -> Any:
        if entry is evaluator.log[0]:
            await asyncio.to_thread(may_end.wait, 30)
        return await answer(asked, script, response, entry)

    monkeypatch.setattr(evaluator, "_answer", slowly)
    project = make_project()
    make_items(project, 2)
    endpoint = make_endpoint(evaluator, in_flight=2, timeout=60)
    runs = [make_run(project, endpoint, strategy) for strategy in (ONE_CALL, TWO_CALLS)]
    finished = Run.objects.filter(state=Run.State.FINISHED)
    ended = meanwhile(may_end.set, finished.exists)
    work(runs[0])
    ended.join()
    assert finished.count() == 2
    first, last = Run.objects.order_by("finished_at")
    assert Reply.objects.order_by("pk").last().request.calls.get().run_id == last.pk
    assert first.finished_at < Reply.objects.order_by("pk").last().created_at


def test_a_cancelled_run_is_never_asked_further(evaluator: ScriptedEvaluator) -> None:
    evaluator.script = Script(latency=0.2)
    project = make_project()
    make_items(project, 60)
    run = make_run(project, make_endpoint(evaluator, in_flight=4))
    cancel = meanwhile(
        lambda: lifecycle.cancel(Run.objects.get(pk=run.pk), None), lambda: len(evaluator.log) >= 4
    )
    assert work(run).state == Run.State.CANCELLED
    cancel.join()
    asked = len(evaluator.log)
    assert asked < 40
    engine_ask.run_slice(run.endpoint_id, seconds=1)
    assert len(evaluator.log) == asked
    assert set(results(run)) > {"pending"}


def test_an_item_that_cannot_be_sent_is_missing_and_the_others_go_on(
    evaluator: ScriptedEvaluator,
) -> None:
    project = make_project()
    broken, *_ = make_items(project, 3)
    texts = broken.revision().texts
    texts.pop("gold")
    broken.revisions.update(texts=texts)
    run = work(make_run(project, make_endpoint(evaluator)))
    assert run.state == Run.State.FINISHED
    assert run.outcomes.get(item=broken).cause == "rejected"
    assert len(evaluator.log) == 2


def test_a_mistake_of_ours_in_one_call_costs_no_other_reply(
    evaluator: ScriptedEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    from judging.evaluators.providers import openai_compatible

    ask, calls = openai_compatible.ask, iter(range(100))

    async def fragile(*parts: object) -> object:
        if next(calls) == 1:
            raise ZeroDivisionError
        return await ask(*parts)

    monkeypatch.setattr(openai_compatible, "ask", fragile)
    project = make_project()
    make_items(project, 10)
    run = work(make_run(project, make_endpoint(evaluator)))
    assert results(run)["unavailable"] == 1
    assert Reply.objects.count() == 9


def test_a_reply_that_is_too_long_is_not_kept_with_its_error(
    evaluator: ScriptedEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its error's frames would hold it, many at a time, until Python looks for cycles."""
    kept: list[Exception] = []

    def store(endpoint: Endpoint, holder: str, group: list[CallResult]) -> None:
        kept.extend(one.error for one in group if one.error)
        return store_results(endpoint, holder, group)

    store_results = engine_store.store_results
    monkeypatch.setattr(engine_store, "store_results", store)
    monkeypatch.setattr(http_client, "MAX_REPLY_BYTES", 10)
    project = make_project()
    make_items(project, 2)
    run = make_run(project, make_endpoint(evaluator), ONE_CALL)
    last_try(run)
    work(run)
    assert "longer than 10 bytes" in str(kept[0])
    assert [(one.__traceback__, one.__context__) for one in kept] == [(None, None)] * 2


def test_characters_that_no_database_takes_do_not_lose_a_reply(
    evaluator: ScriptedEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Judge, "answer", lambda judge, prompt: '{"score": 5}\0\ud800')
    project = make_project()
    make_items(project, 1)
    work(make_run(project, make_endpoint(evaluator)))
    assert Reply.objects.get().text == '{"score": 5}\N{REPLACEMENT CHARACTER}?'


def test_a_worker_that_is_told_to_stop_gives_back_what_it_has_not_asked(
    evaluator: ScriptedEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(evaluator, "hang")
    monkeypatch.setattr(engine_ask, "LAST_CALLS_SECONDS", 0.5)
    project = make_project()
    make_items(project, 40)
    run = make_run(project, make_endpoint(evaluator, in_flight=4, timeout=600))
    stop = meanwhile(engine_ask.STOP.set, lambda: len(evaluator.log) >= 4)
    begun = time.monotonic()
    engine_ask.run_slice(run.endpoint_id)
    stop.join()
    assert time.monotonic() - begun < 60
    assert set(Request.objects.values_list("state", flat=True)) == {"waiting"}
    assert len(evaluator.log) == 4


@pytest.mark.postgresql
def test_a_database_connection_that_is_cut_loses_nothing(evaluator: ScriptedEvaluator) -> None:
    evaluator.script = Script(latency=0.1)
    project = make_project()
    make_items(project, 200)
    run = make_run(project, make_endpoint(evaluator, in_flight=16))

    def cut() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

    cutter = meanwhile(cut, lambda: len(evaluator.log) >= 60)
    engine_ask.run_slice(run.endpoint_id)
    cutter.join()
    assert work(run).state == Run.State.FINISHED
    assert Counter(entry["attempt"] for entry in evaluator.log) == {1: 200}


class Stuck(MemoryLedger):
    """A ledger that lets callers in and then never answers, like a Redis that hangs."""

    async def keep(self) -> None:
        await asyncio.sleep(3600)


def works_until(run: Run, condition: Callable[[], bool]) -> bool:
    """Whether a condition comes to hold while a worker is at a run; then it is told to stop."""
    held: list[bool] = []

    def holds() -> bool:
        held.append(condition())
        return held[-1]

    thread = meanwhile(engine_ask.STOP.set, holds)
    engine_ask.run_slice(run.endpoint_id, seconds=60)
    thread.join()
    return held[-1]


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_ask, "get_ledger", lambda name, limits: Stuck(limits))
    monkeypatch.setattr(engine_ask, "LAST_CALLS_SECONDS", 0.1)
    monkeypatch.setattr(engine_ask, "RENEW_EVERY", 0.05)


@pytest.mark.usefixtures("stuck")
def test_leases_are_renewed_while_the_limits_do_not_answer(evaluator: ScriptedEvaluator) -> None:
    fault(evaluator, "hang")
    project = make_project()
    make_items(project, 2)
    run = make_run(project, make_endpoint(evaluator))
    seen: set[object] = set()

    def renewed() -> bool:
        leased = Request.objects.filter(state="leased").values_list("leased_until", flat=True)
        seen.update(leased)
        return len(seen) > 3

    assert works_until(run, renewed)


def test_an_evaluator_s_reply_marks_the_item_and_a_baseline_s_does_not(
    evaluator: ScriptedEvaluator,
) -> None:
    project = make_project()
    make_items(project, 3)
    work(make_run(project))
    assert not Item.objects.exclude(first_reply_at=None).exists()
    run = work(make_run(project, make_endpoint(evaluator), limit=2))
    seen = set(run.outcomes.values_list("item", flat=True))
    assert set(Item.objects.exclude(first_reply_at=None).values_list("pk", flat=True)) == seen


def test_a_stored_reply_marks_the_item_of_another_project_too(
    evaluator: ScriptedEvaluator,
) -> None:
    endpoint, projects = make_endpoint(evaluator), [make_project(), make_project()]
    for project in projects:
        make_items(project, 1)
    for project in projects:
        work(make_run(project, endpoint))
    assert len(evaluator.log) == 1
    assert not Item.objects.filter(first_reply_at=None).exists()


def test_a_settled_outcome_holds_what_each_call_said(evaluator: ScriptedEvaluator) -> None:
    evaluator.script = Script(judge=Judge(sees=1.0))
    project = make_project()
    make_items(project, 1)
    work(make_run(project, make_endpoint(evaluator), "pairwise-verdict"))
    outcome = Outcome.objects.get()
    # The judge knows of no wrong text, so that both are good in both orders.
    assert (outcome.result, outcome.detail) == ("undetected", "both_good")
    assert outcome.values == {"gold_first": "both_good", "perturbed_first": "both_good"}


def test_two_runs_that_want_the_same_at_the_same_moment_send_each_once(
    evaluator: ScriptedEvaluator,
) -> None:
    evaluator.script = Script(latency=0.05)
    projects = [make_project(), make_project()]
    for project in projects:
        make_items(project, 60)
    endpoints = [make_endpoint(evaluator, model="same") for _ in projects]
    together = threading.Barrier(2)

    def start(project: Project, endpoint: Endpoint) -> None:
        together.wait()
        work(make_run(project, endpoint, TWO_CALLS), seconds=40)
        connection.close()

    threads = [
        threading.Thread(target=start, args=pair) for pair in zip(projects, endpoints, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(entry["attempt"] for entry in evaluator.log) == {1: 120}
    first, second = Run.objects.all()
    assert first.state == second.state == Run.State.FINISHED
    assert results(first) == results(second)
    assert sum(results(first).values()) == 60


def test_a_run_that_cannot_be_planned_does_not_stop_the_others(
    evaluator: ScriptedEvaluator,
) -> None:
    rated, other = make_project("rated", task_type="rubric-scoring"), make_project("other")
    make_responses(rated, ["-"] * 6, m1=1)
    make_items(other, 1)
    endpoint = make_endpoint(evaluator)
    broken = make_run(rated, endpoint, "score-matrix-animals")
    Run.objects.filter(pk=broken.pk).update(few_shot=[["gone", "no digest"]])
    run = work(make_run(other, endpoint))
    assert run.state == Run.State.FINISHED
    broken.refresh_from_db()
    assert broken.state == Run.State.PLANNING
    assert broken.reason.startswith("Its calls could not be planned: ")
    Run.objects.filter(pk=broken.pk).update(reason="")
    broken.refresh_from_db()
    with pytest.raises(CommandError, match=r"is planning: Its calls could not be planned: "):
        run_commands.continue_run(broken, OutputWrapper(io.StringIO()), wait=True)
    Run.objects.filter(pk=broken.pk).update(few_shot=[])
    assert work(broken).reason == ""
