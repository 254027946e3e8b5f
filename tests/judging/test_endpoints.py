"""Endpoints in the browser and in the API: who sees, tests, adds and changes them."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection, connections, transaction
from django.test import Client
from django.utils import timezone

from annotation.errors import Refused as NotAllowed
from annotation.models import Account, ApiToken, Event
from judging.errors import Refused
from judging.evaluators import endpoints, http_client, trial_call
from judging.evaluators.forms import EndpointForm
from judging.evaluators.providers import Answer, Finish
from judging.models import Endpoint, Reply
from judging.runs import choices, lifecycle
from tests.builders import Cast, make_account
from tests.judging.builders_judging import (
    make_baseline,
    make_endpoint,
    make_items,
    make_run,
)
from tests.services.scripted_evaluator import Script, ScriptedEvaluator

pytestmark = pytest.mark.django_db

GOOD = {
    "name": "judge",
    "provider": "anthropic",
    "address": "https://evaluator.example/v1/",
    "key_variable": "JUDGE_API_KEY",
    "model": "judge-1",
    "api": "chat",
    "json_mode": "json_schema",
    "template": "",
    "parameters": '{"max_tokens": 50}',
    "in_flight": 4,
    "timeout": 60,
    "price_in": "2.50",
}
NOBODY = "https://evaluator.example/v1"
KEY = "sk-test-4f1d/9b2e77aa0c31"


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(make_account("boss", is_superuser=True))
    return client


def seen_by(people: Cast, person: str, address: str) -> Any:
    client = Client()
    account = people.account(person)
    assert account is not None
    client.force_login(account)
    return client.get(address)


def page(client: Client, endpoint: Endpoint, way: str = "") -> Any:
    return client.get(f"/endpoints/{endpoint.name}/{way}")


def text(answer: Any) -> str:
    return " ".join(answer.content.decode().split())


def test_a_stale_page_takes_back_no_price_before_its_reader_is_told(admin: Client) -> None:
    address = "/endpoints/judge/edit/"
    admin.post("/endpoints/new/", GOOD)
    judge = Endpoint.objects.get(name="judge")
    form = admin.get(address).context["form"]
    sent = GOOD | {"address": judge.address, "shown": form.shown, "in_flight": 2}
    judge.price_in = Decimal("9.75")
    judge.save()
    answer = admin.post(address, sent)
    assert "Somebody else changed this endpoint meanwhile" in text(answer)
    judge.refresh_from_db()
    assert (judge.price_in, judge.in_flight) == (Decimal("9.75"), 4)
    again = sent | {"shown": answer.context["form"].shown}
    assert admin.post(address, again).status_code == 302
    judge.refresh_from_db()
    assert (judge.price_in, judge.in_flight) == (Decimal("2.5"), 2)
    assert admin.post(address, again).status_code == 302, "its answer was lost: sent once more"


def test_of_two_people_who_add_one_of_the_same_name_at_once_the_second_is_told(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name was still free when the form was checked."""
    save = endpoints.save_endpoint

    def save_after_another(form: EndpointForm, by: Account) -> Endpoint:
        make_endpoint(NOBODY, name="judge")
        return save(form, by)

    monkeypatch.setattr(endpoints, "save_endpoint", save_after_another)
    answer = admin.post("/endpoints/new/", GOOD)
    assert answer.status_code == 422
    assert "judge was just added by somebody else. Choose another name." in text(answer)
    assert Endpoint.objects.get(name="judge").provider == "openai_compatible"


def test_a_site_admin_sets_one_up(admin: Client) -> None:
    answer = admin.post("/endpoints/new/", GOOD, follow=True)
    found = Endpoint.objects.get(name="judge")
    assert (found.address, found.parameters) == ("https://evaluator.example/v1", {"max_tokens": 50})
    assert "Endpoint judge saved." in text(answer)
    assert "max_tokens = 50" in text(answer)


def test_a_new_one_gets_a_limit_of_tokens_and_one_that_is_there_keeps_what_it_sends(
    admin: Client,
) -> None:
    chat = GOOD | {"provider": "openai_compatible", "json_mode": "", "parameters": ""}
    answer = admin.post("/endpoints/new/", chat, follow=True)
    assert "max_tokens = 1024" in text(answer)
    assert "no token limit" not in text(answer)
    recorded = Event.objects.get(kind="endpoint", subject="judge")
    assert recorded.data["new"]["parameters"] == {"max_tokens": 1024}
    admin.post("/endpoints/new/", chat | {"name": "b", "parameters": '{"max_tokens": null}'})
    old = make_endpoint("https://evaluator.example/v1")
    admin.post(f"/endpoints/{old.name}/edit/", chat | {"timeout": 7})
    kept = {one.name: one.parameters for one in Endpoint.objects.filter(timeout__in=(7, 60))}
    assert kept == {"judge": {"max_tokens": 1024}, "b": {"max_tokens": None}, old.name: {}}
    assert "no token limit: an answer may fill" in text(page(admin, old))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"address": "http://169.254.169.254/"}, "must not be called"),
        ({"address": "http://10.0.0.7/v1"}, "EVALUATOR_HOSTS"),
        ({"address": ""}, "Enter the base URL"),
        ({"name": "new"}, "Choose another one"),
        ({"provider": "recorded"}, "Select a valid choice"),
        ({"parameters": '{"stream": true}'}, "cannot be set: stream"),
        ({"parameters": '{"api_key": "sk-x"}'}, "looks like a key"),
        ({"parameters": "[" * 5_000}, "nested too deep"),
        ({"parameters": '{"a": ' + "[" * 500 + "]" * 500 + "}"}, "nested too deep"),
        ({"json_mode": "json_object"}, "by schema"),
        ({"api": "completions"}, "chat only"),
        ({"provider": "openai_compatible", "api": "completions"}, "need the model"),
        ({"provider": "gemini", "model": "a b"}, "letters, digits, dots and hyphens"),
        ({"key_variable": "SECRET_KEY"}, "Enter a valid value"),
    ],
)
def test_one_that_cannot_be_asked_is_refused_at_its_field(
    admin: Client, wrong: dict[str, Any], words: str
) -> None:
    answer = admin.post("/endpoints/new/", GOOD | wrong)
    assert answer.status_code == 422
    assert words in text(answer)
    assert not Endpoint.objects.filter(name="judge").exists()


def test_what_runs_rest_on_stays_and_the_rest_is_changed(admin: Client, people: Cast) -> None:
    make_items(people.project, 1)
    endpoint = make_endpoint("http://127.0.0.1:9/v1")
    make_run(people.project, endpoint)
    changed = GOOD | {"timeout": 7, "address": endpoint.address}
    assert "parameters cannot change" in text(page(admin, endpoint, "edit/"))
    admin.post(f"/endpoints/{endpoint.name}/edit/", changed)
    found = Endpoint.objects.get(pk=endpoint.pk)
    assert (found.model, found.provider, found.timeout) == (endpoint.model, endpoint.provider, 7)
    assert found.name == endpoint.name


def test_one_that_no_run_rests_on_can_become_another(admin: Client) -> None:
    endpoint = make_endpoint("http://127.0.0.1:9/v1")
    admin.post(f"/endpoints/{endpoint.name}/edit/", GOOD)
    assert Endpoint.objects.get(pk=endpoint.pk).provider == "anthropic"


def test_researchers_see_and_only_admins_change(people: Cast) -> None:
    endpoint = make_endpoint("https://evaluator.example/v1")
    listed = text(seen_by(people, "researcher", "/endpoints/"))
    assert endpoint.name in listed
    assert "New endpoint" not in listed
    assert "/edit/" not in text(seen_by(people, "researcher", f"/endpoints/{endpoint.name}/"))
    assert seen_by(people, "annotator", "/endpoints/").status_code == 403
    assert seen_by(people, "stranger", "/endpoints/").status_code == 404


@pytest.mark.parametrize("address", ["/endpoints/{}/", "/endpoints/{}/edit/"])
def test_a_name_that_no_column_takes_is_no_endpoints(admin: Client, address: str) -> None:
    assert admin.get(address.format("a%00b")).status_code == 404


def test_who_ran_in_an_archived_project_only_sees_none(people: Cast) -> None:
    people.project.archived_at = people.project.created_at
    people.project.save()
    assert seen_by(people, "researcher", "/endpoints/").status_code == 404


def test_the_list_asks_as_much_for_many_as_for_few(
    admin: Client, django_assert_max_num_queries: Any
) -> None:
    for _ in range(20):
        make_endpoint("https://evaluator.example/v1")
    with django_assert_max_num_queries(8):
        admin.get("/endpoints/")


def test_a_page_says_whether_the_key_is_set_and_never_the_key(
    admin: Client, monkeypatch: Any
) -> None:
    endpoint = make_endpoint("https://evaluator.example/v1", key_variable="OUR_API_KEY")
    assert "not set" in text(page(admin, endpoint))
    monkeypatch.setenv("OUR_API_KEY", KEY)
    shown = text(page(admin, endpoint)) + text(admin.get("/endpoints/"))
    assert "not set" not in shown
    assert "OUR_API_KEY" in shown
    assert KEY not in shown


def test_a_name_may_have_dots_as_models_have(admin: Client) -> None:
    answer = admin.post("/endpoints/new/", GOOD | {"name": "gpt-4.1"})
    assert answer.headers["Location"] == "/endpoints/gpt-4.1/"
    for name in ("..", ".x", "x.", "a..b", "gpt/4", "gpt 4", "é"):
        refused = admin.post("/endpoints/new/", GOOD | {"name": name})
        assert "dots between them, for example gpt-4.1" in text(refused), name
    with pytest.raises(ValidationError):
        Endpoint._meta.get_field("name").run_validators("a.b\n")


def test_a_name_with_dots_has_a_page(admin: Client) -> None:
    endpoint = make_endpoint("", name="gpt-3.5-turbo-0125", provider="recorded")
    assert "no test" in text(page(admin, endpoint))


def test_a_test_call_shows_reply_tokens_seconds_and_cost(
    admin: Client, evaluator: ScriptedEvaluator
) -> None:
    endpoint = make_endpoint(evaluator, price_in=10, price_out=20)
    answer = admin.post(f"/endpoints/{endpoint.name}/test/")
    tried = answer.context["tried"]
    assert answer.status_code == 200
    assert (tried.finish, tried.model) == ("stop", f"{endpoint.model}-0001")
    assert tried.cost == Decimal(tried.tokens_in * 10 + tried.tokens_out * 20).scaleb(-6)
    assert "The endpoint works." in text(answer)
    assert not Reply.objects.exists()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (Script(faults={"truncated": ""}), "Ask with a higher max_tokens. Set that in the"),
        (Script(faults={"empty": ""}), "The reply is empty. Test again"),
        (Script(faults={"filtered": ""}), "the provider blocked the reply"),
        (Script(answers_as="cheap-model-0125"), "the reply names the model “cheap-model-0125”"),
    ],
)
def test_a_test_call_does_not_say_that_an_endpoint_works_whose_reply_runs_could_not_use(
    admin: Client, evaluator: ScriptedEvaluator, script: Script, words: str
) -> None:
    evaluator.script = script
    endpoint = make_endpoint(evaluator)
    answer = admin.post(f"/endpoints/{endpoint.name}/test/")
    assert answer.status_code == 200
    assert "The endpoint works." not in text(answer)
    assert words in text(answer)
    key = ApiToken.issue(answer.wsgi_request.user, "test")[1]
    program = Client(headers={"Authorization": f"Bearer {key}"})
    [warning] = program.post(f"/api/v1/endpoints/{endpoint.name}/test/").json()["warnings"]
    assert words in warning


@pytest.mark.parametrize(
    ("finish", "words"),
    [("stop", "The model thought, but wrote no"), ("length", "The thinking used up all 1,024")],
)
def test_a_test_call_warns_of_thinking_without_a_reply_beside_another_model(
    admin: Client, monkeypatch: pytest.MonkeyPatch, finish: Finish, words: str
) -> None:
    async def thought(*_: Any) -> Answer:
        return Answer("", finish, "other", 50, 1024, timezone.now(), 1.0, thinking="Hm.")

    monkeypatch.setattr(trial_call, "_call_endpoint", thought)
    endpoint = make_endpoint("https://evaluator.example/v1", model="judge-1")
    warnings = admin.post(f"/endpoints/{endpoint.name}/test/").context["tried"].warnings
    assert words in warnings[0]
    assert "“judge-1” was asked" in warnings[1]


def test_a_test_call_waits_as_long_as_a_run_does(
    admin: Client, evaluator: ScriptedEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    real = http_client._timeout
    monkeypatch.setattr(
        http_client, "_timeout", lambda seconds: waited.append(seconds) or real(seconds)
    )
    endpoint = make_endpoint(evaluator, timeout=90)
    answer = admin.post(f"/endpoints/{endpoint.name}/test/")
    assert "The endpoint works." in text(answer)
    assert waited == [90]
    assert "up to 90 seconds, as runs do." in text(answer)


@pytest.mark.parametrize(
    ("prices", "told", "cost"),
    [
        ({}, "unknown", "<dd>unknown ("),
        ({"price_in": 0, "price_out": 0}, "free", "<dd>free</dd>"),
    ],
)
def test_an_unknown_price_is_unknown_and_a_price_of_0_is_free(
    admin: Client, evaluator: ScriptedEvaluator, prices: Any, told: str, cost: str
) -> None:
    endpoint = make_endpoint(evaluator, **prices)
    assert text(page(admin, endpoint)).count(f"<dd>{told}</dd>") == 2
    assert cost in text(admin.post(f"/endpoints/{endpoint.name}/test/"))


def test_a_test_call_that_fails_shows_the_words_of_the_provider(
    admin: Client, evaluator: ScriptedEvaluator
) -> None:
    endpoint = make_endpoint(evaluator, "not_found")
    answer = admin.post(f"/endpoints/{endpoint.name}/test/")
    assert answer.status_code == 422
    assert "The provider answered 404: there is no such model" in text(answer)
    assert len(evaluator.log) == 1


def test_a_test_call_that_gets_a_web_page_says_to_check_the_address(
    admin: Client, evaluator: ScriptedEvaluator
) -> None:
    answer = admin.post(f"/endpoints/{make_endpoint(evaluator, 'html').name}/test/")
    problem = answer.context["tried"].problem
    assert problem.startswith("The reply is not JSON: '<h1>Welcome</h1>'. Check the address: ")


def test_nobody_tests_while_the_evaluator_wants_a_pause(
    admin: Client, evaluator: ScriptedEvaluator
) -> None:
    endpoint = make_endpoint(evaluator, paused_until="2999-01-01T00:00:00Z")
    assert "asked for no calls" in text(admin.post(f"/endpoints/{endpoint.name}/test/"))
    assert not evaluator.log


def test_a_site_admin_ends_the_pause_that_a_provider_asked_for(admin: Client, people: Cast) -> None:
    endpoint = make_endpoint(NOBODY, paused_until="2999-01-01T00:00:00Z")
    told = text(seen_by(people, "researcher", f"/endpoints/{endpoint.name}/"))
    assert "A site admin can end the pause." in told
    assert "End the pause" in text(page(admin, endpoint))
    assert f"The pause of {endpoint.name} has ended." in press(admin, endpoint, "end-pause")
    assert "asked for a pause" not in text(page(admin, endpoint))


@pytest.mark.parametrize("provider", ["recorded", "derived"])
def test_what_nobody_answers_says_so(admin: Client, provider: str) -> None:
    endpoint = make_endpoint("", provider=provider)
    answer = admin.post(f"/endpoints/{endpoint.name}/test/")
    assert answer.status_code == 422
    assert "called" in answer.context["tried"].problem


def test_what_the_headers_say_is_left_stands_on_the_page(
    admin: Client, evaluator: ScriptedEvaluator
) -> None:
    headers = {"x-ratelimit-remaining-tokens": "149984", "x-ratelimit-limit-tokens": "150000"}
    evaluator.script = Script(headers=headers)
    endpoint = make_endpoint(evaluator)
    answer = admin.post(f"/endpoints/{endpoint.name}/test/")
    assert "149,984" in text(answer)
    assert "150,000" in text(page(admin, endpoint))


def from_api(people: Cast, person: str, address: str) -> Any:
    account = people.account(person)
    assert account is not None
    _, key = ApiToken.issue(account, "test")
    return Client(headers={"Authorization": f"Bearer {key}"}).get(f"/api/v1/{address}")


def test_the_api_gives_the_same_and_no_key(people: Cast, monkeypatch: Any) -> None:
    monkeypatch.setenv("OUR_API_KEY", KEY)
    endpoint = make_endpoint(
        "https://evaluator.example/v1", key_variable="OUR_API_KEY", price_in="2.5"
    )
    listed = from_api(people, "researcher", "endpoints/").json()["results"]
    one = from_api(people, "lead", f"endpoints/{endpoint.name}/").json()
    assert one in listed
    assert (one["key_variable"], one["key_set"]) == ("OUR_API_KEY", True)
    assert (one["parameters"], one["sends"]) == ({}, {"temperature": 0})
    assert one["price_out"] is None
    assert KEY not in str(listed)
    assert from_api(people, "adjudicator", "endpoints/").status_code == 403


def press(client: Client, endpoint: Endpoint, step: str) -> str:
    return text(client.post(f"/endpoints/{endpoint.name}/{step}/", follow=True))


def test_an_endpoint_without_runs_is_deleted(admin: Client) -> None:
    endpoint = make_endpoint(NOBODY)
    assert "No run uses this endpoint." in text(page(admin, endpoint))
    assert f"{endpoint.name} is deleted." in press(admin, endpoint, "delete")
    assert not Endpoint.objects.filter(pk=endpoint.pk).exists()
    event = Event.objects.get(kind="endpoint deleted")
    assert (event.subject, event.old["model"]) == (endpoint.name, endpoint.model)
    assert "endpoint deleted" in text(admin.get("/audit/"))


def test_an_endpoint_with_runs_or_requests_is_archived_and_not_deleted(
    admin: Client, people: Cast
) -> None:
    make_items(people.project, 1)
    endpoint = make_endpoint(NOBODY)
    run = make_run(people.project, endpoint)
    assert "so it cannot be deleted. If you archive it" in text(page(admin, endpoint))
    assert "so it cannot be deleted. Archive it instead." in press(admin, endpoint, "delete")
    lifecycle.plan_calls(run)
    lifecycle.pause(run, None)
    lifecycle.move_to_endpoint(run, make_endpoint(NOBODY), None)
    assert endpoint.is_used()
    assert f"{endpoint.name} is archived." in press(admin, endpoint, "archive")
    assert "It is not offered for new runs." in text(page(admin, endpoint))
    assert f"{endpoint.name} is restored." in press(admin, endpoint, "restore")
    kinds = (
        Event.objects.filter(subject=endpoint.name).order_by("pk").values_list("kind", flat=True)
    )
    assert list(kinds) == ["endpoint archived", "endpoint restored"]


def test_an_archived_endpoint_is_offered_nowhere_for_new_runs_and_stays_where_runs_name_it(
    admin: Client, people: Cast
) -> None:
    make_items(people.project, 1)
    endpoint, other, third = (make_endpoint(NOBODY) for _ in range(3))
    run = make_run(people.project, endpoint)
    other_run = make_run(people.project, other)
    endpoints.archive_endpoint(endpoint, people.account("admin"))
    runs = f"/projects/{people.project.slug}/runs/"
    for way in ("new/", f"{other_run.number}/clone/", f"{other_run.number}/move/"):
        shown = text(admin.get(runs + way))
        assert f'value="{third.name}"' in shown
        assert f'value="{endpoint.name}"' not in shown
    assert endpoint.name in text(admin.get(f"{runs}{run.number}/"))
    assert endpoint.name in text(admin.get(runs))
    assert f"/{endpoint.name}/" not in text(admin.get("/endpoints/"))
    assert "Show 1 archived endpoint<" in text(admin.get("/endpoints/"))
    assert f"/{endpoint.name}/" in text(admin.get("/endpoints/?archived=1"))
    with pytest.raises(Refused, match="is archived"):
        choices.get_endpoint(endpoint.name)
    for start in (
        lambda: lifecycle.clone_run(run, None),
        lambda: make_run(people.project, endpoint),
        lambda: lifecycle.move_to_endpoint(other_run, endpoint, None),
    ):
        with pytest.raises(Refused, match="takes no new runs"):
            start()
    assert "Same: " not in text(admin.get(f"{runs}{run.number}/clone/"))


def test_a_run_at_an_endpoint_goes_on_when_it_is_archived(people: Cast) -> None:
    make_items(people.project, 1)
    endpoint = make_endpoint(NOBODY)
    lifecycle.plan_calls(make_run(people.project, endpoint))
    endpoints.archive_endpoint(endpoint, people.account("admin"))
    assert endpoint in Endpoint.objects.due(timezone.now())


Step = Callable[[], object]


def at_the_same_time(first: Step, second: Step) -> object:
    """Take the first step in a transaction that ends once the second one, in a thread, waits for it
    or is done. Return what the second one returned, or the error that it raised."""

    def take_second() -> object:
        try:
            return second()
        except Exception as problem:
            return problem
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            first()
            taken = thread.submit(take_second)
            ends = time.monotonic() + 60
            while not taken.done() and not is_any_waiting():
                assert time.monotonic() < ends, "the second step neither waits nor ends"
        return taken.result()


def is_any_waiting() -> bool:
    """True if anybody waits for a lock of this connection."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks"
            " WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
        )
        return bool(cursor.fetchone()[0])


@pytest.fixture
def unused(people: Cast) -> Endpoint:
    make_items(people.project, 1)
    return make_endpoint(NOBODY)


def using(people: Cast, unused: Endpoint, way: str) -> Step:
    """A step that starts a run at the endpoint, or moves one there."""
    if way == "start":
        return lambda: make_run(people.project, unused)
    run = make_run(people.project, make_endpoint(NOBODY))
    lifecycle.plan_calls(run)
    lifecycle.pause(run, None)
    return lambda: lifecycle.move_to_endpoint(run, unused, None)


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("way", ["start", "move"])
def test_an_endpoint_at_which_a_run_is_being_started_is_not_deleted(
    people: Cast, unused: Endpoint, way: str
) -> None:
    admin = people.account("admin")
    assert admin
    said = at_the_same_time(
        using(people, unused, way), lambda: endpoints.delete_endpoint(unused, admin)
    )
    assert isinstance(said, NotAllowed)
    assert str(said).startswith(f"Runs use {unused.name}, so it cannot be deleted.")
    assert unused.runs.count() == 1


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("way", ["start", "move"])
def test_no_run_starts_at_an_endpoint_that_is_being_deleted(
    people: Cast, unused: Endpoint, way: str
) -> None:
    admin, use = people.account("admin"), using(people, unused, way)
    assert admin
    said = at_the_same_time(lambda: endpoints.delete_endpoint(unused, admin), use)
    assert isinstance(said, Refused)
    assert str(said).startswith(f"Endpoint {unused.name} is archived or deleted")
    assert not Endpoint.objects.filter(pk=unused.pk).exists()


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_worker_changes_an_endpoint_while_a_run_is_being_started(
    people: Cast, unused: Endpoint
) -> None:
    """As when its provider asks for a pause."""
    begin = using(people, unused, "start")
    said = at_the_same_time(
        begin, lambda: Endpoint.objects.filter(pk=unused.pk).update(paused_until=timezone.now())
    )
    assert said == 1


@pytest.mark.parametrize("step", ["archive", "restore", "delete"])
def test_an_endpoint_that_makes_no_calls_stays(admin: Client, step: str) -> None:
    endpoint = make_baseline()
    assert "makes no calls, so it stays." in press(admin, endpoint, step)
    assert Endpoint.objects.listed().filter(pk=endpoint.pk).exists()
