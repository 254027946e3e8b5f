"""Passages of the item's texts, marked by selecting them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from annotation.tasktypes.fields import options
from annotation.tasktypes.fields.base import Field, Move, Option, Post
from annotation.tasktypes.fields.text import LONGEST_TEXT
from annotation.tasktypes.toml_tables import TomlTable

MOST_PASSAGES = 200
MOST_CHARACTERS = 200_000
"""Characters of all passages of an answer together. Each label keeps a copy of its passages, and
reports read those of all labels."""
LONGEST_IN_WORDS = 200
"""Characters of a quoted passage in a description; longer passages are cut."""

_PLACE = ("text", "alternative", "start", "end", "quote")
_KINDS = ("label", "severity")
# A browser shows a lone carriage return as a line feed.
_BROWSER_BREAKS = str.maketrans("\r", "\n")


@dataclass(frozen=True, kw_only=True)
class Span(Field):
    """Any number of passages of the item's texts. The options are the labels that a passage can
    have, `severities` how bad it can be; both may be empty.

    An answer is a list of passages in the order of their places:
    {"text": "response", "start": 4, "end": 9, "quote": "wrong", "label": ..., "severity": ...}.
    `start` and `end` count Unicode code points of the stored text, from 0, without the character at
    `end`. `alternative` (from 1) tells texts of the same name apart. `quote` has the exact
    characters. A passage has a label and a severity if the field declares some.
    """

    kind = "span"
    asks_for = (
        "passages of the texts, which annotators select; [[fields.choices]] are their labels and "
        "[[fields.severities]] how bad they are, both optional"
    )
    needed = False
    has_several = True
    marks_texts = True
    severities: tuple[Option, ...] = ()

    @classmethod
    def read_own(cls, table: TomlTable) -> dict[str, Any]:
        """Read labels and severities, whose values are words. Raises `DeclarationError`."""
        lists = {"options": "choices", "severities": "severities"}
        return {
            attribute: options.read_options(table, options.read_word, name)
            for attribute, name in lists.items()
            if table.tables(name)
        }

    @property
    def takes(self) -> str:
        return "mark a passage of the text."

    def clean(self, answer: object) -> list[dict[str, Any]]:
        """Return the passages in the order of their places, without duplicates. Whether the quotes
        stand in the texts is checked by `check_texts`. Raises `FieldError`."""
        if isinstance(answer, str) or not isinstance(answer, Sequence):
            raise self.error("give a list of passages with text, start, end and quote.")
        if len(answer) > MOST_PASSAGES:
            raise self.error(f"mark at most {MOST_PASSAGES} passages.")
        cleaned: list[dict[str, Any]] = []
        for one in answer:
            passage = self._clean_passage(one)
            if passage not in cleaned:
                cleaned.append(passage)
        if sum(len(passage["quote"]) for passage in cleaned) > MOST_CHARACTERS:
            raise self.error(f"mark at most {MOST_CHARACTERS:,} characters in all.")
        return sorted(cleaned, key=_order)

    def check_texts(self, answer: Any, texts: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the passages with the characters that the texts have there. Raises `FieldError` if
        a passage is not in the texts."""
        return [self._check_passage(passage, texts) for passage in answer]

    def carry(self, answer: Any, move: Move) -> Any:
        """Return the passages at their new places; None if one of them was corrected itself."""
        moved = []
        for one in _passages(answer):
            start = move(one["text"], one.get("alternative"), one["start"], one["end"])
            if start is None:
                return None
            moved.append({**one, "start": start, "end": start + one["end"] - one["start"]})
        return moved if isinstance(answer, list) else answer

    def from_post(self, post: Post) -> object:
        """Return the passages, which a form sends as JSON; None if there are none. What is not JSON
        is returned as it is, so that `clean` refuses it."""
        sent = post.get(self.name)
        try:
            return json.loads(sent) or None if sent else None
        except (ValueError, RecursionError):
            return str(sent)

    def answer_values(self, answer: Any) -> frozenset[str]:
        """Return the labels of the passages."""
        return frozenset(one["label"] for one in _passages(answer) if "label" in one)

    def describe(self, answer: Any) -> str:
        """Quote each passage, with its label and severity."""
        if not isinstance(answer, list):
            return str(answer)  # of an earlier version, in which the field had another kind
        return "; ".join(self._describe_passage(one) for one in _passages(answer))

    def _clean_passage(self, one: object) -> dict[str, Any]:
        if not isinstance(one, Mapping) or not {"text", "start", "end", "quote"} <= one.keys():
            raise self.error("a passage needs text, start, end and quote.")
        if unknown := [str(name) for name in one if name not in (*_PLACE, *_KINDS)]:
            known = ", ".join((*_PLACE, *_KINDS))
            raise self.error(f"a passage has no {unknown[0]!r}; use {known}.")
        text, quote, start, end = one["text"], one["quote"], one["start"], one["end"]
        alternative = one.get("alternative")
        if not isinstance(text, str) or not isinstance(quote, str):
            raise self.error("the text and the quote of a passage are text.")
        if not (_is_whole(start, 0) and _is_whole(end, 1) and start < end):
            raise self.error("a passage starts at 0 or later, and ends after its start.")
        if alternative is not None and not _is_whole(alternative, 1):
            raise self.error("the alternatives of a text are numbered from 1.")
        if end - start != len(quote):
            raise self.error(
                f"the quote has {len(quote)} characters, but from start to end there are "
                f"{end - start}. Count Unicode code points."
            )
        if not quote.strip():
            raise self.error("a passage needs more than white space.")
        if any("\ud800" <= sign <= "\udfff" or sign == "\0" for sign in text + quote):
            raise self.error("remove the character that cannot be saved (NUL or half of a pair).")
        place = {"text": text} | ({"alternative": alternative} if alternative else {})
        passage = place | {"start": start, "end": end, "quote": quote}
        for name, declared in zip(_KINDS, (self.options, self.severities), strict=True):
            passage |= self._clean_kind(name, declared, one.get(name), quote)
        return passage

    def _clean_kind(
        self, name: str, declared: tuple[Option, ...], given: object, quote: str
    ) -> dict[str, Any]:
        values = [option.value for option in declared]
        if given in (None, "") and not declared:
            return {}
        if given not in values:
            told = f"use one of {', '.join(map(str, values))}" if values else "leave it out"
            raise self.error(f"choose the {name} of {_quoted(quote)}: {told}.")
        return {name: given}

    def _check_passage(self, passage: dict[str, Any], texts: Mapping[str, Any]) -> dict[str, Any]:
        name, alternative = passage["text"], passage.get("alternative")
        text = texts.get(name)
        if isinstance(text, list):
            if alternative is None and len(text) > 1:
                raise self.error(f"{name!r} has {len(text)} alternatives; say which, from 1.")
            alternative = alternative or 1
            text = text[alternative - 1] if alternative <= len(text) else None
        elif alternative is not None:
            text = None
        if not isinstance(text, str):
            raise self.error(f"{name!r} is not a text here. Mark the passage again.")
        found = text[passage["start"] : passage["end"]]
        if found.translate(_BROWSER_BREAKS) != passage["quote"].translate(_BROWSER_BREAKS):
            raise self.error(
                f"{_quoted(passage['quote'])} is not at this place of the text. Mark it again."
            )
        numbered = {"alternative": alternative} if alternative else {}
        return {"text": name} | numbered | passage | {"quote": found}

    def _describe_passage(self, one: Mapping[str, Any]) -> str:
        titles = [
            next((option.title for option in declared if option.value == one.get(name)), one[name])
            for name, declared in zip(_KINDS, (self.options, self.severities), strict=True)
            if name in one
        ]
        return _quoted(str(one.get("quote"))) + (f" ({', '.join(titles)})" if titles else "")


def _passages(answer: Any) -> list[Mapping[str, Any]]:
    """The passages of a stored answer; [] if the field had another kind then."""
    return [one for one in answer if isinstance(one, Mapping)] if isinstance(answer, list) else []


def _order(passage: Mapping[str, Any]) -> tuple[Any, ...]:
    kinds = (str(passage.get(name, "")) for name in _KINDS)
    place = (passage["text"], passage.get("alternative", 0), passage["start"], passage["end"])
    return (*place, *kinds)


def _is_whole(value: object, low: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= LONGEST_TEXT


def _quoted(text: str) -> str:
    """Quote a passage on one line, cut to `LONGEST_IN_WORDS` characters."""
    line = " ".join(text.split())
    return f"“{line if len(line) <= LONGEST_IN_WORDS else line[: LONGEST_IN_WORDS - 1] + '…'}”"
