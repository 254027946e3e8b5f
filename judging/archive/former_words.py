"""Words that archives made before have for what is called otherwise today."""

from collections.abc import Mapping
from typing import Any

from annotation.labelling.models.slots import FORMER_STAGES
from judging.strategies.replies.causes import FORMER_CAUSES


def update_row(part: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row of a table of an archive, in today's words."""
    changed = update_figures(row)
    if part in {"slots", "labels"}:
        changed |= _update_stages(row)
    if part == "outcomes" and "values" in row:
        changed["values"] = _update_causes(row["values"])
    return changed


def update_figures(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of figures, in today's words."""
    return {**row, "cause": _update_causes(row["cause"])} if "cause" in row else dict(row)


def _update_stages(row: Mapping[str, Any]) -> dict[str, Any]:
    """The stage of a slot or a label, also in the key of the slot that a label fills."""
    changed: dict[str, Any] = {}
    if isinstance(row.get("stage"), str):
        changed["stage"] = FORMER_STAGES.get(row["stage"], row["stage"])
    match row.get("slot"):
        case [item, str(stage), number]:
            changed["slot"] = [item, FORMER_STAGES.get(stage, stage), number]
    return changed


def _update_causes(value: Any) -> Any:
    """The same JSON with today's causes, wherever it names one, as a value or as a key."""
    if isinstance(value, dict):
        return {FORMER_CAUSES.get(key, key): _update_causes(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_update_causes(one) for one in value]
    return FORMER_CAUSES.get(value, value) if isinstance(value, str) else value
