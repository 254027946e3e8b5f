"""Stored versions of strategies, and the items that a run is over."""

from typing import Any

from django.db.models import Max, OuterRef

from annotation import writing
from annotation.models import Project, Resolution, Revision
from annotation.querysets import ItemQuerySet
from judging import planning, strategies
from judging.models import Endpoint, StrategyVersion
from judging.querysets import EndpointQuerySet

BASELINE = "baseline"


def strategy_version(slug: str) -> StrategyVersion:
    """The stored version of a strategy file as it is now. An unknown slug is a KeyError."""
    definition = strategies.load_all()[slug].definition
    digest = strategies.digest(definition)
    with writing.transact():
        last = StrategyVersion.objects.filter(slug=slug).aggregate(last=Max("number"))["last"] or 0
        version, _ = StrategyVersion.objects.get_or_create(
            slug=slug, digest=digest, defaults={"number": last + 1, "definition": definition}
        )
    return version


def items(project: Project, *, with_duplicates: bool = False) -> ItemQuerySet:
    """Items that a run may be over: resolved as valid or score-invariant in their current texts.

    Items that repeat another word for word are left out unless asked for.
    """
    found = project.items.all().judgeable().filter(purpose="test")
    return found if with_duplicates else found.originals()


def chosen(found: Any, seed: int, limit: int | None) -> list[dict[str, Any]]:
    """What a run pins of each of its items, in the order of the items.

    With a `limit` they are a random part that the seed decides.
    """
    value = Resolution.objects.current().filter(item=OuterRef("pk")).values("value")[:1]
    revision = Revision.objects.filter(item=OuterRef("pk"), number=OuterRef("revision_number"))
    # Unique as it is; in an order it would be looked for along that order, item by item.
    revision = revision.order_by()
    rows: list[dict[str, Any]] = list(
        found.order_by("position")
        .annotate(
            truth=value, revision_pk=revision.values("pk")[:1], texts=revision.values("digest")[:1]
        )
        .values(
            "pk", "key", "category", "ability", "source_ability", "cluster",
            "truth", "revision_pk", "texts", "duplicate_of",
        )
    )  # fmt: skip
    if limit is None or limit >= len(rows):
        return rows
    kept = set(planning.shuffled(seed, [row["key"] for row in rows])[:limit])
    return [row for row in rows if row["key"] in kept]


def endpoints() -> EndpointQuerySet:
    """All endpoints; the offline baseline needs no setting up, so it is always among them."""
    Endpoint.objects.get_or_create(
        name=BASELINE, defaults={"provider": "baseline", "model": "offline", "in_flight": 64}
    )
    return Endpoint.objects.all()
