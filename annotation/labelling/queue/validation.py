"""Whether what a page sends may be taken; each check raises what the person is told."""

from annotation.errors import Refused, Stale
from annotation.labelling import blind_names, slots, submissions
from annotation.labelling.queue import claims, load
from annotation.labelling.submissions import ShownItem, SubmissionToken
from annotation.models import Item, Membership, Revision, Slot, Stage


def read_own_token(member: Membership, shown: ShownItem) -> SubmissionToken:
    """What the page's key was made for."""
    read = submissions.read_token(shown.key)
    if read.member_id != member.pk:
        raise Refused("This page belongs to another user. Reload the page.")
    return read


def lock_shown(
    member: Membership, made: SubmissionToken, shown: ShownItem
) -> tuple[Slot, Revision]:
    """The workbench's slot that the key was made for and the item's current texts; member and
    item are locked."""
    claims.lock_member_and_item(member, made.slot_id)
    slot, revision = load.load_slot(made.slot_id)
    check_stage(slot, Stage.LABEL)
    check_item(member, slot.item, shown)
    return slot, revision


def check_stage(slot: Slot, stage: str) -> None:
    if slot.stage not in slots.related_stages(stage):
        raise Refused("This page belongs to another member. Reload the page.")


def check_item(member: Membership, item: Item, shown: ShownItem) -> None:
    if item.project_id != member.project_id or not blind_names.matches_name(
        shown.item_key, member, item
    ):
        raise Refused("The page showed another item. Reload the page.")
    item.project = member.project  # so that nobody reads it again
    if item.deleted_at:
        raise Refused("This item was removed from the project. Continue with the next one.")


def check_revision(made: SubmissionToken, shown: ShownItem) -> None:
    """The key was made with the revision that is said to have been shown, so there is one."""
    if made.revision != shown.revision:
        raise Refused("The page showed another item. Reload the page.")


def check_fresh(item: Item, made: SubmissionToken, shown: ShownItem) -> None:
    check_revision(made, shown)
    if item.revision_number != shown.revision:
        raise Stale("The texts have been corrected. Read the new ones and label again.")
