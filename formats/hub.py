"""Items as a zipped folder for the Hugging Face hub: Parquet files and a dataset card.

There is one split, `test`, since the items are for testing and no model should be trained on them.
Each category has its own file and its own configuration. The first configuration contains all
categories, so that loading the folder gives every item; loading a category gives only its items.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from io import BufferedWriter
from pathlib import Path
from typing import Any

import pyarrow as pa

from formats import parquet
from formats.dataset_card import (
    DUPLICATES,
    TEST,
    CardBuilder,
    Counts,
    FolderCounts,
    ItemSource,
    count_source,
    format_card,
)
from formats.sealed import ArchiveWriter

CARD_FILE = "README.md"
DEFAULT_CONFIG, SPLIT = "default", "test"
# Categories beyond this number share one file, as do those whose name cannot be a file name.
MOST_FILES, OTHER_NAME = 100, "other"
# At most this many rows or characters are split by category at the same time.
ROWS, CHARACTERS = 2_000, 4_000_000
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")

Rows = Iterable[Mapping[str, Any]]


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
    names = _split_by_category(counted, shape, folder)
    paths = {name: f"data/{name}.parquet" for name in names}
    digests = {path: _add(path, folder / name, shape, sealing) for name, path in paths.items()}
    held = FolderCounts(counts, others, digests, sources, flagged, decided)
    front, text = card(held)
    sealing.put(CARD_FILE, format_card({**front, **_front_matter(held, names)}, text))
    sealing.seal({"digest": held.digest})
    return held.items


def _front_matter(held: FolderCounts, names: Sequence[str]) -> dict[str, Any]:
    paths = {DEFAULT_CONFIG: "data/*.parquet", **{name: f"data/{name}.parquet" for name in names}}
    configs = [
        {
            "config_name": name,
            **({"default": True} if name == DEFAULT_CONFIG else {}),
            "data_files": [{"split": SPLIT, "path": path}],
        }
        for name, path in paths.items()
    ]
    return {"size_categories": [held.size], "configs": configs}


def _split_by_category(rows: Rows, shape: pa.Schema, folder: Path) -> list[str]:
    """Pack the rows into one file per category, and at least one file; return the names of the
    files.

    The files are Arrow streams, since Parquet would need the data of all categories in memory.
    """
    files: dict[str, Any] = {}
    with ExitStack() as stack:

        def file(name: str) -> Any:
            if name not in files:
                made = stack.enter_context(pa.OSFile(str(folder / name), "wb"))
                files[name] = stack.enter_context(pa.ipc.new_stream(made, shape))
            return files[name]

        count = 0
        for part in parquet.split_rows(rows, ROWS, CHARACTERS):
            taken: dict[str, list[Mapping[str, Any]]] = {}
            for row in part:
                name = _name(row, files)
                file(name)
                taken.setdefault(name, []).append(row)
            for name, some in taken.items():
                file(name).write_batch(parquet.pack_batch(some, shape, count))
            count += len(part)
        if not files:
            file(OTHER_NAME)
    return sorted(files)


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
        if row["duplicate_of"]:
            others[DUPLICATES] += 1
        elif row["purpose"] != TEST:
            others[row["purpose"]] += 1
        yield row


def _name(row: Mapping[str, Any], there: Mapping[str, Any]) -> str:
    name = row["category"]
    fits = _NAME.fullmatch(name) and name != DEFAULT_CONFIG
    return name if name in there or (fits and len(there) < MOST_FILES) else OTHER_NAME
