"""Replace words in older archives that have been renamed since the archives were created."""

from collections.abc import Mapping
from typing import Any

from annotation.items import taxonomy
from annotation.items.diffing.difference import FORMER_ALGORITHM
from annotation.labelling.models.slots import FORMER_STAGES
from judging.strategies.replies.causes import FORMER_CAUSES


def update_row(part: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of an archived data table with the current words."""
    changed = update_figures(row)
    if part in {"slots", "labels"}:
        changed |= _update_stages(row)
    if part == "outcomes" and "values" in row:
        changed["values"] = _update_causes(row["values"])
    if part == "project":
        changed.setdefault("taxonomy", taxonomy.shipped_digest())
    if part == "runs":
        changed.setdefault("diff_algorithm", FORMER_ALGORITHM)
    return changed


def update_figures(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of figures with the current words."""
    return {**row, "cause": _update_causes(row["cause"])} if "cause" in row else dict(row)


def _update_stages(row: Mapping[str, Any]) -> dict[str, Any]:
    """Update the stage of a slot or label, and the stage in the key of a label's slot."""
    changed: dict[str, Any] = {}
    if isinstance(row.get("stage"), str):
        changed["stage"] = FORMER_STAGES.get(row["stage"], row["stage"])
    match row.get("slot"):
        case [item, str(stage), number]:
            changed["slot"] = [item, FORMER_STAGES.get(stage, stage), number]
    return changed


def _update_causes(value: Any) -> Any:
    """Return the JSON value with the current names of causes, both as values and as keys."""
    if isinstance(value, dict):
        return {FORMER_CAUSES.get(key, key): _update_causes(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_update_causes(one) for one in value]
    return FORMER_CAUSES.get(value, value) if isinstance(value, str) else value
