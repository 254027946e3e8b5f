"""Parse rows into items, or say why a row cannot be used."""

import hashlib
import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from annotation import tasktypes
from annotation.errors import FieldError
from annotation.importing import exported_rows
from annotation.items import taxonomy, text_digest
from annotation.items.taxonomy import Taxonomy
from annotation.labelling import correct_answers
from formats.rows import MAX_KEY_LENGTH, BadRow, Row, as_printable

SHORT_LENGTH = 40
MAX_CATEGORY_LENGTH = 80
# A longer word in the place of a category is a text: the page does not ask what it means.
MAX_WORD_LENGTH = 200
COLUMNS = ("key", "category", "source_ability", "origin", "cluster", "repeats", "purpose")


@dataclass(frozen=True)
class ParsedItem:
    """A valid row, parsed into an item that can be stored.

    effect: the effect that the category should have on a score, "penalty" or "none"; "" without
        categories.
    retired: the word of the row for its category, if no new item can have that category.
    former: the category that the row names, if it was merged with another one.
    cluster: a digest of the source question. With `is_alone`, the item forms a cluster of one item,
        because no column gives a cluster and people rate responses.
    repeats: the key of the item whose texts this item repeats; "" if there is none.
    fields: everything in the row besides the standard columns.
    flags: the names of the rules that flag the texts.
    known: the correct answer of an item for qualification or control.
    decided: an imported final label.
    parent: the key of the item from which this item was made.
    dose: the number of errors inserted.
    """

    row: Row
    key: str
    category: str
    ability: str
    source_ability: str
    effect: str
    retired: str
    former: str
    cluster: str
    origin: str
    purpose: str
    repeats: str
    texts: dict[str, Any]
    fields: dict[str, Any]
    flags: tuple[str, ...] = ()
    known: correct_answers.CorrectAnswer | None = None
    decided: correct_answers.CorrectAnswer | None = None
    was: exported_rows.ExportedRow | None = None
    parent: str = ""
    dose: int | None = None
    is_alone: bool = False

    @property
    def own_cluster(self) -> str:
        """The cluster that contains only the item and its duplicates."""
        return _cluster(f"item\0{self.repeats or self.key}")

    @cached_property
    def written(self) -> bytes:
        """The texts as JSON in UTF-8, in the form that is stored and digested."""
        return text_digest.texts_as_json(self.texts)

    @cached_property
    def digest(self) -> str:
        """The digest of the texts, as the revision stores it."""
        return text_digest.digest_json(self.written)

    @cached_property
    def written_fields(self) -> str:
        """The fields as JSON, in the form that is stored. The category from before a merge is among
        them, so that the item gets it back if the merge is taken back."""
        former = {taxonomy.FORMER_FIELD: self.former} if self.former else {}
        return json.dumps({**former, **self.fields})

    @property
    def size(self) -> int:
        """The length of the texts and fields in stored form."""
        return len(self.written) + len(self.written_fields)

    @property
    def is_made_here(self) -> bool:
        """True if the row describes a generated item and does not come from an export."""
        return isinstance(self.row, exported_rows.DerivedRow) and self.was is None

    def bad(self, field: str, reason: str, value: str = "") -> BadRow:
        """Return a BadRow that rejects this draft after parsing."""
        return replace(self.row.bad(field, reason, value), key=self.key)

    def off_scale(self) -> Iterator[BadRow]:
        """A report for each missing answer of the imported final label."""
        for name, lacking in (self.decided.missing if self.decided else {}).items():
            yield self.bad(name, correct_answers.off_scale_in_words(lacking["said"]))


class _ItemFault(ValueError):
    def __init__(self, field: str, reason: str, value: str = "") -> None:
        super().__init__(reason)
        self.field, self.value = field, value


def parse_items(
    rows: Iterable[Row | BadRow],
    task: tasktypes.TaskType,
    known: Taxonomy | None = None,
    *,
    accept: bool = False,
) -> Iterator[ParsedItem | BadRow]:
    """Yield each row as a parsed item, or as a BadRow with the reason. Errors of the whole file are
    raised. `known` has the project's categories, by default those that ship.

    With `accept`, if the task type has no categories, a row also contains a final label, in columns
    named after the task's fields.
    """
    # A project may have no categories yet, which is not the same as having none of its own.
    categories = taxonomy.load_shipped() if known is None else known
    for row in exported_rows.restore_rows(rows, task):
        if isinstance(row, BadRow):
            yield row
            continue
        try:
            yield _parse_item(row, task, categories, accept=accept)
        except _ItemFault as fault:
            yield row.bad(fault.field, str(fault), fault.value)


def required_columns(task: tasktypes.TaskType) -> tuple[str, ...]:
    """The columns without which no row of a file can become an item.

    If the task type allows items that are only prompts, a list of prompts is enough: keys are
    derived from the texts.
    """
    key = () if task.awaits else ("key",)
    category = ("category",) if task.categories else ()
    return (*key, *category, *(text.name for text in task.texts if text.required))


def _parse_item(
    row: Row, task: tasktypes.TaskType, categories: Taxonomy, *, accept: bool
) -> ParsedItem:
    values = {name: value for name, value in row.values.items() if value is not None}
    # Without the taxonomy, a row may give any ability and any category.
    columns = COLUMNS if task.categories else (*COLUMNS, "ability")
    words = {name: _text(values, name).strip() for name in columns}
    texts = _texts(task, values)
    _check_storable(values)
    given = _taxonomy_fields if task.categories else _free_fields
    kind = given(words, task, categories)
    purpose = _short_value("purpose", words["purpose"]) or "test"
    known = _parse_correct_answer(task, purpose, values, words["repeats"])
    was = row if isinstance(row, exported_rows.ExportedRow) else None
    made = row if isinstance(row, exported_rows.DerivedRow) else None
    decided = (
        _parse_decided(task, values)
        if accept and not task.categories and not (known or was)
        else None
    )
    if (known or decided) and not task.is_ready(texts):
        raise _ItemFault(
            task.awaits, "is empty or missing; an item with a correct answer needs it."
        )
    apart = {*columns, *(text.name for text in task.texts)}
    apart |= {*correct_answers.answer_columns(task)} if known else set()
    # A value off the scale is not an answer. It stays unchanged in the item's fields.
    apart |= {one.name for one in task.fields} - decided.missing.keys() if decided else set()
    return ParsedItem(
        row=row,
        key=_key(words["key"] or _key_by_text(task, texts)),
        **kind,
        cluster=_cluster(words["cluster"]) if words["cluster"] else cluster_by_text(task, texts),
        origin=_short_value("origin", words["origin"]),
        purpose=purpose,
        repeats=words["repeats"],
        texts=texts,
        fields={name: value for name, value in values.items() if name not in apart},
        flags=exported_rows.row_flags(row, texts, task, kind["category"]),
        known=known,
        decided=decided,
        was=was,
        parent=made.parent if made else "",
        dose=made.dose if made else None,
        is_alone=task.rates and not words["cluster"],
    )


def _texts(task: tasktypes.TaskType, values: dict[str, Any]) -> dict[str, Any]:
    """Return the texts of the row: each as one text, or as a list if several are allowed."""
    found = {
        text.name: _text_list(values, text.name) if text.many else _text(values, text.name)
        for text in task.texts
    }
    for text in task.texts:
        if text.required and not _joined(found[text.name]).strip():
            raise _ItemFault(text.name, "is empty or missing; every item needs it.")
    if task.awaits and not _joined(found[task.awaits]):
        del found[task.awaits]  # a blank text has not been written yet
    return {name: said for name, said in found.items() if said}


def _text_list(values: dict[str, Any], name: str) -> list[str]:
    """Return a list of texts; a single text becomes a list with one element."""
    value = values.get(name, "")
    several = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str) for one in several):
        raise _ItemFault(name, "is neither a text nor a list of texts. Put each in quotes.")
    return [one for one in several if one.strip()]


def _joined(said: str | list[str]) -> str:
    return (said if isinstance(said, str) else "\n".join(said)).strip()


def _parse_correct_answer(
    task: tasktypes.TaskType, purpose: str, values: dict[str, Any], repeats: str
) -> correct_answers.CorrectAnswer | None:
    try:
        known = correct_answers.parse_row(task, purpose, values)
    except FieldError as error:
        raise _ItemFault(error.field, str(error)) from error
    if known and repeats:
        raise _ItemFault(
            "repeats",
            ("is only for items to label; an item with a correct answer cannot be a duplicate."),
        )
    return known


def _parse_decided(
    task: tasktypes.TaskType, values: dict[str, Any]
) -> correct_answers.CorrectAnswer:
    try:
        return correct_answers.parse_decided_row(task, values)
    except FieldError as error:
        raise _ItemFault(error.field, str(error)) from error


def _text(values: dict[str, Any], name: str) -> str:
    value = values.get(name, "")
    if not isinstance(value, str):
        raise _ItemFault(name, "is not text. Put it in quotes.")
    return value


def _key(key: str) -> str:
    if not key:
        raise _ItemFault("key", "is empty or missing; every item needs a unique one.")
    if len(key) > MAX_KEY_LENGTH:
        raise _ItemFault("key", f"is longer than {MAX_KEY_LENGTH} characters.")
    if not key.isprintable() and any(unicodedata.category(one)[0] == "C" for one in key):
        raise _ItemFault("key", "contains control characters. Remove them.")
    # Browsers remove such parts from a URL, so that no link to the item would work.
    if {".", ".."} & set(key.split("/")):
        raise _ItemFault(
            "key", "has a part between slashes that is only dots. Use letters or digits there."
        )
    return key


def _key_by_text(task: tasktypes.TaskType, texts: dict[str, Any]) -> str:
    """Return a key that depends only on the text, if items need no key; otherwise ""."""
    return f"{task.texts[0].name}-{cluster_by_text(task, texts)[:12]}" if task.awaits else ""


def _short_value(name: str, value: str) -> str:
    if len(value) > SHORT_LENGTH:
        raise _ItemFault(name, f"is longer than {SHORT_LENGTH} characters.")
    return value


def _taxonomy_fields(
    words: dict[str, str], task: tasktypes.TaskType, known: Taxonomy
) -> dict[str, str]:
    """Return the values that the taxonomy determines for the category of the row."""
    word = words["category"]
    category = known.find(known.category_called(word))
    if category is None:
        shown = as_printable(word[:MAX_CATEGORY_LENGTH])
        reason = f"“{shown}” is no category of the project."
        told = reason if word else "is empty; every item has one."
        raise _ItemFault("category", told, word if len(word) <= MAX_WORD_LENGTH else "")
    former = category.slug if category.merged_into else ""
    if former:
        category = known.category(category.merged_into)
    return {
        "category": category.slug,
        "retired": word if category.retired else "",
        "former": former,
        "ability": category.ability,
        "source_ability": _source_ability(
            known.ability_called(words["source_ability"]), category, known
        ),
        "effect": category.expected_effect,
    }


def _free_fields(
    words: dict[str, str], task: tasktypes.TaskType, known: Taxonomy
) -> dict[str, str]:
    """Return the values that the row itself gives, for a task type without categories of the
    taxonomy. A prompt's ability may be given by name: the items made from the prompt need it."""
    kind = {name: words[name] for name in ("category", "ability", "source_ability")}
    if task.awaits:
        kind["ability"] = known.ability_called(kind["ability"])
    for name, value in kind.items():
        if len(value) > MAX_CATEGORY_LENGTH or not value.isprintable():
            raise _ItemFault(name, f"must be one line of at most {MAX_CATEGORY_LENGTH} characters.")
    return {**kind, "effect": "", "retired": "", "former": ""}


def _source_ability(slug: str, category: taxonomy.Category, every: Taxonomy) -> str:
    """Return the ability of the unchanged answer: for an error item the item's ability, otherwise
    the one in the row."""
    known = [ability.slug for ability in every.sorts]
    slug = slug or (category.ability if category.ability in known else "")
    # Without axes, nothing depends on it.
    if not slug and not any(ability.axis for ability in every.abilities):
        return ""
    if slug not in known:
        raise _ItemFault(
            "source_ability",
            f"is {slug!r}; give the ability of the unchanged answer: {', '.join(known)}.",
        )
    return slug


def cluster_by_text(task: tasktypes.TaskType, texts: Mapping[str, Any]) -> str:
    """Return the cluster of all items with the same prompt; white space around prompts is
    ignored."""
    return _cluster(_joined(texts.get(task.texts[0].name, "")))


def _cluster(question: str) -> str:
    # Exports contain the digest, which must not be digested again.
    if len(question) == 64 and set(question) <= set("0123456789abcdef"):
        return question
    return hashlib.sha256(question.encode("utf-8")).hexdigest()


def _check_storable(values: dict[str, Any]) -> None:
    for name, value in values.items():
        told = (name, value) if isinstance(value, str) else _strings([name, value])
        if not all(map(_is_storable, told)):
            raise _ItemFault(
                ascii(name)[1:-1],
                "contains a character that cannot be saved (NUL or half a surrogate pair).",
            )


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def _is_storable(text: str) -> bool:
    try:
        _ = text.isascii() or text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return "\0" not in text
