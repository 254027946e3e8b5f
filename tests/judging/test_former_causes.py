"""The cause `rate_limited` was called `rate-limited`: what was written then is still read."""

import json
from io import BytesIO

from judging.archive import comparison

BEFORE, NOW = "rate-limited", "rate_limited"


def test_figures_of_an_archive_from_then_are_compared_in_the_words_of_today() -> None:
    then = {"columns": ["run", "cause"], "rows": [{"run": 1, "cause": BEFORE}, {"run": 2}]}
    read = comparison._read_table(
        "figures/missing.json", lambda: BytesIO(json.dumps(then).encode())
    )
    assert read["rows"] == [{"run": 1, "cause": NOW}, {"run": 2}]
