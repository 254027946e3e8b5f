"""Figures printed in the studies, from `judging/results/published`, for comparison."""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from annotation.labelling.models.labels import SI_ITEM
from stats.estimates import Estimate
from stats.rates import ClusterSums, clustered_wilson

PUBLISHED_FOLDER = Path(__file__).parent / "published"
NO_COUNTS = "no counts are printed"
DENOMINATORS = {
    "total": "of all items, including missing ones",
    "parsed": "of the pairs with both orders parsed",
    "less_failures": "of the items without unparsed outputs",
    "bins": "of the items with a score",
}


@dataclass(frozen=True)
class PublishedRate:
    """A rate of study 000's tables 3 to 5: undetected, a fraction of 1, as it is printed.

    For score-invariant items it is the share left unchanged. `denominator` is one of
    `DENOMINATORS`, or "" if the rate is not based on counts. `reason` says what contradicts it.
    """

    table: str
    strategy: str
    model: str
    ability: str
    total: int
    rate: float
    denominator: str
    reason: str

    @property
    def series(self) -> tuple[str, str, str]:
        return self.table, self.strategy, self.model

    @property
    def invariant(self) -> bool:
        return self.ability == SI_ITEM

    def estimate(self) -> Estimate:
        """The rate with Wilson's plain interval on its own n, since clusters are not printed.

        Without counts there is no interval, and `reason` says so.
        """
        if not self.denominator or NO_COUNTS in self.reason:
            return Estimate(self.rate, None, None, self.total, NO_COUNTS)
        hits = self.rate * self.total
        sums = ClusterSums(m=self.total, n=self.total, y=hits, nn=self.total, ny=hits, yy=hits)
        return clustered_wilson(sums)


@cache
def load_overview() -> tuple[PublishedRate, ...]:
    """The rates by ability of study 000, tables 3 to 5, in their order."""
    with (PUBLISHED_FOLDER / "000-overview.csv").open(encoding="utf-8", newline="") as file:
        return tuple(_to_published_rate(row) for row in csv.DictReader(file) if row["rate"])


def _to_published_rate(row: dict[str, str]) -> PublishedRate:
    return PublishedRate(
        table=row["table"],
        strategy=row["strategy"],
        model=row["model"],
        ability=row["ability"],
        total=int(row["total"]),
        rate=float(row["rate"]),
        denominator=row["denominator"],
        reason=row["reason"],
    )
