"""Strategies for tests, complete with the metrics of a task type."""

from annotation import tasktypes
from judging.strategies import Strategy, criteria, with_metrics

# frame -> a shipped task type whose metrics fit it
TASKS = {"rating": "rating", "rubric": "rubric-scoring"}


def task_type(slug: str) -> tasktypes.TaskType:
    return tasktypes.parse_definition(tasktypes.load_definitions()[slug])


def complete(strategy: Strategy) -> Strategy:
    """The strategy with the metrics of a task type that fits, if it takes them from there."""
    if not strategy.metrics_from:
        return strategy
    task = task_type(TASKS[strategy.frame])
    return with_metrics(strategy, criteria.build_task_metrics(task), decides=task.deciding.name)
