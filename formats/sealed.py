"""Zip archives with a list of digests: the same content is the same bytes, and a change is seen."""

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

from formats import archives
from formats.rows import FormatError, Limits

MANIFEST = "MANIFEST.json"
MANIFEST_BYTES = 4_000_000
AT_A_TIME = 1 << 20

# Before any clock, and as an ordinary file that everybody may read on a system with such rights.
_TIME = (1980, 1, 1, 0, 0, 0)
_UNIX, _READABLE = 3, 0o100644 << 16

Opener = Callable[[], AbstractContextManager[BinaryIO]]


class Member:
    """A file of an archive while it is written; its digest grows along."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        self.size = 0

    def write(self, text: str | bytes) -> int:
        data = text.encode() if isinstance(text, str) else text
        self._stream.write(data)
        self._digest.update(data)
        self.size += len(data)
        return len(text)

    def facts(self) -> dict[str, Any]:
        return {"sha256": self._digest.hexdigest(), "bytes": self.size}


class Sealing:
    """An archive while it is written: member after member, then `seal`. Nothing is held in memory.

    What depends on the clock or the machine never enters, so what is given decides every byte.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._zip = zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED)
        self._files: dict[str, dict[str, Any]] = {}

    @contextmanager
    def member(self, name: str) -> Iterator[Member]:
        """A file at this path, to write text (as UTF-8) or bytes to."""
        with self._zip.open(_info(name), "w", force_zip64=True) as stream:
            member = Member(stream)
            yield member
        self._files[name] = member.facts()

    def put(self, name: str, content: str | bytes) -> None:
        """A small file at once."""
        with self.member(name) as member:
            member.write(content)

    def seal(self, facts: Mapping[str, Any]) -> None:
        """End the archive with `MANIFEST.json`: these facts, and of each file digest and size."""
        told = {**facts, "files": dict(sorted(self._files.items()))}
        text = json.dumps(told, ensure_ascii=False, indent=1, sort_keys=True)
        self._zip.writestr(_info(MANIFEST), text.encode() + b"\n")
        self._zip.close()


@contextmanager
def opened(path: Path, limits: Limits) -> Iterator[tuple[dict[str, Any], dict[str, Opener]]]:
    """The facts and the files of a sealed archive, each of which is as it was when sealed.

    Raises FormatError as `archives.opened` does, and for a file that differs from its digest, is
    missing or is not listed: the message names it.
    """
    with archives.opened(path, limits) as members:
        facts = _facts(path, members)
        _check(path, facts["files"], members)
    # What was read to be checked counts towards the limits, so the rest begins anew.
    with archives.opened(path, limits) as members:
        yield facts, members


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _TIME)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system, info.external_attr = _UNIX, _READABLE
    return info


def _facts(path: Path, members: Mapping[str, Opener]) -> dict[str, Any]:
    if MANIFEST not in members:
        raise FormatError(f"{path}: holds no {MANIFEST}. Give an archive that this program made.")
    with members[MANIFEST]() as stream:
        text = stream.read(MANIFEST_BYTES + 1)
    try:
        facts = json.loads(text) if len(text) <= MANIFEST_BYTES else None
    except (ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict) or not _lists_files(facts.get("files")):
        raise FormatError(f"{path}: {MANIFEST} cannot be read. Fetch the archive again.")
    return facts


def _lists_files(files: Any) -> bool:
    return isinstance(files, dict) and all(
        isinstance(one, dict) and isinstance(one.get("sha256"), str) for one in files.values()
    )


def _check(path: Path, files: Mapping[str, Any], members: Mapping[str, Opener]) -> None:
    there = set(members) - {MANIFEST}
    if absent := sorted(files.keys() - there):
        raise FormatError(f"{path}: {absent[0]} is missing. Fetch the archive again.")
    if added := sorted(there - files.keys()):
        raise FormatError(f"{path}: {added[0]!r} was added after the archive was made.")
    for name, told in sorted(files.items()):
        if _digest(members[name]) != told["sha256"]:
            raise FormatError(
                f"{path}: {name} was changed after the archive was made. Fetch it again."
            )


def _digest(opener: Opener) -> str:
    digest = hashlib.sha256()
    with opener() as stream:
        while data := stream.read(AT_A_TIME):
            digest.update(data)
    return digest.hexdigest()
