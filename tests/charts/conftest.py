"""What tests of charts draw fits the schema of Vega-Lite."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def _checked(charts_fit_their_schema: None) -> None:
    pass
