import pytest

from stats.means import student


def test_the_interval_is_student_s() -> None:
    found = student([1.0, 2.0, 3.0, 4.0])
    # s = sqrt(5/3) = 1.290994; t of 3 degrees of freedom at 0.975 = 3.182446; / sqrt(4)
    assert (found.value, found.n, found.reason) == (2.5, 4, "")
    assert found.low == pytest.approx(2.5 - 3.182446 * 1.290994 / 2, abs=1e-5)
    assert found.high == pytest.approx(2.5 + 3.182446 * 1.290994 / 2, abs=1e-5)


def test_values_that_are_all_alike_leave_no_width() -> None:
    found = student([0.5] * 30)
    assert (found.value, found.low, found.high) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("values", "value", "reason"), [([], None, "no values"), ([3.0], 3.0, "one value")]
)
def test_too_few_values_have_no_interval(
    values: list[float], value: float | None, reason: str
) -> None:
    found = student(values)
    assert (found.value, found.low, found.high, found.reason) == (value, None, None, reason)
