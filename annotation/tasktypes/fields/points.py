"""Numbers that are added to a total."""

from dataclasses import dataclass

from annotation.tasktypes.fields.scale import Scale


@dataclass(frozen=True, kw_only=True)
class Points(Scale):
    """A scale whose number is added to the total of the task."""

    kind = "points"
    asks_for = "a scale whose numbers are summed"
    default_level = "interval"
    is_summed = True
