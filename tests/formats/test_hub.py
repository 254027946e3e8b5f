"""Items as a folder for the Hugging Face hub."""

import hashlib
import io
import re
import zipfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from formats import dataset_card, hub
from formats.dataset_card import Counts, FolderCounts, ItemSource
from formats.writers import PackingOptions, write_file

COLUMNS = ("key", "category", "resolution", "n")
SEEN: list[FolderCounts] = []


def row(key: str, category: str = "spelling", **values: Any) -> dict[str, Any]:
    kinds = {"ability": "long-form", "category": category, "resolution": "valid"}
    return {"key": key, **kinds, "purpose": "test", "duplicate_of": None, "n": 1, **values}


def card(told: FolderCounts) -> tuple[Mapping[str, Any], str]:
    SEEN.append(told)
    return {"pretty_name": "x\n---\nlicense: mit"}, "# x"


def folder(path: Path, *rows: dict[str, Any]) -> dict[str, bytes]:
    packed = PackingOptions(card=card)
    assert write_file("hub", rows, COLUMNS, path / "a.zip", {"n": "int"}, packed) == len(rows)
    assert [one.name for one in path.iterdir()] == ["a.zip"]
    with zipfile.ZipFile(path / "a.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def front(files: dict[str, bytes]) -> dict[str, Any]:
    _, head, _ = re.split("^---$", files["README.md"].decode(), maxsplit=2, flags=re.MULTILINE)
    found: dict[str, Any] = yaml.safe_load(head)
    return found


def keys(file: bytes) -> list[str]:
    return [one["key"] for one in pq.read_table(io.BytesIO(file)).to_pylist()]


def test_each_category_is_a_file_and_a_configuration(tmp_path: Path) -> None:
    files = folder(tmp_path, row("a"), row("b", "entity"), row("c"))
    assert keys(files["data/spelling.parquet"]) == ["a", "c"]
    assert keys(files["data/entity.parquet"]) == ["b"]
    first, *others = front(files)["configs"]
    everything = [{"split": "test", "path": "data/*.parquet"}]
    assert first == {"config_name": "default", "default": True, "data_files": everything}
    assert [one["config_name"] for one in others] == ["entity", "spelling"]
    assert others[0]["data_files"] == [{"split": "test", "path": "data/entity.parquet"}]


@pytest.mark.parametrize("name", ["../up", "default", "other", "A b", "", "x" * 81, "."])
def test_a_category_that_names_no_file_is_among_the_rest(tmp_path: Path, name: str) -> None:
    files = folder(tmp_path, row("a", name), row("b"))
    assert keys(files["data/other.parquet"]) == ["a"]
    assert set(files) == {
        *("README.md", "MANIFEST.json", "data/other.parquet", "data/spelling.parquet")
    }


def test_of_very_many_categories_the_last_are_in_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "MOST_FILES", 2)
    files = folder(tmp_path, *(row(key, f"c{key}") for key in "1234"), row("5", "c1"))
    assert keys(files["data/other.parquet"]) == ["3", "4"]
    assert keys(files["data/c1.parquet"]) == ["1", "5"]


def test_the_card_is_told_what_was_written(tmp_path: Path) -> None:
    repeated, learnt = row("b", duplicate_of="a"), row("c", purpose="practice", resolution=None)
    files = folder(tmp_path, row("a"), repeated, learnt)
    told = SEEN[-1]
    assert told.counts == {
        ("long-form", "spelling", "valid"): 2, ("long-form", "spelling", ""): 1
    }  # fmt: skip
    assert told.others == {"repeats": 1, "practice": 1}
    names = ["practice/spelling", "repeats/spelling", "spelling"]
    digests = {name: hashlib.sha256(files[f"data/{name}.parquet"]).hexdigest() for name in names}
    # What `sha256sum` prints of all files under `data`.
    printed = "".join(f"{digest}  data/{name}.parquet\n" for name, digest in digests.items())
    assert told.digest == hashlib.sha256(printed.encode()).hexdigest()


def test_what_figures_do_not_count_is_in_splits_of_its_own(tmp_path: Path) -> None:
    repeated, learnt = row("b", duplicate_of="a"), row("c", "entity", purpose="control")
    files = folder(tmp_path, row("a"), repeated, learnt)
    assert keys(files["data/spelling.parquet"]) == ["a"]
    assert keys(files["data/repeats/spelling.parquet"]) == ["b"]
    assert keys(files["data/control/entity.parquet"]) == ["c"]
    whole, *others = front(files)["configs"]
    paths = {one["split"]: one["path"] for one in whole["data_files"]}
    assert paths == {
        "test": "data/*.parquet",
        "control": "data/control/*.parquet",
        "repeats": "data/repeats/*.parquet",
    }
    assert {one["config_name"]: one["data_files"] for one in others} == {
        "spelling": [
            {"split": "test", "path": "data/spelling.parquet"},
            {"split": "repeats", "path": "data/repeats/spelling.parquet"},
        ],
        "entity": [{"split": "control", "path": "data/control/entity.parquet"}],
    }


def test_the_card_is_told_where_items_come_from(tmp_path: Path) -> None:
    told = {"generator": "g v1", "model": "m", "gold_generator": "h v2", "gold_model": "n"}
    perturbed = {"perturber": "spelling", "model": "of something else"}
    folder(
        tmp_path,
        row("a"),
        row("b", origin="generated", fields=told),
        row("c", origin="perturber", fields=perturbed),
        row("d", origin="fbi", fields={"generator": 7}),
    )
    assert SEEN[-1].sources == {
        ItemSource(): 1,
        ItemSource("generated", "g v1", "m", "h v2, n"): 1,
        ItemSource("perturber", "spelling"): 1,
        ItemSource("fbi", "7"): 1,
    }
    assert [one.is_written for one in SEEN[-1].sources] == [False, True, False, False]


def test_of_very_many_sources_the_last_are_counted_as_one() -> None:
    sources = Counter[ItemSource]()
    for number in range(dataset_card.MOST_SOURCES + 3):
        dataset_card.count_source(
            sources, row("a", fields={"generator": "g", "model": f"m{number}"})
        )
    assert len(sources) == dataset_card.MOST_SOURCES + 1
    assert sources[dataset_card.OTHER_SOURCES] == 3
    long = dataset_card.get_source(row("a", origin="o" * 1000))
    assert len(long.origin) == dataset_card.LONGEST_NAME


def test_a_name_adds_nothing_to_the_front(tmp_path: Path) -> None:
    said = front(folder(tmp_path, row("a")))
    assert said["pretty_name"] == "x --- license: mit"
    assert set(said) == {"pretty_name", "size_categories", "configs"}


def test_a_folder_without_items_can_still_be_loaded(tmp_path: Path) -> None:
    files = folder(tmp_path)
    assert pq.read_schema(io.BytesIO(files["data/other.parquet"])).names == list(COLUMNS)


@pytest.mark.parametrize(
    "items, size", [(0, "n<1K"), (999, "n<1K"), (1_000, "1K<n<10K"), (1_000_000, "1M<n<10M")]
)
def test_sizes_are_told_in_the_words_of_the_hub(items: int, size: str) -> None:
    assert FolderCounts(Counts({("a", "b", "c"): items}), Counts(), {}).size == size


def test_a_row_that_cannot_be_written_leaves_no_parts(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="column 'n'"):
        folder(tmp_path, row("a"), row("b", n="three"))
    assert {one.name for one in tmp_path.iterdir()} == {"a.zip"}
