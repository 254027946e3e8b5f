"""Who works on which item next, and what becomes of what they say (design 3, rules 1 to 5).

Every function is one short transaction that first locks the member's own row: a person who
presses eight times at once is served one press after the other. Then it locks the item, then its
slots, always in this order, so that no two wait for each other; taking the next item alone locks
a slot at once, and passes over those that are locked.
"""

from annotation.queue.labelling import correct, label
from annotation.queue.offers import Offer, Progress, Waiting, counted, progress, recent
from annotation.queue.returning import flag, renew, reopen, skip, undo
from annotation.queue.taking import next_offer

__all__ = [
    "Offer",
    "Progress",
    "Waiting",
    "correct",
    "counted",
    "flag",
    "label",
    "next_offer",
    "progress",
    "recent",
    "renew",
    "reopen",
    "skip",
    "undo",
]
