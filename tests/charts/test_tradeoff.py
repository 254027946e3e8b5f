"""The plane of precision and recall as data."""

from dataclasses import replace

import pytest

from charts.tradeoff import PrecisionRecall, draw_tradeoff

FOUND = [
    PrecisionRecall("a", "sums", 18, 0.6, 0.75, 0.6, 0.9, 0.5, None, None),
    PrecisionRecall("Random", "sums", 18, 0.6, 0.6, None, None, 0.6, None, None, faint=True),
]


def test_recall_goes_right_and_precision_goes_up() -> None:
    *_, shown = draw_tradeoff(FOUND)["layer"]
    fields = (shown["encoding"]["x"]["field"], shown["encoding"]["y"]["field"])
    assert fields == ("recall", "precision")
    assert shown["encoding"]["shape"]["scale"]["domain"] == ["a", "Random"]


def test_along_a_line_f1_is_the_same() -> None:
    line, *_ = draw_tradeoff(FOUND)["layer"]
    for row in line["data"]["values"]:
        recall, precision = row["at"], row["precision"]
        assert 2 * recall * precision / (recall + precision) == pytest.approx(row["f1"])


def test_each_interval_is_drawn_only_where_it_is_defined() -> None:
    _, _, across, up, _ = draw_tradeoff(FOUND)["layer"]
    assert across["transform"] == [{"filter": "isValid(datum.recall_low)"}]
    assert up["transform"] == [{"filter": "isValid(datum.precision_low)"}]


def test_past_eight_detectors_each_has_its_name_beside_it() -> None:
    many = [replace(FOUND[0], detector=f"judge-{number}") for number in range(9)]
    assert len(draw_tradeoff(many[:8])["layer"]) == 5
    *_, words = draw_tradeoff(many)["layer"]
    assert words["encoding"]["text"]["field"] == "detector"
