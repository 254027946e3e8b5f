"""The scores that study 002 prints, read from its text, which is never part of the repository."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

POINTS = ("m1", "m2", "m3", "m4", "m5")
SIGNS = ("s1", "s2", "s3")
MODELS = {"A1": "Phi", "A2": "Hermes", "A3": "Mixtral", "A4": "Llama-2"}
HUMAN = "A5"

# By item, then by metric.
Scores = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Evaluation:
    """What people gave, and what each model did, under its name."""

    people: Scores
    models: dict[str, Scores]


def text(shared_data: Path) -> str:
    """The study's text; skips the test where it is not."""
    found = next((shared_data.parent / "seeds").glob("002_*.txt"), None)
    if found is None:
        pytest.skip("The text of study 002 is not here: put it in ../shared/seeds.")
    return found.read_text(encoding="utf-8")


def evaluation_3(study: str) -> Evaluation:
    """Tables A1 to A5: five metrics, whose printed total is their sum."""
    tables = {}
    for found in re.finditer(r"\n((?:DSI\d+(?:\t\d+){6}\n)+)\s*Table (A\d)", study):
        rows = [line.split("\t") for line in found[1].splitlines()]
        scores = {key: [int(value) for value in values] for key, *values in rows}
        assert all(sum(values[:5]) == values[5] for values in scores.values())
        tables[found[2]] = {
            key: dict(zip(POINTS, values[:5], strict=True)) for key, values in scores.items()
        }
    return Evaluation(tables[HUMAN], {name: tables[table] for table, name in MODELS.items()})


def evaluation_2(study: str) -> Evaluation:
    """Table A6: class, family and species of 25 items, 1, 0 or -1."""
    part = study[study.index("Datapoint\tLlama-2\tHuman Baseline") :]
    rows = re.findall(r"^(DSI\d+)\t(S1: [^\t]+)\t(S1: [^\t\n]+)$", part, re.M)
    return Evaluation(
        {key: _signs(people) for key, _, people in rows},
        {"Llama-2": {key: _signs(model) for key, model, _ in rows}},
    )


def figure_5(study: str) -> Evaluation:
    """The same of four items and four models."""
    part = study[study.index("Fig. 5") - 1500 : study.index("Fig. 5")]
    rows = re.findall(r"^(M\d|Human Standard)(?: \((.+)\))?((?:\tS1: [^\t\n]+){4})$", part, re.M)
    found = {
        name or who: {f"DSI{n}": _signs(cell) for n, cell in enumerate(cells.split("\t")[1:], 1)}
        for who, name, cells in rows
    }
    return Evaluation(found.pop("Human Standard"), found)


def figure_3(study: str) -> Evaluation:
    """One score from 0 to 3 of four items; what was not available stands there as -1."""
    part = study[study.index("6.1 Evaluation 1") : study.index("Evaluation 1 Results")]
    rows = re.findall(r"^([^\t\n]*)((?:\t(?:\d|NA \(-1\))){4})$", part.replace("-\n", ""), re.M)
    names = ["Prometheus-13b-v1.0", "Prometheus-7b-v2.0", "Mistral-7B-Instruct-v0.3"]
    names += ["Meta-Llama-3-8B-Instruct", "Human"]
    found = {
        name: {
            f"DSI{n}": {"score": float(cell.replace("NA (-1)", "-1"))}
            for n, cell in enumerate(cells.split("\t")[1:], 1)
        }
        for name, (_, cells) in zip(names, rows, strict=True)
    }
    return Evaluation(found.pop("Human"), found)


def _signs(cell: str) -> dict[str, float]:
    return {name.lower(): float(value) for name, value in re.findall(r"(S\d): ?(-?\d)", cell)}


def data_set(study: str, number: int) -> dict[str, tuple[str, str]]:
    """Table A7, A8 or A9, the items of an evaluation: response and ground truth by item.

    The text has one line of the three of DSI22's response in table A8 alone and one in A9 alone.
    """
    part = study[: study.index(f"Table A{number + 6} Dataset")]
    part = part[part.rindex("Response\tGround Truth\n") :]
    found: dict[str, tuple[str, str]] = {}
    for line in part.splitlines()[1:]:
        if not re.search(r"\t.*[a-z]", line):
            continue
        key, *cells = line.split("\t")[-3:]
        if key := {"9ISQ": "DSI6"}.get(key, key.replace("aenb", "DSI")):
            found[key] = cells[0].removeprefix("aenb5 "), cells[1]
        else:
            key, before = list(found.items())[-1]
            found[key] = _join(before[0], cells[0]), _join(before[1], cells[1])
    return found


def _join(line: str, after: str) -> str:
    """Two lines of a cell; a word that is hyphenated at the end of the first is whole again."""
    return line[:-1] + after if line.endswith("-") and after else f"{line} {after}".strip()
