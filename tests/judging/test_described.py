"""A strategy in words, and the names of its calls."""

import pytest

from judging.prompts import described, frames
from judging.prompts.declared import Scale
from judging.strategies import OUTPUT_OF_FRAME, load_all


def test_every_frame_has_its_words() -> None:
    assert described.FRAMES.keys() == OUTPUT_OF_FRAME.keys()


@pytest.mark.parametrize("slug", load_all())
def test_every_strategy_says_what_it_offers_decides_and_reads(slug: str) -> None:
    strategy = load_all()[slug]
    assert described.offers(strategy)
    assert all(one.endswith((".", "decide.")) for one in described.decides(strategy))
    assert described.reads(strategy)


@pytest.mark.parametrize("slug", load_all())
def test_a_call_is_found_by_its_name_and_no_two_have_one_title(slug: str) -> None:
    strategy = load_all()[slug]
    specs = frames.all_calls(strategy)
    assert [described.named(strategy, described.name(spec)) for spec in specs] == list(specs)
    assert len({described.title(strategy, spec) for spec in specs}) == len(specs)


def test_a_call_that_a_strategy_does_not_make_is_none() -> None:
    vanilla = load_all()["vanilla"]
    assert described.named(vanilla, "pair.1..0") is None
    assert described.named(vanilla, "") == frames.all_calls(vanilla)[0]
    assert described.named(load_all()["majority"], "") is None


def test_a_call_says_what_it_shows_along_which_axis_and_at_which_step() -> None:
    axis, chain = load_all()["pairwise-axis"], load_all()["score-chain"]
    second = described.named(axis, "pair.2.hallucination.0")
    assert second is not None
    said = described.title(axis, second)
    assert said == "Both answers, perturbed first as A, Hallucination"
    last = frames.all_calls(chain)[-1]
    assert described.title(chain, last) == "Response, step 3: judge"


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
    assert described.between(scale) == words


def test_votes_and_repeats_say_what_they_count_as() -> None:
    said = described.decides(load_all()["detect-self-consistency"])
    assert said[-1] == "Each call is made 5 times, and more than half of all of them decide."
    assert described.decides(load_all()["vanilla"]) == [
        "Detected if the perturbed answer gets a lower score than the gold answer."
    ]
