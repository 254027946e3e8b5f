"""The published detectors' outputs of study 001, which are no part of the repository."""

import json
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from formats import archives
from formats.rows import Limits
from judging.strategies import load_all
from judging.strategies.frames import CallSpec
from judging.strategies.replies.decisions import Decision, combine, decide
from judging.strategies.replies.outputs import parse_reply
from stats import detection
from stats.detection import ConfusionCounts
from tests.judging import published_tables

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
    with archives.open_archive(path, Limits(), PASSWORD) as files:
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
            if parse_reply(PHRASES, line["response"]).value != line["prediction"]
        ]
        assert (len(lines[kind]), unlike) == (count, [])


def test_the_phrases_give_every_published_verdict_of_self_consistency(lines):
    """The stored one of five samples is the most frequent, ties as no_error, error, invalid."""
    for line in lines["self_consistency"]:
        said = Counter(
            parse_reply(PHRASES, sample["response"]).value for sample in line["response"]
        )
        assert max(("no_error", "error", None), key=lambda one: said[one]) == line["prediction"]


def test_a_majority_of_the_parsed_verdicts_is_the_published_vote(lines):
    """Three detectors by four prompts, 140 items; an error with more than six of the twelve."""
    members = ("Llama-2-70b-chat-hf", "Mixtral-8x7B-Instruct-v0.1", "Qwen1.5-72B-Chat")
    votes: dict[str, list[Decision]] = defaultdict(list)
    for line in lines["simple_prompt_baseline"]:
        if line["detector"] in members:
            reading = {(CallSpec("response"), 0): parse_reply(PHRASES, line["response"])}
            votes[line["metadata"]["id"]].append(decide(PHRASES, reading))
    majority = replace(PHRASES, frame="fold", output="fold", fold="majority")
    published = {line["metadata"]["id"]: line["prediction"] for line in lines["majority_vote"]}
    assert {len(twelve) for twelve in votes.values()} == {12}
    assert {item: combine(majority, twelve).detail for item, twelve in votes.items()} == published


def test_the_figures_of_the_parsed_verdicts_are_those_of_the_tables(lines):
    prompts: dict[str, dict[str, ConfusionCounts]] = defaultdict(
        lambda: defaultdict(ConfusionCounts)
    )
    for line in lines["simple_prompt_baseline"]:
        said = parse_reply(PHRASES, line["response"]).value
        verdict = None if said is None else said == "error"
        one = detection.count_verdicts([(line["label"] == "error", verdict)])
        prompts[line["detector"]][line["prompt"]] += one
    for table in ("4", "8"):
        for printed in published_tables.of_set(table):
            if printed["strategy"] == "mean":
                counts = prompts[printed["model"]].values()
                row = detection.mean_scores([detection.compute_scores(one) for one in counts])
                wanted = published_tables.figures(printed)
                assert {name: f"{100 * getattr(row, name):.1f}" for name in wanted} == wanted


def test_the_stricter_parser_differs_in_few_and_reads_most_of_what_was_invalid(lines):
    """Where they differ the stricter one goes by the last statement, not by a phrase earlier on,
    and takes "is valid except" for neither; it also reads variants such as "contains errors". The
    counts are what both give today: a change of either parser is to be looked at, reply by reply.
    """
    kinds = ("simple_prompt_baseline", "advanced_prompt_baseline")
    found = Counter(
        (line["prediction"], parse_reply(STRICT, line["response"]).value)
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
