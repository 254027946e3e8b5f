"""CONTRIBUTING's promise: a task type is one file."""

import shutil
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from annotation import tasktypes
from annotation.models import Label, Project
from tests.annotation.test_label_pages import body, browser_of, shown, url
from tests.builders import make_item, make_member, take

pytestmark = pytest.mark.django_db

SOURCE = """
slug = "politeness"
title = "Politeness"
question = "Is the reply polite?"
categories = false
raters = 1

[[texts]]
name = "reply"
title = "Reply"
required = true

[[fields]]
name = "polite"
kind = "choice"
title = "Polite"

[[fields.choices]]
value = "yes"
title = "Polite enough"

[[fields.choices]]
value = "no"
title = "Rude"
"""


@pytest.fixture
def politeness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A file in the folder of task types."""
    folder = tmp_path / "tasktypes"
    folder.mkdir()
    for path in tasktypes.FOLDER.glob("*.toml"):
        shutil.copy(path, folder)
    (folder / "politeness.toml").write_text(SOURCE)
    monkeypatch.setattr(tasktypes, "FOLDER", folder)
    for read in (tasktypes.load_sources, tasktypes.load_definitions):
        read.cache_clear()
    yield
    for read in (tasktypes.load_sources, tasktypes.load_definitions):
        read.cache_clear()


def test_a_file_is_all_that_a_task_type_needs(politeness: None) -> None:
    call_command("make_project", "p", task_type="politeness", stdout=StringIO())
    project = Project.objects.get()
    make_item(project, texts={"reply": "Go away."}, category="", ability="")
    lead, member = make_member(project, role="lead"), make_member(project)
    assert "Politeness" in body(browser_of(lead).get("/help/"))
    assert "Polite enough" in body(browser_of(lead).get("/projects/p/task/"))

    page = body(browser_of(member).get(url("label", member)))
    assert all(text in page for text in ("Is the reply polite?", "Go away.", "Rude"))
    answer = browser_of(member).post(url("label-submit", member), shown(take(member), polite="no"))
    assert answer.status_code == 302, body(answer)
    assert Label.objects.get().answers == {"polite": "no"}
    given = browser_of(lead).get("/api/v1/projects/p/").json()
    assert given["task_type"] == "politeness"
    [item] = browser_of(lead).get("/api/v1/projects/p/items/").json()["results"]
    assert item["resolution"] == "no"
