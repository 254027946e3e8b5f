"""Runs in the browser: listed, started, followed, steered."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotation.models import Membership, Project
from judging.evaluators.providers.errors import Rejected
from judging.jobs import heartbeat
from judging.models import Reply, Run
from judging.runs import lifecycle, progress, supplements
from judging.runs.engine import lease
from tests.judging.builders_judging import (
    answer,
    fail,
    make_baseline,
    make_endpoint,
    make_items,
    make_judged,
    make_run,
)

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


def page(name: str, *args: object) -> str:
    return reverse(name, args=["fbi", *args])


def text_of(browser: Client, name: str, *args: object, query: str = "") -> str:
    answer = browser.get(page(name, *args) + query)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def asked_run(project: Project, items: int = 3) -> Run:
    """A planned run of an evaluator that nobody has asked yet."""
    make_items(project, items)
    run = make_run(project, make_endpoint("http://127.0.0.1:9/v1"))
    lifecycle.plan_calls(run)
    run.refresh_from_db()
    return run


def test_an_empty_list_says_how_to_start(browser: Client, project: Project) -> None:
    assert "Start the first run" in text_of(browser, "runs")


def test_the_list_shows_state_strategy_counts_and_who(
    browser: Client, project: Project, member: Membership
) -> None:
    items = make_items(project, 3)
    make_judged(project, [(items[0], "detected"), (items[1], "missing")], member=member)
    shown = text_of(browser, "runs")
    for words in ("Run 1", "finished", "rouge-l", "baseline", "rita"):
        assert words in shown
    for title in ("Pending", "Missing"):
        assert f'<td class="number" data-title="{title}">1</td>' in shown


def test_a_running_run_is_polled_and_an_ended_one_is_not(browser: Client, project: Project) -> None:
    run = asked_run(project)
    assert 'hx-trigger="every 1500ms"' in text_of(browser, "run", run.number)
    lifecycle.cancel(run, None)
    assert "hx-trigger" not in text_of(browser, "run", run.number)


def test_a_poll_brings_the_progress_alone_until_the_run_ends(
    browser: Client, project: Project
) -> None:
    run = asked_run(project)
    polled = browser.get(page("run", run.number), headers=HTMX)
    assert polled.content.decode().strip().startswith('<section id="progress"')
    assert "HX-Refresh" not in polled.headers
    answer(run)
    lifecycle.finish_if_done(run)
    assert browser.get(page("run", run.number), headers=HTMX).headers["HX-Refresh"] == "true"


def test_the_page_says_what_the_run_rests_on(browser: Client, project: Project) -> None:
    run = asked_run(project)
    shown = text_of(browser, "run", run.number)
    for fact in (run.digest, str(run.seed), run.parser, "temperature = 0", run.endpoint.address):
        assert fact in shown


def test_failures_stand_there_in_the_providers_words(browser: Client, project: Project) -> None:
    run = asked_run(project)
    fail(run, Rejected("The provider answered 400: <b>no</b>"))
    shown = text_of(browser, "run", run.number)
    assert "<b>3 rejected</b>: <q>The provider answered 400: &lt;b&gt;no&lt;/b&gt;</q>" in shown
    assert f"{page('run', run.number)}?result=missing&amp;cause=rejected#outcomes" in shown


def test_a_paused_run_says_why(browser: Client, project: Project) -> None:
    run = asked_run(project)
    lease.pause_endpoint_runs(run.endpoint, "The quota is used up.")
    assert "The quota is used up." in text_of(browser, "run", run.number)


def test_a_run_is_paused_resumed_and_cancelled(browser: Client, project: Project) -> None:
    run = asked_run(project)
    states = []
    for step in ("pause", "resume", "cancel"):
        browser.post(page(f"run-{step}", run.number))
        run.refresh_from_db()
        states.append(run.state)
    assert states == ["paused", "running", "cancelled"]


def test_a_cap_is_raised_beside_resume(browser: Client, project: Project) -> None:
    run = asked_run(project)
    assert "New cap" not in text_of(browser, "run", run.number)
    lifecycle.pause(run, None)
    assert "New cap" not in text_of(browser, "run", run.number)
    Run.objects.update(cap=Decimal("0.35"))
    assert "New cap (now 0.35 USD)" in text_of(browser, "run", run.number)
    sent = browser.post(page("run-resume", run.number), {"cap": "0.2"})
    assert (sent.status_code, "A cap can only be raised." in sent.content.decode()) == (422, True)
    sent = browser.post(page("run-resume", run.number), {"cap": "much"})
    assert (sent.status_code, "New cap: Enter a number." in sent.content.decode()) == (422, True)
    browser.post(page("run-resume", run.number), {"cap": "2.5"})
    run.refresh_from_db()
    assert (run.state, run.cap) == ("running", Decimal("2.5"))


def test_an_empty_new_cap_leaves_the_cap_as_it_is(browser: Client, project: Project) -> None:
    run = asked_run(project)
    Run.objects.update(cap=Decimal("0.35"))
    lifecycle.pause(run, None)
    browser.post(page("run-resume", run.number), {"cap": ""})
    run.refresh_from_db()
    assert (run.state, run.cap) == ("running", Decimal("0.35"))


def test_cancelling_asks_once_more(browser: Client, project: Project) -> None:
    run = asked_run(project)
    assert "Cancel run 1?" in text_of(browser, "run-cancel", run.number)
    run.refresh_from_db()
    assert run.state == "running"


def test_while_a_supplement_asks_it_alone_is_cancelled_and_the_pages_say_so(
    browser: Client, project: Project
) -> None:
    run = asked_run(project)
    answer(run, "no answer")
    lifecycle.finish_if_done(run)
    supplements.ask_again(run, None, {"max_tokens": 4096})
    asked = text_of(browser, "run-cancel", run.number)
    assert "Cancel the supplement of run 1?" in asked
    assert "cannot be resumed" not in asked
    shown = browser.post(page("run-cancel", run.number), follow=True).content.decode()
    assert "The supplement of run 1 is cancelled." in shown
    assert "Run 1 is cancelled." not in shown
    run.refresh_from_db()
    assert run.state == "finished"


def test_what_failed_can_be_asked_again(browser: Client, project: Project) -> None:
    run = asked_run(project)
    fail(run, Rejected("no"))
    browser.post(page("run-retry", run.number))
    assert progress.count_progress(run).waiting == 3


def test_a_step_that_is_not_open_is_refused_in_words(browser: Client, project: Project) -> None:
    run = asked_run(project)
    sent = browser.post(page("run-resume", run.number))
    assert sent.status_code == 422
    assert "Run 1 is already running." in sent.content.decode()


def test_a_run_that_nobody_works_on_says_so_at_once(browser: Client, project: Project) -> None:
    run = asked_run(project)
    assert "No worker is running" in text_of(browser, "run", run.number)
    heartbeat.record(heartbeat.WorkerStatus("one"), timezone.now())
    assert "No worker is running" not in text_of(browser, "run", run.number)


def test_a_run_that_somebody_is_at_says_nothing_of_workers(
    browser: Client, project: Project
) -> None:
    run = asked_run(project)
    assert lease.acquire_endpoint(run.endpoint_id, "worker", timezone.now())
    assert "No worker is running" not in text_of(browser, "run", run.number)


def test_a_run_that_waits_for_nothing_says_nothing_of_workers(
    browser: Client, project: Project
) -> None:
    run = asked_run(project)
    answer(run)
    assert "No worker is running" not in text_of(browser, "run", run.number)


def test_what_is_answered_a_second_tells_when_the_rest_will_be(
    browser: Client, project: Project
) -> None:
    run = asked_run(project, items=30)
    answer(run, number=20)
    # Nobody goes on, so that no time can be said.
    assert progress.load_status(run).pace == progress.RunPace()
    heartbeat.record(heartbeat.WorkerStatus("one"), timezone.now())
    Run.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    run.refresh_from_db()
    pace = progress.load_status(run).pace
    # 20 replies in the last 10 seconds; the 10 that are left take 5.
    assert (pace.per_second, pace.seconds_left) == (2.0, 5.0)
    assert "about 5.0 s left" in text_of(browser, "run", run.number)
    Reply.objects.update(created_at=timezone.now() - timedelta(seconds=40))
    # However old the last 20 replies are, they have a pace: 20 in the minute since the run began.
    assert progress.load_status(run).pace.per_second == pytest.approx(1 / 3, rel=0.05)
    assert "per minute" in text_of(browser, "run", run.number)


def test_outcomes_come_by_fifty(browser: Client, project: Project) -> None:
    items = make_items(project, 60)
    run = make_judged(project, [(item, "detected") for item in items])
    shown = text_of(browser, "run", run.number)
    assert shown.count("/items/item-") == 50
    assert "Page 1 of 2" in shown
    assert text_of(browser, "run", run.number, query="?page=2").count("/items/item-") == 10


@pytest.mark.parametrize(
    "query, keys",
    [
        ("?result=parsed", {"item-1", "item-2", "item-4"}),
        ("?result=missing", {"item-3"}),
        ("?result=pending", {"item-5"}),
        ("?category=spelling-errors", {"item-4"}),
        ("?ability=long-form&result=detected", {"item-4"}),
        ("?cause=truncated", {"item-3"}),
        ("?category=unknown", set()),
    ],
)
def test_outcomes_are_narrowed_down(
    browser: Client, project: Project, query: str, keys: set[str]
) -> None:
    items = make_items(project, 3)
    items += make_items(project, 1, category="spelling-errors", ability="long-form")
    items += make_items(project, 1)
    said = ["detected", "undetected", "missing", "detected"]
    run = make_judged(project, zip(items[:4], said, strict=True))
    shown = text_of(browser, "run", run.number, query=query)
    assert {item.key for item in items if f"/items/{item.key}/" in shown} == keys


def test_a_page_costs_the_same_for_few_and_for_many_items(
    browser: Client, project: Project
) -> None:
    counts = []
    for number in (2, 40):
        items = make_items(project, number)
        run = make_judged(project, [(item, "detected") for item in items])
        counts.append([queries(browser, name, run) for name in ("runs", "run", "results")])
    # The second time there are two runs.
    assert counts[0] == counts[1]


def queries(browser: Client, name: str, run: Run) -> int:
    number = [run.number] if name == "run" else []
    with CaptureQueriesContext(connection) as captured:
        assert browser.get(page(name, *number)).status_code == 200
    return len(captured)


def test_the_list_of_runs_is_drawn_anew_while_one_is_not_finished(
    browser: Client, project: Project
) -> None:
    run, url = asked_run(project), reverse("runs", args=[project.slug])
    Run.objects.filter(pk=run.pk).update(state="running")
    assert 'hx-trigger="every 3s"' in browser.get(url).content.decode()
    rows = browser.get(url, {"run": run.number}, headers={"HX-Request": "true"}).content.decode()
    assert rows.strip().startswith("<tbody")
    assert f'value="{run.number}" checked' in rows
    Run.objects.filter(pk=run.pk).update(state="finished")
    assert 'hx-trigger="every 3s"' not in browser.get(url).content.decode()


def test_a_new_run_says_that_only_baselines_can_run_where_no_evaluator_is_there(
    browser: Client, project: Project
) -> None:
    make_items(project, 1)
    url, said = reverse("run-new", args=[project.slug]), "only the strategies under “Baselines”"
    make_baseline()
    assert said in browser.get(url).content.decode()
    make_endpoint("http://127.0.0.1:9/v1")
    assert said not in browser.get(url).content.decode()
