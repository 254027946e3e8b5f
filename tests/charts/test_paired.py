"""Two sides as data: a line between people and the evaluator, told apart by shape."""

from charts.paired import MeanPair, draw_pairs

FOUND = [
    MeanPair("1 · likert", "Correctness", 0.25, 0.5, 40),
    MeanPair("2 · likert-no-gold", "Correctness", 0.25, 0.75, 39),
]


def test_a_line_goes_from_people_to_the_evaluator() -> None:
    between, people, evaluator = draw_pairs(FOUND, title="Mean")["layer"]
    assert (between["encoding"]["x"]["field"], between["encoding"]["x2"]["field"]) == (
        "people", "evaluator",
    )  # fmt: skip
    assert (people["mark"]["filled"], evaluator["mark"]["filled"]) == (False, True)
    sides = [one["transform"][0]["calculate"] for one in (people, evaluator)]
    assert sides == ["'People'", "'Evaluator'"]


def test_runs_keep_their_order_within_a_group() -> None:
    between = draw_pairs(FOUND, title="Mean")["layer"][0]
    assert between["encoding"]["yOffset"]["sort"] == [one.run for one in FOUND]
    assert between["encoding"]["x"]["scale"]["domain"] == [0, 1]


def test_more_runs_make_a_higher_chart() -> None:
    many = [MeanPair(f"{n}", "Correctness", 0.1, 0.2, 9) for n in range(6)]
    assert draw_pairs(many, title="")["height"] > draw_pairs(FOUND, title="")["height"]
