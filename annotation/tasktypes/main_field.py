"""The deciding question of a project, as reports count it by SQL."""

from dataclasses import dataclass
from typing import Any

from django.db.models import F
from django.db.models.fields.json import KeyTextTransform

from annotation import tasktypes
from annotation.labelling.models.labels import ERROR_ITEM, SI_ITEM
from annotation.models import Project

WORD_KINDS = ("choice", "yesno")


@dataclass(frozen=True)
class MainField:
    """The answers that decide, as (value, title) in their order.

    `kept` are those with which an item stays in the final set, None if all do. `name` is the
    field of a scale, whose answer does not stand in a column of its own; else it is empty.
    `level` is the level of measurement.
    """

    options: tuple[tuple[str, str], ...]
    kept: frozenset[str] | None
    level: str
    name: str = ""

    def of_label(self, prefix: str = "") -> Any:
        """The deciding answer of a label, in SQL."""
        named = KeyTextTransform(self.name, f"{prefix}answers") if self.name else None
        return named or F(f"{prefix}choice")

    def of_resolution(self, prefix: str = "") -> Any:
        """What a resolution holds for it, in SQL."""
        named = KeyTextTransform(self.name, f"{prefix}values") if self.name else None
        return named or F(f"{prefix}value")

    def title(self, value: str) -> str:
        return dict(self.options).get(value, value)

    def drops(self, value: str) -> bool:
        return self.kept is not None and value not in self.kept


def load_main_field(project: Project) -> MainField:
    """What decides in the project's task type as it is now."""
    field = tasktypes.load_task_type(project).deciding
    options = tuple((str(option.value), option.title) for option in field.options)
    if field.kind == "points":
        return MainField((), None, "interval")  # a label's choice is its total
    if field.kind not in WORD_KINDS:
        return MainField(options, None, field.level, field.name)
    values = frozenset(value for value, _ in options)
    if ERROR_ITEM in values:
        # Runs take error items and score-invariant ones; what is neither leaves the set.
        return MainField(options, values & {ERROR_ITEM, SI_ITEM}, field.level)
    dropping = {str(option.value) for option in field.options if option.drops}
    return MainField(options, values - dropping if dropping else None, field.level)


def reason_fields(project: Project) -> tuple[tuple[str, dict[str, str]], ...]:
    """The choices that are asked for after a deciding answer, with the titles of their options."""
    task = tasktypes.load_task_type(project)
    return tuple(
        (field.name, {str(option.value): option.title for option in field.options})
        for field in task.fields
        if field.kind == "choice" and field.when and field.when.field == task.deciding.name
    )
