"""The life of a run: start, plan, pause, resume, move, cancel, retry, finish."""

import logging
import secrets
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from django.db import InterfaceError, OperationalError
from django.db.models import Max
from django.utils import timezone

from annotation.db import batches, bulk, clock, transactions
from annotation.models import Event, Membership, Project
from judging.errors import Refused
from judging.evaluators.providers.errors import Rejected
from judging.evaluators.providers.parameters import find_refused, instead_of
from judging.models import Call, Endpoint, Outcome, Request, Run, StrategyVersion
from judging.runs import (
    budget,
    derived,
    descriptions,
    former_results,
    pinning,
    run_config,
    run_items,
    spending,
    start_checks,
)
from judging.runs.engine import outcomes
from judging.runs.models import PAUSED_BY_HAND
from judging.runs.run_config import NO_OVERRIDES, RunOverrides
from judging.runs.run_items import DrawnItems
from judging.runs.transitions import change_state, record_event, was_finished
from judging.strategies import Strategy, frames
from judging.strategies.definitions import MAX_SAMPLES
from judging.strategies.replies.outputs import strip_unstorable

log = logging.getLogger(__name__)

PILOT = "pilot"
# States in which a run may have requests that failed for good.
RETRY_STATES = frozenset({Run.State.RUNNING, Run.State.PAUSED, Run.State.FINISHED})
# States in which a run may move to another endpoint if no request of the run was answered.
MOVABLE_STATES = frozenset({Run.State.PAUSED, Run.State.FINISHED})
# For each kind of run that calls no evaluator, the reason why.
UNASKED_REASONS: dict[str, str] = {
    Run.Kind.RECORDED: "was imported",
    Run.Kind.DERIVED: "is combined from other runs and sends no requests",
}
# The maximum number of different messages about failed requests to read.
MAX_MESSAGES = 10
# The first characters of an error that a pause reason quotes.
MAX_ERROR_LENGTH = 200
# Calls are planned in small transactions, so that the write lock is never held for long.
BATCH = 200
# A batch ends early once its texts, which are all in memory, have so many characters: some have
# megabytes each. So many outcomes are read at once.
MAX_TEXT_LENGTH, CHUNK = 20_000_000, 20
# From this number of outcomes on, planning changes the tables so much that PostgreSQL needs new
# statistics.
ANALYZE_FROM = 1_000


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The configuration of a run besides its strategy and endpoint, from the form to what the run
    pins.

    A run covers the project's judgeable items, or only those in `items`, or only those of the run
    `same_as` in their current texts, or a random sample of `limit` of these. An explanation check
    is `over` a finished run, and covers the items that this run scored equal to gold. `samples` is
    the number of samples of each call, by default the strategy's number. With an `occasion`,
    answered requests are sent again. `own` overrides the strategy and the endpoint. A `pilot` only
    measures the usage of calls, so lists and figures leave it out, and it gets no name, tags or
    note; it covers the first `pilot_items` of the run's items. What a generator draws for an item
    of `same_as` stays, if the shares do.
    """

    seed: int | None = None
    limit: int | None = None
    with_duplicates: bool = False
    items: Collection[int] | None = None
    over: Run | None = None
    same_as: Run | None = None
    samples: int | None = None
    own: RunOverrides = NO_OVERRIDES
    occasion: str = ""
    pilot: bool = False
    pilot_items: int | None = None
    cap: Decimal | None = None
    while_labelling: bool = False
    name: str = ""
    tags: Sequence[str] = ()
    note: str = ""

    def draft(
        self, project: Project, strategy: StrategyVersion, endpoint: Endpoint, **values: Any
    ) -> Run:
        """Build the unsaved run, without its items, as `pinning.draft_run` does. Raises `Refused`
        also for a number of samples that is not allowed, and for a translation without a
        language."""
        if self.samples is not None:
            if not 1 <= self.samples <= MAX_SAMPLES:
                raise Refused(f"Choose 1 to {MAX_SAMPLES} samples per call.")
            values["samples"] = self.samples
        asked = strategy.strategy()
        pinning.check_language(asked, self.own.language)
        own = run_config.choose_axes(asked, self.own)
        return pinning.draft_run(
            project, strategy, endpoint, own=own, occasion=self.occasion, **values
        )

    def draw(
        self, project: Project, asked: Strategy, seed: int, *, one_axis: bool = False
    ) -> DrawnItems:
        """Draw the items of a run with `seed`; with `one_axis`, each along one axis only. Raises
        `Refused` if there are no items or too many calls."""
        if asked.frame == "explanation":
            if self.same_as:
                raise Refused(
                    f"Strategy {asked.slug} checks the explanations of one run and covers its "
                    "items. Do not choose the items of another run as well."
                )
            if self.over is None:
                raise Refused(
                    f"Strategy {asked.slug} needs a finished run whose explanations it checks. "
                    "Choose one; on the command line with --over."
                )
            limit = self.limit if self.pilot_items is None else self.pilot_items
            return run_items.draw_for_check(
                self.over, asked, seed=seed, limit=limit, samples=self.samples
            )
        only, same = self.items, set[int]()
        if self.same_as:
            same = set(self.same_as.outcomes.values_list("item", flat=True))
            only = same if only is None else same.intersection(only)
        drawn = run_items.draw_items(
            project,
            asked,
            seed=seed,
            limit=self.limit,
            # The earlier run may have included duplicates.
            with_duplicates=self.with_duplicates or self.same_as is not None,
            only=only,
            own=run_config.choose_axes(asked, self.own),
            pilot_items=self.pilot_items,
            like=self.same_as,
            samples=self.samples,
            one_axis=one_axis,
        )
        if self.same_as and drawn.items == same:
            return replace(drawn, sample=self.same_as.pinned.get(run_config.SAMPLE_KEY))
        return drawn


DEFAULT_CONFIG = RunConfig()


def start_run(
    project: Project,
    *,
    strategy: StrategyVersion,
    endpoint: Endpoint,
    member: Membership | None = None,
    config: RunConfig = DEFAULT_CONFIG,
) -> Run:
    """Start a new run. Everything that the run depends on is pinned at once, in one transaction;
    the next worker plans its calls.

    Raises `Refused` if there are no items or too many calls, a cap cannot be enforced, another run
    has the name, or the items are still being labelled and no lead allows it by `while_labelling`.
    """
    seed = secrets.randbits(48) if config.seed is None else config.seed
    run = config.draft(project, strategy, endpoint, member=member, cap=config.cap, seed=seed)
    if config.pilot:
        run.pinned[PILOT], run.archived_at = True, timezone.now()
    else:
        descriptions.set_description(run, config.name, config.tags, config.note)
    return _store_draft(
        run,
        lambda: config.draw(project, run.pinned_strategy(), run.seed),
        sources=[config.over] if config.over else [],
        allowed=config.while_labelling,
    )


def clone_run(
    run: Run,
    member: Membership | None,
    *,
    endpoint: Endpoint | None = None,
    as_pinned: bool = False,
    cap: Decimal | None = None,
    occasion: str = "",
    while_labelling: bool = False,
) -> Run:
    """Start a new run of the same strategy version over the same items. The new run uses the items'
    current revisions, or the pinned revisions and examples; it calls the same endpoint with its
    current settings, or another endpoint.

    Answered requests are not sent again. But with an `occasion`, all requests are sent again as
    pinned, and the new run records which run it repeats. Raises `Refused` like `start_run`, and for
    a run that called no evaluator.
    """
    _check_asked(run, "cloned")
    endpoint = endpoint or run.endpoint
    if as_pinned or occasion:
        return _clone_as_pinned(
            run, endpoint, member, cap=cap, occasion=occasion, allowed=while_labelling
        )
    is_check = run.pinned_strategy().frame == "explanation"
    config = RunConfig(
        cap=cap,
        seed=run.seed,
        samples=run.samples,
        over=run.sources.first() if is_check else None,
        while_labelling=while_labelling,
        same_as=None if is_check else run,
        own=run_config.load_overrides(run.pinned),
    )
    return start_run(
        run.project, strategy=run.strategy, endpoint=endpoint, member=member, config=config
    )


def restart_without_parameter(run: Run, member: Membership | None) -> Run:
    """Start a new run in place of this run, which is cancelled if it has not ended. The new run
    covers exactly the pinned texts. It leaves out the parameter that the evaluator refused, or
    sends the token limit under the name that the evaluator asked for.

    Raises `Refused` if no parameter was refused, and in the same cases as `start_run`.
    """
    with transactions.transact():
        # If two people press the button at the same time, only one of them succeeds.
        Project.objects.select_for_update(no_key=True).only("pk").get(pk=run.project_id)
        # Calls may have ended while this waited, and those in flight may still be charged.
        run.refresh_from_db(fields=["cap", "spent", "reserved"])
        cap = spending.compute_left(run)
        failed = Request.objects.wanted_by(run).filter(state="failed").failure_messages()
        name, instead = find_refused_parameter(run, failed[:MAX_MESSAGES])
        if not name:
            raise Refused(
                f"This cannot be done: no parameter of run {run.number} was refused, the run is "
                "cancelled, or another run already leaves the parameter out."
            )
        own = run_config.load_overrides(run.pinned)
        kept = {instead: run.sends()[name]} if instead else {}
        own = replace(own, parameters={**own.parameters, name: None, **kept})
        copy = _draft_clone(run, run.endpoint, member, cap=cap, occasion=run.occasion, own=own)
        if run.pinned.get(PILOT):
            copy.pinned[PILOT], copy.archived_at = True, timezone.now()
        copy = _store_draft(
            copy,
            lambda: run_items.draw_as_pinned(run),
            sources=run.sources.all(),
            allowed=run.while_labelling,
            instead_of=run.number,
            without=name,
            **({"with": instead} if instead else {}),
        )
        if run.finished_at is None:
            way = f"with {instead} instead of" if instead else "without"
            cancel(run, member, reason=f"Run {copy.number} continues {way} {name}.")
    return copy


def find_refused_parameter(run: Run, failed: Iterable[Mapping[str, Any]]) -> tuple[str, str]:
    """Find the parameter of ours that the evaluator refused, and the parameter to send instead, ""
    for none, in the causes and messages of the run's `failed` requests. Both are "" if no parameter
    was refused, the run is planning or cancelled, or another run has already replaced it, and for a
    run with supplements: its own parameters were accepted."""
    if run.state not in RETRY_STATES or run_config.SUPPLEMENTS_KEY in run.pinned:
        return "", ""
    words = (row["message"] for row in failed if row["cause"] == Rejected.cause)
    said = ((find_refused(one, run.sends()), one) for one in words)
    name, told = next((pair for pair in said if pair[0]), ("", ""))
    taken = Event.objects.filter(
        project=run.project_id, kind="run started", data__instead_of=run.number
    )
    return ("", "") if not name or taken.exists() else (name, instead_of(told, name))


def _clone_as_pinned(
    run: Run,
    endpoint: Endpoint,
    member: Membership | None,
    *,
    cap: Decimal | None,
    occasion: str,
    allowed: bool,
) -> Run:
    own = run_config.load_overrides(run.pinned)
    copy = _draft_clone(run, endpoint, member, cap=cap, occasion=occasion, own=own)
    sources = [run] if occasion else list(run.sources.all())
    return _store_draft(
        copy, lambda: run_items.draw_as_pinned(run), sources=sources, allowed=allowed
    )


def _draft_clone(
    run: Run,
    endpoint: Endpoint,
    member: Membership | None,
    *,
    cap: Decimal | None,
    occasion: str,
    own: RunOverrides,
) -> Run:
    copy = pinning.draft_run(
        run.project,
        run.strategy,
        endpoint,
        member=member,
        cap=cap,
        seed=run.seed,
        samples=run.samples,
        occasion=occasion,
        own=own,
    )
    # A later renderer may show more of an item, and an answer to that is no drift.
    copy.renderer = run.renderer
    return copy


def _store_draft(
    run: Run, draw: Callable[[], DrawnItems], *, sources: Iterable[Run], allowed: bool, **noted: Any
) -> Run:
    """Check and store a draft; `noted` is added to its event in the audit log."""
    if run.strategy.project_id not in {None, run.project_id}:
        raise Refused(
            f"Strategy {run.strategy.slug} belongs to another project. Copy it to this project "
            "first."
        )
    start_checks.check_endpoint(
        run.pinned_strategy(), run.endpoint, run.cap, parameters=run.pinned["parameters"]
    )
    start_checks.check_budget(run.project, run.endpoint)
    with transactions.transact():
        Project.objects.select_for_update(no_key=True).only("pk").get(pk=run.project_id)
        _check_not_deleted(run)
        start_checks.check_not_archived(run.endpoint)
        descriptions.check_name_free(run.project, run.name)
        drawn = draw()
        labelling = start_checks.count_being_labelled(run, drawn.items)
        start_checks.check_labelling(labelling, allowed=allowed, member=run.member)
        run.while_labelling = labelling > 0
        pinning.store_run(run, drawn, sources=sources)
        said = noted | ({"labelling": labelling} if labelling else {})
        record_event("run started", run, run.member, items=len(drawn.items), **said)
    return run


def _check_not_deleted(run: Run) -> None:
    """Raise `Refused` for a strategy that was deleted after it was chosen."""
    version = run.strategy
    if version.project_id and StrategyVersion.objects.deleted(run.project).contains(version):
        raise Refused(f"Strategy {version.slug} has been deleted. Restore it first.")


def plan_calls(run: Run, *, keep_on: Callable[[], bool] = lambda: True) -> None:
    """Create the calls of a new run, batch by batch, while `keep_on` returns True.

    An interrupted plan continues where it stopped.
    """
    strategy = run.pinned_strategy()
    planned = run.calls.aggregate(last=Max("outcome"))["last"] or 0
    taken, at_once = 0, BATCH
    while Run.objects.planning().filter(pk=run.pk).exists() and keep_on():
        later = run.outcomes.pending().filter(pk__gt=planned).select_related("revision")
        batch = _take_batch(later.order_by("pk")[:at_once].iterator(CHUNK))
        if not batch:
            _analyze_calls(run.outcomes.count())
            Run.objects.planning().filter(pk=run.pk).update(state=Run.State.RUNNING, reason="")
            break
        # A run that is planned cannot be paused. What cannot be decided stays pending, and
        # `finish_if_done` pauses the run.
        settle_or_pause(outcomes.start_outcomes(run, strategy, batch))
        planned, at_once = batch[-1].pk, min(BATCH, 2 * len(batch))
        taken += 1
        if taken.bit_count() == 1:
            _analyze_calls(taken * BATCH)
    run.refresh_from_db(fields=["state"])
    if run.state == Run.State.RUNNING:
        finish_if_done(run)


def _take_batch(later: Iterable[Outcome]) -> list[Outcome]:
    """Return the first of the outcomes, as many as have `MAX_TEXT_LENGTH` characters together."""
    batch, length = list[Outcome](), 0
    for outcome in later:
        batch.append(outcome)
        length += len(str(outcome.revision.texts))
        if length >= MAX_TEXT_LENGTH:
            break
    return batch


def _analyze_calls(planned: int) -> None:
    """Update PostgreSQL's statistics for the planned calls, which leases and pages look up. The
    planner calls this each time the number of batches reaches a power of two, and at the end."""
    if planned >= ANALYZE_FROM:
        bulk.analyze_tables(*(model._meta.db_table for model in (Outcome, Call, Request)))


def pause(run: Run, member: Membership | None, *, reason: str = PAUSED_BY_HAND) -> None:
    """Start no further calls. With the default reason (by hand), calls in flight are cancelled and
    sent again on resume, unless another run wants them. With any other reason, calls in flight end
    normally and their replies are kept.
    """
    change_state(run, {Run.State.RUNNING}, Run.State.PAUSED, member, reason=reason)


def resume(run: Run, member: Membership | None, *, cap: Decimal | None = None) -> None:
    """Resume a paused run. A given `cap` replaces the current cap and must not be lower. If no
    request was answered, requests that wait for another try get all of their tries again, since
    their failures paused the run."""
    _check_asked(run, "resumed")
    with transactions.transact():
        # Do this before the run is locked, because code that stores replies locks in this order
        # too.
        if not run.was_answered():
            Request.objects.wanted_by(run).try_afresh(clock.now())
        if cap is not None:
            budget.raise_cap(run, cap, member)
        change_state(run, {Run.State.PAUSED}, Run.State.RUNNING, member)
    run.refresh_from_db(fields=["cap"])
    finish_if_done(run)


def is_unanswered(run: Run) -> bool:
    """True if no request of the run was ever answered, not even for another run."""
    return not run.calls.filter(request__state="answered").exists()


def move_to_endpoint(run: Run, endpoint: Endpoint, member: Membership | None) -> None:
    """Move a run to another endpoint, if no request of the run was answered; its calls are planned
    again. Items, revisions, strategy, examples, samples and seed stay as pinned.

    Raises `Refused` if there is an answer, calls are in flight, other runs depend on it, or the
    endpoint cannot be used.
    """
    _check_asked(run, "moved")
    if endpoint.pk == run.endpoint_id:
        raise Refused(f"Run {run.number} already uses {endpoint.name}. Choose another endpoint.")
    pinned = pinning.repin_endpoint(run, endpoint)
    start_checks.check_endpoint(
        run.pinned_strategy(), endpoint, run.cap, parameters=pinned["parameters"]
    )
    start_checks.check_budget(run.project, endpoint)
    with transactions.transact():
        start_checks.check_not_archived(endpoint)
        # Like a retry, lock the outcomes before the run, and in the order in which outcomes are
        # decided.
        list(run.outcomes.order_by("pk").select_for_update(no_key=True).values_list("pk"))
        held = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
        _check_movable(held)
        held.calls.all().delete()
        held.outcomes.settled().reopen()
        old = {"endpoint": run.endpoint.name, "state": held.state}
        held.endpoint, held.pinned, held.renderer = endpoint, pinned, frames.RENDERER
        held.state, held.reason, held.finished_at = Run.State.PLANNING, "", None
        held.digest = pinning.compute_digest(held)
        changed = ("endpoint", "pinned", "renderer", "state", "reason", "finished_at", "digest")
        held.save(update_fields=changed)
        new = {"endpoint": endpoint.name, "state": held.state}
        record_event("run moved", held, member, old=old, new=new)
    run.refresh_from_db()


def is_archived_by_hand(run: Run) -> bool:
    """True if a person archived the run; pilots are archived when they start."""
    return run.archived_at is not None and PILOT not in run.pinned


def _check_movable(run: Run) -> None:
    """Raise `Refused` if anything depends on the requests that the run has sent so far."""
    instead = "Clone it with another endpoint instead."
    if run.state not in MOVABLE_STATES:
        raise Refused(f"Run {run.number} is {run.state}. Pause it before you move it.")
    if not is_unanswered(run):
        raise Refused(f"Run {run.number} already has answers. {instead}")
    if is_archived_by_hand(run):
        raise Refused(f"Run {run.number} is archived. Unarchive it before you move it.")
    if run.occasion and run.sources.exists():
        raise Refused(f"Run {run.number} repeats a canary at the same evaluator. {instead}")
    if run.derived.exists():
        raise Refused(f"Other runs depend on run {run.number}. {instead}")
    if Request.objects.filter(leased_for=run, state="leased").exists():
        raise Refused(f"Calls of run {run.number} are still in flight. Try again in a minute.")


def cancel(run: Run, member: Membership | None, *, reason: str = "") -> None:
    """Cancel a run for good. Answers are kept, and no more requests are sent. Calls in flight are
    cancelled, unless another run wants them.

    If the run was finished before, only its retry is cancelled: the run is finished again, its
    requests without an answer failed as before, and the answers that came count. Raises `Refused`
    while its replies are parsed again.
    """
    open_states = {Run.State.PLANNING, Run.State.RUNNING, Run.State.PAUSED}
    with transactions.transact():
        again = was_finished(run)
        if again:
            former_results.lock_requests(run)
        change_state(run, open_states, Run.State.CANCELLED, member, reason=reason)
        if not again:
            return
        run.refresh_from_db(fields=["pinned"])
        if outcomes.PROGRESS_KEY in run.pinned:
            raise Refused(
                f"The replies of run {run.number} are being parsed again. Wait until it is "
                "finished."
            )
        former_results.restore(run)
        if not run.outcomes.pending().exists():
            derived.refresh_dependants(run)
            change_state(run, {Run.State.CANCELLED}, Run.State.FINISHED, member)


def retry_failed(run: Run, member: Membership | None, *, timeout: int | None = None) -> int:
    """Send the run's failed requests again; return their number. With a `timeout`, the run's calls
    may take so many seconds from now on, whatever its endpoint allows.

    The run's missing outcomes are decided again, including outcomes that another run's retry has
    fixed. Other runs that share the requests keep their outcomes until these runs are retried too.
    Raises `Refused` if there is nothing to retry; a request with an unusable reply is not sent
    again.
    """
    _check_asked(run, "asked again")
    with transactions.transact():
        if not run.was_answered():
            Request.objects.wanted_by(run).try_afresh(clock.now())
        ids, unsure = lock_unsure(run)
        if not ids and not run.outcomes.mended().exists():
            raise Refused("This run has no failed requests.")
        said: dict[str, Any] = {} if timeout is None else {"timeout": timeout}
        change_state(run, RETRY_STATES, Run.State.RUNNING, member, requests=len(ids), **said)
        if timeout is not None:
            run.refresh_from_db(fields=["pinned"])
            run.pinned[run_config.TIMEOUT_KEY] = timeout
            run.save(update_fields=["pinned"])
        former_results.keep_and_reopen(run, unsure)
        for part in batches.make_batches(ids, 500):
            Request.objects.filter(pk__in=part).ask_again(clock.now())
    finish_if_done(run)
    return len(ids)


def lock_unsure(run: Run) -> tuple[list[int], list[int]]:
    """Lock and return the ids of the run's failed requests, and of the outcomes that a retry
    decides again. Whoever reopens outcomes calls this before locking the run, so that two such
    transactions do not deadlock."""
    failed = Request.objects.wanted_by(run).filter(state="failed").order_by("pk")
    ids = list(failed.select_for_update(no_key=True).values_list("pk", flat=True))
    # A worker may just be deciding an outcome from a failure that a retry undoes: wait for it.
    return ids, run.outcomes.lock_unsure()


def _check_asked(run: Run, what: str) -> None:
    """Raise `Refused` for a run that called no evaluator."""
    if why := UNASKED_REASONS.get(run.kind):
        raise Refused(f"Run {run.number} {why}, so it cannot be {what}. Start a new run instead.")


def settle_or_pause(outcome_ids: Sequence[int]) -> int:
    """Decide pending outcomes, as `outcomes.settle` does; return how many.

    If that fails, the outcomes of each run are decided by themselves, and the runs that fail are
    paused: a fault in one run does not stop the others. A lost connection is raised.
    """
    try:
        return outcomes.settle(outcome_ids)
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        log.warning(
            "Outcomes could not be decided together; deciding each run by itself.", exc_info=True
        )
    by_run: dict[int, list[int]] = defaultdict(list)
    pending = Outcome.objects.pending().filter(pk__among=list(outcome_ids))
    for run_id, pk in pending.values_list("run", "pk"):
        by_run[run_id].append(pk)
    decided = 0
    for run in Run.objects.filter(pk__in=by_run).order_by("pk"):
        try:
            decided += outcomes.settle(by_run[run.pk])
        except (OperationalError, InterfaceError):
            raise
        except Exception as error:
            _pause_undecided(run, error)
    return decided


def _pause_undecided(run: Run, error: Exception) -> None:
    """Log the error that is being handled, and pause the run if it is running. A worker would meet
    the error again in each slice."""
    log.exception(
        "An outcome of run %s of project %s could not be decided.", run.number, run.project.slug
    )
    told = _describe_fault("An outcome could not be decided", error)
    with suppress(Refused):
        pause(
            run, None, reason=f"{told} All replies are kept. Once the fault is corrected, resume."
        )


def explain_unplanned(run: Run, error: Exception) -> None:
    """Log the error that is being handled, and show it on the page of the run, which waits for
    another try."""
    log.exception("Run %s of project %s could not be planned.", run.number, run.project.slug)
    told = _describe_fault("Its calls could not be planned", error)
    again = "This is tried again until it succeeds or you cancel the run."
    Run.objects.planning().filter(pk=run.pk).update(reason=f"{told} {again}")


def _describe_fault(failed: str, error: Exception) -> str:
    # PostgreSQL quotes the values of the row in further lines.
    said = f"{type(error).__name__}: {error}".partition("\n")[0][:MAX_ERROR_LENGTH]
    return strip_unstorable(
        f"{failed}: {said.rstrip('. ')}. Report it to the administrators of this server; the log "
        "of the worker says more."
    )


def finish_if_done(run: Run) -> bool:
    """Mark a running run as finished if no request of the run is open; return True if none is open.

    Before that, decide outcomes that a killed worker left pending, parse replies again if the
    parser was switched, and update derived runs. If that fails, the run is paused; a lost
    connection is raised.
    """
    try:
        return _finish_if_done(run)
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        _pause_undecided(run, error)
        return False


def _finish_if_done(run: Run) -> bool:
    if run_config.list_stopped_supplements(run.pinned):
        # A call in flight when its supplement was cancelled may have failed, and waits again.
        outcomes.settle_stopped(run)
    if Request.objects.wanted_by(run).still_open().exists():
        return False
    outcomes.decide_remaining(run)
    pending = list(run.outcomes.pending().values_list("pk", flat=True))
    for part in batches.make_batches(pending, 500):
        outcomes.settle(part)
    if _awaits_replies(run):
        return False
    derived.refresh_dependants(run)
    with transactions.transact():
        # Check again under the run's lock, because a retry may have started meanwhile.
        Run.objects.select_for_update(no_key=True).only("pk").get(pk=run.pk)
        if _awaits_replies(run):
            return False
        with suppress(Refused):
            change_state(run, {Run.State.RUNNING}, Run.State.FINISHED, None)
    return True


def _awaits_replies(run: Run) -> bool:
    """True if the run still waits for replies; a chain may have continued after its last reply."""
    waiting = Request.objects.wanted_by(run).still_open()
    return waiting.exists() or run.outcomes.pending().exists()
