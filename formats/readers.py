"""The formats that can be read, by name."""

from collections import deque
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import BinaryIO

from formats import batches, bundles, delimited, fbi, jsonlines, realmistake, unpacking
from formats.rows import DEFAULT_LIMITS, FormatError, Limits, Rows

# Rows often have several kilobytes. With the default buffer of 8 KB, reading from the file would
# take longer than parsing.
_BUFFER = 1 << 17
# Formats from which single rows can be extracted unchanged.
PICKABLE = ("csv", "tsv", "jsonl")


@dataclass(frozen=True)
class Format:
    """A format of rows that can be read. `stream` yields the rows of a path.

    `title` names the format and `suffixes` the ends of its file names, if it is known by them.
    `check` finds errors of a whole file faster than reading its rows does. If files may need a
    password, as `has_password` says, `stream` gets it as a third argument. A format with `content`,
    which says what is in its files, has columns of fixed meaning; `labels` are those with labels of
    people.
    """

    stream: Callable[..., Rows]
    title: str = ""
    suffixes: tuple[str, ...] = ()
    check: Callable[[Path, Limits], object] | None = None
    has_password: bool = False
    content: str = ""
    labels: tuple[str, ...] = ()

    @property
    def is_fixed(self) -> bool:
        """True if the columns have a fixed meaning, so that nobody chooses them."""
        return bool(self.content)

    def read(self, path: Path, limits: Limits = DEFAULT_LIMITS, password: str = "") -> Rows:
        """Yield the rows. Any FormatError is raised before the first row: with an error at the end
        of a file, the rows before it would already be imported.

        Raises FormatError also if a password is given and files of this format have none.
        """
        if self.check:
            self.check(path, limits)
        else:
            deque(self.preview(path, limits, password), maxlen=0)
        return self.preview(path, limits, password)

    def preview(self, path: Path, limits: Limits = DEFAULT_LIMITS, password: str = "") -> Rows:
        """Yield the rows without checking the whole file first, so that a FormatError may follow
        good rows."""
        if self.has_password:
            return self.stream(path, limits, password)
        if password:
            raise FormatError("Files of this format have no password. Leave --password out.")
        return self.stream(path, limits)


def pick_rows(
    form: str, path: Path, starts: Container[int], limits: Limits = DEFAULT_LIMITS
) -> Iterator[str]:
    """Return the rows that start at these lines, unchanged, after the header if there is one. For
    the formats in `PICKABLE`."""
    with _file(path) as stream:
        yield from bundles.pick_lines(stream, path.name, form, limits, starts)


def _read_folder(path: Path, limits: Limits, read: Callable[[Path, Limits], Rows]) -> Rows:
    """Read the rows of a file, or of all JSON Lines files of a folder, sorted by name."""
    if not path.is_dir():
        yield from read(path, limits)
        return
    found = sorted(one for one in path.iterdir() if one.suffix.lower() in {".jsonl", ".ndjson"})
    if not found:
        raise FormatError(f"{path}: contains no JSON Lines files (.jsonl). Check the path.")
    for one in found:
        yield from read(one, limits)


def _delimited(path: Path, limits: Limits, delimiter: str) -> Rows:
    with _file(path) as stream:
        yield from delimited.read_rows(stream, path.name, delimiter, limits)


def _check_jsonl(path: Path, limits: Limits) -> None:
    with _file(path) as stream:
        jsonlines.check_lines(stream, path.name, limits)


def _jsonl(path: Path, limits: Limits) -> Rows:
    with _file(path) as stream:
        yield from jsonlines.read_rows(stream, path.name, limits)


def _parquet(path: Path, limits: Limits) -> Rows:
    with _file(path):  # a missing file gets the same error as in other formats
        pass
    # Imported only when needed, since it takes as much memory as everything else here.
    from formats import parquet

    return parquet.read_rows(path, limits)


def _converted(path: Path, limits: Limits, kind: str) -> Rows:
    with _file(path):
        pass
    with TemporaryDirectory(prefix="blindspot-") as folder:
        made = Path(folder, f"rows{unpacking.CONVERTERS[kind][1]}")
        unpacking.unpack_whole(path, kind, made, limits, path.name)
        with _file(made) as stream:
            yield from bundles.read_lines(stream, path.name, find_format(made.name), limits)


def _batch(path: Path, limits: Limits) -> Rows:
    with _file(path) as stream:
        yield from batches.read_rows(stream, path.name, limits)


@contextmanager
def _file(path: Path) -> Iterator[BinaryIO]:
    if not path.is_file():
        fault = "is not a file" if path.exists() else "there is no such file"
        raise FormatError(f"{path}: {fault}. Check the path.")
    try:
        stream = path.open("rb", buffering=_BUFFER)
    except OSError as error:
        raise FormatError(f"{path}: cannot be opened ({error.strerror}).") from error
    with stream:
        yield stream


FORMATS: dict[str, Format] = {
    "csv": Format(partial(_delimited, delimiter=bundles.DELIMITERS["csv"]), "CSV", (".csv",)),
    "tsv": Format(partial(_delimited, delimiter=bundles.DELIMITERS["tsv"]), "TSV", (".tsv",)),
    "jsonl": Format(_jsonl, "JSON Lines", (".jsonl", ".ndjson"), check=_check_jsonl),
    "json": Format(partial(_converted, kind=".json"), "JSON", (".json",)),
    "xlsx": Format(partial(_converted, kind=".xlsx"), "Excel (XLSX)", (".xlsx",)),
    "parquet": Format(_parquet, "Parquet", (".parquet",)),
    "fbi": Format(fbi.read_rows, content="The archive of study 000 (FBI)"),
    "realmistake": Format(
        realmistake.read_items,
        content="Data of study 001 (ReaLMistake)",
        has_password=True,
        labels=realmistake.LABELS,
    ),
    "zip": Format(bundles.read_rows, "A zip of such tables", has_password=True),
}
# Formats of recorded replies, in one file or a folder of files;
# `judging.runs.recorded.transcripts` documents the values of a row.
REPLY_FORMATS: dict[str, Format] = {
    "jsonl": Format(partial(_read_folder, read=_jsonl)),
    "openai-batch": Format(partial(_read_folder, read=_batch)),
    "realmistake": Format(realmistake.read_outputs, has_password=True),
}


def list_suffixes() -> list[str]:
    """The suffixes of the files that can be read, with their dot."""
    return [suffix for one in FORMATS.values() for suffix in one.suffixes]


def list_titles() -> str:
    """The formats that are known by their suffix, in words."""
    *first, last = (one.title for one in FORMATS.values() if one.suffixes)
    return f"{', '.join(first)} or {last}"


def list_contents() -> list[tuple[str, str]]:
    """The formats whose columns have a fixed meaning, each with what is in its files."""
    return [(form, one.content) for form, one in FORMATS.items() if one.content]


def find_format(name: str) -> str:
    """The format that the suffix of a file name stands for; "" if the suffix is unknown."""
    suffix = PurePath(name).suffix.lower()
    return next((form for form, one in FORMATS.items() if suffix in one.suffixes), "")
