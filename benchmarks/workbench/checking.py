"""Compare acknowledged labels with stored labels."""

from dataclasses import dataclass

from django.db.models import Count

from annotation.models import Label


@dataclass(frozen=True)
class Found:
    """doubled: items with more counted labels than slots, or two by one annotator; lost:
    acknowledged and not stored; unacknowledged: stored without a response that said so."""

    doubled: int
    lost: int
    unacknowledged: int


def look(acknowledged: list[str], *, overlap: int, before: int = 0) -> Found:
    """Compare the keys of acknowledged labels with all labels except the `before` labels that
    existed at the start."""
    counted = Label.objects.filter(current=True, counted=True).order_by()
    full = counted.values("item", "stage").annotate(n=Count("pk")).filter(n__gt=overlap)
    twice = counted.values("item", "stage", "member").annotate(n=Count("pk")).filter(n__gt=1)
    said = set(acknowledged)
    stored = set(Label.objects.filter(submission__in=said).values_list("submission", flat=True))
    return Found(
        doubled=full.count() + twice.count() + len(acknowledged) - len(said),
        lost=len(said - stored),
        unacknowledged=Label.objects.count() - before - len(stored),
    )
