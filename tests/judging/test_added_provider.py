"""CONTRIBUTING's promise: a provider is one file."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from judging.evaluators import providers
from judging.models import Endpoint, Run
from tests.builders import cast
from tests.judging.builders_judging import api_client, make_items, results, work

pytestmark = pytest.mark.django_db(transaction=True)

# It answers at once, and calls nobody: a score of 3 for every text.
SOURCE = '''"""Echo: answers 3 to everything."""

from datetime import UTC, datetime

from judging.evaluators.providers.answers import Answer
from judging.evaluators.providers.canonical_json import canonical_json

title = "Echo protocol"
offline = False
is_evaluator = True
default_parameters = {"temperature": 0}


def body(*, model, parameters, prompt, schema=None, api="chat", template="", json_mode=""):
    return canonical_json({"model": model, "prompt": prompt.user})


async def ask(session, target, body):
    text = '{"explanation": "fine", "score": 3}'
    return Answer(text, "stop", "echo", 9, 1, started=datetime.now(UTC), seconds=0.0)
'''


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file in the folder of providers, found as the others were."""
    (tmp_path / "echo.py").write_text(SOURCE)
    folder = [*providers.__path__, str(tmp_path)]
    monkeypatch.setattr(providers, "__path__", folder)
    monkeypatch.delitem(sys.modules, "judging.evaluators.providers.echo", raising=False)
    for name, found in providers.find_providers(folder).items():
        monkeypatch.setitem(providers.PROVIDERS, name, found)
    return "echo"


def test_a_file_is_all_that_a_provider_needs(echo: str, settings: Any) -> None:
    people = cast()
    make_items(people.project, 2)
    admin = Client()
    admin.force_login(people.account("admin"))  # type: ignore[arg-type]
    page = admin.get("/endpoints/new/").content.decode()
    assert '<option value="echo">Echo protocol</option>' in page
    endpoint = {
        "name": "judge", "provider": echo, "address": "https://judge.example/v1", "model": "m",
        "api": "chat", "parameters": "{}", "in_flight": 2, "timeout": 10,
    }  # fmt: skip
    admin.post("/endpoints/new/", endpoint)
    assert Endpoint.objects.get(name="judge").provider == "echo"

    researcher = api_client(people.researcher)
    sent = {"strategy": "vanilla", "endpoint": "judge"}
    started = researcher.post(
        f"/api/v1/projects/{people.project.slug}/runs/",
        json.dumps(sent),
        content_type="application/json",
    )
    assert started.status_code == 201, started.content
    run = work(Run.objects.get())
    assert (run.state, results(run)) == ("finished", {"undetected": 2})
    shown = researcher.get("/api/v1/endpoints/judge/").json()
    assert shown["provider"] == "echo"
