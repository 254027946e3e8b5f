"""Every command of docs/studies.md does what its row says, typed as it is written there: tables
have rows, runs end with results, and each human step begins with what the step before left. Result
pages that it names have figures."""

import csv
import json
import shlex
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from annotation.models import Item, Label, Project
from judging.models import Endpoint, Run
from judging.runs import lifecycle
from tests.annotation.test_agreement import people_of
from tests.builders import make_project
from tests.judging.builders_cases import CASES
from tests.judging.builders_decided import make_audit, make_every_frame, scores
from tests.judging.builders_detecting import (
    judge,
    make_sets,
    rate_endpoint,
    say_kinds,
    say_softly,
)
from tests.judging.builders_judging import (
    answer_as,
    make_endpoint,
    make_items,
    make_responses,
    make_run,
)
from tests.services.scripted_judge import Judge
from tests.test_studies_document import ADDRESSES, COMMANDS

pytestmark = pytest.mark.django_db

NOBODY = "http://127.0.0.1:1/v1"
LINES = [line for line in COMMANDS if " " in line]
TABLES = [line for line in LINES if line.startswith("results ")]
RUNS = [line for line in LINES if line.startswith("run_strategy ")]
# The project whose runs a table of study 001, 002 or 003 is about; the others are of study 000.
OF_ERRORS = {
    "audit_classes", "bias", "changes", "dataset", "detector", "error_kinds", "pace", "soft_labels",
    "strength", "strength_points",
}  # fmt: skip
OF_RATINGS = {"alignment", "alignment_groups", "by_score", "majority", "overlap", "points"}


def type_line(line: str, project: str) -> None:
    name, *words = shlex.split(line.replace("--endpoint NAME", "--endpoint judge"))
    call_command(name, *words, "--project", project)


def finish(run: Run, say: Callable[[str], str] | None = None) -> Run:
    """The run with every request answered, by the scripted judge unless told."""
    lifecycle.plan_calls(run)
    while answer_as(run, say or answer):
        lifecycle.finish_if_done(run)
    run.refresh_from_db()
    return run


def answer(body: str) -> str:
    return Judge().answer("\n\n".join(one["content"] for one in json.loads(body)["messages"]))


def give_equal_scores(body: str) -> str:
    return '{"explanation": "The same.", "score": 5}'


def start(project: Project, strategy: str, **values: Any) -> Run:
    return make_run(project, make_judge(), strategy, **values)


def make_judge() -> Endpoint:
    return Endpoint.objects.filter(name="judge").first() or make_endpoint(NOBODY, name="judge")


def write(path: str, *rows: Mapping[str, Any]) -> None:
    with Path(path).open("w", encoding="utf-8", newline="") as stream:
        table = csv.DictWriter(stream, rows[0])
        table.writeheader()
        table.writerows(rows)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which commands are typed."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def projects(module_db: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Project]:
    """A project of study 000, one of study 001, and one of studies 002 and 003."""
    return {
        "perturbed": make_perturbed(),
        "errors": make_errors(),
        "ratings": make_ratings(tmp_path_factory.mktemp("ratings")),
    }


def make_perturbed() -> Project:
    project = make_project("perturbed")
    items = [
        *make_items(project, 4, origin="generated"),
        *make_items(project, 2, "score-invariant"),
    ]
    make_every_frame(project, items, [scores(9, 5), scores(9, 9)])
    return project


def make_errors() -> Project:
    """Two evaluators of known strength with the four prompts and evaluation steps; two people per
    item; an audit of explanations."""
    project = make_project("errors", task_type="error-detection", overlap=2)
    items = make_sets(project, 2, 2, response_model="gpt-4")
    drawn = {"drawn_errors": "2", "drawn_final_answer": "stays"}
    Item.objects.in_project(project).update(fields=drawn | items[0].fields)
    say_kinds(items[:2], ["reasoning-correctness"], ["instruction-following"])
    for name, elo in (("weak", 1000), ("strong", 1200)):
        endpoint = rate_endpoint(name, Elo=elo)
        for strategy in ("detect-1a", "detect-1b", "detect-2a", "detect-2b", "detect-steps"):
            run = judge(items, "DDUD", strategy, endpoint=endpoint)
    say_softly(items, people_of(project, "ann", "bob"), ["ee", "en", "nn", "nn"])
    make_audit(run, (True, "correct"), (False, "wrong"))
    return project


def make_ratings(folder: Path) -> Project:
    """Responses of two models to three tasks, rated by three people, by the commands of the rows;
    a run of an evaluator and one of ROUGE-L."""
    items = [
        {
            "key": f"{task}-{model}-{n}",
            "task": task,
            "model": model,
            "language": ("en", "sv")[n % 2],
            "prompt": "Name a river.",
            "gold": f"The Loire is one of {n} rivers.",
            "response": f"The Rhine is one of {n} rivers.",
        }
        for task in ("a", "b", "c")
        for model in ("small", "large")
        for n in range(2)
    ]
    metrics = ("naturalness", "relatedness", "correctness")
    labels = [
        {"item": one["key"], "rater": rater, "time": "2026-01-01T00:00:00Z"}
        | {metric: 1 + (n + len(metric)) % 3 for metric in metrics}
        for n, one in enumerate(items)
        for rater in ("ann", "bob", "cid")
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write("responses.csv", *items)
        write("ratings.csv", *labels)
        type_line("import_items responses.csv --create --task-type rating", "ratings")
        type_line("import_labels ratings.csv", "ratings")
    project = Project.objects.get(slug="ratings")
    finish(start(project, "likert"))
    overlap = make_run(project, strategy="rouge-l-response")
    for n, outcome in enumerate(overlap.outcomes.all()):
        outcome.result, outcome.values = "scored", {"score": n / 20}
        outcome.save()
    Run.objects.filter(pk=overlap.pk).update(state=Run.State.FINISHED)
    return project


@pytest.mark.parametrize("line", TABLES)
def test_a_table_has_rows(
    line: str, projects: dict[str, Project], capsys: pytest.CaptureFixture[str]
) -> None:
    table = line.split()[1]
    kind = "errors" if table in OF_ERRORS else "ratings" if table in OF_RATINGS else "perturbed"
    type_line(line, projects[kind].slug)
    assert json.loads(capsys.readouterr().out)["rows"]


@pytest.mark.parametrize("address", [one for one in ADDRESSES if one.startswith("results/")])
def test_a_result_page_has_figures(
    address: str, projects: dict[str, Project], admin_client: Client
) -> None:
    page, view = address.removeprefix("results/").split("/?view=")
    of_errors = page in {"detector", "agreement"} or view in {"audits", "items", "shares"}
    kind = "ratings" if page == "people" else "errors" if of_errors else "perturbed"
    shown = admin_client.get(f"/projects/{projects[kind].slug}/{address}").content.decode()
    assert "No figures here yet" not in shown
    assert "<table" in shown


@pytest.mark.parametrize("line", RUNS)
def test_a_run_ends_with_a_result_for_each_item(line: str) -> None:
    words = shlex.split(line)
    case = CASES[words[words.index("--strategy") + 1]]
    project = case.project()
    make_judge()
    over = words[words.index("--over") + 1 :] if "--over" in words else []
    for n, number in enumerate(one for one in over if one.isdecimal()):
        # On the endpoint of another run, a run would supersede it.
        base = make_run(project, make_endpoint(NOBODY), case.over[n % len(case.over)])
        finish(base, give_equal_scores if base.strategy.slug == "vanilla" else None)
        Run.objects.filter(pk=base.pk).update(number=number)
    type_line(line, project.slug)
    run = Run.objects.in_project(project).latest("pk")
    if run.endpoint.is_offline:
        assert run.outcomes.count() == 3
        return
    finish(run)
    assert run.state == Run.State.FINISHED
    assert {one.result for one in run.outcomes.all()} <= case.results
    assert run.outcomes.exists()


@pytest.mark.usefixtures("folder")
def test_prompts_are_sorted_and_get_gold_answers_of_which_people_check_a_share() -> None:
    write("prompts.csv", *({"key": f"q{n}", "prompt": f"Name river {n}."} for n in range(8)))
    write("more.csv", {"key": "more", "prompt": "List rivers.", "ability": "factual"})
    for slug in ("sorted", "answered"):
        type_line("import_items prompts.csv --create --task-type gold-verification", slug)
    type_line("import_items more.csv", "sorted")
    assert Item.objects.get(key="more").ability == "factual"
    project = Project.objects.get(slug="sorted")
    finish(start(project, "suggest-ability"))
    type_line("take_suggestions --run 1", "sorted")
    assert Item.objects.in_project(project).filter(fields__has_key="suggested_ability").count() >= 8
    project = Project.objects.get(slug="answered")
    finish(start(project, "generate-gold"))
    type_line("bring_in --run 1 --share 25", "answered")
    answered = [one for one in Item.objects.in_project(project) if one.revision().texts["gold"]]
    assert len(answered) == 8
    assert sum(one.slots.exists() for one in answered) == 2


def test_paraphrases_are_accepted_but_for_a_share_that_people_check() -> None:
    project = make_project("p")
    make_items(project, 3)
    finish(start(project, "generate-score-invariant"))
    type_line("bring_in --run 1 --share 25 --accept", "p")
    made = Item.objects.in_project(project).filter(category="score-invariant")
    assert made.exclude(slots=None).count() == 1
    assert made.filter(resolutions__value="score-invariant").count() == 2


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "perturb --with spelling numbers --errors 1 2 4",
            [(one, dose) for one in ("number-errors", "spelling") for dose in (1, 2, 4)],
        ),
        ("perturb --with spelling --errors 4", [("spelling", 4)]),
    ],
)
def test_errors_are_made_by_rule_so_many_at_a_time(
    line: str, expected: list[tuple[str, int]]
) -> None:
    project = make_project("p")
    of_stories = {"ability": "long-form", "source_ability": "long-form", "category": "spelling"}
    items = make_items(project, 1), make_items(project, 1, **of_stories)
    gold = (
        "The 33 broad rivers of this northern country carry 40 wooden vessels between ancient "
        "harbours. Every summer 1200 travellers follow 56 narrow branches towards quiet mountain "
        "villages, where 78 families still repair nets, dry herbs and remember 19 winter floods."
    )
    texts = {"gold": gold, "perturbed": "None."}
    for [item] in items:
        item.revisions.update(texts=texts | {"prompt": item.key})
    type_line(line, "p")
    made = Item.objects.in_project(project).exclude(dose=None)
    assert sorted((one.category, one.dose) for one in made) == expected


@pytest.mark.usefixtures("folder")
def test_the_archive_of_study_000_is_imported_as_it_is() -> None:
    line = "lf-1\tWhy?\tSo.\tSoo.\n"
    with zipfile.ZipFile("data.zip", "w") as archive:
        name = "data/long-form/spelling-errors.tsv"
        archive.writestr(name, f"cdx\tquestion\tog\tperturbed_gpt4\n{line}")
    type_line("import_items data.zip --create --accept", "fbi")
    assert Item.objects.get(project__slug="fbi").category == "spelling"


@pytest.mark.usefixtures("folder")
def test_scores_of_pictures_are_imported_as_labels() -> None:
    texts = {"prompt": "Which animal?", "response": "A gull.", "gold": "A gannet."}
    write("pictures.csv", {"key": "DSI1", **texts})
    scored = {"item": "DSI1", "rater": "human", "time": "2026-01-01T00:00:00Z"}
    write("labels.csv", scored | {"m1": 2, "m2": 0, "m3": 0, "m4": 0, "m5": 1})
    type_line("import_items pictures.csv --create --task-type rubric-scoring", "animals")
    type_line("import_labels labels.csv", "animals")
    label = Label.objects.get(project__slug="animals")
    assert label.answers == {"m1": 2, "m2": 0, "m3": 0, "m4": 0, "m5": 1}


def test_outcomes_are_exported_with_a_row_each(projects: dict[str, Project], folder: Path) -> None:
    type_line("export outcomes --format csv --output PATH", "perturbed")
    with (folder / "PATH").open(encoding="utf-8") as stream:
        exported = list(csv.DictReader(stream))
    kept = sum(run.outcomes.count() for run in Run.objects.in_project(projects["perturbed"]))
    assert len(exported) == kept


def test_a_detectors_replies_are_read_by_the_phrases(capsys: pytest.CaptureFixture[str]) -> None:
    project = CASES["detect-1a"].project()
    finish(start(project, "detect-1a"))
    type_line("reparse_run 1 --parser phrases-001", project.slug)
    assert "0 of 3 outcomes differ with parser" in capsys.readouterr().out


def test_explanations_of_two_detectors_go_to_people() -> None:
    project = CASES["detect-1a"].project()
    for number in (6, 17):
        run = finish(make_run(project, make_endpoint(NOBODY), "detect-1a"))
        Run.objects.filter(pk=run.pk).update(number=number)
    type_line("make_audit --run 6 --run 17 --into explanations", project.slug)
    assert Item.objects.filter(project__slug="explanations").count() == 6


def test_20_tasks_are_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    project = make_project("p", task_type="rating")
    values = dict.fromkeys(("naturalness", "relatedness", "correctness"), 3)
    for n, item in enumerate(make_responses(project, ["3/3/3"] * 50, **values)):
        Item.objects.filter(pk=item.pk).update(fields={"task": f"t{n % 25}"})
    run = make_run(project, strategy="rouge-l-response")
    for n, outcome in enumerate(run.outcomes.all()):
        outcome.result, outcome.values = "scored", {"score": n * n % 37 / 37}
        outcome.save()
    type_line("draw_tasks --run 1 --by task --number 20", "p")
    assert len(set(capsys.readouterr().out.split())) == 20


def test_every_other_command_is_typed_above() -> None:
    here = Path(__file__).read_text(encoding="utf-8")
    others = [line for line in LINES if line not in {*TABLES, *RUNS}]
    assert len(others) > 10
    assert [line for line in others if f'"{line}"' not in here] == []
