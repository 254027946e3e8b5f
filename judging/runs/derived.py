"""Derived runs combine the outcomes of other runs without any call, as votes over prompts or as
panels.

A derived run has an outcome for each item, axis and revision that all its sources have in common.
An item that only some sources have is left out; the audit log counts such items. An item that is
missing in a source still counts in the total of a vote. A derived run is finished immediately.
Whenever a source finishes again after a retry or a new parse, the derived outcomes are computed
again.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import Count
from django.utils import timezone

from annotation.db import transactions
from annotation.models import Membership, Project
from judging.errors import Refused
from judging.models import Endpoint, Outcome, Run, StrategyVersion
from judging.runs import descriptions, pinning, run_items
from judging.runs.engine import outcomes
from judging.runs.run_config import NO_OVERRIDES, RunOverrides
from judging.runs.run_items import DrawnItems
from judging.runs.transitions import record_event
from judging.strategies import Strategy
from judging.strategies.descriptions import FRAME_DESCRIPTIONS
from judging.strategies.replies import decisions

PANEL = "panel"
MOST_WEIGHT = 1_000_000
# Frames whose outcomes are numbers, without a detection.
NUMBER_FRAMES = ("rating", "rubric", "matching")
BATCH = 200


def derive_run(
    project: Project,
    *,
    strategy: StrategyVersion,
    sources: Sequence[Run],
    weights: Mapping[int, float] | None = None,
    member: Membership | None = None,
    name: str = "",
    tags: Sequence[str] = (),
    note: str = "",
) -> Run:
    """Create a run that combines the outcomes of these runs with a strategy of the frame "fold".

    `weights` are those of weighted votes, one above 0 for each source, by run number; they are
    pinned. Raises `Refused` for sources that cannot be combined, or that have no item in common,
    for weights that are missing or not used, and for a name that another run has.
    """
    sources = sorted(set(sources), key=lambda run: run.number)
    _check(project, strategy, sources)
    own = _pin_weights(strategy.strategy(), sources, weights or {})
    run = pinning.draft_run(
        project,
        strategy,
        _endpoint(sources),
        kind=Run.Kind.DERIVED,
        member=member,
        seed=0,
        samples=1,
        own=own,
        state=Run.State.FINISHED,
        finished_at=timezone.now(),
    )
    descriptions.set_description(run, name, tags, note)
    with transactions.transact():
        Project.objects.select_for_update(no_key=True).only("pk").get(pk=project.pk)
        descriptions.check_name_free(project, run.name)
        places, left_out = _find_shared_places(sources)
        pinning.store_run(run, DrawnItems(places), sources=sources)
        numbers = [source.number for source in sources]
        record_event(
            "run derived", run, member, sources=numbers, items=len(places), left_out=left_out
        )
    refresh_outcomes(run)
    return run


def refresh_outcomes(run: Run) -> int:
    """Compute the outcomes of a derived run from its sources, in batches; return their number.

    An outcome is pending if it is pending in any source. Idempotent.
    """
    strategy = run.pinned_strategy()
    sources = list(run.sources.select_related("strategy").order_by("number"))
    source = sources[0].pinned_strategy()
    last = made = 0
    while batch := list(run.outcomes.filter(pk__gt=last).order_by("pk")[:BATCH]):
        last = batch[-1].pk
        with transactions.transact():
            _lock(run)
            said = _load_source_outcomes(sources, batch)
            made += _decide_batch(strategy, source, batch, said)
    with transactions.transact():
        _lock(run)
        # The digest of a source changes when another parser reads its replies.
        Run.objects.filter(pk=run.pk).update(digest=pinning.compute_digest(run))
    return made


def _lock(run: Run) -> None:
    """Lock the run: its sources may end at the same moment, and then who has read them later must
    write later."""
    Run.objects.select_for_update(no_key=True).only("pk").get(pk=run.pk)


def refresh_dependants(source: Run) -> None:
    """Compute the outcomes of all runs that are derived from this run again."""
    for run in source.derived.filter(kind=Run.Kind.DERIVED).select_related("strategy"):
        refresh_outcomes(run)


def _decide_batch(
    strategy: Strategy,
    source: Strategy,
    batch: Sequence[Outcome],
    said: Mapping[tuple[int, str], Sequence[Outcome]],
) -> int:
    folded = []
    for outcome in batch:
        votes = said[outcome.item_id, outcome.axis]
        if any(vote.result == Outcome.Result.PENDING for vote in votes):
            Outcome.objects.filter(pk=outcome.pk).reopen()
            continue
        outcomes.apply_decision(
            outcome, decisions.combine(strategy, votes, source=source), strategy
        )
        folded.append(outcome)
    outcomes.store_decisions(folded)
    return len(folded)


def _load_source_outcomes(
    sources: Sequence[Run], batch: Sequence[Outcome]
) -> dict[tuple[int, str], list[Outcome]]:
    """Load the sources' outcomes for the items of a batch, by item and axis, ordered by run
    number."""
    items = [outcome.item_id for outcome in batch]
    found = Outcome.objects.filter(run__in=sources, item__in=items).order_by("run__number")
    said: dict[tuple[int, str], list[Outcome]] = defaultdict(list)
    for outcome in found:
        said[outcome.item_id, outcome.axis].append(outcome)
    return said


def _find_shared_places(sources: Sequence[Run]) -> tuple[list[dict[str, Any]], int]:
    """Find the items, with axis and revision, that all sources share, and the number of items that
    only some sources have."""
    every = Outcome.objects.filter(run__in=sources)
    groups = every.values("item", "axis", "revision").annotate(n=Count("run")).order_by()
    alike = {
        (row["item"], row["axis"], row["revision"]) for row in groups if row["n"] == len(sources)
    }
    if not alike:
        raise Refused("These runs have no items in common. Choose runs over the same items.")
    places = [
        place
        for place in run_items.load_places(sources[0].outcomes.all())
        if (place["item_id"], place["axis"], place["revision_id"]) in alike
    ]
    return places, sum(row["n"] < len(sources) for row in groups)


def _check(project: Project, strategy: StrategyVersion, sources: Sequence[Run]) -> None:
    """Raise `Refused` for runs that cannot be combined."""
    if strategy.strategy().frame != "fold":
        raise Refused(
            f"Strategy {strategy.slug} calls an evaluator. Start a new run with it instead."
        )
    if len(sources) < 2:
        raise Refused("Choose two or more runs to combine.")
    for run in sources:
        if run.project_id != project.pk:
            raise Refused("Choose runs of the same project.")
        if run.state != Run.State.FINISHED or run.kind == Run.Kind.DERIVED:
            what = "a derived run" if run.kind == Run.Kind.DERIVED else run.state
            raise Refused(
                f"Run {run.number} is {what}. Choose finished runs that called an evaluator."
            )
    if different := describe_frames(sources):
        raise Refused(different)
    _check_same_question(strategy.strategy(), [run.pinned_strategy() for run in sources])


def describe_frames(runs: Iterable[Run]) -> str:
    """Say which of the runs ask in which way, if they cannot be combined since the ways differ; ""
    if they are alike."""
    frames: dict[str, list[str]] = defaultdict(list)
    for run in runs:
        frames[FRAME_DESCRIPTIONS[run.pinned_strategy().frame].title].append(f"run {run.number}")
    if len(frames) < 2:
        return ""
    ways = "; ".join(f"{title}: {', '.join(named)}" for title, named in frames.items())
    return f"These runs ask in different ways ({ways}). Choose runs that ask in one way."


def _pin_weights(
    fold: Strategy, sources: Sequence[Run], weights: Mapping[int, float]
) -> RunOverrides:
    if fold.fold != "weighted":
        if weights:
            raise Refused("Only weighted votes have weights. Leave them out.")
        return NO_OVERRIDES
    numbers = [run.number for run in sources]
    if unweighted := [number for number in numbers if number not in weights]:
        raise Refused(f"Give run {unweighted[0]} a weight: weighted votes need one for each run.")
    if any(not 0 < weights[number] <= MOST_WEIGHT for number in numbers):
        raise Refused(f"A weight is a number above 0, and at most {MOST_WEIGHT:,}.")
    return RunOverrides(weights=tuple(weights[number] for number in numbers))


def _check_same_question(fold: Strategy, asked: Sequence[Strategy]) -> None:
    if fold.fold in ("veto", "weighted") and asked[0].frame in NUMBER_FRAMES:
        raise Refused(
            "These runs give numbers, which have no such vote. Combine them by majority or mean."
        )
    if fold.fold != "mean":
        return
    if asked[0].output not in {"score", "scores"}:
        raise Refused("These runs have no scores to average. Combine them by majority instead.")
    if len({(one.scale, one.top, one.metrics) for one in asked}) > 1:
        raise Refused("These runs use different scales. Choose runs with the same scale.")


def _endpoint(sources: Sequence[Run]) -> Endpoint:
    """Return the endpoint of the sources if all sources have the same endpoint, otherwise the panel
    endpoint."""
    endpoints = {run.endpoint_id: run.endpoint for run in sources}
    if len(endpoints) == 1:
        return sources[0].endpoint
    made, _ = Endpoint.objects.get_or_create(
        name=PANEL, provider="derived", defaults={"model": PANEL}
    )
    return made
