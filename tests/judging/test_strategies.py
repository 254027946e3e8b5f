import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import judging.strategies
from annotation.items import taxonomy
from judging.strategies import (
    FOLDER,
    OUTPUT_OF_FRAME,
    Metric,
    Scale,
    StrategyError,
    compute_digest,
    fill_template,
    frames,
    from_definition,
    list_item_axes,
    load,
    load_all,
    with_metrics,
)
from judging.strategies.replies import outputs
from judging.strategies.schema import FRAME_PLACEHOLDERS
from tests.annotation.own_categories import TEXT


def test_shipped_strategies_lie_beside_the_code_that_reads_them():
    assert Path(judging.strategies.__file__).parent == FOLDER
    assert list(FOLDER.glob("*.toml"))


# What each study asks for, by the slugs of its strategies.
STUDIES = {
    "000": {
        "vanilla-score", "vanilla", "rubric", "rubric-5", "axis", "axis-rubric", "axis-rubric-5",
        "pairwise-verdict", "pairwise", "pairwise-rules", "pairwise-axis", "pairwise-axis-rules",
        "reference", "prometheus", "prometheus-axis", "explanation-check", "explanation-check-gold",
    },
    "001": {
        "detect-1a", "detect-1b", "detect-2a", "detect-2b", "detect-steps",
        "detect-self-consistency", "majority",
        "generate-requirements", "generate-claims", "generate-planted", "generate-response",
        "reword",
    },
    "002": {"score-matrix", "score-matrix-animals", "score-chain", "score-rubric", "matching",
        "string-match"},
    "003": {
        "likert", "likert-no-gold", "rouge-l", "rouge-l-unicode", "rouge-l-response",
        "rouge-l-unicode-response", "translate",
    },
    "": {"length", "mean", "minority-veto", "weighted-votes"},
}  # fmt: skip
# One for gold answers and one for each category that the study counts.
STUDIES["000"] |= {"generate-gold", "suggest-ability"} | {
    f"generate-{one.slug}" for one in taxonomy.load_shipped() if one.in_paper
}


def test_every_strategy_of_the_studies_is_there_in_the_order_of_its_slug():
    assert list(load_all()) == sorted(set().union(*STUDIES.values()))
    for study, slugs in STUDIES.items():
        assert {slug for slug, one in load_all().items() if one.study[:3] == study} == slugs


def test_every_strategy_of_a_study_names_its_section():
    sections = [one.study for one in load_all().values() if one.study]
    assert all(re.match(r"00[0-3] (section|appendix) [0-9A-Z.]+", said) for said in sections)


def test_what_is_loaded_cannot_be_spoilt_for_the_next_reader():
    load_all().clear()
    assert load_all()


@pytest.mark.parametrize("slug", load_all())
def test_a_strategy_is_the_same_from_its_stored_definition(slug):
    strategy = load_all()[slug]
    assert from_definition(strategy.definition) == strategy


def in_json(one):
    return not (one.metric or one.worded or one.frame in ("fold", "explanation", "answer"))


@pytest.mark.parametrize("slug", [slug for slug, one in load_all().items() if in_json(one)])
def test_an_asked_strategy_names_its_json_keys_its_scale_and_its_verdicts(slug):
    strategy = load_all()[slug]
    asked = "{{form}}" if strategy.output == "scores" else f'"{strategy.output}":'
    if strategy.generates:
        keys = list(strategy.schema["properties"])
        # The object of a translation holds the texts of the item.
        assert re.findall(r'"(\w+)": ["{]', strategy.prompt) == keys
        return
    assert asked in strategy.prompt
    if strategy.output != "scores":
        assert ('"explanation":' in strategy.prompt) is strategy.explanation
    assert all(f'"{verdict}"' in strategy.prompt for verdict in strategy.verdicts)
    if strategy.scale:
        assert re.search(
            rf"from {strategy.scale.low} .*to {strategy.scale.high}\b", strategy.prompt
        )


@pytest.mark.parametrize("slug", ["detect-1a", "detect-1b", "detect-steps"])
def test_error_detection_offers_the_two_sentences_that_the_study_reads(slug):
    asked = load_all()[slug].prompt
    assert '"Therefore, the model response contains an error."' in asked
    assert '"Therefore, the model response contains no error."' in asked


@pytest.mark.parametrize("slug", ["detect-2a", "detect-2b"])
def test_the_second_wording_offers_valid_and_not_valid(slug):
    asked = load_all()[slug].prompt
    assert '"Therefore, the model response is not valid."' in asked
    assert '"Therefore, the model response is valid."' in asked


def test_self_consistency_is_five_votes_at_a_temperature():
    strategy = load_all()["detect-self-consistency"]
    assert (strategy.samples, strategy.votes) == (5, True)
    assert strategy.parameters == {"temperature": 0.5, "max_tokens": 4096}
    assert strategy.prompt == load_all()["detect-1a"].prompt


def test_placeholders_and_calls_name_the_same_frames_and_the_same_texts():
    assert FRAME_PLACEHOLDERS.keys() | {"fold"} == frames.FRAMES.keys() == OUTPUT_OF_FRAME.keys()
    for frame, shown in FRAME_PLACEHOLDERS.items():
        if frame != "explanation":
            named = (shown.needed | shown.allowed) - {"guidance", "language"}
            assert all(sources.keys() >= named for sources in frames.FRAMES[frame].values())


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
    filled = fill_template("Q: {{question}} R: {{response}}", values)
    assert filled == "Q: {{response}} \\1 \\g<0> R: {{question}}"


@given(st.text(), st.text())
def test_filling_changes_nothing_but_the_placeholders(question, response):
    filled = fill_template(
        "<{{question}}|{{response}}>", {"question": question, "response": response}
    )
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
    assert compute_digest({"a": 1, "b": [2]}) == compute_digest({"b": [2], "a": 1})
    assert compute_digest({"a": 1}) != compute_digest({"a": 1.0})
    assert compute_digest(["ab", "c"]) != compute_digest(["a", "bc"])
    # printf '{"a":"\u00e9"}' | sha256sum, the escape written out
    assert compute_digest({"a": "é"}) == (
        "57e512a1ff02f75e939e93d2196b8d29ad3721b70ce25a601402d26410f453a2"
    )


@pytest.mark.parametrize("value", [{1: "a"}, [{"a": {2: 3}}], {"a": float("nan")}, {"a": b""}])
def test_what_json_cannot_say_has_no_digest(value):
    with pytest.raises((TypeError, ValueError)):
        compute_digest(value)


FBI = taxonomy.load_shipped()
SCHEMA = {"type": "object", "additionalProperties": False}


def test_the_schema_of_an_answer_follows_from_its_output():
    strategies = load_all()
    explained = {"type": "string"}
    verdict = {"type": "string", "enum": ["A", "B", "both good", "both unacceptable"]}
    assert strategies["pairwise"].schema == SCHEMA | {
        "properties": {"explanation": explained, "verdict": verdict},
        "required": ["explanation", "verdict"],
    }
    assert strategies["rubric"].schema == SCHEMA | {
        "properties": {
            "explanation": explained,
            "score": {"type": "integer", "enum": [1, 2, 3]},
        },
        "required": ["explanation", "score"],
    }
    assert strategies["matching"].schema == SCHEMA | {
        "properties": {"score": {"type": "number", "enum": [0, 0.5, 1]}},
        "required": ["score"],
    }
    assert strategies["explanation-check"].schema == SCHEMA | {
        "properties": {"flag": {"type": "boolean"}},
        "required": ["flag"],
    }


@pytest.mark.parametrize("slug", ["detect-1a", "prometheus", "score-chain", "length", "majority"])
def test_an_answer_in_words_has_no_schema(slug):
    assert load_all()[slug].schema is None


def test_metrics_make_the_schema_once_they_are_known():
    strategy = load_all()["likert"]
    assert strategy.schema is None
    known = with_metrics(strategy, [Metric("tone", "Tone", "Is it kind?", Scale(1, 3, 1))])
    assert known.schema == SCHEMA | {
        "properties": {
            "explanation": {"type": "string"},
            "tone": {"type": "integer", "enum": [1, 2, 3]},
        },
        "required": ["explanation", "tone"],
    }


def test_a_long_or_stepless_scale_is_any_number():
    vanilla = load_all()["vanilla-score"]
    for scale in (Scale(0, 100, 1), Scale(0, 1)):
        assert replace(vanilla, scale=scale).schema["properties"]["score"] == {"type": "number"}


def test_an_error_can_be_detected_in_json_as_well():
    strategy = replace(load_all()["detect-1a"], worded=False)
    detection = strategy.schema["properties"]["detection"]
    assert detection == {"type": "string", "enum": ["error", "no_error"]}


def test_each_axis_decides_the_items_of_the_ability_that_the_taxonomy_names():
    known = {one.slug: one.axis for one in taxonomy.load_shipped().abilities if one.axis}
    assert len(known) == 4
    for slug in ("axis", "axis-rubric", "axis-rubric-5", "pairwise-axis", "prometheus-axis"):
        for ability, axis in known.items():
            found = list_item_axes(load_all()[slug], ability, ability, FBI)
            assert [name for name, main in found if main] == [axis]
            assert len(found) == 4


def test_a_score_invariant_item_is_decided_by_the_axis_of_its_source():
    strategy = load_all()["axis"]
    assert ("task-quality", True) in list_item_axes(
        strategy, "score-invariant", "instruction-following", FBI
    )


def test_without_axes_an_item_has_one_outcome_and_a_lone_axis_decides_every_item():
    assert list_item_axes(load_all()["vanilla"], "factual", "factual", FBI) == [("", True)]
    strategy = load_all()["axis"]
    lone = replace(strategy, axes=strategy.axes[:1])
    assert list_item_axes(lone, "factual", "factual", FBI) == [("content-quality", True)]


def test_an_ability_of_the_project_is_decided_by_its_axis_or_by_the_first():
    own = taxonomy.parse(TEXT.replace('axis = "hallucination"\n', ""))
    main = [
        [axis for axis, decides in list_item_axes(load_all()["axis"], ability, "", own) if decides]
        for ability in ("tone", "evidence", "elsewhere")
    ]
    assert main == [["content-quality"], ["content-quality"], []]
    reasoned = taxonomy.parse(TEXT.replace('"content-quality"', '"reasoning-accuracy"'))
    assert ("reasoning-accuracy", True) in list_item_axes(load_all()["axis"], "tone", "", reasoned)


def test_a_strategy_sorts_into_the_abilities_of_the_project_and_knows_its_category():
    own = taxonomy.parse(TEXT)
    sorting = load_all()["suggest-ability"].with_categories(own)
    assert sorting.schema["properties"]["ability"]["enum"] == ["tone", "evidence"]
    kept = outputs.parse_reply(sorting, '{"ability": "Tone of voice", "rationale": "It is rude."}')
    assert kept.value["ability"] == "tone"
    assert outputs.parse_reply(sorting, '{"ability": "factual", "rationale": ""}').value is None
    assert outputs.get_parser_version(sorting).endswith("tone+evidence")
    numbers = load_all()["generate-number-errors"]
    assert numbers.made == FBI.category("number-errors")
    assert numbers.with_categories(own).made is None


def test_metrics_of_a_task_type_come_with_what_decides_there():
    metrics = [Metric(slug, slug, slug, Scale(1, 3, 1)) for slug in ("tone", "truth")]
    likert = load_all()["likert"]
    assert with_metrics(likert, metrics, decides="truth").decides == "truth"
    assert with_metrics(likert, metrics, decides="other").decides == ""
    matrix = with_metrics(load_all()["score-matrix"], metrics, decides="truth")
    assert (matrix.decides, matrix.metrics) == ("total", tuple(metrics))
    assert with_metrics(load_all()["vanilla"], metrics) == load_all()["vanilla"]


def test_a_task_type_without_scales_or_without_what_decides_is_refused():
    with pytest.raises(StrategyError, match="choose another strategy"):
        with_metrics(load_all()["likert"], [])
    named = replace(load_all()["likert"], decides="truth")
    with pytest.raises(StrategyError, match="use one of tone"):
        with_metrics(named, [Metric("tone", "Tone", "Is it kind?", Scale(1, 3, 1))])
