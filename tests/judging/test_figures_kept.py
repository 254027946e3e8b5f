"""Tables that take long are kept, and never shown once what they rest on has changed."""

import importlib.util
import json
import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.http import QueryDict
from django.test import Client
from django.utils import timezone
from django.utils.datastructures import MultiValueDict
from pytest_django import DjangoAssertNumQueries

from annotation import importing
from annotation.items import revisions
from annotation.labelling import bulk_changes, resolution
from annotation.models import Item, Project, Resolution
from annotation.reports.grouping import MAX_LENGTH
from judging import tasks
from judging.models import Outcome, Run, StoredFigure
from judging.results import cache, change_counters, figures, progress, tables
from judging.results.counted import UnknownField
from judging.results.figures import FigureTable, PendingTable
from tests.builders import browser_of, make_member, make_project
from tests.judging.builders_decided import make_replied, scores
from tests.judging.builders_judging import make_items

NOTHING: MultiValueDict[str, str] = MultiValueDict()
TABLES = ("undetected", "scores", "left_out", "sensitivity", "compare", "missing", "cost")


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve outcomes are as many as a million, but for tables that are always made at once."""
    monkeypatch.setattr(
        figures.TableRequest,
        "is_small",
        lambda asked: asked.table.at_once is None,
    )


@pytest.fixture
def judged(project: Project) -> Project:
    """Two runs over twelve error items and two score-invariant ones."""
    items = [*make_items(project, 12), *make_items(project, 2, "score-invariant")]
    for said in ([scores(9, 5), scores(9, 9)], [scores(9, 5), scores(9, None), scores(8, 8)]):
        make_replied(project, "vanilla", zip(items, cycle(said), strict=False))
    return project


def made(project: Project, table: str = "undetected") -> FigureTable:
    """What a worker makes of a table that is asked for."""
    asked = figures.request_table(project, table, NOTHING)
    if isinstance(asked, PendingTable):
        assert figures.run_job(asked.figure)
        asked = figures.request_table(project, table, NOTHING)
    assert isinstance(asked, FigureTable)
    return asked


def fresh(project: Project, table: str) -> list[dict[str, Any]]:
    asked = figures.build_request(
        project,
        tables.RESULT_TABLES[table],
        figures.select_project_runs(project, NOTHING),
        ["ability", "category"],
    )
    return asked.table.with_run_names(asked.rows(), asked.runs)


@pytest.mark.django_db(transaction=True)
def test_a_table_is_made_once_by_a_worker_and_then_answered_from_what_is_kept(
    judged: Project, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    first = figures.request_table(judged, "undetected", NOTHING)
    assert isinstance(first, PendingTable)
    assert first.last is None
    assert figures.list_due(timezone.now()) == [first.figure]
    assert figures.run_job(first.figure)
    assert figures.list_due(timezone.now()) == []
    # Runs, their sources, what rests on them, changes, the table.
    with django_assert_num_queries(5):
        kept = figures.request_table(judged, "undetected", NOTHING)
    assert isinstance(kept, FigureTable)
    assert kept.at
    assert kept.rows == fresh(judged, "undetected")


@pytest.mark.django_db
def test_a_table_without_groups_is_made_once_whatever_is_grouped_beside_it(judged: Project) -> None:
    first = made(judged, "compare")
    again = figures.request_table(judged, "compare", QueryDict("by=category"))
    assert isinstance(again, FigureTable)
    assert again.at == first.at
    assert isinstance(
        figures.request_table(judged, "missing", QueryDict("by=category")), PendingTable
    )
    assert isinstance(
        figures.request_table(judged, "missing", QueryDict("by=ability")), PendingTable
    )
    assert len(figures.list_due(timezone.now())) == 2


@pytest.mark.django_db
def test_while_it_is_made_anew_the_figures_before_the_change_are_there_as_such(
    judged: Project,
) -> None:
    before = made(judged)
    outcome = Outcome.objects.filter(result="detected").first()
    assert outcome
    outcome.reject("no text")
    again = figures.request_table(judged, "undetected", NOTHING)
    assert isinstance(again, PendingTable)
    assert again.last
    assert again.last.rows == before.rows
    assert made(judged).rows == fresh(judged, "undetected") != before.rows


def _decide(items: list[Item], chance: random.Random) -> None:
    now = timezone.now()
    value = chance.choice(["valid", "invalid", "score-invariant"])
    item = chance.choice(items)
    resolution.set_resolution(item, {"verdict": value}, rule="test", source="adjudicated", now=now)


def _end(items: list[Item], chance: random.Random) -> None:
    for one in Resolution.objects.current().filter(item=chance.choice(items)):
        one.end(timezone.now())


def _take_back(items: list[Item], chance: random.Random) -> None:
    """What held before holds again."""
    item = chance.choice(items)
    Resolution.objects.filter(item=item, current=True).update(current=False)
    last = Resolution.objects.filter(item=item).order_by("?").first()
    assert last
    Resolution.objects.filter(pk=last.pk).update(current=True)


def _revise(items: list[Item], chance: random.Random) -> None:
    item = Item.objects.get(pk=chance.choice(items).pk)
    texts = {**item.revision().texts, "gold": f"Gold {chance.random()}"}
    revisions.add_revision(item, texts, author=None, note="", now=timezone.now())


def _delete(items: list[Item], chance: random.Random) -> None:
    gone = chance.choice([None, timezone.now()])
    Item.objects.filter(pk=chance.choice(items).pk).update(deleted_at=gone)


def _drop(items: list[Item], chance: random.Random) -> None:
    Resolution.objects.filter(item=chance.choice(items)).delete()


def _regroup(items: list[Item], chance: random.Random) -> None:
    origin = chance.choice(["relabelled", "paraphrase", ""])
    Item.objects.filter(pk=chance.choice(items).pk).update(origin=origin)


def _reopen(items: list[Item], chance: random.Random) -> None:
    Outcome.objects.filter(item=chance.choice(items)).reopen()


def _judge(items: list[Item], chance: random.Random) -> None:
    result = chance.choice(["detected", "undetected"])
    Outcome.objects.filter(item=chance.choice(items)).update(
        result=result, cause="", detail="lower" if result == "detected" else "equal"
    )


def _archive(items: list[Item], chance: random.Random) -> None:
    at = chance.choice([None, timezone.now()])
    Run.objects.filter(number=chance.choice([1, 2])).update(archived_at=at)


STEPS: tuple[Callable[[list[Item], random.Random], None], ...] = (
    _decide, _end, _take_back, _revise, _delete, _drop, _regroup, _reopen, _judge, _archive,
)  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(3))
def test_after_any_changes_what_is_kept_equals_what_is_made_now(judged: Project, seed: int) -> None:
    chance = random.Random(seed)
    items = list(judged.items.order_by("pk"))
    for table in TABLES:
        made(judged, table)
    for _ in range(25):
        step = chance.choice(STEPS)
        with transaction.atomic():
            step(items, chance)
        for table in chance.sample(TABLES, 3):
            now = fresh(judged, table)
            asked = figures.request_table(judged, table, NOTHING)
            assert isinstance(asked, PendingTable) or asked.rows == now, (step.__name__, table)
            assert made(judged, table).rows == now


@pytest.mark.django_db
@pytest.mark.parametrize("action", ["exclude", "control"])
def test_an_item_that_leaves_the_data_set_leaves_all_figures_until_that_is_undone(
    judged: Project, action: str
) -> None:
    lead = make_member(judged, role="lead")
    before = {table: fresh(judged, table) for table in TABLES}
    gone = judged.items.filter(key=judged.items.order_by("pk")[0].key)
    change = bulk_changes.change_items(
        lead, Item.objects.filter(pk__in=gone), action, "", now=timezone.now()
    ).change
    for table, name in (("undetected", "total"), ("cost", "total"), ("left_out", "items")):
        sums = [sum(row[name] for row in rows) for rows in (before[table], fresh(judged, table))]
        # In each of the two runs, and in the row of its ability and category.
        assert sums[0] - sums[1] == 2, table
    assert [row["n"] for row in fresh(judged, "compare")] != [row["n"] for row in before["compare"]]
    assert {row["other_revision"] for row in fresh(judged, "left_out")} == {1}
    kept = Outcome.objects.filter(run__project=judged, item__in=gone)
    assert kept.count() == kept.not_counted().count() == 2
    assert not kept.counted_or_unlabelled().exists()
    bulk_changes.undo_change(lead, change, now=timezone.now())
    assert {table: fresh(judged, table) for table in TABLES} == before


@pytest.mark.django_db
def test_labelling_and_what_the_queue_notes_leave_kept_figures_of_runs_alone(
    judged: Project,
) -> None:
    made(judged)
    made(judged, "dataset")
    make_items(judged, 3)
    judged.items.update(first_reply_at=timezone.now())
    assert isinstance(figures.request_table(judged, "undetected", NOTHING), FigureTable)
    assert isinstance(figures.request_table(judged, "dataset", NOTHING), PendingTable)


@pytest.mark.django_db
def test_a_change_while_figures_are_made_belongs_to_the_next_ones(
    judged: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = figures.request_table(judged, "undetected", NOTHING)
    assert isinstance(asked, PendingTable)
    rows = figures.TableRequest.rows

    def slow(self: figures.TableRequest) -> list[dict[str, Any]]:
        found = rows(self)
        _judge(list(judged.items.all()[:1]), random.Random(1))
        return found

    monkeypatch.setattr(figures.TableRequest, "rows", slow)
    assert figures.run_job(asked.figure)
    assert isinstance(figures.request_table(judged, "undetected", NOTHING), PendingTable)


@pytest.mark.django_db
def test_other_code_makes_all_figures_anew(
    judged: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(judged)
    monkeypatch.setattr("judging.results.cache.code_digest", lambda module: "another release")
    assert isinstance(figures.request_table(judged, "undetected", NOTHING), PendingTable)


TABLE_MODULES = sorted({table.module for table in tables.RESULT_TABLES.values()})


@pytest.mark.parametrize("name", [*cache.CODE, *TABLE_MODULES])
def test_a_changed_line_of_whatever_computes_figures_changes_the_digest(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = name if name in TABLE_MODULES else TABLE_MODULES[0]
    spec = importlib.util.find_spec(name)
    assert spec is not None
    folder = Path(str(spec.origin))
    folder = folder if name in TABLE_MODULES else folder.parent
    inside = [path for path in cache.code_files(module) if path.is_relative_to(folder)]
    before = cache.code_digest.__wrapped__(module)
    read = Path.read_bytes
    for changed in inside:
        monkeypatch.setattr(
            Path, "read_bytes", lambda self, c=changed: read(self) + b"#" * (self == c)
        )
        assert cache.code_digest.__wrapped__(module) != before
    assert inside


def test_a_changed_word_of_one_table_makes_no_other_table_anew() -> None:
    def files(table: str) -> set[str]:
        return {
            path.name
            for path in cache.code_files(tables.RESULT_TABLES[table].module)
            if path.parent.name == "tables"
        }

    assert files("compare") == {"compare.py"}
    # It shows the undetected rate beside its own figures.
    assert files("verdicts") == {"verdicts.py", "undetected.py"}
    shared = {path.name for path in cache.code_files("judging.results.tables.compare")}
    assert {"counted.py", "arrays.py", "paired.py"} <= shared
    assert not {"page.py", "pages.py", "cells.py", "lines.py"} & shared


def test_code_that_moved_away_is_missed_loudly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "CODE", ("stats", "judging.nowhere"))
    with pytest.raises(ModuleNotFoundError, match="nowhere computes figures"):
        cache.code_files(TABLE_MODULES[0])


@pytest.mark.django_db
def test_a_figure_in_the_hands_of_a_worker_is_left_to_it_until_it_is_gone(
    judged: Project,
) -> None:
    asked = figures.request_table(judged, "undetected", NOTHING)
    assert isinstance(asked, PendingTable)
    now = timezone.now()
    StoredFigure.objects.get().hold("counting outcomes", 1, 2, until=now + cache.LEASE)
    assert not figures.run_job(asked.figure)
    again = figures.request_table(judged, "undetected", NOTHING)
    assert isinstance(again, PendingTable)
    assert (again.step, again.done, again.total) == ("counting outcomes", 1, 2)
    assert figures.list_due(now + cache.LEASE + timedelta(seconds=1)) == [asked.figure]


@pytest.mark.django_db
def test_projects_take_turns_when_many_tables_wait(judged: Project) -> None:
    def ask(project: Project, table: str, minutes: int, **values: Any) -> int:
        wanted = {"wanted_at": now + timedelta(minutes=minutes), **values}
        return StoredFigure.objects.create(
            project=project, key=f"{project.slug} {table}", table=table, asked={}, **wanted
        ).pk

    now = timezone.now()
    other, third = make_project("other"), make_project("third")
    first, second, last = (ask(judged, f"table {n}", n) for n in (1, 2, 3))
    theirs, theirs_too = ask(other, "scores", 4), ask(other, "cost", 5)
    ask(third, "scores", 0, held_until=now + cache.LEASE)
    of_third = ask(third, "cost", 1)
    assert figures.list_due(now) == [first, theirs, of_third, second, theirs_too, last]


@pytest.mark.django_db
def test_a_message_is_spent_on_the_table_whose_turn_it_is(judged: Project) -> None:
    asked = [figures.request_table(judged, table, NOTHING) for table in ("undetected", "cost")]
    _, second = (one.figure for one in asked if isinstance(one, PendingTable))
    tasks.make_figure(second)
    assert figures.list_due(timezone.now()) == [second]


@pytest.mark.django_db
def test_what_fails_is_said_and_tried_again_later(
    judged: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = figures.request_table(judged, "undetected", NOTHING)
    assert isinstance(asked, PendingTable)
    with monkeypatch.context() as broken:
        broken.setattr(figures.TableRequest, "rows", lambda self: 1 / 0)
        assert not figures.run_job(asked.figure)
    failed = figures.request_table(judged, "undetected", NOTHING)
    assert isinstance(failed, PendingTable)
    assert failed.failure == "ZeroDivisionError: division by zero"
    assert figures.list_due(timezone.now()) == []
    StoredFigure.objects.update(held_until=timezone.now())
    figures.request_table(judged, "undetected", NOTHING)
    assert figures.list_due(timezone.now()) == [asked.figure]


@pytest.mark.django_db
def test_of_many_tables_those_made_last_are_kept(
    judged: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MOST_TABLES", 2)
    for table in ("undetected", "scores", "cost"):
        made(judged, table)
    assert set(StoredFigure.objects.values_list("table", flat=True)) == {"scores", "cost"}


@pytest.mark.django_db
def test_the_api_says_how_far_figures_are_and_the_command_waits_for_them(
    judged: Project, browser: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    address = "/api/v1/projects/fbi/results/undetected/"
    said = browser.get(address)
    assert said.status_code == 202
    assert said["Retry-After"] == "1"
    assert (said.json()["done"], said.json()["last"], said.json()["failure"]) == (0, None, "")
    call_command("results", "undetected", project="fbi", format="json")
    printed = capsys.readouterr().out
    there = browser.get(address)
    assert there.status_code == 200
    assert "Last-Modified" in there
    assert there.json() == json.loads(printed)
    assert browser.get(f"{address}?by=nothing").status_code == 400


@pytest.mark.django_db
def test_whoever_makes_figures_tells_how_far_they_are(judged: Project) -> None:
    told: list[tuple[str, int, int]] = []
    with progress.with_progress_callback(lambda *said: told.append(said)):
        fresh(judged, "sensitivity")
    assert ("reading outcomes", 1, 2) in told
    assert told[-1] == ("drawing clusters", 2, 2)


@pytest.mark.django_db
def test_triggers_that_are_gone_come_back_and_then_everything_counts_as_changed(
    judged: Project,
) -> None:
    made(judged)
    change_counters.TRIGGERS.install()
    assert isinstance(figures.request_table(judged, "undetected", NOTHING), FigureTable)
    change_counters.TRIGGERS.drop()
    change_counters.TRIGGERS.install()
    assert isinstance(figures.request_table(judged, "undetected", NOTHING), PendingTable)


@pytest.mark.django_db(transaction=True)
def test_what_is_rolled_back_counts_for_nothing_and_the_rest_of_its_transaction_does(
    project: Project,
) -> None:
    (item,) = make_items(project, 1)
    subject = change_counters.project_subject(project.pk)
    before = change_counters.load_counts([subject])
    with transaction.atomic():
        point = transaction.savepoint()
        Item.objects.filter(pk=item.pk).update(category="one")
        transaction.savepoint_rollback(point)
        assert change_counters.load_counts([subject]) == before
        Item.objects.filter(pk=item.pk).update(category="two")
    assert change_counters.load_counts([subject])[subject] == before[subject] + 1


@pytest.mark.django_db(transaction=True)
def test_rows_that_one_statement_adds_count_for_every_project_that_they_are_of(
    project: Project,
) -> None:
    other = importing.create_project("other")
    subjects = [change_counters.project_subject(each.pk) for each in (project, other)]
    before = change_counters.load_counts(subjects)
    added = [Item(project=each, key=f"new {each.pk}", position=9) for each in (project, other)]
    Item.objects.bulk_create(added)
    after = change_counters.load_counts(subjects)
    assert [after[one] - before.get(one, 0) for one in subjects] == [1, 1]


@pytest.fixture
def second() -> Iterator[Any]:
    other = connection.copy()
    yield other
    other.close()


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_writers_at_once_do_not_wait_for_each_other(project: Project, second: Any) -> None:
    one, two = make_items(project, 2)
    subject = change_counters.project_subject(project.pk)
    before = change_counters.load_counts([subject])[subject]
    change = "UPDATE annotation_item SET category = 'other' WHERE id = %s"
    with transaction.atomic():
        Item.objects.filter(pk=one.pk).update(category="other")
        with second.cursor() as cursor:
            cursor.execute("SET lock_timeout = '1s'")
            cursor.execute(change, [two.pk])
        # The other has committed, this one has not.
    assert change_counters.load_counts([subject])[subject] == before + 2


@pytest.mark.django_db
def test_a_chart_whose_figures_are_being_made_is_no_error_in_the_log(
    judged: Project, browser: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        sent = browser.get("/projects/fbi/results/overview/chart.svg")
    assert (sent.status_code, sent.content[:26]) == (503, b"The figures are being comp")
    told = [one.levelname for one in caplog.records if one.name == "django.request"]
    assert set(told) <= {"INFO"}


@pytest.mark.django_db
def test_more_fields_than_any_page_offers_are_refused_before_items_are_read(
    project: Project, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    by = [f"field {number}" for number in range(figures.MOST_FIELDS + 1)]
    with (
        django_assert_num_queries(0),
        pytest.raises(UnknownField, match="at most 25 fields"),
    ):
        figures.build_request(project, tables.RESULT_TABLES["dataset"], [], by)


@pytest.mark.django_db
def test_more_groups_than_a_page_can_show_are_refused_before_they_are_counted(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [make_items(project, 1, fields={"id": str(one), "half": one % 2})[0] for one in (1, 2)]
    for _ in range(2):
        make_replied(project, "vanilla", zip(items, cycle([scores(9, 5)]), strict=False))
    monkeypatch.setattr(figures, "MOST_GROUPS", 3)
    for table in ("detector", "alignment", "points"):
        pending = figures.request_table(project, table, QueryDict("by=id"))
        assert isinstance(pending, PendingTable)
        assert not figures.run_job(pending.figure)
        failed = StoredFigure.objects.get(pk=pending.figure)
        assert "Grouped by id, the items of these runs have more than 3 groups." in failed.failure
    # Of one run there are few enough, and slices are no groups.
    for table, query in (("detector", "by=id&run=1"), ("blindspots", "by=id")):
        pending = figures.request_table(project, table, QueryDict(query))
        assert isinstance(pending, PendingTable)
        assert figures.run_job(pending.figure)


@pytest.mark.django_db
@pytest.mark.parametrize("table", ["detector", "dataset", "alignment", "blindspots"])
def test_a_field_of_long_texts_names_no_groups(project: Project, table: str) -> None:
    # Also where a table is so small that it is computed at once.
    make_items(project, 1, fields={"passages": "x" * (figures.LONGEST_GROUP + 1), "id": "x"})
    for name, is_refused in (("passages", True), ("id", False)):
        asked = figures.build_request(project, tables.RESULT_TABLES[table], [], [name])
        if is_refused:
            with pytest.raises(UnknownField, match="values of more than 1,000 characters"):
                asked.rows()
        else:
            asked.rows()


@pytest.mark.django_db
@pytest.mark.parametrize("table", ["dataset", "blindspots"])
def test_no_figure_of_a_sealed_project_has_a_text(project: Project, table: str) -> None:
    make_items(project, 1, fields={"remark": "x" * (MAX_LENGTH + 1), "id": "x" * MAX_LENGTH})
    for name in ("remark", "id"):
        pending = figures.request_table(project, table, QueryDict(f"by={name}"))
        assert isinstance(pending, FigureTable) or figures.run_job(pending.figure)
    project.sealed = True
    figures.request_table(project, table, QueryDict("by=id"))
    # Neither computed nor stored from before.
    with pytest.raises(UnknownField, match="values of more than 80 characters"):
        figures.request_table(project, table, QueryDict("by=remark"))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("file", ["undetected.csv", "methods.txt"])
def test_a_file_of_a_large_table_comes_once_a_worker_has_computed_it(
    judged: Project, file: str
) -> None:
    browser = browser_of(make_member(judged, role="researcher"))
    address = f"/projects/{judged.slug}/results/{file}"
    waits = browser.get(address)
    assert (waits.status_code, waits["Retry-After"]) == (503, "2")
    for figure in StoredFigure.objects.exclude(wanted_at=None):
        assert figures.run_job(figure.pk)
    assert browser.get(address).status_code == 200
