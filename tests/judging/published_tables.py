"""The figures that study 001 prints, from the files in `judging/results/published`."""

import csv
from pathlib import Path

from judging import results

FOLDER = Path(results.__file__).parent / "published"
DETECTORS, BIAS = FOLDER / "001-detectors.csv", FOLDER / "001-bias.csv"
FIGURES = ("f1", "precision", "recall", "accuracy")
RATINGS, STRENGTH = FOLDER / "001-ratings.csv", FOLDER / "001-strength.csv"
# The set whose replies are at hand.
SET = {"task": "math_word_problem_generation", "response_model": "gpt-4-0613"}

Printed = dict[str, str]


def rows(path: Path) -> list[Printed]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def of_set(table: str) -> list[Printed]:
    """The rows of a table that are of the set at hand, but for people."""
    found = [row for row in rows(DETECTORS) if row["table"] == table and SET.items() <= row.items()]
    return [row for row in found if row["strategy"] != "people"]


def figures(row: Printed) -> dict[str, str]:
    """The digits that a row prints, by name."""
    return {name: row[name] for name in FIGURES if row[name]}
