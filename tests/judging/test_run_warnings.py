"""A run tells how fast it is answered, by which model, and whether its prompts were cut."""

from dataclasses import asdict
from datetime import timedelta
from html import unescape
from random import Random
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.models import Event, Project, Revision
from judging.exporting import tables
from judging.jobs import heartbeat
from judging.models import Endpoint, Reply, Request, Run, Tally
from judging.runs import derived, estimate, lifecycle, progress, selection
from judging.runs.choices import get_version
from judging.runs.warnings import (
    ReplyFacts,
    count_facts,
    is_same_model,
    list_warnings,
    load_summaries,
)
from tests.builders import make_member, make_project
from tests.judging.builders_decided import make_replied, scores
from tests.judging.builders_judging import (
    answer,
    api_client,
    make_endpoint,
    make_items,
    make_run,
    take,
    work,
)
from tests.services.scripted_evaluator import Script, ScriptedEvaluator


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("gpt-x", "gpt-x"),
        ("gpt-x", "GPT-X"),
        ("gpt-x", "gpt-x-2026-01-01"),
        ("gpt-x-latest", "gpt-x-2026-01-01"),
        ("openai/gpt-x", "gpt-x-0613"),
        ("openai/gpt-x:free", "openai/gpt-x"),
        ("models/gemini-y", "gemini-y-001"),
        ("opus-4", "opus-4-20250514"),
        ("small", "/models/small.gguf"),
        ("small", "small:latest"),
        ("us.anthropic.claude-opus-4-20250514-v1:0", "claude-opus-4-20250514"),
        ("anthropic.claude-3-haiku-20240307-v1:0:48k", "claude-3-haiku"),
        ("bedrock/eu.anthropic.claude-sonnet-4-6", "claude-sonnet-4-6-20260101"),
        ("global.anthropic.claude-opus-4-7-v1", "us.anthropic.claude-opus-4-7-v1:0"),
        ("meta.llama3-1-70b-instruct-v1:0", "llama3-1-70b-instruct"),
        ("amazon.nova-pro-v1:0", "nova-pro-v1:0"),
        ("arn:aws:bedrock:us-east-1::foundation-model/openai.gpt-oss-20b-1:0", "gpt-oss-20b-1:0"),
    ],
)
def test_a_path_and_a_snapshot_make_no_other_model(asked, answered):
    assert is_same_model(asked, answered)


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("gpt-x", "gpt-x-mini"),
        ("gpt-x", "gpt-x-mini-2026-01-01"),
        ("gpt-4", "gpt-4.1"),
        ("opus-4", "opus-4-1-20250805"),
        ("llama-3", "llama-3-8b"),
        ("gpt-x-latest", "gpt-y-2026-01-01"),
        ("anthropic.claude-3-5-sonnet-20240620-v1:0", "claude-3-5-sonnet-20241022"),
        ("anthropic.claude-opus-4-20250514-v1:0", "claude-opus-4-1-20250805"),
        ("anthropic.claude-v2:1", "anthropic.claude-v1"),
        ("deepseek", "deepseek-v3"),
    ],
)
def test_another_model_is_another(asked, answered):
    assert not is_same_model(asked, answered)


def test_a_name_of_many_dates_is_compared_at_once() -> None:
    """With two ways to read a date, each further date doubled the time."""
    assert not is_same_model("m-latest", "m" + "-2024-01-01" * 100 + "!")


def test_replies_that_name_no_model_warn_of_nothing():
    assert list_warnings("gpt-x", ReplyFacts({"": 40, "gpt-x": 2})) == []


def ask_run(evaluator: ScriptedEvaluator, sizes: list[int], **script: Any) -> Run:
    """A finished run over items whose answers have so many words."""
    evaluator.script = Script(**script)
    project = make_project()
    items = make_items(project, len(sizes))
    for item, size in zip(items, sizes, strict=True):
        revision = item.revisions.get()
        said = {"gold": "legs " * size, "perturbed": "arms " * size}
        Revision.objects.filter(pk=revision.pk).update(texts={**revision.texts, **said})
    return work(make_run(project, make_endpoint(evaluator, model="asked")))


def page_of(run: Run) -> str:
    client = Client()
    client.force_login(make_member(run.project, role="researcher").account)
    response = client.get(f"/projects/{run.project.slug}/runs/{run.number}/")
    return " ".join(unescape(response.content.decode()).split())


@pytest.mark.django_db(transaction=True)
def test_another_model_than_asked_is_a_warning_and_a_snapshot_a_fact(
    evaluator: ScriptedEvaluator,
) -> None:
    run = ask_run(evaluator, [5, 5, 5], answers_as="asked-2026-01-01")
    status = progress.load_status(run)
    assert (status.answered_by, status.warnings) == ({"asked-2026-01-01": 3}, [])
    assert "Replies name another model" not in page_of(run)
    other = ask_run(evaluator, [6, 7, 8], answers_as="cheaper <b>")
    [warning] = progress.load_status(other).warnings
    assert (warning.kind, warning.replies) == ("other_model", 3)
    assert "3 of 3 replies name another model than “asked”, which was asked: “cheaper <b>” (3)" in (
        page_of(other)
    )
    assert "If “asked” is an alias of your gateway for that model" in warning.message
    client = api_client(make_member(other.project, role="researcher"))
    told = client.get(f"/api/v1/projects/{other.project.slug}/runs/{other.number}/").json()
    assert told["answered_by"] == {"cheaper <b>": 3}
    assert told["warnings"] == [asdict(warning)]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("sizes", [[6000, 7000, 8000], [1700, 1900, 2100]], ids=["far", "just"])
def test_long_prompts_with_one_token_count_were_probably_cut(
    evaluator: ScriptedEvaluator, sizes: list[int]
) -> None:
    run = ask_run(evaluator, sizes, tokens_in=4096)
    [warning] = progress.load_status(run).warnings
    assert (warning.kind, warning.replies) == ("cut_prompts", 3)
    assert "bytes were all counted as 4,096 tokens" in warning.message
    assert "Prompts were probably cut." in page_of(run)


@pytest.mark.django_db(transaction=True)
def test_a_prompt_with_far_too_few_tokens_was_probably_cut(evaluator: ScriptedEvaluator) -> None:
    run = ask_run(evaluator, [5, 5, 20_000], tokens_in=2048)
    [warning] = progress.load_status(run).warnings
    assert (warning.kind, warning.replies) == ("cut_prompts", 1)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("tokens_in", [None, 25_000])
def test_prompts_that_were_read_whole_warn_of_nothing(
    evaluator: ScriptedEvaluator, tokens_in: int | None
) -> None:
    run = ask_run(evaluator, [6000, 7000, 8000], tokens_in=tokens_in)
    assert progress.load_status(run).warnings == []


# Letters, letters of a usual word, and letters that make up one token.
SCRIPTS = {
    "English": ("etaoinshrdlucm", (1, 11), 6),
    "German": ("enisratduhläöß", (2, 18), 4),
    "Hindi": ("कखगतदनपमरलसहािीेो", (2, 8), 2),
    "Chinese": ("的一是不了人我在有他这中大来上", (1, 3), 1),
}
OVERHEAD = 700, 160  # bytes and tokens of the strategy's own words


def write_prompts(script: str, number: int, chance: Random) -> list[tuple[int, int]]:
    """Bytes and tokens of short prompts of different lengths, as a tokenizer would count them."""
    found = []
    for _ in range(number):
        own = chance.choice(list(SCRIPTS)) if script == "mixed" else script
        letters, size, per_token = SCRIPTS[own]
        words = [
            "".join(chance.choices(letters, k=chance.randint(*size)))
            for _ in range(chance.randint(30, 200))
        ]
        tokens = sum(-(-len(word) // chance.choice((per_token, per_token + 1))) for word in words)
        found.append((OVERHEAD[0] + len(" ".join(words).encode()), OVERHEAD[1] + tokens))
    return found


def count_told(run: Run, prompts: list[tuple[int, int]]) -> ReplyFacts:
    """What a run with these prompts, as bytes and tokens, tells."""
    replies = list(Reply.objects.filter(request__calls__run=run).order_by("pk"))
    for reply, (size, tokens) in zip(replies, prompts, strict=True):
        reply.bytes_sent, reply.tokens_in = size, tokens
    Reply.objects.bulk_update(replies, ["bytes_sent", "tokens_in"])
    return count_facts(run)


def answered_run(number: int) -> Run:
    run = started_run(number)
    answer(run)
    return run


@pytest.mark.django_db
@pytest.mark.parametrize("script", [*SCRIPTS, "mixed"])
def test_short_prompts_that_were_cut_are_told_in_any_script(script: str) -> None:
    run, chance = answered_run(40), Random(7)
    for _ in range(10):
        whole = write_prompts(script, 40, chance)
        context = sorted(tokens for _, tokens in whole)[15]
        cut = [(size, min(tokens, context)) for size, tokens in whole]
        facts = count_told(run, cut)
        assert facts.tokens == context
        assert facts.equal >= 5
        [warning] = list_warnings("m", facts)
        assert warning.kind == "cut_prompts"
        assert f"were all counted as {context:,} tokens" in warning.message


@pytest.mark.django_db
@pytest.mark.parametrize("script", [*SCRIPTS, "mixed"])
def test_short_prompts_that_were_read_whole_warn_of_nothing_in_any_script(script: str) -> None:
    run, chance = answered_run(40), Random(8)
    for _ in range(40):
        told = count_told(run, write_prompts(script, 40, chance))
        assert list_warnings("m", told) == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("why", "prompts"),
    [
        ("each prompt is sent ten times", [(1_000 + 200 * n, 250) for n in range(4)] * 10),
        ("they are about as long", [(2_000 + 5 * n, 500) for n in range(40)]),
        ("only the longest was counted so", [(900 + 30 * n, 200 + 10 * n) for n in range(40)]),
        ("longer ones were counted as less", [(900, 800)] * 39 + [(1_800, 400)]),
        ("the server counts nothing", [(900 + 30 * n, 0) for n in range(40)]),
    ],
)
def test_equal_counts_that_say_nothing_warn_of_nothing(
    why: str, prompts: list[tuple[int, int]]
) -> None:
    assert list_warnings("m", count_told(answered_run(40), prompts)) == [], why


@pytest.mark.django_db(transaction=True)
def test_failed_tries_are_counted_by_cause_though_they_were_answered_later(
    evaluator: ScriptedEvaluator,
) -> None:
    run = ask_run(evaluator, [5, 5], faults={"server_error": "first:1"})
    assert progress.count_progress(run).tries == {"unavailable": 2}
    assert progress.count_progress(run).answered == 2
    assert "2 unavailable</li>" in page_of(run)


@pytest.mark.django_db
def test_a_running_run_whose_tries_timed_out_says_what_helps() -> None:
    run = started_run(2)
    Endpoint.objects.update(timeout=90)
    Request.objects.filter(pk=Request.objects.order_by("pk")[0].pk).update(tried={"timed_out": 2})
    said = page_of(run)
    assert '2 timed out. <small class="hint">A call may take 90 s.' in said
    assert f'raise this timeout of <a href="/endpoints/{run.endpoint.name}/">' in said
    # A time of the run's own is not the endpoint's: only the calls in flight are left to lower.
    run.pinned["timeout"] = 45
    run.save(update_fields=["pinned"])
    said = page_of(run)
    assert "A call may take 45 s. If the evaluator is slow, lower its calls in flight." in said


def started_run(items: int) -> Run:
    project = make_project()
    make_items(project, items)
    run = make_run(project, make_endpoint("http://127.0.0.1:9/v1", model="asked"))
    lifecycle.plan_calls(run)
    run.refresh_from_db()
    heartbeat.record(heartbeat.WorkerStatus("one"), timezone.now())
    return run


@pytest.mark.django_db
def test_requests_in_flight_are_counted_and_still_wait() -> None:
    run = started_run(5)
    take(run, 2)
    counted = progress.count_progress(run)
    assert (counted.in_flight, counted.waiting) == (2, 5)
    # A worker holds more requests than may be in flight.
    Endpoint.objects.update(in_flight=1)
    counted = progress.count_progress(Run.objects.get(pk=run.pk))
    assert (counted.in_flight, counted.waiting) == (1, 5)


@pytest.mark.django_db
def test_a_slow_run_has_the_pace_of_its_last_twenty_replies() -> None:
    run = started_run(40)
    now = timezone.now()
    Run.objects.filter(pk=run.pk).update(created_at=now - timedelta(hours=5))
    run.refresh_from_db()
    answer(run, number=30)
    # One reply in a minute for the last twenty minutes; before, one in a second.
    for place, pk in enumerate(Reply.objects.order_by("-pk").values_list("pk", flat=True)):
        old = timedelta(minutes=min(place, 20), seconds=max(0, place - 20))
        Reply.objects.filter(pk=pk).update(created_at=now - old)
    pace = progress.load_status(run).pace
    assert pace.per_second == pytest.approx(1 / 60, rel=0.01)
    assert pace.seconds_left == pytest.approx(600, rel=0.01)
    assert "1.0 per minute" in page_of(run)


@pytest.mark.django_db
def test_a_night_of_pause_is_no_part_of_the_pace() -> None:
    run = started_run(40)
    now = timezone.now()
    Run.objects.filter(pk=run.pk).update(created_at=now - timedelta(hours=9))
    answer(run, number=4)
    # Resumed just now; a hundred seconds later two replies have arrived since.
    Event.record("run running", f"run {run.number}", project_id=run.project_id, member_id=None)
    replies = Reply.objects.order_by("-pk").values_list("pk", flat=True)
    for pk, after in zip(replies, (80, 40, -30_000, -30_001), strict=True):
        Reply.objects.filter(pk=pk).update(created_at=now + timedelta(seconds=after))
    progress.update_counts([run.pk], now + timedelta(seconds=100))
    assert progress.load_status(run).pace.per_second == pytest.approx(2 / 100, rel=0.02)


@pytest.mark.django_db
def test_a_run_is_counted_in_as_many_queries_for_many_requests_as_for_few() -> None:
    counted = []
    for items in (3, 30):
        run = started_run(items)
        answer(run, number=items // 2)
        with CaptureQueriesContext(
            connection,
        ) as asked:
            progress.count_run(run)
        counted.append(len(asked))
    assert counted[0] == counted[1]


def make_cut_runs(number: int) -> Project:
    """Runs of one project whose prompts were all cut, but for those of the last run."""
    project = make_project()
    make_items(project, 4)
    for each in range(number):
        asked = {"model": "asked", "parameters": {"max_tokens": 100 + each}}
        run = make_run(project, make_endpoint("http://127.0.0.1:9/v1", **asked))
        lifecycle.plan_calls(run)
        answer(run, model=f"other-{each}")
        for place, reply in enumerate(Reply.objects.filter(request__calls__run=run)):
            size = 4_000 if each == number - 1 else 50_000 + 9_000 * place
            Reply.objects.filter(pk=reply.pk).update(bytes_sent=size, tokens_in=4_096)
    return project


@pytest.mark.django_db
def test_the_export_of_runs_asks_as_often_for_many_runs() -> None:
    counted = []
    for number in (2, 5):
        project = make_cut_runs(number)
        with CaptureQueriesContext(connection) as asked:
            rows = [*tables.read_runs(project)]
        counted.append(len(asked))
        assert [row["answered_by"] for row in rows] == [{f"other-{n}": 4} for n in range(number)]
        told = [" ".join(row["warnings"]) for row in rows]
        assert all("4 of 4 replies name another model" in words for words in told)
        cut = "4 prompts of 50,000 to 77,000 bytes were all counted as 4,096 tokens"
        assert [cut in words for words in told] == [True] * (number - 1) + [False]
    assert counted[0] == counted[1]


@pytest.mark.django_db
def test_the_time_of_a_run_is_estimated_from_the_nearest_replies() -> None:
    run = started_run(40)
    endpoint = run.endpoint
    assert estimate.estimate_time(run.strategy, endpoint, 40) is None
    answer(run, number=10)
    Reply.objects.update(seconds=30.0)
    Endpoint.objects.update(in_flight=2)
    endpoint.refresh_from_db()
    near = estimate.estimate_time(run.strategy, endpoint, 40)
    assert near == estimate.TimeEstimate(600.0, 30.0, 2, 10, "strategy")
    other = selection.get_strategy_version("pairwise")
    assert estimate.estimate_time(other, endpoint, 40).replies_of == "endpoint"
    elsewhere = make_endpoint("http://127.0.0.1:8/v1", model="asked", in_flight=4, per_minute=2)
    # Two calls per minute take longer than 30 seconds for every four.
    far = estimate.estimate_time(other, elsewhere, 40)
    assert (far.replies_of, far.seconds) == ("model", 1200.0)
    assert estimate.estimate_time(other, endpoint, 0) is None


@pytest.mark.django_db(transaction=True)
def test_the_page_names_all_that_shapes_a_request_and_the_limits_apart(
    evaluator: ScriptedEvaluator,
) -> None:
    project = make_project()
    make_items(project, 1)
    ways = {"api": "completions", "template": "[INST]{{prompt}}[/INST]", "json_mode": "json_object"}
    endpoint = make_endpoint(evaluator, timeout=77, in_flight=3, per_minute=1234, **ways)
    page = page_of(work(make_run(project, endpoint)))
    assert "OpenAI-compatible, model" in page
    assert "openai_compatible" not in page
    assert "Completions, with a template of the endpoint; answers JSON object" in page
    assert "[INST]{{prompt}}[/INST]" in page
    assert "3 in flight, 77 s per call, 1,234 calls per minute" in page


def store_facts(run: Run, **facts: Any) -> None:
    counts = {"progress": {}, "facts": asdict(ReplyFacts(**facts))}
    Tally.objects.create(run=run, kind=Tally.Kind.PROGRESS, state="any", counts=counts)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "page", ["overview", "choose", "compare", "by-category", "cost", "missing"]
)
def test_result_pages_say_which_of_their_runs_have_warnings(page: str) -> None:
    project = make_project()
    items = make_items(project, 2)
    runs = [
        make_replied(project, "vanilla", [(one, scores(9, 5)) for one in items]) for _ in "abcd"
    ]
    mixed, other, _, sound = runs
    store_facts(mixed, models={"m": 14, "cheap": 7})
    store_facts(other, models={"cheap": 2}, far=1)
    store_facts(sound, models={"m": 2})
    Run.objects.update(pinned=mixed.pinned | {"model": "m"})
    client = Client()
    client.force_login(make_member(project, role="researcher").account)
    everyone = "&".join(f"run={run.number}" for run in runs)
    address = f"/projects/{project.slug}/results/{page}/?{everyone}"
    shown = " ".join(client.get(address).content.decode().split())
    first, second = (f"/projects/{project.slug}/runs/{run.number}/" for run in (mixed, other))
    assert (
        f'Warnings about these runs.</strong> <a href="{first}">Run 1</a>: 7 of 21 replies name '
        "another model, so the figures may describe a mixture of models. "
        f'<a href="{second}">Run 2</a>: all replies name another model, so the figures may '
        "describe that one; prompts were probably cut.</p>"
    ) in shown
    assert "Warnings about" not in client.get(address.split("?")[0] + "?run=4").content.decode()


@pytest.mark.django_db
def test_summaries_of_warnings_take_one_query(django_assert_num_queries: Any) -> None:
    project = make_project()
    items = make_items(project, 1)
    runs = [make_replied(project, "vanilla", [(items[0], scores(9, 5))]) for _ in range(3)]
    for run in runs:
        store_facts(run, models={"another": 1})
    with django_assert_num_queries(1):
        assert [run for run, _ in load_summaries(runs)] == runs


@pytest.mark.django_db
def test_a_combined_run_has_the_warnings_of_its_sources() -> None:
    project = make_project()
    items = make_items(project, 1)
    sources = [make_replied(project, "vanilla", [(items[0], scores(9, 5))]) for _ in range(3)]
    store_facts(sources[1], models={"another": 1})
    combined = derived.derive_run(
        project, strategy=get_version(project, "majority"), sources=sources
    )
    [(run, words)] = load_summaries([combined])
    assert (run, words.startswith("all replies name another model")) == (sources[1], True)
    # A source that is chosen too is named once.
    assert load_summaries([combined, sources[1]]) == [(run, words)]


def test_figures_of_a_run_describe_a_mixture_if_a_part_of_the_replies_names_another_model() -> None:
    [part] = list_warnings("m", ReplyFacts({"m": 14, "cheap": 7}))
    [whole] = list_warnings("m", ReplyFacts({"cheap": 21}))
    assert "the figures of this run describe a mixture of models: check" in part.message
    assert "the figures of this run describe that model: check" in whole.message


@pytest.mark.django_db
def test_runs_that_share_an_endpoint_do_not_each_claim_its_calls_in_flight() -> None:
    run = started_run(5)
    take(run, 4)
    Endpoint.objects.update(in_flight=2)

    def shown() -> str:
        return page_of(run).split("<dt>In flight</dt>")[1].split("</dd>")[0]

    assert shown() == "<dd>2"
    make_run(run.project, run.endpoint, "pairwise")
    Run.objects.update(state=Run.State.RUNNING)
    name = run.endpoint.name
    assert shown() == (
        '<dd><small class="hint">up to</small> 2 <small class="hint">shared with 1 other run at '
        f"{name}, in turn; pause those that can wait</small>"
    )
