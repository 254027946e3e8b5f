"""The archive of study 000 (AI4Bharat/FBI): a zip or folder of TSV files, one a category."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path, PurePosixPath

from formats import archives, delimited
from formats.rows import BadRow, FormatError, Limits, Row, Rows


@dataclass(frozen=True, slots=True)
class FbiFile:
    """Where a file of the archive belongs: the folder it is published in, and its category."""

    folder: str
    category: str


# By file name without its ending. Read in this order: score-invariant first, since the two files
# after it repeat rows of it.
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


def read_rows(path: Path, limits: Limits) -> Rows:
    """Yield the archive's items, score-invariant ones first.

    Values: key (`folder/stem:cdx`, the same for zip and folder), category, source_ability (of the
    answer it was made from), origin (`relabelled` by people or `paraphrase` where score-invariant,
    else `generated`), cluster (the trimmed question), prompt, gold, perturbed, and repeats: the
    key of the score-invariant row that a formatting or superficial row says again, else empty.
    Raises FormatError on TSV files that the study does not have, besides what
    `archives.open_archive` and `delimited.read_rows` refuse.
    """
    with archives.open_archive(path, limits) as files:
        invariant: dict[bytes, str] = {}
        for stem, name in _sort_files(list(files), path):
            with files[name]() as stream:
                for row in delimited.read_rows(stream, name, "\t", limits, COLUMNS):
                    yield row if isinstance(row, BadRow) else _item(row, stem, invariant)


def is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def _sort_files(names: list[str], path: Path) -> Iterator[tuple[str, str]]:
    by_stem: dict[str, str] = {}
    for name in sorted(names):
        inside = PurePosixPath(name)
        if inside.suffix.lower() != ".tsv":
            continue
        if inside.stem not in FILES:
            raise FormatError(
                f"{path}: {name} is no file of the study. Take it out; known are: "
                f"{', '.join(f'{stem}.tsv' for stem in sorted(FILES))}."
            )
        if inside.stem in by_stem:
            raise FormatError(
                f"{path}: holds {by_stem[inside.stem]} and {name}. Keep one of the two."
            )
        by_stem[inside.stem] = name
    if not by_stem:
        raise FormatError(f"{path}: holds no TSV files. Give the study's archive or its folder.")
    return ((stem, by_stem[stem]) for stem in FILES if stem in by_stem)


def _item(row: Row, stem: str, invariant: dict[bytes, str]) -> Row | BadRow:
    for column in COLUMNS:
        if not row.values[column].strip():
            return BadRow(row.file, row.line, column, "is empty")
    source, cdx = FILES[stem], row.values["cdx"].strip()
    parts = _ID.fullmatch(cdx)
    if parts is None:
        reason = f"'{cdx[:80]}' is no id of the study (lf, factual, reasoning or if, and a number)"
        return BadRow(row.file, row.line, "cdx", reason)
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
    return Row(row.file, row.line, values)


def _origin(source: FbiFile, named: bool) -> str:
    if source.category != "score-invariant":
        return "generated"
    return "relabelled" if named else "paraphrase"


def _find_duplicate(row: Row, source: FbiFile, key: str, invariant: dict[bytes, str]) -> str:
    """Remember a score-invariant row, or find it again; digests, so that texts are not kept."""
    texts = "\0".join(row.values[column] for column in ("cdx", "og", "perturbed_gpt4"))
    digest = blake2b(texts.encode(), digest_size=16).digest()
    if source.category == "score-invariant":
        invariant[digest] = key
    return invariant.get(digest, "") if source.category in _DUPLICATING else ""
