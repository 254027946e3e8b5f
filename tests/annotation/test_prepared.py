"""A query that is built once gives what the ORM gives each time."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.utils import timezone

from annotation.db.sql import PreparedQuery, PreparedRows, PreparedUpdate, to_database_time
from annotation.models import Account, ApiToken, Item, Membership
from tests.builders import make_account, make_item, make_member, make_project

pytestmark = pytest.mark.django_db

SEAT = PreparedQuery(
    lambda account, slug: Membership.objects.select_related("project__task_type", "account").filter(
        account=account, active=True, project__slug=slug, project__archived_at=None
    )
)


def columns(row: Any) -> dict[str, object]:
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


def test_a_row_and_those_joined_to_it_are_those_of_the_orm(
    django_assert_num_queries: Callable[..., Any],
) -> None:
    project = make_project("one", description="ü % %s", archived_at=None)
    member = make_member(project, practised_at=timezone.now())
    with django_assert_num_queries(1):
        found = SEAT.first(account=member.account_id, slug="one")
        assert found is not None
        joined = [found, found.project, found.project.task_type, found.account]
    expected = Membership.objects.get(pk=member.pk)
    stored = [expected, expected.project, expected.project.task_type, expected.account]
    assert [columns(row) for row in joined] == [columns(row) for row in stored]
    assert found == expected
    assert not found._state.adding


def test_each_call_has_its_own_values() -> None:
    members = [make_member(make_project(slug)) for slug in ("one", "two")]
    for member, slug in zip(members, ("one", "two"), strict=True):
        assert SEAT.first(account=member.account_id, slug=slug) == member
    assert SEAT.first(account=members[0].account_id, slug="two") is None


def test_a_value_is_never_part_of_the_sql() -> None:
    make_member(make_project("one"))
    assert SEAT.first(account=0, slug="' OR 1 = 1 --") is None


def test_an_empty_column_of_a_joined_row_stays_empty() -> None:
    token, key = ApiToken.issue(make_account(), "mine")
    live = PreparedQuery(
        lambda digest: ApiToken.objects.select_related("account").filter(digest=digest)
    )
    found = live.first(digest=ApiToken.digest_of(key))
    assert found is not None
    assert (found.pk, found.last_used_at, found.revoked_at) == (token.pk, None, None)
    assert isinstance(found.account, Account)


def test_no_row_joined_is_none() -> None:
    member = make_member(make_project())
    Membership.objects.filter(pk=member.pk).update(account=None)
    alone = PreparedQuery(lambda pk: Membership.objects.select_related("account").filter(pk=pk))
    found = alone.first(pk=member.pk)
    assert found is not None
    assert found.account is None


ODD = "it's 5 % of %s"
ODD_ITEMS = PreparedRows(
    lambda ids: (
        Item.objects.filter(pk__among=ids, category=ODD)
        .order_by("pk")
        .values_list("pk", "key", "fields", "project__slug", "first_reply_at")
    )
)
FIRST_REPLIES = PreparedUpdate(
    lambda ids, now: (
        Item.objects.filter(pk__among=ids, first_reply_at=None),
        {"first_reply_at": now, "revision_number": F("revision_number") + 1},
    )
)


def test_columns_are_those_of_the_orm_for_any_list_of_ids(
    django_assert_num_queries: Callable[..., Any],
) -> None:
    project = make_project("one")
    items = [make_item(project, key, category=ODD, fields={"a": [1]}) for key in ("x", "y", "z")]
    Item.objects.filter(pk=items[1].pk).update(first_reply_at=timezone.now())
    Item.objects.filter(pk=items[2].pk).update(category="it is 5 % of %s")
    for ids in ([item.pk for item in items], [items[1].pk, 10**12], []):
        orm = Item.objects.filter(pk__in=ids, category=ODD).order_by("pk")
        columns = ("pk", "key", "fields", "project__slug", "first_reply_at")
        with django_assert_num_queries(1):
            found = ODD_ITEMS.fetch(ids=ids)
        assert found == list(orm.values_list(*columns))


def test_an_update_changes_the_rows_that_the_orm_would_change() -> None:
    items = [make_item(make_project(key), key) for key in ("x", "y", "z")]
    ids, first, now = [item.pk for item in items[:2]], timezone.now(), timezone.now()
    assert FIRST_REPLIES.run(ids=ids[:1], now=to_database_time(first)) == 1
    assert FIRST_REPLIES.run(ids=ids, now=to_database_time(now)) == 1
    found = Item.objects.order_by("pk").values_list("first_reply_at", "revision_number")
    numbers = [item.revision_number for item in items]
    assert list(found) == [
        (first, numbers[0] + 1),
        (now, numbers[1] + 1),
        (None, numbers[2]),
    ]


def test_only_the_values_of_a_call_are_parameters_so_that_partial_indexes_are_found() -> None:
    seen: list[tuple[str, Any]] = []

    def watch(execute: Any, statement: str, given: Any, many: bool, context: Any) -> Any:
        seen.append((statement, given))
        return execute(statement, given, many, context)

    with connection.execute_wrapper(watch):
        ODD_ITEMS.fetch(ids=[3])
    [(statement, given)] = seen
    if connection.vendor == "postgresql":
        assert (given, statement.count("it''s 5 %% of %%s")) == ([[3]], 1)
    else:
        assert sorted(given) == ["[3]", ODD]
