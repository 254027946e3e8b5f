"""Labels become a resolution."""

from collections import Counter
from datetime import datetime

from annotation.models import Item, Label, Resolution, Revision, Slot, Stage


def settle(item: Item, *, now: datetime) -> Resolution | None:
    """Bring the item's resolution in line with its counted labels, inside the caller's transaction.

    With one slot the first counted label decides, with more the choice of more than half of the
    slots. Resolutions that do not come from labels (adjudicated, imported, known) stand.
    """
    current = Resolution.objects.current().filter(item=item).first()
    if current and current.source != Resolution.Source.LABELS:
        return current
    revision = item.revision()
    value, rule = _decide(item, revision)
    if current and (current.value, current.revision_id) == (value, revision.pk):
        return current
    if current:
        current.end(now)
    if value is None:
        return None
    return Resolution.objects.create(
        item=item, revision=revision, value=value, rule=rule, source="labels", created_at=now
    )


def _decide(item: Item, revision: Revision) -> tuple[str | None, str]:
    places = Slot.objects.filter(item=item, stage=Stage.WORK).exclude(state="closed").count()
    labels = Label.objects.counted().filter(item=item, stage=Stage.WORK, revision=revision)
    votes = Counter(labels.values_list("choice", flat=True))
    rule = "first label" if places == 1 else "majority"
    for choice, count in votes.items():
        if count * 2 > places:
            return choice, rule
    return None, rule
