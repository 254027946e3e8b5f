"""Map the columns of a file to the columns of items: guess them and rename them; pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from annotation import tasktypes
from annotation.importing.item_rows import COLUMNS, required_columns
from annotation.items.taxonomy import Taxonomy
from formats.rows import BadRow, Row

# Common names in published data and spreadsheets, the most likely first.
COMMON_NAMES: dict[str, tuple[str, ...]] = {
    "key": ("id", "item id", "uid", "example id", "question id", "nr", "no", "number", "name"),
    "category": (
        "error type",
        "error category",
        "perturbation",
        "perturbation type",
        "type of error",
        "kind of fault",
        "fault",
        "subset",
        "type",
        "kind",
    ),
    "prompt": ("question", "instruction", "input", "query", "user prompt"),
    "gold": (
        "gold answer",
        "reference",
        "reference answer",
        "ground truth",
        "better output",
        "better answer",
        "better response",
        "chosen",
        "answer",
    ),
    "perturbed": (
        "perturbed answer",
        "changed answer",
        "modified answer",
        "broken answer",
        "corrupted answer",
        "worse output",
        "worse answer",
        "worse response",
        "rejected",
        "corrupted",
        "modified",
        "changed",
        "broken",
    ),
    "response": (
        "model response",
        "llm response",
        "output",
        "model output",
        "completion",
        "answer",
    ),
    "claim": ("change", "what changed", "what was changed", "explanation", "reason"),
    "rationale": ("why", "notes", "note", "justification"),
    "ability": ("skill", "task category"),
    "cluster": ("source question", "prompt id", "cluster id"),
}


# Titles of an item's columns other than its texts.
COLUMN_TITLES = {
    "key": "Key (a unique name per item)",
    "category": "Category",
    "source_ability": "Ability of the unchanged answer",
    "origin": "Origin",
    "cluster": "Source question (items from the same question are not independent)",
    "repeats": "Duplicate of (key)",
    "purpose": "Purpose (test, practice or probe)",
    "ability": "Ability",
}


def item_columns(task: tasktypes.TaskType) -> tuple[str, ...]:
    """The column names that an item may have, the required ones first."""
    ability = () if task.categories else ("ability",)
    texts = (text.name for text in task.texts)
    return tuple(dict.fromkeys((*required_columns(task), *texts, *COLUMNS, *ability)))


def item_titles(task: tasktypes.TaskType, known: Taxonomy) -> dict[str, str]:
    """Return the title of each item column, in the words of the project's categories."""
    ours = {name: known.word_groups(title) for name, title in COLUMN_TITLES.items()}
    titles = ours | {text.name: text.title for text in task.texts}
    return {name: titles[name] for name in item_columns(task)}


def guess_columns(task: tasktypes.TaskType, found: Sequence[str]) -> dict[str, str]:
    """Guess the file column for each item column that has no file column of the same name.

    Required columns are matched first. No file column is used twice.
    """
    texts = {text.name: text.title for text in task.texts}
    names = item_columns(task)
    free = {_normalise_name(column): column for column in reversed(found) if column not in names}
    guessed = {}
    for name in names:
        if name in found:
            continue
        often = (name, texts.get(name, name), *COMMON_NAMES.get(name, ()))
        likely = (*often, *(f"{one} text" for one in often if name in texts))
        chosen = next(
            (free.pop(_normalise_name(one)) for one in likely if _normalise_name(one) in free), None
        )
        if chosen is not None:
            guessed[name] = chosen
    return guessed


def needed_columns(task: tasktypes.TaskType, found: Sequence[str]) -> tuple[str, ...]:
    """Return the required columns for a file with these columns. The key is required if a column
    looks like the key under another name; otherwise items would get keys that nobody intended."""
    named = "key" in guess_columns(task, found)
    return tuple(dict.fromkeys((*(["key"] if named else []), *required_columns(task))))


def rename_columns(
    rows: Iterator[Row | BadRow], named: Mapping[str, str]
) -> Iterator[Row | BadRow]:
    """Rename file columns to item columns; a dot in a name means a value inside an object, unless a
    column has exactly that name.

    A renamed column no longer exists under its old name.
    """
    for row in rows:
        if isinstance(row, BadRow):
            yield row
            continue
        values = {name: found for name, found in row.values.items() if name not in named.values()}
        values |= {name: _value_at(row.values, found) for name, found in named.items()}
        yield replace(row, values=values)


def _normalise_name(name: str) -> str:
    """Return the name in one case, without spaces and punctuation, so that its variants become
    equal."""
    return "".join(filter(str.isalnum, name.casefold()))


def _value_at(values: dict[str, Any], path: str) -> Any:
    if path in values:
        return values[path]
    value: Any = values
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value
