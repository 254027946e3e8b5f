"""What a run rests on, pinned at once under one digest (design 3.10)."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django.db.models import Max

from annotation.models import Membership, Project
from annotation.querysets import SI_ITEM
from judging import frames, outputs, planning
from judging.models import Endpoint, Outcome, Run, StrategyVersion


def pin(
    project: Project,
    *,
    strategy: StrategyVersion,
    endpoint: Endpoint,
    member: Membership | None,
    cap: Decimal | None,
    seed: int,
    rows: Sequence[dict[str, Any]],
) -> Run:
    """A new run with a pending outcome for each of these rows of `selecting.chosen`."""
    last = Run.objects.in_project(project).aggregate(last=Max("number"))["last"] or 0
    parser = outputs.parser(strategy.strategy())
    digest = planning.run_digest(
        strategy=strategy.digest,
        renderer=frames.RENDERER,
        parser=parser,
        endpoint=endpoint.pinned(),
        items=[(row["key"], row["texts"]) for row in rows],
        seed=seed,
    )
    run = Run.objects.create(
        project=project,
        number=last + 1,
        strategy=strategy,
        endpoint=endpoint,
        pinned=endpoint.pinned(),
        parser=parser,
        renderer=frames.RENDERER,
        digest=digest,
        seed=seed,
        cap=cap,
        member=member,
        state=Run.State.PLANNING,
    )
    Outcome.objects.bulk_create((_pending(run, row) for row in rows), batch_size=500)
    return run


def _pending(run: Run, row: dict[str, Any]) -> Outcome:
    return Outcome(
        run=run,
        item_id=row["item_id"],
        revision_id=row["revision_id"],
        source_ability=row["source_ability"],
        cluster=row["cluster"],
        invariant=row["truth"] == SI_ITEM,
        **_place_in_tables(row),
    )


def _place_in_tables(row: dict[str, Any]) -> dict[str, str]:
    """Where an item counts: its class comes from its resolution, not from what was intended.

    Items that repeat another one have a row of their own and no ability, so that no total counts
    a text twice.
    """
    if row["duplicate_of"]:
        return {"ability": "", "category": row["category"]}
    if row["truth"] == SI_ITEM:
        return {"ability": SI_ITEM, "category": SI_ITEM}
    return {"ability": row["ability"], "category": row["category"]}
