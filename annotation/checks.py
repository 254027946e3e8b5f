"""System checks of the taxonomy and task types, run by `manage.py check` and when servers start."""

from typing import Any

from django.core.checks import CheckMessage, Error, register

from annotation import tasktypes
from annotation.items import taxonomy
from annotation.tasktypes import validation
from annotation.tasktypes.toml_tables import describe_place


@register
def check_taxonomy(**kwargs: Any) -> list[CheckMessage]:
    """Check that the taxonomy can be loaded."""
    try:
        taxonomy.load_shipped()
    except (taxonomy.TaxonomyError, OSError) as error:
        return [
            Error(str(error), hint="Correct annotation/items/taxonomy.toml.", id="annotation.E001")
        ]
    return []


@register
def check_task_types(**kwargs: Any) -> list[CheckMessage]:
    """Check that every task type can be loaded and is consistent (see `validation`)."""
    try:
        definitions = tasktypes.load_definitions()
    except (ValueError, OSError) as error:
        return [Error(str(error), hint="Correct annotation/tasktypes/.", id="annotation.E002")]
    return [
        Error(problem, hint=f"Correct annotation/tasktypes/{slug}.toml.", id="annotation.E003")
        for slug, definition in definitions.items()
        for problem in find_problems(tasktypes.parse_definition(definition))
    ]


def find_problems(task: tasktypes.TaskType) -> list[str]:
    """Find the problems of a task type, as messages that start with its slug and the place."""
    return [
        f"{task.slug}: {describe_place(problem.place)}: {problem.text}"
        for problem in validation.find_problems(task)
    ]
