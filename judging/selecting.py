"""Stored versions of strategies, and the items that a run is over."""

from typing import Any

from django.db.models import F, Max

from annotation import writing
from annotation.models import Project, Resolution
from annotation.querysets import ResolutionQuerySet
from judging import planning, strategies
from judging.models import Endpoint, StrategyVersion
from judging.querysets import EndpointQuerySet

BASELINE = "baseline"
# What of an item a run keeps, beside its revision and what it is held for.
PINNED = ("key", "category", "ability", "source_ability", "cluster", "duplicate_of")


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


def items(project: Project, *, with_duplicates: bool = False) -> ResolutionQuerySet:
    """Resolutions of the items that a run may be over, one an item: valid or score-invariant in
    their current texts.

    Items that repeat another word for word are left out unless asked for.
    """
    found = Resolution.objects.of_current_texts().judgeable().filter(item__project=project)
    return found if with_duplicates else found.filter(item__duplicate_of=None)


def chosen(found: ResolutionQuerySet, seed: int, limit: int | None) -> list[dict[str, Any]]:
    """What a run pins of each of its items, in the order of the items.

    With a `limit` they are a random part that the seed decides.
    """
    # A resolution names its item and revision, so that this is one flat join.
    rows: list[dict[str, Any]] = list(
        found.order_by("item__position").values(
            "item_id",
            "revision_id",
            truth=F("value"),
            texts=F("revision__digest"),
            **{name: F(f"item__{name}") for name in PINNED},
        )
    )
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
