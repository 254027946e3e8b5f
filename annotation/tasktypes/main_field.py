"""The deciding field of a project, with the SQL expressions that reports use to count its
answers."""

from dataclasses import dataclass
from typing import Any

from django.db.models import F
from django.db.models.fields.json import KeyTextTransform

from annotation import tasktypes
from annotation.labelling.models.labels import ERROR_ITEM, SI_ITEM
from annotation.models import Project
from annotation.tasktypes import fields, versions


@dataclass(frozen=True)
class MainField:
    """The options of the deciding field as (value, title), in their order.

    `kept` are the values that keep an item in the final set, former ones included; None if all
    values do. `name` is the name of a scale field, since its answer has no column of its own;
    otherwise it is "". `level` is the level of measurement.
    """

    options: tuple[tuple[str, str], ...]
    kept: frozenset[str] | None
    level: str
    name: str = ""

    def of_label(self, prefix: str = "") -> Any:
        """Return the deciding answer of a label, as SQL."""
        named = KeyTextTransform(self.name, f"{prefix}answers") if self.name else None
        return named or F(f"{prefix}choice")

    def of_resolution(self, prefix: str = "") -> Any:
        """Return the deciding answer of a resolution, as SQL."""
        named = KeyTextTransform(self.name, f"{prefix}values") if self.name else None
        return named or F(f"{prefix}value")

    def title(self, value: str) -> str:
        """Return the title of an answer; the answer itself if it is not an option."""
        return dict(self.options).get(value, value)

    def drops(self, value: str) -> bool:
        """True if this final label removes an item from the final set."""
        return self.kept is not None and value not in self.kept


def load_main_field(project: Project) -> MainField:
    """Return the deciding field of the project's current task type."""
    field = tasktypes.load_task_type(project).deciding
    options = tuple((str(option.value), option.title) for option in field.options)
    if field.is_summed:
        return MainField((), None, "interval")  # the choice of a label is its total
    if not field.is_word:
        return MainField(options, None, field.level, field.name)
    given = versions.load_options(project)
    values = frozenset(given)
    if ERROR_ITEM in values:
        # Runs use error items and score-invariant items; all other items leave the final set.
        return MainField(options, values & {ERROR_ITEM, SI_ITEM}, field.level)
    dropping = {value for value, option in given.items() if option.drops}
    return MainField(options, values - dropping if dropping else None, field.level)


def reason_fields(project: Project) -> tuple[tuple[str, dict[str, str]], ...]:
    """Return the choice fields that depend on the deciding answer: their names, each with its
    option titles by value."""
    task = tasktypes.load_task_type(project)
    after = [one for one in task.fields if one.when and one.when.field == task.deciding.name]
    return tuple(
        (field.name, {str(option.value): option.title for option in field.options})
        for field in after
        if isinstance(field, fields.Choice)
    )
