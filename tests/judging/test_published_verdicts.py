"""The published detectors' outputs of study 001, which are no part of the repository."""

import json
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from formats import archives
from formats.rows import Limits
from judging.decisions import Decision, decide, fold
from judging.frames import CallSpec
from judging.outputs import read
from judging.strategies import load_all
from stats import detection
from stats.detection import Counts

# As the authors' own README gives it.
PASSWORD = "open-realmistake"
PHRASES = replace(
    load_all()["vanilla"], frame="detection", output="detection", scale=None, parser="phrases-001"
)
STRICT = replace(PHRASES, parser="strict")


@pytest.fixture(scope="module")
def lines(shared_data: Path) -> dict[str, list[dict]]:
    """The lines of all files by the kind of detector, the first folder's name."""
    path = shared_data / "realmistake" / "detector_outputs_mathgen_gpt4.zip"
    found: dict[str, list[dict]] = {}
    with archives.opened(path, Limits(), PASSWORD) as files:
        for name, opened in sorted(files.items()):
            with opened() as file:
                _, kind, *_, detector, prompt = name.split("/")
                asked = {"detector": detector, "prompt": prompt}
                rows = [json.loads(line) | asked for line in file]
            found.setdefault(kind, []).extend(rows)
    return found


def test_the_phrases_give_every_published_verdict(lines):
    """12 detectors x 4 prompts x 140 items, and 12 x 140 with evaluation steps: no difference."""
    for kind, count in (("simple_prompt_baseline", 6_720), ("advanced_prompt_baseline", 1_680)):
        unlike = [
            line["metadata"]["id"]
            for line in lines[kind]
            if read(PHRASES, line["response"]).value != line["prediction"]
        ]
        assert (len(lines[kind]), unlike) == (count, [])


def test_the_phrases_give_every_published_verdict_of_self_consistency(lines):
    """The stored one of five samples is the most frequent, ties as no_error, error, invalid."""
    for line in lines["self_consistency"]:
        said = Counter(read(PHRASES, sample["response"]).value for sample in line["response"])
        assert max(("no_error", "error", None), key=lambda one: said[one]) == line["prediction"]


def test_a_majority_of_the_parsed_verdicts_is_the_published_vote(lines):
    """Three detectors by four prompts, 140 items; an error with more than six of the twelve."""
    members = ("Llama-2-70b-chat-hf", "Mixtral-8x7B-Instruct-v0.1", "Qwen1.5-72B-Chat")
    votes: dict[str, list[Decision]] = defaultdict(list)
    for line in lines["simple_prompt_baseline"]:
        if line["detector"] in members:
            reading = {(CallSpec("response"), 0): read(PHRASES, line["response"])}
            votes[line["metadata"]["id"]].append(decide(PHRASES, reading))
    majority = replace(PHRASES, frame="fold", output="fold", fold="majority")
    published = {line["metadata"]["id"]: line["prediction"] for line in lines["majority_vote"]}
    assert {len(twelve) for twelve in votes.values()} == {12}
    assert {item: fold(majority, twelve).detail for item, twelve in votes.items()} == published


# Study 001, tables 4 and 8, MathGen on GPT-4: F1, precision, recall, accuracy in percent.
PRINTED = {
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


def test_the_figures_of_the_parsed_verdicts_are_those_of_the_tables(lines):
    prompts: dict[str, dict[str, Counts]] = defaultdict(lambda: defaultdict(Counts))
    for line in lines["simple_prompt_baseline"]:
        said = read(PHRASES, line["response"]).value
        verdict = None if said is None else said == "error"
        one = detection.tally([(line["label"] == "error", verdict)])
        prompts[line["detector"]][line["prompt"]] += one
    for detector, printed in PRINTED.items():
        row = detection.mean([detection.scores(counts) for counts in prompts[detector].values()])
        found = (row.f1, row.precision, row.recall, row.accuracy)
        assert [f"{100 * value:.1f}" for value in found] == [f"{value:.1f}" for value in printed]


def test_the_stricter_parser_differs_in_few_and_reads_most_of_what_was_invalid(lines):
    """Both looked through by hand: the last statement against a phrase earlier on, "is valid
    except", "contains errors"."""
    kinds = ("simple_prompt_baseline", "advanced_prompt_baseline")
    found = Counter(
        (line["prediction"], read(STRICT, line["response"]).value)
        for kind in kinds
        for line in lines[kind]
    )
    assert found == {
        ("error", "error"): 3_444,
        ("error", None): 3,
        ("no_error", "no_error"): 4_696,
        ("no_error", "error"): 17,
        ("no_error", None): 25,
        (None, "error"): 189,
        (None, "no_error"): 4,
        (None, None): 22,
    }
