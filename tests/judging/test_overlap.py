"""ROUGE-L by task: the table, its view, and the command that draws tasks."""

import io
from statistics import fmean, stdev
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Item, Resolution, Revision
from judging.models import Run
from judging.results.tables import alignment_groups, methods
from judging.results.tables.overlap import tabulate_overlap
from tests.builders import make_project
from tests.judging.builders_judging import make_items, make_responses, make_run, work
from tests.judging.test_result_pages import lines


@pytest.fixture
def run() -> Run:
    project = make_project("p")
    for task in range(4):
        make_items(project, 12 if task else 1, fields={"task": f"t{task}"})
    return work(make_run(project))


def draw(*words: str) -> list[str]:
    out = io.StringIO()
    call_command("draw_tasks", "--project", "p", *words, stdout=out)
    return out.getvalue().split()


@pytest.mark.django_db(transaction=True)
def test_each_task_has_mean_and_sd_of_its_scores(run: Run) -> None:
    rows = {row["task"]: row for row in tabulate_overlap(run.project, [run], ["task"])}
    outcomes = run.outcomes.filter(item__fields__task="t1")
    scores = [one.values["perturbed"] for one in outcomes]
    row: dict[str, Any] = rows["t1"]
    assert (row["n"], row["mean"]) == (12, pytest.approx(fmean(scores)))
    assert row["sd"] == pytest.approx(stdev(scores), abs=1e-9)
    # "2 spiders have 16 legs."
    assert row["words"] == 5
    assert (rows["t0"]["n"], rows["t0"]["sd"], rows["t0"]["sd_reason"]) == (1, None, "one value")
    assert "under 10 clusters" in rows["t0"]["mean_reason"]


@pytest.mark.django_db(transaction=True)
def test_tasks_are_drawn_from_the_figures_of_a_run(run: Run) -> None:
    assert draw("--run", "1", "--number", "3") == ["t1", "t2", "t3"]
    assert draw("--run", "1", "--number", "1", "--keep", "t2") == ["t2"]
    assert draw("--run", "1", "--number", "2", "--leave-out", "t2") == ["t1", "t3"]
    with pytest.raises(CommandError, match="from 1 to 3"):
        draw("--run", "1")
    with pytest.raises(CommandError, match="t0: only one score"):
        draw("--run", "1", "--number", "2", "--keep", "t0")
    with pytest.raises(CommandError, match="p has no run 7"):
        draw("--run", "7")


@pytest.mark.django_db(transaction=True)
def test_the_page_shows_the_table_and_names_the_command(run: Run, admin_client: Any) -> None:
    address = f"/projects/{run.project.slug}/results/people/?view=overlap&by=task"
    page = admin_client.get(address).text
    assert "ROUGE-L by group" in page
    assert [row[1] for row in lines(page)] == ["t0", "t1", "t2", "t3"]
    assert "draw_tasks" in page


@pytest.mark.django_db(transaction=True)
def test_rouge_l_measures_responses_that_nobody_has_rated_yet(admin_client: Any) -> None:
    project = make_project("p", task_type="rating")
    for task in range(3):
        for item in make_responses(
            project, ["3/3/3"] * 2, naturalness=3, relatedness=3, correctness=3
        ):
            Item.objects.filter(pk=item.pk).update(fields={"task": f"t{task}"})
    Resolution.objects.filter(item__fields__task="t0").delete()
    asked = {"project": "p", "strategy": "rouge-l-response", "endpoint": "baseline", "wait": True}
    call_command("run_strategy", **asked)
    call_command("run_strategy", **asked, unlabelled=True)
    assert draw("--run", "1", "--number", "2") == ["t1", "t2"]
    assert draw("--run", "2", "--number", "3") == ["t0", "t1", "t2"]
    first, second = Run.objects.order_by("number")
    assert [row["n"] for row in tabulate_overlap(project, [second], ["task"])] == [2, 2, 2]
    # No figure about the evaluator counts them, and the page says who does.
    assert second.outcomes.counted().count() == first.outcomes.counted().count() == 4
    page = "/projects/p/results/people/?view=correlations&run=2"
    assert "2 items had no final label when evaluated" in admin_client.get(page).content.decode()
    assert "only ROUGE-L by task uses them" in methods.write_methods(project, [second]).text
    Revision.objects.filter(item__fields__task="t0").update(number=7)
    assert [row["n"] for row in tabulate_overlap(project, [second], ["task"])] == [2, 2]
    with pytest.raises(CommandError, match="Only error detection and ROUGE-L"):
        call_command("run_strategy", **asked | {"strategy": "string-match"}, unlabelled=True)


@pytest.mark.django_db(transaction=True)
def test_a_run_that_chose_tasks_before_anybody_rated_has_no_figures_over_groups() -> None:
    project = make_project("p", task_type="rating")
    items = make_responses(project, ["3/3/3"] * 2, naturalness=3, relatedness=3, correctness=3)
    resolutions = Resolution.objects.filter(item__in=items)
    asked = {"project": "p", "strategy": "rouge-l-response", "endpoint": "baseline", "wait": True}
    resolutions.update(current=False)
    call_command("run_strategy", **asked, unlabelled=True)
    resolutions.update(current=True)
    call_command("run_strategy", **asked)
    rows = list(alignment_groups.tabulate_groups(project, list(Run.objects.all()), []))
    assert {row["run"] for row in rows} == {2}
