"""Zip archives and folders as named streams, protected against malicious archives."""

import io
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO

import pyzipper

from formats.rows import FormatError, Limits

Opener = Callable[[], AbstractContextManager[BinaryIO]]

# Errors, besides OSError, that can occur when a damaged archive is read.
DAMAGED_ERRORS = (
    zipfile.BadZipFile,
    pyzipper.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
_ENCRYPTED = 1
_PLAIN_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@contextmanager
def open_archive(path: Path, limits: Limits, password: str = "") -> Iterator[dict[str, Opener]]:
    """Yield the files of a zip archive or folder: for each file its path in the archive, and a
    function to open it.

    Nothing is unpacked to disk. Files that desktop systems leave behind (`__MACOSX`, names that
    start with a dot) are left out. Encrypted members, with AES or the old zip cipher, are read with
    the password. Raises FormatError if the path is neither a zip archive nor a folder, for member
    paths that lead out of the archive, links, encryption without a password, damage and too many
    files. FormatError is also raised while members are read, as soon as more bytes have been
    unpacked than the limits allow, whatever sizes the archive's directory claims.
    """
    if path.is_dir():
        yield _files(path, limits)
    else:
        with _zip(path, locked=bool(password)) as archive:
            archive.setpassword(password.encode())
            yield _members(archive, path, limits, locked=not password)


def _is_ignored(name: str) -> bool:
    return any(part == "__MACOSX" or part.startswith(".") for part in PurePosixPath(name).parts)


def _files(folder: Path, limits: Limits) -> dict[str, Opener]:
    found: dict[str, Opener] = {}
    for base, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(base, name)
            inside = path.relative_to(folder).as_posix()
            if _is_ignored(inside):
                continue
            if path.is_symlink():
                raise FormatError(f"{folder}: {inside} is a link. Put the file itself there.")
            if path.is_file():
                found[inside] = partial(_open_file, path)
        _check_count(len(found), folder, limits)
    return found


def _open_file(path: Path) -> BinaryIO:
    return path.open("rb")


def _check_count(count: int, path: Path, limits: Limits) -> None:
    if count > limits.files:
        raise FormatError(f"{path}: contains more than {limits.files:,} files. Split it.")


def _zip(path: Path, *, locked: bool) -> Any:
    if not path.exists():
        raise FormatError(f"{path}: there is no such file or folder. Check the path.")
    if not path.is_file():
        raise FormatError(f"{path}: is neither a file nor a folder. Give a zip archive or folder.")
    if not path.stat().st_size:
        raise FormatError(f"{path}: the file is empty. Give a zip archive or a folder.")
    try:
        return pyzipper.AESZipFile(path) if locked else zipfile.ZipFile(path)
    except (*DAMAGED_ERRORS, OSError) as error:
        raise FormatError(
            f"{path}: is not a zip archive, or a damaged one ({error}). "
            "Give the archive as published, or the folder it unpacks to."
        ) from error


def _members(
    archive: zipfile.ZipFile, path: Path, limits: Limits, *, locked: bool
) -> dict[str, Opener]:
    budget = _Budget(path, limits)
    found: dict[str, Opener] = {}
    _check_count(len(archive.infolist()), path, limits)
    for info in archive.infolist():
        _check_member(info, path, locked=locked)
        if info.is_dir() or _is_ignored(info.filename):
            continue
        if info.filename in found:
            raise FormatError(f"{path}: contains {info.filename} twice. Pack it again.")
        found[info.filename] = partial(_open, archive, info, budget)
    return found


def _check_member(info: zipfile.ZipInfo, path: Path, *, locked: bool) -> None:
    name = info.orig_filename
    climbs = ".." in re.split(r"[/\\]", name) or re.match(r"[/\\]|[A-Za-z]:", name)
    if climbs or "\0" in name:
        raise FormatError(
            f"{path}: {name!r} lies outside the archive's folder. Pack the archive again without "
            "it."
        )
    if stat.S_ISLNK(info.external_attr >> 16):
        raise FormatError(f"{path}: {name} is a link. Pack the file itself.")
    if info.flag_bits & _ENCRYPTED and locked:
        raise FormatError(f"{path}: {name} is encrypted. Give its password (--password).")
    # Other compression methods unpack a whole block at once, however large the block is.
    if info.compress_type not in _PLAIN_METHODS:
        raise FormatError(f"{path}: {name} uses an unusual compression. Use an ordinary zip.")


class _Budget:
    """The number of bytes that an archive may still unpack to, over all its members."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self._path = path
        self._most = self._left = limits.most_unpacked(path.stat().st_size)

    def spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise FormatError(
                f"{self._path}: unpacks to more than {self._most:,} bytes, which is too much for a "
                "file of its size. Give it as a folder or split it."
            )


def _open(archive: zipfile.ZipFile, info: zipfile.ZipInfo, budget: _Budget) -> BinaryIO:
    place, encrypted = f"{archive.filename}, {info.filename}", bool(info.flag_bits & _ENCRYPTED)
    try:
        source = archive.open(info)
    except RuntimeError as error:
        if encrypted:
            raise FormatError(f"{place}: the password is wrong. Check it.") from error
        raise _damaged_error(place, error) from error
    except (*DAMAGED_ERRORS, OSError) as error:
        raise _damaged_error(place, error) from error
    return io.BufferedReader(_BudgetedReader(source, place, budget, encrypted=encrypted))


class _BudgetedReader(io.RawIOBase):
    """Reads the bytes of a member and subtracts their number from the budget."""

    def __init__(self, source: IO[bytes], place: str, budget: _Budget, *, encrypted: bool) -> None:
        self._source = source
        self._encrypted = encrypted
        self._place = place
        self._budget = budget

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._source.read(len(buffer))
        except (*DAMAGED_ERRORS, OSError) as error:
            raise _damaged_error(self._place, error, encrypted=self._encrypted) from error
        self._budget.spend(len(data))
        memoryview(buffer)[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._source.close()
        super().close()


def _damaged_error(place: str, error: Exception, *, encrypted: bool = False) -> FormatError:
    # One wrong password in 256 passes the check. Only the unpacked data then shows that the
    # password is wrong.
    doubt = "Check the password, or download" if encrypted else "Download"
    return FormatError(
        f"{place}: is damaged ({str(error) or 'cut short'}). {doubt} the archive or pack it again."
    )
