"""An input that was made of a seed is a question of its own."""

import json

import pytest

from annotation.models import Project, Role
from judging.errors import Refused
from judging.generation import choices, rows
from judging.models import Run
from judging.runs import lifecycle
from tests.builders import make_item, make_member, make_project
from tests.judging.builders_judging import answer_as, make_endpoint, make_run

pytestmark = pytest.mark.django_db

SAID = {"input": "How many legs do two spiders have?", "context": "", "rationale": "It is hard."}


@pytest.fixture
def run() -> Run:
    """What was made of a prompt that has its gold answer already."""
    seeds = make_project("seeds", task_type="gold-verification")
    seed = make_item(seeds, "one", category="", fields={"gold_generator": "generate-gold v1"})
    seed.revisions.update(texts={"prompt": "How many legs has a spider?", "gold": "Eight."})
    run = make_run(seeds, make_endpoint("http://127.0.0.1:1/v1"), "generate-planted")
    lifecycle.plan_calls(run)
    answer_as(run, lambda body: json.dumps(SAID))
    return run


def test_an_input_waits_for_a_gold_answer_of_its_own(run: Run) -> None:
    (made,) = rows.build_rows(run, make_project("inputs", task_type="gold-verification"))
    assert (made.values["prompt"], made.values["gold"]) == (SAID["input"], "")
    assert "gold_generator" not in made.values
    assert made.values["source_item"] == "one"


def test_an_input_goes_to_no_project_that_needs_an_answer_beside_it(run: Run) -> None:
    target: Project = make_project("responses", task_type="error-detection")
    with pytest.raises(Refused, match="needs"):
        rows.check(run, target)


def test_responses_to_prompts_go_to_people_who_look_for_errors_in_them() -> None:
    prompts = make_project("prompts", task_type="gold-verification")
    lead = make_member(prompts, Role.LEAD, "ada")
    make_item(prompts, "one", category="").revisions.update(texts={"prompt": "How many?"})
    for slug, task in [("labelled", "error-detection"), ("vetting", "perturbation-vetting")]:
        make_member(make_project(slug, task_type=task), Role.LEAD, "ada", account=lead.account)
    run = make_run(prompts, make_endpoint("http://127.0.0.1:1/v1"), "generate-response")
    lifecycle.plan_calls(run)
    answer_as(run, lambda body: "Eight.")
    offered = choices.list_targets(run, lead.account)
    assert [one.slug for one in offered] == ["prompts", "labelled"]
    assert choices.default_target(run, offered) == "prompts"
