"""Labels come in from elsewhere while people label, as real threads."""

from collections import Counter
from datetime import UTC, datetime

import pytest

from annotation import tasktypes
from annotation.importing import label_rows, labels
from annotation.importing.labels import LabelImportReport
from annotation.models import Label, Membership, Project, Slot
from formats.rows import Row
from tests.annotation.test_queue_threads import at_once, label_until_none_is_left
from tests.builders import make_item, make_member, make_project

pytestmark = pytest.mark.django_db(transaction=True)

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
ITEMS, OVERLAP = 60, 2


def bring_in(project: Project, raters: list[str]) -> LabelImportReport:
    """A label of every item by each of these raters."""
    rows = [
        Row(
            "in.csv", number, {"item": key, "rater": rater, "time": "2026-03-01", "choice": "valid"}
        )
        for rater in raters
        for number, key in enumerate(project.items.values_list("key", flat=True), start=1)
    ]
    task = tasktypes.load_task_type(project)
    return labels.store_labels(project, label_rows.parse_labels(rows, task, now=NOW), now=NOW)


def test_nothing_is_doubled_or_lost_while_people_label_and_two_files_come_in() -> None:
    project = make_project(overlap=OVERLAP)
    for _ in range(ITEMS):
        make_item(project)
    people = [make_member(project) for _ in range(4)]
    works = [lambda person=person: label_until_none_is_left(person) for person in people]
    reports = at_once(
        lambda: bring_in(project, ["one", "two"]),
        lambda: bring_in(project, ["two", "three"]),
        *works,
    )
    for person in people:
        label_until_none_is_left(person)
    assert [report.bad for report in reports if isinstance(report, LabelImportReport)] == [[], []]
    counted = Label.objects.counted()
    assert set(Counter(counted.values_list("item", flat=True)).values()) == {OVERLAP}
    filled = Slot.objects.filter(state="filled")
    assert set(filled.values_list("pk", "member")) == set(counted.values_list("slot", "member"))
    raters = Membership.objects.filter(account=None)
    assert sorted(raters.values_list("alias", "labelled")) == [
        ("one", ITEMS),
        ("three", ITEMS),
        ("two", ITEMS),
    ]
