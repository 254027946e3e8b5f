"""How often a kept connection to PostgreSQL is asked whether it is alive."""

import pytest

from config.postgresql import base


class Wrapper(base.DatabaseWrapper):
    """One whose connection is anything, and whose questions are counted."""

    asked = 0

    def __init__(self) -> None:
        self.connection, self._asked_at = object(), -base.LATELY
        self.health_check_enabled, self.health_check_done = True, False
        self.settings_dict, self.alias = {"OPTIONS": {}}, "default"

    def is_usable(self) -> bool:
        self.asked += 1
        return True


def test_a_connection_is_asked_again_only_after_some_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter([100.0, 100.0, 100.0 + base.LATELY / 2, 100.0 + base.LATELY, 100.0 + base.LATELY])
    monkeypatch.setattr(base, "monotonic", lambda: next(clock))
    kept = Wrapper()
    counted = []
    for _ in range(3):
        kept.health_check_done = False  # as at the start of each request
        kept.close_if_health_check_failed()
        counted.append(kept.asked)
    assert counted == [1, 1, 2]
