"""Rows that are written by one statement come out as if each had been saved."""

import secrets
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection, transaction

from annotation.db import bulk
from judging.models import Endpoint, Reading, Reply, Request
from tests.judging.builders_judging import make_endpoint

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 1, 12, 30, 0, 250_000, tzinfo=UTC)
TEXT = 'He said: "4 \\ 5",\n%s {ünï} 你 \u2028'
REPLY = {
    "request_id": "bigint",
    "text": "text",
    "finish": "text",
    "model": "text",
    "tokens_in": "integer",
    "cost": "numeric",
    "asked_at": "timestamptz",
    "seconds": "float8",
    "created_at": "timestamptz",
}
READING = {
    "reply_id": "bigint",
    "parser": "text",
    "value": "jsonb",
    "path": "text",
    "cause": "text",
    "explanation": "text",
    "created_at": "timestamptz",
}


def make_request(endpoint: Endpoint) -> Request:
    return Request.objects.create(endpoint=endpoint, digest=secrets.token_hex(32), place=1)


def insert_replies(requests: list[Request]) -> None:
    at = connection.ops.adapt_datetimefield_value(AT)
    costs = [Decimal("0.000123"), None]
    rows = [
        (request.pk, TEXT, "stop", "", None, cost, at, 0.25, at)
        for request, cost in zip(requests, costs, strict=True)
    ]
    bulk.insert(Reply._meta.db_table, REPLY, rows)


@pytest.mark.parametrize("seconds", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_a_fault_and_not_nothing(seconds: float) -> None:
    request = make_request(make_endpoint("http://127.0.0.1:1/v1"))
    with pytest.raises(ValueError, match="seconds"):
        bulk.insert(
            "judging_reply", {"request_id": "bigint", "seconds": "float8"}, [(request.pk, seconds)]
        )
    assert not Reply.objects.exists()


def test_values_of_every_kind_come_out_as_they_went_in(django_assert_num_queries: Any) -> None:
    endpoint = make_endpoint("http://127.0.0.1:1/v1")
    insert_replies([make_request(endpoint), make_request(endpoint)])
    first, second = Reply.objects.order_by("request")
    assert (first.text, first.tokens_in, first.seconds) == (TEXT, None, 0.25)
    assert (first.asked_at, first.cost, second.cost) == (AT, Decimal("0.000123"), None)
    at = connection.ops.adapt_datetimefield_value(AT)
    rows = [
        (first.pk, "one", '{"a": [1, "ü"]}', "strict", "", "", at),
        (second.pk, "one", '"A"', "strict", "", "", at),
        (second.pk, "two", None, "", "unparsable", "", at),
    ]
    with django_assert_num_queries(1):
        bulk.insert(Reading._meta.db_table, READING, rows)
    values = Reading.objects.order_by("reply", "parser").values_list("value", flat=True)
    assert list(values) == [{"a": [1, "ü"]}, "A", None]
    assert Reading.objects.filter(value__isnull=True).count() == 1


def test_a_row_that_is_there_already_stays() -> None:
    request = make_request(make_endpoint("http://127.0.0.1:1/v1"))
    Reply.objects.create(request=request, text="first", finish="stop", asked_at=AT, seconds=1.0)
    insert_replies([request, make_request(request.endpoint)])
    assert Reply.objects.get(request=request).text == "first"
    assert Reply.objects.count() == 2


def test_rows_are_updated_each_by_its_own_values(django_assert_num_queries: Any) -> None:
    endpoint = make_endpoint("http://127.0.0.1:1/v1")
    first, second, other = (make_request(endpoint) for _ in range(3))
    columns = {"reserved": "numeric", "tried": "jsonb"}
    rows = [(Decimal("0.5"), '{"timed_out": 2}', first.pk), (Decimal(2), "{}", second.pk)]
    with django_assert_num_queries(1):
        bulk.update(Request._meta.db_table, columns, rows)
    found = Request.objects.in_bulk()
    assert (found[first.pk].reserved, found[first.pk].tried) == (Decimal("0.5"), {"timed_out": 2})
    assert (found[second.pk].reserved, found[second.pk].tried) == (Decimal(2), {})
    assert found[other.pk].reserved == 0


def test_no_rows_ask_nothing(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        bulk.insert(Reply._meta.db_table, REPLY, [])
        bulk.update(Request._meta.db_table, {"reserved": "numeric"}, [])


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_tables_that_grew_are_counted_at_once() -> None:
    endpoint = make_endpoint("http://127.0.0.1:1/v1")
    for _ in range(30):
        make_request(endpoint)
    bulk.analyze_tables(Request._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT reltuples FROM pg_class WHERE relname = %s", [Request._meta.db_table]
        )
        assert cursor.fetchone() == (30,)


def test_tables_are_not_counted_inside_a_transaction(django_assert_num_queries: Any) -> None:
    with transaction.atomic(), django_assert_num_queries(0):
        bulk.analyze_tables(Request._meta.db_table)
