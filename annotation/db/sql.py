"""Runs SQL statements given as text, and queries that are compiled and planned only once.

Building a query by a unique key with the ORM takes about ten times as long as the database needs to
answer it. The first queries of each API call read the owner of the token and the membership. They
are compiled at first use and only executed afterwards. PostgreSQL takes longer to plan such a
statement than to run it, so a connection keeps the plan after some runs.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, connections, models
from django.db.models import Model, QuerySet, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.lookups import Lookup
from django.db.models.query import get_related_populators
from django.db.models.sql import UpdateQuery

Row = TypeVar("Row", bound=Model)


class ObjectKeyText(KeyTextTransform):
    """The text at a key of a JSON object. Django takes a key that is a number for a place in a
    list, and databases refuse some numbers as places."""

    def as_postgresql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        column, params, _ = self.preprocess_lhs(compiler, connection)
        return f"({column} ->> %s)", (*params, self.key_name)

    def as_sqlite(self, compiler: Any, connection: Any, **more: Any) -> tuple[str, tuple[Any, ...]]:
        _, params, _ = self.preprocess_lhs(compiler, connection)
        text, _ = super().as_sqlite(compiler, connection, **more)
        return text, (*params, f"$.{json.dumps(self.key_name)}") * 3


def prepared_cursor() -> Any:
    """Open a cursor whose statements PostgreSQL plans once per connection instead of at each call.

    Use it for statements whose text is always the same. Values are sent separately, so the server
    must be able to infer their types; the condition of a partial index must be in the text.
    """
    here: Any = connections[DEFAULT_DB_ALIAS]  # read once: `connection` looks it up at each access
    if here.vendor != "postgresql":
        return here.cursor()
    from django.db.backends.postgresql.base import ServerBindingCursor

    # In the same order as Django's own cursors: a closed connection has to be opened again.
    here.close_if_health_check_failed()
    here.ensure_connection()
    binding: Any = ServerBindingCursor  # its stubs do not know psycopg
    cursor = binding(here.connection)
    return here.make_debug_cursor(cursor) if here.queries_logged else here.make_cursor(cursor)


def insert_rows(made: Row, *beside: Model) -> Row:
    """Insert new rows and set the id of the first row, in a fifth of the time of `create`.

    Returns the first row. PostgreSQL inserts all rows in one statement.
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
    """Run changes and `insert_rows` in one statement. Rows are inserted only if the last change,
    called `changed`, has changed a row.

    `changes` are the tables of a WITH clause with the parameters `given`. If `changed` has no rows,
    nothing is inserted and the result is False. For PostgreSQL only: SQLite cannot change rows in a
    WITH clause.
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
    """Return a statement that inserts one row, or one row for each row of the table `each`."""
    quote, fields = connection.ops.quote_name, _stored_fields(model)
    columns = ", ".join(quote(str(field.column)) for field in fields)
    if each:  # PostgreSQL does not infer the types from the columns here
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
    """A named placeholder for a value that each call passes."""

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        """Return the placeholder, with this object as its parameter; `_bind` replaces it by a
        value."""
        return "%s", [self]


def _bind(parameters: Iterable[Any], values: Mapping[str, Any]) -> list[Any]:
    """Return the parameters of a compiled statement, with the values of this call."""
    given = [values[p.value] if isinstance(p, Parameter) else p for p in parameters]
    if connection.vendor == "postgresql":
        return given
    return [json.dumps(value) if isinstance(value, list) else value for value in given]


class PreparedQuery(Generic[Row]):
    """A query that is compiled once: `PreparedQuery(lambda pk: Item.objects.filter(pk=pk))`, then
    `.first(pk=3)` for each call.

    Values must be strings or numbers in the database's form. None is not allowed, because a
    condition on NULL needs different SQL. `select_related` and annotations work as usual.
    """

    def __init__(self, rows: Callable[..., QuerySet[Row]]) -> None:
        self._rows, self._names = rows, tuple(signature(rows).parameters)
        self._plans: dict[str, _QueryPlan[Row]] = {}

    def first(self, **values: str | int) -> Row | None:
        """Return the first row, or None if there is none."""
        plan = self._plans.get(connection.vendor) or self._plan()
        with prepared_cursor() as cursor:
            cursor.execute(plan.sql, _bind(plan.parameters, values))
            row = cursor.fetchone()
        return plan.build_row(row) if row else None

    def _plan(self) -> "_QueryPlan[Row]":
        rows = self._rows(**{name: Parameter(name) for name in self._names})[:1]
        plan = self._plans[connection.vendor] = _QueryPlan.compile(rows)
        return plan


class _Statement(NamedTuple):
    """A compiled statement, its parameters, and how the values of its columns are converted."""

    sql: str
    parameters: Sequence[Any]
    converters: Sequence[tuple[int, tuple[list[Callable[..., Any]], Any]]] = ()

    def run(self, values: Mapping[str, Any], *, keep_plan: bool) -> tuple[int, list[Any]]:
        """Return the number of rows, and the rows themselves if the statement returns any."""
        with prepared_cursor() if keep_plan else connection.cursor() as cursor:
            cursor.execute(self.sql, _bind(self.parameters, values))
            return cursor.rowcount, cursor.fetchall() if cursor.description else []


class _PreparedStatement:
    """A statement that is compiled at its first use on each kind of database.

    Values are strings, numbers, times in the database's form, or lists of them for `among`. None is
    not allowed, because a condition on NULL needs different SQL. PostgreSQL keeps the plan of a
    statement unless `keep_plan` is False: the best plan may depend on the size of a run.
    """

    def __init__(self, build: Callable[..., Any], *, keep_plan: bool = True) -> None:
        self._keep_plan = keep_plan
        self._build, self._names = build, tuple(signature(build).parameters)
        self._statements: dict[str, _Statement] = {}

    def _run(self, values: Mapping[str, Any]) -> tuple[_Statement, int, list[Any]]:
        vendor = connection.vendor
        if vendor not in self._statements:
            built = self._compile(self._build(**{name: Parameter(name) for name in self._names}))
            self._statements[vendor] = _with_literals(built) if vendor == "postgresql" else built
        statement = self._statements[vendor]
        return statement, *statement.run(values, keep_plan=self._keep_plan)

    def _compile(self, built: Any) -> _Statement:
        raise NotImplementedError


class PreparedRows(_PreparedStatement):
    """Columns that are read by a query compiled once:
    `PreparedRows(lambda ids: Item.objects.filter(pk__among=ids).values_list("pk", "key"))`, then
    `.fetch(ids=[3, 4])` for each call. Annotations come last in the list of columns."""

    def fetch(self, **values: Any) -> list[tuple[Any, ...]]:
        """Return all rows. Rows that the query locks are locked until the transaction ends."""
        statement, _, found = self._run(values)
        if not statement.converters:
            return found
        rows = [list(row) for row in found]
        for number, (converters, column) in statement.converters:
            for convert in converters:
                for row in rows:
                    row[number] = convert(row[number], column, connection)
        return [tuple(row) for row in rows]

    def _compile(self, built: QuerySet[Any]) -> _Statement:
        compiler = built.query.get_compiler(connection=connection)
        sql, parameters = compiler.as_sql()
        columns: list[Any] = [column for column, _, _ in compiler.select or []]
        return _Statement(sql, parameters, list(compiler.get_converters(columns).items()))


class PreparedUpdate(_PreparedStatement):
    """An update that is compiled once:
    `PreparedUpdate(lambda ids, now: (Item.objects.filter(pk__among=ids), {"changed_at": now}))`,
    then `.run(ids=[3, 4], now=to_database_time(now))` for each call."""

    def run(self, **values: Any) -> int:
        """Return the number of changed rows."""
        return self._run(values)[1]

    def _compile(self, built: tuple[QuerySet[Any], Mapping[str, Any]]) -> _Statement:
        rows, changes = built
        update: Any = rows.query.chain(UpdateQuery)
        update.add_update_values(changes)
        update.clear_ordering(force=True)
        return _Statement(*update.get_compiler(connection=connection).as_sql())


def _with_literals(statement: _Statement) -> _Statement:
    """Write constants into the SQL. PostgreSQL finds a partial index by the text of its condition
    only, once it reuses the plan of a statement."""
    start, *rest = statement.sql.split("%s")
    text, kept = [start], []
    for value, after in zip(statement.parameters, rest, strict=True):
        if isinstance(value, str):
            text += ["'", value.replace("'", "''").replace("%", "%%"), "'", after]
        elif isinstance(value, int):
            text += [str(value), after]
        else:
            text += ["%s", after]
            kept.append(value)
    return statement._replace(sql="".join(text), parameters=kept)


@dataclass(frozen=True)
class _QueryPlan(Generic[Row]):
    """A compiled query: its SQL, and how a result row becomes an object with its joined objects."""

    sql: str
    parameters: Sequence[Any]
    converters: Iterable[tuple[int, tuple[list[Callable[..., Any]], Any]]]
    model: type[Row]
    names: list[str]
    start: int
    joined: list[Any]
    annotated: dict[str, int]

    @classmethod
    def compile(cls, rows: QuerySet[Row]) -> "_QueryPlan[Row]":
        compiler = rows.query.get_compiler(connection=connection)
        sql, parameters = compiler.as_sql()
        select, info = compiler.select or [], compiler.klass_info or {}
        own = info["select_fields"]
        # The type stubs describe a later Django version with one more argument.
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

    def build_row(self, row: Sequence[Any]) -> Row:
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
    """Run a statement with these parameters. Return all rows as the database driver gives them."""
    with prepared_cursor() as cursor:
        cursor.execute(statement, words)
        return cursor.fetchall()


def execute_change(statement: str, words: Any) -> int:
    """Run a statement. Return the number of changed rows."""
    with prepared_cursor() as cursor:
        cursor.execute(statement, words)
        return cursor.rowcount


def to_database_time(time: datetime) -> Any:
    """Convert a time to a parameter for a raw statement of this database."""
    return connection.ops.adapt_datetimefield_value(time)


def parse_time(value: Any) -> datetime | None:
    """Convert a time from a raw statement to an aware datetime; a time without time zone is in UTC.
    None stays None."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.replace(tzinfo=UTC) if value and value.tzinfo is None else value


def quote_names(stages: Iterable[str]) -> str:
    """Return the names as an SQL list of strings. Use it only for constants, because nothing is
    escaped."""
    return ", ".join(f"'{stage}'" for stage in stages)


def lock_clause(*, passing: bool) -> str:
    """Return the clause that locks the slots `s` of a query. With `passing`, the query skips locked
    slots instead of waiting for them. Return "" if the database has no row locks."""
    if not connection.features.has_select_for_update:
        return ""
    return "FOR NO KEY UPDATE OF s" + (" SKIP LOCKED" if passing else "")


def keep_rows(found: QuerySet[Any]) -> list[int]:
    """Return the ids of the rows that a query finds. Nobody can delete these rows until the current
    transaction ends, but others may change them. Waits for whoever is deleting one."""
    statement, values = found.order_by().values_list("pk").query.sql_with_params()
    if connection.features.has_select_for_no_key_update:
        statement += " FOR KEY SHARE"
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return [pk for (pk,) in cursor.fetchall()]


if TYPE_CHECKING:
    LookupBase = Lookup[Any]
else:
    LookupBase = Lookup


class Among(LookupBase):
    """The lookup `pk__among=ids`: like `in`, but with one parameter for any number of ids,
    positions or keys.

    `in` writes a placeholder for each value: with hundreds of them, building the SQL took longer
    than running it, and each number of values needed its own statement.
    """

    lookup_name = "among"

    def get_prep_lookup(self) -> list[int | str] | Parameter:
        """Return the values as a list: of strings for a text column, otherwise of whole numbers.
        A named placeholder is returned unchanged."""
        if isinstance(self.rhs, Parameter):
            return self.rhs
        kind = str if isinstance(self.lhs.output_field, models.CharField) else int
        return [kind(one) for one in self.rhs]

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        """Return `= ANY` with an array on PostgreSQL; on other databases `IN` with one JSON
        parameter."""
        column, given = self.process_lhs(compiler, connection)
        ids = self.rhs
        if connection.vendor == "postgresql":
            return f"{column} = ANY(%s)", (*given, ids)
        given_ids = ids if isinstance(ids, Parameter) else json.dumps(ids)
        return f"{column} IN (SELECT value FROM json_each(%s))", (*given, given_ids)


def register_lookups() -> None:
    """Register `among` for primary keys, foreign keys, positive integers and text columns."""
    ids = (models.AutoField, models.BigAutoField, models.ForeignKey, models.OneToOneField)
    for field in (*ids, models.PositiveIntegerField, models.CharField):
        field.register_lookup(Among)
