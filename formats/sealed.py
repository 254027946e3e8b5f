"""Zip archives with a list of digests. The same content always gives the same bytes, and changes
are detected."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from io import RawIOBase
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

import pyzipper

from formats import archives
from formats.rows import FormatError, Limits

MANIFEST = "MANIFEST.json"
MANIFEST_BYTES = 4_000_000
AT_A_TIME = 1 << 20
# `alive` is called each time another this many bytes have been written to a file.
PROGRESS_BYTES = 1 << 24

# A fixed time that depends on no clock. On Unix, members are ordinary files that everybody can
# read.
_TIME = (1980, 1, 1, 0, 0, 0)
_UNIX, _READABLE = 3, 0o100644 << 16

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

Opener = Callable[[], AbstractContextManager[BinaryIO]]


class MemberWriter(RawIOBase):
    """A file of an archive that is being written. Its digest is computed during writing."""

    def __init__(self, stream: IO[bytes], alive: Callable[[], object] = bool) -> None:
        super().__init__()
        self._stream, self._alive = stream, alive
        self._digest = hashlib.sha256()
        self.size = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        """Return the number of bytes written so far."""
        return self.size

    def write(self, text: str | ReadableBuffer, /) -> int:
        """Write bytes, or text as UTF-8, and return the length of the argument. Calls `alive` each
        time another `PROGRESS_BYTES` have been written."""
        data = text.encode() if isinstance(text, str) else bytes(text)
        self._stream.write(data)
        self._digest.update(data)
        before, self.size = self.size, self.size + len(data)
        if before // PROGRESS_BYTES < self.size // PROGRESS_BYTES:
            self._alive()
        return len(text) if isinstance(text, str) else len(data)

    def facts(self) -> dict[str, Any]:
        """Return the SHA-256 and the size of what has been written so far, in the form of the
        manifest."""
        return {"sha256": self._digest.hexdigest(), "bytes": self.size}


class ArchiveWriter:
    """An archive that is being written. Add members one by one, then call `seal`.

    No content is kept in memory. Nothing that depends on the clock or the machine is written, so
    the content alone determines every byte. An exception is an archive with a password, since
    encryption never gives the same bytes twice. `alive` is called for each file, and repeatedly
    while a large file is written.
    """

    def __init__(
        self, stream: BinaryIO, password: str = "", alive: Callable[[], object] = bool
    ) -> None:
        self._zip = _open_encrypted(stream, password) if password else _open(stream)
        self._info = _encrypted_info if password else _info
        self._files: dict[str, dict[str, Any]] = {}
        self._alive = alive

    @contextmanager
    def member(self, name: str) -> Iterator[MemberWriter]:
        """Open a file at this path for writing bytes, or text that is stored as UTF-8."""
        self._alive()
        with self._zip.open(self._info(name), "w", force_zip64=True) as stream:
            member = MemberWriter(stream, self._alive)
            yield member
        self._files[name] = member.facts()

    def put(self, name: str, content: str | bytes) -> None:
        """Write the whole content of a small file."""
        with self.member(name) as member:
            member.write(content)

    def add(self, name: str, path: Path) -> str:
        """Copy a file from disk into the archive, and return the digest of the file."""
        with self.member(name) as member, path.open("rb") as part:
            while data := part.read(AT_A_TIME):
                member.write(data)
        return str(self._files[name]["sha256"])

    def seal(self, facts: Mapping[str, Any]) -> None:
        """Finish the archive with `MANIFEST.json`, which has these facts and the digest and size of
        each file."""
        told = {**facts, "files": dict(sorted(self._files.items()))}
        text = json.dumps(told, ensure_ascii=False, indent=1, sort_keys=True)
        with self._zip.open(self._info(MANIFEST), "w") as stream:
            stream.write(text.encode() + b"\n")
        self._zip.close()

    def close(self) -> None:
        """Close the archive, even if an error prevented sealing it."""
        self._zip.close()


@contextmanager
def open_sealed(path: Path, limits: Limits) -> Iterator[tuple[dict[str, Any], dict[str, Opener]]]:
    """Return the facts and the files of a sealed archive, after checking that no file was changed.

    Raises FormatError as `archives.open_archive` does, and for a file that does not match its
    digest, is missing or is not listed. The message names the file.
    """
    with archives.open_archive(path, limits) as members:
        facts = _facts(path, members)
        _check(path, facts["files"], members)
    # The bytes read for the check count towards the limits, so the archive is opened again.
    with archives.open_archive(path, limits) as members:
        yield facts, members


def _open(stream: BinaryIO) -> Any:
    return zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED)


def _open_encrypted(stream: BinaryIO, password: str) -> Any:
    """Open an archive with AES-256 encryption, which WinZip and 7-Zip can read. Names and sizes of
    files are not encrypted."""
    archive = pyzipper.AESZipFile(
        stream, "w", compression=zipfile.ZIP_DEFLATED, encryption=pyzipper.WZ_AES
    )
    archive.setpassword(password.encode())
    return archive


def _info(name: str) -> Any:
    return _set_fixed_fields(zipfile.ZipInfo(name, _TIME))


def _encrypted_info(name: str) -> Any:
    return _set_fixed_fields(pyzipper.zipfile_aes.AESZipInfo(name, _TIME))


def _set_fixed_fields(info: Any) -> Any:
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system, info.external_attr = _UNIX, _READABLE
    return info


def _facts(path: Path, members: Mapping[str, Opener]) -> dict[str, Any]:
    if MANIFEST not in members:
        raise FormatError(
            f"{path}: contains no {MANIFEST}. Give an archive that this program made."
        )
    with members[MANIFEST]() as stream:
        text = stream.read(MANIFEST_BYTES + 1)
    try:
        facts = json.loads(text) if len(text) <= MANIFEST_BYTES else None
    except (ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict) or not _lists_files(facts.get("files")):
        raise FormatError(f"{path}: {MANIFEST} cannot be read. Download the archive again.")
    return facts


def _lists_files(files: Any) -> bool:
    return isinstance(files, dict) and all(
        isinstance(one, dict) and isinstance(one.get("sha256"), str) for one in files.values()
    )


def _check(path: Path, files: Mapping[str, Any], members: Mapping[str, Opener]) -> None:
    there = set(members) - {MANIFEST}
    if absent := sorted(files.keys() - there):
        raise FormatError(f"{path}: {absent[0]} is missing. Download the archive again.")
    if added := sorted(there - files.keys()):
        raise FormatError(f"{path}: {added[0]!r} was added after the archive was made.")
    for name, told in sorted(files.items()):
        if _digest(members[name]) != told["sha256"]:
            raise FormatError(
                f"{path}: {name} was changed after the archive was made. Download it again."
            )


def _digest(opener: Opener) -> str:
    digest = hashlib.sha256()
    with opener() as stream:
        while data := stream.read(AT_A_TIME):
            digest.update(data)
    return digest.hexdigest()
