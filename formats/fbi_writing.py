"""Items in the layout of study 000's archive: a zip of TSV files, one a category."""

import csv
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

from formats import fbi
from formats.sealed import ArchiveWriter

# What has another key than the archive's gets an id of its own, beyond those of the study.
FIRST_ID = 100_000
_STEMS = {source.category: stem for stem, source in fbi.FILES.items()}
_PREFIXES = {ability: prefix for prefix, ability in fbi.ABILITIES.items()}
_COLUMNS = {"question": "prompt", "og": "gold", "perturbed_gpt4": "perturbed"}


def write_archive(
    rows: Iterable[Mapping[str, Any]],
    sealing: ArchiveWriter,
    folder: Path,
    beside: Iterable[str] = (),
) -> int:
    """Write items to an archive that `fbi.read_rows` reads, by way of a folder; return their
    number.

    An item keeps its place and id if it came from such an archive. Texts are as they are, so no
    formula is defused. Columns `beside` those of the archive follow them. Raises ValueError for an
    item that the layout cannot hold, naming row and column.
    """
    names = tuple(beside)
    count = 0
    with ExitStack() as stack:
        streams: dict[str, TextIO] = {}
        for count, row in enumerate(rows, start=1):
            stem, cells = _file_and_cells(row, count)
            if stem not in streams:
                streams[stem] = stack.enter_context(_opened(folder / stem))
                _write(streams[stem], (*fbi.COLUMNS, *names))
            _write(streams[stem], (*cells, *(str(row[name]) for name in names)))
    for stem, source in fbi.FILES.items():
        if (folder / stem).exists():
            sealing.add(f"data/{source.folder}/{stem}.tsv", folder / stem)
    sealing.seal({})
    return count


def _file_and_cells(row: Mapping[str, Any], number: int) -> tuple[str, list[str]]:
    """The file of an item, and its cells in the order of the archive's columns."""
    for name in _COLUMNS.values():
        if not isinstance(row.get(name), str) or not row[name].strip():
            raise _row_error(number, name, "the layout needs one text here")
    place, _, cdx = str(row["key"]).partition(":")
    stem = place.rpartition("/")[2]
    source = fbi.FILES.get(stem)
    is_known = source is not None and place == f"{source.folder}/{stem}"
    if not (is_known and fbi.is_id(cdx)):
        stem, cdx = _STEMS.get(row["category"], ""), _new_id(row, number)
    if not stem or not cdx:
        raise _row_error(number, "category", f"the layout has no file for {row['category']!r}")
    return stem, [cdx, *(row[name] for name in _COLUMNS.values())]


def _new_id(row: Mapping[str, Any], number: int) -> str:
    prefix = _PREFIXES.get(row["source_ability"])
    made = f"_{row['origin']}" if row["origin"] == "relabelled" else ""
    return f"{prefix}-{FIRST_ID + number}{made}" if prefix else ""


def _row_error(number: int, column: str, reason: str) -> ValueError:
    return ValueError(f"row {number}, column '{column}' cannot be written: {reason}")


def _opened(path: Path) -> TextIO:
    return path.open("w", encoding="utf-8", newline="")


def _write(stream: TextIO, cells: Iterable[str]) -> None:
    csv.writer(stream, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_ALL).writerow(cells)
