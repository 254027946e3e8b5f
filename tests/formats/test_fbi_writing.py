"""Items in the layout of study 000's archive, as our own reader reads it."""

import re
from pathlib import Path
from typing import Any

import pytest

from formats.readers import FORMATS
from formats.rows import Row
from formats.writers import write_file
from tests.hostile import CORPUS

# The ids of items that do not come from the archive.
ID = re.compile(r"-[0-9]{6,}")
READ = ("key", "category", "source_ability", "origin", "prompt", "gold", "perturbed")


def item(key: str = "factual/number-errors:factual-7_x", **values: Any) -> dict[str, Any]:
    usual = {"category": "number-errors", "source_ability": "factual", "origin": "generated"}
    texts = {"prompt": "Why?", "gold": "A", "perturbed": "B"}
    return {"key": key, **usual, **texts, **values}


def there_and_back(rows: list[dict[str, Any]], path: Path) -> list[dict[str, Any]]:
    assert write_file("fbi", rows, READ, path, {}) == len(rows)
    return [row.values for row in FORMATS["fbi"].read(path) if isinstance(row, Row)]


def test_hostile_texts_come_back_under_the_archive_s_own_keys(tmp_path: Path) -> None:
    texts = [*CORPUS.values(), "=1", "a\rb", "a\r\nb\tc", '"', " x "]
    rows = [
        item(f"factual/number-errors:factual-{number}_x", prompt=text, gold=text, perturbed=text)
        for number, text in enumerate(texts)
    ]
    rows.append(
        item("long-form/seq-errors:lf-3", category="chronology", source_ability="long-form")
    )
    found = there_and_back(rows, tmp_path / "a.zip")
    by_key = {row["key"]: {name: row[name] for name in READ} for row in found}
    assert by_key == {row["key"]: row for row in rows}


def test_items_from_elsewhere_get_an_id_in_the_file_of_their_category(tmp_path: Path) -> None:
    invariant = {"category": "score-invariant", "source_ability": "reasoning"}
    rows = [item("mine"), item("factual/number-errors:no-id"),
            item("c", **invariant, origin="relabelled"), item("d", **invariant)]  # fmt: skip
    found = there_and_back(rows, tmp_path / "a.zip")
    assert [(ID.sub("-N", row["key"]), row["origin"]) for row in found] == [
        ("score-invariant/score_invariant:reasoning-N_relabelled", "relabelled"),
        ("score-invariant/score_invariant:reasoning-N", "paraphrase"),
        ("factual/number-errors:factual-N", "generated"),
        ("factual/number-errors:factual-N", "generated"),
    ]
    # And these ids are never those of other items, whatever is written with them.
    more = [*found, item("other"), *rows]
    keys = [row["key"] for row in there_and_back(more, tmp_path / "b.zip")]
    assert len({*keys}) == len(more)


def test_an_item_that_was_moved_to_another_category_is_in_the_file_of_that(tmp_path: Path) -> None:
    [found] = there_and_back([item(category="opposite-fact")], tmp_path / "a.zip")
    assert ID.sub("-N", found["key"]) == "factual/opposite-fact:factual-N"
    assert found["category"] == "opposite-fact"


def test_the_same_items_are_the_same_bytes(tmp_path: Path) -> None:
    for name in "ab":
        there_and_back([item()], tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.parametrize(
    "values, column",
    [({"gold": ["a", "b"]}, "gold"), ({"perturbed": " "}, "perturbed"), ({"gold": None}, "gold"),
     ({"key": "k", "category": "own"}, "category"),
     ({"key": "k", "source_ability": ""}, "category")],
)  # fmt: skip
def test_what_the_layout_cannot_hold_is_named(
    tmp_path: Path, values: dict[str, Any], column: str
) -> None:
    with pytest.raises(ValueError, match=f"row 2, column '{column}' cannot be written"):
        there_and_back([item(), {**item(), **values}], tmp_path / "a")
    assert {one.name for one in tmp_path.iterdir()} <= {"a"}


def test_the_published_archive_comes_back(shared_data: Path, tmp_path: Path) -> None:
    archive = shared_data / "fbi" / "data.zip"
    rows = [row.values for row in FORMATS["fbi"].read(archive) if isinstance(row, Row)]
    assert len(rows) == 2492
    assert there_and_back(rows, tmp_path / "a.zip") == rows
