"""Runs as somebody wishes them: several strategies and evaluators at once, priced beforehand.

A wish is one run for each pair of a strategy and an endpoint that fit each other. All of its runs
are looked at before the first is started, so that what cannot be is refused as a whole.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import product

from annotation.models import Membership, Project
from judging.errors import Refused
from judging.models import Endpoint, Run, StrategyVersion
from judging.runs import canaries, estimate, lifecycle, pinning, start_checks
from judging.runs.estimate import PILOT_CALLS, CostEstimate, RunEstimate
from judging.runs.lifecycle import RunOptions
from judging.runs.run_config import RunOverrides

# More at once is rather a mistake than a wish.
MAX_RUNS = 40


@dataclass(frozen=True, kw_only=True)
class NewRuns:
    """What is to be asked of whom, with the options of its runs; `canary` asks anew."""

    strategies: Sequence[StrategyVersion]
    endpoints: Sequence[Endpoint]
    seed: int
    limit: int | None = None
    with_duplicates: bool = False
    samples: int | None = None
    over: Run | None = None
    items: Collection[int] | None = None
    own: RunOverrides = pinning.NO_OVERRIDES
    canary: bool = False
    cap: Decimal | None = None
    while_labelling: bool = False

    def options(self, strategy: StrategyVersion) -> RunOptions:
        """What a run of this strategy is to be."""
        checks = not self.canary and strategy.strategy().frame == "explanation"
        return RunOptions(
            seed=self.seed,
            limit=self.limit or (canaries.DEFAULT_ITEMS if self.canary else None),
            with_duplicates=self.with_duplicates,
            items=self.items,
            over=self.over if checks else None,
            samples=self.samples,
            own=self.own,
            cap=self.cap,
            while_labelling=self.while_labelling,
        )


@dataclass(frozen=True)
class PlannedRun:
    """One run of a wish before it is started, with the pilots that are on their way."""

    strategy: StrategyVersion
    endpoint: Endpoint
    foreseen: RunEstimate
    pilots: list[Run]

    @property
    def pilot_items(self) -> int:
        return min(self.foreseen.pilot_items, self.foreseen.items)

    @property
    def wants_pilot(self) -> bool:
        """Whether a pilot would tell more than is known, which costs what its calls cost."""
        told = self.foreseen.pilot.is_enough or self.pilots
        return not (told or self.endpoint.is_offline) and self.foreseen.to_ask > PILOT_CALLS


def build_pairs(wish: NewRuns) -> list[tuple[StrategyVersion, Endpoint]]:
    """The runs of a wish: baselines go to the baseline, all else to all other endpoints.

    Raises `Refused` where a strategy or an endpoint would be left alone.
    """
    found = [pair for pair in product(wish.strategies, wish.endpoints) if _is_compatible(*pair)]
    for strategy in wish.strategies:
        if strategy not in {pair[0] for pair in found}:
            wanted = "baseline" if strategy.strategy().metric else "an evaluator LLM"
            raise Refused(f"Strategy {strategy.slug} needs {wanted}. Choose such an endpoint too.")
    for endpoint in wish.endpoints:
        if endpoint not in {pair[1] for pair in found}:
            raise Refused(f"None of the chosen strategies can be used with {endpoint.name}.")
    if len(found) > MAX_RUNS:
        raise Refused(f"This would start {len(found)} runs. Start at most {MAX_RUNS} at once.")
    return found


def estimate_runs(project: Project, wish: NewRuns) -> list[PlannedRun]:
    """What each run of the wish would ask. Raises `Refused` like `runs.start_run`, but for caps and
    items that people are still labelling, which it only counts."""
    return list(_estimate_each(project, wish))


def start_pilots(project: Project, wish: NewRuns, member: Membership | None) -> list[Run]:
    """A pilot of some 30 calls for each run that has none; those that were started.

    A pilot is over a part of the run's own items, so that nothing of it is paid for twice.
    """
    if wish.canary:
        raise Refused(
            "A canary needs no pilot: it is just as small. Start it; its page shows the cost."
        )
    wanted = [one for one in _estimate_each(project, wish) if one.wants_pilot]
    _check(project, wish, wanted, member)
    return [
        lifecycle.start_run(
            project,
            strategy=one.strategy,
            endpoint=one.endpoint,
            member=member,
            options=replace(wish.options(one.strategy), limit=one.pilot_items, pilot=True),
        )
        for one in wanted
    ]


def start_runs(project: Project, wish: NewRuns, member: Membership | None) -> list[Run]:
    """The runs of a wish. Raises `Refused` like `runs.start_run`, and then starts none of them;
    only what changed in that very moment can refuse a later one, and the message says what was
    started.
    """
    found = build_pairs(wish)
    if len(found) > 1:
        _check(project, wish, list(_estimate_each(project, wish)), member)
    begin = canaries.start_canary if wish.canary else lifecycle.start_run
    begun: list[Run] = []
    for strategy, endpoint in found:
        options = wish.options(strategy)
        try:
            begun.append(
                begin(project, strategy=strategy, endpoint=endpoint, member=member, options=options)
            )
        except Refused as problem:
            raise Refused(_explain_partial(begun, problem)) from problem
    return begun


def _explain_partial(begun: Sequence[Run], problem: Refused) -> str:
    if not begun:
        return str(problem)
    numbers = ", ".join(str(run.number) for run in begun)
    return f"Already started: run {numbers}. The next one was refused: {problem}"


def _is_compatible(strategy: StrategyVersion, endpoint: Endpoint) -> bool:
    return bool(strategy.strategy().metric) == (endpoint.provider == "baseline")


def _estimate_each(project: Project, wish: NewRuns) -> Iterator[PlannedRun]:
    # Any occasion will do to foresee a canary: none of its requests was ever asked.
    occasion = "foreseen" if wish.canary else ""
    for strategy, endpoint in build_pairs(wish):
        options = replace(wish.options(strategy), occasion=occasion)
        foreseen = estimate.estimate_run(
            project, strategy=strategy, endpoint=endpoint, options=options
        )
        yield PlannedRun(
            strategy, endpoint, foreseen, _list_open_pilots(project, strategy, endpoint)
        )


def _list_open_pilots(project: Project, strategy: StrategyVersion, endpoint: Endpoint) -> list[Run]:
    """Pilots of such a run that did not end yet."""
    open_states = [Run.State.PLANNING, Run.State.RUNNING, Run.State.PAUSED]
    mine = Run.objects.in_project(project).filter(strategy=strategy, endpoint=endpoint)
    return list(mine.filter(pinned__pilot=True, state__in=open_states).order_by("number"))


def _check(
    project: Project, wish: NewRuns, wanted: Sequence[PlannedRun], member: Membership | None
) -> None:
    """Raise `Refused` for what `runs.start_run` would refuse, before the first of several
    starts."""
    for one in wanted:
        labelling, allowed = one.foreseen.labelling, wish.while_labelling
        start_checks.check_labelling(labelling, allowed=allowed, member=member)
        if wish.cap is not None:
            start_checks.check_prices(one.endpoint)
        start_checks.check_budget(project, one.endpoint)


def sum_costs(askings: Sequence[PlannedRun]) -> CostEstimate | None:
    """What all of them cost by their pilots; None where one of them does not say.

    The ends of the interval are sums of ends, so it is rather too wide.
    """
    found = [one.foreseen.by_pilot for one in askings]
    if not found or None in found:
        return None
    amounts = [one for one in found if one]
    return CostEstimate(
        value=sum((one.value for one in amounts), Decimal(0)),
        low=sum((one.low for one in amounts), Decimal(0)),
        high=sum((one.high for one in amounts), Decimal(0)),
    )
