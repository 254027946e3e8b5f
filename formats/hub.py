"""Items as a zipped folder for the Hugging Face hub: Parquet files and a dataset card.

The split `test` has the items for testing, as figures count them: no duplicates, and none for
another purpose. No model should be trained on it. Items that repeat another one are the split
`repeats`, and items for another purpose a split named after it.
Each category has its own file in each split, and its own configuration. The first configuration
contains all categories.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from io import BufferedWriter
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from formats import parquet
from formats.dataset_card import (
    TEST,
    CardBuilder,
    Counts,
    FolderCounts,
    ItemSource,
    count_source,
    format_card,
    get_split,
)
from formats.sealed import ArchiveWriter

CARD_FILE = "README.md"
DEFAULT_CONFIG = "default"
# Categories beyond this number share one file, as do those whose name cannot be a file name.
MOST_FILES, OTHER_NAME = 100, "other"
# At most this many rows or characters are split by category at the same time.
ROWS, CHARACTERS = 2_000, 4_000_000
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")

Rows = Iterable[Mapping[str, Any]]


class DataFile(NamedTuple):
    """The file of a category in a split."""

    split: str
    name: str

    @property
    def path(self) -> str:
        """Its path in the folder; the files of the split `test` stand directly in `data`."""
        return f"{_folder(self.split)}/{self.name}.parquet"


def write_folder(
    rows: Rows,
    columns: Sequence[str],
    kinds: parquet.Kinds,
    card: CardBuilder,
    sealing: ArchiveWriter,
    folder: Path,
) -> int:
    """Write the given columns of the items, with a dataset card, and return the number of items.
    The files are written to a folder first.

    The rows have `ability`, `category`, `resolution`, `purpose` and `duplicate_of`, and may have
    `origin`, `fields`, `flags` and the `source` of the resolution. Raises the same ValueError as
    `parquet.write_file`.
    """
    counts, others, flagged, decided = Counts(), Counter[str](), Counter[str](), Counter[str]()
    sources = Counter[ItemSource]()
    shape = parquet.build_schema(columns, kinds)
    counted = _count_rows(rows, counts, others, sources, flagged, decided)
    files = _split_by_category(counted, shape, folder)
    digests = {one.path: _add(one.path, folder / one.path, shape, sealing) for one in files}
    held = FolderCounts(counts, others, digests, sources, flagged, decided)
    front, text = card(held)
    sealing.put(CARD_FILE, format_card({**front, **_front_matter(held, files)}, text))
    sealing.seal({"digest": held.digest})
    return held.items


def _folder(split: str) -> str:
    return "data" if split == TEST else f"data/{split}"


def _front_matter(held: FolderCounts, files: Sequence[DataFile]) -> dict[str, Any]:
    of_splits = {one.split: f"{_folder(one.split)}/*.parquet" for one in files}
    configs = {DEFAULT_CONFIG: of_splits}
    for one in files:
        configs.setdefault(one.name, {})[one.split] = one.path
    said = [
        {
            "config_name": name,
            **({"default": True} if name == DEFAULT_CONFIG else {}),
            "data_files": [{"split": split, "path": path} for split, path in paths.items()],
        }
        for name, paths in configs.items()
    ]
    return {"size_categories": [held.size], "configs": said}


def _split_by_category(rows: Rows, shape: pa.Schema, folder: Path) -> list[DataFile]:
    """Pack the rows into one file per split and category, and at least one file; return the files,
    those of the split `test` first.

    The files are Arrow streams, since Parquet would need the data of all categories in memory.
    """
    files: dict[DataFile, Any] = {}
    names: set[str] = set()
    with ExitStack() as stack:

        def file(key: DataFile) -> Any:
            if key not in files:
                (folder / key.path).parent.mkdir(parents=True, exist_ok=True)
                made = stack.enter_context(pa.OSFile(str(folder / key.path), "wb"))
                files[key] = stack.enter_context(pa.ipc.new_stream(made, shape))
                names.add(key.name)
            return files[key]

        count = 0
        for part in parquet.split_rows(rows, ROWS, CHARACTERS):
            taken: dict[DataFile, list[Mapping[str, Any]]] = {}
            for row in part:
                key = DataFile(get_split(row), _name(row, names))
                file(key)
                taken.setdefault(key, []).append(row)
            for key, some in taken.items():
                file(key).write_batch(parquet.pack_batch(some, shape, count))
            count += len(part)
        if not files:
            file(DataFile(TEST, OTHER_NAME))
    return sorted(files, key=lambda one: (one.split != TEST, one))


def _add(path: str, packed: Path, shape: pa.Schema, sealing: ArchiveWriter) -> str:
    """Write a packed stream to the archive as a Parquet file; return the digest of this file."""
    with (
        pa.OSFile(str(packed), "rb") as source,
        sealing.member(path) as member,
        BufferedWriter(member, parquet.GROUP_BYTES) as stream,
    ):
        parquet.write_batches(pa.ipc.open_stream(source), shape, stream)
    packed.unlink()
    return str(member.facts()["sha256"])


def _count_rows(
    rows: Rows,
    counts: Counts,
    others: Counter[str],
    sources: Counter[ItemSource],
    flagged: Counter[str],
    decided: Counter[str],
) -> Iterator[Mapping[str, Any]]:
    for row in rows:
        count_source(sources, row)
        flagged.update(row.get("flags") or ())
        counts[row["ability"], row["category"], row["resolution"] or ""] += 1
        if row["resolution"]:
            decided[row.get("source") or ""] += 1
        if (split := get_split(row)) != TEST:
            others[split] += 1
        yield row


def _name(row: Mapping[str, Any], there: Collection[str]) -> str:
    name = row["category"]
    fits = _NAME.fullmatch(name) and name != DEFAULT_CONFIG
    return name if name in there or (fits and len(there) < MOST_FILES) else OTHER_NAME
