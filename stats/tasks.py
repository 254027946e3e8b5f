"""A seeded choice of tasks, spread evenly over low and high values of their figures."""

import random
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from statistics import median


def find_cells(tasks: Mapping[str, Sequence[float]]) -> dict[str, tuple[bool, ...]]:
    """For each task and figure, whether the figure is above its median over all tasks."""
    middles = [median(one) for one in zip(*tasks.values(), strict=True)]
    return {
        name: tuple(one > middle for one, middle in zip(figures, middles, strict=True))
        for name, figures in tasks.items()
    }


def draw_tasks(
    tasks: Mapping[str, Sequence[float]],
    number: int,
    seed: int,
    keep: Collection[str] = (),
    leave_out: Collection[str] = (),
) -> list[str]:
    """Draw `number` tasks: those of `keep` first, then each time one from the cell with the fewest
    drawn. Tasks of `leave_out` count for the medians. Raises ValueError if it cannot be done."""
    if unknown := sorted({*keep, *leave_out} - set(tasks)):
        raise ValueError(f"There are no tasks {', '.join(unknown)}.")
    if both := sorted(set(keep) & set(leave_out)):
        raise ValueError(f"{', '.join(both)}: kept and left out. Choose one of the two.")
    there = len(tasks) - len(set(leave_out))
    if not max(1, len(set(keep))) <= number <= there:
        least = max(1, len(set(keep)))
        raise ValueError(f"{number} tasks cannot be drawn. Choose from {least} to {there}.")
    cells, rng = find_cells(tasks), random.Random(seed)
    drawn = sorted(set(keep))
    free: dict[tuple[bool, ...], list[str]] = defaultdict(list)
    for name in sorted(set(tasks) - set(keep) - set(leave_out)):
        free[cells[name]].append(name)
    while len(drawn) < number:
        taken = {cell: sum(cells[one] == cell for one in drawn) for cell in free if free[cell]}
        fewest = min(taken.values())
        cell = rng.choice(sorted(one for one, n in taken.items() if n == fewest))
        drawn.append(free[cell].pop(rng.randrange(len(free[cell]))))
    return sorted(drawn)
