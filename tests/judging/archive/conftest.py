from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from judging.archive import reproduce
from tests import databases


@pytest.fixture(autouse=True)
def _tables_are_there_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Archives are loaded into a copy of the migrated template, since making all tables takes 5 s.

    That an empty database will do, tests/judging/test_api_archives.py sees.
    """

    @contextmanager
    def folder(prefix: str) -> Iterator[str]:
        with TemporaryDirectory(prefix=prefix) as made:
            databases.make_sqlite(Path(made) / "results.sqlite3")
            yield made

    monkeypatch.setattr(reproduce, "TemporaryDirectory", folder)
