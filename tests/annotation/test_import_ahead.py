"""Rows from a process of their own are the same, in their order, and so is what is raised."""

import multiprocessing
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from annotation import importing, tasktypes
from annotation.importing.item_rows import ParsedItem
from formats.rows import BadRow, FormatError, Row
from tests.builders import TEXTS

TASK = tasktypes.parse_definition(tasktypes.load_definitions()["perturbation-vetting"])


def rows(count: int, **texts: str) -> Iterator[Row | BadRow]:
    for number in range(count):
        values = {"key": f"k{number}", "category": "entity", "weight": number, **TEXTS, **texts}
        yield Row("f", number, values if number % 7 else values | {"key": ""})


def drafts(count: int, **texts: str) -> Iterator[ParsedItem | BadRow]:
    return importing.parse_items(rows(count, **texts), TASK)


def facts(draft: ParsedItem | BadRow) -> Any:
    if isinstance(draft, BadRow):
        return draft
    kept = (draft.key, draft.written, draft.digest, draft.fields, draft.flags, draft.row.line)
    return (*kept, draft.bad("key", "why"))


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a program; the tests of browsers before these leave threads behind."""
    monkeypatch.setattr(threading, "active_count", lambda: 1)


@pytest.mark.parametrize("texts", [{}, {"gold": TEXTS["perturbed"]}, {"gold": "Ü你\u202e\n" * 900}])
def test_they_are_what_they_would_be_without(texts: dict[str, str]) -> None:
    found = [*map(facts, importing.read_in_subprocess(drafts(1_000, **texts)))]
    assert found == [*map(facts, drafts(1_000, **texts))]
    assert multiprocessing.active_children() == []


def test_texts_that_no_pipe_holds_come_through() -> None:
    found = [
        facts(draft) for draft in importing.read_in_subprocess(drafts(12, gold="long " * 600_000))
    ]
    assert found == [*map(facts, drafts(12, gold="long " * 600_000))]


def test_they_bring_no_more_than_is_stored() -> None:
    *_, last = importing.read_in_subprocess(drafts(9))
    assert isinstance(last, ParsedItem)
    names = dict.fromkeys(("prompt", "gold", "perturbed"), "")
    assert (last.texts, last.row.values, last.key) == (names, {}, "k8")


def test_what_is_raised_there_is_raised_here() -> None:
    def faulty() -> Iterator[Row | BadRow]:
        yield from rows(60)
        raise FormatError("f, line 61: damaged")

    found = []
    with pytest.raises(FormatError, match="line 61: damaged"):
        found.extend(importing.read_in_subprocess(importing.parse_items(faulty(), TASK)))
    assert len(found) == 50
    assert multiprocessing.active_children() == []


def test_whoever_reads_no_further_ends_the_other_process() -> None:
    begun = importing.read_in_subprocess(drafts(1_000_000))
    assert next(begun)
    begun.close()
    assert multiprocessing.active_children() == []


def test_beside_threads_they_come_from_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    *_, last = importing.read_in_subprocess(drafts(9))
    assert isinstance(last, ParsedItem)
    assert last.texts == TEXTS
