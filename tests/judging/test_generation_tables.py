"""What generator runs made comes in: as gold answers of the items, or as items of their own."""

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation.generation import generated_items
from annotation.generation.generated_items import GenerationResult
from annotation.generation.release import ReleasePolicy
from annotation.importing.exported_rows import DerivedRow
from annotation.jobs import subprocesses
from annotation.labelling import queue
from annotation.models import Event, Item, Project, Resolution, Slot
from formats.rows import BadRow
from judging.errors import Refused
from judging.generation import bring_in
from judging.generation.bring_in import BringInRequest
from judging.models import Run
from judging.runs import lifecycle
from tests.builders import make_item, make_member, make_project
from tests.judging.builders_judging import (
    answer_as,
    make_endpoint,
    make_items,
    make_run,
)

pytestmark = pytest.mark.django_db

NOBODY = "http://127.0.0.1:1/v1"
PERTURBED = {"perturbed": "It has nine legs.", "claim": "8 is 9.", "rationale": "It has eight."}


@pytest.fixture
def prompts() -> Project:
    return make_project("prompts", task_type="gold-verification")


def make_prompts(project: Project, number: int, **values: Any) -> list[Item]:
    """Items that wait for their gold answers."""
    items = []
    for one in range(1, number + 1):
        item = make_item(project, f"q{one}", category="", slots=0, cluster=f"{one:064x}", **values)
        item.revisions.update(texts={"prompt": f"How many legs have {one} spiders?"})
        items.append(item)
    return items


def ended(run: Run, say: Any) -> Run:
    """The run with every request answered."""
    lifecycle.plan_calls(run)
    answer_as(run, say)
    lifecycle.finish_if_done(run)
    run.refresh_from_db()
    assert run.state == "finished"
    return run


def answered(project: Project, **values: Any) -> Run:
    run = make_run(project, make_endpoint(NOBODY, name="m"), "generate-gold", **values)
    return ended(run, lambda prompt: "They have many.")


def perturbed(project: Project, **values: Any) -> Run:
    endpoint = make_endpoint(NOBODY)
    run = make_run(project, endpoint, "generate-number-errors", **values)
    return ended(run, lambda prompt: json.dumps(PERTURBED))


def bring(run: Run, target: Project | None = None, **vetting: Any) -> dict[str, Any]:
    return bring_in.bring_in_replies(
        BringInRequest(run, target or run.project, ReleasePolicy(**vetting)), None
    ).summary()


def test_gold_answers_become_revisions_of_the_prompts_and_a_share_goes_to_people(
    prompts: Project,
) -> None:
    items = make_prompts(prompts, 10)
    run = answered(prompts)
    said = bring(run, share=25)
    assert (said["new"], said["opened"], said["waiting"]) == (10, 3, 7)
    item = Item.objects.get(pk=items[0].pk)
    revision = item.revision()
    assert (revision.number, revision.texts["gold"]) == (2, "They have many.")
    assert "generate-gold v1" in revision.note
    assert item.fields["gold_generator"] == "generate-gold v1"
    assert len(item.fields["gold_request"]) == 64
    assert item.revision(1).texts.keys() == {"prompt"}
    assert Slot.objects.values("item").distinct().count() == 3


def test_what_is_kept_back_is_nobodys_work_and_the_pages_say_so(prompts: Project) -> None:
    make_prompts(prompts, 10)
    member = make_member(prompts)
    assert queue.load_progress(member).awaited == "10 prompts wait for their gold answer."
    bring(answered(prompts), share=25)
    progress = queue.load_progress(member)
    assert (progress.at_work, progress.awaiting) == (3, 7)
    assert progress.awaited == "7 items wait until a lead releases them to annotators."
    assert generated_items.release_waiting(prompts) == 7
    assert generated_items.release_waiting(prompts) == 0
    assert [one.data for one in Event.objects.filter(kind="places given")] == [{"items": 7}]
    assert queue.load_progress(member).awaited == ""


def test_the_same_again_is_nothing_new_and_gives_nobody_more(prompts: Project) -> None:
    make_prompts(prompts, 8)
    run = answered(prompts)
    bring(run, share=25)
    slots = set(Slot.objects.values_list("item", flat=True))
    again = bring(run, share=25)
    assert (again["new"], again["unchanged"], again["opened"]) == (0, 8, 0)
    assert set(Slot.objects.values_list("item", flat=True)) == slots
    assert bring(run, share=50)["opened"] == 2
    assert slots < set(Slot.objects.values_list("item", flat=True))


def test_a_gold_answer_that_is_there_is_never_overwritten(prompts: Project) -> None:
    [item, other] = make_prompts(prompts, 2)
    first = answered(prompts)
    run = make_run(prompts, make_endpoint(NOBODY), "generate-gold", seed=2)
    ended(run, lambda prompt: "Another answer.")
    bring(first)
    said = bring(run)
    assert (said["new"], said["conflicts"]) == (0, 2)
    assert said["problems"][0] == f"{item.key} now has other texts. Nothing was changed."
    assert {one.revision().texts["gold"] for one in prompts.items.all()} == {"They have many."}
    other.deleted_at = other.created_at
    other.save()
    assert bring(first)["conflicts"] == 1


def test_perturbed_answers_become_items_of_another_project_with_where_they_come_from(
    prompts: Project, project: Project
) -> None:
    make_prompts(prompts, 2)
    bring(answered(prompts))
    run = perturbed(prompts, samples=2)
    said = bring(run, project)
    assert (said["new"], said["opened"], said["bad"]) == (4, 4, 0)
    item = project.items.get(key=f"q1+number-errors.{run.number}.2")
    assert (item.category, item.source_ability, item.origin) == (
        "number-errors", "factual", "generated",
    )  # fmt: skip
    assert item.cluster == prompts.items.get(key="q1").cluster
    assert item.parent is None
    texts = item.revision().texts
    assert texts == {"prompt": "How many legs have 1 spiders?", "gold": "They have many."} | {
        name: PERTURBED[name] for name in PERTURBED
    }
    assert item.fields["generator"] == "generate-number-errors v1"
    assert item.fields["gold_generator"] == "generate-gold v1"
    assert "ability" not in item.fields
    assert (item.fields["source_project"], item.fields["source_item"]) == ("prompts", "q1")
    request = run.calls.get(outcome__item__key="q1", sample=1).request
    assert item.fields["request"] == request.digest
    assert bring(run, project)["unchanged"] == 4


def test_of_several_samples_those_of_no_use_stay_out(project: Project) -> None:
    [source] = make_items(project, 1)
    run = make_run(project, make_endpoint(NOBODY), "generate-number-errors", samples=2)
    replies = iter([PERTURBED, PERTURBED | {"perturbed": source.revision().texts["gold"]}])
    ended(run, lambda prompt: json.dumps(next(replies)))
    assert run.outcomes.get().values == {"made": 1, "missing": {"echoed": 1}}
    assert bring(run)["new"] == 1


def test_a_reply_comes_in_whatever_another_run_held_of_it(project: Project) -> None:
    make_items(project, 1)
    run = perturbed(project)
    other = make_run(project, run.endpoint, "generate-number-errors")
    lifecycle.plan_calls(other)
    assert other.calls.get().request == run.calls.get().request
    other.outcomes.update(result="missing", cause="incomplete")  # as an older parser read it
    assert bring(run)["new"] == 1


def test_in_the_project_of_their_gold_answers_items_name_their_parents(project: Project) -> None:
    [source] = make_items(project, 1)
    run = perturbed(project)
    assert bring(run)["new"] == 1
    assert project.items.get(origin="generated").parent == source


def test_of_what_makes_no_difference_the_rest_is_accepted_unseen(project: Project) -> None:
    make_items(project, 8)
    run = make_run(project, make_endpoint(NOBODY), "generate-score-invariant")
    ended(run, lambda prompt: json.dumps(PERTURBED | {"perturbed": f"Said so: {prompt[-9:]}"}))
    said = bring(run, share=25, accept=True)
    assert (said["new"], said["opened"], said["accepted"], said["waiting"]) == (8, 2, 6, 0)
    held = Resolution.objects.filter(item__origin="generated")
    assert set(held.values_list("value", "rule", "source")) == {
        ("score-invariant", "accepted unseen", "imported")
    }


def test_every_category_gets_one_at_least_and_what_is_set_aside_waits(project: Project) -> None:
    make_items(project, 3)
    run = perturbed(project)
    assert bring(run, share=1)["opened"] == 1
    project.items.filter(origin="generated").update(flags=["claim"])
    other = bring(run, share=100, aside=frozenset({"claim"}))
    assert (other["opened"], other["waiting"]) == (0, 2)


def test_a_small_share_is_drawn_in_each_category(project: Project) -> None:
    texts = {"prompt": "How many?", "gold": "It has eight legs.", **PERTURBED}
    rows = [
        DerivedRow("t", 1, {"key": f"{slug}-{number}", "category": slug, **texts})
        for slug in ("number-errors", "entity")
        for number in range(3)
    ]
    assert generated_items.store_items(project, rows, ReleasePolicy(share=1)).opened == 2
    given = Slot.objects.values_list("item__category", flat=True)
    assert set(given) == {"number-errors", "entity"}


def test_a_run_that_judges_or_goes_on_or_does_not_fit_is_refused(
    project: Project, prompts: Project
) -> None:
    make_items(project, 1)
    judge = make_run(project, make_endpoint(NOBODY))
    with pytest.raises(Refused, match="evaluates items and generates none"):
        bring_in.check(BringInRequest(judge, project, ReleasePolicy()))
    run = make_run(project, make_endpoint(NOBODY), "generate-entity")
    with pytest.raises(Refused, match="still running"):
        bring_in.check(BringInRequest(run, project, ReleasePolicy()))
    with pytest.raises(Refused, match="cannot take these items"):
        bring_in.check(BringInRequest(run, prompts, ReleasePolicy()))


def test_the_command_says_what_it_added_and_ends_with_an_error_if_something_was_left_out(
    project: Project,
) -> None:
    make_items(project, 2)
    run = perturbed(project)
    told = {"project": project.slug, "run": run.number}
    for new, unchanged in ((2, 0), (0, 2)):
        said = io.StringIO()
        call_command("bring_in", **told, stdout=said)
        assert said.getvalue() == (
            f"{new} added, {unchanged} unchanged; {new} released, 0 accepted without review, "
            "0 held back\n"
        )
    with pytest.raises(CommandError, match="Give --project and --run"):
        call_command("bring_in", project=project.slug)
    project.items.filter(origin="generated").update(category="spelling")
    problems = io.StringIO()
    with pytest.raises(CommandError, match="Some items were not added"):
        call_command("bring_in", **told, stdout=io.StringIO(), stderr=problems)
    assert "category" in problems.getvalue()


def test_what_people_have_to_see_is_accepted_by_no_command(
    prompts: Project, project: Project
) -> None:
    make_items(project, 1)
    make_prompts(prompts, 1)
    for run in (perturbed(project), answered(prompts)):
        with pytest.raises(CommandError, match="Only score-invariant items can be accepted"):
            call_command("bring_in", project=run.project.slug, run=run.number, accept=True)
        with pytest.raises(CommandError, match="--share: must lie between 0 and 100"):
            call_command("bring_in", project=run.project.slug, run=run.number, share=101)
    assert not Resolution.objects.filter(rule=generated_items.ACCEPTED_UNREVIEWED)


def test_a_job_brings_in_as_it_was_asked_to(project: Project) -> None:
    make_items(project, 4)
    member = make_member(project, role="lead")
    run = perturbed(project)
    job = bring_in.enqueue(BringInRequest(run, project, ReleasePolicy(share=50)), member)
    wish = bring_in.load_request(job)
    assert (wish.run, wish.target, wish.vetting.share) == (run, project, 50)
    done = bring_in.bring_in_replies(wish, member)
    assert done.opened == 2
    event = Event.objects.filter(kind="made").get()
    assert (event.member, event.data["items"], event.data["people_get"]) == (member, 4, 2)


def test_what_a_program_tells_fits_into_what_is_read_of_it() -> None:
    done = GenerationResult()
    done.report.bad = [BadRow("run 1", 1, "\N{GRINNING FACE}" * 200, "is not.")] * 100
    assert len(json.dumps(done.summary())) < subprocesses.TAIL_BYTES
