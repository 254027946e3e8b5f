"""The chart of a canary as data."""

from datetime import UTC, datetime

from charts.drift import CanaryRun, draw_drift

LATER = CanaryRun("Run 7", datetime(2026, 11, 2, 8, 0, tzinfo=UTC), 0.25, 0.1, 0.5, 20)


def test_every_asking_is_drawn_with_its_figures() -> None:
    spec = draw_drift([LATER])
    assert spec["data"]["values"] == [
        {
            "run": "Run 7",
            "asked": "2026-11-02T08:00:00+00:00",
            "share": 0.25,
            "low": 0.1,
            "high": 0.5,
            "n": 20,
        }
    ]


def test_a_share_is_drawn_between_none_and_all() -> None:
    for layer in draw_drift([LATER])["layer"]:
        assert layer["encoding"]["y"]["scale"]["domain"] == [0, 1]


def test_an_interval_that_is_not_defined_is_left_out() -> None:
    interval, _ = draw_drift([LATER])["layer"]
    assert interval["transform"] == [{"filter": "isValid(datum.low)"}]
