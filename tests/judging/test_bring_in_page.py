"""The page and the API where what a generator run made comes in."""

import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from annotation.models import Item, Job, Membership, Project, Slot
from judging.errors import Refused
from judging.generation import bring_in
from judging.jobs import job_list
from judging.models import Run
from judging.runs import lifecycle
from tests.builders import make_item, make_member, make_project
from tests.judging.builders_judging import (
    answer_as,
    api_client,
    make_endpoint,
    make_items,
    make_run,
)

pytestmark = pytest.mark.django_db

NOBODY = "http://127.0.0.1:1/v1"
PERTURBED = {"perturbed": "It has <b>nine</b> legs.", "claim": "8 is 9.", "rationale": "Eight."}
ALL = {"share": 100}


@pytest.fixture
def lead(client: Client, project: Project) -> Membership:
    """A lead of the project, on its pages."""
    made = make_member(project, role="lead", alias="lena")
    assert made.account
    client.force_login(made.account)
    return made


def begun(project: Project, strategy: str = "generate-number-errors") -> Run:
    run = make_run(project, make_endpoint(NOBODY), strategy)
    lifecycle.plan_calls(run)
    return run


def ended(project: Project, strategy: str = "generate-number-errors", say: Any = None) -> Run:
    run = begun(project, strategy)
    answer_as(run, say or (lambda prompt: json.dumps(PERTURBED)))
    lifecycle.finish_if_done(run)
    run.refresh_from_db()
    return run


def address(run: Run) -> str:
    return f"/projects/{run.project.slug}/runs/{run.number}/bring-in/"


def program(run: Run) -> str:
    return f"/api/v1/projects/{run.project.slug}/runs/{run.number}/items/"


def shown(answer: Any, status: int = 200) -> str:
    assert answer.status_code == status
    return " ".join(answer.content.decode().split())


def work() -> None:
    for job in Job.objects.filter(kind=bring_in.KIND, finished_at=None):
        assert bring_in.run_job(job.pk)


def test_a_lead_brings_items_in_and_reads_what_became_of_them(
    client: Client, lead: Membership, project: Project, in_this_program: None
) -> None:
    make_items(project, 4)
    run = ended(project)
    page = shown(client.get(address(run)))
    assert "Preview: the first 3 items for Fbi" in page
    assert "<ins" in page
    assert "<b>nine</b>" not in page
    sent = client.post(address(run), {"into": "fbi", "share": 50, "aside": ["identical"]})
    assert (sent.status_code, sent.headers["Location"]) == (302, address(run))
    assert "Waiting for a worker" in shown(client.get(address(run)))
    work()
    page = shown(client.get(address(run)))
    assert "4 new, 0 unchanged; 2 released; 2 held." in page
    assert f"?search=%2Bnumber-errors.{run.number}." in page
    assert project.items.filter(origin="generated").count() == 4


def test_the_preview_is_of_the_project_that_was_chosen(
    client: Client, lead: Membership, project: Project
) -> None:
    make_member(make_project("other"), role="lead", account=lead.account)
    make_items(project, 1)
    run = ended(project)
    page = shown(client.get(address(run)))
    assert '<option value="" selected>Choose a project</option>' in page
    assert "Choose a project to see the first items" in page
    assert "Preview: the first" not in page
    for slug, name in (("other", "Other"), ("fbi", "Fbi")):
        page = shown(client.post(address(run), {"into": slug, "share": 101}), 422)
        assert f"Preview: the first item for {name}" in page
        page = shown(client.get(address(run), {"into": slug}))
        assert f"Preview: the first item for {name}" in page
        assert f'<option value="{slug}" selected>' in page
    page = shown(client.post(address(run), {"into": "none", "share": 100}), 422)
    assert "Preview: the first" not in page


def test_what_a_run_made_is_found_by_the_part_of_its_keys(
    client: Client, lead: Membership, project: Project, in_this_program: None
) -> None:
    make_items(project, 2)
    run = ended(project)
    client.post(address(run), {"into": "fbi", **ALL})
    work()
    rows = client.get("/projects/fbi/items/", {"search": f"+number-errors.{run.number}."})
    assert rows.context["page"].paginator.count == 2


def test_gold_answers_go_to_the_prompts_that_wait_for_them_and_a_sample_to_people(
    client: Client, in_this_program: None
) -> None:
    prompts = make_project("prompts", task_type="gold-verification")
    lead = make_member(prompts, role="lead")
    assert lead.account
    client.force_login(lead.account)
    make_member(make_project("other"), role="lead", account=lead.account)
    for one in range(1, 9):
        item = make_item(prompts, f"q{one}", category="", slots=0, cluster=f"{one:064x}")
        item.revisions.update(texts={"prompt": f"How many legs have {one} spiders?"})
    run = ended(prompts, "generate-gold", lambda prompt: "They have many.")
    page = client.get(address(run))
    form = page.context["form"]
    assert [value for value, _ in form.fields["into"].choices] == ["prompts"]
    assert form["share"].value() == 25
    assert "rest" not in form.fields
    assert "Each reply becomes the gold answer of its prompt" in shown(page)
    assert page.context["preview"][0].texts == {
        "Prompt": "How many legs have 1 spiders?",
        "Gold answer": "They have many.",
    }
    client.post(address(run), {"into": "prompts", "share": 25})
    work()
    assert Slot.objects.values("item").distinct().count() == 2


def test_it_comes_into_projects_that_fit_and_where_the_account_is_lead_alone(
    client: Client, lead: Membership, project: Project
) -> None:
    led = make_project("led")
    make_member(led, role="lead", account=lead.account)
    make_member(make_project("seen"), role="researcher", account=lead.account)
    make_member(make_project("left"), role="lead", account=lead.account, active=False)
    rating = make_project("rating", task_type="error-detection")
    make_member(rating, role="lead", account=lead.account)
    make_items(project, 1)
    run = ended(project)
    offered = client.get(address(run)).context["offered"]
    assert [one.slug for one in offered] == ["fbi", "led"]
    sent = client.post(address(run), {"into": "seen", **ALL})
    assert "Select a valid choice" in shown(sent, 422)
    assert not Job.objects.exists()


def test_what_was_chosen_last_is_chosen_the_next_time(
    client: Client, lead: Membership, project: Project
) -> None:
    make_member(make_project("led"), role="lead", account=lead.account)
    make_items(project, 1)
    client.post(address(ended(project)), {"into": "led", **ALL})
    assert client.get(address(ended(project))).context["form"]["into"].value() == "led"


def test_only_what_should_cost_nothing_can_be_accepted_unseen(
    client: Client, lead: Membership, project: Project
) -> None:
    make_items(project, 1)
    run = ended(project)
    assert "without review" not in shown(client.get(address(run)))
    assert lead.account
    said = {"into": "fbi", "accept": True}
    sent = api_client(lead).post(program(run), said, content_type="application/json")
    assert list(sent.json()["errors"]) == ["accept"]
    twin = ended(project, "generate-score-invariant")
    assert "Accept it without review" in shown(client.get(address(twin)))
    client.post(address(twin), {"into": "fbi", "share": 25, "rest": "accept"})
    assert Job.objects.get().result["accept"] is True


def test_what_is_not_as_asked_for_or_differs_too_much_waits_unless_a_lead_says_otherwise(
    client: Client, lead: Membership, project: Project, in_this_program: None
) -> None:
    make_items(project, 1)
    text = "1 spiders have 8 legs, which are long."
    run = ended(project, say=lambda prompt: json.dumps(PERTURBED | {"perturbed": text}))
    usual = client.get(address(run)).context["form"]["aside"].value()
    assert {"claim", "bound"} <= set(usual)
    api_client(lead).post(program(run), {}, content_type="application/json")
    work()
    [item] = project.items.filter(origin="generated")
    assert item.flags == ["claim"]
    assert not item.slots.exists()


@pytest.mark.parametrize("share", ["-1", "101", "", "many"])
def test_a_share_that_is_none_is_said_so_and_kept(
    client: Client, lead: Membership, project: Project, share: str
) -> None:
    make_items(project, 1)
    sent = client.post(address(ended(project)), {"into": "fbi", "share": share})
    assert "field-error" in shown(sent, 422)
    assert not Job.objects.exists()


def test_a_run_that_judges_goes_on_or_made_nothing_says_so(
    client: Client, lead: Membership, project: Project
) -> None:
    make_items(project, 1)
    assert "does not generate items" in shown(client.get(address(make_run(project))))
    run = begun(project)
    assert "Wait until it has finished, or pause it" in shown(client.get(address(run)))
    assert shown(client.post(address(run), {"into": "fbi", **ALL}), 422)
    nothing = ended(project, say=lambda prompt: "I would rather not.")
    assert "generated nothing" in shown(client.get(address(nothing)))


def test_only_leads_bring_in_and_the_run_says_so_to_them(
    client: Client, lead: Membership, project: Project, member: Membership
) -> None:
    make_items(project, 1)
    run = ended(project)
    link = f'href="{address(run)}"'
    assert link in shown(client.get(f"/projects/fbi/runs/{run.number}/"))
    going_on = begun(project)
    assert "bring-in" not in shown(client.get(f"/projects/fbi/runs/{going_on.number}/"))
    assert member.account
    client.force_login(member.account)
    assert "bring-in" not in shown(client.get(f"/projects/fbi/runs/{run.number}/"))
    assert client.get(address(run)).status_code == 403


def test_the_page_of_jobs_leads_to_the_run_that_they_are_of(
    client: Client, lead: Membership, project: Project
) -> None:
    make_items(project, 1)
    make_run(project)
    run = ended(project)
    client.post(address(run), {"into": "fbi", **ALL})
    [entry] = [
        one
        for one in job_list.build_entries(list(job_list.list_visible(lead)), lead)
        if one.kind != "run"
    ]
    assert (entry.number, entry.place, entry.of) == (1, run.number, "run 2, into fbi")
    assert f'href="{address(run)}"' in shown(client.get("/projects/fbi/jobs/"))
    client.post("/projects/fbi/jobs/bring-in/1/cancel/")
    assert "cancelled" in shown(client.get(address(run), headers={"HX-Request": "true"}))


def test_a_program_brings_in_and_looks_how_far_it_is(
    lead: Membership, project: Project, in_this_program: None
) -> None:
    make_items(project, 2)
    run = ended(project)
    client = api_client(lead)
    asked = client.post(program(run), {}, content_type="application/json")
    assert asked.status_code == 201
    told = {name: asked.json()[name] for name in ("run", "into", "share", "brought", "state")}
    assert told == {
        "run": run.number, "into": "fbi", "share": 100, "brought": None, "state": "waiting",
    }  # fmt: skip
    work()
    [listed] = client.get(program(run)).json()["results"]
    assert (listed["state"], listed["brought"]["new"]) == ("finished", 2)
    assert Item.objects.filter(origin="generated").count() == 2


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"into": "nobodys"}, "into"),
        ({"share": 101}, "share"),
        ({"aside": ["odd"]}, "aside"),
        ({"unknown": 1}, "body"),
    ],
)
def test_what_cannot_be_is_said_by_field(
    lead: Membership, project: Project, said: dict[str, Any], field: str
) -> None:
    make_items(project, 1)
    answer = api_client(lead).post(program(ended(project)), said, content_type="application/json")
    assert (answer.status_code, list(answer.json()["errors"])) == (422, [field])


@pytest.mark.parametrize("change", [{"active": False}, {"role": "annotator"}, {}])
def test_a_job_that_waited_is_refused_to_who_is_no_lead_there_any_more(
    client: Client, lead: Membership, project: Project, change: dict[str, Any]
) -> None:
    led = make_project("led")
    there = make_member(led, role="lead", account=lead.account)
    make_items(project, 1)
    client.post(address(ended(project)), {"into": "led", **ALL})
    if change:
        Membership.objects.filter(pk=there.pk).update(**change)
    else:
        Project.objects.filter(pk=led.pk).update(archived_at=timezone.now())
    job = Job.objects.get()
    with pytest.raises(Refused, match="lena is no longer lead of both fbi and led"):
        bring_in.bring_in_replies(bring_in.load_request(job), job.member)
    assert not led.items.exists()


def test_another_lead_cannot_have_it_done_again_where_they_are_none(
    client: Client, lead: Membership, project: Project
) -> None:
    make_member(make_project("led"), role="lead", account=lead.account)
    make_items(project, 1)
    client.post(address(ended(project)), {"into": "led", **ALL})
    job = Job.objects.get()
    assert job_list.cancel_job(job, lead)
    job.refresh_from_db()
    assert not job_list.rerun_job(job, make_member(project, role="lead"))
    assert job_list.rerun_job(job, lead)


def test_what_comes_from_a_sealed_project_stays_sealed(
    client: Client, lead: Membership, project: Project, in_this_program: None
) -> None:
    led = make_project("led")
    make_member(led, role="lead", account=lead.account)
    make_items(project, 1)
    Project.objects.filter(pk=project.pk).update(sealed=True)
    run = ended(project)
    run.project.refresh_from_db()
    assert "that project is sealed too" in shown(client.get(address(run)))
    client.post(address(run), {"into": "led", **ALL})
    work()
    led.refresh_from_db()
    assert led.items.count() == 1
    assert led.sealed
