"""What a run would ask, before anybody starts it."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from annotation.models import Project, Revision
from judging import calls, frames, runs, selecting, spending
from judging.models import Endpoint, Request, Run, StrategyVersion

BATCH = 200


@dataclass(frozen=True)
class Foreseen:
    """Counts of what a run would ask.

    `calls` of all items come down to `requests` that differ, `stored` of which are answered
    already and cost nothing. `cost` is what the others may cost, None where prices are unknown.
    """

    items: int
    calls: int
    requests: int
    stored: int
    cost: Decimal | None

    @property
    def to_ask(self) -> int:
        return self.requests - self.stored


def foresee(
    project: Project,
    *,
    strategy: StrategyVersion,
    endpoint: Endpoint,
    seed: int,
    limit: int | None = None,
    with_duplicates: bool = False,
) -> Foreseen:
    """What `runs.start` with the same arguments would ask; every prompt is rendered for it.

    Raises `runs.Refused` for an endpoint that cannot be asked by this strategy.
    """
    asked = strategy.strategy()
    runs.check(asked, endpoint)
    rows = selecting.chosen(selecting.items(project, with_duplicates=with_duplicates), seed, limit)
    run = Run(project=project, strategy=strategy, endpoint=endpoint, pinned=endpoint.pinned())
    costs: dict[str, Decimal | None] = {}
    for batch in _batches([row["revision_id"] for row in rows]):
        costs |= _costs(run, endpoint, batch)
    stored = sum(_stored(digests) for digests in _batches(list(costs)))
    known = [cost for cost in costs.values() if cost is not None]
    return Foreseen(
        items=len(rows),
        calls=len(rows) * len(frames.calls(asked.frame)),
        requests=len(costs),
        stored=stored,
        cost=_share(known, stored) if len(known) == len(costs) else None,
    )


def _share(costs: list[Decimal], stored: int) -> Decimal:
    """The mean request times those that are not answered yet."""
    return sum(costs, Decimal(0)) * (len(costs) - stored) / max(1, len(costs))


def _costs(run: Run, endpoint: Endpoint, revisions: list[int]) -> dict[str, Decimal | None]:
    strategy = run.strategy.strategy()
    found = {}
    for revision in Revision.objects.filter(pk__in=revisions).only("texts"):
        for spec in frames.calls(strategy.frame):
            body = calls.body_of(run, revision.texts, spec, strategy)
            found[calls.digest_of(run, body)] = spending.foreseen(endpoint, run, body)
    return found


def _stored(digests: list[str]) -> int:
    return Request.objects.filter(digest__in=digests, state="answered").count()


def _batches(rows: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(rows), BATCH):
        yield rows[start : start + BATCH]
