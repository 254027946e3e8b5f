"""Progress and pace, choices over time, what is dropped."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotation.db.cache import computing
from annotation.labelling import gold_correction, queue
from annotation.models import Item, Label, Membership, Project
from annotation.reports import agreement, agreement_answers, grouping, pace, tables, work_time
from annotation.tasktypes import main_field
from stats.spread import Quartiles
from tests.builders import (
    browser_of,
    make_item,
    make_member,
    make_project,
    make_resolution,
    make_slot,
    say,
    take,
)

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
TODAY = NOW.date()


@pytest.fixture
def member() -> Membership:
    return make_member(make_project(), alias="ada")


def give(member: Membership, choice: str = "valid", *, ago: int = 1, **values: Any) -> Label:
    """A counted label so many days ago, of an item of its own unless one is given."""
    item = values.pop("item", None) or make_item(member.project, slots=0)
    if "slot" not in values:
        number = item.slots.count() + 1
        values["slot"] = make_slot(item, number=number, state="filled", member=member)
    defaults = {
        "answers": {"choice": choice},
        "submission": f"{member.alias}-{item.key}",
        "created_at": NOW - timedelta(days=ago),
        "stage": "label",
        "task_type": member.project.task_type,
    }
    return Label.objects.create(
        project=member.project,
        item=item,
        revision=item.revision(),
        member=member,
        choice=choice,
        **{**defaults, **values},
    )


def measured(project: Project, by: str = "category") -> pace.Pace:
    [chosen] = [one for one in grouping.list_groupings(project) if one.name == by]
    return pace.measure_pace(project, by=chosen, now=NOW)


def test_full_days_tell_the_pace_and_today_does_not(member: Membership) -> None:
    # Four full days, 6 to 9 March, with 2, 0, 2, 0 labels: one a day. 3 places are left.
    for ago in (4, 4, 2, 2, 0):
        give(member, ago=ago)
    make_item(member.project, slots=3)
    found = measured(member.project)
    assert found.window == tuple(date(2026, 3, day) for day in (6, 7, 8, 9))
    ahead = found.whole.forecast
    assert (ahead.left, ahead.a_day, ahead.ends) == (3, 1.0, date(2026, 3, 13))
    # s = sqrt(4/3), t(3) = 3.182, t s = 3.675. Days 2 + 3.675 sqrt(1 + 1/4) >= 3 on the first.
    assert (ahead.earliest, ahead.latest) == (date(2026, 3, 11), None)
    assert ahead.days.reason == "at the slowest it would not end"


def test_only_the_last_fourteen_days_tell_the_pace(member: Membership) -> None:
    for ago in (40, 40, 40, 14):
        give(member, ago=ago)
    found = measured(member.project)
    assert (len(found.window), found.window[0]) == (14, TODAY - timedelta(days=14))
    [person] = found.people
    assert (person.labels, person.recent, person.a_day) == (4, 1, 1 / 14)


def test_without_a_full_day_there_is_a_dash_and_a_reason(member: Membership) -> None:
    give(member, ago=0)
    make_item(member.project)
    ahead = measured(member.project).whole.forecast
    assert (ahead.a_day, ahead.ends, ahead.days.reason) == (None, None, "no full day yet")


def test_nothing_left_is_done_today(member: Membership) -> None:
    give(member)
    assert measured(member.project).whole.forecast.ends == TODAY


def test_everybody_who_may_label_is_named_with_what_they_did(member: Membership) -> None:
    ben = make_member(member.project, alias="ben")
    make_member(member.project, role="researcher", alias="reader")
    give(member, ago=3), give(member, ago=1)
    people = measured(member.project).people
    assert [(one.alias, one.labels, one.last) for one in people] == [
        ("ada", 2, TODAY - timedelta(days=1)),
        ("ben", 0, None),
    ]
    assert not Label.objects.of_member(ben.pk).exists()


def test_times_are_quartiles_and_those_over_half_an_hour_stand_apart(member: Membership) -> None:
    for seconds in (1, 2, 2, 10, 1801):
        give(member, seconds=seconds)
    # Places 0.75, 1.5 and 2.25 of 1, 2, 2, 10.
    expected = Quartiles(4, 1.75, 2.0, 4.0, beyond=1)
    found = measured(member.project)
    assert found.people[0].seconds == found.whole.seconds == found.groups[0].seconds == expected


def test_only_labels_in_force_at_the_work_stage_count(member: Membership) -> None:
    give(member, current=False)
    give(member, stage="control")
    give(member)
    assert measured(member.project).people[0].labels == 1


def test_extra_labels_are_a_persons_work_and_bring_no_item_nearer_to_its_end(
    member: Membership,
) -> None:
    give(member, ago=2), give(member, ago=2, slot=None, counted=False)
    make_item(member.project)
    found = measured(member.project)
    assert (found.people[0].labels, found.whole.forecast.a_day, found.done[-1][1]) == (2, 0.5, 1)
    assert found.groups[0].forecast.a_day == 0.5


def test_places_and_forecast_by_category_in_the_order_of_the_taxonomy(member: Membership) -> None:
    give(member, ago=1), give(member, ago=2)
    make_item(member.project, category="grammar", ability="long-form", slots=2)
    make_item(member.project, category="grammar", ability="long-form", deleted_at=NOW)
    make_item(member.project, slots=1)
    first, second = measured(member.project).groups
    assert (first.name, first.items, first.places, first.filled) == ("grammar", 1, 2, 0)
    assert (first.forecast.ends, first.forecast.a_day) == (None, 0)
    assert (second.name, second.places, second.filled) == ("number-errors", 3, 2)
    assert second.forecast.ends == TODAY + timedelta(days=1)


def test_tasks_without_categories_are_grouped_by_a_field_of_their_items() -> None:
    project = make_project(task_type="rating", overlap=1)
    plain = {"category": "", "ability": "", "source_ability": ""}
    make_item(project, fields={"language": "sv", "length": 3}, **plain)
    make_item(project, fields={"language": "en"}, **plain)
    assert [one.name for one in grouping.list_groupings(project)] == ["language", "length"]
    assert [one.title for one in measured(project, "language").groups] == ["en", "sv"]
    assert [one.title for one in measured(project, "length").groups] == ["(none)", "3"]


def test_what_waits_beside_the_work_is_counted_by_stage(member: Membership) -> None:
    item = make_item(member.project)
    make_slot(item, stage="adjudicate"), make_slot(item, stage="control")
    assert measured(member.project).waiting == {"adjudicate": 1}


def test_pace_costs_the_same_statements_for_many_labels(
    member: Membership, django_assert_num_queries: Callable[..., Any]
) -> None:
    for _ in range(20):
        give(member, seconds=4)
    by = grouping.list_groupings(member.project)[0]
    with django_assert_num_queries(8):
        pace.measure_pace(member.project, by=by, now=NOW)


# ------------------------------------------------------------------- choices and drops


def test_the_table_of_people_counts_no_dropped_items_and_no_choices(member: Membership) -> None:
    by = grouping.list_groupings(member.project)[0]
    with CaptureQueriesContext(connection) as seen:
        list(tables.pace_table(member.project, by))
    assert not [one for one in seen.captured_queries if "annotation_resolution" in one["sql"]]
    with CaptureQueriesContext(connection) as seen:
        list(tables.dropped_table(member.project, by))
    assert [one for one in seen.captured_queries if "annotation_resolution" in one["sql"]]


def test_choices_are_counted_by_day_in_the_order_of_the_options(member: Membership) -> None:
    give(member, "not-sure", ago=1), give(member, "valid", ago=1), give(member, "valid", ago=2)
    found = tables.count_choices(member.project)
    assert [(one.day.day, one.value, one.title, one.n) for one in found] == [
        (8, "valid", "Valid", 1),
        (9, "valid", "Valid", 1),
        (9, "not-sure", "Not sure", 1),
    ]
    first, second, _ = Item.objects.order_by("pk")
    Item.objects.filter(pk=first.pk).update(deleted_at=NOW)
    Item.objects.filter(pk=second.pk).update(purpose="probe")
    assert [(one.day.day, one.n) for one in tables.count_choices(member.project)] == [(8, 1)]


def test_choices_of_a_scale_are_those_of_the_question_that_decides() -> None:
    member = make_member(make_project(task_type="rating", overlap=1))
    answers = {"naturalness": 3, "relatedness": 3, "correctness": 2}
    give(member, "3/3/2", answers=answers)
    [one] = tables.count_choices(member.project)
    assert (one.value, one.title) == ("2", "Partly correct")


def test_dropped_are_resolved_items_that_no_run_takes_with_the_reasons(member: Membership) -> None:
    doubted = {"choice": "not-sure", "reason": "gold-wrong"}
    for choice in ("valid", "score-invariant", "invalid"):
        make_resolution(give(member, choice).item, choice)
    make_resolution(give(member, "not-sure", answers=doubted).item, "not-sure", rule="excluded")
    give(member, "not-sure", answers=doubted)
    found = tables.measure_dropped(member.project)
    assert (found.resolved, found.dropped, found.share.value) == (4, 2, 0.5)
    assert [(one.value, one.n, one.reasons) for one in found.drops] == [
        ("invalid", 1, ()),
        ("not-sure", 1, (("The gold answer looks wrong", 2),)),
    ]


def test_what_leaves_the_set_follows_the_task_type() -> None:
    def kept(slug: str) -> Any:
        return main_field.load_main_field(make_project(task_type=slug)).kept

    assert kept("perturbation-vetting") == {"valid", "score-invariant"}
    assert kept("error-detection") == {"error", "no_error"}
    assert kept("rating") is None
    assert kept("rubric-scoring") is None


# -------------------------------------------------------------------------- page and API


@pytest.fixture
def lead(member: Membership) -> Client:
    client = Client()
    client.force_login(make_member(member.project, role="lead").account)
    return client


def test_the_page_names_people_forecast_and_drops(lead: Client, member: Membership) -> None:
    give(member, "valid", seconds=75)
    make_resolution(give(member, "invalid").item, "invalid")
    make_item(member.project)
    page = lead.get(reverse("pace", args=[member.project.slug])).content.decode()
    assert "ada" in page
    assert "1 min 15 s" in page
    assert "1 of 1 items with a final label are not in the final set, because of that label" in page
    assert 'data-chart="way"' in page


def test_the_page_of_a_project_without_labels_or_items_says_what_to_do(
    lead: Client, member: Membership
) -> None:
    address = reverse("pace", args=[member.project.slug])
    assert "No items yet" in lead.get(address).content.decode()
    make_item(member.project)
    page = lead.get(address).content.decode()
    assert "No forecast: no full day yet" in page
    assert "data-chart" not in page


def test_nonsense_in_the_address_is_the_usual_page(lead: Client, member: Membership) -> None:
    make_item(member.project)
    address = reverse("pace", args=[member.project.slug])
    assert lead.get(address + "?by=__proto__").status_code == 200


def test_the_api_gives_the_same_and_refuses_unknown_groups(
    lead: Client, member: Membership
) -> None:
    give(member, seconds=3)
    address = reverse("api-pace", args=[member.project.slug])
    told = lead.get(address).json()
    assert told["people"][0]["annotator"] == "ada"
    assert [group["group"] for group in told["groups"]] == ["", "number-errors"]
    answer = lead.get(address + "?by=nothing")
    assert (answer.status_code, "category" in answer.json()["detail"]) == (400, True)


@pytest.mark.parametrize(
    "rows, columns",
    [
        (
            tables.pace_table,
            "annotator labels recent a_day last_day seconds_median seconds_low seconds_high timed"
            " over_30_minutes",
        ),
        (
            tables.forecast_table,
            "group items places filled left a_day ends earliest latest reason seconds_median"
            " seconds_low seconds_high over_30_minutes",
        ),
        (tables.choices_table, "day choice labels"),
        (tables.dropped_table, "held_for items share reason labels"),
        (
            tables.board_table,
            "group items resolved share_of share share_low share_high corrected corrected_low"
            " corrected_high surgicality surgicality_low surgicality_high surgicality_items alpha"
            " alpha_items seconds_median detectability detectability_low detectability_high"
            " detectability_items more reasons",
        ),
    ],
)
def test_every_report_is_a_table_with_just_its_columns(
    member: Membership, rows: Any, columns: str
) -> None:
    make_resolution(give(member, "invalid").item, "invalid")
    found = list(rows(member.project, grouping.list_groupings(member.project)[0]))
    assert found
    assert all(list(row) == columns.split() for row in found)
    assert not any(isinstance(value, Item) for row in found for value in row.values())


def test_what_takes_long_is_kept_for_a_moment_and_says_so() -> None:
    def kept(value: int, worth: float) -> tables.CachedFigures[int]:
        return tables.get_or_compute(f"test-{worth}", lambda: value, now=NOW, worth=worth)

    assert [kept(value, worth=0).value for value in (1, 2)] == [1, 1]
    assert kept(3, worth=0).again
    assert [kept(value, worth=60).value for value in (1, 2)] == [1, 2]


def test_a_process_computes_one_report_at_a_time() -> None:
    # Over 300,000 labels one takes hundreds of MB; eight threads at once took the whole machine.
    running: list[int] = []
    most: list[int] = []

    def make() -> int:
        running.append(1)
        most.append(len(running))
        time.sleep(0.05)
        running.pop()
        return len(most)

    def ask(number: int) -> int:
        return tables.get_or_compute(f"report-{number % 2}", make, now=NOW, worth=0).value

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(ask, range(4)))) == 2
    assert most == [1, 1]


def test_a_report_that_is_kept_does_not_wait_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project()
    question = agreement_answers.list_questions(project)[0]
    key = agreement._key(project, question, "")
    monkeypatch.setattr(agreement, "_key", lambda *about: key)  # which reads the database

    def ask() -> bool:
        agreement.measure_agreement(project, question)
        return tables.get_or_compute("kept", lambda: 1, now=NOW, worth=0).again

    ask()
    with ThreadPoolExecutor(1) as pool, computing:
        assert pool.submit(ask).result(5)


def test_work_time_is_a_row_per_person_and_day_with_long_times_cut() -> None:
    project = make_project(overlap=2)
    ana, ben = make_member(project, alias="ana"), make_member(project, alias="=ben")
    for _ in range(4):
        make_item(project)
    for seconds in (10.4, 4_000, None):
        say(ana, take(ana), seconds=seconds)
    say(ben, take(ben), seconds=20)
    queue.undo_label(ben)
    Label.objects.filter(seconds=10.4).update(created_at=datetime(2026, 3, 1, 23, 59, tzinfo=UTC))
    rows = work_time.count_work_time(project)
    today = timezone.now().date().isoformat()
    assert [tuple(row[name] for name in work_time.COLUMNS) for row in rows] == [
        ("=ben", today, 1, 20, 0, 0),
        ("ana", "2026-03-01", 1, 10, 0, 0),
        ("ana", today, 2, 1_800, 1, 1),
    ]
    lead = make_member(project, "lead")
    file = browser_of(lead).get(reverse("work-time", args=[project.slug]))
    lines = file.content.decode().splitlines()
    assert lines[:2] == ["annotator,day,labels,seconds,untimed,cut", f"'=ben,{today},1,20,0,0"]


def test_work_that_is_kept_for_a_corrected_gold_answer_was_done_once() -> None:
    project = make_project()
    lead, ana = make_member(project, "lead"), make_member(project, alias="ana")
    make_item(project, "a")
    say(ana, take(ana), seconds=20)
    for number, gold in enumerate(
        ("A spider has eight legs!", "A spider has eight legs!!"), start=1
    ):
        gold_correction.correct_gold(
            lead, item_key="a", revision=number, gold=[gold], carry=True, now=timezone.now()
        )
    say(ana, queue.reopen_item(ana, "a"), "invalid", seconds=5)
    assert Label.objects.count() == 4
    [row] = work_time.count_work_time(project)
    assert (row["labels"], row["seconds"]) == (2, 25)


def test_a_time_that_no_integer_holds_breaks_no_page_of_leads() -> None:
    """A program sent it with its label."""
    project = make_project()
    ana = make_member(project, alias="ana")
    for seconds in (10.4, 1e10, 1e308):
        make_item(project)
        say(ana, take(ana), seconds=seconds)
    lead = browser_of(make_member(project, "lead"))
    for page in ("pace/", "board/", "people/ana/", "items/?longer_than=60"):
        assert lead.get(f"/projects/{project.slug}/{page}").status_code == 200
    [person] = [one for one in measured(project).people if one.alias == "ana"]
    assert person.seconds == Quartiles(1, 10.4, 10.4, 10.4, beyond=2)
