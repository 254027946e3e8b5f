"""The choice of tasks is even over the cells, repeatable, and keeps or leaves out named tasks."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy import stats as scipy_stats

from stats import means, tasks

# 119 tasks over all eight cells of mean, SD and length.
TASKS = {
    f"t{number:03}": tuple(high + number / 1000 for high in cell)
    for number, cell in zip(range(119), list(product((0, 1), repeat=3)) * 15, strict=False)
}


def test_20_of_119_tasks_are_drawn_evenly_over_eight_cells() -> None:
    drawn, cells = tasks.draw_tasks(TASKS, 20, 3), tasks.find_cells(TASKS)
    counts = Counter(cells[one] for one in drawn)
    assert (len(set(drawn)), len(counts), {*counts.values()}) == (20, 8, {2, 3})
    assert drawn == tasks.draw_tasks(TASKS, 20, 3) != tasks.draw_tasks(TASKS, 20, 4)


def test_named_tasks_are_kept_or_left_out() -> None:
    first = tasks.draw_tasks(TASKS, 20, 3)
    left = [one for one in first if one != "t001"]
    drawn = tasks.draw_tasks(TASKS, 20, 3, keep=["t001"], leave_out=left)
    assert "t001" in drawn
    assert not set(left) & set(drawn)


@pytest.mark.parametrize(
    ("number", "keep", "leave_out", "said"),
    [
        (120, [], [], "from 1 to 119"),
        (1, ["t001", "t002"], [], "from 2"),
        (2, ["x"], [], "no tasks x"),
        (2, ["t001"], ["t001"], "kept and left out"),
    ],
)
def test_an_impossible_draw_says_why(
    number: int, keep: list[str], leave_out: list[str], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        tasks.draw_tasks(TASKS, number, 1, keep, leave_out)


def test_a_standard_deviation_is_of_the_values_that_are_there() -> None:
    values = [0.1, 0.5, float("nan"), 0.9, 1.0]
    expected = scipy_stats.tstd([0.1, 0.5, 0.9, 1.0])
    assert means.clustered_sd(values).point().value == pytest.approx(expected)
    assert means.clustered_sd([1.0]).point().reason == "one value"
    assert means.clustered_sd(np.full(3, 0.1)).point().value == 0
