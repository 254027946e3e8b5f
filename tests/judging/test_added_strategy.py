"""CONTRIBUTING's promise: a strategy is one file."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client

from annotation.models import Project
from judging import strategies
from judging.models import Run
from tests.judging.builders_judging import make_endpoint, make_items, results, work
from tests.services.scripted_evaluator import ScriptedEvaluator

pytestmark = pytest.mark.django_db(transaction=True)

SOURCE = '''
slug = "doubt"
title = "Any doubt"
study = "000, our own"
frame = "single"
output = "score"
explanation = true
scale = { low = 1, high = 5, step = 1 }

prompt = """
How sure are you that this answer is right? Give a score from 1 to 5.

[BEGIN QUESTION]
{{question}}
[END QUESTION]

[BEGIN RESPONSE]
{{response}}
[END RESPONSE]

Reply with {"explanation": "...", "score": N}.
"""
'''


@pytest.fixture
def doubt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A file in the folder of strategies."""
    folder = shutil.copytree(
        strategies.FOLDER, tmp_path / "strategies", ignore=shutil.ignore_patterns("*.py", "[!a-z]*")
    )
    (folder / "doubt.toml").write_text(SOURCE)
    monkeypatch.setattr(strategies, "FOLDER", folder)
    strategies._read_folder.cache_clear()
    yield "doubt"
    strategies._read_folder.cache_clear()


def test_a_file_is_all_that_a_strategy_needs(
    doubt: str, project: Project, browser: Client, program: Client, evaluator: ScriptedEvaluator
) -> None:
    make_items(project, 2)
    make_endpoint(evaluator, name="judge")
    assert "Any doubt" in browser.get("/projects/fbi/strategies/").content.decode()
    page = browser.get("/projects/fbi/runs/new/").content.decode()
    assert 'value="doubt"' in page
    listed = program.get("/api/v1/projects/fbi/strategies/").json()
    assert "doubt" in {one["slug"] for one in listed}
    started = program.post(
        "/api/v1/projects/fbi/runs/",
        json.dumps({"strategy": doubt, "endpoint": "judge"}),
        content_type="application/json",
    )
    assert started.status_code == 201, started.content
    run = work(Run.objects.get())
    assert (run.state, sum(results(run).values())) == ("finished", 2)
    item = browser.get("/projects/fbi/runs/1/items/item-1/").content.decode()
    assert "How sure are you that this answer is right?" in item
    shown = browser.get("/projects/fbi/results/by-category/?view=counts").content.decode()
    assert "1 · doubt" in shown
