"""The pages where leads see what came of made items, give them to people, and make some again."""

import json
from typing import Any

import pytest
from django.test import Client

from annotation.generation.release import ReleasePolicy
from annotation.models import Event, Item, Membership, Project, Slot
from annotation.reports.generation_board import GenerationCounts
from judging.generation import bring_in, regenerate
from judging.generation.bring_in import BringInRequest
from judging.generation.views import board as views_board
from judging.models import Run
from judging.runs import lifecycle
from judging.runs.run_config import RunOverrides
from judging.strategies import catalogue, editing
from stats.estimates import Estimate
from tests.builders import make_item, make_member, make_resolution, say, take
from tests.hostile import ALL, MARK, taken_for_markup
from tests.judging.builders_judging import answer_as, make_endpoint, make_items, make_run

pytestmark = pytest.mark.django_db

NOBODY = "http://127.0.0.1:1/v1"
BOARD, OPEN = "/projects/fbi/generation/", "/projects/fbi/generation/release/"
AGAIN = "/projects/fbi/generation/number-errors/"


@pytest.fixture
def lead(client: Client, project: Project) -> Membership:
    made = make_member(project, role="lead", alias="lena")
    assert made.account
    client.force_login(made.account)
    return made


def generated(project: Project, number: int, **values: Any) -> list[Item]:
    told = {"generator": "generate-number-errors v1"}
    values = {"origin": "generated", "fields": told, "slots": 0, **values}
    first = project.items.count()
    texts = {"claim": "8 became 6."}
    return [
        make_item(project, f"made-{first + one}", texts=texts, **values) for one in range(number)
    ]


def turned_down(project: Project, number: int = 1) -> list[Item]:
    """Items that a person held for invalid, and said why."""
    items = generated(project, number, slots=1)
    member = make_member(project)
    for item in items:
        say(member, take(member), "invalid", comment=f"Of {item.key} <b>nobody</b> would notice.")
    return items


def shown(answer: Any, status: int = 200) -> str:
    assert answer.status_code == status
    return " ".join(answer.content.decode().split())


def sent(client: Client, items: list[Item], **said: Any) -> Any:
    keys = [item.key for item in items]
    return client.post(AGAIN, {"strategy": "generate-number-errors", "items": keys, **said})


def test_the_board_shows_what_was_made_and_how_it_turned_out(
    client: Client, lead: Membership, project: Project
) -> None:
    held, down, *_ = generated(project, 5, flags=["claim"])
    make_resolution(held, "valid", source="labels")
    make_resolution(down, "invalid", source="labels")
    page = shown(client.get(BOARD))
    assert 'aria-label="1 as intended, 1 rejected, 3 waiting"' in page
    assert "generate-number-errors v1" in page
    assert "50.0 %" in page
    assert "?category=number-errors&amp;flag=claim" in page
    assert "Release the rest, including 3 flagged" in page
    assert 'href="/projects/fbi/strategies/generate-number-errors/edit/"' in page
    assert f'href="{AGAIN}"' in page


def test_the_parts_of_a_bar_make_the_whole(project: Project) -> None:
    for item in generated(project, 3)[:2]:
        make_resolution(item, "valid", source="labels")
    [line] = views_board.load_board(project)
    assert [(part.kind, part.n, part.begin) for part in line.bar] == [
        ("held", 2, 0),
        ("waiting", 1, 66.67),
    ]


def test_as_many_are_offered_to_be_made_again_as_were_rejected(project: Project) -> None:
    generated(project, 1, category="", fields={"generator": "generate-gold v1"})
    generated(project, 1, category="factual-errors")
    turned_down(project, 2)
    rejected = {line.row.category: line.rejected for line in views_board.load_board(project)}
    assert rejected == {"": 0, "factual-errors": 0, "number-errors": 2}


def test_each_rejection_is_counted_once_with_its_reason_in_brackets(
    client: Client, lead: Membership, project: Project
) -> None:
    member = make_member(project)
    for choice in ("not-sure", "not-sure", "invalid"):
        generated(project, 1, slots=1)
        say(member, take(member), choice)
    page = shown(client.get(BOARD))
    assert "<dd>Not sure: 2 (it needs an expert: 2); Invalid: 1</dd>" in page
    page = shown(client.get("/projects/fbi/board/"))
    assert "Not sure: 2 (it needs an expert: 2); Invalid: 1</td>" in page


def test_where_rejected_items_cannot_be_regenerated_the_board_says_why(
    client: Client, lead: Membership, project: Project
) -> None:
    items = generated(project, 1, category="", fields={"generator": "generate-gold v1"})
    items += generated(project, 1, category="formatting")
    for item in items:
        make_resolution(item, "invalid", source="labels")
    page = shown(client.get(BOARD))
    assert "Items without a category cannot be regenerated." in page
    assert "no strategy generates this category" in page
    assert "rejected…" not in page
    [item] = turned_down(project)
    assert "Regenerate 1 rejected…" in shown(client.get(BOARD))
    guided = make_run(
        project,
        make_endpoint(NOBODY),
        "generate-number-errors",
        items={item.pk},
        own=RunOverrides(guidance={item.key: "Too easy."}),
    )
    key = f"{item.key}+number-errors.{guided.number}.1"
    make_item(project, key, parent=item, origin="generated")
    page = shown(client.get(BOARD))
    assert "Nothing is left to regenerate: the rejected items have been" in page
    assert "rejected…" not in page


def test_an_empty_board_says_how_items_are_made(client: Client, lead: Membership) -> None:
    page = shown(client.get(BOARD))
    assert "No generated items yet" in page
    assert 'href="/projects/fbi/runs/new/"' in page
    assert 'href="/projects/fbi/perturb/"' in page


def test_what_waits_is_given_to_people_with_the_flagged_or_without(
    client: Client, lead: Membership, project: Project
) -> None:
    generated(project, 2)
    generated(project, 1, flags=["claim"])
    told = client.post(OPEN, {"category": "number-errors", "flagged": "no"}, follow=True)
    assert "2 items released to annotators." in shown(told)
    assert Slot.objects.values("item").distinct().count() == 2
    told = client.post(OPEN, {"category": "number-errors", "flagged": "yes"}, follow=True)
    assert "1 item released to annotators." in shown(told)
    told = client.post(OPEN, {"category": "number-errors", "flagged": "yes"}, follow=True)
    assert "No such items were held for review." in shown(told)
    assert Event.objects.filter(kind="places given", member=lead).count() == 2
    assert "This category does not exist" in shown(
        client.post(OPEN, {"category": "x"}, follow=True)
    )


def test_the_instruction_of_ones_own_is_edited_before_a_shipped_one(
    lead: Membership, project: Project
) -> None:
    generated(project, 1)
    assert [line.strategy for line in views_board.load_board(project)] == ["generate-number-errors"]
    shipped = catalogue.find_version(project, "generate-number-errors")
    assert shipped
    editing.copy_strategy(project, shipped, slug="our-numbers", member=lead)
    assert [line.strategy for line in views_board.load_board(project)] == ["our-numbers"]


def test_what_no_model_made_has_no_instruction_to_edit(project: Project) -> None:
    generated(project, 1, origin="perturber", fields={"perturber": "numbers"})
    assert [line.strategy for line in views_board.load_board(project)] == [""]


def test_the_instruction_of_gold_answers_is_the_one_that_made_them(project: Project) -> None:
    generated(project, 1, category="", fields={"generator": "generate-gold v1"})
    assert [line.strategy for line in views_board.load_board(project)] == ["generate-gold"]


def test_what_was_turned_down_is_made_again_with_what_people_said(
    client: Client, lead: Membership, project: Project
) -> None:
    items = turned_down(project, 2)
    make_endpoint(NOBODY, name="judge")
    page = shown(client.get(AGAIN))
    assert "Of made-0 &lt;b&gt;nobody&lt;/b&gt; would notice." in page
    assert page.count("checked") == 2
    assert "baseline" not in page
    answer = sent(client, items[:1], endpoint="judge", cap="")
    run = Run.objects.get()
    assert answer.headers["Location"] == f"/projects/fbi/runs/{run.number}/"
    assert (run.member, run.strategy.slug) == (lead, "generate-number-errors")
    assert [outcome.item for outcome in run.outcomes.all()] == items[:1]
    lifecycle.plan_calls(run)
    perturbed = {"perturbed": "Nine legs.", "claim": "8 is 9.", "rationale": "It has eight."}
    answer_as(run, lambda prompt: json.dumps(perturbed))
    lifecycle.finish_if_done(run)
    run.refresh_from_db()
    bring_in.bring_in_replies(BringInRequest(run, project, ReleasePolicy()), lead)
    assert project.items.get(parent=items[0]).origin == "generated"
    assert [one.item for one in regenerate.load_rejected(project, "number-errors")] == items[1:]


def test_what_cannot_be_made_again_is_said_and_what_was_chosen_stays(
    client: Client, lead: Membership, project: Project
) -> None:
    items = turned_down(project, 2)
    make_endpoint(NOBODY, name="judge")
    page = shown(sent(client, items[:1], endpoint="nobody"), 422)
    assert "nobody is not one of the available choices" in page
    assert page.count("checked") == 1
    assert "Choose items to regenerate" in shown(sent(client, [], endpoint="judge"), 422)
    other = generated(project, 1)
    page = shown(sent(client, other, endpoint="judge"), 422)
    assert "has been regenerated or has a new final label" in page
    assert "With a cap of 0 no request can be sent" in shown(
        sent(client, items, endpoint="judge", cap="0"), 422
    )
    assert not Run.objects.exists()


def test_only_what_is_offered_is_read_and_the_rest_is_counted(
    client: Client, lead: Membership, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = turned_down(project, 3)
    monkeypatch.setattr(views_board, "MOST_AT_ONCE", 1)
    page = shown(client.get(AGAIN))
    assert "These are the first 1; 2 more are not shown." in page
    assert items[1].key not in page
    [one] = regenerate.load_rejected(project, "number-errors", items=[items[2].pk])
    assert one.said


def test_where_nothing_was_turned_down_there_is_nothing_to_make_again(
    client: Client, lead: Membership
) -> None:
    assert "Nothing to regenerate" in shown(client.get(AGAIN))
    assert client.get("/projects/fbi/generation/no-such/").status_code == 404


def test_what_models_and_people_wrote_stays_text(
    client: Client, lead: Membership, project: Project
) -> None:
    told = {"generator": f"<b {MARK}> v1", "model": ALL}
    generated(project, 1, fields=told, slots=1, flags=["<b>"])
    say(lead, take(lead), "invalid", comment=ALL)
    make_items(project, 1)
    run = make_run(project, make_endpoint(NOBODY), "generate-entity")
    lifecycle.plan_calls(run)
    reply = {"perturbed": ALL, "claim": ALL, "rationale": ALL}
    answer_as(run, lambda prompt: json.dumps(reply))
    lifecycle.finish_if_done(run)
    for address in (BOARD, AGAIN, f"/projects/fbi/runs/{run.number}/bring-in/"):
        page = client.get(address).content.decode()
        assert taken_for_markup(page) == []
        assert "data-hostile" in page


def test_leads_find_the_board_from_the_project_and_the_runs(
    client: Client, lead: Membership, project: Project, member: Membership
) -> None:
    make_items(project, 1)
    make_run(project)
    link = f'href="{BOARD}"'
    assert link in shown(client.get("/projects/fbi/"))
    assert link in shown(client.get("/projects/fbi/runs/"))
    assert member.account
    client.force_login(member.account)
    assert link not in shown(client.get("/projects/fbi/runs/"))


def test_a_bar_has_a_part_for_each_kind_of_items_that_there_are() -> None:
    made = GenerationCounts(
        maker="m", items=3, waiting=1, aside=0, with_people=0, held=1, turned_down=1, unseen=0,
        share=Estimate(0.5, None, None, 2),
    )  # fmt: skip
    parts = [(one.kind, one.n, one.begin, one.width) for one in views_board._bar(made)]
    assert parts == [
        ("held", 1, 0.0, 33.33), ("turned_down", 1, 33.33, 33.33), ("waiting", 1, 66.66, 33.33),
    ]  # fmt: skip
