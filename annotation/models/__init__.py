"""The human half in tables: who works on what, what an item says, what people said of it."""

from annotation.models.items import Diff, Item, Revision, texts_digest
from annotation.models.labels import Cursor, Label, Resolution, Slot, Stage
from annotation.models.people import RIGHTS, Account, ApiToken, Membership, Role
from annotation.models.projects import GuidelinesVersion, Project, TaskTypeVersion
from annotation.models.records import Event, Job

__all__ = [
    "RIGHTS",
    "Account",
    "ApiToken",
    "Cursor",
    "Diff",
    "Event",
    "GuidelinesVersion",
    "Item",
    "Job",
    "Label",
    "Membership",
    "Project",
    "Resolution",
    "Revision",
    "Role",
    "Slot",
    "Stage",
    "TaskTypeVersion",
    "texts_digest",
]
