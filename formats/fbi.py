"""Read and write the archive of study 000 (AI4Bharat/FBI), which consists of TSV files, one per
category.

The archive is read from a zip or a folder. It is written as a zip.
"""

import csv
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any, TextIO

from formats import archives, delimited
from formats.rows import BadRow, FormatError, Limits, Row, Rows
from formats.sealed import ArchiveWriter


@dataclass(frozen=True, slots=True)
class FbiFile:
    """A file of the published archive: the folder that it is in, and its category."""

    folder: str
    category: str


# By file name without suffix, in the order of reading. The score-invariant file is first, since the
# next two files repeat some of its rows.
FILES: dict[str, FbiFile] = {
    "score_invariant": FbiFile("score-invariant", "score-invariant"),
    "formatting-errors": FbiFile("long-form", "formatting"),
    "superficial-errors": FbiFile("long-form", "superficial"),
    "coherence-errors": FbiFile("long-form", "coherence"),
    "comprehensiveness-errors": FbiFile("long-form", "comprehensiveness"),
    "consistency-errors": FbiFile("long-form", "consistency"),
    "grammar-errors": FbiFile("long-form", "grammar"),
    "seq-errors": FbiFile("long-form", "chronology"),
    "spelling-errors": FbiFile("long-form", "spelling"),
    "contextual-errors": FbiFile("factual", "contextual"),
    "entity-errors": FbiFile("factual", "entity"),
    "incorrect-fact": FbiFile("factual", "incorrect-fact"),
    "number-errors": FbiFile("factual", "number-errors"),
    "opposite-fact": FbiFile("factual", "opposite-fact"),
    "remove-fact": FbiFile("factual", "remove-fact"),
    "assumption-errors": FbiFile("instruction-following", "assumptions"),
    "do-less-errors": FbiFile("instruction-following", "do-less"),
    "do-more-errors": FbiFile("instruction-following", "do-more"),
    "ignore-format-errors": FbiFile("instruction-following", "ignore-format"),
    "incorrect-sequence-errors": FbiFile("instruction-following", "sequence-errors"),
    "calculation-errors": FbiFile("reasoning", "calculations"),
    "copying-numbers-errors": FbiFile("reasoning", "copying-numbers"),
    "final-answer-errors": FbiFile("reasoning", "final-errors"),
    "incorrect-units": FbiFile("reasoning", "incorrect-units"),
    "wrong-formula": FbiFile("reasoning", "wrong-formula"),
}

COLUMNS = ("cdx", "question", "og", "perturbed_gpt4")

ABILITIES = {
    "lf": "long-form",
    "factual": "factual",
    "reasoning": "reasoning",
    "if": "instruction-following",
}

_ID = re.compile(r"(lf|factual|reasoning|if)-[0-9]+(_.+)?")
_DUPLICATING = ("formatting", "superficial")
# In the files of these categories, a change should cost no points; in all others, it is an error.
SCORE_INVARIANT = "score-invariant"
INVARIANT = (SCORE_INVARIANT, *_DUPLICATING)


def read_rows(path: Path, limits: Limits) -> Rows:
    """Yield the items of the archive, score-invariant items first.

    Values: key (`folder/stem:cdx`, the same for zip and folder), category, source_ability (of the
    answer it was made from), origin (for score-invariant items `relabelled` by people or
    `paraphrase`, else `generated`), cluster (the trimmed question), prompt, gold, perturbed, and
    repeats: for a formatting or superficial row, the key of the score-invariant row that it
    repeats, else empty. Raises FormatError for TSV files that are not part of the study, and
    whatever `archives.open_archive` and `delimited.read_rows` raise.
    """
    with archives.open_archive(path, limits) as files:
        invariant: dict[bytes, str] = {}
        for stem, name in _sort_files(list(files), path):
            with files[name]() as stream:
                for row in delimited.read_rows(stream, name, "\t", limits, COLUMNS):
                    yield row if isinstance(row, BadRow) else _item(row, stem, invariant)


def repeats_in_file(key: str, original: str) -> bool:
    """True if an item with this key repeats the original as in the published archive, where both
    have the same id: only so does `read_rows` know it again."""
    stem = _STEMS[SCORE_INVARIANT]
    return original == f"{FILES[stem].folder}/{stem}:{key.partition(':')[2]}"


def is_id(text: str) -> bool:
    """True if the text has the form of an FBI item's id."""
    return _ID.fullmatch(text) is not None


def _sort_files(names: list[str], path: Path) -> Iterator[tuple[str, str]]:
    by_stem: dict[str, str] = {}
    for name in sorted(names):
        inside = PurePosixPath(name)
        if inside.suffix.lower() != ".tsv":
            continue
        if inside.stem not in FILES:
            raise FormatError(
                f"{path}: {name} is not a file of the study. Remove it; the known files are: "
                f"{', '.join(f'{stem}.tsv' for stem in sorted(FILES))}."
            )
        if inside.stem in by_stem:
            raise FormatError(f"{path}: contains {by_stem[inside.stem]} and {name}. Keep only one.")
        by_stem[inside.stem] = name
    if not by_stem:
        raise FormatError(f"{path}: contains no TSV files. Give the study's archive or its folder.")
    return ((stem, by_stem[stem]) for stem in FILES if stem in by_stem)


def _item(row: Row, stem: str, invariant: dict[bytes, str]) -> Row | BadRow:
    for column in COLUMNS:
        if not row.values[column].strip():
            return row.bad(column, "is empty")
    source, cdx = FILES[stem], row.values["cdx"].strip()
    parts = _ID.fullmatch(cdx)
    if parts is None:
        reason = (
            f"'{cdx[:80]}' is not an id of the study (lf, factual, reasoning or if, and a number)"
        )
        return row.bad("cdx", reason)
    key = f"{source.folder}/{stem}:{cdx}"
    values = {
        "key": key,
        "category": source.category,
        "source_ability": ABILITIES[parts[1]],
        "origin": _origin(source, named=parts[2] is not None),
        "cluster": row.values["question"].strip(),
        "prompt": row.values["question"],
        "gold": row.values["og"],
        "perturbed": row.values["perturbed_gpt4"],
        "repeats": _find_duplicate(row, source, key, invariant),
    }
    return Row(row.file, row.line, values, row.number)


def _origin(source: FbiFile, named: bool) -> str:
    if source.category != SCORE_INVARIANT:
        return "generated"
    return "relabelled" if named else "paraphrase"


def _find_duplicate(row: Row, source: FbiFile, key: str, invariant: dict[bytes, str]) -> str:
    """Remember the digest of a score-invariant row. For a row that repeats a score-invariant row,
    return the key of that row."""
    texts = "\0".join(row.values[column] for column in ("cdx", "og", "perturbed_gpt4"))
    digest = blake2b(texts.encode(), digest_size=16).digest()
    if source.category == SCORE_INVARIANT:
        invariant[digest] = key
    return invariant.get(digest, "") if source.category in _DUPLICATING else ""


# Items whose key is not from the archive get a new id, higher than all ids of the study. It is
# drawn from the key: numbers in order would be the ids of items from an earlier archive of ours.
FIRST_ID = 100_000
_STEMS = {source.category: stem for stem, source in FILES.items()}
_PREFIXES = {ability: prefix for prefix, ability in ABILITIES.items()}
_COLUMNS = {"question": "prompt", "og": "gold", "perturbed_gpt4": "perturbed"}


def can_hold(texts: Iterable[str], abilities: Iterable[str], categories: Iterable[str]) -> bool:
    """True if the layout has places for items with these texts, for any of the abilities, which are
    part of each id, and for any of the categories."""
    return (
        {*_COLUMNS.values()} <= {*texts}
        and not _PREFIXES.keys().isdisjoint(abilities)
        and not _STEMS.keys().isdisjoint(categories)
    )


def write_archive(
    rows: Iterable[Mapping[str, Any]],
    sealing: ArchiveWriter,
    folder: Path,
    beside: Iterable[str] = (),
) -> int:
    """Write items to an archive that `read_rows` can read, and return the number of items. The
    files are written to a folder first.

    An item that came from such an archive keeps its file and id, unless it was moved to the
    category of another file. Texts are written unchanged, so text that looks like a spreadsheet
    formula is not escaped. The columns `beside` are added after the archive's own columns. Raises
    ValueError for an item that does not fit the layout; the message names row and column.
    """
    names = tuple(beside)
    count, taken = 0, set[str]()
    with ExitStack() as stack:
        streams: dict[str, TextIO] = {}
        for count, row in enumerate(rows, start=1):
            stem, cells = _file_and_cells(row, count, taken)
            if stem not in streams:
                streams[stem] = stack.enter_context(_opened(folder / stem))
                _write(streams[stem], (*COLUMNS, *names))
            _write(streams[stem], (*cells, *(str(row[name]) for name in names)))
    for stem, source in FILES.items():
        if (folder / stem).exists():
            sealing.add(f"data/{source.folder}/{stem}.tsv", folder / stem)
    sealing.seal({})
    return count


def _file_and_cells(row: Mapping[str, Any], number: int, taken: set[str]) -> tuple[str, list[str]]:
    """Return the file of an item (without suffix), and its cells in the order of the archive's
    columns. `taken` are the keys of the items before, to which that of this item is added."""
    for name in _COLUMNS.values():
        if not isinstance(row.get(name), str) or not row[name].strip():
            raise _row_error(number, name, "the layout needs one text here")
    place, _, cdx = str(row["key"]).partition(":")
    stem = place.rpartition("/")[2]
    source = FILES.get(stem)
    is_known = source is not None and place == f"{source.folder}/{stem}"
    # An item that was moved to another category with a file belongs into that file.
    is_known = is_known and _STEMS.get(row["category"], stem) == stem
    if not (is_known and is_id(cdx)) or f"{stem}:{cdx}" in taken:
        stem = _STEMS.get(row["category"], "")
        free = (one for one in _new_ids(row) if f"{stem}:{one}" not in taken)
        cdx = next(free, "")
    taken.add(f"{stem}:{cdx}")
    if not stem or not cdx:
        raise _row_error(number, "category", f"the layout has no file for {row['category']!r}")
    return stem, [cdx, *(row[name] for name in _COLUMNS.values())]


def _new_ids(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield ids for an item, always the same ones; none if its ability is not in the study."""
    prefix = _PREFIXES.get(row["source_ability"])
    made = f"_{row['origin']}" if row["origin"] == "relabelled" else ""
    for draw in itertools.count() if prefix else ():
        drawn = blake2b(f"{draw} {row['key']}".encode(), digest_size=6).digest()
        yield f"{prefix}-{FIRST_ID + int.from_bytes(drawn)}{made}"


def _row_error(number: int, column: str, reason: str) -> ValueError:
    return ValueError(f"row {number}, column '{column}' cannot be written: {reason}")


def _opened(path: Path) -> TextIO:
    return path.open("w", encoding="utf-8", newline="")


def _write(stream: TextIO, cells: Iterable[str]) -> None:
    csv.writer(stream, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_ALL).writerow(cells)
