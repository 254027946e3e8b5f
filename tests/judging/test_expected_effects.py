"""A strategy in words, and the names of its calls."""

import pytest

from judging.strategies import OUTPUT_OF_FRAME, descriptions, frames, load_all
from judging.strategies.schema import Scale


def test_every_frame_has_its_words() -> None:
    assert descriptions.FRAME_DESCRIPTIONS.keys() == OUTPUT_OF_FRAME.keys()


@pytest.mark.parametrize("slug", load_all())
def test_every_strategy_says_what_it_offers_decides_and_reads(slug: str) -> None:
    strategy = load_all()[slug]
    assert descriptions.describe_answers(strategy)
    assert all(one.endswith((".", "decide.")) for one in descriptions.describe_decision(strategy))
    assert descriptions.describe_parsing(strategy)


@pytest.mark.parametrize("slug", load_all())
def test_a_call_is_found_by_its_name_and_no_two_have_one_title(slug: str) -> None:
    strategy = load_all()[slug]
    specs = frames.list_all_calls(strategy)
    assert [
        descriptions.find_call(strategy, descriptions.format_call_name(spec)) for spec in specs
    ] == list(specs)
    assert len({descriptions.format_call_title(strategy, spec) for spec in specs}) == len(specs)


def test_a_call_that_a_strategy_does_not_make_is_none() -> None:
    vanilla = load_all()["vanilla"]
    assert descriptions.find_call(vanilla, "pair.1..0") is None
    assert descriptions.find_call(vanilla, "") == frames.list_all_calls(vanilla)[0]
    assert descriptions.find_call(load_all()["majority"], "") is None


def test_a_call_says_what_it_shows_along_which_axis_and_at_which_step() -> None:
    axis, chain = load_all()["pairwise-axis"], load_all()["score-chain"]
    second = descriptions.find_call(axis, "pair.2.hallucination.0")
    assert second is not None
    said = descriptions.format_call_title(axis, second)
    assert said == "Both answers, perturbed first as A, Hallucination"
    last = frames.list_all_calls(chain)[-1]
    assert descriptions.format_call_title(chain, last) == "Response, step 3: judge"


@pytest.mark.parametrize(
    "scale, words",
    [
        (Scale(1, 10, 1), "from 1 to 10, whole numbers"),
        (Scale(0, 1, 0.5), "from 0 to 1 in steps of 0.5"),
        (Scale(0, 1), "from 0 to 1"),
        (None, "of any size"),
    ],
)
def test_a_scale_in_words(scale: Scale | None, words: str) -> None:
    assert descriptions.describe_scale(scale) == words


def test_votes_and_repeats_say_what_they_count_as() -> None:
    said = descriptions.describe_decision(load_all()["detect-self-consistency"])
    assert said[-1] == "5 samples per call: more than half of all of them decide."
    assert descriptions.describe_decision(load_all()["vanilla"]) == [
        "Detected if the perturbed answer gets a lower score than the gold answer."
    ]
