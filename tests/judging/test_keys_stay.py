"""A key lives in the environment: nothing that is stored, logged, shown or exported holds it."""

import io
import logging
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from judging.models import Endpoint, Run
from tests.builders import Cast, cast
from tests.judging.builders_judging import make_endpoint, make_items, make_run, work
from tests.services.scripted_evaluator import Script, ScriptedEvaluator

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "sk-test/4f1d9b2e77aa0c31-never-to-be-seen"


def said_by(*command: str) -> str:
    """What a command prints; `dumpdata` is the whole database."""
    out = io.StringIO()
    call_command(*command, stdout=out)
    return out.getvalue()


def everything_shown(people: Cast, endpoint: Endpoint, run: Run) -> str:
    client = Client()
    client.force_login(people.admin)
    base = f"/projects/{people.project.slug}/"
    pages = ["/endpoints/", f"/endpoints/{endpoint.name}/", f"/endpoints/{endpoint.name}/edit/"]
    pages += [f"{base}runs/", f"{base}runs/{run.number}/", f"{base}results/"]
    pages += [f"{base}runs/{run.number}/items/item-1/", f"{base}results/undetected.csv"]
    pages += ["/api/v1/endpoints/", f"/api/v1/projects/{people.project.slug}/runs/{run.number}/"]
    answers = [client.get(page) for page in pages]
    answers.append(client.post(f"/endpoints/{endpoint.name}/test/"))
    assert all(answer.status_code in {200, 422} for answer in answers)
    return "".join(_content(answer) for answer in answers)


def _content(answer: Any) -> str:
    parts = answer.streaming_content if answer.streaming else [answer.content]
    return b"".join(parts).decode()


@pytest.mark.parametrize("provider", ["openai_compatible", "anthropic", "gemini"])
@pytest.mark.parametrize("fault", ["", "unauthorised"])
def test_a_key_is_nowhere_but_in_the_environment(
    evaluator: ScriptedEvaluator,
    monkeypatch: Any,
    caplog: Any,
    provider: str,
    fault: str,
) -> None:
    # The evaluator repeats the key: in its refusals, or else in every answer.
    monkeypatch.setenv("OUR_API_KEY", KEY)
    monkeypatch.setattr(type(evaluator.script.judge), "answer", lambda self, prompt: f"Key {KEY}")
    evaluator.script = Script(faults={fault: ""} if fault else {})
    caplog.set_level(logging.DEBUG)
    people = cast()
    make_items(people.project, 2)
    address = evaluator.gemini_address if provider == "gemini" else evaluator.address
    endpoint = make_endpoint(address, provider=provider, key_variable="OUR_API_KEY")
    run = work(make_run(people.project, endpoint))
    found = {
        "database": said_by("dumpdata"),
        "figures": said_by("results", "undetected", "--project", people.project.slug),
        "pages": everything_shown(people, endpoint, run),
        "log": caplog.text,
    }
    assert evaluator.log
    assert [place for place, text in found.items() if KEY in text] == []
    assert "[key]" in found["pages"]
