"""The pages of practice, known answers and silent checks."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.exporting.tables import TABLES
from annotation.labelling import answer_key, qualification, queue
from annotation.models import ApiToken, Item, Membership, Project, Resolution
from tests.builders import make_item, make_known, make_member, make_project, say, take

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    project = make_project(practice_items=2, practice_pass=2)
    for number in range(1, 3):
        make_known(project, f"practised-{number}", texts={"prompt": "How many <b>legs</b>?"})
    return project


@pytest.fixture
def lead(project: Project) -> Membership:
    return make_member(project, role="lead", alias="the-lead")


@pytest.fixture
def member(project: Project) -> Membership:
    return make_member(project, alias="anna")


def client(who: Membership) -> Client:
    client = Client()
    client.force_login(who.account)  # type: ignore[arg-type]
    return client


def page(who: Membership, name: str, query: str = "") -> str:
    answer = client(who).get(reverse(name, args=[who.project.slug]) + query)
    assert answer.status_code == 200
    return answer.content.decode()


def send(who: Membership, name: str, **data: Any) -> tuple[int, str]:
    sent = {key.replace("__", "-"): value for key, value in data.items()}
    answer = client(who).post(reverse(name, args=[who.project.slug]), sent)
    return answer.status_code, answer.content.decode()


def test_feedback_stands_where_the_member_goes_on(lead: Membership, member: Membership) -> None:
    for _ in range(2):
        say(member, take(member), "invalid")
    assert "a lead decides how you go on" in page(member, "project")
    row = qualification.find_round(member, 1)
    assert row
    qualification.give_feedback(row, "Read the <i>claim</i> first.", lead=lead)
    said = "the-lead on round 1:</strong> Read the &lt;i&gt;claim&lt;/i&gt; first."
    assert said in page(member, "project")
    assert said in page(member, "label")
    qualification.start_new_round(member, lead=lead)
    shown = page(member, "label")
    assert "item 1 of 2" in shown
    assert said in shown
    assert "item 1 of 2" in page(member, "project")
    qualification.waive(member, lead=lead)
    assert said not in page(member, "label")
    assert said not in page(member, "project")


def test_a_member_sees_what_was_right_and_why(member: Membership) -> None:
    assert "Start the round" in page(member, "qualification")
    say(member, take(member), "invalid")
    shown = page(member, "qualification")
    assert "not right" in shown
    assert "It is valid." in shown
    assert "How many &lt;b&gt;legs&lt;/b&gt;?" in shown
    assert "0 of 1 right, 2 to answer" in shown


def test_the_first_page_and_the_screen_say_how_far_the_qualification_is(member: Membership) -> None:
    first = "Qualification: item 1 of 2, 2 needed to pass."
    assert first in page(member, "project")
    assert first in page(member, "label")
    say(member, take(member))
    assert "Qualification: item 2 of 2, 2 needed to pass." in page(member, "project")
    say(member, take(member))
    member.refresh_from_db()
    make_item(member.project)
    for name in ("project", "label"):
        assert "needed to pass" not in page(member, name)
    assert "needed to pass" not in page(make_member(member.project, role="lead"), "project")


def test_a_member_who_waits_is_told_so_and_reads_what_a_lead_says(
    member: Membership, lead: Membership
) -> None:
    for _ in range(2):
        say(member, take(member), "invalid")
    assert "A lead will review your answers" in page(member, "qualification")
    status, _ = send(
        lead,
        "qualification-people",
        action="feedback",
        member="anna",
        round=1,
        feedback="Read <i>on</i>.",
    )
    assert status == 302
    shown = page(member, "qualification")
    assert "From the-lead" in shown
    assert "Read &lt;i&gt;on&lt;/i&gt;." in shown


def test_a_field_that_asks_has_no_colon_behind_its_question() -> None:
    project = make_project(task_type="error-detection", practice_items=1, practice_pass=1)
    lead, member = make_member(project, role="lead"), make_member(project)
    item = make_item(project, texts={"input": "2 + 2?", "response": "5"})
    known = {"verdict": "error", "error_type": ["reasoning-correctness"]}
    answer_key.set_answer(project, item, "practice", known, "It is 4.", lead)
    queue.store_label(member, take(member).submission({"verdict": "no_error"}))
    shown = " ".join(page(member, "qualification").split())
    assert "Verdict: Error; Which error categories? Reasoning correctness" in shown


def test_who_passed_is_sent_to_work(member: Membership) -> None:
    for _ in range(2):
        say(member, take(member))
    assert "You have passed" in page(member, "qualification")


def test_leads_see_who_waits_for_them_and_let_them_go_on(
    member: Membership, lead: Membership
) -> None:
    for _ in range(2):
        say(member, take(member), "invalid")
    assert "needs your decision" in page(lead, "qualification-people")
    assert send(lead, "qualification-people", action="again", member="anna")[0] == 302
    assert len(qualification.list_rounds(member)) == 2
    assert send(lead, "qualification-people", action="waive", member="anna")[0] == 302
    assert "qualified" in page(lead, "qualification-people")
    status, said = send(lead, "qualification-people", action="waive", member="anna")
    assert status == 422
    assert "anna is already qualified" in said


def test_what_leads_send_about_nobody_leads_nowhere(lead: Membership) -> None:
    assert send(lead, "qualification-people", action="waive", member="nobody")[0] == 404
    assert send(lead, "qualification-people", action="sing", member="anna")[0] == 422
    make_member(lead.project, alias="anna")
    assert send(lead, "qualification-people", action="feedback", member="anna", round=7)[0] == 404


def test_a_lead_sets_changes_and_ends_what_is_known(lead: Membership) -> None:
    make_item(lead.project, "a/b 1")
    data = {"known__item": "a/b 1", "known__purpose": "probe", "known__explanation": "Six legs."}
    assert send(lead, "answer-key", choice="invalid", **data)[0] == 302
    [item] = answer_key.items_with_answer(lead.project, "probe")
    shown = page(lead, "answer-key", "?item=a/b%201")
    assert '<option value="invalid" selected>' in shown
    assert "Six legs.</textarea>" in shown
    assert send(lead, "answer-key", choice="valid", **data)[0] == 302
    assert Resolution.objects.current().get(item=item).value == "valid"
    assert send(lead, "answer-key", known__release="a/b 1")[0] == 302
    assert answer_key.items_with_answer(lead.project, "probe") == []


def test_correct_answers_that_nobody_is_asked_for_are_pointed_out(lead: Membership) -> None:
    project, asked = lead.project, "the project asks for no"
    assert asked not in page(lead, "answer-key")
    make_known(project, "checked", purpose="probe")
    assert "Nobody gets the control items: the project asks for none." in page(lead, "answer-key")
    Project.objects.update(practice_items=0, probe_every=4)
    shown = page(lead, "answer-key")
    assert "Nobody gets the qualification items" in shown
    assert "control items: the" not in shown
    assert reverse("answer-key", args=[project.slug]) in page(lead, "qualification")
    Project.objects.update(practice_items=3)
    assert "a round has 3 items, and there are 2" in page(lead, "answer-key")


def test_an_item_leads_to_its_correct_answer(lead: Membership) -> None:
    item = make_item(lead.project, "a b")
    client_of = client(lead)
    shown = client_of.get(reverse("item", args=[lead.project.slug, item.key])).content.decode()
    there = reverse("answer-key", args=[lead.project.slug]) + "?item=a%20b"
    assert f'href="{there}#set-title"' in shown
    assert 'value="a b"' in client_of.get(there).content.decode()


@pytest.mark.parametrize(
    "data, said",
    [
        ({"known__item": "nothing", "choice": "valid"}, "No item has this key"),
        ({"known__item": "a", "choice": ""}, "Set a correct answer"),
        ({"known__item": "a", "choice": "perhaps"}, "choose one of"),
        ({"known__item": "a", "choice": "valid", "known__explanation": ""}, "Explain why"),
        ({"known__item": "", "choice": "valid"}, "This field is required"),
    ],
)
def test_what_cannot_be_known_is_said_and_what_was_written_stays(
    lead: Membership, data: dict[str, str], said: str
) -> None:
    make_item(lead.project, "a")
    sent = {"known__purpose": "practice", "known__explanation": "Count them.", **data}
    status, shown = send(lead, "answer-key", **sent)
    assert status == 422
    assert said in shown
    assert f"{sent['known__explanation']}</textarea>" in shown
    assert Item.objects.get(key="a").purpose == "test"


def test_an_item_that_practice_needs_is_not_released(lead: Membership) -> None:
    status, shown = send(lead, "answer-key", known__release="practised-1")
    assert status == 422
    assert "too few" in shown


def test_a_key_that_gives_a_check_away_is_pointed_out(lead: Membership) -> None:
    make_known(lead.project, "probe-7", purpose="probe")
    make_known(lead.project, "grammar-9", purpose="probe")
    assert page(lead, "answer-key").count("shows annotators that the item is a control item") == 1


def test_leads_see_what_came_of_checks(lead: Membership, member: Membership) -> None:
    Project.objects.update(practice_items=0, probe_every=1)
    member.project.refresh_from_db()
    lead.project.refresh_from_db()
    assert "No control item labelled yet" in page(lead, "control-items")
    make_item(lead.project)
    for number in range(2):
        make_known(lead.project, f"item-{number}", purpose="probe")
    for choice in ("valid", "not-sure"):
        say(member, take(member), choice)
    shown = page(lead, "control-items")
    assert '<th scope="row">anna</th>' in shown
    assert "50.0 %" in shown
    assert "Not sure" in shown


# ---------------------------------------------------------------------------------------- API


def from_api(who: Membership, name: str) -> Any:
    _, key = ApiToken.issue(who.account, "test")  # type: ignore[arg-type]
    program = Client(headers={"Authorization": f"Bearer {key}"})
    return program.get(reverse(f"api-{name}", args=[who.project.slug])).json()


def test_the_api_says_of_practice_what_the_pages_say(member: Membership, lead: Membership) -> None:
    say(member, take(member), "invalid")
    standing = from_api(member, "practice")
    assert (standing["annotator"], standing["due"], standing["waits"]) == ("anna", True, False)
    [told] = standing["rounds"]
    assert (told["number"], told["answered"], told["right"], told["passed"]) == (1, 1, 0, False)
    [lesson] = told["lessons"]
    assert lesson["known"] == {"choice": "valid"}
    assert lesson["explanation"] == "It is valid."
    assert from_api(lead, "practice-people") == [standing]


def test_the_api_explains_an_answer_of_practice_and_no_other(member: Membership) -> None:
    make_item(member.project, "work")
    _, key = ApiToken.issue(member.account, "test")  # type: ignore[arg-type]
    program = Client(headers={"Authorization": f"Bearer {key}"})
    lessons = []
    for _ in range(3):
        offer = program.post(reverse("api-next", args=[member.project.slug])).json()
        body = {"key": offer["key"], "item": offer["item"]["key"], "revision": offer["revision"]}
        answer = program.post(
            reverse("api-labels", args=[member.project.slug]),
            body | {"answers": {"choice": "valid"}},
            content_type="application/json",
        )
        lessons.append((offer["phase"], answer.json()["lesson"]))
    assert [phase for phase, _ in lessons] == ["qualification", "qualification", "label"]
    assert [lesson and lesson["explanation"] for _, lesson in lessons] == ["It is valid."] * 2 + [
        None
    ]


def test_the_api_says_of_checks_what_the_page_says(lead: Membership, member: Membership) -> None:
    Project.objects.update(practice_items=0, probe_every=1)
    member.project.refresh_from_db()
    make_item(lead.project)
    make_known(lead.project, "item-1", purpose="probe")
    say(member, take(member), "invalid")
    [result] = from_api(lead, "probes")
    assert (result["annotator"], result["right"], result["corrected"]) == ("anna", 0, 0)
    assert (result["share"]["value"], result["share"]["n"]) == (0.0, 1)
    assert result["wrong"][0]["said"] == {"choice": "invalid"}


def test_rounds_and_results_can_be_taken_out_as_tables(
    member: Membership, lead: Membership
) -> None:
    for _ in range(2):
        say(member, take(member))
    Project.objects.update(probe_every=1)
    make_item(lead.project)
    make_known(lead.project, "item-1", purpose="probe")
    working = Membership.objects.select_related("project__task_type").get(pk=member.pk)
    say(working, take(working), "invalid")
    [row] = TABLES["practice"].rows(lead.project)
    assert (row["annotator"], row["right"], row["passed"]) == ("anna", 2, True)
    [row] = TABLES["probes"].rows(lead.project)
    assert (row["checks"], row["right"], row["wrong"]) == (1, 0, ["item-1"])


def test_the_page_of_a_round_asks_no_more_for_more_answers(
    member: Membership, lead: Membership, django_assert_num_queries: Any
) -> None:
    say(member, take(member))
    visitor, place = client(lead), reverse("qualification-people", args=[lead.project.slug])
    visitor.get(place)
    with django_assert_num_queries(40, exact=False) as few:
        visitor.get(place)
    say(member, take(member))
    with django_assert_num_queries(len(few), exact=False):
        visitor.get(place)
