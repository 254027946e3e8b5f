"""What a model thinks before it replies: kept apart, counted, priced, shown, exported, archived."""

import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client

from annotation.models import Project
from formats.rows import FormatError
from formats.sealed import MANIFEST
from judging.archive import load
from judging.archive.create import ArchiveOptions
from judging.evaluators.providers.answers import split_thinking
from judging.evaluators.trial_call import TrialResult
from judging.exporting import tables
from judging.models import Reading, Reply, Run
from judging.results.tables import cost, methods
from judging.runs import estimate, lifecycle
from judging.strategies.replies.causes import explain_cut
from judging.templatetags.judging import token_counts
from tests.builders import make_project
from tests.judging.archive.builders_archive import archive, lines
from tests.judging.archive.test_load import changed
from tests.judging.builders_judging import (
    answer,
    make_endpoint,
    make_items,
    make_run,
    results,
    work,
)
from tests.services.scripted_evaluator import Script, ScriptedEvaluator
from tests.services.scripted_judge import Judge

pytestmark = pytest.mark.django_db

HOSTILE = '</pre><script>alert("caught")</script> {"score": 1}'
# 1,000,000 tokens in cost 2, cached ones 0.50; 1,000,000 tokens out cost 10, of thinking 12.
PRICES = {
    "price_in": Decimal(2),
    "price_out": Decimal(10),
    "price_cached": Decimal("0.5"),
    "price_reasoning": Decimal(12),
}
THOUGHT: dict[str, Any] = {
    "thinking": "Nine? No.",
    "tokens_in": 1000,
    "tokens_out": 100,
    "tokens_cached": 400,
    "tokens_reasoning": 80,
}
# 600 x 2 + 400 x 0.50 + 20 x 10 + 80 x 12, each / 1,000,000
COST = Decimal("0.00256")


class Thinker(Judge):
    """Thinks before each reply, in the same text."""

    def answer(self, prompt: str) -> str:
        return '<think>{"score": 1}</think>{"score": 7}'


@pytest.fixture
def project() -> Project:
    return make_project("fbi")


def planned(project: Project, items: int = 1, **values: Any) -> Run:
    make_items(project, items)
    endpoint = make_endpoint("http://127.0.0.1:9/v1", **PRICES, **values)
    run = make_run(project, endpoint, "reference")
    lifecycle.plan_calls(run)
    return run


def shown(browser: Client, path: str) -> str:
    found = browser.get(path)
    assert found.status_code == 200
    return " ".join(found.content.decode().split())


def cut_reply(text: str = "", **values: Any) -> TrialResult:
    return TrialResult(text=text, finish="length", **values)


@pytest.mark.parametrize(
    ("text", "thinking", "reply"),
    [
        ("<think>Nine?</think>Five.", "Nine?", "Five."),
        ("\n<think>\nNine?\n</think>\n\nFive.", "Nine?", "Five."),
        # A template opened the thinking in the prompt.
        ("Nine?\n</think>\n\nFive.", "Nine?", "Five."),
        ("</think>\nFive.", "", "Five."),
        ("<think>Nine", "Nine", ""),
        ("<think></think>Five.", "", "Five."),
        ("Five. <think>Nine?</think>", "", "Five. <think>Nine?</think>"),
        ("It says </think> in the text.", "", "It says </think> in the text."),
        ("  Five.\n", "", "  Five.\n"),
        ("", "", ""),
    ],
)
def test_thinking_at_the_start_of_a_text_is_taken_out(text: str, thinking: str, reply: str) -> None:
    assert split_thinking(text) == (thinking, reply)


def test_thinking_is_stored_beside_the_reply_and_never_read_as_the_verdict(
    project: Project,
) -> None:
    answer(planned(project), '{"score": 7}', **THOUGHT | {"thinking": '{"score": 1}'})
    reply = Reply.objects.get()
    assert (reply.text, reply.thinking) == ('{"score": 7}', '{"score": 1}')
    assert (reply.tokens_cached, reply.tokens_reasoning) == (400, 80)
    assert Reading.objects.get().value == 7


def test_a_reply_that_is_only_thinking_gives_no_value(project: Project) -> None:
    run = planned(project)
    answer(run, "", finish="length", **THOUGHT | {"thinking": '{"score": 1}'})
    assert results(run) == {"truncated": 1}


@pytest.mark.django_db(transaction=True)
def test_a_server_that_mixes_thinking_into_the_text_is_asked(
    project: Project, evaluator: ScriptedEvaluator
) -> None:
    make_items(project, 1)
    evaluator.script = Script(judge=Thinker())
    run = work(make_run(project, make_endpoint(evaluator.address), "reference"))
    reply = Reply.objects.get(request__calls__run=run)
    assert (reply.thinking, reply.text) == ('{"score": 1}', '{"score": 7}')


def test_a_reply_without_thinking_has_none_and_not_an_empty_one(project: Project) -> None:
    answer(planned(project))
    reply = Reply.objects.get()
    assert (reply.thinking, reply.tokens_cached, reply.tokens_reasoning) == (None, None, None)


def test_a_reply_costs_what_its_parts_cost(project: Project) -> None:
    run = planned(project)
    answer(run, **THOUGHT)
    assert Reply.objects.get().cost == COST
    run.refresh_from_db()
    assert (run.spent, run.reserved) == (COST, 0)
    found = estimate.estimate_call(run.strategy, run.endpoint)
    assert (found.tokens.value, found.cost.value) == (1100, pytest.approx(float(COST)))


def test_the_page_of_an_item_folds_the_thinking_and_shows_it_as_text(
    browser: Client, project: Project
) -> None:
    answer(planned(project), **THOUGHT | {"thinking": HOSTILE})
    page = shown(browser, "/projects/fbi/runs/1/items/item-1/")
    assert "<summary>Thinking before the reply, never parsed</summary>" in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(&quot;caught&quot;)" in page
    assert "1,000 in (400 cached), 100 out (80 thinking)" in page
    assert "0.00256 USD" in page


def test_a_reply_without_thinking_has_no_place_for_it_on_its_page(
    browser: Client, project: Project
) -> None:
    answer(planned(project), tokens_in=17, tokens_out=3)
    page = shown(browser, "/projects/fbi/runs/1/items/item-1/")
    assert "Thinking" not in page
    assert "17 in, 3 out" in page


def test_tokens_are_told_with_their_parts() -> None:
    assert token_counts(TrialResult(tokens_out=1200, tokens_reasoning=0)) == "— in, 1,200 out"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (cut_reply(tokens_out=1024, thinking="Hm."), "The thinking used up all 1,024 tokens"),
        (cut_reply(tokens_out=1024, tokens_reasoning=1024), "The thinking used up all 1,024"),
        (cut_reply("Fi", tokens_out=90, tokens_reasoning=80), "the thinking took 80 of its 90"),
        (cut_reply("Fi", thinking="Hm."), "the thinking took some of them"),
        (cut_reply(tokens_out=90), "The 90 tokens were used up before the reply began"),
        (cut_reply("Fi", tokens_out=90), "Ask with a higher max_tokens"),
        (cut_reply("The letter is friendly. " * 99 + "The let"), "ask with a frequency_penalty"),
        (cut_reply("The letter is friendly and it is not short. " * 3), "a higher max_tokens"),
    ],
)
def test_a_reply_that_was_cut_off_says_what_used_up_the_tokens(
    reply: TrialResult, words: str
) -> None:
    assert words in explain_cut(reply)
    assert "max_tokens" in explain_cut(reply)


def test_a_whole_reply_was_not_cut_off() -> None:
    assert explain_cut(TrialResult(text="", finish="stop", thinking="Hm.")) == ""


def test_the_page_and_the_pause_of_a_run_say_that_thinking_used_up_the_tokens(
    browser: Client, project: Project
) -> None:
    run = planned(project, 25)
    answer(run, "", number=20, finish="length", **THOUGHT)
    run.refresh_from_db()
    assert run.state == Run.State.PAUSED
    words = "The thinking used up all 100 tokens, so there is no reply."
    assert words in run.reason
    [key] = run.outcomes.settled()[:1].values_list("item__key", flat=True)
    assert words in shown(browser, f"/projects/fbi/runs/1/items/{key}/")


def test_export_and_api_have_thinking_tokens_cost_and_currency(
    program: Client, project: Project
) -> None:
    answer(planned(project), **THOUGHT)
    [row] = tables.read_calls(project)
    [call] = program.get("/api/v1/projects/fbi/runs/1/calls/").json()["results"]
    for said in (row, call["reply"]):
        assert said["thinking"] == "Nine? No."
        assert (said["tokens_cached"], said["tokens_reasoning"]) == (400, 80)
        assert Decimal(said["cost"]) == COST
        assert said["currency"] == "USD"
    assert set(row) <= set(tables.EXPORT_TABLES["calls"].columns)


def test_every_amount_in_the_api_has_its_currency(
    program: Client, project: Project, settings: Any
) -> None:
    settings.CURRENCY = "EUR"
    run = planned(project)
    found = program.get("/api/v1/projects/fbi/budget/").json()
    places = [
        found["project"],
        *found["runs"],
        program.get("/api/v1/projects/fbi/runs/1/").json()["run"],
    ]
    places.append(program.get(f"/api/v1/endpoints/{run.endpoint.name}/").json())
    assert [one["currency"] for one in places] == ["EUR"] * 4
    assert (places[-1]["price_cached"], places[-1]["price_reasoning"]) == ("0.500000", "12.000000")


def test_amounts_are_shown_with_the_currency_of_the_site(
    browser: Client, project: Project, settings: Any
) -> None:
    settings.CURRENCY = "EUR"
    run = planned(project)
    answer(run, **THOUGHT)
    assert "0.00256 EUR" in shown(browser, "/projects/fbi/runs/1/")
    assert "0.00256 EUR" in shown(browser, "/projects/fbi/budget/")
    assert "0.5 EUR" in shown(browser, f"/endpoints/{run.endpoint.name}/")
    out = io.StringIO()
    call_command("budget", "--project", "fbi", stdout=out)
    assert "spent 0.00256 EUR" in out.getvalue()
    assert "EUR" not in json.dumps(run.pinned)


def test_the_table_of_costs_has_cached_and_reasoning_tokens(project: Project) -> None:
    run = planned(project, 2)
    answer(run, number=1, **THOUGHT)
    answer(run)
    [row] = cost.tabulate([run])
    assert (row["tokens_in"], row["tokens_cached"]) == (1100, 400)
    assert (row["tokens_out"], row["tokens_reasoning"]) == (110, 80)
    assert row["currency"] == "USD"


def test_tokens_that_no_reply_reports_are_unknown_and_not_0(project: Project) -> None:
    run = planned(project)
    answer(run)
    [row] = cost.tabulate([run])
    assert (row["tokens_cached"], row["tokens_reasoning"]) == (None, None)
    text = methods.write_methods(project, [run]).text
    assert "thinking" not in text
    assert "Of these tokens" not in text


def test_the_methods_paragraph_tells_thinking_tokens_and_cost(project: Project) -> None:
    run = planned(project, 2)
    answer(run, number=1, **THOUGHT)
    answer(run)
    text = methods.write_methods(project, [run]).text
    assert "1 replies came with the model's thinking, which was kept apart and not parsed." in text
    assert "The replies used 1,100 input and 110 output tokens." in text
    assert (
        "Of these tokens, 400 came from the provider's cache and 80 were spent on thinking." in text
    )
    # 0.00256 and 100 x 2 + 10 x 10, each / 1,000,000.
    assert "they cost 0.00286 USD." in text


def test_imported_replies_keep_their_thinking(project: Project, tmp_path: Path) -> None:
    make_items(project, 3)
    body = {
        "choices": [{"message": {"content": '{"score": 5}', "reasoning_content": "Nine?"}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 8, "total_tokens": 17},
    }
    rows = (
        {"item": "item-1", "text": '{"score": 5}', **THOUGHT},
        {"item": "item-2", "text": '<think>Nine?</think>{"score": 5}'},
        {"item": "item-3", "body": body},
    )
    path = tmp_path / "replies.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    named = {"project": "fbi", "endpoint": "elsewhere", "strategy": "reference", "format": "jsonl"}
    for _ in range(2):
        call_command("import_replies", str(path), **named, stdout=io.StringIO())
    replies = Reply.objects.order_by("request__calls__outcome__item__key")
    assert [one.text for one in replies] == ['{"score": 5}'] * 3
    assert [one.thinking for one in replies] == ["Nine? No.", "Nine?", "Nine?"]
    assert [one.tokens_reasoning for one in replies] == [80, None, None]
    assert Run.objects.count() == 1


@pytest.mark.skipif(connection.vendor != "sqlite", reason="archives are loaded into SQLite")
@pytest.mark.parametrize("with_replies", [True, False])
def test_an_archive_keeps_tokens_and_with_the_replies_their_thinking(
    tmp_path: Path, with_replies: bool
) -> None:
    with transaction.atomic():
        project = make_project("fbi")
        run = planned(project, 2)
        answer(run, number=1, **THOUGHT)
        answer(run)
        wanted = ArchiveOptions(texts=with_replies, replies=with_replies)
        path = archive(project, tmp_path / "results.zip", wanted)
        before = methods.write_methods(project, [run]).text
        transaction.set_rollback(True)
    thawed = load.load_archive(path)
    assert thawed.facts["currency"] == "USD"
    found = Reply.objects.order_by("-tokens_in")
    assert [one.tokens_reasoning for one in found] == [80, None]
    assert [one.tokens_cached for one in found] == [400, None]
    assert [one.thinking for one in found] == ["Nine? No." if with_replies else "", None]
    assert [one.cost for one in found] == [COST, Decimal("0.0003")]
    assert methods.write_methods(thawed.project, list(Run.objects.all())).text == before


@pytest.fixture
def frozen(tmp_path: Path) -> Path:
    with transaction.atomic():
        project = make_project("fbi")
        answer(planned(project), **THOUGHT)
        path = archive(project, tmp_path / "results.zip")
        transaction.set_rollback(True)
    return path


@pytest.mark.skipif(connection.vendor != "sqlite", reason="archives are loaded into SQLite")
def test_an_archive_from_before_thinking_was_kept_is_read(frozen: Path) -> None:
    def forget(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            for name in ("tokens_cached", "tokens_reasoning", "thinking"):
                del row[name]

    assert lines(frozen, "replies")[0]["tokens_cached"] == 400
    changed(frozen, "replies", forget)
    changed(frozen, MANIFEST, lambda facts: facts.pop("currency"))
    load.load_archive(frozen)
    reply = Reply.objects.get()
    assert (reply.tokens_cached, reply.tokens_reasoning, reply.thinking) == (None, None, None)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="archives are loaded into SQLite")
def test_an_archive_with_another_word_for_a_currency_is_refused(frozen: Path) -> None:
    changed(frozen, MANIFEST, lambda facts: facts.update(currency="X; rm"))
    with pytest.raises(FormatError, match="currency"):
        load.load_archive(frozen)
