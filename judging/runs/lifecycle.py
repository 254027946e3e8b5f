"""What becomes of a run: started, planned, paused, resumed, cancelled, tried again, finished."""

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice
from typing import Any

from django.db.models import Max
from django.utils import timezone

from annotation.db import bulk, transactions
from annotation.models import Event, Membership, Project
from judging.errors import Refused as Refused
from judging.evaluators.providers.errors import Rejected
from judging.evaluators.providers.parameters import find_refused, instead_of
from judging.models import Call, Endpoint, Outcome, Request, Run, StrategyVersion
from judging.runs import budget, derived, pinning, run_config, run_items, start_checks
from judging.runs.engine import clock, outcomes, reparse_batches
from judging.runs.models import PAUSED_BY_HAND
from judging.runs.run_config import RunOverrides
from judging.runs.run_items import DrawnItems
from judging.runs.transitions import change_state, record_event
from judging.strategies import Strategy, frames
from judging.strategies.definitions import MAX_SAMPLES

PILOT = "pilot"
# In these states requests of a run may have failed for good.
RETRY_STATES = frozenset({Run.State.RUNNING, Run.State.PAUSED, Run.State.FINISHED})
# In these states a run may be moved to another endpoint, if none of its requests was answered.
MOVABLE_STATES = frozenset({Run.State.PAUSED, Run.State.FINISHED})
# Why a run of this kind has nobody to ask.
UNASKED_REASONS: dict[str, str] = {
    Run.Kind.RECORDED: "holds imported replies",
    Run.Kind.DERIVED: "is combined from other runs and sends no requests",
}
# Of what a provider said of failed requests so many different texts are read.
MAX_MESSAGES = 10
# Calls are planned in small transactions, so that nobody waits long for the write lock.
BATCH = 200
# Outcomes of a run from which on planning it changes what PostgreSQL must know of the tables.
ANALYZE_FROM = 1_000


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What a run is to be beside its strategy and its endpoint.

    It is over the project's judgeable items, those of `items`, or a random `limit` of them; an
    explanation check is `over` a run that ended, and asks about what that found equal. `samples`
    is how often each call is made, by default what the strategy says. An `occasion` asks anew
    what was answered; what else differs from strategy and endpoint is the run's `own`. A `pilot`
    only measures what calls take, so that lists and figures leave it out.
    """

    seed: int | None = None
    limit: int | None = None
    with_duplicates: bool = False
    items: Collection[int] | None = None
    over: Run | None = None
    samples: int | None = None
    own: RunOverrides = pinning.NO_OVERRIDES
    occasion: str = ""
    pilot: bool = False
    cap: Decimal | None = None
    while_labelling: bool = False

    def draw(self, project: Project, asked: Strategy, seed: int) -> DrawnItems:
        """The items of a run, as `seed` draws them. Raises `Refused` where there are none."""
        if asked.frame == "explanation":
            return run_items.draw_for_check(
                require_checked_run(self.over), asked, seed=seed, limit=self.limit
            )
        return run_items.draw_items(
            project,
            asked,
            seed=seed,
            limit=self.limit,
            with_duplicates=self.with_duplicates,
            only=self.items,
            own=self.own,
        )


DEFAULT_OPTIONS = RunOptions()


def start_run(
    project: Project,
    *,
    strategy: StrategyVersion,
    endpoint: Endpoint,
    member: Membership | None = None,
    options: RunOptions = DEFAULT_OPTIONS,
) -> Run:
    """A new run. Everything that it rests on is pinned at once, in one transaction; its calls are
    planned by whoever works on it first.

    Raises `Refused` when there is nothing to judge, a cap cannot be kept, or people are still
    labelling the items and no lead allows it by `while_labelling`.
    """
    run = pinning.draft_run(
        project,
        strategy,
        endpoint,
        member=member,
        cap=options.cap,
        seed=secrets.randbits(48) if options.seed is None else options.seed,
        occasion=options.occasion,
        own=options.own,
        **build_sample_counts(options.samples),
    )
    if options.pilot:
        run.pinned[PILOT], run.archived_at = True, timezone.now()
    return _store_draft(
        run,
        lambda: options.draw(project, run.asked(), run.seed),
        sources=[options.over] if options.over else [],
        allowed=options.while_labelling,
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
    """A new run of the same strategy version over the same items, as they are now, or in the
    very revisions and with the very examples that were pinned; at the same endpoint as it is now,
    or at another one.

    What was answered is not asked again. An `occasion` asks anew as pinned, and names this run
    as the one that is asked again. Raises `Refused` like `start`, and for a run that asked nobody.
    """
    _check_asked(run, "cloned")
    endpoint = endpoint or run.endpoint
    if as_pinned or occasion:
        return _clone_as_pinned(
            run, endpoint, member, cap=cap, occasion=occasion, allowed=while_labelling
        )
    options = RunOptions(
        cap=cap,
        with_duplicates=True,
        seed=run.seed,
        samples=run.samples,
        over=run.sources.first() if run.asked().frame == "explanation" else None,
        while_labelling=while_labelling,
        items=set(run.outcomes.values_list("item", flat=True)),
        own=run_config.load_overrides(run.pinned),
    )
    return start_run(
        run.project, strategy=run.strategy, endpoint=endpoint, member=member, options=options
    )


def restart_without_parameter(run: Run, member: Membership | None) -> Run:
    """A new run in the place of this one, which is cancelled if it did not end: over the very
    texts that it pinned, without the parameter that its evaluator refused, or with the limit of
    tokens by the name that the refusal says to use.

    Raises `Refused` where none was refused, and like `start`.
    """
    cap = None if run.cap is None else max(run.cap - run.spent, Decimal(0))
    with transactions.transact():
        # One of two that press at the same moment.
        Project.objects.select_for_update(no_key=True).only("pk").get(pk=run.project_id)
        failed = Request.objects.wanted_by(run).filter(state="failed").words()
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
            open_states = {Run.State.RUNNING, Run.State.PAUSED}
            way = f"with {instead} instead of" if instead else "without"
            reason = f"Run {copy.number} continues {way} {name}."
            change_state(run, open_states, Run.State.CANCELLED, member, reason=reason)
    return copy


def find_refused_parameter(run: Run, failed: Iterable[Mapping[str, Any]]) -> tuple[str, str]:
    """The parameter of ours that the evaluator refused, by cause and message of `failed` requests
    of the run, and the one to send in its place, "" for none; both "" if it refused none, the run
    is cancelled, or another one took its place."""
    if run.state not in RETRY_STATES:
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
    return pinning.draft_run(
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


def build_sample_counts(samples: int | None) -> dict[str, int]:
    """How often each call is made, as a run keeps it; nothing where the strategy says it."""
    if samples is None:
        return {}
    if not 1 <= samples <= MAX_SAMPLES:
        raise Refused(f"Choose 1 to {MAX_SAMPLES} samples per call.")
    return {"samples": samples}


def require_checked_run(over: Run | None) -> Run:
    """The run whose explanations are to be checked; `Refused` without one."""
    if over is None:
        raise Refused("An explanation check needs a finished run. Choose one.")
    return over


def _store_draft(
    run: Run, draw: Callable[[], DrawnItems], *, sources: Iterable[Run], allowed: bool, **noted: Any
) -> Run:
    """Store a draft, if it may be started, with what is `noted` in the record of it."""
    if run.strategy.project_id not in {None, run.project_id}:
        raise Refused(
            f"Strategy {run.strategy.slug} belongs to another project. Copy it to this project "
            "first."
        )
    start_checks.check_endpoint(
        run.asked(), run.endpoint, run.cap, parameters=run.pinned["parameters"]
    )
    start_checks.check_budget(run.project, run.endpoint)
    with transactions.transact():
        Project.objects.select_for_update(no_key=True).only("pk").get(pk=run.project_id)
        _check_not_deleted(run)
        drawn = draw()
        labelling = start_checks.count_being_labelled(run, drawn.items)
        start_checks.check_labelling(labelling, allowed=allowed, member=run.member)
        run.while_labelling = labelling > 0
        pinning.store_run(run, drawn, sources=sources)
        said = noted | ({"labelling": labelling} if labelling else {})
        record_event("run started", run, run.member, items=len(drawn.items), **said)
    return run


def _check_not_deleted(run: Run) -> None:
    """Raise `Refused` for a strategy that was deleted since somebody chose it."""
    version = run.strategy
    if version.project_id and StrategyVersion.objects.deleted(run.project).contains(version):
        raise Refused(f"Strategy {version.slug} has been deleted. Restore it first.")


def plan_calls(run: Run, *, keep_on: Callable[[], bool] = lambda: True) -> None:
    """Make the calls of a new run, batch by batch, as long as `keep_on` says so.

    Stopped half-way, it goes on where it was.
    """
    strategy = run.asked()
    planned = run.calls.aggregate(last=Max("outcome"))["last"] or 0
    batches = 0
    while Run.objects.planning().filter(pk=run.pk).exists() and keep_on():
        later = run.outcomes.pending().filter(pk__gt=planned).select_related("revision")
        batch = list(later.order_by("pk")[:BATCH])
        if not batch:
            _analyze_calls(run.outcomes.count())
            Run.objects.planning().filter(pk=run.pk).update(state=Run.State.RUNNING)
            break
        outcomes.start_outcomes(run, strategy, batch)
        planned = batch[-1].pk
        batches += 1
        if batches.bit_count() == 1:
            _analyze_calls(batches * BATCH)
    run.refresh_from_db(fields=["state"])
    if run.state == Run.State.RUNNING:
        finish_if_done(run)


def _analyze_calls(planned: int) -> None:
    """What is asked next, and what pages show meanwhile, is looked up among the calls that were
    just made: counted each time they are twice as many, and in the end."""
    if planned >= ANALYZE_FROM:
        bulk.analyze_tables(*(model._meta.db_table for model in (Outcome, Call, Request)))


def pause(run: Run, member: Membership | None, *, reason: str = PAUSED_BY_HAND) -> None:
    """No further call is started. By hand, those in flight are hung up and asked again on resume,
    unless another run wants them; with another reason they end and are kept."""
    change_state(run, {Run.State.RUNNING}, Run.State.PAUSED, member, reason=reason)


def resume(run: Run, member: Membership | None, *, cap: Decimal | None = None) -> None:
    """Go on with a paused run, under a higher cap if one is given. What timed out while nothing
    was answered has all of its tries again, since that is why such a run is paused."""
    _check_asked(run, "resumed")
    with transactions.transact():
        # Before the run is locked, as whoever stores replies does it.
        if not run.was_answered():
            Request.objects.wanted_by(run).try_afresh(clock.now())
        if cap is not None:
            budget.raise_cap(run, cap, member)
        change_state(run, {Run.State.PAUSED}, Run.State.RUNNING, member)
    run.refresh_from_db(fields=["cap"])
    finish_if_done(run)


def is_unanswered(run: Run) -> bool:
    """Whether no request of it was ever answered, be it for another run."""
    return not run.calls.filter(request__state="answered").exists()


def move_to_endpoint(run: Run, endpoint: Endpoint, member: Membership | None) -> None:
    """Ask a run at another endpoint, while none of its requests was answered: its calls are planned
    anew. Items, revisions, strategy, examples, samples and seed stay as they were pinned.

    Raises `Refused` where an answer is there already, calls are in flight, other runs follow from
    it, or the endpoint cannot be asked so.
    """
    _check_asked(run, "moved")
    if endpoint.pk == run.endpoint_id:
        raise Refused(f"Run {run.number} already uses {endpoint.name}. Choose another endpoint.")
    pinned = pinning.repin_endpoint(run, endpoint)
    start_checks.check_endpoint(run.asked(), endpoint, run.cap, parameters=pinned["parameters"])
    start_checks.check_budget(run.project, endpoint)
    with transactions.transact():
        # Before the run, and in the order in which they are decided: as a retry locks them.
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
    """Whether a person archived it; pilots are archived from the first on."""
    return run.archived_at is not None and PILOT not in run.pinned


def _check_movable(run: Run) -> None:
    """Raise `Refused` unless nothing rests on what the run asked so far."""
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


def cancel(run: Run, member: Membership | None) -> None:
    """End a run for good; what was answered stays, the rest is never asked. Calls in flight are
    hung up, unless another run wants them."""
    open_states = {Run.State.PLANNING, Run.State.RUNNING, Run.State.PAUSED}
    change_state(run, open_states, Run.State.CANCELLED, member)


def retry_failed(run: Run, member: Membership | None) -> int:
    """Ask the run's failed requests again; the number of them.

    Its missing outcomes are decided anew, also those that another run's retry has mended. Other
    runs that share the requests keep what they found until they are retried themselves. Raises
    `Refused` where neither failed: a reply of no use is not asked for again.
    """
    _check_asked(run, "asked again")
    with transactions.transact():
        failed = Request.objects.wanted_by(run).filter(state="failed").order_by("pk")
        ids = list(failed.select_for_update(no_key=True).values_list("pk", flat=True))
        # Waits for whoever is deciding one of them now by the failure that is being undone.
        unsure = run.outcomes.lock_unsure()
        if not ids and not run.outcomes.mended().exists():
            raise Refused("This run has no failed requests.")
        change_state(run, RETRY_STATES, Run.State.RUNNING, member, requests=len(ids))
        for part in _split_batches(ids, 500):
            Request.objects.filter(pk__in=part).ask_again(clock.now())
        for part in _split_batches(unsure, 500):
            Outcome.objects.filter(pk__in=part).settled().reopen()
    finish_if_done(run)
    return len(ids)


def _check_asked(run: Run, what: str) -> None:
    """Raise `Refused` for a run that asked nobody."""
    if why := UNASKED_REASONS.get(run.kind):
        raise Refused(f"Run {run.number} {why}, so it cannot be {what}. Start a new run instead.")


def finish_if_done(run: Run) -> bool:
    """Mark a running run as finished if no request of it is open; whether none is.

    Outcomes that nobody decided, since a worker was killed between two transactions, are decided
    here, replies that a new parser has to read are read, and what is derived of the run follows.
    """
    if Request.objects.wanted_by(run).still_open().exists():
        return False
    reparse_batches.decide_remaining(run)
    pending = list(run.outcomes.pending().values_list("pk", flat=True))
    for part in _split_batches(pending, 500):
        outcomes.settle(part)
    if _awaits_replies(run):
        return False
    derived.refresh_dependants(run)
    with transactions.transact():
        # Looked at once more under the run's lock: a retry may have come meanwhile.
        Run.objects.select_for_update(no_key=True).only("pk").get(pk=run.pk)
        if _awaits_replies(run):
            return False
        with suppress(Refused):
            change_state(run, {Run.State.RUNNING}, Run.State.FINISHED, None)
    return True


def _awaits_replies(run: Run) -> bool:
    """Whether a reply is waited for; a chain may have gone on since its last one came."""
    waiting = Request.objects.wanted_by(run).still_open()
    return waiting.exists() or run.outcomes.pending().exists()


def _split_batches(ids: Sequence[int], size: int) -> Iterable[Sequence[int]]:
    stream = iter(ids)
    while part := list(islice(stream, size)):
        yield part
