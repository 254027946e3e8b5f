"""How often what figures rest on was changed, counted by the database itself.

Triggers count, so that no code that writes can forget to, and those who label need not know that
there are figures. A count is part of the transaction that changes something: whoever sees the
change sees it counted, and nobody before. On PostgreSQL a subject has as many rows as there were
writers at once, so that none waits for another; its count is their sum.

Migrations run without the triggers, since SQLite makes tables anew for them, which drops or breaks
what hangs on them. So triggers are put there after each, and then everything counts as changed.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.db import connection

PREFIX = "judging_touch_"
EVERYTHING = "all"


@dataclass(frozen=True)
class Source:
    """Rows that figures rest on: their table, when a row of it counts, and the subjects that it is
    about, as statements over the row. `used` are those that a new row cannot be about yet. An
    update counts if any of the `columns` changes."""

    table: str
    events: tuple[str, ...]
    subjects: tuple[str, ...]
    columns: tuple[str, ...] = ()
    used: tuple[str, ...] = ()

    def about(self, event: str, row: str) -> Iterator[str]:
        """The subjects, as statements over the row of the event, which is called so."""
        told = self.subjects if event == "INSERT" else self.subjects + self.used
        return (subject.format(row=row) for subject in told)


# What triggers call the row of an event.
ROWS = {"INSERT": "NEW", "UPDATE": "NEW", "DELETE": "OLD"}
ALWAYS = tuple(ROWS)
_OF_PROJECT = "SELECT 'project ' || {row}.project_id AS subject"
_OF_RUN = "SELECT 'run ' || {row}.run_id AS subject"
_RUNS_OF_ITEM = (
    "SELECT DISTINCT 'run ' || o.run_id AS subject FROM judging_outcome AS o WHERE o.item_id = "
)
SOURCES = (
    Source("judging_outcome", ALWAYS, (_OF_RUN,)),
    Source("judging_call", ("INSERT",), (_OF_RUN,)),
    Source(
        "judging_reply",
        ("INSERT",),
        (
            "SELECT DISTINCT 'run ' || c.run_id AS subject FROM judging_call AS c"
            " WHERE c.request_id = {row}.request_id",
        ),
    ),
    Source(
        "annotation_resolution",
        ALWAYS,
        (
            "SELECT 'project ' || i.project_id AS subject FROM annotation_item AS i"
            " WHERE i.id = {row}.item_id",
            _RUNS_OF_ITEM + "{row}.item_id",
        ),
    ),
    Source("annotation_label", ALWAYS, (_OF_PROJECT,)),
    # By what items are grouped, and whether they count; not what the queue notes of them.
    Source(
        "annotation_item",
        ALWAYS,
        (_OF_PROJECT,),
        ("category", "ability", "source_ability", "cluster", "origin", "parent_id",
         "duplicate_of_id", "dose", "purpose", "fields", "revision_number", "deleted_at"),
        (_RUNS_OF_ITEM + "{row}.id",),
    ),
)  # fmt: skip


def counts(subjects: Iterable[str]) -> dict[str, int]:
    """How often each was changed, and everything at once; 0 is left out. One short query, a second
    one inside a transaction on PostgreSQL."""
    named = sorted({EVERYTHING, *subjects})
    places = ", ".join(["%s"] * len(named))
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql" and connection.in_atomic_block:
            # What this transaction still changes is counted again.
            cursor.execute("SELECT set_config('judging.touched', '', true)")
        cursor.execute(
            f"SELECT subject, SUM(n) FROM judging_touch WHERE subject IN ({places})"
            " GROUP BY subject ORDER BY subject",
            named,
        )
        return {subject: int(n) for subject, n in cursor.fetchall()}


def of_run(run_id: int) -> str:
    return f"run {run_id}"


def of_project(project_id: int) -> str:
    return f"project {project_id}"


def fits() -> bool:
    """Whether all tables are there: not half-way through the migrations."""
    tables = {"judging_touch", *(source.table for source in SOURCES)}
    return tables <= set(connection.introspection.table_names())


def put() -> None:
    """Have the triggers in place as they are written here; what is there already is not touched."""
    wanted = dict(_triggers())
    if set(wanted) == set(_there()):
        return
    take_away()
    with connection.cursor() as cursor:
        for statement in (*_functions(), *wanted.values()):
            cursor.execute(statement)
        cursor.execute("INSERT INTO judging_touch (subject, n) VALUES (%s, 1)", [EVERYTHING])


def take_away() -> None:
    """Drop all triggers, so that tables can be made anew."""
    with connection.cursor() as cursor:
        for name, table in _there().items():
            of = f" ON {table}" if connection.vendor == "postgresql" else ""
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}{of}")


def _there() -> dict[str, str]:
    """The triggers that are there, each with its table."""
    found = """
        SELECT t.tgname, c.relname FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
        WHERE starts_with(t.tgname, %s) AND pg_table_is_visible(c.oid)
    """
    if connection.vendor == "sqlite":
        found = (
            "SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'"
            " AND SUBSTR(name, 1, 14) = %s"
        )
    with connection.cursor() as cursor:
        cursor.execute(found, [PREFIX])
        return dict(cursor.fetchall())


def _triggers() -> Iterator[tuple[str, str]]:
    """Each by its name, which tells one version from another."""
    trigger = _on_postgresql if connection.vendor == "postgresql" else _on_sqlite
    called = "".join(_functions())
    for source in SOURCES:
        for event in source.events:
            does = trigger(source, event)
            written = hashlib.sha256((does + called).encode()).hexdigest()[:8]
            name = f"{PREFIX}{source.table}_{event.lower()}_{written}"
            yield name, f"CREATE TRIGGER {name} AFTER {event} ON {source.table} {does}"


def _on_sqlite(source: Source, event: str) -> str:
    counted = "".join(
        f"""
        UPDATE judging_touch SET n = n + 1 WHERE subject IN ({about});
        INSERT INTO judging_touch (subject, n) SELECT about.subject, 1
        FROM ({about}) AS about
        WHERE NOT EXISTS (SELECT 1 FROM judging_touch AS t WHERE t.subject = about.subject);
        """
        for about in source.about(event, ROWS[event])
    )
    return f"FOR EACH ROW {_changed(source, event, 'IS NOT')} BEGIN {counted} END"


def _on_postgresql(source: Source, event: str) -> str:
    # Many rows are often added at once, by imports and workers.
    each = f"FOR EACH ROW {_changed(source, event, 'IS DISTINCT FROM')}"
    if event == "INSERT":
        each = "REFERENCING NEW TABLE AS added FOR EACH STATEMENT"
    return f"{each} EXECUTE FUNCTION {_function(source, event)}()"


def _changed(source: Source, event: str, apart: str) -> str:
    if event != "UPDATE" or not source.columns:
        return ""
    each = (f'OLD."{column}" {apart} NEW."{column}"' for column in source.columns)
    return f"WHEN ({' OR '.join(each)})"


def _functions() -> Iterator[str]:
    """What triggers call; on SQLite they say it all themselves."""
    if connection.vendor != "postgresql":
        return
    yield _TOUCH
    for source in SOURCES:
        for event in source.events:
            loops = "".join(
                f"FOR about IN {each} LOOP PERFORM judging_touch(about); END LOOP; "
                for each in _counted(source, event)
            )
            yield f"""
                CREATE OR REPLACE FUNCTION {_function(source, event)}() RETURNS trigger
                LANGUAGE plpgsql AS $$
                DECLARE about text;
                BEGIN {loops} RETURN NULL; END $$
            """


def _counted(source: Source, event: str) -> Iterator[str]:
    """The subjects of the row, or of all rows that a statement added."""
    if event != "INSERT":
        return source.about(event, ROWS[event])
    each = "SELECT DISTINCT about.subject FROM added AS one CROSS JOIN LATERAL"
    return (f"{each} ({told}) AS about" for told in source.about(event, "one"))


# Once a transaction is enough, however many rows it writes. A row that another writer holds is
# left alone: whoever waited for it would wait for the whole transaction of the other.
_TOUCH = """
    CREATE OR REPLACE FUNCTION judging_touch(about text) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE done text := COALESCE(current_setting('judging.touched', true), '');
    BEGIN
        IF strpos(done, about || ';') > 0 THEN RETURN; END IF;
        UPDATE judging_touch SET n = n + 1 WHERE id = (
            SELECT t.id FROM judging_touch AS t WHERE t.subject = about
            LIMIT 1 FOR UPDATE SKIP LOCKED
        );
        IF NOT FOUND THEN INSERT INTO judging_touch (subject, n) VALUES (about, 1); END IF;
        PERFORM set_config('judging.touched', done || about || ';', true);
    END $$
"""


def _function(source: Source, event: str) -> str:
    return f"{PREFIX}{source.table}_{'added' if event == 'INSERT' else ROWS[event].lower()}"
