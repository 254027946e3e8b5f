"""A query that is built once gives what the ORM gives each time."""

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from annotation.db.sql import PreparedQuery
from annotation.models import Account, ApiToken, Membership
from tests.builders import make_account, make_member, make_project

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
