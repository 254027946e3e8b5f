"""What a data set is of, against counts that were made by hand."""

import pytest
from pytest_django import DjangoAssertNumQueries

from annotation.models import Project
from judging.results.counted import UnknownField
from judging.results.tables import data_set
from tests.builders import make_project, make_revision
from tests.judging.builders_judging import make_items

pytestmark = pytest.mark.django_db

Said = dict[tuple[str, str | None], dict[str, object]]


def said_of(project: Project, *by: str) -> dict[str, Said]:
    found: dict[str, Said] = {}
    for row in data_set.tabulate(project, list(by)):
        group = " ".join(str(row[name]) for name in by)
        found.setdefault(group, {})[row["of"], row["value"]] = row
    return found


def test_a_group_has_the_shares_of_its_labels_and_categories(project: Project) -> None:
    items = make_items(project, 3, fields={"task": "sums"})
    make_items(project, 1, "score-invariant", category="spelling", fields={"task": "sums"})
    make_items(project, 1, fields={"task": "essay"})
    items[0].resolutions.update(current=False)
    make_items(project, 1, duplicate_of=items[1], fields={"task": "sums"})
    found = said_of(project, "task")
    assert set(found) == {"sums", "essay"}
    sums = found["sums"]
    assert {row["n"] for row in sums.values()} == {4}
    labels = {value: row["count"] for (of, value), row in sums.items() if of == "label"}
    assert labels == {"valid": 2, "score-invariant": 1, None: 1}
    assert sums["label", "valid"]["share"] == 0.5
    assert sums["category", "number-errors"]["share"] == 0.75
    assert sums["category", "spelling"]["count"] == 1


def test_texts_have_the_mean_number_of_their_words(project: Project) -> None:
    first, second = make_items(project, 2)
    make_revision(first, {"prompt": "Två blå ord", "gold": "Ja.", "response": ["a b", "c"]})
    make_revision(second, {"prompt": "Ett", "gold": ""})
    found = said_of(project)[""]
    means = {
        value: (row["count"], row["mean"]) for (of, value), row in found.items() if of == "words"
    }
    assert means == {"prompt": (2, 2), "gold": (2, 0.5), "response": (1, 3)}


def test_each_value_of_a_field_and_of_an_answer_has_its_share() -> None:
    project = make_project("errors", task_type="error-detection")
    topics: list[object] = [["art", "law"], "law", 3, "a" * 81]
    for topic in topics[:3]:
        make_items(project, 1, "error", fields={"topic": topic, "text": topics[3]})
    make_items(project, 1, "no_error")
    first = project.items.get(position=1)
    first.resolutions.update(values={"verdict": "error", "error_type": ["x", "y"]})
    found = said_of(project)[""]
    shares = {at: row["share"] for at, row in found.items() if at[0] not in ("label", "words")}
    # Four items; the one without a topic has no value, and a text is none.
    assert shares == {
        ("category", "number-errors"): 1, ("answers.error_type", "x"): 0.25,
        ("answers.error_type", "y"): 0.25, ("fields.topic", "3"): 0.25,
        ("fields.topic", "art"): 0.25, ("fields.topic", "law"): 0.5,
    }  # fmt: skip


def test_a_field_with_more_than_fifty_values_is_not_listed(project: Project) -> None:
    for number in range(51):
        make_items(project, 1, fields={"id": str(number), "place": str(min(number, 49))})
    kinds = {of for of, _ in said_of(project)[""]}
    assert "fields.place" in kinds
    assert "fields.id" not in kinds


def test_an_empty_project_has_no_rows_and_a_field_must_be_there(project: Project) -> None:
    assert data_set.tabulate(project, ["category"]) == []
    with pytest.raises(UnknownField):
        data_set.tabulate(project, ["task"])


def test_more_groups_than_anybody_reads_are_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        make_items(project, 1, fields={"id": str(number)})
    monkeypatch.setattr(data_set, "MOST_GROUPS", 2)
    with pytest.raises(UnknownField, match=r"Grouped by id, the items have 3 groups\. At most 2 "):
        data_set.tabulate(project, ["id"])


def test_a_table_is_seven_queries_for_up_to_a_thousand_items(
    project: Project, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    make_items(project, 30)
    with django_assert_num_queries(7):
        data_set.tabulate(project, ["ability", "category"])
