import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from judging import asking
from tests.services.scripted_evaluator import ScriptedEvaluator, running


@pytest.fixture
def evaluator(settings: Any) -> Iterator[ScriptedEvaluator]:
    """A scripted evaluator that endpoints may name; its script can be replaced at any time."""
    settings.EVALUATOR_HOSTS = ["127.0.0.1"]
    asking.STOP.clear()
    with running() as evaluator:
        yield evaluator
    asking.STOP.clear()


@pytest.fixture(autouse=True)
def limits_of_its_own(settings: Any) -> None:
    """What one test's evaluator made Redis learn is not what the next one meets."""
    settings.REDIS_PREFIX = f"test:{secrets.token_hex(6)}"
