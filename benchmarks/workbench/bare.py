"""Two minimal calls, which give a lower bound for the time of every call that answers or stores
something.

Both use the same server, middleware and authentication as the queue. `nothing/` answers at once;
`write/` changes one row per user in a transaction. Two `write/` calls take as long as a pair would
if fetching and labelling an item each took a single short statement. No token scope covers these
calls, so they require none.
"""

from django.db import connection
from django.urls import include, path
from rest_framework.decorators import api_view, permission_classes
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.db import transactions
from config import urls

TABLE = "bench_floor"


def prepare(people: list[int]) -> None:
    """Insert a row for each account."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {TABLE} (id bigint PRIMARY KEY, n bigint)")
        cursor.executemany(f"INSERT INTO {TABLE} VALUES (%s, 0)", [[pk] for pk in people])


@api_view(["POST"])
@permission_classes([IsAuthenticated])
def nothing(request: Request) -> Response:
    return Response({})


@api_view(["POST"])
@permission_classes([IsAuthenticated])
def write(request: Request) -> Response:
    with transactions.transact(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE {TABLE} SET n = n + 1 WHERE id = %s", [request.user.pk])
    return Response({})


urlpatterns = [path("nothing/", nothing), path("write/", write), path("", include(urls))]
