"""The published replies of study 001's detectors, against the digits that the study prints.

One of its six sets is at hand: math word problems on GPT-4's responses. Tables 4 and 8 are means
over four prompts, 5 is self-consistency on the first 50 items, 6 the majority vote of twelve
outputs, 7 what evaluation steps change against prompt 1-A, in points.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction

from annotation.models import Project
from judging import deriving, detecting, selecting
from judging.models import Run

SET = {"task": "math_word_problem_generation", "response_model": "gpt-4-0613"}
FIGURES = ("f1", "precision", "recall", "accuracy")
# Detector, F1, precision, recall (table 4), accuracy (table 8).
MEANS = {
    "gemma-7b-it": (46.5, 61.6, 50.0, 43.4),
    "Llama-2-13b-chat-hf": (54.2, 62.6, 52.3, 47.3),
    "Llama-2-70b-chat-hf": (59.5, 73.0, 75.3, 58.2),
    "Mistral-7B-Instruct-v0.1": (6.9, 22.8, 4.3, 36.1),
    "Mixtral-8x7B-Instruct-v0.1": (45.5, 75.5, 35.1, 50.7),
    "Qwen1.5-14B-Chat": (52.3, 77.4, 49.7, 56.1),
    "Qwen1.5-72B-Chat": (32.8, 82.9, 23.3, 48.2),
    "gpt-3.5-turbo-0125": (65.3, 77.3, 64.1, 63.6),
    "gemini-1.0-pro-001": (42.5, 78.1, 41.7, 52.3),
    "claude-3-opus-20240229": (50.1, 94.9, 35.9, 58.4),
    "gpt-4-0613": (63.1, 94.4, 48.0, 65.9),
    "gpt-4-0125-preview": (70.9, 88.9, 59.5, 70.0),
}
# Detector, F1, precision, recall with evaluation steps minus prompt 1-A (table 7).
STEPS = {
    "gemma-7b-it": (17.0, 17.1, 16.1),
    "Llama-2-13b-chat-hf": (-28.4, -13.7, -36.8),
    "Llama-2-70b-chat-hf": (-0.2, 0.2, -1.1),
    "Mistral-7B-Instruct-v0.1": (11.2, 17.2, 8.0),
    "Mixtral-8x7B-Instruct-v0.1": (4.3, 5.6, 3.4),
    "Qwen1.5-14B-Chat": (-4.2, 5.6, -19.5),
    "Qwen1.5-72B-Chat": (15.4, -6.0, 31.0),
    "gpt-3.5-turbo-0125": (-2.0, 2.5, -9.2),
    "gemini-1.0-pro-001": (-29.4, 6.6, -47.1),
    "claude-3-opus-20240229": (14.3, -6.9, 19.5),
    "gpt-4-0613": (2.3, 1.9, 2.3),
    "gpt-4-0125-preview": (-1.0, 6.1, -4.6),
}
# Detector, F1, precision, recall of one output and of five samples (table 5).
SAMPLES = {
    "Mixtral-8x7B-Instruct-v0.1": ((63.0, 68.0, 58.6), (64.2, 70.8, 58.6)),
    "gpt-3.5-turbo-0125": ((81.2, 70.0, 96.6), (82.4, 71.8, 96.6)),
    "gpt-4-0125-preview": ((74.5, 86.4, 65.5), (83.0, 91.7, 75.9)),
}
# F1, precision, recall of the majority vote (table 6), and who votes.
MAJORITY = (37.9, 75.9, 25.3)
VOTERS = ("Llama-2-70b-chat-hf", "Mixtral-8x7B-Instruct-v0.1", "Qwen1.5-72B-Chat")


@dataclass(frozen=True)
class Published:
    """The table over all recorded runs, what was said at import, and runs made of others."""

    rows: list[dict[str, Any]]
    said: str
    again: str
    majority: dict[str, Any]
    firsts: dict[str, dict[str, Any]]
    differing: int

    def row(self, endpoint: str, strategy: str) -> dict[str, Any]:
        (found,) = [
            row for row in self.rows if (row["endpoint"], row["strategy"]) == (endpoint, strategy)
        ]
        return found


@pytest.fixture(scope="module")
def published(
    shared_data: Path, django_db_setup: None, django_db_blocker: Any
) -> Iterator[Published]:
    with django_db_blocker.unblock(), transaction.atomic():
        yield _import(shared_data / "realmistake")
        transaction.set_rollback(True)


def _import(folder: Path) -> Published:
    opened = {"project": "p", "format": "realmistake", "password": "open-realmistake"}
    call_command(
        "import_items", str(folder / "data.zip"), **opened, create=True, accept=True,
        stdout=io.StringIO(),
    )  # fmt: skip
    said = [io.StringIO(), io.StringIO()]
    for out in said:
        outputs = str(folder / "detector_outputs_mathgen_gpt4.zip")
        call_command("import_replies", outputs, **opened, stdout=out)
    project = Project.objects.get()
    runs = list(Run.objects.for_results())
    return Published(
        rows=[row.as_row() for row in detecting.detector(project, runs, list(SET))],
        said=said[0].getvalue(),
        again=said[1].getvalue(),
        majority=_majority(project, runs),
        firsts=_firsts(project, runs),
        differing=sum(run.outcomes.filter(values__differs=True).count() for run in runs),
    )


def _majority(project: Project, runs: list[Run]) -> dict[str, Any]:
    votes = [
        run
        for run in runs
        if run.endpoint.name in VOTERS and run.strategy.slug in detecting.PROMPTS
    ]
    assert len(votes) == 12
    strategy = selecting.strategy_version("majority")
    derived = deriving.derive(project, strategy=strategy, sources=votes)
    (row,) = detecting.detector(project, [derived], [])
    return row.as_row()


def _firsts(project: Project, runs: list[Run]) -> dict[str, dict[str, Any]]:
    """Prompt 1-A on the items that self-consistency was tried on."""
    found = {(run.endpoint.name, run.strategy.slug): run for run in runs}
    firsts = {}
    for name in SAMPLES:
        pair = [found[name, "detect-1a"], found[name, "detect-self-consistency"]]
        (row, _) = detecting.detector(project, pair, [], common=True)
        firsts[name] = row.as_row()
    return firsts


def percent(row: dict[str, Any], figures: tuple[str, ...] = FIGURES[:3]) -> list[float]:
    return [100 * row[name] for name in figures]


def to_the_digit(*printed: float) -> Any:
    return pytest.approx(printed, abs=0.05 + 1e-9, rel=0)


def test_everything_is_recorded_once(published: Published) -> None:
    # 12 detectors with four prompts and with steps, three with self-consistency, one vote.
    assert "64 runs recorded with 9,150 replies, 0 were there already" in published.said
    assert "0 runs recorded with 0 replies, 64 were there already" in published.again


def test_our_parser_of_the_phrases_reads_what_the_study_read(published: Published) -> None:
    # Only where five samples are folded: ours asks for more than half, theirs for the most.
    assert published.differing == 2


@pytest.mark.parametrize("detector", MEANS)
def test_tables_4_and_8(published: Published, detector: str) -> None:
    row = published.row(detector, "mean")
    assert row | SET == row
    assert row["n"] == 140
    assert percent(row, FIGURES) == to_the_digit(*MEANS[detector])


@pytest.mark.parametrize("detector", STEPS)
def test_table_7(published: Published, detector: str) -> None:
    after = percent(published.row(detector, "detect-steps"))
    before = percent(published.row(detector, "detect-1a"))
    gained = [one - other for one, other in zip(after, before, strict=True)]
    assert gained == to_the_digit(*STEPS[detector])


@pytest.mark.parametrize("detector", SAMPLES)
def test_table_5(published: Published, detector: str) -> None:
    once, five = SAMPLES[detector]
    assert published.firsts[detector]["n"] == 50
    assert percent(published.firsts[detector]) == to_the_digit(*once)
    assert percent(published.row(detector, "detect-self-consistency")) == to_the_digit(*five)


def test_table_6_as_recorded(published: Published) -> None:
    assert percent(published.row("__".join(VOTERS), "majority")) == to_the_digit(*MAJORITY)


def test_table_6_as_derived_from_the_twelve_runs(published: Published) -> None:
    assert percent(published.majority) == to_the_digit(*MAJORITY)
