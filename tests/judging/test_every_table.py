"""Every table of figures: its columns, and that command, file and API say the same."""

import json
import re

import pytest
from django.core.management import call_command
from django.test import Client

from annotation.models import Project
from judging.results import columns, figures, tables
from tests.judging.builders_decided import make_every_frame, scores
from tests.judging.builders_judging import make_items

pytestmark = pytest.mark.django_db

# Tables that have rows for the runs below; the others are of studies with other frames.
WITH_ROWS = {
    "categories", "undetected", "scores", "score_changes", "verdicts", "order_effect", "repeats",
    "explanations", "sensitivity", "doses", "dose_trends", "penalties", "compare", "blindspots",
    "cost", "missing", "dataset", "left_out",
}  # fmt: skip
# What was decided that each table has, whatever stands beside; `RUNS` besides where it is of runs.
RUNS = ("run", "endpoint", "strategy", "total", "missing")
DECIDED = {
    "categories": "ability category items",
    "undetected": "ability category parsed detected undetected rate detection_rate"
    " undetected_rate low high",
    "verdicts": "ability category G P both_good both_bad mixed first_twice second_twice half_tie",
    "scores": "lower equal higher mean_gold mean_pert top top1 top2 below_top2",
    "explanations": "equal found rate_after",
    "detector": "ability category n invalid accuracy precision recall f1 mcc reason",
    "alignment": "metric ability category n rho pearson tau rmse mae bias accuracy002 mean_people"
    " mean_evaluator",
    "agreement": "field measure n_items n_raters value low high reason",
    "compare": "run_a run_b n only_a only_b difference low high p p_holm total missing",
    "blindspots": "slice n clusters rate rest difference p q",
    "missing": "cause category n lowest highest",
    "cost": "calls tokens cost per_detected",
    "dataset": "ability category n of value share mean",
}
OF_NO_RUN = {"categories", "agreement", "compare", "dataset"}


@pytest.mark.parametrize(("table", "names"), DECIDED.items())
def test_a_table_has_the_columns_that_were_decided(table: str, names: str) -> None:
    wanted = {*names.split(), *(() if table in OF_NO_RUN else RUNS)}
    assert wanted <= set(tables.RESULT_TABLES[table].list_columns(["ability", "category"]))


def test_help_says_by_what_each_table_can_be_grouped() -> None:
    said = [part.partition(": ")[::2] for part in figures.describe_grouping().split("; ")]
    words = {name: fields for names, fields in said for name in re.split(", | and ", names)}
    assert {name for name, table in tables.RESULT_TABLES.items() if table.group_by} == words.keys()
    assert words["undetected"].startswith("ability, category, source_ability")
    assert "answer_length" in words["alignment"]
    assert "answer_length" not in words["detector"]
    grouped = {name for name, one in tables.RESULT_TABLES.items() if columns.FIELDS in one.columns}
    assert grouped <= words.keys()


@pytest.fixture
def judged(project: Project) -> Project:
    """A run of every frame of study 000 over twelve error items and two score-invariant ones."""
    items = [
        *make_items(project, 10, dose=1),
        *make_items(project, 2, category="spelling", ability="long-form"),
        *make_items(project, 2, "score-invariant"),
    ]
    apart = [scores(9, 5), scores(9, 9), scores(8, 9), scores(9, None)]
    make_every_frame(project, items, apart)
    return project


def test_page_and_api_give_what_the_command_prints(
    judged: Project, browser: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in tables.RESULT_TABLES:
        call_command("results", name, project="fbi", format="json")
        printed = json.loads(capsys.readouterr().out)
        assert printed["columns"] == list(
            tables.RESULT_TABLES[name].list_file_columns(["ability", "category"])
        )
        assert browser.get(f"/api/v1/projects/fbi/results/{name}/").json() == printed
        assert browser.get(f"/projects/fbi/results/{name}.json").json() == printed
        assert bool(printed["rows"]) or name not in WITH_ROWS, name


@pytest.mark.parametrize(("form", "suffix"), [("csv", "csv"), ("latex", "tex"), ("markdown", "md")])
def test_files_are_what_the_command_prints(
    judged: Project, browser: Client, capsys: pytest.CaptureFixture[str], form: str, suffix: str
) -> None:
    for name in tables.RESULT_TABLES:
        call_command("results", name, project="fbi", format=form)
        sent = browser.get(f"/projects/fbi/results/{name}.{form}")
        assert sent.content.decode().splitlines() == capsys.readouterr().out.splitlines()
        assert f"fbi-{name}.{suffix}" in sent.headers["Content-Disposition"]


def test_a_rate_has_names_that_say_which_way_it_counts(judged: Project) -> None:
    is_detection = {
        "undetected": False, "repeats": False, "blindspots": False, "planning_rates": True
    }  # fmt: skip
    runs = list(judged.runs.for_results())
    for name, table in tables.RESULT_TABLES.items():
        columns_of = table.list_columns(["ability", "category"])
        assert ("detection_rate" in columns_of) == (name in is_detection), name
        if name not in is_detection:
            continue
        same, other = ("detection_rate", "undetected_rate")[:: 1 if is_detection[name] else -1]
        at = columns_of.index("rate")
        assert columns_of[at : at + 3] == ("rate", "detection_rate", "undetected_rate")
        rows = list(table.rows(judged, runs, ["ability", "category"]))
        assert {row["rate"] for row in rows} - {0, 1, None}, name
        for row in rows:
            assert row[same] == row["rate"]
            assert row[other] == (None if row["rate"] is None else 1 - row["rate"])
        if name == "undetected":
            assert all(
                row["detection_rate"] == pytest.approx(row["detected"] / row["parsed"])
                for row in rows
                if row["parsed"]
            )


def test_a_row_has_a_value_or_a_dash_for_every_column_and_nothing_besides(judged: Project) -> None:
    by = ["ability", "category"]
    runs = list(judged.runs.for_results())
    for name in WITH_ROWS:
        for row in tables.RESULT_TABLES[name].rows(judged, runs, by):
            assert sorted(row) == sorted(tables.RESULT_TABLES[name].list_columns(by)), name
