"""What the studies print, kept as data: every row says what it counts."""

from collections import Counter
from decimal import Decimal

import pytest

from judging import strategies
from judging.results import detectors
from judging.results.tables import detector, prompts
from tests.judging import published_tables
from tests.judging.published_tables import BIAS, DETECTORS

ROWS = published_tables.rows(DETECTORS)


def test_the_tables_of_study_001_are_whole() -> None:
    # Twelve detectors by three tasks by two response models, in tables 4 and 8 with chance and
    # people; three detectors by three tasks with one sample and with five; one vote a set.
    assert Counter(row["table"] for row in ROWS) == {"4": 84, "5": 18, "6": 6, "7": 72, "8": 84}
    sets = Counter((row["task"], row["response_model"]) for row in ROWS if row["table"] == "7")
    assert set(sets.values()) == {12}


@pytest.mark.parametrize("path", [DETECTORS, BIAS], ids=lambda path: path.stem)
def test_every_row_names_its_unit_and_its_denominator(path) -> None:
    for row in published_tables.rows(path):
        assert row["study"] == "001"
        assert row["unit"] in {"percent", "points"}
        assert row["denominator"] == "total"


def test_every_way_to_ask_is_a_strategy_or_a_row_of_the_detector_table() -> None:
    known = {*strategies.load_all(), detectors.MEAN, *detector.BASELINE_SCORES, "people"}
    assert {row["strategy"] for row in ROWS} <= known
    assert {row["bias"] for row in published_tables.rows(BIAS)} == set(prompts.BIASES)


def test_printed_digits_lie_where_their_unit_allows() -> None:
    for row in ROWS:
        found = published_tables.figures(row)
        assert found
        least = -100 if row["unit"] == "points" else 0
        assert all(least <= Decimal(digits) <= 100 for digits in found.values())


def test_f1_follows_from_precision_and_recall_where_one_output_is_printed() -> None:
    """Means over prompts need not be so; tables 5 and 6 are of one output each."""
    for row in ROWS:
        if row["table"] in {"5", "6"}:
            f1, precision, recall = (float(row[name]) for name in ("f1", "precision", "recall"))
            assert 2 * precision * recall / (precision + recall) == pytest.approx(f1, abs=0.11)
