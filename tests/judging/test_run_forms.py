"""What forms of runs offer and what they refuse, before a service sees it."""

from typing import Any

import pytest

from annotation.items import taxonomy
from annotation.models import Project
from judging.models import Endpoint, Run
from judging.runs import choices, forms
from judging.runs.forms import StartForm
from judging.runs.views.derived_runs import CloneForm, ReparseForm, RepeatRunForm
from judging.strategies import editing
from judging.strategies.definitions import MAX_EXAMPLES, MAX_SAMPLES
from tests.builders import make_member, make_project
from tests.judging.builders_judging import (
    make_baseline,
    make_endpoint,
    make_items,
    make_run,
    make_strategy,
)

pytestmark = pytest.mark.django_db

PRICES = {"price_in": 1, "price_out": 2}


def start_form(data: dict[str, Any] | None = None, **values: Any) -> StartForm:
    told: dict[str, Any] = {
        "strategies": [make_strategy("vanilla"), make_strategy("rouge-l"), make_strategy("mean")],
        "endpoints": Endpoint.objects.order_by("name"),
        "explained": Run.objects.none(),
        "abilities": [("factual", 1200), ("of-old", 1)],
        "categories": [("number-errors", 3)],
        "taxonomy": taxonomy.load_shipped(),
        "is_lead": True,
    }
    return StartForm(data, **{**told, **values})


@pytest.mark.parametrize(
    "name, value, is_right",
    [
        ("cap", "0", False),
        ("cap", "0.000001", True),
        ("cap", "-1", False),
        ("cap", "", True),
        ("limit", "0", False),
        ("limit", "1", True),
        ("seed", "-1", False),
        ("seed", "0", True),
        ("samples", "0", False),
        ("samples", "1", True),
        ("samples", str(MAX_SAMPLES), True),
        ("samples", str(MAX_SAMPLES + 1), False),
        ("examples", "0", True),
        ("examples", "-1", False),
        ("examples", str(MAX_EXAMPLES), True),
        ("examples", str(MAX_EXAMPLES + 1), False),
        ("parameters", " ", True),
        ("parameters", '{"temperature": 0.7}', True),
        ("parameters", "[1]", False),
        ("parameters", '{"temperature": NaN}', False),
        ("parameters", "{", False),
        ("ability", ["factual"], True),
        ("ability", ["reasoning"], False),
    ],
)
def test_a_new_run_is_refused_just_past_its_limits(name: str, value: Any, is_right: bool) -> None:
    form = start_form({name: value})
    assert (name not in form.errors) == is_right


def test_keys_of_items_stand_a_line_each_and_are_not_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forms, "MOST_KEYS", 2)
    assert "keys" in start_form({"keys": "a\nb\nc"}).errors
    form = start_form({"keys": " a \r\nb\na\n"[:-1]})
    assert "keys" not in form.errors
    assert form.cleaned_data["keys"] == ("a", "b")


def test_strategies_stand_by_frame_with_own_ones_and_baselines_apart(project: Project) -> None:
    own = editing.copy_strategy(
        project, make_strategy("vanilla"), slug="ours", member=make_member(project)
    )
    shipped = [make_strategy(slug) for slug in ("vanilla", "rouge-l", "mean")]
    form = start_form({"strategy": ["rouge-l"]}, strategies=[own, *shipped])
    groups = {title: options for title, _, options in form.strategy_groups()}
    assert [one.value for one in groups.pop(forms.OFFLINE_GROUP)] == ["rouge-l"]
    # What combines runs is asked for on their pages.
    [ours] = groups.pop(forms.OWN_GROUP)
    assert (ours.value, ours.note) == ("ours", "the project's own")
    assert [[one.value for one in options] for options in groups.values()] == [["vanilla"]]
    # Own strategies are in sight, and so is what is chosen.
    assert [is_open for _, is_open, _ in form.strategy_groups()] == [True, False, True]


def test_recommended_strategies_stand_first_with_the_reason_and_the_calls() -> None:
    make_endpoint("http://127.0.0.1:9/v1")
    strategies = [make_strategy(slug) for slug in ("vanilla", "reference", "rouge-l", "pairwise")]
    form = start_form(
        {"strategy": ["vanilla"]},
        strategies=strategies,
        recommended={"vanilla": "Begin here.", "reference": "Cheap."},
        usable={"perturbation": 1200},
    )
    [vanilla, reference] = form.recommended_options()
    # Gold and perturbed answer, and the perturbed one alone.
    assert (vanilla.cost, reference.cost) == (
        "2 calls per item, 2,400 for 1,200 items",
        "1 call per item, 1,200 for 1,200 items",
    )
    assert (vanilla.why, vanilla.checked, reference.checked) == ("Begin here.", True, False)
    groups = {title: options for title, _, options in form.strategy_groups()}
    assert {title: [one.value for one in options] for title, options in groups.items()} == {
        "Pairs": ["pairwise"],
        forms.OFFLINE_GROUP: ["rouge-l"],
    }
    [baseline] = groups[forms.OFFLINE_GROUP]
    assert (baseline.cost, baseline.kind, vanilla.kind) == ("free", "baseline", "llm")


def test_calls_of_axes_steps_and_samples_are_counted() -> None:
    slugs = ("axis", "score-chain", "detect-self-consistency")
    form = start_form(strategies=[make_strategy(slug) for slug in slugs])
    options = {one.value: one.cost for _, _, found in form.strategy_groups() for one in found}
    # Two answers along the item's own axis; three steps; five samples.
    assert options == {
        "axis": "2 calls per item",
        "score-chain": "3 calls per item",
        "detect-self-consistency": "5 calls per item",
    }
    for axes, cost in {
        ("main",): "2 calls per item",
        ("all",): "8 calls per item",
        ("hallucination", "main"): "2 calls per item and axis",
    }.items():
        form = start_form({"axes": axes}, strategies=[make_strategy("axis")])
        [(_, _, [option])] = form.strategy_groups()
        assert option.cost == cost


def test_without_an_evaluator_llm_its_strategies_cannot_be_ticked_and_say_why() -> None:
    make_baseline()
    barriers = {
        one.value: one.barrier for _, _, found in start_form().strategy_groups() for one in found
    }
    assert barriers == {"vanilla": "needs an evaluator LLM", "rouge-l": ""}
    # A link may have chosen it: it is ticked, and its group is open and says what it needs.
    linked = start_form(initial={"strategy": ["vanilla"]})
    (_, is_open, [vanilla]), _ = linked.strategy_groups()
    assert (is_open, vanilla.checked) == (True, True)
    assert vanilla.barrier == "needs an evaluator LLM"
    make_endpoint("http://127.0.0.1:9/v1")
    for _, _, options in start_form().strategy_groups():
        assert not any(one.barrier for one in options)


def test_an_explanation_check_cannot_be_ticked_before_a_run_has_explained_its_scores() -> None:
    make_endpoint("http://127.0.0.1:9/v1")
    [(_, _, [option])] = start_form(
        strategies=[make_strategy("explanation-check")]
    ).strategy_groups()
    assert option.barrier == "needs a finished run that explained its scores"


def test_the_runs_whose_explanations_to_check_say_what_they_asked() -> None:
    project = make_project()
    make_items(project, 1)
    run = make_run(project, make_endpoint("http://127.0.0.1:9/v1", name="judge"), "vanilla")
    Run.objects.update(state=Run.State.FINISHED)
    form = start_form(explained=choices.list_explained_runs(project))
    assert [str(label) for _, label in form.fields["over"].choices] == [
        "No run",
        f"Run {run.number}: vanilla at judge",
    ]


def test_generators_stand_apart_where_nothing_waits_for_them() -> None:
    strategies = [make_strategy(slug) for slug in ("vanilla", "generate-entity")]
    form = start_form({"strategy": ["generate-entity"]}, strategies=strategies, generating=False)
    assert [title for title, _, _ in form.strategy_groups()] == ["Single answers"]
    assert [title for title, _, _ in form.generator_groups()] == ["Generators of perturbations"]
    assert form.generators_chosen
    form = start_form(strategies=strategies)
    assert len(form.strategy_groups()) == 2
    assert not form.generator_groups()


def test_axes_are_offered_only_where_they_are_about_the_projects_abilities() -> None:
    axis = make_strategy("axis")
    own = taxonomy.parse_definition(
        {
            "ability": [{"slug": "tone", "name": "Tone"}],
            "category": [{"slug": "rude", "name": "Rude", "ability": "tone"}],
        }
    )
    form = start_form(strategies=[axis], taxonomy=own)
    assert form.axis_options() == []
    [(_, _, [option])] = form.strategy_groups()
    assert "none of its axes is about this project's abilities" in option.note
    shipped = start_form(strategies=[axis])
    assert len(shipped.axis_options()) == 6
    [(_, _, [option])] = shipped.strategy_groups()
    assert "axes" not in option.note
    # What a link has chosen is shown in any case.
    chosen = axis.strategy().axes[0].slug
    linked = start_form({"axes": [chosen]}, strategies=[axis], taxonomy=own)
    assert [one.value for one in linked.axis_options()] == ["main", "all", chosen]


def test_endpoints_say_whether_their_price_is_known() -> None:
    make_baseline()
    for name, values in {
        "priced": PRICES,
        "free": {"price_in": 0, "price_out": 0},
        "half": {"price_in": 1, "price_out": None},
        "none": {"price_in": None, "price_out": None},
    }.items():
        make_endpoint("http://127.0.0.1:9/v1", name=name, model="m", **values)
    form = start_form({"endpoint": ["half"]})
    notes = {one.value: one.note for one in form.endpoint_options()}
    assert notes.pop(make_baseline().name) == "offline, free"
    unknown = "m; price unknown: a cap cannot be enforced"
    assert notes == {
        "priced": "m; 1 USD in / 2 USD out per million tokens",
        "free": "m; free",
        "half": unknown,
        "none": unknown,
    }
    assert [one.value for one in form.endpoint_options() if one.checked] == ["half"]


def test_abilities_and_categories_go_by_their_names_with_how_many_items_they_have() -> None:
    form = start_form({"ability": ["of-old"]})
    found = [(one.label, one.note, one.checked) for one in form.ability_options()]
    assert found == [("Factual", "1,200", False), ("of-old", "1", True)]
    assert [(one.value, one.note) for one in form.category_options()] == [("number-errors", "3")]


@pytest.mark.parametrize("is_lead", [True, False])
def test_only_a_lead_lets_a_run_begin_while_people_label(is_lead: bool) -> None:
    assert ("while_labelling" in start_form(is_lead=is_lead).fields) == is_lead
    form = RepeatRunForm({"while_labelling": "on"}, is_lead=is_lead)
    assert form.is_valid()
    assert form.cleaned_data["while_labelling"] is is_lead


@pytest.mark.parametrize("cap, is_right", [("0", False), ("0.5", True), ("1", True), ("", True)])
def test_a_clone_has_any_cap_above_0(cap: str, is_right: bool) -> None:
    endpoint = make_endpoint("http://127.0.0.1:9/v1")
    form = CloneForm({"cap": cap}, is_lead=True, same=endpoint, others=Endpoint.objects.all())
    assert form.is_valid() == is_right


def test_a_parser_without_a_name_is_called_the_current_one() -> None:
    form = ReparseForm({"parser": ""}, parsers=["", "of-old"], now="")
    assert form.is_valid()
    assert form["parser"].field.choices == [("", "Current parser"), ("of-old", "of-old")]
