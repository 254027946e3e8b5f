"""No text, however it is made, keeps a perturber busy for long."""

import time

import pytest

from perturbers.registry import PERTURBERS, perturb

LENGTH = 100_000
# Each once took a time that grew with the square of its length.
PARTS = {
    "sentences": "The cat is on the large mat. ",
    "names": "We met Anna Miller in Paris and she went to London. ",
    "digits": "1",
    "years": "in 1999 ",
    "stars": "*",
    "open formulas": "\\[",
    "open brackets": "[",
    "full stops": ".",
}
END = " x letters of the separate entrance. It is **here** at last. We met Otto in Rome again.\n"


@pytest.mark.parametrize("part", PARTS)
def test_a_long_text_is_perturbed_in_moments(part: str) -> None:
    gold = (PARTS[part] * LENGTH)[:LENGTH] + END
    begun = time.process_time()
    for perturber in PERTURBERS.values():
        perturb(perturber, gold, prompt=gold, seed="s", dose=4)
    # All of them take some 2 seconds at most here; one of them alone took more than 15.
    assert time.process_time() - begun < 12
