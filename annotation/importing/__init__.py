"""Imports items, together with the projects that they need, and labels from elsewhere."""

from annotation.importing.comparison import ItemImportReport
from annotation.importing.item_rows import ParsedItem, parse_items
from annotation.importing.items import store_items
from annotation.importing.read_ahead import read_in_subprocess
from annotation.projects.creation import (
    create_audited_project,
    create_project,
    load_task_type_version,
    store_task_type,
)

__all__ = [
    "ItemImportReport",
    "ParsedItem",
    "create_audited_project",
    "create_project",
    "load_task_type_version",
    "parse_items",
    "read_in_subprocess",
    "store_items",
    "store_task_type",
]
