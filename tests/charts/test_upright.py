"""Two plots one above the other over the same groups, each with its own marks."""

from charts import files
from charts.axes import coefficient_axis
from charts.upright import GroupRating, draw_upright

FOUND = [
    GroupRating("1 · likert", "034, en", None, None, None, 0.0, 0.1, 15),
    GroupRating("1 · likert", "190, en", 0.7, 0.4, 0.9, 0.4, 0.5, 15),
    GroupRating("2 · rouge-l", "190, en", -0.2, None, None, None, 0.3, 14),
]


def drawn() -> dict:
    return draw_upright(FOUND, title="ρ", axis=coefficient_axis([-0.2]))


def test_both_plots_have_the_same_groups_and_only_the_lower_names_them() -> None:
    above, below = (plot["layer"] for plot in drawn()["vconcat"])
    axes = [layer["encoding"]["x"] for layer in (*above, *below)]
    assert {tuple(axis["scale"]["domain"]) for axis in axes} == {("034, en", "190, en")}
    assert [axis["axis"]["labels"] for axis in axes] == [False] * len(above) + [True] * len(below)


def test_correlations_stand_above_means_and_gaps_where_one_is_not_defined() -> None:
    (interval, dots), (rule, people, evaluator) = (plot["layer"] for plot in drawn()["vconcat"])
    assert dots["encoding"]["y"]["field"] == "correlation"
    assert dots["encoding"]["y"]["scale"]["domain"] == [-1, 1]
    assert dots["transform"] == [{"filter": "isValid(datum.correlation)"}]
    assert interval["transform"] == [{"filter": "isValid(datum.low)"}]
    assert (rule["encoding"]["y"]["field"], rule["encoding"]["y2"]["field"]) == (
        "people", "evaluator",
    )  # fmt: skip
    assert [one["encoding"]["y"]["field"] for one in (people, evaluator)] == ["people", "evaluator"]
    assert people["encoding"]["y"]["scale"]["domain"] == [0, 1]


def test_it_becomes_a_file() -> None:
    assert files.render(drawn(), "svg").startswith(b"<svg")
