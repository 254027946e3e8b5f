"""What every call asks the database, made into SQL once and planned once.

Building a query by the ORM takes some ten times what the database needs to answer it by a unique
key. What each call of the API asks first, whose key this is and where that person sits, is built
at its first use and only executed from then on. PostgreSQL in turn takes longer to plan such a
statement than to run it, so a connection that has run one some times keeps its plan.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db import connection
from django.db.models import Model, QuerySet, Value
from django.db.models.query import get_related_populators

Row = TypeVar("Row", bound=Model)


def planned() -> Any:
    """A cursor whose statements PostgreSQL plans once a connection, not at each call.

    For statements whose text is always the same. Values go to the server apart from the text, so
    it must be able to tell their types; a condition of a partial index must stand in the text.
    """
    if connection.vendor != "postgresql":
        return connection.cursor()
    from django.db.backends.postgresql.base import ServerBindingCursor

    connection.ensure_connection()
    connection.close_if_health_check_failed()
    binding: Any = ServerBindingCursor  # whose stubs know nothing of psycopg
    cursor = binding(connection.connection)
    return (
        connection.make_debug_cursor(cursor)
        if connection.queries_logged
        else connection.make_cursor(cursor)
    )


def insert(made: Row) -> Row:
    """Store a new row as it is, and give it its id: `objects.create` in a fifth of the time."""
    model = type(made)
    fields = [field for field in model._meta.local_concrete_fields if not field.primary_key]
    if model not in _INSERTS:
        quote = connection.ops.quote_name
        names = ", ".join(quote(str(field.column)) for field in fields)
        places = ", ".join(["%s"] * len(fields))
        table = quote(model._meta.db_table)
        _INSERTS[model] = f"INSERT INTO {table} ({names}) VALUES ({places}) RETURNING id"
    values = [f.get_db_prep_save(f.pre_save(made, add=True), connection) for f in fields]
    with planned() as cursor:
        cursor.execute(_INSERTS[model], values)
        [made.pk] = cursor.fetchone()
    made._state.adding, made._state.db = False, connection.alias
    return made


# By model; the text is the same on both databases.
_INSERTS: dict[type[Model], str] = {}


class Given(Value):
    """Where a value stands that is given with each call, under a name."""

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        return "%s", [self]


class Prepared(Generic[Row]):
    """`Prepared(lambda pk: Item.objects.filter(pk=pk))`, then `.first(pk=3)` each time.

    The values must be as the database takes them, strings and numbers, and never None, since a
    condition on NULL is another SQL. Joined rows come along as `select_related` says.
    """

    def __init__(self, rows: Callable[..., QuerySet[Row]]) -> None:
        code: Any = getattr(rows, "__code__")  # noqa: B009  (a callable need not have one)
        self._rows, self._names = rows, code.co_varnames[: code.co_argcount]
        self._plans: dict[str, _Plan[Row]] = {}

    def first(self, **values: str | int) -> Row | None:
        """The first of the rows, None if there is none."""
        plan = self._plans.get(connection.vendor) or self._plan()
        given = [values[p.value] if isinstance(p, Given) else p for p in plan.parameters]
        with planned() as cursor:
            cursor.execute(plan.sql, given)
            row = cursor.fetchone()
        return plan.made(row) if row else None

    def _plan(self) -> "_Plan[Row]":
        rows = self._rows(**{name: Given(name) for name in self._names})[:1]
        plan = self._plans[connection.vendor] = _Plan.of(rows)
        return plan


@dataclass(frozen=True)
class _Plan(Generic[Row]):
    """A query as SQL, and how a row of its answer becomes an object and those joined to it."""

    sql: str
    parameters: Sequence[Any]
    converters: Iterable[tuple[int, tuple[list[Callable[..., Any]], Any]]]
    model: type[Row]
    names: list[str]
    start: int
    joined: list[Any]

    @classmethod
    def of(cls, rows: QuerySet[Row]) -> "_Plan[Row]":
        compiler = rows.query.get_compiler(connection=connection)
        sql, parameters = compiler.as_sql()
        select, info = compiler.select or [], compiler.klass_info or {}
        own = info["select_fields"]
        # The stubs describe a later Django, where it takes one argument more.
        populators: Any = get_related_populators
        columns: list[Any] = [column for column, _, _ in select]
        return cls(
            sql=sql,
            parameters=parameters,
            converters=list(compiler.get_converters(columns).items()),
            model=info["model"],
            names=[columns[number].target.attname for number in own],
            start=own[0],
            joined=populators(info, select, connection.alias),
        )

    def made(self, row: Sequence[Any]) -> Row:
        values = list(row)
        for number, (converters, column) in self.converters:
            for convert in converters:
                values[number] = convert(values[number], column, connection)
        own = values[self.start : self.start + len(self.names)]
        made = self.model.from_db(connection.alias, self.names, own)
        for related in self.joined:
            related.populate(values, made)
        return made
