"""docs/security.md names a test for each promise, and each of them is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", TEXT)))


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_test_that_the_document_names_is_there(file: str, name: str) -> None:
    assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")


def test_every_promise_names_a_test() -> None:
    met = TEXT.partition("## What is met")[2].partition("## What is left")[0]
    rows = [line for line in met.splitlines() if re.match(r"\| \d", line)]
    assert len(rows) > 20
    assert [row for row in rows if "`tests/" not in row] == []
