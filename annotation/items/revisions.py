"""Corrections of an item's texts, inside the transaction of the queue."""

from collections.abc import Mapping
from datetime import datetime

from annotation.models import Item, Label, Membership, Resolution, Revision, digest_texts


def merge_texts(shown: Mapping[str, str], texts: Mapping[str, str]) -> dict[str, str]:
    """Return all texts of the revision, with the corrected texts in place of the shown texts.

    Line breaks stay as they were: a page sends every line break as LF, so that a diff would show
    every line of a text with CR LF as changed.
    """
    return {
        **shown,
        **{name: match_line_breaks(shown.get(name, ""), texts[name]) for name in texts},
    }


def add_revision(
    item: Item, texts: dict[str, str], *, author: Membership, note: str, now: datetime
) -> None:
    """Add a revision to a locked item; labels of its older revisions no longer count.

    The slots of these labels reopen, except the author's own, and the resolution ends.
    """
    item.revision_number += 1
    item.save(update_fields=["revision_number"])
    Revision.objects.create(
        item=item,
        number=item.revision_number,
        texts=texts,
        digest=digest_texts(texts),
        author=author,
        note=note,
        created_at=now,
    )
    _stop_older_labels(item, author)
    Resolution.objects.current().of_item(item).update(current=False, ended_at=now)


def match_line_breaks(shown: str, text: str) -> str:
    """Return the text with CR LF line breaks if the shown text has only CR LF; otherwise
    unchanged."""
    only_crlf = 0 < shown.count("\n") == shown.count("\r\n")
    return text.replace("\n", "\r\n") if only_crlf and "\r" not in text else text


def _stop_older_labels(item: Item, author: Membership) -> None:
    # A person who still has the old texts open gets `Stale` on submitting.
    for older in Label.objects.counted().filter(item=item).select_related("slot"):
        older.stop_counting()
        if older.slot and older.member_id != author.pk:
            older.slot.release()
    # Labels that these superseded are of the old texts too.
    Label.objects.filter(item=item, counted=True).update(counted=False)
