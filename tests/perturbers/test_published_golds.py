"""The perturbers on the gold answers of study 000, which are no part of the project."""

import csv
import io
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from perturbers.flags import find_flags
from perturbers.registry import PERTURBERS, perturb

SEEDS = 4
LEAST = 60


@pytest.fixture(scope="module")
def golds(shared_data: Path) -> dict[str, dict[str, str]]:
    """By ability, each gold answer with its prompt."""
    found: dict[str, dict[str, str]] = {}
    with zipfile.ZipFile(shared_data / "fbi" / "data.zip") as archive:
        for name in archive.namelist():
            path = PurePosixPath(name)
            if path.suffix == ".tsv" and "__MACOSX" not in path.parts:
                text = io.TextIOWrapper(archive.open(name), "utf-8", newline="")
                rows = csv.DictReader(text, delimiter="\t")
                pairs = {row["og"]: row["question"] for row in rows}
                found.setdefault(path.parent.name, {}).update(pairs)
    return found


# Instruction following has no numbered lists in the archive, its line breaks are gone.
@pytest.mark.parametrize(
    ("slug", "ability"),
    [
        ("spelling", "long-form"),
        ("shuffle", "long-form"),
        ("steps", "long-form"),
        ("layout", "long-form"),
        ("numbers", "factual"),
        ("negation", "factual"),
        ("removal", "factual"),
        ("entities", "factual"),
        ("units", "reasoning"),
        ("results", "reasoning"),
        ("copying", "reasoning"),
        ("final-answer", "reasoning"),
    ],
)
def test_each_makes_sixty_of_which_every_one_differs_as_it_claims(
    golds: dict[str, dict[str, str]], slug: str, ability: str
) -> None:
    perturber, count = PERTURBERS[slug], 0
    for gold, prompt in golds[ability].items():
        made = {
            one.response: one
            for seed in range(SEEDS)
            if (one := perturb(perturber, gold, prompt=prompt, seed=str(seed)))
        }
        for response in made:
            seen = [
                one for one in find_flags(perturber.category, gold, response) if one.rule == "claim"
            ]
            assert seen == [], made[response].claim
        count += len(made)
    assert count >= LEAST
