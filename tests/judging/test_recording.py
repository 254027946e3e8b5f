"""Replies that were made elsewhere become recorded runs, by command."""

import io
import json
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils.html import escape

from annotation.models import Event, Item, Project, Resolution
from formats.rows import Row
from judging.evaluators import endpoints
from judging.models import Call, Endpoint, Outcome, Reading, Reply, Request, Run
from judging.results.frames import split_by_rate
from judging.results.tables import left_out
from judging.runs.recorded import storage, transcripts
from judging.strategies import compute_digest
from judging.strategies.frames import CallSpec
from tests.builders import (
    browser_of,
    make_account,
    make_item,
    make_member,
    make_project,
    make_resolution,
    make_revision,
)
from tests.judging.builders_judging import (
    make_endpoint,
    make_items,
    make_responses,
    make_version,
)

pytestmark = pytest.mark.django_db

ERROR = "Therefore, the model response contains an error."
NO_ERROR = "Therefore, the model response contains no error."
ROWS = (
    {"item": "item-1", "text": ERROR, "value": "error", "model": "m-1", "tokens_in": 9},
    {"item": "item-2", "text": NO_ERROR, "value": "error"},
    {"item": "item-3", "text": "Hm.", "value": None},
    {"item": "item-4", "cause": "refused"},
)


@pytest.fixture
def project() -> Project:
    project = make_project("p", task_type="error-detection")
    make_items(project, 3, "error")
    make_items(project, 1, "no_error")
    return project


def written(folder: Path, *rows: dict[str, Any], name: str = "replies.jsonl") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def imported(*paths: Path, **options: Any) -> str:
    said = io.StringIO()
    named = {"project": "p", "endpoint": "detector", "strategy": "detect-1a", "format": "jsonl"}
    words = map(str, paths)
    call_command("import_replies", *words, **(named | options), stdout=said, stderr=said)
    return said.getvalue()


def refused(path: Path, **options: Any) -> str:
    """What is said of an import that is refused; nothing of it may be stored."""
    said = io.StringIO()
    named = {"project": "p", "endpoint": "detector", "strategy": "detect-1a", "format": "jsonl"}
    with pytest.raises(CommandError) as error:
        call_command("import_replies", str(path), **(named | options), stdout=said, stderr=said)
    assert not Run.objects.exists()
    assert not Request.objects.exists()
    return said.getvalue() + str(error.value)


def test_a_file_of_replies_becomes_a_finished_run(project: Project, tmp_path: Path) -> None:
    assert "4 replies recorded in 1 run" in imported(written(tmp_path, *ROWS))
    run = Run.objects.get()
    assert (run.kind, run.state, run.parser, run.number) == ("recorded", "finished", "stored", 1)
    assert (run.endpoint.name, run.endpoint.provider) == ("detector", "recorded")
    assert run.pinned["recorded"]["files"] == ["replies.jsonl"]
    found = run.outcomes.order_by("item__key").values_list("result", "detail", "cause", "truth")
    assert list(found) == [
        ("detected", "error", "", "error"),
        ("detected", "error", "", "error"),
        ("missing", "", "unparsable", "error"),
        ("missing", "", "refused", "no_error"),
    ]
    assert Event.objects.filter(kind="run recorded").count() == 1


def test_replies_and_values_alone_are_counted_apart(project: Project, tmp_path: Path) -> None:
    only = {"item": "item-4", "value": "error"}
    said = imported(written(tmp_path, *ROWS[:2], only), dry_run=True)
    told = "2 replies and 1 verdict without a text would be recorded in 1 run; 0 already"
    assert told in said


def test_recorded_replies_to_some_of_the_items_are_a_part(project: Project, tmp_path: Path) -> None:
    make_items(project, 6, "error")
    rows = [{"item": f"item-{number}", "text": ERROR} for number in range(1, 11)]
    imported(written(tmp_path, *rows[:9]))
    imported(written(tmp_path, *rows[:8], name="fewer.jsonl"), endpoint="other")
    assert [run.is_part for run in Run.objects.order_by("number")] == [False, True]


def test_requests_replies_and_both_readings_are_on_record(project: Project, tmp_path: Path) -> None:
    imported(written(tmp_path, *ROWS))
    states = Request.objects.order_by("calls__outcome__item__key").values_list("state", "cause")
    assert list(states) == [("answered", "")] * 3 + [("failed", "refused")]
    reply = Reply.objects.get(request__calls__outcome__item__key="item-1")
    assert (reply.text, reply.model, reply.tokens_in, reply.cost) == (ERROR, "m-1", 9, None)
    second = Reading.objects.filter(reply__request__calls__outcome__item__key="item-2")
    assert dict(second.values_list("path", "value")) == {"stored": "error", "pattern": "no_error"}
    assert Call.objects.count() == 4


def test_a_reply_to_texts_that_were_corrected_since_is_refused(
    project: Project, tmp_path: Path
) -> None:
    """It would count as a verdict on the corrected texts."""
    item = Item.objects.get(key="item-2")
    revision = make_revision(item, {"input": "q", "response": "r"})
    Resolution.objects.filter(item=item).update(revision=revision)
    rows = [row | {"revision": 1} for row in ROWS]
    said = refused(written(tmp_path, *rows))
    assert "line 2, revision: is 1, but the texts are at revision 2." in said
    rows[1] |= {"revision": 2}
    assert "4 replies recorded in 1 run" in imported(written(tmp_path, *rows))


def test_an_items_first_reply_is_noted(project: Project, tmp_path: Path) -> None:
    imported(written(tmp_path, *ROWS[:2]))
    seen = Item.objects.exclude(first_reply_at=None).values_list("key", flat=True)
    assert sorted(seen) == ["item-1", "item-2"]


def test_the_same_file_again_adds_nothing(project: Project, tmp_path: Path) -> None:
    path = written(tmp_path, *ROWS)
    imported(path)
    counts = [model.objects.count() for model in (Run, Call, Request, Reply, Reading, Outcome)]
    said = imported(written(tmp_path, *reversed(ROWS), name="renamed.jsonl"))
    assert "nothing new; 1 already imported" in said
    after = [model.objects.count() for model in (Run, Call, Request, Reply, Reading, Outcome)]
    assert after == counts


def test_a_cause_by_its_former_word_is_read_and_is_the_same_reply(
    project: Project, tmp_path: Path
) -> None:
    rows = [*ROWS[:3], {"item": "item-4", "cause": "rate-limited"}]
    imported(written(tmp_path, *rows))
    assert Request.objects.get(state="failed").cause == "rate_limited"
    assert Outcome.objects.get(item__key="item-4").cause == "rate_limited"
    rows[3]["cause"] = "rate_limited"
    assert "1 already imported" in imported(written(tmp_path, *rows, name="now.jsonl"))


def test_what_was_recorded_before_a_cause_had_its_word_is_known_again() -> None:
    told = transcripts.Transcript(
        Row("f", 1, {}), "item-4", CallSpec("response"), 0, cause="rate_limited"
    )
    part = storage.RecordedPart("detector", make_version("detect-1a"), [told])
    said = [None, "stop", "", None, None, "rate-limited"]
    then = ["detector", part.version.digest, ["item-4", "response", 0, "", 0, 0], said, [], []]
    assert part.digest_of(told) == compute_digest(then)


def test_other_verdicts_of_the_same_replies_are_another_run_on_the_same_record(
    project: Project, tmp_path: Path, client: Client
) -> None:
    path = written(tmp_path, *ROWS)
    imported(path)
    imported(path, verdicts="parsed")
    first, second = Run.objects.order_by("number")
    assert (first.parser, second.parser) == (
        "stored",
        second.pinned_strategy().parser and second.parser,
    )
    results = [run.outcomes.get(item__key="item-2").result for run in (first, second)]
    assert results == ["detected", "undetected"]
    assert Request.objects.count() == 4
    client.force_login(make_member(project, role="researcher").account)
    page = client.get(reverse("run", args=["p", 2])).content.decode()
    assert "The verdicts that our parser reads in the replies are used." in page


def test_the_page_of_a_run_shows_where_the_two_verdicts_differ(
    project: Project, tmp_path: Path, client: Client
) -> None:
    imported(written(tmp_path, *ROWS))
    client.force_login(make_member(project, role="researcher").account)
    page = client.get(reverse("run", args=["p", 1])).content.decode()
    assert "3 items have both" in page
    assert "the two differ in 1 of them" in page
    assert "The verdicts stored with the replies are used." in page
    kinds, items = (part.split("</table>")[0] for part in page.split("erdicts differ")[1:3])
    # Stored an error, read none, once; people hold an error to be there.
    assert cells(kinds) == ["error", "no error", "1"]
    assert cells(items) == ["error", "no error", "error"]
    assert "item-2" in items
    assert "item-1" not in items


def cells(table: str) -> list[str]:
    return re.findall(r"<td[^>]*>([^<]*)</td>", table)


def test_where_scores_differ_the_page_says_both_by_metric(tmp_path: Path, client: Client) -> None:
    project = make_project("p", task_type="rating")
    make_responses(project, ["3"], naturalness=3)
    said = {"naturalness": 3, "relatedness": 2, "correctness": 1}
    text = json.dumps(said | {"correctness": 2})
    imported(written(tmp_path, {"item": "item-1", "text": text, "values": said}), strategy="likert")
    client.force_login(make_member(project, role="researcher").account)
    page = client.get(reverse("run", args=["p", 1])).content.decode()
    assert "correctness 1, naturalness 3, relatedness 2" in page
    assert "correctness 2, naturalness 3, relatedness 2" in page
    assert "How the verdicts differ" not in page


def test_the_page_of_an_item_says_that_the_prompt_of_a_recorded_reply_is_not_known(
    project: Project, tmp_path: Path, client: Client
) -> None:
    imported(written(tmp_path, *ROWS))
    client.force_login(make_member(project, role="researcher").account)
    page = client.get(reverse("run-item", args=["p", 1, "item-1"])).content.decode()
    assert ERROR in page
    assert "Its prompt is not known" in page


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            {"item": "item-9", "text": "x", "value": None},
            "item-9 is not an item of the project. Import the items",
        ),
        (
            {"item": "raw", "text": "x", "value": None},
            "raw has no final label that the strategy can use. Label it",
        ),
        ({"item": "item-1", "text": 3}, "line 2, text: is not text"),
        ({"item": "item-2", "text": "x", "value": "perhaps"}, "which detect-1a never gives"),
        ({"item": "item-2", "text": ERROR}, "line 2, value: is missing, but other rows have one"),
    ],
)
def test_one_bad_row_and_nothing_is_imported(
    project: Project, tmp_path: Path, row: dict[str, Any], said: str
) -> None:
    make_item(project, "raw", category="", ability="")
    path = written(tmp_path, ROWS[0], row)
    assert said in refused(path)
    assert "Nothing was imported" in refused(path)


def test_what_is_not_told_by_the_file_must_be_said(project: Project, tmp_path: Path) -> None:
    path = written(tmp_path, *ROWS)
    assert "Add --endpoint NAME" in refused(path, endpoint="")
    assert "Add --strategy SLUG" in refused(path, strategy="")
    assert "There is no strategy 'x'" in refused(path, strategy="x")
    assert "There is no project 'x'" in refused(path, project="x")


def test_a_dry_run_counts_and_stores_nothing(project: Project, tmp_path: Path) -> None:
    said = imported(written(tmp_path, *ROWS), dry_run=True)
    assert "4 replies would be recorded in 1 run" in said
    assert not Run.objects.exists()
    assert not Endpoint.objects.filter(name="detector").exists()


def test_replies_over_items_that_people_label_wait_or_are_noted(
    project: Project, tmp_path: Path
) -> None:
    item = make_item(project, "open", category="", ability="", slots=1)
    make_resolution(item, "error")
    path = written(tmp_path, {"item": "open", "text": ERROR})
    assert "are still being labelled" in refused(path)
    imported(path, while_labelling=True)
    assert Run.objects.get().while_labelling


def test_an_endpoint_that_is_there_takes_its_recorded_replies(
    project: Project, tmp_path: Path
) -> None:
    endpoint = make_endpoint("http://a", name="known")
    imported(written(tmp_path, *ROWS), endpoint="known")
    assert Run.objects.get().endpoint == endpoint


def test_a_new_endpoint_has_a_name_whose_page_can_be_opened(
    project: Project, tmp_path: Path
) -> None:
    path = written(tmp_path, *ROWS)
    for name in ("..", "a/../b", "/a", "a//b", "a/", "gpt/test", "new", "a\u202eb", "a\nb"):
        assert "its page could not be opened" in refused(path, endpoint=name)
    assert not Endpoint.objects.filter(provider=storage.PROVIDER).exists()
    client = browser_of(make_member(project, role="lead"))
    for name in ('rater <b>"1"</b>', "GPT 4 with a better prompt", "a/b.c?d=e#f"):
        imported(path, endpoint=name)
        page = client.get(reverse("endpoint", args=[name]))
        assert page.status_code == 200
        assert escape(name) in page.content.decode()


def test_an_endpoint_that_got_a_slash_in_its_name_has_a_page(
    project: Project, tmp_path: Path
) -> None:
    """Names were not checked before, and an archive may have any."""
    make_endpoint("http://a", name="openai/gpt-4")
    imported(written(tmp_path, *ROWS), endpoint="openai/gpt-4")
    client = browser_of(make_member(project, role="lead"))
    for address in ("/projects/p/runs/", "/endpoints/", "/api/v1/endpoints/"):
        assert "openai/gpt-4" in client.get(address).content.decode()
    assert client.get("/endpoints/openai/gpt-4/").status_code == 200
    assert client.get("/api/v1/endpoints/openai/gpt-4/").json()["name"] == "openai/gpt-4"


@pytest.mark.parametrize("rows", [ROWS, [{"item": "item-1", "value": "error"}]])
@pytest.mark.django_db(transaction=True)
def test_an_endpoint_that_is_deleted_during_an_import_is_told_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: Sequence[dict[str, Any]]
) -> None:
    project = make_project("p", task_type="error-detection")
    make_items(project, 4, "error")
    endpoint, find = make_endpoint("http://a", name="known"), storage._endpoint

    def delete_found(name: str) -> Endpoint:
        found = find(name)
        endpoints.delete_endpoint(endpoint, make_account())
        return found

    monkeypatch.setattr(storage, "_endpoint", delete_found)
    assert "known was deleted meanwhile" in refused(written(tmp_path, *rows), endpoint="known")


def test_values_without_texts_make_outcomes_without_calls(tmp_path: Path) -> None:
    project = make_project("p")
    make_items(project, 1)
    rows = [
        {"item": "item-1", "role": "gold", "value": 9},
        {"item": "item-1", "role": "perturbed", "value": 9},
    ]
    imported(written(tmp_path, *rows), strategy="vanilla-score")
    outcome = Outcome.objects.get()
    assert (outcome.result, outcome.detail) == ("undetected", "equal")
    assert not Call.objects.exists()


def line(call: str, text: str) -> dict[str, Any]:
    """One request of a batch that was answered."""
    message = {"message": {"content": text}, "finish_reason": "stop"}
    body = {"model": "m-1", "choices": [message]}
    return {"custom_id": call, "response": {"status_code": 200, "body": body}, "error": None}


def test_the_output_of_a_batch_becomes_a_run(project: Project, tmp_path: Path) -> None:
    expired = {"custom_id": "item-3", "response": None, "error": {"message": "Too late."}}
    path = written(tmp_path, line("item-1", ERROR), line("item-2|response|0|0", NO_ERROR), expired)
    imported(path, format="openai-batch")
    run = Run.objects.get()
    found = dict(run.outcomes.values_list("item__key", "result"))
    assert found == {"item-1": "detected", "item-2": "undetected", "item-3": "missing"}
    assert Request.objects.get(state="failed").message == "Too late."


def test_published_folders_tell_endpoint_and_strategy(project: Project, tmp_path: Path) -> None:
    said = {"response": ERROR, "prediction": "error", "metadata": {"id": "item-1"}}
    vote = {"prediction": "no_error", "metadata": {"id": "item-1"}}
    place = "task/m/a-detector-1.5"
    simple, majority = f"simple_prompt_baseline/{place}", "majority_vote/task/m/a__b"
    written(tmp_path, said, name=f"{simple}/baseline_errordetection_prompt_3.jsonl")
    written(tmp_path, vote, name=f"{majority}/majority_vote.jsonl")
    imported(tmp_path, endpoint="", strategy="", format="realmistake")
    found = {(run.endpoint.name, run.strategy.slug) for run in Run.objects.for_results()}
    assert found == {("a-detector-1.5", "detect-2a"), ("a__b", "majority")}
    assert Outcome.objects.get(run__strategy__slug="majority").truth == "error"


def test_output_and_error_file_of_a_batch_are_one_run(project: Project, tmp_path: Path) -> None:
    output = written(tmp_path, line("item-1", ERROR), line("item-2", NO_ERROR), name="out.jsonl")
    body = {"error": {"code": "invalid_prompt", "message": "No."}}
    refusal = {"custom_id": "item-3", "response": {"status_code": 400, "body": body}, "error": None}
    errors = written(tmp_path, refusal, name="errors.jsonl")
    imported(output, errors, format="openai-batch")
    found = dict(Run.objects.get().outcomes.values_list("item__key", "cause"))
    assert found == {"item-1": "", "item-2": "", "item-3": "rejected"}
    assert Request.objects.get(state="failed").message == "invalid_prompt: No."
    # The folder that holds both is the same again.
    assert "nothing new" in imported(tmp_path, format="openai-batch")


def test_requests_of_a_batch_are_no_answers_to_it(project: Project, tmp_path: Path) -> None:
    asked = {"custom_id": "item-1", "method": "POST", "url": "/v1/chat/completions", "body": {}}
    said = refused(written(tmp_path, line("item-2", ERROR), asked), format="openai-batch")
    assert "line 2, response: is missing. Give the batch's output and error files." in said


def test_one_reply_in_two_files_is_named_with_both_places(project: Project, tmp_path: Path) -> None:
    written(tmp_path, ROWS[0], name="a.jsonl")
    written(tmp_path, ROWS[1], ROWS[0], name="b.jsonl")
    assert "b.jsonl, line 2, item: item-1 already has this reply, in a.jsonl, line 1" in refused(
        tmp_path
    )
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "contains no JSON Lines files" in refused(empty)


def test_a_file_that_breaks_off_leaves_nothing(project: Project, tmp_path: Path) -> None:
    path = written(tmp_path, *ROWS)
    path.write_text(path.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    assert "line 4: not JSON" in refused(path)


def test_votes_are_recorded_as_what_they_came_to(project: Project, tmp_path: Path) -> None:
    rows = [
        {"item": "item-1", "value": "error"},
        {"item": "item-2", "decided": "no_error"},
        {"item": "item-3", "value": None},
    ]
    said = imported(written(tmp_path, *rows), strategy="majority")
    assert "3 values recorded in 1 run; 0 already imported" in said
    found = Outcome.objects.order_by("item__key").values_list("result", "detail", "truth")
    assert list(found) == [
        ("detected", "error", "error"),
        ("undetected", "no_error", "error"),
        ("missing", "", "error"),
    ]


def test_recorded_votes_count_their_items_as_detectors_do(project: Project, tmp_path: Path) -> None:
    Item.objects.update(ability="", category="")
    rows = [{"item": f"item-{n}", "value": "error"} for n in (1, 2)]
    imported(written(tmp_path, *rows), strategy="majority")
    runs = list(Run.objects.for_results())
    assert [row["items"] for row in left_out.tabulate_left_out(runs)] == [2]
    assert split_by_rate(runs) == ([], runs)


@pytest.mark.parametrize(
    ("strategy", "row", "said"),
    [
        ("majority", {"value": 3}, "value: is '3'. Give error, no_error or null."),
        ("majority", {}, "value: is ''. Give error, no_error or null."),
        (
            "majority",
            {"text": ERROR, "value": "error"},
            "text: is one reply, but a vote needs several",
        ),
        ("mean", {"value": 3}, "value: cannot be recorded for mean. Import its members"),
        ("likert", {"values": {}}, "likert: metrics_from: the task type has no scales"),
        ("detect-1a", {"value": 1}, "which detect-1a never gives. Give error, no_error, or null."),
        (
            "reference",
            {"value": "x"},
            "which reference never gives. Give a number from 1 to 10, or",
        ),
        ("pairwise", {"role": "pair", "order": 1, "value": "C"}, "Give A, B, both good, both"),
        (
            "axis",
            {"role": "gold", "value": 2},
            "axis: is missing; the strategy has content-quality,",
        ),
        (
            "score-matrix-animals",
            {"values": {"x": 1}},
            'Give values of m1, m2, m3, m4, m5, such as {"values": {"m1": 1, "m2": 2, "m3": 3, '
            '"m4": 1, "m5": 2}}, or null.',
        ),
        ("explanation-check", {"value": "maybe"}, "Give true, false, or null."),
        ("reference", {"decided": "error"}, "decided: is only for error detection"),
    ],
)
def test_what_a_strategy_cannot_have_said_is_refused_with_what_it_says(
    project: Project, tmp_path: Path, strategy: str, row: dict[str, Any], said: str
) -> None:
    assert said in refused(written(tmp_path, {"item": "item-1"} | row), strategy=strategy)


def test_where_there_are_no_verdicts_of_the_wanted_kind_the_others_decide_and_it_is_said(
    project: Project, tmp_path: Path
) -> None:
    texts = written(tmp_path, {"item": "item-1", "text": ERROR})
    said = imported(texts, verdicts="stored")
    assert "detector, detect-1a: its parsed verdicts are used, since there are no others." in said
    assert "no others" not in imported(texts, endpoint="other", verdicts="parsed")


def test_a_strategy_of_the_project_can_be_named(project: Project, tmp_path: Path) -> None:
    own = make_version("detect-1a")
    own.project = project
    own.save()
    imported(written(tmp_path, *ROWS), strategy=own.slug)
    assert Run.objects.get().strategy == own


def test_somebody_who_brought_the_same_rows_meanwhile_leaves_nothing_to_do(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, *ROWS)
    store = storage.store_part

    def after_another(one: storage.CheckedPart, now: datetime) -> bool:
        monkeypatch.setattr(storage, "store_part", store)
        imported(path)
        return store(one, now)

    monkeypatch.setattr(storage, "store_part", after_another)
    assert "nothing new; 1 already imported" in imported(path)
    assert (Run.objects.count(), Request.objects.count()) == (1, 4)
