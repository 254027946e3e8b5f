"""How many files are converted at a time."""

import fcntl
from contextlib import ExitStack
from pathlib import Path

import pytest

from formats import unpacking
from formats.rows import DEFAULT_LIMITS, FormatError


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(unpacking, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(unpacking, "TIME_LIMIT", 1)
    path = tmp_path / "items.json"
    path.write_text('[{"key": "a"}]')
    return path


def test_who_comes_while_two_files_are_converted_waits_and_is_told(
    listed: Path, tmp_path: Path
) -> None:
    def unpack() -> str:
        unpacking.unpack(listed, ".json", tmp_path / "rows.jsonl", DEFAULT_LIMITS)
        return (tmp_path / "rows.jsonl").read_text()

    with ExitStack() as others:
        for number in range(unpacking.MOST_AT_ONCE):
            assert unpack() == '{"key": "a"}\n'
            held = others.enter_context((tmp_path / f"unpacking-{number}.lock").open("a"))
            fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(FormatError, match=r"items.json: other large files are being read"):
            unpack()
    assert unpack() == '{"key": "a"}\n'
