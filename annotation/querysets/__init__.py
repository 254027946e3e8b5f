"""Sets of rows in the words of the field; a view, a task or a command never filters by itself."""

from annotation.querysets.desk import CommentQuerySet, DraftQuerySet, MarkQuerySet
from annotation.querysets.events import EventQuerySet
from annotation.querysets.items import ItemQuerySet
from annotation.querysets.labels import ERROR_ITEM, SI_ITEM, LabelQuerySet, ResolutionQuerySet
from annotation.querysets.people import InvitationQuerySet, MembershipQuerySet, ProjectQuerySet
from annotation.querysets.slots import SlotQuerySet

__all__ = [
    "ERROR_ITEM",
    "SI_ITEM",
    "CommentQuerySet",
    "DraftQuerySet",
    "EventQuerySet",
    "InvitationQuerySet",
    "ItemQuerySet",
    "LabelQuerySet",
    "MarkQuerySet",
    "MembershipQuerySet",
    "ProjectQuerySet",
    "ResolutionQuerySet",
    "SlotQuerySet",
]
