"""The pages where leads ask perturbers for items: a look first, then a job, then its outcome."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation import tasktypes
from annotation.generation import perturber_jobs, views
from annotation.models import Item, Job, Project
from tests.annotation.test_perturbing import FACTS, STORY, bring, row
from tests.builders import Cast, cast

pytestmark = pytest.mark.django_db
ASKED = {"perturbers": ["numbers", "spelling"], "errors_each": ["1", "2"], "number": "1"}
ASKED |= {"share": "100", "rest": "wait", "seed": "s"}


@pytest.fixture
def people(client: Client) -> Cast:
    made = cast()
    bring(
        made.project,
        row("facts", "number-errors", FACTS + " <b>Bold.</b>", "What is a spider?"),
        row("story", "spelling", STORY, "Tell a story."),
    )
    client.force_login(made.lead.account)
    return made


def made() -> list[Item]:
    return list(Item.objects.filter(origin="perturber"))


def address(project: Project) -> str:
    return reverse("perturb", args=[project.slug])


def test_the_form_says_how_many_gold_answers_each_is_for(client: Client, people: Cast) -> None:
    page = client.get(address(people.project)).text
    assert 'value="numbers" checked>' in page
    assert 'value="results" disabled>' in page
    for page in ("project", "imports"):
        shown = client.get(reverse(page, args=[people.project.slug])).text
        assert address(people.project) in shown


def test_a_look_shows_differences_and_claims_and_stores_nothing(
    client: Client, people: Cast
) -> None:
    page = client.post(address(people.project), ASKED | {"preview": "yes", "seed": ""}).text
    assert "Preview of the generated items" in page
    assert "<del" in page
    assert "is changed to" in page
    assert "&lt;b&gt;Bold" in page
    assert "<b>Bold" not in page
    assert 'name="seed" value="' in page  # so that what is stored is what was shown
    assert (made(), Job.objects.count()) == ([], 0)


def test_what_was_asked_for_is_made_and_told(
    client: Client, people: Cast, in_this_program: None
) -> None:
    sent = client.post(address(people.project), ASKED)
    job = Job.objects.get()
    assert sent["Location"] == reverse("generation", args=[people.project.slug, 1])
    assert "Waiting for a worker" in client.get(sent["Location"]).text
    assert perturber_jobs.run_job(job.pk)
    page = client.get(sent["Location"]).text
    assert "Generated items" in page
    assert "?search=.s." in page
    found = client.get(f"/projects/{people.project.slug}/items/?search=.s.").text
    assert len(made()) == 4
    assert all(f">{one.key}<" in found for one in made())
    assert "finished" in client.get(f"/projects/{people.project.slug}/jobs/").text


def test_what_cannot_be_made_is_said_where_it_was_asked(client: Client, people: Cast) -> None:
    for wrong in ({"perturbers": []}, {"errors_each": []}, {"number": "21"}, {"seed": "a.b\n"}):
        sent = client.post(address(people.project), ASKED | wrong)
        assert sent.status_code == 422
        assert 'class="field-error"' in sent.text
    assert not Job.objects.exists()


def test_a_project_of_another_task_says_so_and_has_no_link(client: Client, people: Cast) -> None:
    version = people.project.task_type
    other = tasktypes.load_definitions()["error-detection"]
    version.definition, version.digest = other, tasktypes.digest_definition(other)
    version.save()
    assert "Perturbers need a task with" in client.get(address(people.project)).text
    assert client.post(address(people.project), ASKED).status_code == 422
    assert address(people.project) not in client.get(f"/projects/{people.project.slug}/").text


def test_one_that_was_cancelled_can_be_had_again(client: Client, people: Cast) -> None:
    client.post(address(people.project), ASKED)
    here: Any = reverse("generation", args=[people.project.slug, 1])
    steer = f"/projects/{people.project.slug}/jobs/generation/1/"
    client.post(steer + "cancel/")
    assert "Cancelled by" in client.get(here).text
    client.post(steer + "again/")
    assert "Waiting for a worker" in client.get(here).text
    assert "no number" not in client.get(reverse("generation", args=[people.project.slug, 9])).url


def test_a_perturber_that_made_nothing_is_shown_with_noughts() -> None:
    job = Job(
        result={
            "perturbers": ["numbers", "spelling"],
            "made": {"made": {"spelling": 2}, "lacking": {}},
        }
    )
    assert [(one.slug, *numbers) for one, *numbers in views._rows(job)] == [
        ("numbers", 0, 0),
        ("spelling", 2, 0),
    ]
