"""Estimate the cost of several runs, and start them together.

A `NewRuns` describes one run for each compatible pair of a strategy and an endpoint. All of these
runs are checked before the first run starts, so that an impossible request is refused as a whole.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import product
from threading import BoundedSemaphore

from annotation.db import transactions
from annotation.models import Membership, Project
from judging.errors import Refused
from judging.models import Endpoint, Run, StrategyVersion
from judging.runs import canaries, descriptions, estimate, lifecycle, start_checks
from judging.runs.amounts import format_amount
from judging.runs.estimate import PILOT_CALLS, RunEstimate, Shortage
from judging.runs.lifecycle import RunConfig
from judging.runs.run_config import describe_axes

# A request for more runs at once is probably a mistake.
MAX_RUNS = 40
# Estimates of large projects render hundreds of thousands of prompts. If all threads of the server
# did that, nobody else would get an answer. Further ones wait for at most so many seconds.
_ESTIMATES = BoundedSemaphore(2)
WAIT_SECONDS = 3.0


@dataclass(frozen=True, kw_only=True)
class NewRuns:
    """The strategies and endpoints to run, with the configuration of the runs; a `canary` sends
    answered requests again. `drawn` are the digests of the items of each run that was estimated, ()
    if that does not matter."""

    strategies: Sequence[StrategyVersion]
    endpoints: Sequence[Endpoint]
    config: RunConfig
    canary: bool = False
    drawn: Sequence[str] = ()

    def config_for(self, strategy: StrategyVersion) -> RunConfig:
        """The configuration of a run with this strategy. Axes, shares and a language chosen for
        several strategies are for those that have such axes and draws, or translate."""
        asked = strategy.strategy()
        checks = not self.canary and asked.frame == "explanation"
        own, every = self.config.own, [one.strategy() for one in self.strategies]
        if not asked.axes and any(one.axes for one in every):
            own = replace(own, axes=None)
        if not asked.translates and any(one.translates for one in every):
            own = replace(own, language="")
        of_others = {draw.name for one in every for draw in one.draws}
        of_others -= {draw.name for draw in asked.draws}
        kept = {name: shares for name, shares in own.draws.items() if name not in of_others}
        return replace(
            self.config,
            limit=self.config.limit or (canaries.DEFAULT_ITEMS if self.canary else None),
            over=self.config.over if checks else None,
            own=replace(own, draws=kept),
        )


@dataclass(frozen=True)
class PlannedRun:
    """A new run before its start, with those of its pilots that are in progress.

    `language` is what it translates into, "" if it translates nothing. `refusal` says why the run
    cannot start, since a cap or the budget cannot be enforced; "" if it can. `shortages` are the
    limits that its price may exceed.
    """

    strategy: StrategyVersion
    endpoint: Endpoint
    estimate: RunEstimate
    pilots: list[Run]
    refusal: str
    shortages: Sequence[Shortage]
    language: str = ""

    @property
    def title(self) -> str:
        """The strategy's title, the language of a translation, and the endpoint, to name a line of
        the estimate."""
        language = f" into {self.language}" if self.language else ""
        return f"{self.strategy.strategy().title}{language} at {self.endpoint.name}"

    @property
    def along(self) -> str:
        """The axes about which the run asks, in words; "" without any."""
        return describe_axes(self.strategy.strategy(), self.estimate.axes)

    @property
    def wants_pilot(self) -> bool:
        """True if a pilot would improve the estimate. The calls of a pilot must be paid for."""
        told = self.estimate.pilot.is_enough or self.pilots
        is_large = self.estimate.to_ask > PILOT_CALLS and self.estimate.pilot_calls > 0
        return not (told or self.endpoint.is_offline) and is_large


def build_pairs(wish: NewRuns) -> list[tuple[StrategyVersion, Endpoint]]:
    """Build the pairs of strategy and endpoint: metrics with the baseline, all other strategies
    with evaluators.

    Raises `Refused` for a strategy or an endpoint without a partner, and for more than MAX_RUNS
    pairs.
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
    """Estimate what each of the new runs would request. Raises `Refused` like
    `lifecycle.start_run`, but not for caps, which are noted, or for items that are still being
    labelled, which are only counted; and if too many runs are being estimated."""
    _check_name(project, wish)
    if not _ESTIMATES.acquire(timeout=WAIT_SECONDS):
        raise Refused("Other runs are being estimated. Try again in a moment.")
    try:
        return list(_estimate_each(project, wish))
    finally:
        _ESTIMATES.release()


def has_other_items(project: Project, wish: NewRuns) -> bool:
    """True if the new runs would have other items than those that were estimated, or other texts of
    them. Raises `Refused` like `estimate_runs`."""
    return bool(wish.drawn) and [*wish.drawn] != _draw_digests(project, wish)


def _draw_digests(project: Project, wish: NewRuns) -> list[str]:
    """Draw the items of each of the new runs, and return their digests: those of `estimate_runs` as
    long as no item was added, changed, labelled or removed."""
    found = []
    for strategy, endpoint in build_pairs(wish):
        config = wish.config_for(strategy)
        asked = config.draft(project, strategy, endpoint).pinned_strategy()
        found.append(config.draw(project, asked, config.seed or 0).digest())
    return found


def start_pilots(project: Project, wish: NewRuns, member: Membership | None) -> list[Run]:
    """Start a pilot for each run that needs one; return the started pilots.

    A pilot sends the calls that are missing until 30 are answered. It covers a part of the run's
    own items, so that no call is paid for twice.
    """
    if wish.canary:
        raise Refused(
            "A canary needs no pilot, because it is just as small. Start it; its page shows the "
            "cost."
        )
    wanted = [one for one in _estimate_each(project, wish) if one.wants_pilot]
    _check(project, wish, wanted, member)
    begun = []
    for one in wanted:
        with transactions.transact():
            # Locked, so that of two who ask for a pilot at the same moment only one starts it.
            Project.objects.select_for_update(no_key=True).only("pk").get(pk=project.pk)
            if _list_open_pilots(project, one.strategy, one.endpoint):
                continue
            config = replace(
                wish.config_for(one.strategy),
                pilot_items=one.estimate.pilot_items,
                # The items that were estimated, also without a seed.
                seed=wish.config.seed or 0,
                pilot=True,
            )
            begun.append(
                lifecycle.start_run(
                    project,
                    strategy=one.strategy,
                    endpoint=one.endpoint,
                    member=member,
                    config=config,
                )
            )
    return begun


def start_runs(project: Project, wish: NewRuns, member: Membership | None) -> list[Run]:
    """Start the new runs. If it raises `Refused` like `lifecycle.start_run`, no run was started,
    unless something changed between the check and the start. In that case the message says which
    runs were started."""
    found = build_pairs(wish)
    _check_name(project, wish)
    if len(found) > 1:
        _check(project, wish, list(_estimate_each(project, wish)), member)
    begin = canaries.start_canary if wish.canary else lifecycle.start_run
    begun: list[Run] = []
    for strategy, endpoint in found:
        config = wish.config_for(strategy)
        try:
            begun.append(
                begin(project, strategy=strategy, endpoint=endpoint, member=member, config=config)
            )
        except Refused as problem:
            raise Refused(_explain_partial(begun, problem)) from problem
    return begun


def _check_name(project: Project, wish: NewRuns) -> None:
    """Raise `Refused` for a name that is taken, or that several runs would have."""
    name = descriptions.clean_name(wish.config.name)
    if name and (number := len(build_pairs(wish))) > 1:
        raise Refused(
            f"{number} runs would start, and each name is for one run. Leave the name empty and "
            "name the runs on their pages; tags and note go to all of them."
        )
    descriptions.check_name_free(project, name)


def _explain_partial(begun: Sequence[Run], problem: Refused) -> str:
    if not begun:
        return str(problem)
    numbers = ", ".join(str(run.number) for run in begun)
    return f"Already started: run {numbers}. The next one was refused: {problem}"


def _is_compatible(strategy: StrategyVersion, endpoint: Endpoint) -> bool:
    return bool(strategy.strategy().metric) == (endpoint.provider == "baseline")


def _estimate_each(project: Project, wish: NewRuns) -> Iterator[PlannedRun]:
    # Any unused occasion is good enough to estimate a canary, since no request with this occasion
    # was ever sent.
    occasion = "estimate" if wish.canary else ""
    for strategy, endpoint in build_pairs(wish):
        config = replace(wish.config_for(strategy), occasion=occasion)
        estimated = estimate.estimate_run(
            project, strategy=strategy, endpoint=endpoint, config=config
        )
        named = f"The cap of {format_amount(config.cap or Decimal(0))}"
        yield PlannedRun(
            strategy,
            endpoint,
            estimated,
            _list_open_pilots(project, strategy, endpoint),
            _explain_refusal(project, endpoint, config),
            estimate.find_shortages(project, estimated, named, config.cap),
            config.own.language,
        )


def _explain_refusal(project: Project, endpoint: Endpoint, config: RunConfig) -> str:
    try:
        if config.cap is not None:
            start_checks.check_prices(endpoint)
        start_checks.check_budget(project, endpoint)
    except Refused as why:
        return str(why)
    return ""


def _list_open_pilots(project: Project, strategy: StrategyVersion, endpoint: Endpoint) -> list[Run]:
    """List the pilots of this strategy and endpoint that have not ended yet."""
    open_states = [Run.State.PLANNING, Run.State.RUNNING, Run.State.PAUSED]
    mine = Run.objects.in_project(project).filter(strategy=strategy, endpoint=endpoint)
    return list(mine.filter(pinned__pilot=True, state__in=open_states).order_by("number"))


def _check(
    project: Project, wish: NewRuns, wanted: Sequence[PlannedRun], member: Membership | None
) -> None:
    """Raise `Refused` if `lifecycle.start_run` would refuse a run, before the first of several runs
    starts."""
    for one in wanted:
        labelling, allowed = one.estimate.labelling, wish.config.while_labelling
        start_checks.check_labelling(labelling, allowed=allowed, member=member)
        if one.refusal:
            raise Refused(one.refusal)
