"""CONTRIBUTING's promise: a cause of a missing outcome is one entry."""

import pytest
from django.test import Client

from annotation.models import Project
from judging.models import Outcome
from judging.strategies.replies import outputs
from judging.strategies.replies.causes import CAUSES, Cause
from tests.builders import make_member
from tests.judging.builders_judging import (
    api_client,
    make_endpoint,
    make_items,
    make_run,
    results,
    work,
)
from tests.services.scripted_evaluator import Script, ScriptedEvaluator

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_entry_is_all_that_a_cause_needs(
    project: Project, evaluator: ScriptedEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here truncated replies are counted under it."""
    monkeypatch.setitem(CAUSES, "blurred", Cause("blurred", "nobody can read it", in_reply=True))
    monkeypatch.setitem(outputs.FINISH_CAUSES, "length", "blurred")
    evaluator.script = Script(faults={"truncated": ""})
    items = make_items(project, 2)
    run = work(make_run(project, make_endpoint(evaluator)))
    assert results(run) == {"blurred": 2}
    assert not Outcome.objects.mended(), "no request is sent again for it"
    member = make_member(project, role="researcher")
    rows = api_client(member).get(f"/api/v1/projects/{project.slug}/results/missing/").json()
    assert {(row["cause"], row["n"]) for row in rows["rows"]} == {("blurred", 2)}
    client = Client()
    client.force_login(member.account)
    at = f"/projects/{project.slug}/runs/{run.number}/items/{items[0].key}/"
    assert "Missing because: blurred, nobody can read it." in client.get(at).content.decode()
