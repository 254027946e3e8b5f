from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.processes import Processes


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Workers and servers in processes of their own, which end with the test."""
    found = Processes(tmp_path)
    yield found
    found.close()
