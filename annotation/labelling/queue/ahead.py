"""Items ahead: what a member's page may show while it has no connection, beyond the items held.

These items are held by nobody: a label of one takes its slot when it arrives, in the same
transaction. If the slot went to somebody else meanwhile, the label is kept as extra.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from django.db.models import F
from django.utils import timezone

from annotation.db import transactions
from annotation.errors import Refused
from annotation.labelling import answer_key, control_items, qualification, slots
from annotation.labelling.correct_answers import PROBE
from annotation.labelling.queue import claims, next_item, offers
from annotation.labelling.queue.offers import Offer
from annotation.labelling.submissions import SubmissionToken
from annotation.models import WORK_LIKE_STAGES, Cursor, Item, Membership, Revision, Slot, Stage

# The number of items sent ahead, and of slots that a page holds.
NUMBER, MAX_HELD = 8, 2
# The number of items sent ahead whose places are remembered. Others may come in between.
MOST_REMEMBERED = 3 * NUMBER
# The letters of the texts that are sent ahead. Eight texts of a million letters, into which people
# can correct any, would take the server half a minute.
MOST_LETTERS = 200_000


def list_ahead(
    member: Membership, *, number: int = NUMBER, now: datetime | None = None
) -> list[Offer]:
    """The items that the member would be offered after the held ones, without holding them.

    Control items stand where the queue will have them, and look like the others. There is nothing
    ahead without a held item, and no qualification item, since its explanation is shown before the
    next one. If the project asks a first look, only items are sent that still need one. Of long
    texts, fewer items are sent.
    """
    now = now or timezone.now()
    held = next_item.held_slots(member, slots.WORKBENCH_STAGES, lock=False)
    if not held or qualification.is_due(member):
        return []
    if any(slot.stage == Stage.QUALIFICATION for slot in held):
        return []
    if control_items.is_due(member, 0):
        planned = _plan_with_control_items(member, [one.item_id for one in held], number, now)
    else:
        stored = Cursor.objects.filter(member=member, stage=Stage.LABEL).first()
        turn = claims.build_turn(member, *((stored.priority, stored.position) if stored else ()))
        planned = next_item.list_free_items(member, turn, now, number)
    current = Revision.objects.filter(item__in=planned, number=F("item__revision_number"))
    found = {one.item_id: one for one in current.select_related("item")}
    sent = _take_while_short(found[item] for item in planned if item in found)
    built = [offers.build_ahead(member, revision) for revision in sent]
    asked = "blind" if member.project.blind_first else "label"
    return [offer for offer in built if offer.phase == asked]


def _take_while_short(revisions: Iterable[Revision]) -> Iterator[Revision]:
    """Yield the first of these revisions, as many as have `MOST_LETTERS` together."""
    letters = 0
    for revision in revisions:
        letters += sum(len(str(text)) for text in revision.texts.values())
        if letters > MOST_LETTERS:
            return
        yield revision


def _plan_with_control_items(
    member: Membership, held: list[int], number: int, now: datetime
) -> list[int]:
    """The ids of the next items after the held ones, as `next_offer` will choose them; but two of
    one cluster may follow each other.

    Control items that were sent ahead before keep their places, and new ones come only behind all
    that was sent. The member's row is locked, as two lists at once would remember different places.
    """
    with transactions.transact():
        turn = claims.lock_member(member)
        sent = control_items.sent_ahead(member)
        # More than are sent, so that urgent items before them leave what was sent in its place.
        free = next_item.list_free_items(member, turn, now, number + len(sent))
        checks = [item.pk for item in control_items.items_left(member)] if free or sent else []
        planned, behind = _keep_places(sent, free, checks)
        new = [item for item in checks if item not in planned]
        last = (planned or held)[-1]
        while behind and len(planned) < number:
            drawn = control_items.draw_after(member, last)
            last = new.pop(0) if new and control_items.is_due(member, drawn) else behind.pop(0)
            planned.append(last)
        # A held item may be released: by a correction of another one, for example.
        places = [*held, *planned[:MOST_REMEMBERED]]
        control_items.remember_sent(member, places if checks else [])
    return planned[:number]


def _keep_places(
    sent: list[int], free: list[int], checks: list[int]
) -> tuple[list[int], list[int]]:
    """Insert each of the control items `checks` that was sent ahead into the free items, behind the
    last item sent before it that is still there. Return the items up to the last one that was sent,
    and the free items behind it."""
    planned, at = list(free), 0
    for item in sent:
        if item in checks:
            planned.insert(at, item)
        if item in planned:
            at = planned.index(item) + 1
    kept = max((planned.index(item) + 1 for item in sent if item in planned), default=0)
    return planned[:kept], planned[kept:]


def find_slot(
    member: Membership, token: SubmissionToken, now: datetime, *, hold: bool = False
) -> SubmissionToken:
    """The token with the slot that the page's item has for the member now; called inside the
    queue's transaction.

    This is the member's own slot, else a free slot, else somebody else's: a label is then an extra
    label. With `hold`, a free slot is held. Only now is a control item's slot created.
    """
    if not token.item_id:
        return token
    claims.lock_member(member)
    item = Item.objects.locked().filter(project=member.project_id, pk=token.item_id).first()
    if item is None:
        raise Refused("The page showed another item. Reload the page.")
    of_item = Slot.objects.of_item(item)
    slot = of_item.of_member(member.pk).at_any(WORK_LIKE_STAGES).first()
    if slot is None and item.purpose == PROBE:
        slot = answer_key.hold_new_slot(item, Stage.CONTROL, member, now)
    if slot is None:
        work = of_item.at_work().in_order()
        slot = work.free_for(member.pk, now).locked(passing=True).first()
        if slot and hold:
            is_next = _holds(member) > 0
            slot.hold(member.pk, slots.hold_until(member, now), ahead=is_next)
        slot = slot or work.first()
    if slot is None:
        raise Refused("This item no longer needs labels. Continue with the next one.")
    return replace(token, slot_id=slot.pk)


def has_room(member: Membership) -> bool:
    """True if the member may hold one more item."""
    return _holds(member) < MAX_HELD


def hold_shown(member: Membership, token: SubmissionToken, *, now: datetime | None = None) -> None:
    """Hold the item ahead that a page shows, as its page has a connection again, if the item is
    free and the member may hold one more."""
    now = now or timezone.now()
    with transactions.transact():
        claims.lock_member(member)
        if has_room(member):  # a control item, too, is held only then
            find_slot(member, token, now, hold=True)


def _holds(member: Membership) -> int:
    held = Slot.objects.in_project(member.project_id).held_by(member.pk)
    return held.at_any(slots.WORKBENCH_STAGES).of_live_items().count()
