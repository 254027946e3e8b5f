"""What comes in: items with the projects that they need, and labels that were given elsewhere."""

from annotation.importing.ahead import ahead
from annotation.importing.comparing import Report
from annotation.importing.drafts import Draft, check
from annotation.importing.items import store
from annotation.importing.projects import (
    begin_project,
    create_project,
    store_task_type,
    task_type_version,
)

__all__ = [
    "Draft",
    "Report",
    "ahead",
    "begin_project",
    "check",
    "create_project",
    "store",
    "store_task_type",
    "task_type_version",
]
