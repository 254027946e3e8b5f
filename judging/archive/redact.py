"""The scope of an archive, and the redaction of its texts, free-text answers and addresses."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from annotation.exporting import history_tables
from annotation.models import Project
from annotation.reports.grouping import MAX_LENGTH
from annotation.tasktypes.fields import Field
from judging.generation import rows
from judging.models import Run
from stats.rouge import unicode_words


@dataclass(frozen=True)
class ArchiveScope:
    """The scope of an archive: the chosen runs, and all runs that their figures depend on. It also
    says whether texts of items and people, and replies of evaluators, are included, and whether the
    project is sealed."""

    project: Project
    chosen: tuple[Run, ...]
    runs: tuple[int, ...]
    texts: bool = False
    replies: bool = False
    is_sealed: bool = False

    @cached_property
    def written(self) -> frozenset[str]:
        """The fields of the project's task types with free-text answers."""
        return frozenset(one.name for one in self._fields if one.is_written)

    @cached_property
    def quoting(self) -> frozenset[str]:
        """The fields of the project's task types whose answers quote texts of the items."""
        return frozenset(one.name for one in self._fields if one.marks_texts)

    @cached_property
    def _fields(self) -> list[Field]:
        tasks = history_tables.label_task_types(self.project)
        named = [field for task in tasks for field in task.fields]
        return named + [field for task in tasks if task.blind for field in task.blind.fields]


Mask = Callable[[ArchiveScope, Any], Any]


def drop(scope: ArchiveScope, value: Any) -> str:
    """Return an empty text in place of the value."""
    return ""


def drop_if_any(scope: ArchiveScope, value: Any) -> str | None:
    """Return an empty text in place of the value, None if there is no value."""
    return None if value is None else ""


def mask_text(scope: ArchiveScope, texts: Any) -> Any:
    """Return an unreadable text with the same numbers of words, of tokens between white space, and
    of characters."""
    if isinstance(texts, dict):
        return {name: mask_text(scope, text) for name, text in texts.items()}
    if isinstance(texts, list):
        return [mask_text(scope, text) for text in texts]
    text = str(texts)
    words, tokens = len(unicode_words(text)), len(text.split())
    # A token may have no word, such as "=", or several, such as "well-known".
    masked = ["."] * (tokens - words) + ["x"] * min(words, tokens)
    if words > tokens and masked:
        masked[-1] += ".x" * (words - tokens)
    short = " ".join(masked)
    return short + (short[-1:] or " ") * (len(text) - len(short))


def mask_fields(scope: ArchiveScope, fields: Any) -> Any:
    """Return the fields of an item. If a model generated it, the texts from which it was made, and
    those beside its own, are made unreadable: the data set does not count them. If so or if the
    project is sealed, so is each text that is too long to name a group of items. No figure has such
    a text."""
    texts = rows.list_text_fields(fields)
    fields = {
        name: mask_text(scope, value)
        if name in texts and isinstance(value, str | list | dict)
        else value
        for name, value in fields.items()
    }
    return _mask_long(scope, fields) if scope.is_sealed or rows.is_generated(fields) else fields


def _mask_long(scope: ArchiveScope, value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _mask_long(scope, one) for name, one in value.items()}
    if isinstance(value, list):
        return [_mask_long(scope, one) for one in value]
    is_long = isinstance(value, str) and len(value) > MAX_LENGTH
    return mask_text(scope, value) if is_long else value


def mask_diff(scope: ArchiveScope, difference: Any) -> Any:
    """Return an unreadable version of a stored diff, with the same number of changed characters in
    each place.
    """

    def hidden(packed: Any) -> Any:
        if isinstance(packed, list):
            return [hidden(one) for one in packed]
        return "x" * len(packed) if isinstance(packed, str) else packed  # the number of a move

    return difference | {"segments": hidden(difference["segments"])}


def drop_free_text(scope: ArchiveScope, answers: Any) -> Any:
    """Return the answers without those in free text; marked passages keep their place, but their
    quotes become unreadable."""
    return {
        name: _mask_quotes(scope, said) if name in scope.quoting else said
        for name, said in answers.items()
        if name not in scope.written
    }


def _mask_quotes(scope: ArchiveScope, passages: Any) -> Any:
    if not isinstance(passages, list):
        return drop(scope, passages)  # the field was a text in another version
    return [
        one | {"quote": mask_text(scope, one["quote"])} if isinstance(one, dict) else one
        for one in passages
    ]


def public_address(scope: ArchiveScope, address: Any) -> str:
    """Return the address without credentials, that is, without user name, password and query."""
    parts = urlsplit(str(address))
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def redact_pinned(scope: ArchiveScope, pinned: Any) -> Any:
    """Return the pinned settings of an endpoint, without user name, password and query in its
    address.
    """
    return {
        name: public_address(scope, one) if name == "address" else one
        for name, one in pinned.items()
    }
