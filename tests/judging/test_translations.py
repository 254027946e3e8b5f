"""Items are translated whole, and seeds are reworded: what comes in, and what is of no use."""

import json
import zipfile
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from annotation.generation import release
from annotation.items.rendering.sheet import ReadingPreferences, build_original_sheets
from annotation.labelling import gold_correction
from annotation.models import Item, Project, Resolution, Slot
from annotation.tasktypes import load_task_type
from judging.archive import redact
from judging.errors import Refused
from judging.generation import bring_in, choices
from judging.generation.bring_in import BringInRequest
from judging.generation.views import board
from judging.models import Reading, Run
from judging.results import cells, group_fields
from judging.runs import lifecycle
from judging.runs.run_config import RunOverrides
from judging.strategies import StrategyError, frames, from_definition, load_all, preview
from judging.strategies.frames import CallSpec
from judging.strategies.replies import outputs
from judging.strategies.replies.unusable_texts import find_cause
from tests.builders import make_item, make_member, make_project, make_resolution, make_revision
from tests.judging.builders_judging import (
    answer_as,
    api_client,
    make_endpoint,
    make_items,
    make_judged,
    make_run,
    make_strategy,
    results,
    work,
)
from tests.services.scripted_evaluator import Script, ScriptedEvaluator

NOBODY = "http://127.0.0.1:1/v1"
ALL = release.ReleasePolicy(share=100)
SWEDISH = RunOverrides(language="Swedish")
GOLD = "The spider has 8 legs, and that is what it is known for by all of us in the house."
TEXTS = {
    "prompt": "How many legs has a spider?",
    "gold": GOLD,
    "perturbed": GOLD.replace("8", "9"),
    "claim": "8 became 9.",
    "rationale": "",
}
SAID = {
    "prompt": "Hur många ben har en spindel?",
    "gold": "Spindeln har 8 ben, och det är vad den är känd för hos oss alla i huset.",
    "perturbed": "Spindeln har 9 ben, och det är vad den är känd för hos oss alla i huset.",
    "claim": "8 blev 9.",
}


def made_of(project: Project) -> list[Item]:
    return list(Item.objects.in_project(project).filter(origin="generated").order_by("position"))


def translated(project: Project, *said: Any, language: str = "Swedish", **values: Any) -> Run:
    """A run that was answered with these translations in turn."""
    run = make_run(
        project,
        make_endpoint(NOBODY),
        "translate",
        own=RunOverrides(language=language),
        **values,
    )
    replies = iter(said)
    lifecycle.plan_calls(run)
    answer_as(run, lambda body: json.dumps({"translation": next(replies)}))
    lifecycle.finish_if_done(run)
    run.refresh_from_db()
    return run


@pytest.mark.django_db(transaction=True)
def test_every_item_is_translated_and_goes_to_people(
    project: Project, evaluator: ScriptedEvaluator
) -> None:
    """Two items of one source question, the second perturbed by rule, with a count of errors."""
    one = make_item(project, "one", texts=TEXTS, cluster="a" * 64, fields={"task": "sums"})
    two = make_item(
        project, "two", texts=TEXTS | {"perturbed": "The spider has 7 legs."}, cluster="a" * 64,
        parent=one, dose=1, origin="perturber", fields={"perturber": "numbers v1", "seed": "x"},
    )  # fmt: skip
    endpoint, said = make_endpoint(evaluator), StringIO()
    call_command("run_strategy", project="fbi", strategy="translate", endpoint=endpoint.name,
                 language="Swedish", wait=True, stdout=StringIO(), stderr=StringIO())  # fmt: skip
    run = Run.objects.get()
    assert (run.state, run.pinned["own"], results(run)) == (
        "finished", {"language": "Swedish"}, {"made": 2}
    )  # fmt: skip
    assert len(evaluator.log) == 2
    call_command("bring_in", project="fbi", run=run.number, share=50, stdout=said)
    assert said.getvalue().startswith("2 added, 0 unchanged; 1 released, 0 accepted")
    first, second = made_of(project)
    assert (first.parent_id, second.parent_id, second.dose) == (one.pk, two.pk, 1)
    assert (first.category, first.ability, first.cluster) == (one.category, one.ability, "a" * 64)
    texts = first.revision().texts
    assert texts["prompt"] == "Swedish: woH ynam sgel sah a redips?"
    assert texts["perturbed"] == texts["gold"].replace("8", "9")
    assert "rationale" not in {name for name, text in texts.items() if text}
    assert first.fields["task"] == "sums"
    assert first.fields["generator"] == "translate v1"
    assert (first.fields["language"], first.fields["translated_from"]) == ("Swedish", "one")
    # What was said of the maker of the source is kept beside the maker of the translation.
    assert (second.fields["perturber"], second.fields["source_seed"]) == ("numbers v1", "x")
    assert second.fields["seed"] != "x"
    assert (first.flags, second.flags) == ([], [])
    assert Slot.objects.filter(item__in=[first, second]).count() == project.overlap
    assert [row.strategy for row in board.load_board(project)] == ["translate"]


@pytest.mark.django_db
def test_the_model_that_answered_stays_in_its_field_beside_that_which_translated(
    project: Project,
) -> None:
    """Study 003 groups its figures by the model that answered, in each language."""
    make_item(project, "one", texts=TEXTS, fields={"model": "alpha", "language": "English"})
    bring_in.bring_in_replies(BringInRequest(translated(project, SAID), project, ALL), None)
    [made] = made_of(project)
    told = {name: value for name, value in made.fields.items() if "model" in name}
    assert told == {"model": "alpha", "generator_model": "m"}
    assert (made.fields["language"], made.fields["source_language"]) == ("Swedish", "English")


@pytest.mark.django_db
def test_a_run_without_a_usable_answer_says_so_and_why(project: Project) -> None:
    make_item(project, "spider", texts=TEXTS)
    run = translated(project, TEXTS)
    said, told = StringIO(), StringIO()
    call_command("bring_in", project="fbi", run=run.number, stdout=said, stderr=told)
    assert said.getvalue().startswith("0 added, 0 unchanged")
    assert told.getvalue() == (
        "No item of run 1 has a usable answer. Missing, by cause: echoed 1. "
        "The page of the run has the replies.\n"
    )


@pytest.mark.django_db
def test_what_was_drawn_for_an_item_stays_with_its_translation(project: Project) -> None:
    make_item(project, "spider", texts=TEXTS, fields={"drawn_errors": "3"})
    run = translated(project, SAID)
    assert run.outcomes.get().drawn is None
    bring_in.bring_in_replies(BringInRequest(run, project, ALL), None)
    [made] = made_of(project)
    assert (made.fields["drawn_errors"], made.fields["language"]) == ("3", "Swedish")


@pytest.mark.django_db
def test_rejected_items_and_translations_are_not_translated(project: Project) -> None:
    good, bad = make_item(project, "good", texts=TEXTS), make_item(project, "bad", texts=TEXTS)
    Resolution.objects.create(
        item=bad, revision=bad.revision(), value="invalid", rule="test", source="imported"
    )
    run = translated(project, SAID)
    assert list(run.outcomes.values_list("item", flat=True)) == [good.pk]
    bring_in.bring_in_replies(BringInRequest(run, project, ALL), None)
    assert made_of(project)
    assert list(translated(project, SAID).outcomes.values_list("item", flat=True)) == [good.pk]


@pytest.mark.django_db
def test_what_is_made_of_a_translation_is_in_its_language_and_not_translated(
    project: Project,
) -> None:
    target = make_project("sv")
    make_item(project, "one", texts=TEXTS)
    run = translated(project, SAID)
    bring_in.bring_in_replies(BringInRequest(run, target, ALL), None)
    perturbed = make_run(target, make_endpoint(NOBODY), "generate-number-errors")
    said = {"perturbed": SAID["gold"].replace("8", "7"), "claim": "8 blev 7.", "rationale": "Så."}
    lifecycle.plan_calls(perturbed)
    answer_as(perturbed, lambda body: json.dumps(said))
    lifecycle.finish_if_done(perturbed)
    perturbed.refresh_from_db()
    bring_in.bring_in_replies(BringInRequest(perturbed, target, ALL), None)
    made = made_of(target)
    assert [item.fields["language"] for item in made] == ["Swedish", "Swedish"]
    assert [item.fields["generator"] for item in made] == [
        "translate v1", "generate-number-errors v1"
    ]  # fmt: skip
    with pytest.raises(Refused, match="No item of this project can be translated"):
        translated(target, SAID)


@pytest.mark.django_db
def test_several_references_stay_several_and_go_to_a_project_of_their_kind() -> None:
    project, target = (make_project(slug, task_type="rating") for slug in ("en", "sv"))
    item = make_item(project, "one", category="")
    texts = {"prompt": "Which river?", "gold": ["Loire", "The Loire"], "response": "Seine 1"}
    item.revisions.update(texts=texts)
    said = {"prompt": "Vilken flod?", "gold": ["Loire", "Loiren"], "response": "Seine"}
    run = translated(project, said)
    assert results(run) == {"made": 1}
    bring_in.bring_in_replies(BringInRequest(run, target, ALL), None)
    [made] = made_of(target)
    assert made.revision().texts == said
    assert (made.parent, made.fields["source_item"]) == (None, "one")
    # The response has lost its number; nobody is asked before a lead has looked.
    assert made.flags == ["numbers"]
    assert made.fields["before_translation"] == texts


@pytest.mark.django_db
def test_who_checks_a_translation_reads_what_was_translated(browser: Client) -> None:
    project, target = (make_project(slug, task_type="rating") for slug in ("en", "sv"))
    item = make_item(project, "one", category="")
    texts = {"prompt": "Which river?", "gold": ["Loire", "The Loire"], "response": "Seine <b>1"}
    item.revisions.update(texts=texts)
    run = translated(project, {"prompt": "Flod?", "gold": ["Loire", "Loiren"], "response": "S 1"})
    bring_in.bring_in_replies(BringInRequest(run, target, ALL), None)
    browser.force_login(make_member(target, "lead").account)
    [made] = made_of(target)
    for page in ("/projects/sv/label/", f"/projects/sv/items/{made.key}/"):
        shown = browser.get(page).content.decode()
        before = shown.partition("Before translation")[2].partition("</details>")[0]
        for said in ("Prompt", "Which river?", "Gold answers", "The Loire", "Seine &lt;b&gt;1"):
            assert said in before
        assert "&quot;Which river?" not in shown  # and no JSON among the fields of the item


@pytest.mark.django_db
@pytest.mark.parametrize("given", ["text", 7, ["a"], {"gold": 3, "prompt": [1], "other": "x"}])
def test_fields_of_a_file_that_are_no_texts_are_not_shown_as_translated(given: object) -> None:
    task = load_task_type(make_project(task_type="rating"))
    habits = ReadingPreferences.from_request({}, {}, "", "")
    assert build_original_sheets(task, {"before_translation": given}, habits) == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({}, ""),
        ({"claim": ""}, "incomplete"),
        ({"gold": [SAID["gold"]]}, ""),
        ({"gold": [SAID["gold"], "Åtta."]}, "incomplete"),
        # A short text may be the same in two languages, a long one may not.
        ({"claim": TEXTS["claim"]}, ""),
        ({"perturbed": TEXTS["perturbed"]}, "echoed"),
        ({"gold": f"So it is: {GOLD}"}, "language"),
    ],
)
def test_a_translation_is_of_use_if_it_is_whole_and_in_another_language(
    project: Project, changed: dict[str, Any], cause: str
) -> None:
    make_item(project, "one", texts=TEXTS)
    run = translated(project, SAID | changed)
    assert results(run) == {cause or "made": 1}


def test_the_language_is_told_where_it_can_be() -> None:
    asked = load_all()["translate"]
    german = (
        "Das ist eine Spinne, und die hat acht Beine, von denen man nicht viel sieht. Das ist es."
    )
    code = "```\nfor name in all the names of every one of us here and there: print\n```"

    def cause(source: str, text: str, language: str) -> str:
        into = replace(asked, language=language)
        return find_cause(into, {"prompt": text}, {"prompt": source})

    assert cause(GOLD, german, "German") == cause(GOLD, german, "Bavarian") == ""
    assert cause(GOLD, german, "French") == "language"
    assert cause("मकड़ी के आठ पैर होते हैं और यही उसकी पहचान है। " * 2, GOLD, "english") == ""
    assert cause(GOLD, "मकड़ी के आठ पैर होते हैं और यही उसकी पहचान है। " * 2, "English") == "language"
    # It is in the language already, or it is code.
    assert cause(GOLD, GOLD, "English") == ""
    assert cause(code, code, "Swedish") == ""


def test_a_reply_without_an_object_of_texts_is_none() -> None:
    asked = load_all()["translate"]
    for said in ('{"translation": {}}', '{"translation": "Hej"}', '{"translation": {"gold": 8}}'):
        assert outputs.parse_reply(asked, said).cause == "incomplete"
    assert outputs.parse_reply(asked, '{"prompt": "Hej"}').cause == "unparsable"
    found = outputs.parse_reply(asked, '{"translation": {"response_1": "a", "gold": ["b"]}}').value
    assert found == {"response-1": "a", "gold": ["b"]}
    texts = {"gold": ["x"], "response_1": "y", "context": " "}
    assert find_cause(asked, found, texts) == ""


@pytest.mark.django_db
def test_names_that_no_database_stores_are_changed_like_texts(project: Project) -> None:
    make_item(project, "one", texts=TEXTS)
    run = translated(project, {"gold": "a", "\0b": "c", "\ud800d": "e"})
    assert results(run) == {"incomplete": 1}
    assert Reading.objects.get().value.keys() == {"gold", "\N{REPLACEMENT CHARACTER}b", "?d"}


def test_the_form_of_the_answer_names_the_texts_of_the_item() -> None:
    asked = load_all()["translate"]
    schema = frames.build_schema(asked, CallSpec("translation"), TEXTS | {"gold": ["a", "b"]})
    assert schema is not None
    inner = schema["properties"]["translation"]
    assert list(inner["properties"]) == ["prompt", "gold", "perturbed", "claim"]
    assert inner["properties"]["gold"] == {"type": "array", "items": {"type": "string"}}
    assert inner["required"] == ["prompt", "gold", "perturbed", "claim"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("fault", ["echoed", "incomplete", "no_json"])
def test_what_is_of_no_use_is_counted_by_its_cause(
    project: Project, evaluator: ScriptedEvaluator, fault: str
) -> None:
    make_item(project, "one", texts=TEXTS)
    evaluator.script = Script(faults={fault: ""})
    run = work(make_run(project, make_endpoint(evaluator), "translate", own=SWEDISH))
    assert results(run) == {"unparsable" if fault == "no_json" else fault: 1}


@pytest.mark.django_db
def test_a_translation_needs_a_language_and_nothing_else_takes_one(project: Project) -> None:
    make_items(project, 1)
    endpoint = make_endpoint(NOBODY)
    for strategy, language, why in [
        ("translate", "", "Choose the language"),
        ("translate", "Swedish\nIgnore this", "Write the name of one language"),
        ("translate", "8", "Write the name of one language"),
        ("generate-entity", "Swedish", "translates nothing"),
    ]:
        with pytest.raises(Refused, match=why):
            make_run(project, endpoint, strategy, own=RunOverrides(language=language))
    for language in ("Brazilian Portuguese", "हिन्दी", "العربية"):
        made = make_run(project, endpoint, "translate", own=RunOverrides(language=language))
        assert made.pinned_strategy().language == language
    with pytest.raises(CommandError, match="Choose the language"):
        call_command("run_strategy", project="fbi", strategy="translate", endpoint=endpoint.name)


@pytest.mark.django_db
def test_a_translation_is_named_with_its_language(project: Project, browser: Client) -> None:
    make_items(project, 1)
    lead = make_member(project, role="lead", alias="lena")
    assert lead.account
    browser.force_login(lead.account)
    run = translated(project, SAID)
    assert run.label == f"{run.number} · translate into Swedish"
    assert cells.run_name(run).startswith(f"{run.number} · translate into Swedish · ")
    run.name = "Spiders"
    assert "translate into Swedish" in cells.run_cell(run).note
    for address, name in [
        ("runs/", "translate into Swedish <span"),
        (f"runs/{run.number}/", "Translate: all texts of an item into Swedish</h1>"),
        ("jobs/", "translate into Swedish at"),
    ]:
        assert name in browser.get(f"/projects/fbi/{address}").content.decode()


@pytest.mark.django_db
def test_an_estimate_of_a_translation_names_the_language(project: Project) -> None:
    make_items(project, 1)
    make_endpoint(NOBODY, name="judge")
    said = StringIO()
    call_command("run_strategy", project="fbi", strategy="translate", endpoint="judge",
                 language="Swedish", estimate=True, stdout=said)  # fmt: skip
    assert "Translates into Swedish" in said.getvalue()


@pytest.mark.django_db
def test_form_and_api_take_the_language(project: Project, browser: Client) -> None:
    make_items(project, 2)
    lead, endpoint = make_member(project, role="lead", alias="lena"), make_endpoint(NOBODY)
    assert lead.account
    browser.force_login(lead.account)
    sent = {"strategy": ["translate"], "endpoint": [endpoint.name], "seed": 1}
    page = browser.post("/projects/fbi/runs/new/", sent)
    assert page.status_code == 422
    assert "Choose the language to translate into" in page.content.decode()
    # Of two strategies, the one that translates gets the language.
    both = sent | {"strategy": ["translate", "generate-entity"], "language": " Swedish ",
                   "estimate": "1"}  # fmt: skip
    page = browser.post("/projects/fbi/runs/new/", both)
    assert "Translate: all texts of an item into Swedish at" in page.content.decode()
    # A language that was left in the form of another strategy does not matter.
    browser.post("/projects/fbi/runs/new/", sent | {"strategy": ["vanilla"], "language": "x"})
    assert Run.objects.get().strategy.slug == "vanilla"
    browser.post("/projects/fbi/runs/new/", sent | {"language": "Swedish"})
    body = {"strategy": "translate", "endpoint": endpoint.name, "language": "Hindi"}
    address = "/api/v1/projects/fbi/runs/"
    client = api_client(lead)
    for language, status in [("Hindi", 201), ("", 422)]:
        said = client.post(
            address, body | {"language": language}, content_type="application/json",
            headers={"Idempotency-Key": language or "none"},
        )  # fmt: skip
        assert said.status_code == status, said.content
    runs = Run.objects.order_by("number")
    assert [run.pinned["own"].get("language") for run in runs if run.generates] == [
        "Swedish", "Hindi"
    ]  # fmt: skip
    last = runs.latest("pk").number
    shown = browser.get(f"/projects/fbi/runs/{last}/").content.decode()
    assert "<dt>Translated into</dt><dd>Hindi</dd>" in shown
    copy = lifecycle.clone_run(Run.objects.get(pinned__own__language="Hindi"), lead)
    assert copy.pinned["own"] == {"language": "Hindi"}


@pytest.mark.django_db
def test_the_preview_shows_all_texts_before_there_is_a_language(project: Project) -> None:
    item = make_item(project, "one", texts=TEXTS)
    made = preview.build_preview(
        project, make_strategy("translate"), item=item, endpoint=make_endpoint(NOBODY)
    )
    assert made.prompt is not None
    assert made.prompt.user.startswith("Translate every text of this item into (language).")
    assert json.loads(made.prompt.user.split("TEXTS]")[1].removesuffix("[END ")) == {
        name: text for name, text in TEXTS.items() if text
    }
    assert made.sent is not None
    assert made.sent.digest == ""
    assert made.notes == ("A run shows the language that is chosen for it in place of (language).",)
    item.fields["translated_from"] = "other"
    item.save()
    [_, why] = preview.build_preview(project, make_strategy("translate"), item=item).notes
    assert why == "A run would skip one: it was rejected, or is a translation."


@pytest.mark.django_db
def test_a_perturbation_that_the_translation_lost_is_flagged(project: Project) -> None:
    make_item(project, "one", texts=TEXTS)
    run = translated(project, SAID | {"perturbed": SAID["gold"], "prompt": "Hur många ben?"})
    done = bring_in.bring_in_replies(
        BringInRequest(
            run, project, release.ReleasePolicy(share=100, aside=frozenset({"numbers"}))
        ),
        None,
    )
    assert made_of(project)[0].flags == ["identical", "numbers"]
    assert (done.opened, done.waiting) == (0, 1)


@pytest.mark.django_db
def test_the_same_short_answer_in_two_languages_is_no_duplicate(project: Project) -> None:
    short = {"prompt": "Who?", "gold": "Ada Lovelace", "perturbed": "Alan Turing", "claim": ""}
    make_item(project, "one", texts=short)
    run = translated(project, short | {"prompt": "Vem?"})
    assert results(run) == {"made": 1}
    bring_in.bring_in_replies(BringInRequest(run, project, ALL), None)
    assert "duplicate" not in made_of(project)[0].flags
    # In one language it is.
    again = translated(project, short | {"prompt": "Vem där?"})
    bring_in.bring_in_replies(BringInRequest(again, project, ALL), None)
    assert ["duplicate" in item.flags for item in made_of(project)] == [False, True]


@pytest.mark.django_db
def test_an_exported_translation_is_the_same_item_again(project: Project, tmp_path: Path) -> None:
    make_item(project, "one", texts=TEXTS, slots=0, fields={"task": "sums"})
    run = translated(project, SAID | {"prompt": "Hur många ben har 9 spindlar?", "claim": "Fel."})
    bring_in.bring_in_replies(BringInRequest(run, project, ALL), None)
    path, other = tmp_path / "items.jsonl", make_project("other")
    call_command("export", "items", project="fbi", format="jsonl", output=path)
    call_command("import_items", str(path), project="other", stdout=StringIO())
    [before], [after] = made_of(project), made_of(other)
    assert before.flags == after.flags == ["numbers"]
    assert before.fields == after.fields
    assert before.fields["language"] == "Swedish"
    assert after.parent is not None
    assert (after.parent.key, after.dose) == ("one", None)
    assert after.revision().texts == before.revision().texts
    # What was translated is told again, so it is not translated once more.
    assert translated(other, SAID).outcomes.get().item.key == "one"


@pytest.mark.django_db
def test_figures_can_be_grouped_by_the_language_and_are_archived_with_it(
    project: Project, tmp_path: Path
) -> None:
    [one] = make_items(project, 1, fields={"language": "English"})
    run = translated(project, {name: f"{text}, sa" for name, text in one.revision().texts.items()})
    bring_in.bring_in_replies(BringInRequest(run, project, ALL), None)
    [made] = made_of(project)
    assert made.fields["source_language"] == "English"
    Resolution.objects.create(
        item=made, revision=made.revision(), value="valid", rule="test", source="imported"
    )
    judged = make_judged(project, [(one, "detected"), (made, "undetected")])
    assert "language" in group_fields.list_fields(project)
    call_command("freeze_results", project="fbi", run=[judged.number], with_texts=True,
                 output=tmp_path / "all.zip", stdout=StringIO(), verbosity=0)  # fmt: skip
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        held = b"".join(archive.read(name) for name in archive.namelist())
    assert b"translated_from" in held


@pytest.mark.django_db
def test_an_archive_without_texts_has_none_of_those_that_were_translated(
    project: Project, tmp_path: Path
) -> None:
    one = make_item(project, "one", texts=TEXTS)
    run = translated(project, SAID)
    bring_in.bring_in_replies(BringInRequest(run, project, ALL), None)
    [made] = made_of(project)
    short = {"original": "Who wrote Faust?", "rationale": "Short words."}
    anew = make_item(project, "two", texts=TEXTS, fields={"generator": "reword v1", **short})
    for item in (one, made, anew):
        make_resolution(item)
    judged = make_judged(project, [(one, "detected"), (made, "undetected"), (anew, "detected")])
    call_command("freeze_results", project="fbi", run=[judged.number],
                 output=tmp_path / "all.zip", stdout=StringIO(), verbosity=0)  # fmt: skip
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        held = b"".join(archive.read(name) for name in archive.namelist()).decode()
    assert "before_translation" in held
    texts = (*TEXTS.values(), *SAID.values(), *short.values())
    assert not [text for text in texts if text and text in held]


# Rewording

ASKED = "The man who wrote Faust in 1808 born which city was?"
ANEW = "In which city was the man born who wrote Faust in 1808?"


def reworded(project: Project, text: str) -> Run:
    run = make_run(project, make_endpoint(NOBODY), "reword")
    said = {"input": text, "context": "", "rationale": "The order of the words."}
    lifecycle.plan_calls(run)
    answer_as(run, lambda body: json.dumps(said))
    lifecycle.finish_if_done(run)
    run.refresh_from_db()
    return run


def make_seed(**texts: str) -> tuple[Project, Project]:
    seeds, target = (make_project(one, task_type="gold-verification") for one in ("s", "t"))
    item = make_item(seeds, "one", category="", fields={"gold_model": "m"})
    item.revisions.update(texts={"prompt": ASKED, **texts})
    return seeds, target


@pytest.mark.django_db
def test_a_reworded_seed_keeps_its_original_its_context_and_its_answer() -> None:
    seeds, target = make_seed(gold="Frankfurt.", context="A passage.")
    run = reworded(seeds, ANEW)
    bring_in.bring_in_replies(BringInRequest(run, target, ALL), None)
    [made] = made_of(target)
    assert made.revision().texts == {
        "prompt": ANEW, "context": "A passage.", "gold": "Frankfurt."
    }  # fmt: skip
    assert made.fields["original"] == ASKED
    public = redact.mask_fields(redact.ArchiveScope(target, (run,), ()), made.fields)
    assert (len(public["original"]), public["generator"]) == (len(ASKED), made.fields["generator"])
    assert "Faust" not in public["original"]
    assert (made.fields["generator"], made.fields["gold_model"]) == ("reword v1", "m")
    assert made.fields["rationale"] == "The order of the words."
    # With its answer, people can look at it at once.
    assert Slot.objects.filter(item=made).count() == 1
    # A mistake is planted in the reworded question.
    planted = make_run(target, make_endpoint(NOBODY, name="other"), "generate-planted")
    assert planted.outcomes.get().item_id == made.pk


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "result", "flags"),
    [
        (ASKED, "made", []),
        ("In which city was the man born who wrote Faust?", "made", ["numbers"]),
        (" ", "incomplete", None),
    ],
)
def test_a_question_that_reads_well_may_stay_and_numbers_must(
    text: str, result: str, flags: list[str] | None
) -> None:
    seeds, target = make_seed()
    run = reworded(seeds, text)
    assert results(run) == {result: 1}
    if flags is not None:
        bring_in.bring_in_replies(BringInRequest(run, target, ALL), None)
        [made] = made_of(target)
        assert made.flags == flags
        # Without an answer it waits for one, as every prompt does.
        assert not Slot.objects.filter(item=made).exists()


def test_only_a_generator_of_inputs_rewords() -> None:
    with pytest.raises(StrategyError, match="only the frame input"):
        from_definition(load_all()["generate-gold"].definition | {"rewords": True})


@pytest.mark.django_db
def test_a_translation_of_texts_that_were_corrected_since_waits_for_a_lead(
    project: Project,
) -> None:
    """Otherwise the error that somebody reported in the gold answer would go to people again."""
    for key in ("one", "two"):
        make_item(project, key, texts=TEXTS, cluster=key)
    run = translated(project, SAID, SAID)
    gold_correction.correct_gold(
        make_member(project, "lead"),
        item_key="one",
        revision=1,
        gold=[GOLD.replace("house", "garden")],
        now=timezone.now(),
    )
    held = release.ReleasePolicy(aside=frozenset(choices.DEFAULT_FLAGS))
    done = bring_in.bring_in_replies(BringInRequest(run, project, held), None)
    assert (done.opened, done.waiting) == (1, 1)
    assert [made.flags for made in made_of(project)] == [["outdated"], []]


@pytest.mark.django_db
def test_a_text_that_a_generated_item_does_not_have_may_be_corrected_meanwhile(
    project: Project,
) -> None:
    item = make_item(project, "one", texts=TEXTS)
    run = make_run(project, make_endpoint(NOBODY), "generate-number-errors")
    lifecycle.plan_calls(run)
    answer_as(run, lambda body: json.dumps(
        {"perturbed": GOLD.replace("8", "7"), "claim": "8 became 7.", "rationale": "x"}
    ))  # fmt: skip
    lifecycle.finish_if_done(run)
    texts = item.revision().texts
    make_revision(item, texts | {"perturbed": GOLD.replace("8", "5")})
    run.refresh_from_db()
    bring_in.bring_in_replies(BringInRequest(run, project, ALL), None)
    assert [made.flags for made in made_of(project)] == [[]]
