"""The page that starts runs: chosen, estimated, piloted, started."""

import re
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.models import Item, Membership, Project, Resolution
from judging.models import Budget, Endpoint, Reply, Run
from judging.runs import lifecycle
from tests.builders import make_item, make_member, make_project, make_revision, make_slot
from tests.judging.builders_judging import (
    answer,
    make_baseline,
    make_endpoint,
    make_items,
    make_judged,
    make_responses,
    make_run,
    make_strategy,
)

pytestmark = pytest.mark.django_db

NOBODY = "http://127.0.0.1:9/v1"
HTMX = {"HX-Request": "true"}
NEW = "/projects/fbi/runs/new/"


@pytest.fixture
def judge() -> Endpoint:
    return make_endpoint(NOBODY, name="judge", price_in=Decimal(10), price_out=Decimal(20))


def shown(answer: Any, status: int = 200) -> str:
    assert answer.status_code == status
    return " ".join(answer.content.decode().split())


def sent(browser: Client, **body: Any) -> Any:
    return browser.post(NEW, {"strategy": "reference", "endpoint": "judge", "seed": 5, **body})


def test_a_run_is_started_and_shown(browser: Client, project: Project) -> None:
    make_items(project, 2)
    make_baseline()
    answered = sent(browser, strategy="rouge-l", endpoint="baseline")
    run = Run.objects.get()
    assert answered.headers["Location"] == reverse("run", args=["fbi", run.number])
    assert (run.seed, run.member and run.member.alias, run.outcomes.count()) == (5, "rita", 2)


def test_a_link_to_the_page_can_choose_something(browser: Client, project: Project) -> None:
    make_items(project, 1)
    form = browser.get(NEW + "?strategy=vanilla&strategy=likert&samples=3&cap=7").context["form"]
    chosen = {name: form[name].value() for name in ("strategy", "samples", "keys", "axes", "cap")}
    assert chosen.pop("strategy") == ["vanilla", "likert"]
    assert chosen.pop("samples") == "3"
    # What a run may cost is nobody's to say but who starts it.
    assert not any(chosen.values())


@pytest.mark.parametrize("number", ["1", "123456789x", "9" * 5000, "", "-1"])
def test_what_is_no_number_of_a_run_chooses_none(
    browser: Client, project: Project, number: str
) -> None:
    shown(browser.get(reverse("runs", args=[project.slug]), {"run": number}))


def test_everything_that_can_be_said_is_kept(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 4)
    make_items(project, 4, ability="long-form")
    sent(
        browser,
        strategy="axis",
        ability=["factual"],
        category=["number-errors"],
        keys="item-1\r\nitem-2\r\n\r\nitem-3\r\nitem-7",
        limit=2,
        samples=3,
        votes="votes",
        axes=["main"],
        parameters='{"temperature": 0.7}',
        cap="1.5",
    )
    run = Run.objects.get()
    assert run.pinned["own"] == {
        "parameters": {"temperature": 0.7},
        "axes": ["main"],
        "votes": True,
    }
    assert (run.samples, run.cap, run.outcomes.count()) == (3, Decimal("1.5"), 2)
    keys = set(run.outcomes.values_list("item__key", flat=True))
    # Item 7 is named and of another ability.
    assert keys < {"item-1", "item-2", "item-3"}


@pytest.mark.parametrize("said, votes", [("repeats", False), ("votes", True)])
def test_whether_samples_vote_is_for_the_run_to_say(
    browser: Client, project: Project, judge: Endpoint, said: str, votes: bool
) -> None:
    make_items(project, 1)
    sent(browser, samples=3, votes=said)
    assert Run.objects.get().pinned["own"] == {"votes": votes}


def test_several_strategies_are_several_runs(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 2)
    body = {"strategy": ["reference", "vanilla"]}
    said = shown(sent(browser, **body, estimate=1))
    assert "<b>2 runs</b> will start" in said
    assert "Start 2 runs" in said
    answered = sent(browser, **body)
    assert answered.headers["Location"] == reverse("runs", args=["fbi"])
    assert Run.objects.count() == 2


def test_rouge_l_of_responses_is_started_before_anybody_has_rated_them(browser: Client) -> None:
    project = make_project("ratings", task_type="rating")
    account = Membership.objects.get(project__slug="fbi").account
    make_member(project, role="researcher", account=account)
    make_responses(project, ["3/3/3"] * 2)
    Resolution.objects.all().delete()
    make_baseline()
    page = "/projects/ratings/runs/new/"
    assert "items without a final label: tick that under" in shown(browser.get(page))
    asked = {"strategy": "rouge-l-response", "endpoint": "baseline", "seed": 5}
    assert "No item of this project has a final label" in shown(browser.post(page, asked), 422)
    assert browser.post(page, asked | {"unlabelled": "on"}).status_code == 302
    assert Run.objects.get().outcomes.filter(truth="unlabelled").count() == 2


def test_the_form_says_how_many_items_are_resolved(browser: Client, project: Project) -> None:
    make_items(project, 1234)
    assert "<b>1,234</b> items have a final label" in shown(browser.get(NEW))


def test_the_projects_own_strategies_are_offered_too(browser: Client, project: Project) -> None:
    make_items(project, 1)
    version = make_strategy("vanilla")
    definition = {**version.definition, "slug": "ours", "title": "Our own words"}
    type(version).objects.create(
        project=project, slug="ours", number=1, digest="x", definition=definition
    )
    said = shown(browser.get(NEW))
    assert 'Our own words <span class="hint">the project&#x27;s own</span>' in said
    assert 'value="majority"' not in said


def test_a_link_may_choose_beforehand(browser: Client, project: Project, judge: Endpoint) -> None:
    make_items(project, 1)
    said = shown(browser.get(NEW + "?strategy=vanilla&endpoint=baseline&category=number-errors"))
    for value in ("vanilla", "baseline", "number-errors"):
        assert f'value="{value}" checked' in said
    assert not Run.objects.exists()


def test_a_link_ticks_a_strategy_before_there_is_an_evaluator_llm(
    browser: Client, project: Project
) -> None:
    make_items(project, 1)
    make_baseline()
    link = NEW + "?strategy=pairwise"
    said = shown(browser.get(link))
    assert 'value="pairwise" checked data-kind="llm">' in said
    assert 'value="vanilla" data-kind="llm" disabled>' in said
    assert "The address of this page keeps what is ticked" in said
    assert "The address of this page keeps what is ticked" not in shown(browser.get(NEW))
    refused = shown(sent(browser, strategy="pairwise", endpoint="baseline"), 422)
    assert 'value="pairwise" checked data-kind="llm">' in refused
    make_endpoint("http://127.0.0.1:9/v1")
    assert 'value="pairwise" checked data-kind="llm">' in shown(browser.get(link))


def test_a_strategy_that_the_endpoint_cannot_do_is_refused_in_words(
    browser: Client, project: Project
) -> None:
    make_items(project, 2)
    make_baseline()
    said = shown(sent(browser, strategy="pairwise", endpoint="baseline"), 422)
    assert "needs an evaluator LLM" in said
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    "body, words",
    [
        ({"strategy": []}, "Choose one or more strategies."),
        ({"strategy": "none"}, "Select a valid choice"),
        ({"strategy": "majority"}, "Select a valid choice"),
        ({"endpoint": []}, "Choose one or more evaluators."),
        ({"limit": -1}, "greater than or equal to 1"),
        ({"cap": 0}, "With a cap of 0 no request can be sent"),
        ({"seed": "x"}, "Enter a whole number"),
        ({"parameters": "{"}, "Enter a JSON object"),
        ({"parameters": "[1]"}, "Enter a JSON object"),
        ({"parameters": '{"top_p": NaN}'}, "NaN is not a valid number"),
        ({"keys": "nothing"}, "The project has no items nothing"),
        ({"votes": "votes"}, "Votes need at least 2 samples"),
        ({"while_labelling": "on", "strategy": "explanation-check"}, "needs a finished run"),
    ],
)
def test_what_makes_no_sense_is_said_and_starts_nothing(
    browser: Client, project: Project, judge: Endpoint, body: dict[str, Any], words: str
) -> None:
    make_items(project, 1)
    assert words in shown(sent(browser, **body), 422)
    assert not Run.objects.exists()


def test_an_estimate_starts_nothing(browser: Client, project: Project, judge: Endpoint) -> None:
    make_items(project, 3)
    said = shown(sent(browser, strategy="pairwise", limit=2, estimate=1))
    # Two items in both orders.
    assert said.count('<td class="number">4</td>') == 3
    # The same tokens at 10 and 20 a million, from no reply to 1,024 tokens for each of 4 calls.
    assert "at most 4,096 out by the token limit" in said
    assert not Run.objects.exists()


def test_an_estimate_and_the_run_say_along_which_axes_they_ask(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 1)
    for number, (axes, calls, words) in enumerate(
        [((), 2, "each item's own axis"), (("all",), 8, "all axes (4)")], 1
    ):
        said = shown(sent(browser, strategy="axis", axes=axes, estimate=1)).replace("&#x27;", "'")
        assert f"axis, along {words}</small>" in said
        # Calls, different requests, and requests to send.
        assert said.count(f'<td class="number">{calls}</td>') == 3
        sent(browser, strategy="axis", axes=axes)
        page = shown(browser.get(reverse("run", args=["fbi", number]))).replace("&#x27;", "'")
        assert f"<dt>Axes</dt><dd>{words.capitalize()}</dd>" in page
    # So pin runs from before each item's own axis was the default.
    Run.objects.filter(number=2).update(pinned={**Run.objects.get(number=2).pinned, "own": {}})
    assert "<dd>All axes (4)</dd>" in shown(browser.get(reverse("run", args=["fbi", 2])))
    sent(browser, strategy="vanilla")
    assert "<dt>Axes</dt>" not in shown(browser.get(reverse("run", args=["fbi", 3])))


def test_what_is_answered_already_is_free(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 3)
    run = make_run(project, judge)
    lifecycle.plan_calls(run)
    answer(run, number=2)
    said = shown(sent(browser, estimate=1))
    assert '<td class="number">2 <small class="hint">free</small></td>' in said
    answer(run)
    assert "free" in shown(sent(browser, estimate=1))


def test_an_unknown_price_is_called_unknown(browser: Client, project: Project) -> None:
    make_items(project, 1)
    make_endpoint(NOBODY, name="judge")
    said = shown(sent(browser, estimate=1))
    assert "has no price, so its cost is unknown and a cap cannot be enforced." in said


def test_an_estimate_says_that_the_cap_or_the_budget_is_below_it(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    """Each of 2 calls costs at most 1,024 tokens at 20 a million, and its prompt at 10."""
    make_items(project, 2)
    judge.parameters = {"max_tokens": 1_024}
    judge.save()
    assert "enough" not in shown(sent(browser, estimate=1, cap="1"))
    said = shown(sent(browser, estimate=1, cap="0.02"))
    assert "The cap of 0.02 USD may not be enough. The run then pauses until you" in said
    said = shown(sent(browser, estimate=1, cap="0.0001"))
    assert "The cap of 0.0001 USD will not be enough." in said
    held = Budget.objects.create(project=project, cap=Decimal(1), spent=Decimal("0.94"))
    said = shown(sent(browser, estimate=1))
    assert "left of the project" not in said
    # One run costs less than 0.06, two together may cost more.
    said = shown(sent(browser, estimate=1, strategy=["reference", "vanilla"]))
    assert "The 0.06 USD left of the project's budget may not be enough." in unescape(said)
    assert f'<a href="{reverse("budget", args=["fbi"])}">Budget</a>' in said
    held.reserved = Decimal("0.06")
    held.save()
    said = unescape(shown(sent(browser, estimate=1)))
    assert "The 0 USD left of the project's budget will not be enough." in said


def test_an_estimate_says_that_without_a_token_limit_the_cap_may_be_exceeded(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 2)
    risk = "may be exceeded: answers have no token limit, and 1,024 tokens are reserved for each."
    for provider, parameters, told in (
        ("openai_compatible", {}, 1),
        ("openai_compatible", {"max_tokens": 4_096}, 0),
        ("anthropic", {}, 0),
        ("openai_compatible", {"max_tokens": None}, 1),
    ):
        judge.provider, judge.parameters = provider, parameters
        judge.save()
        assert shown(sent(browser, estimate=1, cap="1")).count(f"The cap of 1 USD {risk}") == told
    assert risk not in shown(sent(browser, estimate=1)), "there is no cap"
    Budget.objects.create(project=project, cap=Decimal(1))
    said = unescape(shown(sent(browser, estimate=1)))
    assert f"The 1 USD left of the project's budget {risk}" in said


def test_an_estimate_says_that_a_run_cannot_start_instead_of_offering_it(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 40)
    make_endpoint(NOBODY, name="unpriced")
    both = {"endpoint": ["judge", "unpriced"]}
    said = shown(sent(browser, **both, estimate=1))
    assert ("Start 2 runs" in said, "Pilot" in said, "cannot start" in said) == (True, True, False)
    said = shown(sent(browser, **both, cap="1", estimate=1))
    assert "<strong>These runs cannot start.</strong> unpriced has no price" in said
    assert ("data-start>" in said, "Pilot 30" in said) == (False, False)
    assert main_button(said) == "Estimate again"


def test_a_pilot_is_started_followed_and_gives_the_price_an_interval(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 40)
    assert "Pilot 30 calls" in shown(sent(browser, estimate=1))
    said = shown(sent(browser, pilot=1))
    pilot = Run.objects.get()
    assert "0 of 0 calls answered" in said
    assert pilot.archived_at
    lifecycle.plan_calls(pilot)
    answer(pilot)
    lifecycle.finish_if_done(pilot)
    followed = shown(browser.get(f"/projects/fbi/runs/pilots/?run={pilot.number}"))
    assert "30 of 30 calls answered" in followed
    assert "every 1500ms" not in followed
    priced = shown(sent(browser, estimate=1))
    # 10 calls are left, of 100 tokens in and 10 out: 10 x 0.0012.
    assert '0.012 USD <small class="hint">0.012 to 0.012 USD</small>' in priced
    assert "Pilot 30 calls" not in priced


def test_asking_by_htmx_brings_the_estimate_alone(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 1)
    body = {"strategy": "reference", "endpoint": "judge", "seed": 1, "estimate": 1}
    said = shown(browser.post(NEW, body, headers=HTMX))
    assert said.startswith('<section class="sheet stack" id="estimate"')


def test_only_a_lead_is_offered_items_that_are_being_labelled(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    [item] = make_items(project, 1)
    make_slot(item)
    assert "only a lead can allow this" in shown(sent(browser, estimate=1))
    assert "Wait until they are labelled" in shown(sent(browser, while_labelling="on"), 422)
    lead = Client()
    lead.force_login(make_member(project, role="lead").account)
    assert "Tick “Include items" in shown(sent(lead, estimate=1))
    sent(lead, while_labelling="on")
    assert Run.objects.get().while_labelling


def test_an_explanation_check_is_over_a_run(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 1)
    base = make_judged(project, [], endpoint=judge, strategy="vanilla")
    base.outcomes.update(result="undetected", detail="equal")
    answered = sent(browser, strategy="explanation-check", over=base.number)
    assert answered.status_code == 302
    check = Run.objects.order_by("number").last()
    assert check
    assert list(check.sources.all()) == [base]


def test_nothing_is_started_by_looking(browser: Client, project: Project, judge: Endpoint) -> None:
    make_items(project, 1)
    shown(browser.get(NEW + "?strategy=reference&endpoint=judge&seed=1&estimate=1&pilot=1"))
    assert not Run.objects.exists()


def test_the_baseline_is_offered_although_nobody_set_it_up(
    browser: Client, project: Project
) -> None:
    make_items(project, 1)
    Endpoint.objects.all().delete()
    assert 'name="endpoint" value="baseline"' in shown(browser.get(NEW))


def main_button(said: str) -> str:
    form = said.split('id="estimate"')[1]
    return form.split('data-kind="primary"')[1].split(">")[1].split("<")[0]


def test_estimate_is_the_main_button_until_there_is_an_estimate(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 1)
    assert main_button(shown(browser.get(NEW))) == "Estimate"
    assert main_button(shown(sent(browser, estimate=1))) == "Start the run"
    assert main_button(shown(sent(browser, samples=-1, estimate=1), 422)) == "Estimate"


def estimated(said: str) -> str:
    return said.split('name="estimated" value="')[1].split('"')[0]


def test_an_estimate_holds_although_the_browser_ends_lines_in_another_way_when_it_starts(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    items = make_items(project, 2)
    keys = [item.key for item in items]
    # Estimates are sent by a script, with LF; the form itself ends lines with CR LF.
    first = estimated(shown(sent(browser, keys="\n".join(keys), estimate=1)))
    assert sent(browser, keys="\r\n".join(keys), estimated=first).status_code == 302
    assert Run.objects.get().outcomes.count() == 2


def test_a_form_that_was_changed_after_the_estimate_starts_nothing_and_is_estimated_again(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 2)
    first = estimated(shown(sent(browser, estimate=1)))
    said = shown(sent(browser, limit=1, estimated=first), 409)
    assert "the form was changed after the estimate" in said
    assert not Run.objects.exists()
    # The estimate also says whether the cap is enough.
    assert sent(browser, limit=1, cap="5", estimated=estimated(said)).status_code == 409
    # What costs nothing may change, and an empty field is like one that was not sent.
    again = sent(browser, limit=1, estimated=estimated(said), name="First", keys="", tags="a")
    assert again.status_code == 302
    assert Run.objects.get().outcomes.count() == 1


def drawn(said: str) -> list[str]:
    return [part.split('"')[0] for part in said.split('name="drawn" value="')[1:]]


@pytest.mark.parametrize("what", ["added", "changed", "labelled otherwise", "removed"])
def test_what_became_of_the_items_since_the_estimate_is_told_before_a_run_starts(
    browser: Client, project: Project, judge: Endpoint, what: str
) -> None:
    first, *_ = make_items(project, 3)
    said = shown(sent(browser, estimate=1))
    sent_again = {"estimated": estimated(said), "drawn": drawn(said)}
    if what == "added":
        make_items(project, 1)
    elif what == "changed":
        revision = make_revision(first, {**first.revisions.get().texts, "gold": "Other words."})
        first.resolutions.update(revision=revision)
    elif what == "labelled otherwise":
        first.resolutions.update(value="invalid")
    else:
        Item.objects.filter(pk=first.pk).update(deleted_at=timezone.now())
    again = shown(sent(browser, **sent_again), 409)
    assert "items of the project were added, changed, labelled or removed since the estimate" in (
        again
    )
    assert not Run.objects.exists()
    number = {"added": 4, "changed": 3}.get(what, 2)
    assert sent(browser, estimated=estimated(again), drawn=drawn(again)).status_code == 302
    assert Run.objects.get().outcomes.count() == number


def test_several_runs_start_with_the_items_that_were_estimated(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 6)
    body = {"strategy": ["reference", "pairwise"], "limit": 4}
    said = shown(sent(browser, **body, estimate=1))
    assert len(drawn(said)) == 2
    started = sent(browser, **body, estimated=estimated(said), drawn=drawn(said))
    assert (started.status_code, Run.objects.count()) == (302, 2)


def test_the_items_of_an_earlier_run_are_used_again_and_what_became_of_them_is_told(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    items = make_items(project, 12)
    first = make_run(project, judge, limit=4, seed=9)
    same = set(first.outcomes.values_list("item", flat=True))
    body = {"strategy": "pairwise", "same_as": first.number}
    assert f"uses all 4 items of run {first.number}." in shown(sent(browser, **body, estimate=1))
    one, other = sorted(same)[:2]
    item = next(item for item in items if item.pk == one)
    texts = {**item.revisions.get().texts, "perturbed": "Spiders have six legs."}
    revision = make_revision(item, texts)
    # Labelled again in its new words.
    Resolution.objects.filter(item=one).update(revision=revision)
    Resolution.objects.filter(item=other).delete()
    said = shown(sent(browser, **body, estimate=1))
    assert f"uses 3 of the 4 items of run {first.number}. 1 of them has changed since" in said
    assert "1 is left out" in said
    part = shown(sent(browser, **body, limit=2, estimate=1))
    assert f"uses 3 of the 4 items of run {first.number}, of which 2 are drawn." in part
    assert sent(browser, **body).status_code == 302
    run = Run.objects.exclude(pk=first.pk).get()
    assert set(run.outcomes.values_list("item", flat=True)) == same - {other}


def test_the_seed_is_that_of_the_last_run_unless_a_link_says_otherwise(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 2)
    make_run(project, judge, seed=77)
    assert 'name="seed" value="77"' in shown(browser.get(NEW))
    said = shown(browser.get(NEW + "?seed=5&same_as=1"))
    assert 'name="seed" value="5"' in said
    assert '<option value="1" selected>Run 1: reference at judge</option>' in said


def test_three_strategies_are_recommended_for_perturbed_answers(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 3)
    said = shown(browser.get(NEW))
    first = said.split("start-recommended")[1].split("</fieldset>")[0]
    assert [part.split('"')[0] for part in first.split('value="')[1:]] == [
        "vanilla",
        "reference",
        "pairwise",
    ]
    assert "2 calls per item, 6 for 3 items" in first
    assert "Nothing in this project waits for generating." in said
    assert "1.25 in" not in said
    assert "10 USD in / 20 USD out per million tokens" in said


def test_the_next_step_is_told_where_nothing_can_be_run_yet(
    browser: Client, project: Project
) -> None:
    said = shown(browser.get(NEW))
    assert "A lead imports items first" in said
    assert 'id="start"' not in said
    lead = Client()
    lead.force_login(make_member(project, role="lead").account)
    assert f'href="{reverse("imports", args=["fbi"])}">Import items</a>' in shown(lead.get(NEW))
    make_items(project, 1)
    Resolution.objects.all().delete()
    said = shown(browser.get(NEW))
    assert f'<a href="{reverse("label", args=["fbi"])}">Label items</a> first' in said
    # There is no endpoint but the baseline, so what needs more cannot be ticked.
    assert "Ask a site admin to add an endpoint" in said
    assert 'value="vanilla" data-kind="llm" disabled' in said


def test_who_chose_a_generator_is_not_told_that_there_is_nothing_to_evaluate(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_item(project)
    assert "most strategies have nothing to evaluate" in shown(browser.get(NEW))
    said = shown(browser.get(NEW + "?strategy=generate-number-errors"))
    assert "nothing to evaluate" not in said
    assert "Generators can run now" in said


def test_gold_answers_are_recommended_until_no_item_waits_for_one(browser: Client) -> None:
    prompts = make_project("prompts", task_type="gold-verification")
    browser.force_login(make_member(prompts, role="researcher", alias="rolf").account)
    make_endpoint(NOBODY, name="judge")
    item = make_item(prompts, "one", category="", texts={"gold": ""})
    item.revisions.update(texts={"prompt": "How many legs has a spider?"})
    said = shown(browser.get("/projects/prompts/runs/new/"))
    first = said.split("start-recommended")[1].split("</fieldset>")[0]
    assert 'value="generate-gold"' in first
    assert "nothing to evaluate" not in said
    assert "Generators can run now" in said
    item.revisions.update(texts={"prompt": "How many legs has a spider?", "gold": "Eight."})
    said = shown(browser.get("/projects/prompts/runs/new/"))
    assert "start-recommended" not in said
    assert 'value="generate-gold"' in said


def test_shares_are_in_sight_if_a_chosen_strategy_draws(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 1)
    said = shown(browser.get(NEW))
    assert '<details class="start-more start-own">' in said
    assert 'value="generate-spelling" data-kind="llm" data-draws' in said
    assert 'value="vanilla" data-kind="llm">' in said
    said = shown(browser.get(NEW + "?strategy=generate-spelling"))
    assert '<details class="start-more start-own" open>' in said
    assert "Axes, examples, parameters, shares of what generators draw" in said


def test_the_sum_of_an_estimate_is_a_range_and_counts_what_has_no_price(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 2)
    make_endpoint(NOBODY, name="unpriced")
    said = shown(sent(browser, endpoint=["judge", "unpriced"], estimate=1))
    total = said.split('<p class="start-total">')[1].split("</p>")[0]
    assert "4 requests to send" in total
    assert total.endswith(", and 1 run of unknown price.")
    assert " to 0.05" in total
    assert said.count("unpriced</a> has no price") == 1


def test_an_endpoint_without_replies_is_named_once_for_all_of_its_runs(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 1)
    said = shown(sent(browser, strategy=["vanilla", "reference"], estimate=1))
    assert said.count("judge</a> has no replies yet, so the time is unknown.") == 1


def test_an_estimate_says_that_runs_under_way_at_the_endpoint_come_in_turn(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 1)
    words = "under way at judge. Runs at one endpoint take turns"
    assert words not in shown(sent(browser, estimate=1))
    lifecycle.plan_calls(make_run(project, judge, "pairwise"))
    assert f"<li>1 run is {words}" in shown(sent(browser, estimate=1))
    elsewhere = make_project()
    make_items(elsewhere, 1)
    lifecycle.plan_calls(make_run(elsewhere, judge, "pairwise"))
    assert f"<li>2 runs are {words}" in shown(sent(browser, estimate=1))
    Run.objects.update(state="paused")
    assert words not in shown(sent(browser, estimate=1))


def test_the_times_of_runs_that_share_an_endpoint_are_added_up(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 4)
    earlier = make_run(project, judge, "pairwise")
    lifecycle.plan_calls(earlier)
    answer(earlier)
    Reply.objects.update(seconds=60.0)
    Endpoint.objects.update(in_flight=2)
    # Of four items 8 calls and 4, two at a time, a minute each.
    said = shown(sent(browser, strategy=["vanilla", "reference"], estimate=1))
    assert "All runs at judge together: about 6 min, because they share its 2 calls" in said
    assert re.findall(r'<td class="number">([^<]+)</td> </tr>', said) == ["4 min", "2 min"]
    # What the times rest on is the same for each run, so it is folded where there are several.
    assert "<details> <summary>How tokens and times are estimated" in said
    alone = shown(sent(browser, estimate=1))
    assert "about 2 min with 2 calls at a time" in alone
    assert "<details open> <summary>How tokens and times are estimated" in alone
    assert "together" not in alone
