"""The page of the formats of files: what can be imported and exported, with the columns."""

from collections.abc import Iterator

from annotation import tasktypes
from annotation.importing import item_rows, label_rows
from annotation.importing.column_mapping import COLUMN_TITLES
from annotation.tasktypes import TaskType
from formats.readers import FORMATS, PICKABLE, REPLY_FORMATS
from formats.writers import FIGURE_FORMATS, FILE_FORMATS
from judging.exporting.tables import (
    EXPORT_COLUMN_KINDS,
    EXPORT_TABLES,
    FORMAT_HINTS,
    TABLE_HINTS,
    explain_column,
)
from operation.docs.reference import markdown
from operation.docs.reference.markdown import code, codes, plain

_KINDS = {
    "text": "a text, or empty",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "time": "date and time in ISO 8601",
    "json": "a list or an object; in CSV and TSV as JSON",
}


def write_page() -> str:
    """The page as Markdown."""
    tasks = [tasktypes.parse_definition(one) for one in tasktypes.load_definitions().values()]
    return markdown.page(
        "Data formats",
        "The formats of files that can be imported and exported, and the columns of their rows. "
        "[Data files](../examples/README.md) explains imports with examples; [Tables of results]"
        "(tables.md) has the columns of figures.",
        "## Importing items",
        markdown.table(
            ("format", "title", "files"),
            (
                (code(name), plain(one.title or one.content), codes(one.suffixes))
                for name, one in FORMATS.items()
            ),
        ),
        "Columns of an item. Any other column is kept as a field of the item.",
        markdown.table(("column", "content"), _item_columns()),
        "Further columns by task type: its texts, and what no row can lack.",
        markdown.table(("task type", "texts", "required columns"), map(_texts, tasks)),
        "## Importing labels",
        f"Formats: {codes(PICKABLE)}. Each row is one label. Required columns: "
        f"{codes(label_rows.REQUIRED_COLUMNS)}, and each required field of the task type, see "
        f"[Task types](task-types.md). Optional columns: {codes(label_rows.OPTIONAL_COLUMNS)}.",
        "## Importing replies",
        f"Formats: {codes(REPLY_FORMATS)}. [Data files]"
        "(../examples/README.md#replies-made-elsewhere) has the columns.",
        "## Exports",
        markdown.table(
            ("format", "file"),
            ((code(name), plain(FORMAT_HINTS.get(name, _title(name)))) for name in FILE_FORMATS),
        ),
        "Kinds of columns:",
        markdown.table(("kind", "values"), ((name, said) for name, said in _KINDS.items())),
        *(part for name in EXPORT_TABLES for part in _export(name)),
        "## Figures",
        "Formats of the tables of results. Rates are fractions of 1, unrounded.",
        markdown.table(
            ("format", "ending", "type"),
            (
                (code(name), code(f".{one.ending}"), code(one.content_type))
                for name, one in FIGURE_FORMATS.items()
            ),
        ),
    )


def _title(form: str) -> str:
    return FORMATS[form].title if form in FORMATS else form


def _item_columns() -> Iterator[tuple[str, str]]:
    for name, title in COLUMN_TITLES.items():
        only = "" if name in item_rows.COLUMNS else "; only for task types without categories"
        yield code(name), plain(title) + only


def _texts(task: TaskType) -> tuple[str, ...]:
    texts = codes(text.name for text in task.texts)
    return plain(task.title), texts, codes(item_rows.required_columns(task))


def _export(name: str) -> Iterator[str]:
    table = EXPORT_TABLES[name]
    yield f"### {code(name)}"
    yield f"Rows: {plain(TABLE_HINTS[name])}."
    yield markdown.table(
        ("column", "kind", "meaning"),
        (
            (
                code(column),
                EXPORT_COLUMN_KINDS.get(column, "text"),
                explain_column(name, column)
                or "text of the item, in some [task types](task-types.md)",
            )
            for column in table.columns
        ),
    )
    if table.own:
        yield "The task type of the project adds further columns."
