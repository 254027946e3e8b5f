"""A baseline's run over study 000's archive, which is no part of the repository."""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest
from django.core.management import call_command
from rouge_score import rouge_scorer

from judging.models import Outcome, Run
from tests.judging.builders_judging import make_endpoint

# Study 000, table 1.
TABLE_1 = {
    "coherence": 91, "comprehensiveness": 90, "consistency": 84, "grammar": 92,
    "chronology": 71, "spelling": 100, "contextual": 94, "entity": 87, "incorrect-fact": 68,
    "number-errors": 74, "opposite-fact": 91, "remove-fact": 69, "assumptions": 81,
    "do-less": 100, "do-more": 50, "ignore-format": 99, "sequence-errors": 49,
    "calculations": 149, "copying-numbers": 83, "final-errors": 97, "incorrect-units": 77,
    "wrong-formula": 88, "score-invariant": 516,
}  # fmt: skip
REPEATED = {"formatting": 31, "superficial": 61}


def common_subsequence(left: Sequence[str], right: Sequence[str]) -> list[list[int]]:
    """The last cell of rouge-score's table, by bits (Crochemore 2001): its own takes minutes."""
    places: dict[str, int] = defaultdict(int)
    for place, word in enumerate(left):
        places[word] |= 1 << place
    whole = row = (1 << len(left)) - 1
    for word in right:
        matches = row & places[word]
        row = ((row + matches) | (row - matches)) & whole
    return [[len(left) - row.bit_count()]]


@pytest.mark.django_db(transaction=True)
def test_the_published_archive_is_counted_and_scored_as_the_study_and_rouge_score_do(
    shared_data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some seconds: the published archive is brought in and scored whole."""
    archive = str(shared_data / "fbi" / "data.zip")
    call_command("import_items", archive, project="fbi", create=True, accept=True, verbosity=0)
    capsys.readouterr()
    call_command("results", "categories", project="fbi")
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert list(rows[0]) == ["ability", "category", "items"]
    assert {row["category"]: row["items"] for row in rows} == TABLE_1 | REPEATED

    make_endpoint("http://127.0.0.1:9/v1", name="judge")
    for axes, requests in ((), "3137"), (("all",), "12548"):
        call_command(
            "run_strategy", project="fbi", strategy="axis", endpoint="judge", axis=axes,
            estimate=True,
        )  # fmt: skip
        assert f" {requests} different requests" in capsys.readouterr().out

    call_command("run_strategy", project="fbi", strategy="rouge-l", endpoint="baseline", wait=True)
    assert Run.objects.get().state == Run.State.FINISHED
    monkeypatch.setattr(rouge_scorer, "_lcs_table", common_subsequence)
    oracle = rouge_scorer.RougeScorer(["rougeL"], use_stemmer=False)
    ours: dict[str, list[float]] = defaultdict(list)
    theirs: dict[str, list[float]] = defaultdict(list)
    for outcome in Outcome.objects.select_related("revision"):
        texts = outcome.revision.texts
        score = oracle.score(texts["gold"], texts["perturbed"])["rougeL"].fmeasure
        ours[outcome.category].append(outcome.values["perturbed"])
        theirs[outcome.category].append(score)
    assert {category: len(scores) for category, scores in ours.items()} == TABLE_1
    for category, scores in ours.items():
        assert sum(scores) / len(scores) == pytest.approx(
            sum(theirs[category]) / len(scores), rel=0, abs=1e-9
        )
