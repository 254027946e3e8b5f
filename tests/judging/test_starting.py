"""Runs as they are wished for: what is their own, several at once, pilots, canaries."""

import json
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from annotation.models import Event, Project
from judging.errors import Refused
from judging.models import Endpoint, Request, Run, StrategyVersion
from judging.runs import archiving, canaries, choices, estimate, lifecycle, progress, run_items
from judging.runs import start as runs_start
from judging.runs.lifecycle import RunConfig
from judging.runs.run_config import RunOverrides
from judging.runs.start import NewRuns
from tests.annotation.test_queue_threads import at_once
from tests.builders import make_item, make_member, make_project, make_slot
from tests.judging.builders_judging import (
    answer,
    make_baseline,
    make_endpoint,
    make_items,
    make_responses,
    make_run,
    make_strategy,
    make_version,
    take,
)

pytestmark = pytest.mark.django_db

NOBODY = "http://127.0.0.1:9/v1"
EVERY_AXIS = {"content-quality", "hallucination", "task-quality", "reasoning-accuracy"}


@pytest.fixture
def project() -> Project:
    return make_project()


def wish(*strategies: str, endpoints: list[Endpoint], **values: Any) -> NewRuns:
    versions = [make_strategy(slug) for slug in strategies]
    canary = values.pop("canary", False)
    config = RunConfig(**{"seed": 1, **values})
    return NewRuns(strategies=versions, endpoints=endpoints, config=config, canary=canary)


def axes_of(run: Run) -> set[str]:
    return set(run.outcomes.values_list("axis", flat=True))


def test_each_strategy_goes_to_each_endpoint_that_fits_it(project: Project) -> None:
    make_items(project, 2)
    judges = [make_endpoint(NOBODY), make_endpoint(NOBODY)]
    wanted = wish("reference", "rouge-l", endpoints=[make_baseline(), *judges])
    started = runs_start.start_runs(project, wanted, None)
    assert [(run.strategy.slug, run.endpoint.name) for run in started] == [
        ("reference", judges[0].name),
        ("reference", judges[1].name),
        ("rouge-l", "baseline"),
    ]


@pytest.mark.parametrize(
    "slugs, offline, words",
    [
        (["reference", "rouge-l"], False, "Strategy rouge-l needs baseline"),
        (["rouge-l"], True, "can be used with judge"),
    ],
)
def test_nothing_chosen_is_left_alone(
    project: Project, slugs: list[str], offline: bool, words: str
) -> None:
    make_items(project, 2)
    endpoints = [make_endpoint(NOBODY, name="judge"), *([make_baseline()] if offline else [])]
    with pytest.raises(Refused, match=words):
        runs_start.start_runs(project, wish(*slugs, endpoints=endpoints), None)


def test_of_several_runs_none_is_started_where_one_cannot_be(project: Project) -> None:
    make_items(project, 2)
    priced = make_endpoint(NOBODY, price_in=Decimal(1), price_out=Decimal(1))
    with pytest.raises(Refused, match="a cap cannot be enforced"):
        runs_start.start_runs(
            project,
            wish("reference", endpoints=[priced, make_endpoint(NOBODY)], cap=Decimal(1)),
            None,
        )
    assert not Run.objects.exists()


def test_the_chosen_items_alone_are_asked_about(project: Project) -> None:
    make_items(project, 2)
    make_items(project, 2, category="spelling-errors", ability="long-form", source_ability="")
    make_items(project, 1, "score-invariant", ability="", source_ability="long-form")
    chosen = choices.select_items(project, abilities=("long-form",))
    [run] = runs_start.start_runs(
        project, wish("reference", endpoints=[make_endpoint(NOBODY)], items=chosen), None
    )
    # Items 3 and 4 are long-form, and the answer of 5 was made from one.
    keys = run.outcomes.order_by("item__position").values_list("item__key", flat=True)
    assert list(keys) == ["item-3", "item-4", "item-5"]


def test_categories_and_keys_narrow_each_other_down(project: Project) -> None:
    items = make_items(project, 2)
    make_items(project, 1, category="spelling-errors")
    chosen = choices.select_items(project, categories=("number-errors",), keys=("item-2", "item-3"))
    assert chosen == {items[1].pk}
    assert choices.select_items(project) is None


def test_keys_that_are_not_there_are_named(project: Project) -> None:
    make_items(project, 1)
    lacking = ("item-1", *(f"x{n}" for n in range(7)))
    with pytest.raises(Refused, match="no items x0, x1, x2, x3, x4 and 2 more"):
        choices.select_items(project, keys=lacking)


def test_chosen_items_that_cannot_be_asked_about_are_refused(project: Project) -> None:
    make_items(project, 1)
    unresolved = make_item(project, "raw")
    wanted = wish("reference", endpoints=[make_endpoint(NOBODY)], items={unresolved.pk})
    with pytest.raises(Refused, match="None of the chosen items"):
        runs_start.start_runs(project, wanted, None)
    nothing = choices.select_items(project, abilities=["reasoning"])
    wanted = wish("reference", endpoints=[make_endpoint(NOBODY)], items=nothing)
    with pytest.raises(Refused, match="No item matches the chosen abilities"):
        runs_start.start_runs(project, wanted, None)


@pytest.mark.parametrize(
    "axes, asked",
    [
        (None, {"hallucination"}),
        (("all",), EVERY_AXIS),
        # As runs pin that were started before each item's own axis was the default.
        ((), EVERY_AXIS),
        (("main",), {"hallucination"}),
        (("task-quality", "main"), {"task-quality", "hallucination"}),
    ],
)
def test_an_item_is_judged_along_the_chosen_axes(
    project: Project, axes: tuple[str, ...] | None, asked: set[str]
) -> None:
    make_items(project, 2)
    run = make_run(project, make_endpoint(NOBODY), "axis", own=RunOverrides(axes=axes))
    lifecycle.plan_calls(run)
    assert axes_of(run) == asked
    # Two items, gold and perturbed, along each axis.
    assert run.calls.count() == 4 * len(asked)
    # What decides is the axis of the items' ability, or none of the chosen ones.
    assert set(run.outcomes.main().values_list("axis", flat=True)) == asked & {"hallucination"}


@pytest.mark.parametrize(
    ("slug", "chosen", "calls"),
    [
        # Of six items: one call each, or its number of samples.
        ("reference", {}, 6),
        ("reference", {"samples": 7}, 42),
        ("reference", {"samples": 7, "limit": 2}, 14),
        # Both answers, along the chosen axes; the item's own may be another one.
        ("axis", {}, 12),
        ("axis", {"axes": ("all",)}, 12 * len(EVERY_AXIS)),
        ("axis", {"axes": ("task-quality", "main"), "samples": 3}, 72),
        # Three steps.
        ("score-chain", {}, 18),
    ],
)
def test_more_calls_than_a_run_may_have_are_refused_before_they_are_built(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    slug: str,
    chosen: dict[str, Any],
    calls: int,
) -> None:
    make_items(project, 6)
    values = {"seed": 1, **chosen}
    values["own"] = RunOverrides(axes=values.pop("axes", None))
    wanted = wish(slug, endpoints=[make_endpoint(NOBODY)], **values)
    monkeypatch.setattr(run_items, "MAX_CALLS", calls)
    [planned] = runs_start.estimate_runs(project, wanted)
    assert planned.estimate.calls == calls
    [run] = runs_start.start_runs(project, wanted, None)
    monkeypatch.setattr(run_items, "MAX_CALLS", calls - 1)
    monkeypatch.setattr(run_items, "DrawnItems", None)
    for refused in (runs_start.estimate_runs, lambda *asked: runs_start.start_runs(*asked, None)):
        with pytest.raises(Refused, match=f"would make {calls} calls.* at most {calls - 1}"):
            refused(project, wanted)
    assert list(project.runs.all()) == [run]


def test_an_explanation_check_has_no_more_calls_than_a_run_may_have(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_items(project, 2)
    base = make_run(project, make_endpoint(NOBODY), "axis")
    base.outcomes.update(result="undetected", detail="equal")
    Run.objects.update(state="finished")
    base.refresh_from_db()
    monkeypatch.setattr(run_items, "MAX_CALLS", 5)
    with pytest.raises(Refused, match="would make 6 calls"):
        make_run(project, base.endpoint, "explanation-check", over=base, samples=3)


def test_a_small_sample_of_an_earlier_run_of_any_size_can_be_estimated(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_items(project, 6)
    every = RunOverrides(axes=("all",))
    first = make_run(project, make_endpoint(NOBODY), "axis", own=every)
    wanted = wish("axis", endpoints=[first.endpoint], same_as=first, limit=2, own=every)
    # Both answers of two items, along four axes.
    monkeypatch.setattr(run_items, "MAX_CALLS", 16)
    [planned] = runs_start.estimate_runs(project, wanted)
    assert planned.estimate.same_items
    assert (planned.estimate.items, planned.estimate.same_items.used) == (2, 6)


def test_axes_along_which_nothing_is_judged_are_refused(project: Project) -> None:
    make_items(project, 2, ability="", source_ability="")
    with pytest.raises(Refused, match="use these axes"):
        make_run(project, make_endpoint(NOBODY), "axis", own=RunOverrides(axes=("main",)))


def test_a_run_pins_the_axes_that_it_asks_along(project: Project) -> None:
    make_items(project, 1)
    endpoint = make_endpoint(NOBODY)
    assert make_run(project, endpoint, "axis").pinned["own"] == {"axes": ["main"]}
    every = make_run(project, endpoint, "axis", own=RunOverrides(axes=("all",)))
    assert every.pinned["own"] == {"axes": ["all"]}
    assert "own" not in make_run(project, endpoint, "vanilla").pinned


@pytest.mark.parametrize("as_pinned", [False, True])
def test_a_run_from_before_the_default_is_cloned_along_all_axes(
    project: Project, as_pinned: bool
) -> None:
    make_items(project, 2)
    former = make_run(project, make_endpoint(NOBODY), "axis", own=RunOverrides(axes=()))
    assert "own" not in former.pinned
    copy = lifecycle.clone_run(former, None, as_pinned=as_pinned)
    assert axes_of(copy) == EVERY_AXIS
    assert copy.digest == former.digest


def test_axes_chosen_for_several_strategies_are_those_of_strategies_with_axes(
    project: Project,
) -> None:
    make_items(project, 1)
    endpoint = make_endpoint(NOBODY)
    both = NewRuns(
        strategies=[make_strategy("vanilla"), make_strategy("axis")],
        endpoints=[endpoint],
        config=RunConfig(seed=1, own=RunOverrides(axes=("all",))),
    )
    assert [one.along for one in runs_start.estimate_runs(project, both)] == ["", "all axes (4)"]
    vanilla, axis = runs_start.start_runs(project, both, None)
    assert axes_of(vanilla) == {""}
    assert axes_of(axis) == EVERY_AXIS


def test_a_runs_own_parameters_make_other_requests(project: Project) -> None:
    make_items(project, 2)
    endpoint = make_endpoint(NOBODY, parameters={"temperature": 0, "seed": 3})
    for parameters in ({}, {"temperature": 0.7}):
        lifecycle.plan_calls(make_run(project, endpoint, own=RunOverrides(parameters=parameters)))
    first, second = Run.objects.order_by("number")
    assert second.pinned["parameters"] == {"temperature": 0.7, "seed": 3}
    assert first.digest != second.digest
    assert Request.objects.count() == 4


def test_samples_are_repeats_or_votes_as_the_run_says(project: Project) -> None:
    make_items(project, 1)
    endpoint = make_endpoint(NOBODY)
    said = []
    for votes in (None, True):
        run = make_run(project, endpoint, "reference", samples=3, own=RunOverrides(votes=votes))
        lifecycle.plan_calls(run)
        # One of three samples is below the top of 10.
        answer(run, '{"score": 5}', number=1)
        answer(run, '{"score": 10}')
        outcome = run.outcomes.get()
        said.append((outcome.result, outcome.share))
    # A repeat counts by its share, a vote by its majority alone.
    assert said == [("undetected", pytest.approx(1 / 3)), ("undetected", None)]


def test_as_many_examples_are_shown_as_the_run_says() -> None:
    project = make_project("r", task_type="error-detection")
    make_responses(project, ["error", "no_error", "error", "error", "no_error"])
    version = make_version(
        "detect-1a", prompt="{{examples}}\n\n{{question}}\n\n{{response}}", examples=1
    )
    endpoint = make_endpoint(NOBODY)
    run = lifecycle.start_run(
        project,
        strategy=version,
        endpoint=endpoint,
        config=lifecycle.RunConfig(seed=1, own=RunOverrides(examples=3)),
    )
    assert (len(run.few_shot), run.outcomes.count()) == (3, 2)
    shown = {key for key, _ in run.few_shot}
    assert shown.isdisjoint(run.outcomes.values_list("item__key", flat=True))


def test_a_run_that_shows_no_examples_leaves_nothing_out_and_says_none() -> None:
    project = make_project("r", task_type="error-detection")
    make_responses(project, ["error", "no_error"])
    prompt = "Examples:\n{{examples}}\n\n{{question}}\n\n{{response}}"
    run = lifecycle.start_run(
        project,
        strategy=make_version("detect-1a", prompt=prompt, examples=3),
        endpoint=make_endpoint(NOBODY),
        config=lifecycle.RunConfig(seed=1, own=RunOverrides(examples=0)),
    )
    assert (run.few_shot, run.outcomes.count()) == ([], 2)
    lifecycle.plan_calls(run)
    [body, _] = [json.loads(one.body) for one in take(run)]
    assert body["messages"][-1]["content"].startswith("Examples:\n(none)\n\nHow many legs")


def test_examples_that_stand_in_the_prompt_leave_every_item_in_the_run() -> None:
    project = make_project("r", task_type="error-detection")
    make_responses(project, ["error", "no_error"])
    prompt = "Example: 2 + 2 = 5 is an error.\n\n{{question}}\n\n{{response}}"
    version = make_version("detect-1a", prompt=prompt)
    run = lifecycle.start_run(project, strategy=version, endpoint=make_endpoint(NOBODY))
    assert run.outcomes.count() == 2


def test_too_few_items_for_examples_are_told_with_what_to_do() -> None:
    project = make_project("r", task_type="error-detection")
    make_responses(project, ["error", "no_error"])
    project.items.update(cluster="one question of all")
    version = make_version("detect-1a", prompt="{{examples}} {{response}} {{question}}", examples=2)
    with pytest.raises(Refused, match=r"only 1\. .*\(0: none\).* column cluster at import"):
        lifecycle.start_run(project, strategy=version, endpoint=make_endpoint(NOBODY))


@pytest.mark.parametrize(
    "slug, own, words",
    [
        ("reference", RunOverrides(axes=("main",)), "has no axes"),
        ("axis", RunOverrides(axes=("tone",)), "has no axis 'tone'. Choose from content-quality"),
        ("reference", RunOverrides(votes=True), "Votes need at least 2 samples"),
        ("reference", RunOverrides(examples=2), "no slot for examples"),
        ("reference", RunOverrides(parameters={"api_key": "x"}), "'api_key' looks like a key"),
        ("reference", RunOverrides(parameters={"messages": []}), "cannot be called"),
        ("reference", RunOverrides(parameters={"stop": "\x00"}), "cannot be stored"),
        ("reference", RunOverrides(parameters={"stop": ["\ud800"]}), "cannot be stored"),
    ],
)
def test_what_does_not_fit_the_strategy_is_refused(
    project: Project, slug: str, own: RunOverrides, words: str
) -> None:
    make_items(project, 1)
    for begin in (lifecycle.start_run, estimate.estimate_run):
        with pytest.raises(Refused, match=words):
            begin(
                project,
                strategy=make_strategy(slug),
                endpoint=make_endpoint(NOBODY),
                config=lifecycle.RunConfig(seed=1, own=own),
            )


def test_a_clone_keeps_what_was_the_runs_own(project: Project) -> None:
    make_items(project, 2)
    own = RunOverrides(parameters={"temperature": 0.5}, axes=("main",))
    run = make_run(project, make_endpoint(NOBODY), "axis", own=own)
    copies = [lifecycle.clone_run(run, None), lifecycle.clone_run(run, None, as_pinned=True)]
    assert [copy.digest for copy in copies] == [run.digest] * 2


def test_a_pilot_is_asked_once_and_stays_out_of_lists_and_figures(project: Project) -> None:
    make_items(project, 40)
    endpoint = make_endpoint(NOBODY, price_in=Decimal(10), price_out=Decimal(20))
    wanted = wish("reference", endpoints=[endpoint])
    [pilot] = runs_start.start_pilots(project, wanted, None)
    assert runs_start.start_pilots(project, wanted, None) == []
    # One call an item makes 30 items; a pilot rests on the same as any run.
    assert pilot.outcomes.count() == 30
    assert not Run.objects.in_project(project).listed().exists()
    lifecycle.plan_calls(pilot)
    answer(pilot)
    lifecycle.finish_if_done(pilot)
    [planned] = runs_start.estimate_runs(project, wanted)
    # 30 of the run's own 40 requests are paid for; the other 10 cost 100 tokens in and 10 out
    # each, at 10 and 20 a million: 0.0012. All alike, so the interval has no width.
    assert (planned.estimate.requests, planned.estimate.to_ask) == (40, 10)
    assert planned.estimate.by_pilot
    assert planned.estimate.by_pilot.value == Decimal("0.012")
    assert planned.estimate.by_pilot.low == planned.estimate.by_pilot.high == Decimal("0.012")
    total = estimate.sum_prices([planned.estimate, planned.estimate])
    assert total
    assert total.low == total.high == Decimal("0.024")


@pytest.mark.django_db(transaction=True)
def test_of_people_who_start_a_pilot_at_once_one_does(project: Project) -> None:
    make_items(project, 40)
    endpoint = make_endpoint(NOBODY, price_in=Decimal(10), price_out=Decimal(20))
    wishes = [wish("reference", endpoints=[endpoint], seed=seed) for seed in (1, 2, 3, 4)]
    at_once(*(partial(runs_start.start_pilots, project, one, None) for one in wishes))
    assert Run.objects.in_project(project).count() == 1


def test_few_estimates_are_made_at_once_so_that_pages_are_answered_meanwhile(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_items(project, 2)
    wanted, made = wish("vanilla", endpoints=[make_endpoint(NOBODY)]), runs_start._estimate_each
    monkeypatch.setattr(runs_start, "WAIT_SECONDS", 0.01)

    def nested(depth: int) -> Any:
        def estimate(*asked: Any) -> Any:
            if depth:
                monkeypatch.setattr(runs_start, "_estimate_each", nested(depth - 1))
                runs_start.estimate_runs(project, wanted)
            return made(*asked)

        return estimate

    for depth in (1, 1):  # the first ones have given their turns back
        monkeypatch.setattr(runs_start, "_estimate_each", nested(depth))
        assert runs_start.estimate_runs(project, wanted)
    monkeypatch.setattr(runs_start, "_estimate_each", nested(2))
    with pytest.raises(Refused, match="Other runs are being estimated"):
        runs_start.estimate_runs(project, wanted)


def test_a_pilot_sends_what_is_missing_until_30_calls_are_answered(project: Project) -> None:
    """Of 40 items, four at a time share a gold answer: 80 calls are 50 requests."""
    for number, item in enumerate(make_items(project, 40)):
        texts = {
            "prompt": "How many legs?",
            "gold": f"{number // 4}",
            "perturbed": f"{number} legs",
        }
        item.revisions.update(texts=texts, digest=item.key)
    endpoint = make_endpoint(NOBODY)
    first = lifecycle.start_run(
        project,
        strategy=make_strategy("vanilla-score"),
        endpoint=endpoint,
        config=lifecycle.RunConfig(seed=3, limit=8),
    )
    lifecycle.plan_calls(first)
    before = answer(first)
    wanted = wish("vanilla-score", endpoints=[endpoint])
    [planned] = runs_start.estimate_runs(project, wanted)
    assert (planned.estimate.requests, planned.estimate.stored) == (50, before)
    [pilot] = runs_start.start_pilots(project, wanted, None)
    lifecycle.plan_calls(pilot)
    sent = answer(pilot)
    assert sent == planned.estimate.pilot_calls
    # An item needs two requests at most.
    assert before + sent in (30, 31)
    lifecycle.finish_if_done(pilot)
    [planned] = runs_start.estimate_runs(project, wanted)
    assert (planned.estimate.pilot.is_enough, planned.wants_pilot) == (True, False)


def test_a_few_calls_need_no_pilot(project: Project) -> None:
    make_items(project, 30)
    wanted = wish("reference", endpoints=[make_endpoint(NOBODY)])
    assert runs_start.start_pilots(project, wanted, None) == []


def test_a_total_is_that_of_the_runs_whose_price_is_known(project: Project) -> None:
    make_items(project, 1)
    dear = make_endpoint(NOBODY, price_in=Decimal(1), price_out=Decimal(1))
    wanted = wish("reference", endpoints=[make_endpoint(NOBODY), dear])
    unknown, known = (one.estimate for one in runs_start.estimate_runs(project, wanted))
    assert unknown.price is None
    assert known.price
    assert estimate.sum_prices([unknown]) is None
    assert estimate.sum_prices([unknown, known]) == known.price


def test_an_explanation_check_has_the_items_of_its_own_run_only(project: Project) -> None:
    make_items(project, 2)
    endpoint = make_endpoint(NOBODY)
    run = make_run(project, endpoint)
    wanted = wish("explanation-check", endpoints=[endpoint], over=run, same_as=run)
    with pytest.raises(Refused, match="Do not choose the items of another run as well"):
        runs_start.estimate_runs(project, wanted)


@pytest.mark.parametrize("axes", [None, ("all",)])
def test_an_explanation_check_is_along_the_axis_of_each_item_alone(
    project: Project, axes: tuple[str, ...] | None
) -> None:
    make_items(project, 2)
    base = make_run(project, make_endpoint(NOBODY), "axis", own=RunOverrides(axes=axes))
    base.outcomes.update(result="undetected", detail="equal")
    Run.objects.update(state="finished")
    base.refresh_from_db()
    check = make_run(project, base.endpoint, "explanation-check", over=base)
    assert list(check.outcomes.values_list("axis", "main")) == [("hallucination", True)] * 2


def test_the_same_items_include_duplicates_of_the_earlier_run_and_filters_choose_among_them(
    project: Project,
) -> None:
    one, two, three = make_items(project, 3)
    two.duplicate_of = one
    two.save()
    endpoint = make_endpoint(NOBODY)
    first = make_run(project, endpoint, with_duplicates=True, items={one.pk, two.pk})
    assert first.outcomes.count() == 2
    for chosen, expected in (
        (None, {one.pk, two.pk}),
        ({two.pk, three.pk}, {two.pk}),
    ):
        wanted = wish("pairwise", endpoints=[endpoint], same_as=first, items=chosen)
        [run] = runs_start.start_runs(project, wanted, None)
        assert set(run.outcomes.values_list("item", flat=True)) == expected


def test_a_canary_asks_anew_what_was_answered(project: Project) -> None:
    make_items(project, 30)
    endpoint = make_endpoint(NOBODY)
    run = make_run(project, endpoint)
    lifecycle.plan_calls(run)
    answer(run)
    wanted = wish("reference", endpoints=[endpoint], canary=True)
    [planned] = runs_start.estimate_runs(project, wanted)
    [canary] = runs_start.start_runs(project, wanted, None)
    lifecycle.plan_calls(canary)
    # 20 items are enough for a canary, and none of their 20 requests is taken from the run.
    assert (planned.estimate.items, planned.estimate.to_ask) == (
        canaries.DEFAULT_ITEMS,
        canaries.DEFAULT_ITEMS,
    )
    assert progress.count_progress(canary).waiting == canaries.DEFAULT_ITEMS
    with pytest.raises(Refused, match="A canary needs no pilot"):
        runs_start.start_pilots(project, wanted, None)


def test_only_a_lead_starts_runs_over_items_that_are_being_labelled(project: Project) -> None:
    [item, _] = make_items(project, 2)
    make_slot(item)
    wanted = wish("reference", endpoints=[make_endpoint(NOBODY)])
    researcher = make_member(project, role="researcher")
    with pytest.raises(
        Refused, match=r"1 of these items.*Wait until they are labelled, or ask a lead"
    ):
        runs_start.start_runs(project, wanted, researcher)
    config = replace(wanted.config, while_labelling=True)
    allowed = replace(wanted, config=config)
    with pytest.raises(Refused, match="Only a lead can allow"):
        runs_start.start_runs(project, allowed, researcher)
    [run] = runs_start.start_runs(project, allowed, make_member(project, role="lead"))
    assert run.while_labelling
    assert Event.objects.get(kind="run started").data == {"items": 2, "labelling": 1}
    assert runs_start.estimate_runs(project, wanted)[0].estimate.labelling == 1


def test_recorded_and_derived_runs_refuse_what_needs_an_evaluator(project: Project) -> None:
    make_items(project, 1)
    run, there = make_run(project, make_endpoint(NOBODY)), make_endpoint(NOBODY)
    for kind, why in (("recorded", "was imported"), ("derived", "is combined from other runs")):
        Run.objects.filter(pk=run.pk).update(kind=kind, state="finished")
        run.refresh_from_db()
        steps = (
            lifecycle.resume,
            lifecycle.retry_failed,
            lifecycle.clone_run,
            partial(lifecycle.move_to_endpoint, endpoint=there),
        )
        for step in steps:
            with pytest.raises(Refused, match=why):
                step(run, member=None)
        assert archiving.list_open_steps(run, 3, answered=0) == ["archive"]


def test_the_projects_own_strategy_goes_before_a_shipped_one(project: Project) -> None:
    definition = {**make_strategy("vanilla").definition, "title": "Ours"}
    for number in (1, 2):
        StrategyVersion.objects.create(
            project=project, slug="vanilla", number=number, digest="x", definition=definition
        )
    assert choices.get_version(project, "vanilla").number == 2
    assert choices.get_version(make_project("other"), "vanilla").project is None
    with pytest.raises(Refused, match=r"There is no strategy 'none'. Choose one of: axis, "):
        choices.get_version(project, "none")


def test_what_was_started_before_a_later_run_was_refused_is_named(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_items(project, 1)
    start, refusals = lifecycle.start_run, iter([None, Refused("People are labelling them.")])

    def once(*parts: Any, **values: Any) -> Run:
        if problem := next(refusals):
            raise problem
        return start(*parts, **values)

    monkeypatch.setattr(lifecycle, "start_run", once)
    wanted = wish("reference", "vanilla", endpoints=[make_endpoint(NOBODY)])
    with pytest.raises(Refused, match=r"Already started: run 1\. The next one was refused: People"):
        runs_start.start_runs(project, wanted, None)
