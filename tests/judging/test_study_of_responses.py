"""From seeds to responses that people label, as study 001 did: inputs, then what a model makes of
them, then error detection."""

import json

import pytest

from annotation.generation.release import ReleasePolicy
from annotation.models import Item, Project, Slot
from judging.generation import bring_in
from judging.generation.bring_in import BringInRequest
from judging.models import Run
from judging.runs import lifecycle
from tests.builders import make_item, make_project
from tests.judging.builders_judging import answer_as, make_endpoint, make_run

pytestmark = pytest.mark.django_db

NOBODY = "http://127.0.0.1:1/v1"
EVIDENCE = "line 1: The Loire rises in the Ardèche.\nline 2: It is 1006 km long."
CLAIM = {
    "input": "Is this supported? The Loire, 1012 km long, rises in the Ardèche.",
    "context": EVIDENCE,
    "rationale": "The length is off by little.",
}


def ended(run: Run, text: str, seen: list[str]) -> Run:
    """The run with every request answered alike."""

    def say(body: str) -> str:
        seen.append(body)
        return text

    lifecycle.plan_calls(run)
    answer_as(run, say)
    lifecycle.finish_if_done(run)
    run.refresh_from_db()
    return run


def bring(run: Run, target: Project) -> Item:
    bring_in.bring_in_replies(BringInRequest(run, target, ReleasePolicy()), None)
    return Item.objects.in_project(target).get()


def test_seeds_become_inputs_whose_responses_people_look_for_errors_in() -> None:
    seeds, inputs = (make_project(name, task_type="gold-verification") for name in ("s", "i"))
    labelled = make_project("r", task_type="error-detection")
    seed = make_item(seeds, "loire", category="", slots=0)
    seed.revisions.update(texts={"prompt": "The Loire rises in the Ardèche. It is 1006 km long."})
    endpoint, seen = make_endpoint(NOBODY), list[str]()
    run = ended(make_run(seeds, endpoint, "generate-claims"), json.dumps(CLAIM), seen)
    made = bring(run, inputs)
    asked = {"prompt": CLAIM["input"], "context": EVIDENCE, "gold": ""}
    assert made.revision().texts | {"gold": ""} == asked
    assert made.fields["rationale"] == CLAIM["rationale"]
    assert not Slot.objects.filter(item=made).exists()
    run = ended(make_run(inputs, endpoint, "generate-response"), "It is supported.", seen)
    assert json.loads(seen[-1])["messages"] == [
        {"role": "user", "content": f"{CLAIM['input']}\n\n{EVIDENCE}"}
    ]
    item = bring(run, labelled)
    assert item.revision().texts == {
        "input": CLAIM["input"],
        "context": EVIDENCE,
        "response": "It is supported.",
    }
    assert Slot.objects.filter(item=item).count() == 1
