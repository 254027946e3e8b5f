"""Statements run as text, and what goes into them and comes out of them.

What every call asks the database, made into SQL once and planned once.

Building a query by the ORM takes some ten times what the database needs to answer it by a unique
key. What each call of the API asks first, whose key this is and where that person sits, is built
at its first use and only executed from then on. PostgreSQL in turn takes longer to plan such a
statement than to run it, so a connection that has run one some times keeps its plan.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from inspect import signature
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import Model, QuerySet, Value
from django.db.models.query import get_related_populators

Row = TypeVar("Row", bound=Model)


def prepared_cursor() -> Any:
    """A cursor whose statements PostgreSQL plans once a connection, not at each call.

    For statements whose text is always the same. Values go to the server apart from the text, so
    it must be able to tell their types; a condition of a partial index must stand in the text.
    """
    here: Any = connections[DEFAULT_DB_ALIAS]  # once: `connection` looks it up at each word
    if here.vendor != "postgresql":
        return here.cursor()
    from django.db.backends.postgresql.base import ServerBindingCursor

    # In this order, as Django's own cursors do: what is closed has to be opened again.
    here.close_if_health_check_failed()
    here.ensure_connection()
    binding: Any = ServerBindingCursor  # whose stubs know nothing of psycopg
    cursor = binding(here.connection)
    return here.make_debug_cursor(cursor) if here.queries_logged else here.make_cursor(cursor)


def insert_rows(made: Row, *beside: Model) -> Row:
    """Store new rows as they are, and give the first its id: `create` in a fifth of the time.

    Where the database can, all of them in one statement.
    """
    if connection.vendor == "postgresql":
        withs = [f"w{number} AS ({_insert_sql(type(row))})" for number, row in enumerate(beside)]
        text = (f"WITH {', '.join(withs)} " if withs else "") + _insert_sql(type(made))
        values = [value for row in beside for value in _values(row)]
        _execute_insert(made, text, values + _values(made))
        return made
    _execute_insert(made, _insert_sql(type(made)), _values(made))
    for row in beside:
        _execute_insert(row, _insert_sql(type(row)), _values(row))
    return made


def insert_if_changed(changes: str, given: list[Any], made: Row, *beside: Model) -> bool:
    """`insert_rows` in one statement with changes, if the last of them, `changed`, changed a row.

    `changes` are tables of a WITH, told `given`. False, and nothing is stored, if there was no
    such row. For PostgreSQL: SQLite changes rows in statements of their own only.
    """
    withs = [
        f"w{number} AS ({_insert_sql(type(row), 'changed')})" for number, row in enumerate(beside)
    ]
    text = f"WITH {', '.join([changes, *withs])} {_insert_sql(type(made), 'changed')}"
    rows: list[Model] = [*beside, made]
    return _execute_insert(made, text, given + [value for row in rows for value in _values(row)])


def _execute_insert(made: Model, text: str, values: list[Any]) -> bool:
    with prepared_cursor() as cursor:
        cursor.execute(text, values)
        stored = cursor.fetchone()
    if stored:
        [made.pk] = stored
        made._state.adding, made._state.db = False, connection.alias
    return stored is not None


@cache
def _insert_sql(model: type[Model], each: str = "") -> str:
    """One row, or one for each row of the table `each`."""
    quote, fields = connection.ops.quote_name, _stored_fields(model)
    columns = ", ".join(quote(str(field.column)) for field in fields)
    if each:  # where PostgreSQL does not look at the column for what a value is
        typed = ", ".join(f"%s::{field.db_type(connection)}" for field in fields)
        rows = f"SELECT {typed} FROM {each}"
    else:
        rows = f"VALUES ({', '.join(['%s'] * len(fields))})"
    return f"INSERT INTO {quote(model._meta.db_table)} ({columns}) {rows} RETURNING id"


def _values(row: Model) -> list[Any]:
    fields = _stored_fields(type(row))
    return [field.get_db_prep_save(field.pre_save(row, add=True), connection) for field in fields]


@cache
def _stored_fields(model: type[Model]) -> list[Any]:
    return [field for field in model._meta.local_concrete_fields if not field.primary_key]


class Parameter(Value):
    """Where a value stands that is given with each call, under a name."""

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        return "%s", [self]


class PreparedQuery(Generic[Row]):
    """`Prepared(lambda pk: Item.objects.filter(pk=pk))`, then `.first(pk=3)` each time.

    The values must be as the database takes them, strings and numbers, and never None, since a
    condition on NULL is another SQL. Joined rows come along as `select_related` says, and what
    was annotated.
    """

    def __init__(self, rows: Callable[..., QuerySet[Row]]) -> None:
        self._rows, self._names = rows, tuple(signature(rows).parameters)
        self._plans: dict[str, _QueryPlan[Row]] = {}

    def first(self, **values: str | int) -> Row | None:
        """The first of the rows, None if there is none."""
        plan = self._plans.get(connection.vendor) or self._plan()
        given = [values[p.value] if isinstance(p, Parameter) else p for p in plan.parameters]
        with prepared_cursor() as cursor:
            cursor.execute(plan.sql, given)
            row = cursor.fetchone()
        return plan.made(row) if row else None

    def _plan(self) -> "_QueryPlan[Row]":
        rows = self._rows(**{name: Parameter(name) for name in self._names})[:1]
        plan = self._plans[connection.vendor] = _QueryPlan.of(rows)
        return plan


@dataclass(frozen=True)
class _QueryPlan(Generic[Row]):
    """A query as SQL, and how a row of its answer becomes an object and those joined to it."""

    sql: str
    parameters: Sequence[Any]
    converters: Iterable[tuple[int, tuple[list[Callable[..., Any]], Any]]]
    model: type[Row]
    names: list[str]
    start: int
    joined: list[Any]
    annotated: dict[str, int]

    @classmethod
    def of(cls, rows: QuerySet[Row]) -> "_QueryPlan[Row]":
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
            annotated=dict(compiler.annotation_col_map or {}),
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
        for name, number in self.annotated.items():
            setattr(made, name, values[number])
        return made


def fetch_rows(statement: str, words: Any) -> list[tuple[Any, ...]]:
    with prepared_cursor() as cursor:
        cursor.execute(statement, words)
        return cursor.fetchall()


def execute_change(statement: str, words: Any) -> int:
    """How many rows the statement changed."""
    with prepared_cursor() as cursor:
        cursor.execute(statement, words)
        return cursor.rowcount


def to_database_time(time: datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(time)


def parse_time(value: Any) -> datetime | None:
    """A time as the database gives it to a statement of which it knows no model."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.replace(tzinfo=UTC) if value and value.tzinfo is None else value


def quote_names(stages: Iterable[str]) -> str:
    return ", ".join(f"'{stage}'" for stage in stages)


def lock_clause(*, passing: bool) -> str:
    """Lock the slots that are found, passing over those that somebody else has locked or not."""
    if not connection.features.has_select_for_update:
        return ""
    return "FOR NO KEY UPDATE OF s" + (" SKIP LOCKED" if passing else "")
