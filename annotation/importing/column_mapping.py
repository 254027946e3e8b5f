"""What a file calls the columns of items: guessed, and renamed to what an item calls them; pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from annotation import tasktypes
from annotation.importing.item_rows import COLUMNS, required_columns
from formats.rows import BadRow, Row

# What published data and spreadsheets often call them, the likeliest first.
COMMON_NAMES: dict[str, tuple[str, ...]] = {
    "key": ("id", "item id", "uid", "example id", "question id", "nr", "no", "number", "name"),
    "category": ("error type", "perturbation", "perturbation type", "type"),
    "prompt": ("question", "instruction", "input", "query", "user prompt"),
    "gold": ("gold answer", "reference", "reference answer", "ground truth", "answer"),
    "perturbed": (
        "perturbed answer",
        "changed answer",
        "modified answer",
        "broken answer",
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
    "claim": ("change", "what was changed", "explanation", "reason"),
    "ability": ("skill", "task category"),
    "cluster": ("source question", "prompt id", "cluster id"),
}


def item_columns(task: tasktypes.TaskType) -> tuple[str, ...]:
    """The names that an item may have, those that every item needs first."""
    ability = () if task.categories else ("ability",)
    texts = (text.name for text in task.texts)
    return tuple(dict.fromkeys((*required_columns(task), *texts, *COLUMNS, *ability)))


def guess_columns(task: tasktypes.TaskType, found: Sequence[str]) -> dict[str, str]:
    """By the name that an item has: the column that is probably meant, where none bears the name.

    Those that every item needs choose first; no column stands for two names.
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
    """What rows with these columns must have; a key too if they seem to have one by another name,
    since items would else get keys that nobody meant."""
    named = "key" in guess_columns(task, found)
    return tuple(dict.fromkeys((*(["key"] if named else []), *required_columns(task))))


def rename_columns(
    rows: Iterator[Row | BadRow], named: Mapping[str, str]
) -> Iterator[Row | BadRow]:
    """The rows with these values under an item's names; a dot leads into an object, unless a
    column is called so.

    A column that stands for a name is not kept as a field of its own.
    """
    for row in rows:
        if isinstance(row, BadRow):
            yield row
            continue
        values = {name: found for name, found in row.values.items() if name not in named.values()}
        values |= {name: _value_at(row.values, found) for name, found in named.items()}
        yield replace(row, values=values)


def _normalise_name(name: str) -> str:
    """Without case, spaces and signs, in which names of the same thing differ."""
    return "".join(filter(str.isalnum, name.casefold()))


def _value_at(values: dict[str, Any], path: str) -> Any:
    if path in values:
        return values[path]
    value: Any = values
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value
