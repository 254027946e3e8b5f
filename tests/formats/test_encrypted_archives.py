"""Archives with digests: the same bytes for the same content, and nothing slips in unseen."""

import io
import json
import zipfile
from pathlib import Path

import pytest

from formats import sealed
from formats.rows import DEFAULT_LIMITS, FormatError, Limits


def packed(files: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    sealing = sealed.ArchiveWriter(stream)
    for name, text in files.items():
        sealing.put(name, text)
    sealing.seal({"format": "test"})
    return stream.getvalue()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "sealed.zip"
    path.write_bytes(packed({"data/a.jsonl": '{"n": 1}\n', "README.txt": "Grüße"}))
    return path


def repacked(path: Path, changed: dict[str, bytes | None]) -> None:
    """The archive with other content in some members; None takes one out."""
    with zipfile.ZipFile(path) as old:
        files = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, data in (files | changed).items():
            if data is not None:
                new.writestr(name, data)


def test_who_waits_for_an_archive_hears_of_each_file_and_of_the_parts_of_a_large_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sealed, "PROGRESS_BYTES", 10)
    heard: list[str] = []
    sealing = sealed.ArchiveWriter(io.BytesIO(), alive=lambda: heard.append("alive"))
    with sealing.member("rows.jsonl") as member:
        for _ in range(7):
            member.write("12345")
    sealing.put("README.txt", "Hello")
    # As the first begins, at 10, 20 and 30 of its 35 bytes, and as the second begins.
    assert len(heard) == 5


def test_what_was_sealed_is_given_back(archive: Path) -> None:
    with sealed.open_sealed(archive, DEFAULT_LIMITS) as (facts, members):
        assert facts["format"] == "test"
        # "Grüße" is 7 bytes of UTF-8.
        assert facts["files"]["README.txt"]["bytes"] == 7
        with members["data/a.jsonl"]() as stream:
            assert stream.read() == b'{"n": 1}\n'


def test_the_same_content_is_the_same_bytes() -> None:
    assert packed({"a": "1", "b": "2"}) == packed({"a": "1", "b": "2"})


def test_a_changed_byte_is_refused_with_the_name_of_the_file(archive: Path) -> None:
    repacked(archive, {"data/a.jsonl": b'{"n": 2}\n'})
    with (
        pytest.raises(FormatError, match=r"data/a\.jsonl was changed"),
        sealed.open_sealed(archive, DEFAULT_LIMITS),
    ):
        pass


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"README.txt": None}, "README.txt is missing"),
        ({"data/b.jsonl": b"{}"}, "'data/b.jsonl' was added"),
        ({"MANIFEST.json": None}, "contains no MANIFEST.json"),
        ({"MANIFEST.json": b"[" * 20_000}, "MANIFEST.json cannot be read"),
        ({"MANIFEST.json": b'{"files": {"README.txt": 1}}'}, "MANIFEST.json cannot be read"),
        ({"../outside": b""}, "lies outside the archive's folder"),
    ],
)
def test_an_archive_that_is_not_whole_is_refused(
    archive: Path, changed: dict[str, bytes | None], said: str
) -> None:
    repacked(archive, changed)
    with pytest.raises(FormatError) as refused, sealed.open_sealed(archive, DEFAULT_LIMITS):
        pass
    assert said in str(refused.value)


def test_an_archive_that_bursts_is_refused(archive: Path) -> None:
    facts = {"files": {"big": {"sha256": "0" * 64}}}
    bomb = {"big": b"0" * 3_000_000, "MANIFEST.json": json.dumps(facts).encode()}
    repacked(archive, {"README.txt": None, "data/a.jsonl": None, **bomb})
    with (
        pytest.raises(FormatError, match="unpacks to more than"),
        sealed.open_sealed(archive, Limits(ratio=50, small_bytes=0)),
    ):
        pass
