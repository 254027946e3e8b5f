"""Replace words in older archives that have been renamed since the archives were created."""

from collections.abc import Mapping
from typing import Any

from annotation.items import taxonomy
from annotation.items.diffing.difference import FORMER_ALGORITHM
from annotation.labelling.models.slots import FORMER_STAGES
from judging.strategies.replies.causes import FORMER_CAUSES

# Columns of tables that had another name, by table: the former one and today's.
FORMER_COLUMNS = {"scores": {"low": "below_top2"}}


def update_row(part: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of an archived data table with the current words."""
    changed = dict(row)
    if "cause" in row:
        changed["cause"] = _update_causes(row["cause"])
    if part in {"slots", "labels"}:
        changed |= _update_stages(row)
    if part == "outcomes" and "values" in row:
        changed["values"] = _update_causes(row["values"])
    if part == "project":
        changed.setdefault("taxonomy", taxonomy.shipped_digest())
    if part == "runs":
        changed.setdefault("diff_algorithm", FORMER_ALGORITHM)
    return changed


def update_figures(table: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table of figures, its columns and rows, with the current words."""
    names = FORMER_COLUMNS.get(table, {})
    rows = [{names.get(name, name): value for name, value in row.items()} for row in said["rows"]]
    for row in rows:
        if "cause" in row:
            row["cause"] = _update_causes(row["cause"])
    return {**said, "columns": [names.get(one, one) for one in said["columns"]], "rows": rows}


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
