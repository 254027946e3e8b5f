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
