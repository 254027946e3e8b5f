from time import monotonic
from typing import Any

from django.db.backends.postgresql import base

# A connection that worked so lately, in seconds, is taken to work still. Django asks at each
# request, which costs a call of the queue a tenth of its time.
LATELY = 5.0


class DatabaseWrapper(base.DatabaseWrapper):
    """A kept connection is asked whether it is alive when it was last asked some seconds ago."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._asked_at = -LATELY

    def close_if_health_check_failed(self) -> None:
        if self.connection is not None and monotonic() - self._asked_at < LATELY:
            return
        super().close_if_health_check_failed()
        self._asked_at = monotonic()
