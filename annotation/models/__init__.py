"""The human half in tables: who works on what, what an item says, what people said of it."""

from annotation.items.text_digest import digest_texts
from annotation.models.desk import Comment, Draft, Mark, PracticeRound
from annotation.models.invitations import Invitation
from annotation.models.items import Diff, Item, Revision
from annotation.models.labels import Label, Resolution
from annotation.models.people import RIGHTS, Account, ApiToken, Membership, Role
from annotation.models.projects import GuidelinesVersion, Project, TaskTypeVersion, TextFormat
from annotation.models.records import Event, Job
from annotation.models.repeats import Repeatable
from annotation.models.slots import ON_DEMAND_STAGES, WORK_LIKE_STAGES, Cursor, Reason, Slot, Stage
from annotation.models.snapshots import Frozen, FrozenIn, Snapshot

__all__ = [
    "ON_DEMAND_STAGES",
    "RIGHTS",
    "WORK_LIKE_STAGES",
    "Account",
    "ApiToken",
    "Comment",
    "Cursor",
    "Diff",
    "Draft",
    "Event",
    "Frozen",
    "FrozenIn",
    "GuidelinesVersion",
    "Invitation",
    "Item",
    "Job",
    "Label",
    "Mark",
    "Membership",
    "PracticeRound",
    "Project",
    "Reason",
    "Repeatable",
    "Resolution",
    "Revision",
    "Role",
    "Slot",
    "Snapshot",
    "Stage",
    "TaskTypeVersion",
    "TextFormat",
    "digest_texts",
]
