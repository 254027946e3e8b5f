import copy
from contextlib import suppress
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.strategies import FOLDER, StrategyError, from_definition, load, load_all
from judging.strategies.definitions import list_warnings

PAIR = {
    "slug": "some-pair",
    "title": "Some pair",
    "study": "",
    "frame": "pair",
    "output": "verdict",
    "explanation": False,
    "prompt": "{{question}} {{first}} {{second}}",
    "verdicts": ["A", "B"],
}
REFERENCE = {
    "slug": "some-reference",
    "title": "Some reference",
    "study": "",
    "frame": "reference",
    "output": "score",
    "explanation": True,
    "prompt": "{{question}} {{response}} {{reference}}",
    "scale": {"low": 1, "high": 5, "step": 1},
    "top": 5,
}
METRIC = {"slug": "m1", "title": "M1", "text": "Is it there?", "points": {"0": "No.", "1": "Yes."}}
RUBRIC = {
    "slug": "some-rubric",
    "title": "Some rubric",
    "study": "",
    "frame": "rubric",
    "output": "scores",
    "explanation": False,
    "prompt": "{{response}} {{metrics}}",
    "metrics": [METRIC],
}
STEPS = [
    {"name": "look", "output": "text", "prompt": "{{response}}"},
    {"name": "judge", "output": "scores", "prompt": "{{look}} {{metrics}}"},
]
DETECTION = {
    "slug": "some-detection",
    "title": "Some detection",
    "study": "",
    "frame": "detection",
    "output": "detection",
    "explanation": False,
    "prompt": "{{question}} {{response}}",
}
EXPLANATION = {
    "slug": "some-check",
    "title": "Some check",
    "study": "",
    "frame": "explanation",
    "output": "flag",
    "explanation": False,
    "prompt": "{{explanation}}",
}
FOLD = {
    "slug": "some-fold",
    "title": "Some fold",
    "study": "",
    "frame": "fold",
    "output": "fold",
    "explanation": False,
    "fold": "majority",
}
AXIS = {"slug": "taste", "title": "Taste", "text": "Is it sweet?"}


def with_changes(definition, **changes):
    changed = copy.deepcopy(definition) | changes
    return {key: value for key, value in changed.items() if value is not None}


def chain(first=None, **changes):
    steps = copy.deepcopy(STEPS)
    steps[0] |= first or {}
    return with_changes(RUBRIC, **{"prompt": None, "steps": steps, **changes})


def metric(**changes):
    return with_changes(RUBRIC, metrics=[with_changes(METRIC, **changes)])


def axes(*entries, **changes):
    prompt = PAIR["prompt"] + " {{axis}}"
    return with_changes(PAIR, **{"axes": list(entries), "prompt": prompt, **changes})


WRONG = [
    (with_changes(PAIR, colour="red"), "colour"),
    (with_changes(PAIR, title=None), "title"),
    (with_changes(PAIR, explanation=1), "explanation"),
    (with_changes(PAIR, slug="Some pair"), "slug"),
    (with_changes(PAIR, frame="triple"), "frame"),
    (with_changes(PAIR, output="score"), "output"),
    (with_changes(PAIR, prompt=None), "prompt"),
    (with_changes(PAIR, prompt="{{question}} {{first}}"), "prompt"),
    (with_changes(PAIR, prompt=PAIR["prompt"] + "{{reference}}"), "prompt"),
    (with_changes(PAIR, prompt=PAIR["prompt"] + "{{ first }}"), "prompt"),
    (with_changes(PAIR, prompt=PAIR["prompt"] + "{{axis}}"), "prompt"),
    (with_changes(PAIR, system="{{question}}"), "system"),
    (with_changes(PAIR, verdicts=None), "verdicts"),
    (with_changes(PAIR, verdicts=["A", "both good"]), "verdicts"),
    (with_changes(PAIR, verdicts=["A", "B", "tie"]), "verdicts"),
    (with_changes(PAIR, verdicts=["A", "B", "B"]), "verdicts"),
    (with_changes(PAIR, verdicts=["A", "B", ["B"]]), "verdicts"),
    (with_changes(PAIR, scale={"low": 1, "high": 2}), "scale"),
    (with_changes(PAIR, top=1), "top"),
    (with_changes(PAIR, prompt=None, metric="length"), "metric"),
    (with_changes(PAIR, samples=0), "samples"),
    (with_changes(PAIR, samples=True), "samples"),
    (with_changes(PAIR, samples=101), "samples"),
    (with_changes(PAIR, votes=True), "votes"),
    (with_changes(PAIR, parameters=[]), "parameters"),
    (with_changes(PAIR, parameters={"api_key": "x"}), "parameters.api_key"),
    (with_changes(PAIR, parameters={"when": date(2024, 4, 4)}), "parameters"),
    (with_changes(PAIR, parameters={"temperature": float("nan")}), "parameters"),
    (with_changes(PAIR, examples=1, prompt=PAIR["prompt"] + "{{examples}}"), "examples"),
    (with_changes(PAIR, fold="mean"), "fold"),
    (with_changes(PAIR, parser="strict"), "parser"),
    (with_changes(PAIR, decides="total"), "decides"),
    (with_changes(PAIR, about="gold"), "about"),
    (with_changes(PAIR, metrics=[METRIC]), "metrics"),
    (with_changes(PAIR, metrics_from="task"), "metrics"),
    (with_changes(REFERENCE, scale=None), "scale"),
    (with_changes(REFERENCE, scale={"low": 1}), "scale"),
    (with_changes(REFERENCE, scale={"low": 5, "high": 5}), "scale.high"),
    (with_changes(REFERENCE, scale={"low": True, "high": 5}), "scale.low"),
    (with_changes(REFERENCE, scale={"low": 1, "high": float("inf")}), "scale.high"),
    (with_changes(REFERENCE, scale={"low": 1, "high": 10**400}), "scale.high"),
    (with_changes(REFERENCE, scale={"low": 1, "high": float("nan")}), "scale.high"),
    (with_changes(REFERENCE, scale={"low": 1, "high": 5, "step": 3}), "scale.step"),
    (with_changes(REFERENCE, scale={"low": 1, "high": 5, "step": 5e-324}), "scale.step"),
    (with_changes(REFERENCE, scale={"low": 1, "high": 5, "step": 0}), "scale.step"),
    (with_changes(REFERENCE, top=None), "top"),
    (with_changes(REFERENCE, top=4), "top"),
    (with_changes(REFERENCE, verdicts=["A", "B"]), "verdicts"),
    (with_changes(REFERENCE, metric="rouge-l"), "metric"),
    (with_changes(REFERENCE, metric="bleu"), "metric"),
    (axes("taste"), "axes.0"),
    (axes(["hallucination"]), "axes.0"),
    (axes("hallucination", "hallucination"), "axes"),
    (axes(AXIS | {"abilities": ["f"]}, AXIS | {"slug": "b", "abilities": ["f"]}), "axes"),
    (axes(AXIS | {"slug": "x" * 41}), "axes.0.slug"),
    (axes(AXIS | {"text": "{{first}}"}), "axes.0.text"),
    (axes(AXIS | {"abilities": "factual"}), "axes.0.abilities"),
    (axes(AXIS | {"colour": "red"}), "axes.0.colour"),
    (axes(AXIS | {"rules": "Taste both."}), "axes.0.rules"),
    (axes(AXIS | {"rules": ["Taste both.", "{{first}}"]}), "axes.0.rules"),
    # an axis without rules
    (axes("hallucination", AXIS, prompt=PAIR["prompt"] + "{{axis}} {{rules}}"), "prompt"),
    (
        with_changes(
            load_all()["axis"].definition,
            prompt=None,
            axes=[AXIS | {"rules": ["Taste both."]}],
            steps=[
                {"name": "rules", "output": "text", "prompt": "{{question}}"},
                {"name": "end", "output": "score", "prompt": "{{response}} {{axis}} {{rules}}"},
            ],
        ),
        "steps.0.name",
    ),
    (axes({"slug": "taste", "title": "Taste"}), "axes.0.text"),
    (axes(AXIS, prompt=PAIR["prompt"]), "prompt"),
    # the pair has no scale, so its axes bring no rubric
    (axes("hallucination", prompt=PAIR["prompt"] + "{{axis}} {{rubric}}"), "prompt"),
    (with_changes(DETECTION, axes=[AXIS]), "axes"),
    (with_changes(DETECTION, parser="loose"), "parser"),
    (with_changes(DETECTION, examples=51, prompt="{{question}}"), "examples"),
    (with_changes(DETECTION, examples=1), "prompt"),
    (with_changes(RUBRIC, metrics=None), "metrics"),
    (with_changes(RUBRIC, metrics=[]), "metrics"),
    (with_changes(RUBRIC, metrics_from="task"), "metrics"),
    (with_changes(RUBRIC, metrics_from="file"), "metrics_from"),
    (with_changes(RUBRIC, metrics=[METRIC, METRIC]), "metrics"),
    (with_changes(RUBRIC, metrics=["m1"]), "metrics.0"),
    (with_changes(RUBRIC, prompt="{{metrics}}"), "prompt"),
    (with_changes(RUBRIC, decides="m2"), "decides"),
    (metric(slug="M 1"), "metrics.0.slug"),
    (metric(slug="total"), "metrics.0.slug"),
    (metric(text=" "), "metrics.0.text"),
    (metric(points={"0": "No."}), "metrics.0"),
    (metric(points={"no": "No.", "1": "Yes."}), "metrics.0.points.no"),
    (metric(points={"0": "{{response}}", "1": "Yes."}), "metrics.0.points.0"),
    (metric(points=["No.", "Yes."]), "metrics.0.points"),
    (metric(scale={"low": 1, "high": 2, "step": 1}), "metrics.0.points"),
    (metric(scale=2), "metrics.0.scale"),
    (metric(points=None, scale={"low": 2, "high": 1}), "metrics.0.scale.high"),
    (chain(prompt="{{response}} {{metrics}}"), "prompt"),
    (chain(steps=STEPS[1:]), "steps"),
    (chain(steps=[STEPS[0], "judge"]), "steps.1"),
    (chain(steps=[STEPS[0], STEPS[1] | {"output": "score"}]), "steps.1.output"),
    (chain(steps=[STEPS[0], STEPS[1] | {"prompt": "{{metrics}}"}]), "steps"),
    (chain(first={"prompt": "{{response}} {{judge}}"}), "steps.0.prompt"),
    (chain(first={"prompt": "{{response}} {{look}}"}), "steps.0.prompt"),
    (chain(first={"prompt": "Look."}), "steps"),
    (chain(first={"name": "question"}), "steps.0.name"),
    (chain(first={"name": "judge"}), "steps"),
    (chain(first={"output": "verdict"}), "steps.0.output"),
    (chain(first={"system": "{{response}}"}), "steps.0.system"),
    (chain(first={"prompt": 3}), "steps.0.prompt"),
    (chain(first={"tone": "mild"}), "steps.0.tone"),
    (chain(examples=1), "examples"),
    (with_changes(EXPLANATION, about="both"), "about"),
    (with_changes(FOLD, fold=None), "fold"),
    (with_changes(FOLD, fold="median"), "fold"),
    (with_changes(FOLD, prompt="Fold them."), "fold"),
]


@pytest.mark.parametrize("definition, key", WRONG)
def test_a_wrong_definition_is_refused_with_file_key_and_remedy(definition, key):
    with pytest.raises(StrategyError) as refused:
        from_definition(definition, source="some.toml")
    assert str(refused.value).startswith(f"some.toml: {key}: ")
    assert refused.value.remedy


def test_the_definitions_that_the_refusals_start_from_are_right():
    assert from_definition(PAIR).verdicts == ("A", "B")
    assert from_definition(REFERENCE).top == 5
    assert [one.slug for one in from_definition(RUBRIC).metrics] == ["m1"]
    assert [step.name for step in from_definition(chain()).steps] == ["look", "judge"]
    assert from_definition(axes(AXIS)).axes[0].title == "Taste"
    assert from_definition(DETECTION).parser == ""
    assert from_definition(EXPLANATION).about == ""
    assert from_definition(FOLD).fold == "majority"


def test_rouge_l_is_refused_where_there_is_no_reference_to_measure_against():
    length = load(FOLDER / "length.toml").definition
    with pytest.raises(StrategyError, match="rouge-l scores in the frame reference"):
        from_definition(length | {"metric": "rouge-l"})


def test_an_unknown_placeholder_is_named_together_with_those_that_there_are():
    definition = with_changes(PAIR, prompt=PAIR["prompt"] + "{{gold}}")
    with pytest.raises(StrategyError) as refused:
        from_definition(definition)
    assert "unknown placeholder {{gold}}" in str(refused.value)
    assert "{{first}}, {{question}}, {{second}}" in str(refused.value)


def test_a_named_axis_is_kept_in_full_with_the_rubric_of_the_scale():
    definition = load_all()["axis-rubric-5"].definition
    (factual,) = [axis for axis in definition["axes"] if axis["slug"] == "hallucination"]
    assert factual["abilities"] == ["factual"]
    assert sorted(factual["points"]) == ["1", "2", "3", "4", "5"]
    assert "rubrics" not in factual
    assert from_definition(definition).definition == definition


def test_an_axis_whose_rubric_is_not_shown_is_kept_without_it():
    assert not any("points" in axis for axis in load_all()["axis"].definition["axes"])


def test_the_rules_of_an_axis_are_kept_where_a_prompt_shows_them():
    (factual,) = [
        axis for axis in load_all()["pairwise-axis-rules"].axes if axis.slug == "hallucination"
    ]
    shown = axes("hallucination", prompt=PAIR["prompt"] + "{{axis}}\n{{rules}}")
    strategy = from_definition(shown)
    assert strategy.axes[0].rules == factual.rules
    assert from_definition(strategy.definition).definition == strategy.definition
    assert "rules" not in from_definition(axes("hallucination")).definition["axes"][0]
    own = from_definition(axes(AXIS | {"rules": ["Taste both. "]}, prompt=shown["prompt"]))
    assert own.axes[0].rules == ("Taste both.",)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.sampled_from(list(load_all())), st.data())
def test_whatever_stands_in_a_definition_it_is_taken_or_refused_and_never_fails(slug, data):
    definition = copy.deepcopy(load_all()[slug].definition)
    place = definition
    while True:
        key = data.draw(st.sampled_from([*place] if isinstance(place, dict) else range(len(place))))
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            break
        place = inner
    place[key] = data.draw(JUNK)
    with suppress(StrategyError):
        taken = from_definition(definition)
        assert from_definition(taken.definition) == taken


def test_points_make_a_scale_and_uneven_ones_admit_nothing_between():
    (even,) = from_definition(metric(points={"0": "a", "0.5": "b", "1": "c"})).metrics
    assert (even.scale.low, even.scale.high, even.scale.step) == (0, 1, 0.5)
    (uneven,) = from_definition(metric(points={"0": "a", "1": "b", "5": "c"})).metrics
    assert uneven.scale.step is None
    assert [value for value in range(7) if uneven.admits(value)] == [0, 1, 5]
    (negative,) = from_definition(metric(points={"-1": "a", "0": "b", "1": "c"})).metrics
    assert list(negative.points) == [-1, 0, 1]


def test_a_step_has_the_system_of_the_strategy_unless_it_has_its_own():
    first, second = from_definition(chain({"system": "Look well."}, system="Be fair.")).steps
    assert (first.system, second.system) == ("Look well.", "Be fair.")


@pytest.mark.parametrize(
    "changes, warned",
    [
        ({"prompt": "{{response}} {{metrics}} {{form}}"}, []),
        ({"prompt": "{{response}} {{metrics}}", "worded": True}, []),
        ({"prompt": "{{response}} {{form}}"}, ["{{metrics}}"]),
        ({"prompt": "{{response}}", "worded": True}, ["{{metrics}}"]),
        ({"prompt": "{{response}}"}, ["{{metrics}}", "{{form}}"]),
        (
            {"prompt": "{{response}}", "metrics": None, "metrics_from": "task"},
            ["{{metrics}}", "{{form}}"],
        ),
    ],
)
def test_a_prompt_may_say_itself_what_is_scored_with_a_warning(changes, warned):
    strategy = from_definition(with_changes(RUBRIC, **changes))
    said = list_warnings(strategy)
    assert len(said) == len(warned)
    assert all(name in one and "Add" in one for name, one in zip(warned, said, strict=True))


def test_only_an_input_can_need_a_context():
    loaded = load_all()
    assert loaded["generate-claims"].needs_context
    assert not loaded["generate-planted"].needs_context
    with pytest.raises(StrategyError, match="only the frame input"):
        from_definition(loaded["generate-gold"].definition | {"needs_context": True})
