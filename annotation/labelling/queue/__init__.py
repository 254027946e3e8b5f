"""Who gets which item next, and how labels are stored.

Every function is one short transaction that first locks the member's own row: if somebody presses a
key eight times at once, the requests are served one after the other. Then it locks the item, then
its slots, always in this order, so that there are no deadlocks. There is one exception: taking the
next item locks a slot directly, and skips locked slots.
"""

from annotation.labelling.queue.ahead import hold_shown, list_ahead
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
    CategoryCount,
    MemberProgress,
    Offer,
    OpenItems,
    Waiting,
    count_by_category,
    load_open_items,
    load_progress,
    recent_labels,
)

__all__ = [
    "CategoryCount",
    "MemberProgress",
    "Offer",
    "OpenItems",
    "Waiting",
    "count_by_category",
    "hold_shown",
    "list_ahead",
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
