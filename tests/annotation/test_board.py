"""The category board."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from annotation.models import Item, Membership, Project
from annotation.reports import agreement_answers, category_board, grouping, pace, tables
from annotation.reports.category_board import BoardRow
from stats import agreement
from tests.annotation.test_pace import NOW, give
from tests.builders import make_item, make_member, make_project, make_resolution, make_revision

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return make_project(overlap=2, claim_check=True, blind_first=True)


def rows(project: Project, by: str = "category", **asked: Any) -> list[BoardRow]:
    [chosen] = [one for one in grouping.list_groupings(project) if one.name == by]
    return category_board.measure_board(project, by=chosen, **asked)


def resolved(project: Project, value: str = "valid", **values: Any) -> Item:
    item = make_item(project, slots=0, **values)
    make_resolution(item, value)
    return item


def test_the_share_of_valid_items_has_the_interval_of_its_clusters(project: Project) -> None:
    # Ten clusters of one item, all valid: Wilson's lower end 10 / (10 + 3.841459) = 0.7225.
    for _ in range(10):
        resolved(project)
    make_item(project)
    [row] = rows(project)
    assert (row.name, row.title, row.items, row.resolved) == (
        "number-errors",
        "Number errors",
        11,
        10,
    )
    assert (row.share.value, row.share.low) == (1.0, pytest.approx(0.7225, abs=5e-5))


def test_items_of_one_question_widen_the_interval(project: Project) -> None:
    for number in range(10):
        resolved(project, cluster=f"c{number // 2}")
    # n / design effect = 10 / 2 = 5 items, t with 4 degrees of freedom 2.776: 5 / (5 + 7.709).
    assert rows(project)[0].share.low == pytest.approx(0.3934, abs=5e-5)


def test_ten_of_ten_withstand_two_more_and_nothing_unsettled_has_a_number(
    project: Project,
) -> None:
    for _ in range(10):
        resolved(project)
    assert rows(project)[0].more == 2  # see the derivation in tests/stats/test_rates.py
    assert rows(project, bar=0.72)[0].more == 0
    assert rows(project, bar=0.9)[0].more is None


def test_another_answer_can_be_asked_for(project: Project) -> None:
    resolved(project), resolved(project, "invalid"), resolved(project, "invalid")
    assert rows(project, value="invalid")[0].share.value == pytest.approx(2 / 3)


def test_in_a_category_that_should_change_no_score_the_share_is_of_score_invariant_items(
    project: Project,
) -> None:
    unchanging = {"category": "superficial", "source_ability": "factual"}
    resolved(project), resolved(project, "score-invariant")
    resolved(project, "score-invariant", **unchanging), resolved(project, "valid", **unchanging)
    resolved(project, "score-invariant", **unchanging)
    factual, unchanged = rows(project)
    assert (factual.answer, factual.share.value) == ("valid", 0.5)
    assert (unchanged.answer, unchanged.share.value) == ("score-invariant", pytest.approx(2 / 3))
    [mixed] = rows(project, "source_ability")
    assert (mixed.answer, mixed.share.value) == (category_board.AS_INTENDED, 0.6)
    assert [row.share.value for row in rows(project, value="valid")] == [
        0.5,
        pytest.approx(1 / 3),
    ]


def test_corrected_are_items_with_a_text_that_a_member_wrote(project: Project) -> None:
    item, _ = make_item(project, slots=0), resolved(project)
    make_revision(item, {"perturbed": "Seven."}, author=make_member(project))
    make_resolution(item)
    assert rows(project)[0].corrected.value == 0.5


def test_repeats_deleted_items_and_those_with_known_answers_stay_out(project: Project) -> None:
    item = resolved(project)
    resolved(project, duplicate_of=item)
    resolved(project, deleted_at=NOW)
    resolved(project, purpose="probe")
    [row] = rows(project)
    assert (row.items, row.resolved, row.share.n) == (1, 1, 1)


def test_surgicality_is_the_mean_over_items_of_pieces_that_the_claim_explains(
    project: Project,
) -> None:
    ada, ben = make_member(project), make_member(project)

    def checked(member: Membership, item: Item, *said: str) -> None:
        check = {str(number): one for number, one in enumerate(said)}
        give(member, item=item, answers={"choice": "valid", "claim_check": check})

    first, second = make_item(project, slots=0), make_item(project, slots=0)
    checked(ada, first, "explained", "collateral")  # 1/2, and by ben 1: the item has 3/4
    checked(ben, first, "explained")
    checked(ada, second, "collateral", "collateral", "explained", "explained")  # 1/2
    give(ada)
    found = rows(project)[0].surgicality
    assert (found.value, found.n) == (5 / 8, 2)
    assert found.low is not None


def test_detectability_is_the_share_of_people_who_saw_the_error_blind(project: Project) -> None:
    ada, ben = make_member(project), make_member(project)
    item = make_item(project, slots=0)
    give(ada, "yes", item=item, stage="blind", counted=False)
    give(ben, "no", item=item, stage="blind", counted=False)
    give(ada, "yes", stage="blind", counted=False)
    found = rows(project)[0].detectability
    assert (found.value, found.n) == (0.75, 2)


def test_who_saw_former_texts_blind_did_not_see_the_error_of_the_current_ones(
    project: Project,
) -> None:
    ada, ben, cem = (make_member(project) for _ in range(3))
    corrected, other = make_item(project, slots=0), make_item(project, slots=0)
    give(ada, "no", item=corrected, stage="blind", counted=False)
    give(ada, "yes", item=other, stage="blind", counted=False)
    make_revision(corrected, {"perturbed": "A spider has seven legs."}, author=ada)
    [before] = rows(project)
    give(ben, "yes", item=corrected, stage="blind", counted=False)
    give(cem, "no", item=corrected, stage="blind", counted=False)
    [row] = rows(project)
    assert (before.detectability.value, before.detectability.n) == (1, 1)
    assert (row.detectability.value, row.detectability.n) == (0.75, 2)


def test_labels_of_excluded_items_are_no_finding_and_no_reason(project: Project) -> None:
    ada, ben = make_member(project), make_member(project)
    here, gone = make_item(project, slots=0), make_item(project, slots=0)
    said = {"choice": "not-sure", "reason": "needs-expert", "claim_check": {"0": "explained"}}
    give(ada, "not-sure", item=gone, answers=said, seconds=10)
    give(ben, "yes", item=gone, stage="blind", counted=False)
    [before] = rows(project)
    assert (before.surgicality.n, before.detectability.n, before.seconds.n) == (1, 1, 1)
    assert len(tables.count_choices(project)) == 1
    [drop] = tables.measure_dropped(project).drops
    assert (drop.value, len(drop.reasons)) == ("not-sure", 1)
    Item.objects.filter(pk=gone.pk).update(deleted_at=NOW)
    [row] = rows(project)
    assert (row.items, row.surgicality.n, row.detectability.n, row.seconds.n) == (1, 0, 0, 0)
    assert tables.count_choices(project) == ()
    [by] = [one for one in grouping.list_groupings(project) if one.name == "category"]
    paced = pace.measure_pace(project, by=by, now=NOW)
    assert (paced.groups[0].seconds.n, paced.whole.seconds.n) == (0, 0)
    assert dict(row.reasons) == {}
    assert tables.measure_dropped(project).drops == ()
    assert here.deleted_at is None


def test_times_of_excluded_items_are_in_no_median(project: Project) -> None:
    here, gone = make_item(project, slots=0), make_item(project, slots=0, deleted_at=NOW)
    for item, seconds in ((here, 10), (gone, 50)):
        give(make_member(project), item=item, seconds=seconds)
    [row] = rows(project)
    assert (row.seconds.n, row.seconds.median) == (1, 10)


def test_alpha_is_that_of_the_page_of_agreement(project: Project) -> None:
    ada, ben = make_member(project, alias="ada"), make_member(project, alias="ben")
    for one, other in [("valid", "valid"), ("valid", "invalid"), ("invalid", "invalid")]:
        item = make_item(project, slots=0)
        give(ada, one, item=item), give(ben, other, item=item)
    informed = make_item(project, slots=0)
    give(ada, "valid", item=informed), give(ben, "invalid", item=informed, informed=True)
    [question, *_] = agreement_answers.list_questions(project)
    said = agreement_answers.build_matrix(question, agreement_answers.load_label_answers(project))
    expected = agreement.krippendorff_alpha(said.nominal).point()
    found = rows(project)[0].alpha
    # Values: 3 valid, 3 invalid. Do = 2/6, De = 2 x 3 x 3 / (6 x 5): 1 - 0.3333 / 0.6 = 0.4444.
    assert (found.value, found.n) == (pytest.approx(4 / 9), 3)
    assert found.value == pytest.approx(expected.value)


def test_alpha_of_a_scale_knows_its_order() -> None:
    project = make_project(task_type="rating", overlap=2)
    ada, ben = make_member(project), make_member(project)
    for one, other in [(1, 1), (2, 3), (3, 3), (1, 2)]:
        item = make_item(project, slots=0, category="", fields={"task": "t"})
        for member, number in ((ada, one), (ben, other)):
            answers = {"naturalness": 1, "relatedness": 1, "correctness": number}
            give(member, f"1/1/{number}", item=item, answers=answers)
    [question] = [
        one for one in agreement_answers.list_questions(project) if one.name == "correctness"
    ]
    said = agreement_answers.build_matrix(question, agreement_answers.load_label_answers(project))
    assert said.ordered is not None
    expected = agreement.krippendorff_alpha(said.ordered, "ordinal").point()
    [row] = rows(project, "task")
    assert row.alpha.value == pytest.approx(expected.value)


def test_without_two_labels_alpha_is_a_dash_with_a_reason(project: Project) -> None:
    make_item(project)
    row = rows(project)[0]
    assert (row.alpha.value, row.alpha.reason) == (None, "no item with two labels")
    assert (row.share.value, row.surgicality.value, row.detectability.value) == (None, None, None)
    assert row.more is None


def test_reasons_against_are_counted_with_what_was_in_the_way(project: Project) -> None:
    member = make_member(project)
    give(member, "invalid"), give(member, "valid")
    give(member, "not-sure", answers={"choice": "not-sure", "reason": "needs-expert"})
    assert dict(rows(project)[0].reasons) == {
        "Invalid": 1,
        "Not sure": 1,
        "Not sure: it needs an expert": 1,
    }


def test_a_label_that_is_not_what_the_category_is_made_for_is_a_reason_against(
    project: Project,
) -> None:
    member = make_member(project)
    unchanging = make_item(project, category="superficial", ability="score-invariant", slots=0)
    give(member, "valid", item=unchanging), give(member, "score-invariant"), give(member, "valid")
    factual, unchanged = rows(project)
    assert dict(factual.reasons) == {"Score-invariant": 1}
    assert dict(unchanged.reasons) == {"Valid": 1}


def test_the_share_of_a_scale_is_that_of_its_top() -> None:
    project = make_project(task_type="rating", overlap=1)
    values = {"naturalness": 3, "relatedness": 3, "correctness": 3}
    item = make_item(project, slots=0, category="", fields={"task": "t"})
    make_resolution(item, "3/3/3", values=values)
    [row] = rows(project, "task")
    assert (row.share.value, row.share.n) == (1.0, 1)


def test_points_have_no_share_but_all_the_rest() -> None:
    project = make_project(task_type="rubric-scoring", overlap=1)
    item = make_item(project, slots=0, category="", fields={"animal": "owl"})
    make_resolution(item, "12")
    [row] = rows(project, "animal")
    assert (row.resolved, row.share.value, row.share.reason) == (1, None, "no items")


def test_the_board_costs_the_same_statements_for_many_items(
    project: Project, django_assert_num_queries: Callable[..., Any]
) -> None:
    member = make_member(project)
    for _ in range(20):
        make_resolution(give(member).item)
    by = grouping.list_groupings(project)[0]
    with django_assert_num_queries(9):
        category_board.measure_board(project, by=by)


# --------------------------------------------------------------- page, API, command line


@pytest.fixture
def lead(project: Project) -> Client:
    client = Client()
    client.force_login(make_member(project, role="lead").account)
    return client


def order(page: str) -> list[str]:
    """The categories in the order of the rows, by their head cells."""
    heads = page.split('<th scope="row">')[1:]
    return [head.split("?category=")[1].split('"')[0] for head in heads]


def test_the_chart_has_a_bar_for_each_row_with_a_share(lead: Client, project: Project) -> None:
    address = reverse("board", args=[project.slug])
    make_item(project, category="spelling", ability="long-form")
    assert lead.get(address).context["chart"] is None
    resolved(project)
    assert "Number errors" in str(lead.get(address).context["chart"])


def test_rows_can_be_sorted_by_any_column_and_dashes_come_last(
    lead: Client, project: Project
) -> None:
    resolved(project, category="grammar", ability="long-form")
    resolved(project, "invalid")
    make_item(project, category="spelling", ability="long-form")
    address = reverse("board", args=[project.slug])

    def shown(sort: str) -> list[str]:
        return order(lead.get(f"{address}?sort={sort}").content.decode())

    assert shown("") == ["grammar", "spelling", "number-errors"]
    assert shown("-share") == ["grammar", "number-errors", "spelling"]
    assert shown("share") == ["number-errors", "grammar", "spelling"]
    for column in ("items", "corrected", "surgicality", "alpha", "seconds", "more", "nonsense"):
        assert len(shown(column)) == 3


def test_the_page_says_what_is_sorted_and_explains_its_columns(
    lead: Client, project: Project
) -> None:
    resolved(project)
    page = lead.get(reverse("board", args=[project.slug]) + "?sort=-share").content.decode()
    assert page.count('aria-sort="descending"') == 1
    assert "the interval would stay on the same side of the threshold" in page
    assert "?category=number-errors&amp;resolution=valid" in page


def test_the_heading_and_each_row_say_which_answer_the_share_counts(
    lead: Client, project: Project
) -> None:
    resolved(project)
    resolved(project, "score-invariant", category="superficial", ability="score-invariant")
    address = reverse("board", args=[project.slug])
    page = lead.get(address).content.decode()
    assert ">Valid, or score-invariant where intended</a>" in page
    assert '<small class="board-note">score-invariant</small>' in page
    assert "?category=superficial&amp;resolution=score-invariant" in page
    page = lead.get(f"{address}?by=ability").content.decode()
    assert "?ability=score-invariant&amp;resolution=score-invariant" in page


def test_the_bar_is_a_field_of_the_form_and_stays_as_it_was_sent(
    lead: Client, project: Project
) -> None:
    resolved(project)
    page = lead.get(reverse("board", args=[project.slug]) + "?bar=85").content.decode()
    assert '<input type="number" name="bar" value="85" min="1" max="99"' in page


def test_nonsense_in_the_address_is_the_usual_board(lead: Client, project: Project) -> None:
    resolved(project)
    address = reverse("board", args=[project.slug])
    for query in ("bar=0", "bar=x", "value=nothing", "by=nothing", "sort=--share"):
        assert lead.get(f"{address}?{query}").status_code == 200


def test_a_project_without_items_says_so(lead: Client, project: Project) -> None:
    assert "No items yet" in lead.get(reverse("board", args=[project.slug])).content.decode()


def test_the_api_gives_the_same_figures_and_says_what_it_takes(
    lead: Client, project: Project
) -> None:
    resolved(project)
    address = reverse("api-board", args=[project.slug])
    [group] = lead.get(address).json()["groups"]
    assert (group["group"], group["share"], group["more"]) == ("number-errors", 1.0, None)
    for query, word in (
        ("bar=2", "0.01 to 0.99"),
        ("bar=1e-300", "0.01 to 0.99"),
        ("value=x", "valid"),
        ("by=x", "category"),
    ):
        answer = lead.get(f"{address}?{query}")
        assert (answer.status_code, word in answer.json()["detail"]) == (400, True)


def test_the_board_is_on_the_command_line(project: Project, capsys: Any) -> None:
    resolved(project)
    call_command("results", "board", project=project.slug, format="csv")
    assert "number-errors,1,1,valid,1.0" in capsys.readouterr().out
