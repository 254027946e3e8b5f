import threading
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from annotation.db import clock
from annotation.models import Project
from annotation.projects import creation
from judging.evaluators.providers.errors import Rejected, ServerError, Unauthorised
from judging.models import Endpoint, Outcome, Reply, Request, Run
from judging.runs import lifecycle
from judging.runs.engine import lease, rendering, store
from judging.runs.engine.lease import LEASE_DURATION
from judging.runs.engine.store import CallResult
from tests.builders import make_member, make_project
from tests.judging.builders_judging import (
    answer,
    fail,
    make_answer,
    make_endpoint,
    make_items,
    make_run,
    results,
    take,
)

pytestmark = pytest.mark.django_db
NOWHERE = "http://127.0.0.1:9/v1"
SOON = timedelta(seconds=1)


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def run(project: Project) -> Run:
    make_items(project, 6)
    return planned(project)


def planned(project: Project, **values: object) -> Run:
    run = make_run(project, values.pop("endpoint", None) or make_endpoint(NOWHERE), **values)
    lifecycle.plan_calls(run)
    return run


class _Elsewhere(set[str]):
    """As if each worker of a test were in a process of its own."""

    def add(self, holder: str) -> None:
        pass


@pytest.fixture(autouse=True)
def nobody_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "_local_holders", set())


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "_local_holders", _Elsewhere())


def due(now: datetime | None = None) -> list[int]:
    return lease.find_due_endpoints(now or timezone.now())


def states() -> Counter[str]:
    return Counter(Request.objects.values_list("state", flat=True))


@pytest.mark.usefixtures("elsewhere")
def test_one_worker_at_a_time_may_ask_where_limits_are_kept_in_memory(settings: Any) -> None:
    settings.REDIS_URL = ""
    now = timezone.now()
    assert lease.acquire_endpoint(7, "a", now)
    assert not lease.acquire_endpoint(7, "b", now + LEASE_DURATION - SOON)
    assert lease.acquire_endpoint(8, "b", now)
    assert lease.renew_leases(7, "a", now + LEASE_DURATION - SOON)
    assert not lease.acquire_endpoint(7, "b", now + LEASE_DURATION)
    assert lease.acquire_endpoint(7, "b", now + 2 * LEASE_DURATION)
    assert not lease.renew_leases(7, "a", now + 2 * LEASE_DURATION)
    lease.release_endpoint(7, "b", now + 2 * LEASE_DURATION)
    assert lease.acquire_endpoint(7, "a", now + 2 * LEASE_DURATION)


def test_the_next_slice_begins_beside_one_that_waits_for_calls_in_its_process_alone(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.REDIS_URL = ""
    now = timezone.now()

    def other_process_may_ask() -> bool:
        with monkeypatch.context() as patch:
            patch.setattr(lease, "_local_holders", set())
            patch.setattr(lease, "_ending_slices", {})
            return lease.acquire_endpoint(7, "other", now + LEASE_DURATION - SOON)

    assert lease.acquire_endpoint(7, "first", now)
    assert not lease.acquire_endpoint(7, "second", now)
    lease.hand_over_endpoint(7, "first")
    assert lease.is_ending(7)
    assert not other_process_may_ask()
    assert lease.acquire_endpoint(7, "second", now)
    # Both keep what they hold; a third has to wait for the second.
    assert lease.renew_leases(7, "first", now)
    assert lease.renew_leases(7, "second", now)
    assert not lease.acquire_endpoint(7, "third", now)
    lease.release_endpoint(7, "second", now)
    assert not other_process_may_ask()
    lease.release_endpoint(7, "first", now)
    assert not lease.is_ending(7)
    assert other_process_may_ask()


def test_what_is_held_here_is_not_taken_by_a_clock_that_jumped(run: Run, settings: Any) -> None:
    settings.REDIS_URL = ""
    now = timezone.now()
    later = now + timedelta(hours=1)
    assert lease.acquire_endpoint(run.endpoint_id, "a", now)
    mine = {one.request_id for one in take(run, 2, "a", now=now)}
    assert not lease.acquire_endpoint(run.endpoint_id, "b", later)
    assert not mine & {one.request_id for one in take(run, 10, "b", now=later)}
    lease.release_endpoint(run.endpoint_id, "a", later)
    assert lease.acquire_endpoint(run.endpoint_id, "b", later)


@pytest.mark.usefixtures("elsewhere")
def test_what_a_dead_worker_held_by_a_clock_that_was_ahead_is_free_at_once(
    run: Run, settings: Any
) -> None:
    settings.REDIS_URL = ""
    now = timezone.now()
    ahead = now + timedelta(hours=1)
    assert lease.acquire_endpoint(run.endpoint_id, "a", ahead)
    assert lease.acquire_planning(run.endpoint_id, "a", ahead)
    held = {one.request_id for one in take(run, 2, "a", now=ahead)}
    assert due(now) == [run.endpoint_id]
    assert lease.acquire_endpoint(run.endpoint_id, "b", now)
    assert lease.acquire_planning(run.endpoint_id, "b", now)
    assert held < {one.request_id for one in take(run, 10, "b", now=now)}


@pytest.mark.usefixtures("elsewhere")
def test_each_worker_may_ask_where_redis_keeps_the_limits_and_one_alone_plans(
    settings: Any,
) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    now = timezone.now()
    assert lease.acquire_endpoint(7, "a", now)
    assert lease.acquire_endpoint(7, "b", now)
    assert lease.renew_leases(7, "a", now)
    assert lease.acquire_planning(7, "a", now)
    assert not lease.acquire_planning(7, "b", now + LEASE_DURATION - SOON)
    assert lease.renew_leases(7, "a", now + LEASE_DURATION - SOON, planning=True)
    assert lease.acquire_planning(7, "b", now + 2 * LEASE_DURATION)
    assert not lease.renew_leases(7, "a", now + 2 * LEASE_DURATION, planning=True)


def test_renewing_keeps_the_holder_s_leases_and_no_others(run: Run) -> None:
    now = timezone.now()
    lease.acquire_endpoint(run.endpoint_id, "worker", now)
    take(run, 2, "worker")
    take(run, 1, "other")
    lease.renew_leases(run.endpoint_id, "worker", now + 2 * LEASE_DURATION)
    late = Request.objects.filter(leased_until=now + 3 * LEASE_DURATION)
    assert set(late.values_list("leased_by", flat=True)) == {"worker"}
    assert late.count() == 2


def test_an_endpoint_is_due_while_a_run_of_it_has_something_to_do(project: Project) -> None:
    make_items(project, 2)
    run = make_run(project, make_endpoint(NOWHERE))
    assert due() == [run.endpoint_id]  # to be planned
    lifecycle.plan_calls(run)
    assert due() == [run.endpoint_id]  # to be asked
    take(run)
    assert due() == []
    assert due(timezone.now() + LEASE_DURATION) == [run.endpoint_id]  # the worker died


def test_an_endpoint_is_not_due_before_the_next_try(run: Run) -> None:
    fail(run, ServerError("wait", retry_after=60))
    assert due() == []
    assert due(timezone.now() + timedelta(seconds=61)) == [run.endpoint_id]


def test_an_endpoint_is_due_while_an_answered_run_is_not_finished(run: Run) -> None:
    answer(run)
    assert due() == [run.endpoint_id]
    lifecycle.finish_if_done(run)
    assert due() == []


@pytest.mark.postgresql
@pytest.mark.parametrize("step", ["retried", "wanted by another run"])
def test_what_is_asked_again_is_due_by_the_clock_of_all_and_not_by_one_s_own(
    run: Run, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    fail(run, Rejected("no"))
    with monkeypatch.context() as patch:
        ahead = timezone.now() + timedelta(hours=1)
        patch.setattr(timezone, "now", lambda: ahead)
        if step == "retried":
            lifecycle.retry_failed(run, None)
        else:
            planned(run.project, endpoint=run.endpoint)
    assert Request.objects.due(clock.now()).count() == 6


def test_a_run_that_is_paused_is_not_due(run: Run) -> None:
    lifecycle.pause(run, None)
    assert due() == []
    assert take(run) == []


@pytest.mark.usefixtures("elsewhere")
def test_what_a_dead_worker_held_is_freed_though_its_run_was_cancelled(run: Run) -> None:
    take(run)
    lifecycle.cancel(run, None)
    later = timezone.now() + LEASE_DURATION
    assert due(later) == [run.endpoint_id]
    assert take(run, now=later) == []
    assert states() == {"waiting": 6}


def test_a_lease_takes_requests_in_the_run_s_random_order(run: Run) -> None:
    order = list(Request.objects.order_by("place").values_list("pk", flat=True))
    assert [one.request_id for one in take(run, 2)] == order[:2]
    assert [one.request_id for one in take(run, 9)] == order[2:]
    assert take(run) == []


def test_a_lease_ends_once_its_bodies_are_long_together(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "_FIRST_RENDERED", 2)
    monkeypatch.setattr(lease, "_rendered", {})
    now = timezone.now()
    assert len(lease.lease_requests(run.endpoint, "worker", 6, now, room=1).leased) == 2
    assert states() == {"leased": 2, "waiting": 4}
    assert len(take(run)) == 4


def test_as_many_requests_are_rendered_at_once_as_have_been_before(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long ones among them, which may come after short ones, are few then."""
    monkeypatch.setattr(lease, "_rendered", {})
    make_items(project, 100)
    run = make_run(project, make_endpoint(NOWHERE))
    lifecycle.plan_calls(run)
    rendered, render = list[int](), lease._render_part

    def note_number(*given: Any) -> Any:
        rendered.append(len(given[-1]))
        return render(*given)

    monkeypatch.setattr(lease, "_render_part", note_number)
    assert len(take(run)) == 100
    assert rendered == [16, 16, 32, 36]


def test_runs_of_an_endpoint_share_what_is_leased(project: Project) -> None:
    make_items(project, 20)
    endpoint = make_endpoint(NOWHERE)
    first = planned(project, endpoint=endpoint)
    second = planned(project, endpoint=endpoint, strategy="vanilla")
    batch = lease.lease_requests(endpoint, "worker", 10, timezone.now())
    assert batch.runs == {first.pk, second.pk}
    assert Counter(one.run_id for one in batch.leased) == {first.pk: 5, second.pk: 5}


def test_no_run_of_an_endpoint_is_always_first(project: Project) -> None:
    """A slice sends only the first of what it leases, if calls are slow."""
    make_items(project, 20)
    endpoint = make_endpoint(NOWHERE)
    runs = [
        planned(project, endpoint=endpoint, strategy=one)
        for one in ("vanilla", "pairwise", "rubric")
    ]
    leases = [
        lease.lease_requests(endpoint, f"slice {number}", 6, timezone.now()).leased
        for number in range(12)
    ]
    first = Counter(leased[0].run_id for leased in leases)
    assert first.keys() == {run.pk for run in runs}


def test_a_lease_of_none_says_which_runs_go_on(run: Run) -> None:
    assert lease.lease_requests(run.endpoint, "worker", 0, timezone.now()) == lease.LeasedBatch(
        frozenset({run.pk}), []
    )


def test_endpoints_of_one_address_and_model_share_requests(project: Project) -> None:
    make_items(project, 4)
    twins = [make_endpoint(NOWHERE, model="same") for _ in range(2)]
    first, second = (planned(project, endpoint=endpoint) for endpoint in twins)
    assert answer(first, number=1) == 1
    lifecycle.pause(first, None)
    # What the first endpoint's run wanted too is asked by the second's.
    assert answer(second) == 3
    assert results(first) == results(second) == {"detected": 4}
    assert set(due()) == {second.endpoint_id}
    assert lifecycle.finish_if_done(second)


def test_another_model_shares_nothing(project: Project) -> None:
    make_items(project, 4)
    first, second = (planned(project) for _ in range(2))
    assert (answer(first), answer(second)) == (4, 4)


@pytest.mark.django_db(transaction=True)
def test_two_workers_never_lease_the_same_request(project: Project) -> None:
    make_items(project, 80)
    made = [planned(project, endpoint=make_endpoint(NOWHERE, model="same")) for _ in range(2)]
    together, leased = threading.Barrier(2), Counter[int]()

    def lease(run: Run) -> None:
        together.wait()
        while Request.objects.filter(state="waiting").exists():
            leased.update(one.request_id for one in take(run, 5, f"worker {run.pk}"))
        connection.close()

    threads = [threading.Thread(target=lease, args=(run,)) for run in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(leased) == 80
    assert set(leased.values()) == {1}


def test_a_prompt_that_can_no_longer_be_made_pauses_the_run(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "render_body", lambda *parts: b"{}")
    assert take(run) == []
    run.refresh_from_db()
    assert run.state == Run.State.PAUSED
    assert "by another version of the program" in run.reason
    assert states() == {"waiting": 6}


def test_a_request_that_failed_while_its_prompt_was_made_is_not_asked_before_its_next_try(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = lease._render_requests

    def slowly(*parts: Any) -> Any:
        prepared = prepare(*parts)
        later = timezone.now() + timedelta(seconds=60)
        Request.objects.filter(pk=prepared[0].request_id).update(next_try=later)
        return prepared

    monkeypatch.setattr(lease, "_render_requests", slowly)
    assert len(take(run)) == 5
    assert states() == {"leased": 5, "waiting": 1}


def test_the_same_results_stored_twice_change_nothing(run: Run) -> None:
    leased = take(run)
    found = [CallResult(one, make_answer()) for one in leased[:3]]
    found += [CallResult(one, error=Rejected("no")) for one in leased[3:]]
    for _ in range(2):
        store.store_results(run.endpoint, "worker", found)
        store.decide_outcomes(found)
    assert Reply.objects.count() == 3
    assert set(Request.objects.values_list("state", "attempts")) == {("answered", 1), ("failed", 1)}
    assert results(run) == {"detected": 3, "rejected": 3}


def test_an_answer_that_comes_after_its_lease_ran_out_counts_if_it_is_the_first(run: Run) -> None:
    leased, later = take(run, holder="slow"), timezone.now() + LEASE_DURATION
    again = take(run, holder="quick", now=later)
    assert {one.request_id for one in again} == {one.request_id for one in leased}
    store.store_results(run.endpoint, "slow", [CallResult(leased[0], make_answer("first"))])
    store.store_results(
        run.endpoint, "quick", [CallResult(one, make_answer("second")) for one in again]
    )
    assert Counter(Reply.objects.values_list("text", flat=True)) == {"first": 1, "second": 5}
    assert states() == {"answered": 6}


def test_a_failure_that_comes_after_its_lease_ran_out_is_not_counted(run: Run) -> None:
    leased = take(run, holder="slow")
    take(run, holder="quick", now=timezone.now() + LEASE_DURATION)
    store.store_results(
        run.endpoint, "slow", [CallResult(one, error=Rejected("no")) for one in leased]
    )
    assert set(Request.objects.values_list("state", "leased_by")) == {("leased", "quick")}


@pytest.mark.parametrize("error", [None, Unauthorised("no")])
def test_what_was_not_asked_or_needs_a_person_is_given_back_unused(
    run: Run, error: Unauthorised | None
) -> None:
    leased = take(run)
    store.store_results(run.endpoint, "worker", [CallResult(one, error=error) for one in leased])
    assert set(Request.objects.values_list("state", "attempts")) == {("waiting", 0)}
    assert len(take(run)) == 6


def test_halting_pauses_every_running_run_of_the_endpoint(project: Project) -> None:
    make_items(project, 2)
    endpoint = make_endpoint(NOWHERE)
    first = planned(project, endpoint=endpoint)
    second = planned(project, endpoint=endpoint, strategy="vanilla")
    other = planned(project)
    lease.pause_endpoint_runs(endpoint, "No more\0money.")
    for run in (first, second, other):
        run.refresh_from_db()
    assert (first.state, second.state, other.state) == ("paused", "paused", "running")
    assert first.reason == "No more\N{REPLACEMENT CHARACTER}money."


def test_an_outcome_waits_for_all_of_its_calls(project: Project) -> None:
    make_items(project, 1)
    run = planned(project, strategy="vanilla-score")
    answer(run, number=1)
    assert results(run) == {"pending": 1}
    answer(run)
    assert Outcome.objects.get().detail == "equal"


def test_a_new_run_is_planned_also_while_its_provider_wants_no_calls(
    run: Run, project: Project
) -> None:
    Endpoint.objects.update(paused_until=timezone.now() + timedelta(hours=1))
    assert lease.find_due_endpoints(timezone.now()) == []
    make_run(project, run.endpoint)
    assert lease.find_due_endpoints(timezone.now()) == [run.endpoint_id]


def test_due_endpoints_are_found_by_one_query(
    run: Run, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        due()


def test_what_workers_look_for_is_found_through_its_index(run: Run) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # Six rows it would read all, or sort.
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
    now = timezone.now()
    waiting = Request.objects.filter(endpoint=run.endpoint).due(now).wanted_by(run)
    assert "request_waiting" in waiting.order_by("place").explain()
    assert "request_leased" in Request.objects.expired(now).explain()
    assert "request_leased" in Endpoint.objects.due(now).explain()


def test_an_unknown_endpoint_is_never_due() -> None:
    assert Endpoint.objects.count() == 0
    assert due() == []


def test_a_run_of_an_archived_project_sends_nothing_until_the_project_is_restored(
    run: Run,
) -> None:
    lead = make_member(run.project, role="lead")
    creation.archive_project(lead, timezone.now())
    assert (due(), take(run)) == ([], [])
    creation.restore_project(lead)
    assert due() == [run.endpoint_id]
    assert len(take(run)) == 6
