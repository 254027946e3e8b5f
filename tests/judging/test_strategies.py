import copy
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judging.strategies
from judging import frames
from judging.strategies import (
    FOLDER,
    PLACEHOLDERS,
    Scale,
    StrategyError,
    digest,
    fill,
    from_definition,
    load,
    load_all,
)

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


def with_changes(definition, **changes):
    changed = copy.deepcopy(definition) | changes
    return {key: value for key, value in changed.items() if value is not None}


def test_the_module_is_found_although_a_folder_has_its_name():
    assert judging.strategies.__file__.endswith("strategies.py")
    assert FOLDER.is_dir()


def test_every_strategy_of_the_foundation_is_there_in_the_order_of_its_slug():
    assert list(load_all()) == [
        "length",
        "pairwise",
        "pairwise-verdict",
        "reference",
        "rouge-l",
        "rouge-l-unicode",
        "vanilla",
        "vanilla-score",
    ]


def test_what_is_loaded_cannot_be_spoilt_for_the_next_reader():
    load_all().clear()
    assert load_all()


@pytest.mark.parametrize("slug", load_all())
def test_a_strategy_is_the_same_from_its_stored_definition(slug):
    strategy = load_all()[slug]
    assert from_definition(strategy.definition) == strategy


@pytest.mark.parametrize("slug", [slug for slug, one in load_all().items() if not one.metric])
def test_an_asked_strategy_names_its_json_key_its_scale_and_its_verdicts(slug):
    strategy = load_all()[slug]
    assert f'"{strategy.output}":' in strategy.prompt
    assert ('"explanation":' in strategy.prompt) is strategy.explanation
    assert all(f'"{verdict}"' in strategy.prompt for verdict in strategy.verdicts)
    if strategy.scale:
        assert re.search(
            rf"from {strategy.scale.low} .*to {strategy.scale.high}\b", strategy.prompt
        )


def test_placeholders_and_calls_name_the_same_frames_and_the_same_texts():
    assert PLACEHOLDERS.keys() == frames.FRAMES.keys()
    for frame, specs in frames.FRAMES.items():
        assert all(PLACEHOLDERS[frame] == sources.keys() for sources in specs.values())


@pytest.mark.parametrize(
    "definition, key",
    [
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
        (with_changes(PAIR, system="{{question}}"), "system"),
        (with_changes(PAIR, verdicts=None), "verdicts"),
        (with_changes(PAIR, verdicts=["A", "both good"]), "verdicts"),
        (with_changes(PAIR, verdicts=["A", "B", "tie"]), "verdicts"),
        (with_changes(PAIR, verdicts=["A", "B", "B"]), "verdicts"),
        (with_changes(PAIR, verdicts=["A", "B", ["B"]]), "verdicts"),
        (with_changes(PAIR, scale={"low": 1, "high": 2}), "scale"),
        (with_changes(PAIR, top=1), "top"),
        (with_changes(PAIR, prompt=None, metric="length"), "metric"),
        (with_changes(REFERENCE, scale=None), "scale"),
        (with_changes(REFERENCE, scale={"low": 1}), "scale"),
        (with_changes(REFERENCE, scale={"low": 5, "high": 5}), "scale.high"),
        (with_changes(REFERENCE, scale={"low": True, "high": 5}), "scale.low"),
        (with_changes(REFERENCE, scale={"low": 1, "high": float("inf")}), "scale.high"),
        (with_changes(REFERENCE, scale={"low": 1, "high": 5, "step": 3}), "scale.step"),
        (with_changes(REFERENCE, scale={"low": 1, "high": 5, "step": 0}), "scale.step"),
        (with_changes(REFERENCE, top=None), "top"),
        (with_changes(REFERENCE, top=4), "top"),
        (with_changes(REFERENCE, verdicts=["A", "B"]), "verdicts"),
        (with_changes(REFERENCE, metric="rouge-l"), "metric"),
        (with_changes(REFERENCE, metric="bleu"), "metric"),
    ],
)
def test_a_wrong_definition_is_refused_with_file_key_and_remedy(definition, key):
    with pytest.raises(StrategyError) as refused:
        from_definition(definition, source="some.toml")
    assert str(refused.value).startswith(f"some.toml: {key}: ")
    assert refused.value.remedy


def test_rouge_l_is_refused_where_there_is_no_reference_to_measure_against():
    length = load(FOLDER / "length.toml").definition
    with pytest.raises(StrategyError, match="rouge-l scores in the frame reference"):
        from_definition(length | {"metric": "rouge-l"})


def test_the_definitions_that_the_refusals_start_from_are_right():
    assert from_definition(PAIR).verdicts == ("A", "B")
    assert from_definition(REFERENCE).top == 5


def test_a_file_must_be_named_after_its_slug_and_be_toml(tmp_path):
    wrong_name = tmp_path / "other.toml"
    wrong_name.write_text((FOLDER / "length.toml").read_text())
    with pytest.raises(StrategyError, match=r"other\.toml: slug"):
        load(wrong_name)
    broken = tmp_path / "broken.toml"
    broken.write_text("slug = ")
    with pytest.raises(StrategyError, match=r"broken\.toml: file"):
        load(broken)


def test_inserted_text_is_never_expanded_again():
    values = {"question": "{{response}} \\1 \\g<0>", "response": "{{question}}"}
    filled = fill("Q: {{question}} R: {{response}}", values)
    assert filled == "Q: {{response}} \\1 \\g<0> R: {{question}}"


@settings(deadline=None)
@given(st.text(), st.text())
def test_filling_changes_nothing_but_the_placeholders(question, response):
    filled = fill("<{{question}}|{{response}}>", {"question": question, "response": response})
    assert filled == f"<{question}|{response}>"


@pytest.mark.parametrize(
    "scale, on, off",
    [
        (Scale(1, 10, 1), [1, 7.0, 10], [0, 11, 7.5, -7, float("nan"), float("inf")]),
        # 0.1 has no exact binary form: (0.7 - 0) / 0.1 is 6.999...
        (Scale(0, 1, 0.1), [0, 0.3, 0.7, 1], [0.05, 0.75, 1.1]),
        (Scale(0, 1), [0, 1 / 3, 1], [-0.001, 1.001]),
    ],
)
def test_a_scale_admits_its_steps_and_nothing_else(scale, on, off):
    assert all(scale.admits(value) for value in on)
    assert not any(scale.admits(value) for value in off)


def test_a_digest_follows_the_content_and_not_the_order_of_keys():
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1})
    assert digest({"a": 1}) != digest({"a": 1.0})
    assert digest(["ab", "c"]) != digest(["a", "bc"])
    # printf '{"a":"\u00e9"}' | sha256sum, the escape written out
    assert digest({"a": "é"}) == (
        "57e512a1ff02f75e939e93d2196b8d29ad3721b70ce25a601402d26410f453a2"
    )


@pytest.mark.parametrize("value", [{1: "a"}, [{"a": {2: 3}}], {"a": float("nan")}, {"a": b""}])
def test_what_json_cannot_say_has_no_digest(value):
    with pytest.raises((TypeError, ValueError)):
        digest(value)
