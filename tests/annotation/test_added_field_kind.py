"""CONTRIBUTING's promise: a kind of field is a file and its template."""

from pathlib import Path
from typing import Any

import pytest

from annotation import tasktypes
from annotation.exporting.tables import TABLES
from annotation.models import Label, Project
from tests.annotation.added_kinds import add_kind
from tests.annotation.test_label_pages import body, browser_of, shown, url
from tests.builders import make_item, make_member, make_project, take

pytestmark = pytest.mark.django_db

SOURCE = '''"""Stars: a number from one to five, that is drawn."""

from dataclasses import dataclass

from annotation.tasktypes.fields.scale import Scale


@dataclass(frozen=True, kw_only=True)
class Stars(Scale):
    """So many stars."""

    kind = "stars"
    asks_for = "one to five stars"
'''
TEMPLATE = """<fieldset class="asked stars" {% include "annotation/fields/_attributes.html" %}>
  {% include "annotation/fields/_options.html" with type="radio" numbers=True %}
</fieldset>
"""


@pytest.fixture
def stars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """A file and a template, found as the others were."""
    add_kind("stars", SOURCE, TEMPLATE, tmp_path, monkeypatch, settings)


def test_a_file_and_a_template_are_all_that_a_kind_of_field_needs(stars: None) -> None:
    project = make_project("p", task_type="rating")
    lead = make_member(project, role="lead")
    source = tasktypes.load_sources()["rating"].replace('kind = "scale"', 'kind = "stars"')
    sent = {"source": source, "shown": project.task_type_id}
    assert "<code>stars</code>: one to five stars" in body(
        browser_of(lead).get("/projects/p/task/")
    )
    answer = browser_of(lead).post("/projects/p/task/", sent)
    assert answer.status_code == 302, body(answer)

    project = Project.objects.get(slug="p")
    names = [field.name for field in tasktypes.load_task_type(project).fields]
    make_item(project, texts={})
    member = make_member(project)
    page = body(browser_of(member).get(url("label", member)))
    assert page.count('class="asked stars"') == len(names)
    assert "data-picks-one" in page
    answers = dict.fromkeys(names, "3")
    answer = browser_of(member).post(url("label-submit", member), shown(take(member), **answers))
    assert answer.status_code == 302, body(answer)
    label = Label.objects.get()
    assert (label.choice, label.answers) == ("/".join("3" * len(names)), dict.fromkeys(names, 3))
    [row] = TABLES["labels"].rows(project)
    assert row[f"answers.{names[0]}"] == 3
    assert "Naturalness" in body(browser_of(lead).get("/projects/p/agreement/"))
