import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.labelling import queue
from annotation.models import RIGHTS, ApiToken, Item, Membership, Project
from annotation.projects.views import home
from tests.builders import (
    Cast,
    browser_of,
    make_account,
    make_guidelines,
    make_item,
    make_member,
    make_project,
    make_resolution,
    make_revision,
    say,
    take,
)

pytestmark = pytest.mark.django_db


def sees(person: Any, name: str, *args: Any, query: str = "", **headers: str) -> str:
    """What a person's browser shows of a page."""
    client = Client()
    client.force_login(person.account if isinstance(person, Membership) else person)
    response = client.get(reverse(name, args=args) + query, headers=headers)
    assert response.status_code == 200
    return response.content.decode()


# ------------------------------------------------------------------------------------- home


def test_home_shows_ones_projects_with_progress_and_what_is_next(people: Cast) -> None:
    make_resolution(make_item(people.project)), make_item(people.project)
    page = sees(people.annotator, "home")
    assert "1 of 2 items have a final label" in page
    assert reverse("label", args=[people.project.slug]) in page


def test_home_offers_no_vetting_to_whom_may_not(people: Cast) -> None:
    make_item(people.project)
    assert reverse("label", args=[people.project.slug]) not in sees(people.researcher, "home")


def test_home_tells_a_stranger_and_a_site_admin_how_to_begin(people: Cast) -> None:
    assert "You have no projects yet" in sees(people.stranger, "home")
    Project.objects.update(archived_at="2026-01-01T00:00Z")
    assert "import_items" in sees(people.admin, "home")


def test_home_costs_the_same_for_many_projects(
    people: Cast, django_assert_num_queries: Callable[..., Any]
) -> None:
    with django_assert_num_queries(25, exact=False) as few:
        sees(people.admin, "home")
    for _ in range(5):
        make_item(make_project())
    with django_assert_num_queries(len(few)):
        sees(people.admin, "home")


def test_the_navigation_marks_the_page_that_is_open(people: Cast) -> None:
    slug = people.project.slug
    for name in ("label", "items", "runs", "results"):
        marked = re.findall(r'href="([^"]+)" aria-current', sees(people.lead, name, slug))
        assert marked[0] == reverse(name, args=[slug])


# ------------------------------------------------------------------------------------- project


def test_the_project_page_counts_by_category_without_repeats_in_the_sum(people: Cast) -> None:
    original = make_item(people.project, category="score-invariant", ability="score-invariant")
    make_item(
        people.project,
        category="formatting",
        ability="score-invariant",
        duplicate_of=original,
        slots=0,
    )
    make_resolution(original, "score-invariant")
    page = sees(people.adjudicator, "project", people.project.slug)
    assert "1 duplicate" in page
    assert '<td class="number">100.0 %</td>' in page


def test_a_category_in_two_abilities_counts_what_is_resolved_in_each(people: Cast) -> None:
    project = make_project("two-abilities")
    make_resolution(make_item(project, ability="factual"))
    for _ in range(2):
        make_item(project, ability="reasoning")
    counted = queue.count_by_category(project, "lead")
    factual, reasoning = home.sort_by_ability(project, counted)
    assert (factual.items, factual.resolved) == (1, 1)
    assert (reasoning.items, reasoning.resolved) == (2, 0)


def test_only_leads_see_who_has_done_how_much(people: Cast) -> None:
    make_item(people.project)
    say(people.annotator, take(people.annotator))
    assert "Last label" in sees(people.lead, "project", people.project.slug)
    assert "Last label" not in sees(people.adjudicator, "project", people.project.slug)


def test_a_lead_finds_every_page_for_leads_from_the_project_in_groups(people: Cast) -> None:
    page = sees(people.lead, "project", people.project.slug)
    for group in ("Work", "Progress", "People", "Set-up"):
        assert f"<h3>{group}</h3>" in page
    for name in (
        "verify", "adjudicate", "assign", "baseline", "pace", "board", "agreement",
        "qualification-people", "control-items", "settings", "task", "guidelines-edit",
        "answer-key",
    ):  # fmt: skip
        assert f'href="{reverse(name, args=[people.project.slug])}"' in page
    assert "off; see settings" in page


def test_a_researcher_finds_exports_and_jobs_from_the_project(people: Cast) -> None:
    slug = people.project.slug
    page = sees(people.researcher, "project", slug)
    for name in ("exports", "jobs", "runs", "results"):
        assert reverse(name, args=[slug]) in page.split("For researchers")[1]
    assert "For researchers" not in sees(people.annotator, "project", slug)


def test_the_project_page_shows_the_last_guidelines(people: Cast) -> None:
    make_guidelines(people.project, "Old."), make_guidelines(people.project, "Look twice.")
    page = sees(people.annotator, "project", people.project.slug)
    assert "Look twice." in page
    assert "Old." not in page


# ------------------------------------------------------------------------------------- items


def test_items_can_be_found_by_who_labelled_them_and_how(people: Cast) -> None:
    people.project.overlap = 2
    people.project.save()
    for key in ("a-1", "b-2", "c-3"):
        make_item(people.project, key)
    other = make_member(people.project, alias="other")
    for person, choices in ((people.annotator, ("valid", "invalid")), (other, ("invalid",))):
        for choice in choices:
            say(person, take(person), choice)

    def listed(query: str) -> set[str]:
        page = sees(people.lead, "items", people.project.slug, query=query)
        return {key for key in ("a-1", "b-2", "c-3") if f"/items/{key}/" in page}

    assert listed("?annotator=annotator") == {"a-1", "b-2"}
    assert listed("?annotator=annotator&choice=invalid") == {"b-2"}
    assert listed("?choice=invalid") == {"a-1", "b-2"}
    assert listed("?annotator=nobody") == {"a-1", "b-2", "c-3"}  # nonsense narrows nothing
    front = sees(people.lead, "project", people.project.slug)
    assert "/items/?annotator=other" in front


def test_a_list_of_items_speaks_in_titles_and_of_categories_only_where_there_are_any(
    people: Cast,
) -> None:
    make_resolution(make_item(people.project), "not-sure")
    page = sees(people.lead, "items", people.project.slug)
    assert ">Not sure</span>" in page
    assert '<th scope="col">Category</th>' in page
    project = make_project(task_type="rating")
    lead = make_member(project, role="lead")
    make_item(project, category="", ability="")
    page = sees(lead, "items", project.slug)
    assert "Category" not in page
    assert "Ability" not in page


@pytest.mark.parametrize(
    "query, keys",
    [
        ("", {"a", "b", "c"}),
        ("?category=grammar", {"b"}),
        ("?ability=factual", {"a", "c"}),
        ("?resolution=valid", {"a"}),
        ("?resolution=none", {"b", "c"}),
        ("?flag=identical", {"c"}),
        ("?search=B", {"b"}),
        ("?category=factual&search=x", set()),
        ("?page=99", {"a", "b", "c"}),
    ],
)
def test_items_can_be_narrowed_down(people: Cast, query: str, keys: set[str]) -> None:
    make_resolution(make_item(people.project, "a"))
    make_item(people.project, "b", category="grammar", ability="long-form")
    make_item(people.project, "c", flags=["identical"])
    page = sees(people.adjudicator, "items", people.project.slug, query=query)
    links = {key: reverse("item", args=[people.project.slug, key]) for key in "abc"}
    assert {key for key, link in links.items() if f'"{link}"' in page} == keys


def test_a_list_of_fifty_costs_what_a_list_of_one_does_and_reads_no_text(
    people: Cast, django_assert_num_queries: Callable[..., Any]
) -> None:
    make_item(people.project)
    with django_assert_num_queries(25, exact=False) as few:
        sees(people.adjudicator, "items", people.project.slug)
    for _ in range(60):
        make_item(people.project, slots=0)
    with django_assert_num_queries(len(few)):
        page = sees(people.adjudicator, "items", people.project.slug)
    assert "1 to 50 of 61" in page
    assert not any("annotation_revision" in query["sql"] for query in few.captured_queries)


def test_htmx_gets_the_rows_alone(people: Cast) -> None:
    make_item(people.project, "a")
    slug = people.project.slug
    rows = sees(people.adjudicator, "items", slug, **{"HX-Request": "true"})
    assert rows.strip().startswith('<div id="rows"')
    assert rows.strip() in sees(people.adjudicator, "items", slug)


def test_the_item_page_shows_texts_diff_revisions_labels_and_resolution(people: Cast) -> None:
    item = make_item(people.project, "long-form/x:lf-1 äé")
    say(people.annotator, take(people.annotator), comment="Count them.")
    make_revision(item, item.revision().texts | {"claim": "two legs less"}, note="claim added")
    page = sees(people.adjudicator, "item", people.project.slug, item.key)
    for said in ("How many legs", ">eight</mark></del>", "two legs less", "claim added"):
        assert said in page
    assert "Count them." in page
    assert people.annotator.alias in page


def test_the_way_back_to_the_items_never_shows_the_rows_alone(people: Cast) -> None:
    client = Client(headers={"HX-Request": "true"})
    client.force_login(people.admin)
    answer = client.get(reverse("items", args=[people.project.slug]))
    assert "<html" not in answer.content.decode()
    assert "HX-Request" in answer.headers["Vary"]


def test_the_item_page_shows_an_earlier_revision_on_request(people: Cast) -> None:
    item = make_item(people.project, "a")
    make_revision(item, item.revision().texts | {"prompt": "How many eyes?"})
    old = sees(people.adjudicator, "item", people.project.slug, "a", query="?revision=1")
    assert "How many legs" in old
    assert "These are the texts of revision 1" in old
    client = Client()
    client.force_login(people.admin)
    page = reverse("item", args=[people.project.slug, "a"])
    assert client.get(page + "?revision=3").status_code == 404
    assert client.get(page + "?revision=x").status_code == 404


@pytest.mark.parametrize("key", ["nothing", "a\0b", "../a"])
def test_an_item_that_is_not_there_is_404(people: Cast, key: str) -> None:
    client = Client()
    client.force_login(people.admin)
    assert client.get(reverse("item", args=[people.project.slug, key])).status_code == 404


def test_the_page_of_an_excluded_item_says_so_and_where_to_undo_it(people: Cast) -> None:
    item = make_item(people.project)
    Item.objects.update(deleted_at="2026-01-01T00:00Z")
    page = reverse("item", args=[people.project.slug, item.key])
    said = browser_of(people.lead).get(page)
    assert said.status_code == 410
    assert f"<code>{item.key}</code> is excluded from the project" in said.text
    assert reverse("bulk-changes", args=[people.project.slug]) in said.text
    assert browser_of(people.lead).get(page.replace(item.key, "never")).status_code == 404
    other = make_project()
    assert (
        browser_of(people.admin).get(reverse("item", args=[other.slug, item.key])).status_code
        == 404
    )


def test_a_member_whose_labels_name_them_cannot_be_moved_to_another_project(people: Cast) -> None:
    client = Client()
    client.force_login(people.admin)
    place = reverse("admin:annotation_membership_change", args=[people.annotator.pk])
    changed = {"project": make_project().pk, "alias": "moved", "role": "lead", "active": "on"}
    assert client.post(place, changed).status_code == 302
    people.annotator.refresh_from_db()
    assert (people.annotator.alias, people.annotator.project) == ("moved", people.project)


# ------------------------------------------------------------------------------------- tokens


def test_a_token_is_shown_once_and_opens_the_api() -> None:
    client = Client()
    client.force_login(make_account())
    page = client.post(
        reverse("tokens"), {"name": "laptop", "scopes": ["read"], "days": "90"}
    ).content.decode()
    key = page.split('class="secret">')[1].split("<")[0]
    assert key not in client.get(reverse("tokens")).content.decode()
    assert key not in str(ApiToken.objects.values())
    stranger = Client(headers={"Authorization": f"Bearer {key}"})
    assert stranger.get(reverse("api-projects")).status_code == 200


def test_a_revoked_token_opens_nothing_and_others_cannot_revoke_it() -> None:
    owner, other = make_account(), make_account()
    token, key = ApiToken.issue(owner, "laptop")
    client = Client()
    client.force_login(other)
    assert client.post(reverse("tokens"), {"revoke": token.pk}).status_code == 404
    client.force_login(owner)
    assert client.post(reverse("tokens"), {"revoke": token.pk}).status_code == 302
    holder = Client(headers={"Authorization": f"Bearer {key}"})
    assert holder.get(reverse("api-projects")).status_code == 401


def test_a_token_needs_a_name() -> None:
    client = Client()
    client.force_login(make_account())
    assert client.post(reverse("tokens"), {"name": " "}).status_code == 422
    for number in ("²", "-1", "9" * 5000):
        assert client.post(reverse("tokens"), {"revoke": number}).status_code == 404
    assert not ApiToken.objects.exists()


def test_the_help_says_in_words_what_each_right_allows(people: Cast) -> None:
    assert set(home.RIGHT_TITLES) == set(RIGHTS)
    page = sees(people.annotator, "help")
    assert "<dt>Annotator</dt><dd>open the project; label items</dd>" in page


def test_the_admin_has_the_icon_of_the_pages(people: Cast) -> None:
    assert "img/mark" in sees(people.admin, "admin:index")


@pytest.mark.parametrize("name", ["help", "patterns"])
def test_pages_that_explain_are_there_for_everyone_who_is_signed_in(name: str) -> None:
    assert "<h1>" in sees(make_account(), name)


def test_an_archived_project_is_gone_for_its_members(people: Cast) -> None:
    people.project.archived_at = "2026-01-01T00:00Z"
    people.project.save()
    client = Client()
    client.force_login(make_member(people.project).account)
    assert client.get(reverse("project", args=[people.project.slug])).status_code == 404
