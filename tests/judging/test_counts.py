"""Counts of runs that are kept: when they hold, and when somebody counts anew."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.models import Project
from judging.models import Outcome, Request, Run, Tally
from judging.runs import counts, lifecycle, progress
from tests.judging.builders_judging import answer, make_items, make_judged, make_run

pytestmark = pytest.mark.django_db


def make_finished(project: Project, items: int = 3) -> Run:
    return make_judged(project, [(item, "detected") for item in make_items(project, items)])


def make_planned(project: Project, items: int = 3) -> Run:
    make_items(project, items)
    run = make_run(project)
    lifecycle.plan_calls(run)
    return run


def counted(run: Run) -> counts.ItemCounts:
    [listed] = counts.with_item_counts([run], timezone.now())
    return listed.counted


def keep_for_a_minute(run: Run) -> None:
    """As a worker does that counts again and again."""
    progress.update_counts([run.pk], timezone.now())
    Tally.objects.update(shown_until=timezone.now() + timedelta(minutes=1))


def test_what_was_counted_once_is_not_counted_again(project: Project) -> None:
    run = make_finished(project)
    assert counted(run) == counts.ItemCounts(items=3, pending=0, missing=0)
    with CaptureQueriesContext(connection) as asked:
        assert counted(run).items == 3
    # How often the run changed, and what was kept.
    assert len([one for one in asked if "FROM judging_" in one["sql"].replace('"', "")]) == 2


def test_a_change_of_outcomes_is_counted(project: Project) -> None:
    run = make_finished(project)
    counted(run)
    Outcome.objects.filter(pk=run.outcomes.earliest("pk").pk).update(
        result="missing", cause="refused"
    )
    assert counted(run) == counts.ItemCounts(items=3, pending=0, missing=1)
    assert progress.load_status(run).missing == {"refused": 1}


def test_what_a_worker_keeps_is_shown_until_its_time_is_over(project: Project) -> None:
    run = make_planned(project, 3)
    keep_for_a_minute(run)
    answer(run)
    assert counted(run).pending == 3
    assert progress.load_status(run).progress.answered == 0
    Tally.objects.update(shown_until=timezone.now())
    assert counted(run).pending == 0
    assert progress.load_status(run).progress.answered == 3


def test_nobody_who_looks_at_a_run_that_is_being_planned_waits_to_write(project: Project) -> None:
    make_items(project, 3)
    run = make_run(project)
    assert run.state == Run.State.PLANNING
    progress.load_status(run)
    counted(run)
    assert not Tally.objects.exists()
    keep_for_a_minute(run)
    assert Tally.objects.count() == 2


def test_a_run_that_was_paused_is_counted_as_it_is(project: Project) -> None:
    run = make_planned(project, 3)
    keep_for_a_minute(run)
    answer(run)
    lifecycle.pause(run, None)
    assert progress.load_status(run).progress.answered == 3


def test_a_worker_that_leaves_has_what_is_there_shown(project: Project) -> None:
    run = make_planned(project, 3)
    keep_for_a_minute(run)
    answer(run)
    progress.release_counts(run)
    assert progress.load_status(run).progress.answered == 3


def test_nobody_waits_for_the_counts_of_a_run_that_a_worker_finished(project: Project) -> None:
    run = make_planned(project, 2)
    answer(run)
    assert lifecycle.finish_if_done(run)
    progress.release_counts(run)
    assert set(Tally.objects.values_list("kind", flat=True)) == {"items", "progress"}


def test_a_count_that_takes_long_is_made_seldom(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_planned(project, 1)
    assert progress.update_counts([run.pk], timezone.now()) >= progress.COUNT_EVERY
    # A tenth of a second: twenty times that is two seconds.
    clock = iter([10.0, 10.1])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    now = timezone.now()
    assert progress.update_counts([run.pk], now) == pytest.approx(2.0)
    # What was counted is shown for two and a half such pauses, should the next count be late.
    times = set(Tally.objects.values_list("shown_until", flat=True))
    assert [round((time - now).total_seconds(), 3) for time in times] == [5.0]


def test_failed_requests_are_looked_for_only_if_there_are_some(project: Project) -> None:
    run = make_planned(project, 3)
    with CaptureQueriesContext(connection) as before:
        whole = progress.count_progress(run)
    first = Request.objects.order_by("pk")[:1]
    Request.objects.filter(pk__in=first).update(
        state="failed", cause="server_error", tried={"server_error": 3}
    )
    with CaptureQueriesContext(connection) as after:
        failing = progress.count_progress(run)
    assert len(after) == len(before) + 1
    assert (whole.requests, whole.failed, whole.failures, whole.items) == (3, 0, {}, 3)
    assert (failing.failed, failing.waiting, failing.failures) == (1, 2, {"server_error": 1})
    assert failing.tries == {"server_error": 3}


def test_a_run_without_items_has_counts_of_zero(project: Project) -> None:
    run = make_planned(project, 1)
    run.calls.all().delete()
    run.outcomes.all().delete()
    counted = progress.count_progress(run)
    assert (counted.requests, counted.items, counted.settled, counted.to_come) == (0, 0, 0, 0)


def test_the_list_of_runs_asks_as_often_for_many_as_for_one(
    browser: Client, project: Project
) -> None:
    def queries() -> int:
        browser.get(address)
        with CaptureQueriesContext(connection) as captured:
            assert browser.get(address).status_code == 200
        return len(captured)

    address = f"/projects/{project.slug}/runs/"
    make_finished(project)
    of_one = queries()
    for _ in range(3):
        make_finished(project)
    assert queries() == of_one
