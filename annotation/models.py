"""All models of the annotation app: projects and people, items, work, labels and resolutions."""

from annotation.accounts.models import Account, ApiToken
from annotation.api.models import Repeatable
from annotation.items.models import Diff, Frozen, FrozenIn, Item, Revision, SearchText, Snapshot
from annotation.items.text_digest import digest_texts
from annotation.jobs.models import Job
from annotation.labelling.models.bulk_changes import BulkChange
from annotation.labelling.models.labels import Label, Resolution
from annotation.labelling.models.notes import Comment, Draft, Mark, PracticeRound
from annotation.labelling.models.slots import (
    ON_DEMAND_STAGES,
    WORK_LIKE_STAGES,
    Cursor,
    Reason,
    Slot,
    Stage,
)
from annotation.projects.models import (
    RIGHTS,
    Event,
    GuidelinesVersion,
    Invitation,
    Membership,
    Project,
    Role,
    TaskTypeVersion,
    TaxonomyVersion,
    TextFormat,
)

__all__ = [
    "ON_DEMAND_STAGES",
    "RIGHTS",
    "WORK_LIKE_STAGES",
    "Account",
    "ApiToken",
    "BulkChange",
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
    "SearchText",
    "Slot",
    "Snapshot",
    "Stage",
    "TaskTypeVersion",
    "TaxonomyVersion",
    "TextFormat",
    "digest_texts",
]
