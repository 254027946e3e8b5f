"""The commands of the evaluator half: run_strategy, results, export."""

import csv
import io
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Event, Project
from judging.models import Run
from judging.runs.engine import ask
from tests.builders import make_project
from tests.judging.builders_judging import (
    make_endpoint,
    make_items,
    make_judged,
    make_run,
    make_version,
    work,
)
from tests.services.scripted_evaluator import Script, ScriptedEvaluator

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    project = make_project("p")
    make_items(project, 4)
    return project


def say(command: str, *words: str) -> tuple[str, str]:
    """What a command writes to standard output and to standard error."""
    out, errors = io.StringIO(), io.StringIO()
    call_command(command, *words, stdout=out, stderr=errors)
    return out.getvalue(), errors.getvalue()


def table(name: str, capsys: Any, *words: str) -> dict[str, Any]:
    call_command("results", name, "--project", "p", *words)
    return json.loads(capsys.readouterr().out)


def refused(command: str, *words: str) -> str:
    with pytest.raises(CommandError) as caught:
        say(command, *words)
    assert caught.value.returncode == 2
    return str(caught.value)


@pytest.mark.django_db(transaction=True)
def test_waiting_for_a_baseline_ends_with_every_item_decided(project: Project) -> None:
    words = ("--project", "p", "--strategy", "rouge-l", "--endpoint", "baseline", "--wait")
    out, errors = say("run_strategy", *words)
    assert out == "Run 1 of p: 4 items\n"
    assert errors.endswith("finished: 4 of 4 requests answered, 4 of 4 items done\n")
    assert Run.objects.get().state == Run.State.FINISHED


@pytest.mark.django_db(transaction=True)
def test_waiting_for_a_run_that_is_paused_ends_with_the_reason(
    project: Project, evaluator: ScriptedEvaluator
) -> None:
    evaluator.script = Script(faults={"quota": ""})
    name = make_endpoint(evaluator).name
    words = ("--project", "p", "--strategy", "reference", "--endpoint", name, "--wait")
    with pytest.raises(CommandError, match=r"Run 1 is paused: .*the quota is used up"):
        say("run_strategy", *words)


@pytest.mark.django_db(transaction=True)
def test_waiting_for_a_provider_s_pause_neither_spins_nor_says_the_same_twice(
    project: Project, evaluator: ScriptedEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluator.script = Script(faults={"rate_limited": "first:1"}, retry_after=1.5)
    slices, a_slice = [], ask.run_overlapping_slice
    monkeypatch.setattr(
        ask, "run_overlapping_slice", lambda *a, **k: slices.append(a) or a_slice(*a, **k)
    )
    name = make_endpoint(evaluator).name
    _, errors = say(
        "run_strategy", "--project", "p", "--strategy", "reference", "--endpoint", name, "--wait"
    )
    assert len(slices) < 20
    lines = errors.splitlines()
    assert len(lines) == len(set(lines)) > 1


def test_a_run_without_waiting_is_left_to_the_workers(project: Project) -> None:
    words = ("--project", "p", "--strategy", "rouge-l", "--endpoint", "baseline", "--limit", "3")
    begun = time.monotonic()
    out, _ = say("run_strategy", *words)
    assert out == "Run 1 of p: 3 items\n"
    assert time.monotonic() - begun < 5
    assert Run.objects.get().state == Run.State.PLANNING


def test_runs_of_one_seed_are_over_the_same_part(project: Project) -> None:
    for strategy in ("rouge-l", "length"):
        words = ("--strategy", strategy, "--endpoint", "baseline", "--limit", "2", "--seed", "7")
        say("run_strategy", "--project", "p", *words)
    first, second = Run.objects.order_by("number")
    assert (first.seed, second.seed) == (7, 7)
    parts = [set(run.outcomes.values_list("item", flat=True)) for run in (first, second)]
    assert parts[0] == parts[1]


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--project", "q", "There is no project 'q'"),
        ("--strategy", "nonsense", "There is no strategy 'nonsense'. Choose one of: axis,"),
        (
            "--endpoint",
            "nobody",
            "There is no endpoint 'nobody' that can be called",
        ),
        ("--strategy", "vanilla", "Strategy vanilla needs an evaluator LLM"),
        ("--limit", "0", "--limit must be 1 or more"),
        ("--seed", "-1", "--seed must be between"),
        ("--cap", "much", "--cap 'much' is not an amount"),
        ("--cap", "-1", "--cap must be more than 0"),
    ],
)
def test_what_cannot_be_run_is_said_with_the_remedy(
    project: Project, option: str, value: str, words: str
) -> None:
    options = {"--project": "p", "--strategy": "rouge-l", "--endpoint": "baseline", option: value}
    assert words in refused("run_strategy", *(part for pair in options.items() for part in pair))
    assert not Run.objects.exists()


def test_results_print_a_table_as_json_with_unrounded_rates(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    results = ["detected", "detected", "undetected", "missing"]
    make_judged(project, zip(project.items.order_by("position"), results, strict=True))
    found = table("undetected", capsys)
    assert found["table"] == "undetected"
    names = "run endpoint strategy run_name ability category total missing parsed"
    assert found["columns"] == [
        *(*names.split(), "detected", "undetected", "rate", "detection_rate", "undetected_rate"),
        *("low", "high", "reason"),
        *(f"both_good_{one}" for one in ("rate", "low", "high", "reason")),
        "score_invariant",
    ]
    (row,) = found["rows"]
    assert row | {"low": 0, "high": 0} == {
        "run": 1, "endpoint": "baseline", "strategy": "rouge-l", "run_name": None,
        "ability": "factual", "category": "number-errors",
        "total": 4, "missing": 1, "parsed": 3, "detected": 2, "undetected": 1,
        "rate": 1 / 3, "undetected_rate": 1 / 3, "detection_rate": 1 - 1 / 3,
        "low": 0, "high": 0, "reason": None, "both_good_rate": None, "both_good_low": None,
        "both_good_high": None, "both_good_reason": "not a pair", "score_invariant": False,
    }  # fmt: skip
    assert 0 < row["low"] < 1 / 3 < row["high"] < 1


def test_results_can_be_grouped_by_other_fields_and_narrowed_to_a_run(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    items = list(project.items.all())
    for _ in range(2):
        make_judged(project, [(item, "detected") for item in items])
    rows = table("undetected", capsys, "--run", "1", "2")["rows"]
    assert [row["run"] for row in rows] == [1, 2]
    (row,) = table("undetected", capsys, "--run", "2", "--by", "")["rows"]
    assert (row["run"], row["total"]) == (2, 4)
    assert "ability" not in row
    (row,) = table("undetected", capsys, "--run", "1", "--by", "source_ability")["rows"]
    assert row["source_ability"] == "factual"


def test_results_as_csv_have_the_same_columns(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    make_judged(project, [(item, "missing") for item in project.items.all()])
    call_command("results", "undetected", "--project", "p", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["missing"], row["rate"], row["reason"]) == ("4", "", "no items")
    call_command("results", "missing", "--project", "p", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["cause"], row["n"]) == ("truncated", "4")


@pytest.mark.parametrize("form", ["json", "csv", "tsv", "jsonl"])
def test_results_of_chosen_runs_come_in_every_format(
    project: Project, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(3):
        make_judged(project, [(item, "detected") for item in project.items.all()])
    words = ("--project", "p", "--run", "1", "3", "--format", form)
    call_command("results", "undetected", *words)
    out = capsys.readouterr().out
    if form == "json":
        rows = json.loads(out)["rows"]
    elif form == "jsonl":
        rows = [json.loads(line) for line in out.splitlines()]
    else:
        rows = list(
            csv.DictReader(io.StringIO(out), dialect="excel-tab" if form == "tsv" else "excel")
        )
    assert [(int(row["run"]), int(row["total"])) for row in rows] == [(1, 4), (3, 4)]


def test_votes_are_counted_over_runs_that_there_are(project: Project) -> None:
    for results in ("DDUU", "DUUU", "DDDU"):
        said = [{"D": "detected", "U": "undetected"}[one] for one in results]
        make_judged(project, zip(project.items.order_by("position"), said, strict=True))
    words = ("--project", "p", "--strategy", "majority")
    assert say("run_strategy", *words, "--over", "1", "2", "3")[0] == "Run 4 of p: 4 items\n"
    run = Run.objects.get(number=4)
    assert (run.kind, run.state) == ("derived", "finished")
    found = run.outcomes.order_by("item__position").values_list("result", flat=True)
    assert list(found) == ["detected", "detected", "undetected", "undetected"]
    assert "Choose two or more runs" in refused("run_strategy", *words, "--over", "1")
    assert "p has no run 8, 9." in refused("run_strategy", *words, "--over", "1", "8", "9")
    said = refused("run_strategy", *words, "--over", "1", "2", "--cap", "3", "--endpoint", "x")
    assert "majority combines runs. Leave out --endpoint, --cap" in said


def test_votes_have_a_veto_or_weights(project: Project) -> None:
    for results in ("DDUU", "DUUU", "DDDU"):
        said = [{"D": "detected", "U": "undetected"}[one] for one in results]
        make_judged(project, zip(project.items.order_by("position"), said, strict=True))

    def results(*words: str) -> list[str]:
        say("run_strategy", "--project", "p", "--strategy", *words)
        run = Run.objects.latest("number")
        return list(run.outcomes.order_by("item__position").values_list("result", flat=True))

    over = ("--over", "1", "2", "3")
    assert results("minority-veto", *over) == [*["detected"] * 3, "undetected"]
    # 1 + 2 of 5 detect the second item, 2 of 5 the third.
    weighted = ("weighted-votes", "--over", "3", "2", "1", "--weights", "2", "2", "1")
    assert results(*weighted) == ["detected", "detected", "undetected", "undetected"]
    # In the order of the run numbers, whatever the order of the words; part of the digest.
    first = Run.objects.latest("number")
    assert first.pinned["own"] == {"weights": [1, 2, 2]}
    results("weighted-votes", *over, "--weights", "1", "9", "1")
    assert Run.objects.latest("number").digest != first.digest
    results("weighted-votes", *over, "--weights", "1", "2", "2")
    assert Run.objects.latest("number").digest == first.digest


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--strategy weighted-votes --over 1 2", "Give run 1 a weight"),
        ("--strategy weighted-votes --over 1 2 --weights 1 0", "A weight is a number above 0"),
        ("--strategy weighted-votes --over 1 2 --weights 1 nan", "A weight is a number above 0"),
        ("--strategy weighted-votes --over 1 2 --weights 1", "one weight for each run"),
        ("--strategy majority --over 1 2 --weights 1 2", "Only weighted votes have weights"),
        ("--strategy rouge-l --endpoint baseline --weights 1", "Only weighted votes have weights"),
    ],
)
def test_weights_that_do_not_fit_are_refused(project: Project, words: str, message: str) -> None:
    for _ in range(2):
        make_judged(project, [(item, "detected") for item in project.items.all()])
    assert message in refused("run_strategy", "--project", "p", *words.split())
    assert Run.objects.count() == 2


def test_a_strategy_of_the_project_can_be_run(project: Project) -> None:
    own = make_version("rouge-l")
    own.project = project
    own.save()
    say("run_strategy", "--project", "p", "--strategy", own.slug, "--endpoint", "baseline")
    assert Run.objects.get().strategy == own


def test_who_is_asked_must_be_said_and_explanations_are_those_of_one_run(project: Project) -> None:
    for _ in range(2):
        make_judged(project, [(item, "detected") for item in project.items.all()])
    words = ("--project", "p", "--strategy", "reference")
    assert "Choose an evaluator: --endpoint NAME." in refused("run_strategy", *words)
    said = refused("run_strategy", *words, "--endpoint", "baseline", "--over", "1", "2")
    assert "Explanations of only one run can be checked" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--project", "q"), "There is no project 'q'. Choose one of: p."),
        (("--project", "p", "--run", "7"), "p has no run 7"),
        (("--project", "p", "--run", "7", "9"), "p has no run 7, 9"),
        (("--project", "p", "--by", "cluster"), "cannot be grouped by cluster"),
    ],
)
def test_results_that_cannot_be_given_say_why(
    project: Project, words: tuple[str, ...], message: str
) -> None:
    assert message in refused("results", "undetected", *words)


@pytest.mark.parametrize("name", ["items", "labels", "runs", "calls", "outcomes"])
@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_every_table_of_rows_is_written_whole_in_every_format(
    project: Project, tmp_path: Path, name: str, format: str
) -> None:
    make_run(project)
    path = tmp_path / f"{name}.{format}"
    _, said = say("export", name, "--project", "p", "--format", format, "--output", str(path))
    rows = len(path.read_text(encoding="utf-8").splitlines()) - (format == "csv")
    assert rows == {"items": 4, "labels": 0, "runs": 1, "calls": 0, "outcomes": 4}[name]
    assert said == f"{rows} rows of {name} written to {path}\n"
    assert Event.objects.filter(kind="export", subject=name).count() == 1


def test_an_export_that_cannot_be_written_leaves_nothing(project: Project, tmp_path: Path) -> None:
    path = tmp_path / "missing" / "items.csv"
    words = ("--project", "p", "--format", "csv", "--output", str(path))
    said = "items.csv: cannot be written (No such file or directory). Choose another file."
    assert said in refused("export", "items", *words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.django_db(transaction=True)
def test_a_command_works_on_runs_that_were_started_elsewhere_too(
    project: Project, evaluator: ScriptedEvaluator
) -> None:
    endpoint = make_endpoint(evaluator)
    other = make_run(project, endpoint)
    words = ("--project", "p", "--strategy", "vanilla", "--endpoint", endpoint.name, "--wait")
    say("run_strategy", *words)
    assert work(other).state == Run.State.FINISHED


def test_a_run_by_command_has_the_same_items_as_an_earlier_run(project: Project) -> None:
    endpoint = make_endpoint("http://127.0.0.1:9/v1", name="judge", price_in=1, price_out=1)
    first = make_run(project, endpoint, limit=2)
    words = ("--project", "p", "--strategy", "pairwise", "--endpoint", "judge")
    words += ("--same-as", str(first.number))
    said, _ = say("run_strategy", *words, "--estimate")
    assert re.search(r"^2 items, 4 calls, .* price 0\.0\d+ to 0\.0\d+ USD$", said, re.MULTILINE)
    assert "2 of the 2 items of run 1 can be used, 0 of them with a text that has changed" in said
    say("run_strategy", *words)
    again = Run.objects.get(number=2)
    assert set(again.outcomes.values_list("item", flat=True)) == set(
        first.outcomes.values_list("item", flat=True)
    )
    assert "p has no run 9" in refused("run_strategy", *words[:-1], "9")
    words = ("--project", "p", "--strategy", "majority", "--over", "1", "2", "--same-as", "1")
    assert "Leave out --same-as" in refused("run_strategy", *words)


def test_a_run_by_command_takes_what_the_form_takes(project: Project, tmp_path: Path) -> None:
    make_endpoint("http://127.0.0.1:9/v1", name="judge")
    keys = tmp_path / "keys.txt"
    keys.write_text("item-1\n\nitem-2\n", encoding="utf-8")
    words = ("--project", "p", "--strategy", "axis", "--endpoint", "judge", "--keys", str(keys))
    words += ("--ability", "factual", "--category", "number-errors", "--axis", "main")
    words += ("--samples", "3", "--votes", "--parameters", '{"temperature": 0.5}')
    said, _ = say("run_strategy", *words, "--estimate")
    # Two items, gold and perturbed along one axis, three samples of each.
    assert said.startswith(
        "2 items, 12 calls, 12 different requests, 0 already answered, 12 to send"
    )
    assert "price unknown" in said
    assert "Asks along each item's own axis\n" in said
    every, _ = say("run_strategy", *words, "--axis", "all", "--estimate")
    assert every.startswith("2 items, 48 calls, ")
    assert "Asks along all axes (4)\n" in every
    assert not Run.objects.exists()
    assert say("run_strategy", *words)[0] == "Run 1 of p: 2 items\n"
    own = {"parameters": {"temperature": 0.5}, "axes": ["main"], "votes": True}
    assert Run.objects.get().pinned["own"] == own
    # Items, not their outcomes along four axes.
    assert say("run_strategy", *words, "--axis", "all")[0] == "Run 2 of p: 2 items\n"
    assert say("clone_run", "2", "--project", "p")[0] == ("Run 3 of p, a clone of run 2: 2 items\n")


@pytest.mark.parametrize(
    "option, value, words",
    [
        ("--keys", "nowhere.txt", "--keys nowhere.txt"),
        ("--parameters", "{", "--parameters: Enter a JSON object"),
        ("--axis", "main", "has no axes"),
        ("--examples", "2", "no slot for examples"),
    ],
)
def test_what_does_not_fit_is_said_by_the_command(
    project: Project, option: str, value: str, words: str
) -> None:
    named = ("--project", "p", "--strategy", "rouge-l", "--endpoint", "baseline")
    assert words in refused("run_strategy", *named, option, value)


def test_a_canary_is_begun_by_command(project: Project) -> None:
    make_endpoint("http://127.0.0.1:9/v1", name="judge")
    say(
        "run_strategy",
        "--project",
        "p",
        "--strategy",
        "reference",
        "--endpoint",
        "judge",
        "--canary",
    )
    assert Run.objects.get().occasion.startswith("canary ")
