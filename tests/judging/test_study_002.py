"""The three evaluations of study 002 from its items to its figures: the items of tables A7 to A9
are imported and labelled, an evaluator over HTTP is asked with the shipped strategy, and gives the
scores that the study prints for its models.

An evaluation is a row of `ROWS`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from annotation.models import Project
from judging.models import Run
from judging.results.tables.alignment import tabulate_alignment
from judging.runs import lifecycle
from judging.runs.run_config import RunOverrides
from tests.judging import published_scores
from tests.judging.builders_judging import make_endpoint, make_strategy, work
from tests.judging.builders_rated import bring_items, bring_labels, only, runs_of
from tests.judging.published_scores import Evaluation
from tests.judging.test_published_scores import ALIGNMENT, digits, printed
from tests.services.scripted_evaluator import Script, ScriptedEvaluator
from tests.services.scripted_judge import Judge

QUESTION = "What kind of animal is that? Be as specific as possible."
_SECTION = re.compile(r"^\[BEGIN ([A-Z ]+)\]\n(.*?)\n\[END \1\]$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class StudyRow:
    """An evaluation: its number, its printed scores, our task type and strategy, the number of
    requests of a run, and the study's figures with how many of their cells agree. `lacking` is the
    number of missing scores by model and metric."""

    number: int
    scores: Callable[[str], Evaluation]
    task_type: str
    strategy: str
    requests: int
    figures: tuple[str, ...]
    agreeing: int
    lacking: Mapping[tuple[str, str], int] = field(default_factory=dict)


ROWS = {
    # Where Llama-3's score was not available, the study has -1.
    "1": StudyRow(1, published_scores.figure_3, "rubric-one-score", "score-rubric", 4,
                  ("figure 4",), 4,
                  {("Meta-Llama-3-8B-Instruct", metric): 2 for metric in ("score", "total")}),
    # The 25 items have 14 different responses, whose words are picked out and sorted once, and
    # scored against each ground truth.
    "2": StudyRow(2, published_scores.evaluation_2, "rubric-matrix", "score-chain", 14 + 14 + 25,
                  ("figure 6",), 1),
    # Table A4 has 4 points of 3 in one metric of DSI12.
    "3": StudyRow(3, published_scores.evaluation_3, "rubric-scoring", "score-matrix-animals", 25,
                  ("figure 7", "figure 8", "figure 9"), 24,
                  {("Llama-2", metric): 1 for metric in ("m5", "total")}),
}  # fmt: skip


@dataclass(frozen=True)
class PrintedJudge(Judge):
    """Gives the scores that the study prints for one model, by the ground truth that it is shown,
    in the form that the prompt asks for; earlier steps of a chain hand on what they are shown."""

    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def answer(self, prompt: str) -> str:
        shown = {name: text.strip() for name, text in _SECTION.findall(prompt)}
        if "GROUND TRUTH" not in shown:
            return f"<RESULT>{shown.get('TEXT') or shown['KEYWORDS']}</RESULT>"
        said = {name: int(value) for name, value in self.scores[shown["GROUND TRUTH"]].items()}
        listed = ", ".join(f"{name}: {value}" for name, value in said.items())
        if said.get("score") == -1:
            return "I give no score."
        if "<RESULT>" in prompt:
            return f"Compared with the ground truth.\n<RESULT>{listed}</RESULT>"
        if "[RESULT]" in prompt:
            return f"Feedback: compared with the ground truth. [RESULT] {said['score']}"
        return str({"explanation": "Compared.", **said}).replace("'", '"')


def bring_study(folder: Path, row: StudyRow, study: str) -> Project:
    """The project of an evaluation: its items, with the study's person as annotator."""
    told, texts = row.scores(study), published_scores.data_set(study, row.number)
    items = [
        {"key": key, "prompt": QUESTION, "response": texts[key][0], "gold": texts[key][1]}
        for key in told.people
    ]
    project = bring_items(folder, row.task_type, items, row.task_type)
    bring_labels(folder, project, ((key, "human", said) for key, said in told.people.items()))
    return project


def ask(
    row: StudyRow, study: str, project: Project, model: str, evaluator: ScriptedEvaluator
) -> Run:
    """A finished run of one of the study's models over all items."""
    said, texts = row.scores(study).models[model], published_scores.data_set(study, row.number)
    scores = {texts[key][1]: points for key, points in said.items()}
    evaluator.script = Script(judge=PrintedJudge(scores=scores))
    run = lifecycle.start_run(
        project,
        strategy=make_strategy(row.strategy),
        endpoint=make_endpoint(evaluator, name=model),
        # Otherwise the three examples would be items of the study.
        config=lifecycle.RunConfig(seed=1, own=RunOverrides(examples=0)),
    )
    return work(run)


def test_tables_of_items_are_whole(shared_data: Path) -> None:
    study = published_scores.text(shared_data)
    found = [published_scores.data_set(study, number) for number in (1, 2, 3)]
    assert [len(one) for one in found] == [5, 25, 25]
    assert found[0]["DSI5"] == ("Parrot", "African Grey Parrot")
    assert found[1]["DSI1"][0].endswith(
        "known for its distinctive plumage and elaborate tail feathers."
    )
    assert found[2]["DSI16"][1].endswith("Species: Blue-chinned sapphire")
    assert all(response and truth for one in found for response, truth in one.values())


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ROWS)
def test_an_evaluation_gives_the_figures_of_the_study(
    name: str, shared_data: Path, tmp_path: Path, evaluator: ScriptedEvaluator
) -> None:
    row, study = ROWS[name], published_scores.text(shared_data)
    told = row.scores(study)
    project = bring_study(tmp_path, row, study)
    for model in told.models:
        run = ask(row, study, project, model, evaluator)
        assert run.state == "finished"
        asked = [one for one in evaluator.log if one["model"] == run.endpoint.model]
        assert len(asked) == row.requests
    rows = list(tabulate_alignment(project, runs_of(project), []))
    missing = {(one["endpoint"], one["metric"]): one["missing"] for one in rows if one["missing"]}
    assert missing == row.lacking
    compared = 0
    for cell in (cell for figure in row.figures for cell in printed(ALIGNMENT, table=figure)):
        of = cell["model"], cell["metric"]
        # Of four items, evaluation 2 is in test_published_scores; in figure 7 and 9, the study
        # counts the score above its scale.
        if cell["model"] not in told.models or (row.number == 3 and of in row.lacking):
            continue
        value = only(rows, endpoint=of[0], metric=of[1])[cell["figure"]]
        same = digits(value, cell["value"], cell["printed"]) == cell["value"]
        # In figure 4 the reason tells of the scores that are missing here.
        assert same is (not cell["reason"] or row.number == 1), (cell, value)
        compared += same
    assert compared == row.agreeing
