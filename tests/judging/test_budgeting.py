"""A project's budget: on its page, in the API, by command, and against what runs spend."""

import io
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from annotation.models import Event, Membership, Project
from judging.models import Budget, Run
from judging.runs import budget, lifecycle, spending
from judging.runs.counts import PaidReplies
from tests.annotation.test_queue_threads import at_once
from tests.builders import make_member
from tests.judging.builders_judging import answer, api_client, make_endpoint, make_items, make_run

pytestmark = pytest.mark.django_db

API = "/api/v1/projects/fbi/budget/"
PAGE = "/projects/fbi/budget/"
QUERIES = 11


@pytest.fixture
def lead(project: Project) -> Membership:
    return make_member(project, role="lead")


def asked(project: Project, *, price: int | None, items: int = 2) -> Run:
    """A run whose replies of 100 tokens in and 50 out are there, at this price a million."""
    make_items(project, items)
    prices = {} if price is None else {"price_in": Decimal(price), "price_out": Decimal(price)}
    run = make_run(project, make_endpoint("http://127.0.0.1:9/v1", **prices))
    lifecycle.plan_calls(run)
    answer(run, tokens_in=100, tokens_out=50)
    run.refresh_from_db()
    return run


def shown(client: Client) -> str:
    answered = client.get(PAGE)
    assert answered.status_code == 200
    return " ".join(answered.content.decode().split())


def test_nothing_spent_is_said_and_leads_to_a_first_run(browser: Client, project: Project) -> None:
    page = shown(browser)
    assert "Nothing spent yet" in page
    assert "<dt>Cap</dt><dd>none</dd>" in page
    assert "<dt>Left</dt><dd>—</dd>" in page
    assert "Only a lead can set the cap." in page


def test_a_clone_is_offered_with_the_cap_of_its_run(
    client: Client, project: Project, lead: Membership
) -> None:
    make_items(project, 1)
    endpoint = make_endpoint("http://127.0.0.1:9/v1", price_in=Decimal(1), price_out=Decimal(1))
    run = make_run(project, endpoint, cap=Decimal("2.5"))
    client.force_login(lead.account)
    page = client.get(reverse("run-clone", args=[project.slug, run.number])).content.decode()
    assert 'name="cap" value="2.5"' in page


def test_a_cap_set_later_counts_what_was_spent_before(
    client: Client, project: Project, lead: Membership
) -> None:
    # 2 replies x 150 tokens x 10 / 1,000,000 = 0.003.
    asked(project, price=10)
    client.force_login(lead.account)
    assert client.post(PAGE, {"cap": "0.01"}).status_code == 302
    budget = Budget.objects.get()
    assert (budget.cap, budget.spent) == (Decimal("0.010000"), Decimal("0.003000"))
    page = shown(client)
    assert "<dt>Spent</dt><dd>0.003 USD</dd>" in page
    assert "<dt>Left</dt><dd>0.007 USD</dd>" in page
    assert Event.objects.filter(kind="budget", member=lead).count() == 1


def test_a_cap_below_what_is_spent_is_saved_with_a_warning(
    client: Client, project: Project, lead: Membership
) -> None:
    asked(project, price=10)
    client.force_login(lead.account)
    said = client.post(PAGE, {"cap": "0.001"}, follow=True).content.decode()
    assert "Cap saved. Nothing of it is left" in said
    said = client.post(PAGE, {"cap": "1"}, follow=True).content.decode()
    assert "Cap saved. Paused runs stay paused" in said


def test_an_endpoint_without_prices_is_refused_for_the_budget_by_its_name(
    project: Project,
) -> None:
    make_items(project, 1)
    Budget.objects.create(project=project, cap=Decimal("7.5"))
    with pytest.raises(lifecycle.Refused, match=r"budget of 7\.5 USD cannot") as refused:
        make_run(project, make_endpoint("http://127.0.0.1:9/v1"))
    assert "let a lead remove the budget" in str(refused.value)
    assert "leave the cap empty" not in str(refused.value)


def test_a_run_that_the_budget_paused_leads_to_the_budget_as_it_is_now(
    browser: Client, project: Project
) -> None:
    Budget.objects.create(project=project, cap=Decimal("0.01"))
    prices = {"price_in": Decimal(0), "price_out": Decimal(10)}
    make_items(project, 2)
    run = make_run(project, make_endpoint("http://127.0.0.1:9/v1", **prices))
    lifecycle.plan_calls(run)
    # A call reserves 1,024 tokens at 10 a million.
    assert answer(run) == 0
    link = f'<a href="{PAGE}">Budget</a></div>'

    def reason() -> str:
        page = browser.get(f"/projects/fbi/runs/{run.number}/").content.decode()
        return page.split("Why this run is paused")[1].split("</div>")[0] + "</div>"

    assert f"Now 0.01 USD of the budget of 0.01 USD is left. {link}" in reason()
    budget.set_cap(project, None, None)
    assert f"Now the project has no budget. Resume the run. {link}" in reason()
    lifecycle.resume(run, None)
    lifecycle.pause(run, None)
    assert "Budget</a>" not in reason()


@pytest.mark.django_db(transaction=True)
def test_of_leads_who_set_the_first_cap_at_once_the_last_is_right(project: Project) -> None:
    caps = [Decimal(number) for number in (1, 2, 3, 4)]
    at_once(*(lambda cap=cap: budget.set_cap(project, cap, None) for cap in caps))
    assert Budget.objects.get(project=project).cap in caps
    changes = [event.data for event in Event.objects.filter(kind="budget").order_by("pk")]
    assert changes[0]["old"]["cap"] is None
    new = [Decimal(one["new"]["cap"]) for one in changes]
    assert sorted(new) == caps
    assert [Decimal(one["old"]["cap"]) for one in changes[1:]] == new[:3]


def test_what_is_reserved_when_the_cap_is_set_is_freed_again(project: Project) -> None:
    run = asked(project, price=10)
    assert spending.reserve(run, [Decimal("0.5")]).count == 1
    budget.set_cap(project, Decimal(1), None)
    assert budget.load_status(project).left == Decimal("0.497")
    assert spending.reserve(run, [Decimal("0.6")]).count == 0


def test_replies_of_an_unknown_price_are_said_to_be_unknown(
    browser: Client, project: Project
) -> None:
    asked(project, price=None)
    page = shown(browser)
    # Two replies of 100 tokens in and 50 out.
    assert "<dt>Spent</dt><dd>unknown (300 tokens)</dd>" in page
    assert "2 of 2 replies have an unknown cost" in page
    assert "what was reserved" not in page
    assert '<td class="number" data-title="Spent">unknown (300 tokens)</td>' in page
    number = Run.objects.get().number
    for address in ("/projects/fbi/runs/", f"/projects/fbi/runs/{number}/"):
        assert "unknown (300 tokens)" in browser.get(address).content.decode()


def test_where_replies_tell_no_tokens_what_was_reserved_is_shown_as_counted(
    browser: Client, project: Project
) -> None:
    make_items(project, 2)
    prices = {"price_in": Decimal(0), "price_out": Decimal(10)}
    run = make_run(project, make_endpoint("http://127.0.0.1:9/v1", **prices))
    lifecycle.plan_calls(run)
    answer(run, tokens_in=None, tokens_out=None)
    # For 2 answers of 1,024 tokens at most.
    words = "unknown, at most 0.02048 USD counted"
    page = shown(browser)
    assert f"<dt>Spent</dt><dd>{words}</dd>" in page
    assert f'<td class="number" data-title="Spent">{words}</td>' in page
    assert "the amount reserved for the reply counts instead" in page
    assert words in browser.get("/projects/fbi/runs/1/").content.decode()
    [said] = browser.get(API).json()["runs"]
    assert (said["spent"], Decimal(said["counted"])) == (None, Decimal("0.02048"))


def test_a_run_that_can_cost_nothing_is_free_before_its_first_reply(
    browser: Client, project: Project
) -> None:
    make_items(project, 1)
    for price, words in ((0, "free"), (1, "0 USD"), (None, "0 USD")):
        endpoint = make_endpoint("http://127.0.0.1:9/v1", price_in=price, price_out=price)
        run = make_run(project, endpoint)
        page = browser.get(f"/projects/fbi/runs/{run.number}/").content.decode()
        assert f"<dt>Spent</dt><dd>{words}</dd>" in " ".join(page.split())
    assert ">free</td>" in browser.get("/projects/fbi/runs/").content.decode()


def test_what_costs_nothing_is_free_and_not_unknown(browser: Client, project: Project) -> None:
    asked(project, price=0)
    assert "<dt>Spent</dt><dd>free</dd>" in shown(browser)
    for address in ("/projects/fbi/runs/", "/projects/fbi/runs/1/"):
        assert "free" in browser.get(address).content.decode()


@pytest.mark.parametrize(
    ("spent", "paid", "words"),
    [
        ("0", PaidReplies(), "0 USD"),
        ("0.5", PaidReplies(2, 0, 0, 2), "0.5 USD"),
        ("0", PaidReplies(2, 0, 0, 0), "free"),
        # What it would have paid others paid before.
        ("0", PaidReplies(2, 0, 0, 2), "0 USD"),
        ("0", PaidReplies(2, 2, 1500, 0), "unknown (1,500 tokens)"),
        ("0", PaidReplies(2, 2, 0, 0), "unknown"),
        ("0.25", PaidReplies(2, 2, 0, 0), "unknown, at most 0.25 USD counted"),
        ("0.25", PaidReplies(2, 2, 40, 0), "unknown, at most 0.25 USD counted (40 tokens)"),
        (
            "0.25",
            PaidReplies(3, 1, 150, 2),
            "0.25 USD, unknown cost for 1 of 3 replies (150 tokens)",
        ),
        ("1234.00003051", PaidReplies(1, 0, 0, 1), "1,234.000031 USD"),
        ("0.000030512345", PaidReplies(1, 0, 0, 1), "0.00003051 USD"),
    ],
)
def test_money_in_words(spent: str, paid: PaidReplies, words: str) -> None:
    assert budget.format_spent(Decimal(spent), paid) == words


def test_a_budget_is_read_and_set_in_the_api(
    program: Client, project: Project, lead: Membership
) -> None:
    asked(project, price=10)
    asked(project, price=None, items=1)
    said = program.get(API).json()
    assert said["project"]["cap"] is None
    assert (said["project"]["spent"], said["project"]["unknown"]) == ("0.003000000000", 3)
    assert said["project"]["unknown_tokens"] == 450
    assert [one["spent"] for one in said["runs"]] == ["0.003000000000", None]
    assert program.put(API, {"cap": "2"}, content_type="application/json").status_code == 403
    by_lead = api_client(lead)
    set_to = by_lead.put(API, {"cap": "2"}, content_type="application/json").json()
    assert (set_to["project"]["cap"], set_to["project"]["left"]) == ("2.000000", "1.997000000000")
    assert by_lead.put(API, {}, content_type="application/json").status_code == 422
    none = by_lead.put(API, {"cap": None}, content_type="application/json").json()
    assert none["project"]["left"] is None


def test_a_cap_is_a_number_of_money(client: Client, project: Project, lead: Membership) -> None:
    client.force_login(lead.account)
    for wrong in ("-1", "much", "NaN"):
        assert client.post(PAGE, {"cap": wrong}).status_code == 422
    assert not Budget.objects.exists()


def test_the_command_says_and_sets_the_same(project: Project) -> None:
    asked(project, price=10)

    def say(*words: str) -> list[str]:
        out = io.StringIO()
        call_command("budget", "--project", "fbi", *words, stdout=out)
        return out.getvalue().splitlines()

    assert say("--cap", "1.5")[0].startswith("cap 1.5 USD,")
    assert say()[1].endswith("spent 0.003 USD; 2 replies")
    assert say("--cap", "none")[0] == "cap none, spent 0.003 USD, reserved 0 USD; 2 replies"


def test_more_runs_cost_no_more_queries(
    browser: Client, project: Project, django_assert_num_queries: Any
) -> None:
    address = reverse("budget", args=["fbi"])
    asked(project, price=10)
    browser.get(address)
    with django_assert_num_queries(QUERIES):
        browser.get(address)
    for _ in range(3):
        asked(project, price=10, items=1)
    with django_assert_num_queries(QUERIES):
        browser.get(address)
