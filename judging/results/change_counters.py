"""Counters of changes to the data behind figures, kept by the database itself.

The triggers count every write, so no code can forget to count, and labelling code does not depend
on figures. A trigger counts in the transaction that makes the change, so both become visible
together. On PostgreSQL a subject has one row for each simultaneous writer, so that writers do not
wait for each other. The subject's count is the sum of these rows.

After each migration, which runs without the triggers, everything counts as changed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.db import connection

from annotation.db.triggers import Trigger, TriggerSet

TRIGGER_PREFIX = "judging_touch_"
ALL_SUBJECTS = "all"


@dataclass(frozen=True)
class CountedTable:
    """A table whose changes are counted, with the events to count and the SQL statements that
    select the subjects of a row. The statements in `used` select subjects that a new row cannot
    have yet. An update counts if any of the `columns` changes."""

    table: str
    events: tuple[str, ...]
    subjects: tuple[str, ...]
    columns: tuple[str, ...] = ()
    used: tuple[str, ...] = ()

    def about(self, event: str, row: str) -> Iterator[str]:
        """SQL statements that select the subjects of the event's row, which SQL calls `row`."""
        told = self.subjects if event == "INSERT" else self.subjects + self.used
        return (subject.format(row=row) for subject in told)


# The name of an event's row in triggers.
ROW_NAMES = {"INSERT": "NEW", "UPDATE": "NEW", "DELETE": "OLD"}
ALL_EVENTS = tuple(ROW_NAMES)
_OF_PROJECT = "SELECT 'project ' || {row}.project_id AS subject"
_OF_RUN = "SELECT 'run ' || {row}.run_id AS subject"
_RUNS_OF_ITEM = (
    "SELECT DISTINCT 'run ' || o.run_id AS subject FROM judging_outcome AS o WHERE o.item_id = "
)
COUNTED_TABLES = (
    CountedTable("judging_outcome", ALL_EVENTS, (_OF_RUN,)),
    CountedTable("judging_call", ("INSERT",), (_OF_RUN,)),
    CountedTable(
        "judging_reply",
        ("INSERT",),
        (
            "SELECT DISTINCT 'run ' || c.run_id AS subject FROM judging_call AS c"
            " WHERE c.request_id = {row}.request_id",
        ),
    ),
    CountedTable(
        "annotation_resolution",
        ALL_EVENTS,
        (
            "SELECT 'project ' || i.project_id AS subject FROM annotation_item AS i"
            " WHERE i.id = {row}.item_id",
            _RUNS_OF_ITEM + "{row}.item_id",
        ),
    ),
    CountedTable("annotation_label", ALL_EVENTS, (_OF_PROJECT,)),
    # Only columns that group items or decide whether an item counts; no columns of the queue.
    CountedTable(
        "annotation_item",
        ALL_EVENTS,
        (_OF_PROJECT,),
        ("category", "ability", "source_ability", "cluster", "origin", "parent_id",
         "duplicate_of_id", "dose", "purpose", "fields", "revision_number", "deleted_at"),
        (_RUNS_OF_ITEM + "{row}.id",),
    ),
)  # fmt: skip


def load_counts(subjects: Iterable[str]) -> dict[str, int]:
    """Load the number of changes of each subject, and of changes to everything; zeros are left out.
    Makes one short query, or two inside a transaction on PostgreSQL."""
    named = sorted({ALL_SUBJECTS, *subjects})
    places = ", ".join(["%s"] * len(named))
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql" and connection.in_atomic_block:
            # Count later changes in this transaction again.
            cursor.execute("SELECT set_config('judging.touched', '', true)")
        cursor.execute(
            f"SELECT subject, SUM(n) FROM judging_touch WHERE subject IN ({places})"
            " GROUP BY subject ORDER BY subject",
            named,
        )
        return {subject: int(n) for subject, n in cursor.fetchall()}


def run_subject(run_id: int) -> str:
    """The name of a run's change counter; the triggers write the same name."""
    return f"run {run_id}"


def project_subject(project_id: int) -> str:
    """The name of a project's change counter; the triggers write the same name."""
    return f"project {project_id}"


def _count_everything() -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO judging_touch (subject, n) VALUES (%s, 1)", [ALL_SUBJECTS])


def _triggers() -> Iterator[Trigger]:
    does = _on_postgresql if connection.vendor == "postgresql" else _on_sqlite
    for source in COUNTED_TABLES:
        for event in source.events:
            yield Trigger(source.table, event, does(source, event))


def _on_sqlite(source: CountedTable, event: str) -> str:
    counted = "".join(
        f"""
        UPDATE judging_touch SET n = n + 1 WHERE subject IN ({about});
        INSERT INTO judging_touch (subject, n) SELECT about.subject, 1
        FROM ({about}) AS about
        WHERE NOT EXISTS (SELECT 1 FROM judging_touch AS t WHERE t.subject = about.subject);
        """
        for about in source.about(event, ROW_NAMES[event])
    )
    return f"FOR EACH ROW {_build_condition(source, event, 'IS NOT')} BEGIN {counted} END"


def _on_postgresql(source: CountedTable, event: str) -> str:
    # One call per statement, since imports and workers often insert many rows at once.
    each = f"FOR EACH ROW {_build_condition(source, event, 'IS DISTINCT FROM')}"
    if event == "INSERT":
        each = "REFERENCING NEW TABLE AS added FOR EACH STATEMENT"
    return f"{each} EXECUTE FUNCTION {_name_function(source, event)}()"


def _build_condition(source: CountedTable, event: str, apart: str) -> str:
    if event != "UPDATE" or not source.columns:
        return ""
    each = (f'OLD."{column}" {apart} NEW."{column}"' for column in source.columns)
    return f"WHEN ({' OR '.join(each)})"


def _functions() -> Iterator[str]:
    """The functions that triggers call. SQLite needs none: its triggers contain all their code."""
    if connection.vendor != "postgresql":
        return
    yield _COUNT_FUNCTION
    for source in COUNTED_TABLES:
        for event in source.events:
            loops = "".join(
                f"FOR about IN {each} LOOP PERFORM judging_touch(about); END LOOP; "
                for each in _build_subject_queries(source, event)
            )
            yield f"""
                CREATE OR REPLACE FUNCTION {_name_function(source, event)}() RETURNS trigger
                LANGUAGE plpgsql AS $$
                DECLARE about text;
                BEGIN {loops} RETURN NULL; END $$
            """


def _build_subject_queries(source: CountedTable, event: str) -> Iterator[str]:
    """The subjects of the row, or of all rows that a statement inserted."""
    if event != "INSERT":
        return source.about(event, ROW_NAMES[event])
    each = "SELECT DISTINCT about.subject FROM added AS one CROSS JOIN LATERAL"
    return (f"{each} ({told}) AS about" for told in source.about(event, "one"))


# One count per transaction is enough, however many rows the transaction writes. A row that another
# writer has locked is skipped: waiting for it would mean waiting for the end of the other
# transaction.
_COUNT_FUNCTION = """
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


def _name_function(source: CountedTable, event: str) -> str:
    change = "added" if event == "INSERT" else ROW_NAMES[event].lower()
    return f"{TRIGGER_PREFIX}{source.table}_{change}"


TRIGGERS = TriggerSet(
    TRIGGER_PREFIX,
    _triggers,
    _functions,
    frozenset({"judging_touch", *(source.table for source in COUNTED_TABLES)}),
    _count_everything,
)
