"""Who works on which item next, and what becomes of what they say (design 3, rules 1 to 5).

Every function is one short transaction that first locks the member's own row: a person who
presses eight times at once is served one press after the other. Then it locks the item, then its
slots, always in this order, so that no two wait for each other; taking the next item alone locks
a slot at once, and passes over those that are locked.
"""

from annotation.labelling.queue.labels import (
    renew_holds,
    reopen_item,
    skip_item,
    store_correction,
    store_label,
    toggle_flag,
    undo_label,
)
from annotation.labelling.queue.next_item import next_offer
from annotation.labelling.queue.offers import (
    MemberProgress,
    Offer,
    OpenItems,
    Waiting,
    count_items,
    load_open_items,
    load_progress,
    recent_labels,
)

__all__ = [
    "MemberProgress",
    "Offer",
    "OpenItems",
    "Waiting",
    "count_items",
    "load_open_items",
    "load_progress",
    "next_offer",
    "recent_labels",
    "renew_holds",
    "reopen_item",
    "skip_item",
    "store_correction",
    "store_label",
    "toggle_flag",
    "undo_label",
]
