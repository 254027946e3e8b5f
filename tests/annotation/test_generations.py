"""Items that perturbers make as a job: asked for, made by a worker, counted, cancelled, again."""

from typing import Any

import pytest

from annotation.errors import FieldError, Refused
from annotation.generation import generated_items, perturber_jobs, perturbers
from annotation.generation.perturbers import PerturbRequest
from annotation.generation.release import ReleasePolicy
from annotation.jobs import job_queue
from annotation.models import Event, Item, Job, Project, Slot
from tests.annotation.test_perturbing import FACTS, STORY, bring, row
from tests.builders import Cast, cast, make_project

WISH = PerturbRequest(perturbers=("numbers", "spelling"), seed="s", doses=(1, 2))


@pytest.fixture
def people() -> Cast:
    made = cast()
    bring(
        made.project,
        row("facts", "number-errors", FACTS, "What is a spider?"),
        row("story", "spelling", STORY, "Tell a story."),
    )
    return made


def made() -> list[Item]:
    return list(Item.objects.filter(origin="perturber").order_by("position"))


@pytest.mark.django_db
def test_a_job_makes_what_it_asks_for_and_says_what_came_of_it(people: Cast) -> None:
    job = perturber_jobs.enqueue(people.project, WISH, member=people.lead)
    said = perturber_jobs.summarise_result(perturber_jobs.make_job_items(job))
    assert said["made"] == {"numbers": 2, "spelling": 2}
    assert (said["new"], said["opened"], said["waiting"], said["problems"]) == (4, 4, 0, [])
    job.refresh_from_db()
    assert (job.done, job.total) == (2, 2)
    again = perturber_jobs.summarise_result(perturber_jobs.make_job_items(job))
    assert (again["new"], again["unchanged"], again["opened"]) == (0, 4, 0)
    [first, _] = Event.objects.filter(kind="generation").order_by("pk")
    assert (first.member, first.data["seed"], first.data["new"]) == (people.lead, "s", 4)


@pytest.mark.django_db
def test_what_is_flagged_is_counted_and_can_be_kept_aside(people: Cast, monkeypatch: Any) -> None:
    monkeypatch.setattr("perturbers.flags.RULES", {"spelling": lambda made: "Odd."})
    vetting = ReleasePolicy(share=100, aside=frozenset({"claim"}))
    said = perturber_jobs.summarise_result(
        perturber_jobs.make_job_items(
            perturber_jobs.enqueue(people.project, WISH, vetting, people.lead)
        )
    )
    assert said["flagged"] == {"claim": 2}
    assert (said["opened"], said["waiting"]) == (2, 2)
    odd = [one for one in made() if one.flags]
    assert {one.category for one in odd} == {"spelling"}
    assert not Slot.objects.filter(item__in=odd).exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"perturbers": ()}, "perturbers"),
        ({"perturbers": ("nothing",)}, "perturbers"),
        ({"number": 21}, "number"),
        ({"doses": (0,)}, "errors"),
        ({"limit": 0}, "limit"),
        ({"seed": "a.b"}, "seed"),
    ],
)
def test_what_is_out_of_bounds_is_no_job(people: Cast, changed: Any, field: str) -> None:
    wish = PerturbRequest(**{"perturbers": ("numbers",), "seed": "s", **changed})
    with pytest.raises(FieldError) as refused:
        perturber_jobs.enqueue(people.project, wish)
    assert refused.value.field == field
    assert not Job.objects.exists()


@pytest.mark.django_db
def test_a_project_of_another_task_and_a_share_that_is_none_are_no_job(people: Cast) -> None:
    with pytest.raises(Refused, match="has no gold and perturbed answers"):
        perturber_jobs.enqueue(make_project(task_type="error-detection"), WISH)
    with pytest.raises(FieldError, match="between 0 and 100"):
        perturber_jobs.enqueue(people.project, WISH, ReleasePolicy(share=101))


@pytest.mark.django_db
def test_examples_store_nothing_and_begin_with_one_of_each(people: Cast) -> None:
    found = perturbers.make_examples(people.project, WISH, 3)
    assert [one.values["perturber"] for one in found] == ["numbers", "spelling", "numbers"]
    assert made() == []


@pytest.mark.django_db
def test_how_many_gold_answers_each_perturber_is_for(people: Cast) -> None:
    found = perturbers.count_golds(people.project)
    assert (found["numbers"], found["spelling"], found["layout"], found["results"]) == (1, 1, 2, 0)


@pytest.mark.django_db
def test_a_worker_makes_what_was_asked_for(people: Cast, in_this_program: None) -> None:
    job = perturber_jobs.enqueue(people.project, WISH, member=people.lead)
    assert perturber_jobs.run_job(job.pk)
    job.refresh_from_db()
    assert (job.state, job.message, job.done) == (Job.State.FINISHED, "", 2)
    assert job.result["made"]["new"] == len(made()) == 4
    assert job_queue.due_job_ids(perturber_jobs.JOB_KIND, job.created_at) == []


@pytest.mark.django_db
def test_one_that_was_cancelled_is_not_begun(people: Cast) -> None:
    job = perturber_jobs.enqueue(people.project, WISH, member=people.lead)
    assert job_queue.cancel_job(job, people.lead)
    assert not perturber_jobs.run_job(job.pk)
    assert made() == []


@pytest.mark.django_db
def test_released_items_get_as_many_annotators_as_a_lead_has_set_meanwhile(people: Cast) -> None:
    job = perturber_jobs.enqueue(people.project, WISH, ReleasePolicy(share=0), people.lead)
    perturber_jobs.make_job_items(job)
    Project.objects.filter(pk=people.project.pk).update(overlap=3)
    assert generated_items.release_waiting(people.project) == 4
    assert {one.slots.count() for one in made()} == {3}
