"""Runs of generators that draw something for each item: pinned, shown, kept, and in the fields of
what is generated."""

import io
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client

from annotation.labelling import queue
from annotation.labelling.queue import Offer
from annotation.models import Item, Project, Revision
from judging.archive import load
from judging.errors import Refused
from judging.exporting import tables
from judging.generation import bring_in, regenerate
from judging.generation.bring_in import BringInRequest
from judging.models import Outcome, Run, StrategyVersion
from judging.results.tables import data_set
from judging.runs import lifecycle, pinning, start
from judging.runs.engine import rendering
from judging.runs.lifecycle import RunConfig
from judging.runs.run_config import RunOverrides
from judging.runs.start import NewRuns
from judging.strategies import compute_digest, draws, editing, load_all, prompt_files
from tests.builders import make_item, make_member, make_project, say, take
from tests.judging.archive.builders_archive import archive
from tests.judging.builders_judging import (
    answer_as,
    api_client,
    make_endpoint,
    make_items,
    make_run,
    make_strategy,
)

pytestmark = pytest.mark.django_db

NOBODY = "http://127.0.0.1:1/v1"
PARTS = {"perturbed": "Nien lesg.", "claim": "Two words.", "rationale": "They are misspelt."}
HALVES = RunOverrides(draws={"errors": {"2": 50, "5": 50}})


def begin(project: Project, strategy: str = "generate-spelling", **values: Any) -> Run:
    run = make_run(project, make_endpoint(NOBODY), strategy, **values)
    lifecycle.plan_calls(run)
    return run


def reply(run: Run, text: str = json.dumps(PARTS)) -> None:
    answer_as(run, lambda body: text)
    lifecycle.finish_if_done(run)
    run.refresh_from_db()


def drawn(run: Run) -> dict[str, str]:
    """The number of errors that was drawn for each item, by key."""
    rows = run.outcomes.values_list("item__key", "drawn")
    return {key: next(iter(said["errors"])) for key, said in rows}


def spelled(number: int, project: Project | None = None) -> Project:
    """Gold answers in which words can be misspelt."""
    project = project or make_project("fbi")
    make_items(project, number, ability="long-form", source_ability="long-form")
    return project


def test_a_lead_s_shares_are_pinned_and_each_prompt_asks_for_what_was_drawn() -> None:
    run = begin(spelled(10), own=HALVES)
    assert Counter(drawn(run).values()) == {"2": 5, "5": 5}
    assert run.pinned["own"]["draws"] == {"errors": {"2": 50, "5": 50}}
    calls = run.calls.select_related("outcome__item")
    asked = {call.request_id: call.outcome.item.key for call in calls}
    for request, body in rendering.render_bodies(run, asked.keys()).items():
        number = drawn(run)[asked[request]]
        assert f"The number of misspelt words is {number}. They" in body.decode()


def test_without_shares_the_strategy_s_own_are_drawn() -> None:
    run = begin(spelled(8))
    assert Counter(drawn(run).values()) == {"3": 2, "4": 2, "5": 2, "6": 2}
    assert "own" not in run.pinned


def test_the_digest_of_a_run_depends_on_what_was_drawn() -> None:
    run = begin(spelled(4), own=HALVES)
    assert pinning.compute_digest(run) == run.digest
    one = run.outcomes.order_by("pk")[0]
    other = "2" if drawn(run)[one.item.key] == "5" else "5"
    Outcome.objects.filter(pk=one.pk).update(drawn={"errors": {other: ""}})
    assert pinning.compute_digest(run) != run.digest


def test_generated_items_say_what_was_drawn_and_are_counted_by_it() -> None:
    project = spelled(6)
    run = begin(project, own=HALVES)
    reply(run)
    bring_in.bring_in_replies(BringInRequest(run, project, bring_in.ReleasePolicy()), None)
    made = Item.objects.filter(origin="generated").select_related("parent")
    assert {one.parent.key: one.fields["drawn_errors"] for one in made if one.parent} == drawn(run)
    rows = data_set.tabulate(project, ["drawn_errors"])
    assert {row["drawn_errors"]: row["n"] for row in rows} == {"": 6, "2": 3, "5": 3}


@pytest.mark.parametrize(
    "strategy", ["generate-calculations", "generate-wrong-formula", "generate-incorrect-units"]
)
def test_the_final_answer_stays_unless_a_lead_has_it_carried_through(
    project: Project, strategy: str
) -> None:
    make_items(project, 4, ability="reasoning", source_ability="reasoning")
    usual = begin(project, strategy)
    assert [one.drawn for one in usual.outcomes.all()] == 4 * [{"final_answer": {"stays": ""}}]
    both = RunOverrides(draws={"final_answer": {"stays": 50, "carried-through": 50}})
    run = lifecycle.start_run(
        project,
        strategy=make_strategy(strategy),
        endpoint=usual.endpoint,
        config=RunConfig(seed=1, own=both),
    )
    lifecycle.plan_calls(run)
    bodies = rendering.render_bodies(run, list(run.calls.values_list("request", flat=True)))
    said = Counter("carried through" in body.decode() for body in bodies.values())
    assert said == {True: 2, False: 2}
    reply(run)
    made = bring_in.rows.build_rows(run, project)
    assert Counter(row.values["drawn_final_answer"] for row in made) == {
        "stays": 2,
        "carried-through": 2,
    }


def test_retries_and_clones_keep_what_was_drawn() -> None:
    project = spelled(8)
    run = begin(project, own=HALVES)
    reply(run, "No.")
    # Drawn anew, half of these four would get 5.
    run.outcomes.filter(drawn={"errors": {"5": ""}}).update(result="made", cause="")
    again = regenerate.retry_missing(run, None)
    assert list(drawn(again).values()) == 4 * ["2"]
    assert drawn(again).items() <= drawn(run).items()
    for as_pinned in (False, True):
        assert drawn(lifecycle.clone_run(run, None, as_pinned=as_pinned)) == drawn(run)
    # Another seed draws the same for the same items, unless the shares are others.
    likewise = begin_like(run, HALVES)
    assert drawn(likewise) == drawn(run)
    assert set(drawn(begin_like(run, RunOverrides(draws={"errors": {"9": 100}}))).values()) == {"9"}


def begin_like(run: Run, own: RunOverrides) -> Run:
    return lifecycle.start_run(
        run.project,
        strategy=run.strategy,
        endpoint=run.endpoint,
        config=RunConfig(seed=99, same_as=run, own=own),
    )


def test_a_rejected_item_is_regenerated_as_it_was_drawn() -> None:
    project = make_project("fbi")
    member = make_member(project)
    for place, number in enumerate(("1", "9", "4"), 1):
        make_item(
            project, f"made-{place}", category="spelling", fields={"drawn_errors": number},
            cluster=f"{place:064x}",
        )  # fmt: skip
        say(member, take(member), "invalid", comment="Too easy.")
    run = regenerate.start(
        project,
        "spelling",
        items=list(Item.objects.values_list("pk", flat=True)),
        strategy=make_strategy("generate-spelling"),
        endpoint=make_endpoint(NOBODY),
        member=None,
    )
    assert drawn(run) == {"made-1": "1", "made-2": "9", "made-3": "4"}


def test_a_rejected_item_is_regenerated_with_the_value_that_a_script_had_found() -> None:
    project = spelled(3)
    member = make_member(project)
    texts = {"prompt": "When?", "gold": "From 1871 to 1999."}
    Revision.objects.update(texts=texts)
    dated = {"name": "date", "text": "{{value}}", "share": 100, "value": "date-before-year"}
    definition = load_all()["generate-spelling"].definition | {
        "slug": "dates",
        "draws": [{"name": "errors", "options": [dated]}],
    }
    strategy = StrategyVersion.objects.create(
        project=project,
        slug="dates",
        number=1,
        digest=compute_digest(definition),
        definition=definition,
    )
    endpoint = make_endpoint(NOBODY)
    run = lifecycle.start_run(
        project, strategy=strategy, endpoint=endpoint, config=RunConfig(seed=5)
    )
    lifecycle.plan_calls(run)
    reply(run)
    everything = bring_in.ReleasePolicy(share=100)
    bring_in.bring_in_replies(BringInRequest(run, project, everything), None)
    made = list(project.items.exclude(parent=None))
    while isinstance(offer := queue.next_offer(member), Offer):
        say(member, offer, "invalid", comment="Too easy.")
    again = regenerate.start(
        project,
        "spelling",
        items=[item.pk for item in made],
        strategy=strategy,
        endpoint=endpoint,
        member=None,
    )
    before = {one.item.key: one.drawn for one in run.outcomes.select_related("item")}
    after = {
        getattr(one.item.parent, "key", ""): one.drawn
        for one in again.outcomes.select_related("item")
    }
    assert len(before) == 3
    assert after == before


def test_a_pilot_draws_as_its_run_so_that_no_call_is_paid_for_twice() -> None:
    project, endpoint = spelled(45), make_endpoint(NOBODY)
    wish = NewRuns(
        strategies=[make_strategy("generate-spelling")],
        endpoints=[endpoint],
        config=RunConfig(seed=3, limit=40, own=HALVES),
    )
    [pilot] = start.start_pilots(project, wish, None)
    lifecycle.plan_calls(pilot)
    reply(pilot)
    assert pilot.outcomes.count() == 30
    [planned] = start.estimate_runs(project, wish)
    assert (planned.estimate.stored, planned.estimate.to_ask) == (30, 10)
    assert planned.estimate.drawn == {"errors": {"2": 20, "5": 20}}
    [run] = start.start_runs(project, wish, None)
    assert drawn(pilot).items() <= drawn(run).items()
    assert Counter(drawn(run).values()) == {"2": 20, "5": 20}


def test_shares_for_several_strategies_are_for_those_that_draw() -> None:
    project = spelled(4)
    wish = NewRuns(
        strategies=[make_strategy("generate-spelling"), make_strategy("generate-coherence")],
        endpoints=[make_endpoint(NOBODY)],
        config=RunConfig(seed=3, own=HALVES),
    )
    first, second = start.start_runs(project, wish, None)
    assert Counter(drawn(first).values()) == {"2": 2, "5": 2}
    assert {one.drawn for one in second.outcomes.all()} == {None}


def test_shares_and_a_language_go_to_the_runs_that_draw_or_translate() -> None:
    project = spelled(4)
    wish = NewRuns(
        strategies=[make_strategy("generate-spelling"), make_strategy("translate")],
        endpoints=[make_endpoint(NOBODY)],
        config=RunConfig(seed=3, own=replace(HALVES, language="Swedish")),
    )
    said = [(one.language, one.estimate.drawn) for one in start.estimate_runs(project, wish)]
    assert said == [("", {"errors": {"2": 2, "5": 2}}), ("Swedish", {})]
    first, second = start.start_runs(project, wish, None)
    assert first.pinned["own"] == {"draws": HALVES.draws}
    assert second.pinned["own"] == {"language": "Swedish"}


def test_shares_that_fit_no_draw_start_nothing() -> None:
    project = spelled(2)
    with pytest.raises(Refused, match="does not draw 'errors'"):
        begin(project, "generate-coherence", own=HALVES)
    assert not Run.objects.exists()


def test_shares_are_entered_on_the_page_and_shown(browser: Client, project: Project) -> None:
    spelled(4, project)
    make_endpoint(NOBODY, name="judge")
    new = "/projects/fbi/runs/new/"
    wish = {"strategy": "generate-spelling", "endpoint": "judge", "seed": 5}
    page = browser.get(new).content.decode()
    own = "<code>errors: 3=25, 4=25, 5=25, 6=25</code> (or 1, 2, 7, 8, 9, 10)"
    assert f"{own} Generate: grammar, Generate: spelling" in page
    said = browser.post(new, wish | {"draws": "errors 4"})
    assert said.status_code == 422
    assert "is not a line of shares" in said.content.decode()
    said = browser.post(new, wish | {"draws": "errors: 2=50, 7=50", "estimate": 1}).content.decode()
    assert "draws errors: 2 (2 items), 7 (2 items)." in said
    browser.post(new, wish | {"draws": "errors: 2=50, 7=50"})
    run = Run.objects.get(project=project)
    assert Counter(drawn(run).values()) == {"2": 2, "7": 2}
    page = browser.get(f"/projects/fbi/runs/{run.number}/").content.decode()
    assert "<dd>errors: 2 (2 items), 7 (2 items)</dd>" in page
    [key, number] = next(iter(drawn(run).items()))
    page = browser.get(f"/projects/fbi/runs/{run.number}/items/{key}/").content.decode()
    assert f"Drawn: errors: {number}." in page


def test_the_api_takes_shares_and_says_what_is_drawn(project: Project) -> None:
    spelled(4, project)
    make_endpoint(NOBODY, name="judge")
    client = api_client(make_member(project, role="lead", alias="lea"))
    body = {"strategy": "generate-spelling", "endpoint": "judge"}
    shares = {"draws": {"errors": {"2": 3, "7": 1}}}
    url = "/api/v1/projects/fbi/runs/"
    kind = "application/json"
    said = client.post(url + "estimate/", json.dumps(body | shares), content_type=kind)
    assert said.json()["drawn"] == {"errors": {"2": 3, "7": 1}}
    said = client.post(url, json.dumps(body | shares), content_type=kind)
    assert said.status_code == 201
    rows = client.get(f"{url}1/outcomes/").json()["results"]
    assert Counter(str(row["drawn"]) for row in rows) == {
        "{'errors': {'2': ''}}": 3,
        "{'errors': {'7': ''}}": 1,
    }
    wrong = {"draws": {"errors": {"2": -3}}}
    said = client.post(url, json.dumps(body | wrong), content_type=kind)
    assert said.status_code == 422


def test_the_command_takes_shares_as_lines() -> None:
    spelled(4)
    make_endpoint(NOBODY, name="judge")
    words = ("--project", "fbi", "--strategy", "generate-spelling", "--endpoint", "judge")
    out = io.StringIO()
    call_command("run_strategy", *words, "--draw", "errors: 2=50, 7=50", "--estimate", stdout=out)
    assert "Draws errors: 2 (2 items), 7 (2 items)" in out.getvalue()
    call_command("run_strategy", *words, "--draw", "errors: 7", stdout=out)
    assert set(drawn(Run.objects.get()).values()) == {"7"}


def test_calls_are_exported_with_what_was_drawn() -> None:
    run = begin(spelled(2), own=HALVES)
    rows = {row["item"]: row["drawn"] for row in tables.read_calls(run.project)}
    assert rows == {key: {"errors": {number: ""}} for key, number in drawn(run).items()}


@pytest.mark.skipif(connection.vendor != "sqlite", reason="archives are loaded into SQLite")
def test_an_archive_keeps_what_was_drawn(tmp_path: Path) -> None:
    with transaction.atomic():
        run = begin(spelled(3), own=HALVES)
        before = drawn(run)
        begin(run.project, "generate-coherence")
        path = archive(run.project, tmp_path / "results.zip")
        transaction.set_rollback(True)
    load.load_archive(path)
    run, other = Run.objects.order_by("number")
    assert drawn(run) == before
    assert other.outcomes.filter(drawn__isnull=True).count() == 3
    assert [pinning.compute_digest(one) for one in (run, other)] == [run.digest, other.digest]


def test_the_preview_shows_one_option_and_says_so(browser: Client, project: Project) -> None:
    spelled(1, project)
    page = browser.get("/projects/fbi/strategies/generate-spelling/").content.decode()
    assert "Drawn for each item: one of errors: 3 (25 %), 4 (25 %)" in page
    assert '<li><b>7</b> <span class="hint">0&nbsp;%</span></li>' in page
    api = api_client(make_member(project, role="lead", alias="lea"))
    said = api.post(
        "/api/v1/projects/fbi/strategies/generate-spelling/preview/",
        json.dumps({}),
        content_type="application/json",
    ).json()
    assert "The number of misspelt words is 3." in said["prompt"]["user"]
    assert any("Drawn for this preview: errors: 3." in note for note in said["notes"])


def test_an_imported_prompt_draws_only_what_it_shows() -> None:
    like = make_strategy("generate-spelling")
    text = "{{question}} {{reference}} {{guidance}} Misspell a few words."
    assert "draws" not in prompt_files.read_file(text, like)
    assert "draws" in prompt_files.read_file(text + " {{errors}}", like)


def test_a_copy_of_a_strategy_draws_the_same(browser: Client, project: Project) -> None:
    lead, shipped = make_member(project, role="lead"), make_strategy("generate-requirements")
    copy = editing.copy_strategy(project, shipped, slug="own", member=lead)
    assert draws.same_plan(copy.strategy(), shipped.strategy())
    page = browser.get("/projects/fbi/strategies/own/edit/").content.decode()
    assert "<code>date-before-year</code>, <code>numbers-of-problem</code>" in page
    assert "name = &quot;solution-number-sorts&quot;" in page


# Table 3 of study 001: of 190 inputs, as many as its percentages come to.
TABLE_3 = {
    "concept": (103, 54.2),
    "mention": (87, 45.8),
    "number": (57, 30.0),
    "phrase": (45, 23.7),
    "number-sorts": (48, 25.3),
    "operations": (114, 60.0),
    "solution-phrase": (36, 18.9),
    "solution-calculation": (30, 15.8),
    "solution-number-sorts": (120, 63.2),
}
INPUT = json.dumps({"input": "Make up a problem.", "context": "", "rationale": "It is hard."})


def seeded(number: int, **texts: str) -> Project:
    """Seeds: prompts with a gold answer."""
    seeds = make_project("seeds", task_type="gold-verification")
    for place in range(number):
        item = make_item(seeds, f"seed-{place}", category="", cluster=f"{place:064x}")
        item.revisions.update(texts={"prompt": f"Is {place} right?", "gold": "Yes.", **texts})
    return seeds


def test_the_requirements_of_190_inputs_are_those_of_table_3() -> None:
    """It takes some seconds, since 190 items are made one by one."""
    seeds = seeded(190, gold="2.5 and 3 are 5.5")
    run = begin(seeds, "generate-requirements")
    kinds = [len(one.drawn["requirements"]) for one in run.outcomes.all()]
    assert (min(kinds), max(kinds), sum(kinds)) == (2, 4, 640)
    bodies = rendering.render_bodies(run, list(run.calls.values_list("request", flat=True)))
    sorts = "no other sort stands in it: integers and numbers with 1 decimal place."
    assert sum(sorts in body.decode() for body in bodies.values()) == 120
    reply(run, INPUT)
    inputs = make_project("inputs", task_type="gold-verification")
    bring_in.bring_in_replies(BringInRequest(run, inputs, bring_in.ReleasePolicy()), None)
    rows = data_set.tabulate(inputs, [])
    found = {
        row["value"]: (row["count"], round(100 * row["share"], 1))
        for row in rows
        if row["of"] == "fields.drawn_requirements"
    }
    assert found == TABLE_3


def test_a_lead_steers_the_requirements() -> None:
    seeds = seeded(20)
    shares = {"concept": 100, "mention": 50, "operations": 50}
    run = begin(seeds, "generate-requirements", own=RunOverrides(draws={"requirements": shares}))
    kinds = Counter(name for one in run.outcomes.all() for name in one.drawn["requirements"])
    assert kinds == {"concept": 20, "mention": 10, "operations": 10}
    few = RunOverrides(draws={"requirements": {"concept": 100, "mention": 50}})
    with pytest.raises(Refused, match="so let their shares add up to 200 to 400"):
        make_run(seeds, run.endpoint, "generate-requirements", own=few)


def test_a_third_of_the_planted_mistakes_is_a_date_before_a_year_of_the_passage() -> None:
    seeds = seeded(30, context="It was founded in 1871 and closed in 1999.")
    run = begin(seeds, "generate-planted")
    chosen = [one.drawn["mistake"] for one in run.outcomes.all()]
    assert Counter(name for one in chosen for name in one) == {
        "number": 10,
        "detail": 10,
        "date": 10,
    }
    dates = {value for one in chosen for value in one.values() if value}
    assert {date[:4] for date in dates} == {"1870", "1998"}
    bodies = rendering.render_bodies(run, list(run.calls.values_list("request", flat=True)))
    asked = " ".join(body.decode() for body in bodies.values())
    assert all(f"let the day to assume be {date}," in asked for date in dates)


def test_responses_to_an_input_have_its_planted_mistake_in_a_field_too() -> None:
    seeds = seeded(3, context="It was founded in 1871.")
    run = begin(seeds, "generate-planted")
    answer_as(run, lambda body: INPUT.replace("a problem", f"problem {len(body)}"))
    lifecycle.finish_if_done(run)
    inputs = make_project("inputs", task_type="gold-verification")
    bring_in.bring_in_replies(BringInRequest(run, inputs, bring_in.ReleasePolicy()), None)
    answered = make_run(inputs, run.endpoint, "generate-response")
    lifecycle.plan_calls(answered)
    reply(answered, "It is so.")
    target = make_project("responses", task_type="error-detection")
    bring_in.bring_in_replies(BringInRequest(answered, target, bring_in.ReleasePolicy()), None)
    rows = data_set.tabulate(target, ["drawn_mistake"])
    assert {row["drawn_mistake"]: row["n"] for row in rows} == {"date": 1, "detail": 1, "number": 1}


def test_without_a_year_and_a_solution_the_other_options_are_drawn() -> None:
    seeds = seeded(12, prompt="A topic", gold="")
    planted = begin(seeds, "generate-planted")
    assert Counter(name for one in planted.outcomes.all() for name in one.drawn["mistake"]) == {
        "number": 6,
        "detail": 6,
    }
    wish = NewRuns(
        strategies=[make_strategy("generate-requirements")],
        endpoints=[planted.endpoint],
        config=RunConfig(seed=1),
    )
    [one] = start.estimate_runs(seeds, wish)
    said = one.estimate.drawn["requirements"]
    assert (said["number-sorts"], said["solution-number-sorts"], said["concept"]) == (0, 0, 7)
