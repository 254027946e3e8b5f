"""Parquet: typed columns, read and written in batches of rows."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import IO, Any
from uuid import UUID

# This memory pool returns unused memory, while pyarrow's own pool keeps it. pyarrow reads the
# variable when it is loaded.
os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"

import pyarrow as pa
import pyarrow.parquet as pq

from formats.rows import BadRow, FormatError, Limits, Row, Rows, check_size

TEXT = "text"
# The Arrow type for each kind of column. Lists and objects are stored as JSON text: a file has one
# schema for all rows, and objects defined by users have none.
TYPES = {
    TEXT: pa.string(),
    "json": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "time": pa.timestamp("us", tz="UTC"),
}
# At most this many rows or characters are packed into a batch, to save memory. A row group has
# about GROUP_BYTES packed bytes. For each row group, 33 kB stay in memory until the file is closed.
BATCH_ROWS, BATCH_CHARACTERS = 100, 200_000
GROUP_BYTES = 4_000_000
READ_ROWS = 100
# The limits for the number of columns and for the nesting of their types.
MOST_COLUMNS, MOST_NESTING = 1_000, 10
_KIND = b"kind"

Kinds = Mapping[str, str]


def build_schema(columns: Sequence[str], kinds: Kinds) -> pa.Schema:
    """Return the schema of these columns. `kinds` gives the kind of a column in `TYPES`; the
    default is text."""
    named = [(name, kinds.get(name, TEXT)) for name in columns]
    return pa.schema([pa.field(name, TYPES[kind], metadata={_KIND: kind}) for name, kind in named])


def pack_batches(rows: Iterable[Mapping[str, Any]], shape: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Pack the rows in batches.

    Raises ValueError for a value that does not match the kind of its column; the message names row
    and column.
    """
    count = 0
    for part in split_rows(rows, BATCH_ROWS, BATCH_CHARACTERS):
        yield pack_batch(part, shape, count)
        count += len(part)


def pack_batch(part: Sequence[Mapping[str, Any]], shape: pa.Schema, before: int) -> pa.RecordBatch:
    """Pack one batch of rows; `before` is the number of rows in earlier batches."""
    kinds = [(field.name, field.metadata[_KIND].decode()) for field in shape]
    arrays = [_array(part, name, kind, before) for name, kind in kinds]
    return pa.record_batch(arrays, schema=shape)


def write_batches(found: Iterable[pa.RecordBatch], shape: pa.Schema, file: Path | IO[bytes]) -> int:
    """Write batches to a file; return the number of rows."""
    # No statistics for texts, since the smallest and largest text of each row group would stay in
    # memory.
    told = [field.name for field in shape if field.type != pa.string()]
    count, size, held = 0, 0, list[pa.RecordBatch]()
    with pq.ParquetWriter(file, shape, compression="zstd", write_statistics=told) as writer:
        for one in found:
            count += one.num_rows
            held.append(one)
            size += one.nbytes
            if size >= GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(held, shape))
                held, size = [], 0
        if held:
            writer.write_table(pa.Table.from_batches(held, shape))
    return count


def write_file(
    rows: Iterable[Mapping[str, Any]],
    columns: Sequence[str],
    file: Path | IO[bytes],
    kinds: Kinds,
) -> int:
    """Write the given columns of the rows to a file, and return the number of rows. Raises the same
    ValueError as `pack_batches`."""
    shape = build_schema(columns, kinds)
    return write_batches(pack_batches(rows, shape), shape, file)


def read_rows(path: Path, limits: Limits) -> Rows:
    """Yield each row; `line` is the number of the row, from 1. Columns that `write_file` stored as
    JSON are decoded, and times are ISO texts.

    Raises FormatError if the file is not Parquet, is damaged, or unpacks to more than the limits.
    """
    for line, values, told in _records(path, limits):
        yield _row(path.name, line, values, told, limits)


def convert(path: Path, limits: Limits, add_note: Callable[[str], object]) -> Iterator[str]:
    """Yield the rows as JSON Lines; there is nothing to note. NaN and infinite numbers are written
    as Python writes them.

    Raises FormatError as `read_rows` does, and for a column that JSON cannot represent.
    """
    for line, values, told in _records(path, limits):
        for name in told:
            with suppress(ValueError, RecursionError):
                values[name] = _decode(values[name])
        try:
            yield json.dumps(values, ensure_ascii=False, default=_json_default) + "\n"
        except (TypeError, ValueError, RecursionError) as error:
            raise FormatError(
                f"{path.name}, row {line}: {error}. Leave that column out."
            ) from error


def _records(path: Path, limits: Limits) -> Iterator[tuple[int, dict[str, Any], set[str]]]:
    """Yield each row with its number and with the names of the columns that contain JSON."""
    try:
        with pq.ParquetFile(path) as file:
            _check(file, path, limits)
            told = {each.name for each in file.schema_arrow if _is_json(each)}
            for line, values in enumerate(_values(file, path, limits), start=1):
                yield line, values, told
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError, MemoryError) as error:
        raise FormatError(
            f"{path.name}: cannot be read as Parquet ({str(error)[:200]}). Write the file again."
        ) from error


def split_rows(
    rows: Iterable[Mapping[str, Any]], most: int, characters: int
) -> Iterator[list[Mapping[str, Any]]]:
    """Split the rows into parts of at most `most` rows or about `characters` characters."""
    part: list[Mapping[str, Any]] = []
    size = 0
    for row in rows:
        part.append(row)
        size += _count_characters(row)
        if len(part) >= most or size >= characters:
            yield part
            part, size = [], 0
    if part:
        yield part


def _count_characters(value: Any) -> int:
    """Count the characters of the texts in a value, as deep as they are."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(_count_characters, value)) + sum(map(_count_characters, value.values()))
    return sum(map(_count_characters, value)) if isinstance(value, list | tuple) else 0


def _array(part: Sequence[Mapping[str, Any]], name: str, kind: str, before: int) -> pa.Array:
    values: list[Any] = []
    if kind == TEXT:
        found = [row.get(name) for row in part]
        # Most columns have only texts. For these, this path takes a third of the time.
        if {*map(type, found)} <= _TEXTS:
            with suppress(UnicodeEncodeError):
                return pa.array(found, TYPES[kind])
    try:
        for row in part:
            value = row.get(name)
            values.append(None if value is None else _cell(value, kind))
    except (ValueError, TypeError) as error:
        place = f"row {before + len(values) + 1}, column '{name}' cannot be written"
        raise ValueError(f"{place}: {error}") from error
    return pa.array(values, TYPES[kind])


def _cell(value: Any, kind: str) -> Any:
    if kind == "json" or (kind == TEXT and isinstance(value, list | dict | bool | int | float)):
        value = json.dumps(value, ensure_ascii=False, allow_nan=False)
    elif kind == TEXT and isinstance(value, date | UUID):
        value = value.isoformat() if isinstance(value, date) else str(value)
    elif kind == "float":
        value = _finite(float(value))
    fits = _is_whole(value) if kind == "int" else isinstance(value, _PYTHON_TYPES[kind])
    if not fits:
        raise TypeError(f"{type(value).__name__} in a column of kind {kind}")
    if isinstance(value, str):
        value.encode("utf-8")
    return value


_TEXTS = {str, type(None)}


def _is_whole(value: Any) -> bool:
    return type(value) is int and -(1 << 63) <= value < 1 << 63


_PYTHON_TYPES = {TEXT: str, "json": str, "float": float, "bool": bool, "time": datetime}


def _finite(number: float) -> float:
    if not isfinite(number):
        raise ValueError(f"{number} is not finite")
    return number


def _check(file: pq.ParquetFile, path: Path, limits: Limits) -> None:
    names = file.schema_arrow.names
    if len(names) > MOST_COLUMNS or any(
        _depth(each.type) > MOST_NESTING for each in file.schema_arrow
    ):
        raise FormatError(
            f"{path.name}: has too many columns, or they are nested too deeply. Select fewer "
            "columns."
        )
    if len(set(names)) < len(names):
        raise FormatError(f"{path.name}: two columns have the same name. Rename one.")
    if not file.metadata.num_rows:
        raise FormatError(f"{path.name}: has no rows. Give a file with rows.")


def _depth(kind: pa.DataType, most: int = MOST_NESTING) -> int:
    inner = [kind.field(number).type for number in range(kind.num_fields)] if most >= 0 else []
    return 1 + max((_depth(one, most - 1) for one in inner), default=-1)


def _is_json(field: pa.Field) -> bool:
    return bool((field.metadata or {}).get(_KIND) == b"json")


def _values(file: pq.ParquetFile, path: Path, limits: Limits) -> Iterator[dict[str, Any]]:
    # Counted as it is unpacked: a text of a dictionary is packed once, and unpacked for each row.
    most = limits.most_unpacked(path.stat().st_size)
    line = size = 0
    for batch in file.iter_batches(READ_ROWS):
        size += batch.nbytes
        if size > most:
            raise FormatError(
                f"{path.name}: unpacks to more than {most:,} bytes, which is too much for a file "
                "of its size. Split it, or save it as CSV."
            )
        if batch.nbytes > READ_ROWS * limits.row_bytes // 10:
            raise FormatError(f"{path.name}, row {line + 1}: rows are too long. Split them.")
        yield from batch.to_pylist()
        line += batch.num_rows


def _row(
    file: str, line: int, values: dict[str, Any], told: set[str], limits: Limits
) -> Row | BadRow:
    for name, value in values.items():
        if isinstance(value, str):
            check_size(value, limits, file, line, name)
        try:
            values[name] = _decode(value) if name in told else _plain(value)
        except (ValueError, TypeError, RecursionError) as error:
            return BadRow(file, line, name, f"cannot be stored: {error}")
    return Row(file, line, values)


def _decode(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def _json_default(value: Any) -> Any:
    """Convert a value that the JSON encoder cannot write."""
    return float(value) if isinstance(value, Decimal) else _plain(value)


def _plain(value: Any) -> Any:
    """Return the value in a form that JSON can represent."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float | Decimal):
        return _finite(float(value))
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    raise TypeError(f"{type(value).__name__} is not text, a number or a list")
