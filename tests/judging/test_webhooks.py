"""Webhooks: what happens in a project reaches a real receiver, signed, at least once."""

import base64
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.errors import FieldError, Refused
from annotation.jobs import job_queue
from annotation.models import Event, Job, Project
from judging.exporting import jobs
from judging.jobs import worker
from judging.models import Delivery, Webhook
from judging.runs import lifecycle
from judging.webhooks import delivery, signing, webhooks
from tests.builders import Cast, cast, make_item, make_member, make_project, say, take
from tests.judging.builders_judging import make_endpoint, make_items, make_run, work
from tests.services.webhook_receiver import Receiver

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.django_db


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.WEBHOOK_HOSTS = ["127.0.0.1"]
    made = Receiver()
    yield made
    made.close()


@pytest.fixture
def people() -> Cast:
    return cast()


class Clock:
    """The time, which only goes on when a test says so."""

    def __init__(self) -> None:
        self.time = timezone.now()

    def __call__(self) -> datetime:
        return self.time

    def wait(self, **some: float) -> None:
        self.time += timedelta(**some)


@pytest.fixture
def now() -> Clock:
    return Clock()


@pytest.fixture
def hook(people: Cast, receiver: Receiver, now: Clock) -> Webhook:
    every = ["resolutions", "runs", "jobs"]
    began = now() - timedelta(seconds=1)
    return webhooks.create_webhook(people.lead, receiver.address, every, now=began)


def serve(now: Callable[[], datetime] = timezone.now) -> None:
    """What a worker does if it looks now."""
    if delivery.find_due(now()):
        delivery.run_slice(now=now)


def happen(project: Project, key: str = "a", at: datetime | None = None) -> Event:
    """A final label has changed."""
    return Event.objects.create(
        kind="resolution",
        subject=key,
        project=project,
        data={"old": {}, "new": {"resolution": "valid", "by": "majority", "from": "labels"}},
        created_at=at or timezone.now(),
    )


def documented_check() -> Any:
    """The function that the documentation shows to receivers."""
    text = (ROOT / "docs" / "webhooks.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    names: dict[str, Any] = {}
    exec(code, names)
    return names["verify"]


def test_a_final_label_by_labelling_is_delivered_once_and_passes_the_documented_check(
    people: Cast, hook: Webhook, receiver: Receiver, settings: Any
) -> None:
    settings.SITE_URL = "https://blindspot.example"
    item = make_item(people.project, "factual/1")
    say(people.annotator, take(people.annotator))
    serve()
    serve()
    assert receiver.types == ["resolution.changed"]
    [(headers, body)] = receiver.got
    uid = documented_check()(signing.derive_secret(hook.nonce), headers, body)
    sent = Delivery.objects.get()
    assert (uid, sent.state, sent.status, sent.tries) == (str(sent.uid), "delivered", 204, 1)
    assert receiver.data() == {
        "project": people.project.slug,
        "item": item.key,
        "old": None,
        "new": {"resolution": "valid", "by": "first label", "from": "labels"},
        "url": f"https://blindspot.example/projects/{people.project.slug}/items/factual/1/",
    }
    assert people.annotator.alias not in body.decode()


def test_the_documented_check_refuses_what_was_changed_and_what_is_old(
    people: Cast, hook: Webhook, receiver: Receiver
) -> None:
    happen(people.project)
    serve()
    [(headers, body)] = receiver.got
    secret, check = signing.derive_secret(hook.nonce), documented_check()
    with pytest.raises(ValueError, match="signature"):
        check(secret, headers, body.replace(b"valid", b"other"))
    with pytest.raises(ValueError, match="too old"):
        check(secret, headers, body, now=time.time() + 301)
    with pytest.raises(ValueError, match="signature"):
        check(signing.derive_secret("another nonce"), headers, body)


@pytest.mark.django_db(transaction=True)
def test_a_run_that_ends_pauses_or_is_cancelled_is_delivered_once(
    people: Cast, hook: Webhook, receiver: Receiver
) -> None:
    make_items(people.project, 1)
    work(make_run(people.project))
    endpoint = make_endpoint("http://127.0.0.1:9/")
    other = make_run(people.project, endpoint, member=people.lead)
    lifecycle.plan_calls(other)
    lifecycle.pause(other, None, reason="The budget is used up.")
    lifecycle.cancel(other, people.lead, reason="Ada said so.")
    serve()
    serve()
    assert receiver.types == ["run.finished", "run.paused", "run.cancelled"]
    told = [receiver.data(number) for number in range(3)]
    assert [(one["run"], one["state"], one["message"]) for one in told] == [
        (1, "finished", ""),
        (2, "paused", "The budget is used up."),
        # A reason that a person wrote is left out, as it could name somebody.
        (2, "cancelled", ""),
    ]
    assert told[0]["url"] == f"/projects/{people.project.slug}/runs/1/"


def test_a_job_is_delivered_each_time_it_ends(
    people: Cast, hook: Webhook, receiver: Receiver
) -> None:
    job = jobs.enqueue(people.project, people.lead, jobs.ExportRequest("items", "csv"))
    serve()
    assert receiver.got == []
    job_queue.cancel_job(job, people.lead)
    serve()
    serve()
    assert receiver.types == ["job.cancelled"]
    assert receiver.data() == {
        "project": people.project.slug,
        "job": {"kind": "export", "number": 1, "title": "Export"},
        "state": "cancelled",
        "message": "",
        "url": f"/projects/{people.project.slug}/jobs/",
    }
    ended = {"finished_at": timezone.now(), "state": "failed", "message": "The disk is full."}
    Job.objects.filter(pk=job.pk).update(**ended)
    serve()
    assert receiver.types == ["job.cancelled", "job.failed"]
    assert receiver.data()["message"] == "The disk is full."


def test_only_chosen_topics_of_the_own_project_are_delivered(
    people: Cast, hook: Webhook, receiver: Receiver
) -> None:
    webhooks.change_webhook(hook, people.lead, topics=["runs"], now=timezone.now())
    happen(people.project)
    other = make_project("elsewhere")
    for project in (people.project, other):
        make_items(project, 1)
    lifecycle.cancel(make_run(other), None)
    run = make_run(people.project)
    lifecycle.cancel(run, people.lead)
    serve()
    assert receiver.types == ["run.cancelled"]
    assert receiver.data()["project"] == people.project.slug


def test_what_commits_late_is_found_though_later_events_were_delivered(
    people: Cast, hook: Webhook, receiver: Receiver, now: Clock
) -> None:
    Webhook.objects.update(read_from=now() - timedelta(hours=2))
    happen(people.project, "later", now())
    serve(now)
    happen(people.project, "late", now() - timedelta(minutes=40))
    happen(people.project, "too-late", now() - timedelta(minutes=70))
    now.wait(seconds=61)
    serve(now)
    now.wait(seconds=61)
    serve(now)
    assert [receiver.data(number)["item"] for number in range(len(receiver.got))] == [
        "later",
        "late",
    ]


def test_more_than_a_pass_can_take_is_delivered_by_the_next_passes_in_order(
    people: Cast,
    hook: Webhook,
    receiver: Receiver,
    now: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delivery, "MAX_MESSAGES", 3)
    before = now() - timedelta(seconds=40)
    Webhook.objects.update(read_from=before, read_until=before)
    # All at one moment, as after a change of many items.
    for number in range(8):
        happen(people.project, f"item-{number}", now() - timedelta(seconds=20))
    for _ in range(3):
        serve(now)
    assert [receiver.data(number)["item"] for number in range(8)] == [
        f"item-{number}" for number in range(8)
    ]


def test_a_status_that_is_no_success_is_tried_again_by_the_backoff_until_it_has_failed(
    people: Cast, hook: Webhook, receiver: Receiver, now: Clock
) -> None:
    happen(people.project, at=now())
    receiver.answers = [(500, "down")] * 20
    serve(now)
    sent = Delivery.objects.get()
    assert (sent.status, sent.answer, sent.problem) == (500, "down", "The receiver answered 500.")
    for tries, pause in enumerate(delivery.BACKOFF, start=1):
        now.time += pause - timedelta(seconds=1)
        serve(now)
        assert len(receiver.got) == tries  # not yet
        now.wait(seconds=1.5)
        serve(now)
        assert len(receiver.got) == tries + 1
    sent.refresh_from_db()
    assert (sent.state, sent.tries, sent.next_try_at) == ("failed", delivery.MAX_TRIES, None)
    now.wait(days=1)
    serve(now)
    assert len(receiver.got) == delivery.MAX_TRIES
    # The same message each time, with the time of the try.
    assert len(set(receiver.ids)) == len({body for _, body in receiver.got}) == 1
    assert len({headers["webhook-timestamp"] for headers, _ in receiver.got}) > 1


def test_the_next_messages_go_on_while_one_is_tried_again(
    people: Cast, hook: Webhook, receiver: Receiver, now: Clock
) -> None:
    happen(people.project, "first", now() - timedelta(milliseconds=2))
    happen(people.project, "second", now() - timedelta(milliseconds=1))
    receiver.answers = [(503, "")]
    serve(now)
    assert [one.state for one in Delivery.objects.order_by("pk")] == ["waiting", "delivered"]
    hook.refresh_from_db()
    assert (hook.failing_since, hook.wait_until) == (None, None)


@pytest.mark.parametrize("status", [301, 307])
def test_redirects_are_not_followed(
    people: Cast, hook: Webhook, receiver: Receiver, status: int
) -> None:
    happen(people.project)
    receiver.answers = [(status, "")]
    serve()
    assert len(receiver.got) == 1
    assert Delivery.objects.get().problem == f"The receiver answered {status}."


def test_without_any_answer_the_whole_webhook_waits_by_the_backoff(
    people: Cast, hook: Webhook, receiver: Receiver, now: Clock
) -> None:
    receiver.close()
    for key in ("a", "b"):
        happen(people.project, key, now())
    serve(now)
    tries = Delivery.objects.order_by("pk").values_list("tries", flat=True)
    assert list(tries) == [1, 0]
    hook.refresh_from_db()
    assert hook.failures == 1
    assert hook.wait_until
    assert now() < hook.wait_until < now() + 2 * delivery.BACKOFF[0]


def test_a_receiver_that_hangs_up_after_each_answer_gets_each_message_at_once(
    people: Cast, hook: Webhook, receiver: Receiver, now: Clock
) -> None:
    receiver.hangs_up = True
    for number in range(6):
        happen(people.project, f"item-{number}", now())
    serve(now)
    tries = Delivery.objects.values_list("state", "tries")
    assert list(tries) == [("delivered", 1)] * 6


def test_a_receiver_that_asks_for_a_pause_gets_it(
    people: Cast, hook: Webhook, receiver: Receiver, now: Clock
) -> None:
    receiver.answers, receiver.headers = [(429, "slowly")], {"Retry-After": "120"}
    for key in ("a", "b"):
        happen(people.project, key, now())
    serve(now)
    hook.refresh_from_db()
    assert (len(receiver.got), hook.failures, hook.is_failing(now())) == (1, 0, False)
    assert hook.wait_until
    assert timedelta(seconds=115) < hook.wait_until - now() < timedelta(seconds=125)
    now.wait(seconds=110)
    serve(now)
    assert len(receiver.got) == 1
    now.wait(seconds=15)
    serve(now)
    assert len(receiver.got) == 3
    assert not Delivery.objects.waiting().exists()


def test_a_receiver_that_answers_again_gets_all_that_waited(
    people: Cast, receiver: Receiver, now: Clock, hook: Webhook
) -> None:
    port = receiver.server.server_port
    Webhook.objects.update(address=f"http://127.0.0.1:{free_port()}/")
    for key in ("a", "b"):
        happen(people.project, key, now())
    serve(now)
    now.wait(seconds=6)
    serve(now)
    assert Webhook.objects.get().failures == 2
    Webhook.objects.update(address=f"http://127.0.0.1:{port}/")
    now.wait(seconds=6)
    serve(now)
    assert receiver.got == []  # it waits a minute now
    now.wait(seconds=60)
    serve(now)
    assert [receiver.data(0)["item"], receiver.data(1)["item"]] == ["a", "b"]
    hook.refresh_from_db()
    assert (hook.failures, hook.failing_since, hook.wait_until) == (0, None, None)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def test_a_slow_receiver_ends_by_the_timeout(
    people: Cast, hook: Webhook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "TIMEOUT", 0.3)
    receiver.pause = 1
    happen(people.project)
    serve()
    sent = Delivery.objects.get()
    assert (sent.status, sent.problem) == (None, "No full reply within 0.3 s.")


def test_a_receiver_that_answers_410_gets_no_more(
    people: Cast, hook: Webhook, receiver: Receiver, now: Clock
) -> None:
    for key in ("a", "b"):
        happen(people.project, key, now())
    receiver.answers = [(410, "")]
    serve(now)
    hook.refresh_from_db()
    assert (hook.active, len(receiver.got)) == (False, 1)
    assert "410" in hook.off_reason
    sent, waited = Delivery.objects.order_by("pk")
    assert (sent.state, waited.state) == ("failed", "failed")
    assert (sent.problem, waited.status) == ("The receiver answered 410.", None)
    event = Event.objects.filter(kind="webhook").latest("pk")
    assert (event.old, event.new, event.member) == ({"active": True}, {"active": False}, None)


def test_a_webhook_is_switched_off_if_nothing_got_through_for_three_days(
    people: Cast, hook: Webhook, receiver: Receiver, now: Clock
) -> None:
    happen(people.project, "a", now())
    receiver.answers = [(500, "")] * 50
    began = now()
    while now() < began + timedelta(days=2, hours=23):
        serve(now)
        now.wait(hours=2)
    assert Webhook.objects.get().active
    assert Delivery.objects.get().state == "failed"
    happen(people.project, "b", now())
    now.wait(hours=2)
    serve(now)
    hook.refresh_from_db()
    assert (hook.active, "3 days" in hook.off_reason) == (False, True)


@pytest.mark.parametrize("status", [410, 500])
def test_what_a_former_address_answers_late_says_nothing_of_the_new_one(
    people: Cast, hook: Webhook, receiver: Receiver, now: Clock, status: int
) -> None:
    """A lead corrects the address while a message is on its way to the former one."""
    Webhook.objects.update(failing_since=now() - timedelta(days=4))
    webhooks.send_ping(hook, now=now())
    Delivery.objects.update(tries=delivery.MAX_TRIES - 1)
    sending = Webhook.objects.get()
    webhooks.change_webhook(hook, people.lead, address=f"{receiver.address}/new", now=now())
    problem = f"The receiver answered {status}."
    late = delivery.Attempt(Delivery.objects.get(), now(), status, "", problem, 9.0)
    delivery._store_attempts(sending, [late])
    hook.refresh_from_db()
    assert (hook.active, hook.failing_since, hook.wait_until) == (True, None, None)
    serve(now)
    assert (receiver.types, Delivery.objects.get().state) == (["ping"], "delivered")


def test_one_success_begins_the_three_days_anew(
    people: Cast, hook: Webhook, receiver: Receiver, now: Clock
) -> None:
    Webhook.objects.update(failing_since=now() - timedelta(days=4))
    happen(people.project, "a", now())
    serve(now)
    hook.refresh_from_db()
    assert (hook.active, hook.failing_since) == (True, None)


def test_what_happens_while_it_is_off_is_not_sent_and_what_waited_can_be_sent_again(
    people: Cast, hook: Webhook, receiver: Receiver, now: Clock
) -> None:
    receiver.answers = [(500, "")]
    happen(people.project, "before", now())
    serve(now)
    now.wait(minutes=1)
    webhooks.change_webhook(hook, people.lead, active=False, now=now())
    assert Delivery.objects.get().problem == webhooks.NOT_SENT
    happen(people.project, "meanwhile", now())
    now.wait(minutes=1)
    serve(now)
    with pytest.raises(Refused, match="is off"):
        webhooks.send_again(hook, hook.deliveries.failed(), now=now())
    with pytest.raises(Refused, match="is off"):
        webhooks.send_ping(hook, now=now())
    webhooks.change_webhook(hook, people.lead, active=True, now=now())
    now.wait(minutes=2)
    serve(now)
    assert len(receiver.got) == 1
    assert webhooks.send_again(hook, hook.deliveries.failed(), now=now()) == 1
    serve(now)
    assert [receiver.data(0)["item"], receiver.data(1)["item"]] == ["before", "before"]
    assert receiver.ids[0] == receiver.ids[1]


def test_a_delivery_is_sent_again_with_its_id_and_body_at_once(
    people: Cast, hook: Webhook, receiver: Receiver, now: Clock
) -> None:
    happen(people.project, at=now())
    serve(now)
    Webhook.objects.update(wait_until=now() + timedelta(hours=1))
    webhooks.send_again(hook, hook.deliveries.all(), now=now())
    assert webhooks.send_again(hook, hook.deliveries.all(), now=now()) == 0  # it waits already
    serve(now)
    assert receiver.got[0][1] == receiver.got[1][1]
    assert receiver.ids[0] == receiver.ids[1]


def test_a_new_secret_holds_at_once(people: Cast, hook: Webhook, receiver: Receiver) -> None:
    old = signing.derive_secret(hook.nonce)
    new = webhooks.renew_secret(hook, people.lead)
    webhooks.send_ping(hook, now=timezone.now())
    serve()
    [(headers, body)] = receiver.got
    assert receiver.types == ["ping"]
    documented_check()(new, headers, body)
    with pytest.raises(ValueError, match="signature"):
        documented_check()(old, headers, body)
    assert len(base64.b64decode(new.removeprefix("whsec_"))) == 32
    assert Event.objects.filter(kind="webhook secret").count() == 1


def test_no_table_has_the_secret(hook: Webhook) -> None:
    secret = signing.derive_secret(hook.nonce).removeprefix("whsec_")
    rows = str([list(model.objects.values()) for model in (Webhook, Delivery, Event)])
    assert secret not in rows


def test_an_answer_is_kept_short_and_without_control_characters(
    people: Cast, hook: Webhook, receiver: Receiver
) -> None:
    receiver.answers = [(200, "\0\x1b[31m<script>" + "x" * 100_000)]
    happen(people.project)
    serve()
    sent = Delivery.objects.get()
    assert sent.state == "delivered"
    assert sent.answer.startswith("��[31m<script>x")
    assert len(sent.answer) == 1000


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("ftp://hooks.example.org/", "begin with http"),
        ("http://localhost:8000/", "WEBHOOK_HOSTS"),
        ("http://10.0.0.7/", "WEBHOOK_HOSTS"),
        ("http://[::1]/", "WEBHOOK_HOSTS"),
        ("http://169.254.169.254/latest", "must not be called"),
        ("http://metadata.google.internal/", "must not be called"),
        ("http://2130706433/", "neither a name nor a full IP"),
        ("https://ada:secret@hooks.example.org/", "user name or password"),
        ("https://hooks.example.org/?token=1", "before any"),
        ("https://hooks.example.org/" + "a" * 500, "at most 500"),
        ("https://[hooks", "cannot be read"),
    ],
)
def test_an_address_that_must_not_be_called_is_refused_as_written(
    people: Cast, settings: Any, address: str, words: str
) -> None:
    settings.WEBHOOK_HOSTS = []
    with pytest.raises(FieldError, match=words) as caught:
        webhooks.create_webhook(people.lead, address, ["runs"], now=timezone.now())
    assert caught.value.field == "address"
    assert not Webhook.objects.exists()


def test_an_address_that_is_no_longer_allowed_or_resolves_inside_is_not_called(
    people: Cast, hook: Webhook, receiver: Receiver, now: Clock, settings: Any
) -> None:
    settings.WEBHOOK_HOSTS = []
    happen(people.project, at=now())
    serve(now)
    assert "WEBHOOK_HOSTS" in Delivery.objects.get().problem
    # A name that looks like any other and leads to this machine.
    inside = socket.gethostname()
    Webhook.objects.update(address=f"http://{inside}:{receiver.server.server_port}/")
    now.wait(seconds=10)
    serve(now)
    sent = Delivery.objects.get()
    assert (sent.tries, sent.status, receiver.got) == (2, None, [])
    assert f"{inside} is not a public host" in sent.problem
    # Who only switches it off may do so all the same.
    webhooks.change_webhook(hook, people.lead, active=False, now=now())
    assert not Webhook.objects.get().active


@pytest.mark.parametrize("host", ["a" * 70 + ".example.org", "a..example.org", "xn--a.example.org"])
def test_a_name_that_no_host_can_have_stops_no_other_webhook(
    people: Cast, hook: Webhook, receiver: Receiver, host: str
) -> None:
    webhooks.create_webhook(people.lead, receiver.address, ["resolutions"], now=hook.read_from)
    Webhook.objects.filter(pk=hook.pk).update(address=f"http://{host}/")
    happen(people.project)
    serve()
    first, second = Delivery.objects.order_by("webhook")
    assert (first.state, first.status, bool(first.problem)) == ("waiting", None, True)
    assert (second.state, len(receiver.got)) == ("delivered", 1)


def test_what_cannot_be_told_of_stops_no_other_webhook(
    people: Cast, hook: Webhook, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    webhooks.create_webhook(people.lead, receiver.address, ["resolutions"], now=hook.read_from)
    broken = {"subject": "run of nobody", "project_id": people.project.pk, "member_id": None}
    Event.record("run finished", **broken)
    happen(people.project)
    serve()
    assert receiver.types == ["resolution.changed"]
    assert f"Collecting for {hook.label} failed" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_send_once(hook: Webhook, receiver: Receiver) -> None:
    happen(hook.project)
    receiver.pause = 0.3
    ready = threading.Barrier(2)

    def work_once() -> None:
        ready.wait()
        delivery.run_slice()
        connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        for one in [pool.submit(work_once) for _ in range(2)]:
            one.result()
    assert len(receiver.got) == 1
    assert Delivery.objects.get().state == "delivered"
    assert Webhook.objects.get().leased_until is None


def test_a_worker_that_looked_before_another_took_a_webhook_does_not_take_it(
    hook: Webhook, now: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What both found due, before either took it.
    monkeypatch.setattr(delivery, "_find_due_webhooks", lambda _: Webhook.objects.all())
    assert delivery._take_leases(now()) == [hook]
    now.wait(seconds=1)
    assert delivery._take_leases(now()) == []


def test_the_webhooks_of_a_killed_worker_are_free_after_a_minute(
    people: Cast, hook: Webhook, receiver: Receiver, now: Clock
) -> None:
    happen(people.project, at=now())
    Webhook.objects.update(leased_until=now() + timedelta(seconds=60))
    serve(now)
    assert receiver.got == []
    now.wait(seconds=61)
    serve(now)
    assert len(receiver.got) == 1


def test_a_message_of_a_worker_that_died_before_it_stored_the_answer_is_sent_again(
    people: Cast, hook: Webhook, receiver: Receiver, now: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    happen(people.project, at=now())
    with monkeypatch.context() as patched:
        patched.delattr(delivery, "_store_attempts")
        with pytest.raises(NameError):
            delivery.run_slice(now=now)
    serve(now)
    assert len(receiver.got) == 2
    assert len(set(receiver.ids)) == 1
    assert Delivery.objects.get().state == "delivered"


def test_a_worker_that_is_stopped_sends_nothing_more(
    people: Cast, hook: Webhook, receiver: Receiver
) -> None:
    happen(people.project)
    delivery.run_slice(stopped=lambda: True)
    assert (receiver.got, Delivery.objects.get().state) == ([], "waiting")
    assert Webhook.objects.get().leased_until is None


def test_finished_deliveries_are_deleted_after_thirty_days(
    people: Cast, hook: Webhook, receiver: Receiver, now: Clock
) -> None:
    happen(people.project, "a", now())
    serve(now)
    now.wait(days=29)
    happen(people.project, "b", now())
    serve(now)
    assert Delivery.objects.count() == 2
    now.wait(days=2)
    serve(now)
    assert Delivery.objects.get().about == "b"


def test_nothing_is_sent_for_an_archived_project(
    people: Cast, hook: Webhook, receiver: Receiver
) -> None:
    happen(people.project)
    Project.objects.update(archived_at=timezone.now())
    serve()
    assert receiver.got == []


def test_asking_what_is_due_takes_one_query_if_no_webhook_is_on(hook: Webhook) -> None:
    Webhook.objects.update(active=False)
    with CaptureQueriesContext(connection) as queries:
        assert delivery.find_due(timezone.now()) == []
    assert len(queries) == 1
    Webhook.objects.update(active=True)
    with CaptureQueriesContext(connection) as queries:
        delivery.find_due(timezone.now())
    assert len(queries) == 2


def test_the_worker_serves_webhooks_one_slice_at_a_time() -> None:
    [kind] = [one for one in worker.list_kinds() if one.name == "webhooks"]
    assert kind.due == delivery.find_due


def test_every_change_is_on_record_with_old_and_new(people: Cast, hook: Webhook) -> None:
    new = {"address": "https://hooks.example.org/", "topics": ["runs"]}
    webhooks.change_webhook(hook, people.lead, **new, now=timezone.now())
    webhooks.change_webhook(hook, people.lead, active=False, now=timezone.now())
    webhooks.change_webhook(hook, people.lead, active=False, now=timezone.now())
    webhooks.delete_webhook(hook, people.lead)
    told = list(Event.objects.filter(kind__startswith="webhook").order_by("pk"))
    assert [one.kind for one in told] == ["webhook", "webhook", "webhook", "webhook deleted"]
    assert told[0].old == {}
    assert told[0].new == told[1].old
    assert told[1].new == {**new, "active": True}
    assert (told[2].old["active"], told[2].new["active"]) == (True, False)
    assert told[3].old == told[2].new
    assert {one.member for one in told} == {people.lead}
    assert not Delivery.objects.exists()


def test_a_project_has_at_most_ten(people: Cast) -> None:
    for number in range(10):
        address = f"https://hooks.example.org/{number}"
        webhooks.create_webhook(people.lead, address, ["runs"], now=timezone.now())
    with pytest.raises(Refused, match="at most 10"):
        webhooks.create_webhook(people.lead, address, ["runs"], now=timezone.now())


def test_names_that_nobody_answers_for_keep_no_other_message_back(
    people: Cast, receiver: Receiver, now: Clock, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """Some seconds, until the messages that wait for a name are given up."""
    answers, ended = threading.Event(), list[str]()
    settings.WEBHOOK_HOSTS = ["127.0.0.1", "receiver.example"]
    look_up, began = socket.getaddrinfo, now() - timedelta(seconds=1)

    def slow(host: Any, *more: Any, **named: Any) -> Any:
        if str(host).endswith("receiver.example"):
            return look_up("127.0.0.1", *more, **named)
        answers.wait(60)
        ended.append(host)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    monkeypatch.setattr(delivery, "TIMEOUT", 2.0)
    for number in range(10):
        lost = f"https://{number}.lost.example/"
        webhooks.send_ping(
            webhooks.create_webhook(people.lead, lost, ["runs"], now=began), now=now()
        )
    lead = make_member(make_project(), role="lead")
    address = receiver.address.replace("127.0.0.1", "receiver.example")
    webhooks.send_ping(webhooks.create_webhook(lead, address, ["runs"], now=began), now=now())
    serve(now)
    assert receiver.types == ["ping"]
    assert ended == []
    answers.set()
