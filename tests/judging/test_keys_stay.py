"""A key lives in the environment: nothing that is stored, logged, shown or exported holds it."""

import io
import logging
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from formats.writers import WRITERS
from judging.evaluators import http_client
from judging.evaluators.providers import addresses
from judging.exporting.tables import EXPORT_TABLES
from judging.models import Endpoint, Run
from judging.results import tables
from tests.builders import Cast, cast
from tests.judging.builders_judging import make_endpoint, make_items, make_run, work
from tests.judging.providers.conftest import Names
from tests.judging.providers.ways import WAYS
from tests.services.scripted_evaluator import Script, ScriptedEvaluator

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "sk-test/4f1d9b2e77aa0c31-never-to-be-seen"


def said_by(*command: str) -> str:
    """What a command prints; `dumpdata` is the whole database."""
    out = io.StringIO()
    call_command(*command, stdout=out)
    return out.getvalue()


def every_figure(project: str) -> str:
    """All tables of `results`; some have nothing to say of such a run, and say so."""
    said = []
    for table in tables.RESULT_TABLES:
        try:
            said.append(said_by("results", table, "--project", project))
        except CommandError as error:
            said.append(str(error))
    return "".join(said)


def every_export(project: str, folder: Path) -> str:
    """All exports in every format, as bytes read as text."""
    for table in EXPORT_TABLES:
        for form in WRITERS:
            place = {"output": folder / f"{table}.{form}", "format": form}
            call_command("export", table, project=project, stderr=io.StringIO(), **place)
    return b"".join(path.read_bytes() for path in folder.iterdir()).decode("utf-8", "replace")


def everything_shown(people: Cast, endpoint: Endpoint, run: Run) -> str:
    client = Client()
    client.force_login(people.admin)
    base = f"/projects/{people.project.slug}/"
    pages = ["/endpoints/", f"/endpoints/{endpoint.name}/", f"/endpoints/{endpoint.name}/edit/"]
    pages += [f"{base}runs/", f"{base}runs/{run.number}/", f"{base}results/", f"{base}runs/new/"]
    pages += [
        f"{base}strategies/",
        f"{base}strategies/{run.strategy.slug}/",
        f"{base}items/item-1/",
    ]
    pages += [f"{base}runs/{run.number}/items/item-1/", f"{base}results/undetected.csv"]
    pages += ["/api/v1/endpoints/", f"/api/v1/projects/{people.project.slug}/runs/{run.number}/"]
    answers = [client.get(page) for page in pages]
    answers.append(client.post(f"/endpoints/{endpoint.name}/test/"))
    assert all(answer.status_code in {200, 422} for answer in answers)
    return "".join(_content(answer) for answer in answers)


def _content(answer: Any) -> str:
    parts = answer.streaming_content if answer.streaming else [answer.content]
    return b"".join(parts).decode()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fault", ["", "unauthorised"])
def test_a_key_is_nowhere_but_in_the_environment(
    evaluator: ScriptedEvaluator,
    monkeypatch: Any,
    caplog: Any,
    tmp_path: Path,
    way: str,
    fault: str,
) -> None:
    # The evaluator repeats the key: in its refusals, or else in every answer.
    monkeypatch.setenv("OUR_API_KEY", KEY)
    monkeypatch.setattr(type(evaluator.script.judge), "answer", lambda self, prompt: f"Key {KEY}")
    evaluator.script = Script(faults={fault: ""} if fault else {}, headers={"X-Key": KEY})
    caplog.set_level(logging.DEBUG)
    people = cast()
    make_items(people.project, 2)
    endpoint = make_endpoint(evaluator, key_variable="OUR_API_KEY", **WAYS[way].endpoint(evaluator))
    run = work(make_run(people.project, endpoint))
    found = {
        "database": said_by("dumpdata"),
        "figures": every_figure(people.project.slug),
        "exports": every_export(people.project.slug, tmp_path),
        "pages": everything_shown(people, endpoint, run),
        "log": caplog.text,
    }
    assert evaluator.log
    assert [place for place, text in found.items() if KEY in text or KEY[8:] in text] == []
    assert "[key]" in found["pages"]


@pytest.mark.parametrize("place", ["127.0.0.1", "::ffff:127.0.0.1", "169.254.169.254"])
def test_a_name_that_leads_inside_when_it_is_called_gets_no_key(
    evaluator: ScriptedEvaluator, monkeypatch: Any, settings: Any, place: str
) -> None:
    # It was public when it was entered, and names may change their minds.
    settings.EVALUATOR_HOSTS = []
    monkeypatch.setenv("OUR_API_KEY", KEY)
    monkeypatch.setattr(http_client, "DefaultResolver", lambda: Names(*[[place]] * 100))
    address = addresses.check_address(evaluator.address.replace("127.0.0.1", "api.example.com"))
    people = cast()
    make_items(people.project, 2)
    endpoint = make_endpoint(address, key_variable="OUR_API_KEY")
    run = work(make_run(people.project, endpoint))
    assert (run.state, evaluator.log) == (Run.State.PAUSED, [])
    assert "api.example.com" in run.reason
    assert "EVALUATOR_HOSTS" in run.reason or "must not be called" in run.reason
