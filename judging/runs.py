"""What becomes of a run: started, planned, paused, resumed, cancelled, tried again, finished."""

import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from itertools import islice

from django.db.models import Max
from django.utils import timezone

from annotation import writing
from annotation.models import Membership, Project
from judging import allowing, deriving, drawing, outcomes, pinning, rereading
from judging.declaring import MAX_SAMPLES
from judging.drawing import Drawn
from judging.errors import Refused as Refused
from judging.models import Endpoint, Outcome, Request, Run, StrategyVersion
from judging.moving import ENDED, move, record

# Calls are planned in small transactions, so that nobody waits long for the write lock.
BATCH = 200


def start(
    project: Project,
    *,
    strategy: StrategyVersion,
    endpoint: Endpoint,
    member: Membership | None = None,
    limit: int | None = None,
    cap: Decimal | None = None,
    with_duplicates: bool = False,
    seed: int | None = None,
    samples: int | None = None,
    over: Run | None = None,
    occasion: str = "",
    while_labelling: bool = False,
    items: Collection[int] | None = None,
) -> Run:
    """A new run over the project's judgeable items, those of `items`, or a random `limit` of them.

    An explanation check is `over` a run that ended, and asks about what that found equal.
    `samples` is how often each call is made, by default what the strategy says. An `occasion`
    asks anew what was answered. Everything the run rests on is pinned at once, in one
    transaction; its calls are planned by whoever works on it first.

    Raises `Refused` when there is nothing to judge, a cap cannot be kept, or people are still
    labelling the items and no lead allows it by `while_labelling`.
    """
    run = pinning.draft(
        project,
        strategy,
        endpoint,
        member=member,
        cap=cap,
        seed=secrets.randbits(48) if seed is None else seed,
        occasion=occasion,
        **_counted(samples),
    )

    def draw() -> Drawn:
        asked = run.asked()
        if asked.frame == "explanation":
            return drawing.over(_base(over), asked, seed=run.seed, limit=limit)
        return drawing.draw(
            project, asked, seed=run.seed, limit=limit, with_duplicates=with_duplicates, only=items
        )

    return _start(run, draw, sources=[over] if over else [], allowed=while_labelling)


def clone(
    run: Run,
    member: Membership | None,
    *,
    as_pinned: bool = False,
    cap: Decimal | None = None,
    occasion: str = "",
    while_labelling: bool = False,
) -> Run:
    """A new run of the same strategy version over the same items, as they are now, or in the
    very revisions and with the very examples that were pinned; the endpoint as it is now.

    What was answered is not asked again. An `occasion` asks anew as pinned, and names this run
    as the one that is asked again. Raises `Refused` like `start`, and for a run that asked nobody.
    """
    if run.kind != Run.Kind.ASKED:
        raise Refused(
            f"Run {run.number} is {run.kind}, so there is nobody to ask. Start a new run."
        )
    if not as_pinned and not occasion:
        return start(
            run.project,
            strategy=run.strategy,
            endpoint=run.endpoint,
            member=member,
            cap=cap,
            with_duplicates=True,
            seed=run.seed,
            samples=run.samples,
            over=run.sources.first() if run.asked().frame == "explanation" else None,
            while_labelling=while_labelling,
            items=set(run.outcomes.values_list("item", flat=True)),
        )
    copy = pinning.draft(
        run.project,
        run.strategy,
        run.endpoint,
        member=member,
        cap=cap,
        seed=run.seed,
        samples=run.samples,
        occasion=occasion,
    )
    sources = [run] if occasion else list(run.sources.all())
    return _start(copy, lambda: drawing.as_in(run), sources=sources, allowed=while_labelling)


def _counted(samples: int | None) -> dict[str, int]:
    if samples is None:
        return {}
    if not 1 <= samples <= MAX_SAMPLES:
        raise Refused(f"Ask each call 1 to {MAX_SAMPLES} times.")
    return {"samples": samples}


def _base(over: Run | None) -> Run:
    if over is None:
        raise Refused("An explanation check is over a run that ended: name it.")
    return over


def _start(run: Run, draw: Callable[[], Drawn], *, sources: Iterable[Run], allowed: bool) -> Run:
    """Store a draft, if it may be started."""
    if run.strategy.project_id not in {None, run.project_id}:
        raise Refused(f"Strategy {run.strategy.slug} is another project's. Copy it to this one.")
    allowing.check(run.asked(), run.endpoint, run.cap)
    allowing.check_budget(run.project, run.endpoint)
    with writing.transact():
        Project.objects.select_for_update(no_key=True).only("pk").get(pk=run.project_id)
        drawn = draw()
        labelling = allowing.being_labelled(run.project, run.endpoint, drawn.items)
        allowing.check_labelling(labelling, allowed=allowed, member=run.member)
        run.while_labelling = labelling > 0
        pinning.pin(run, drawn, sources=sources)
        said = {"labelling": labelling} if labelling else {}
        record("run started", run, run.member, items=len(drawn.items), **said)
    return run


def plan(run: Run, *, keep_on: Callable[[], bool] = lambda: True) -> None:
    """Make the calls of a new run, batch by batch, as long as `keep_on` says so.

    Stopped half-way, it goes on where it was.
    """
    strategy = run.asked()
    planned = run.calls.aggregate(last=Max("outcome"))["last"] or 0
    while Run.objects.planning().filter(pk=run.pk).exists() and keep_on():
        later = run.outcomes.pending().filter(pk__gt=planned).select_related("revision")
        batch = list(later.order_by("pk")[:BATCH])
        if not batch:
            Run.objects.planning().filter(pk=run.pk).update(state=Run.State.RUNNING)
            break
        outcomes.begin(run, strategy, batch)
        planned = batch[-1].pk
    run.refresh_from_db(fields=["state"])
    if run.state == Run.State.RUNNING:
        finish_if_done(run)


def pause(run: Run, member: Membership | None, *, reason: str = "Paused by hand.") -> None:
    """No further call is started; those in flight end and are kept."""
    move(run, {Run.State.RUNNING}, Run.State.PAUSED, member, reason=reason)


def resume(run: Run, member: Membership | None) -> None:
    """Go on with a paused run."""
    move(run, {Run.State.PAUSED}, Run.State.RUNNING, member)
    finish_if_done(run)


def cancel(run: Run, member: Membership | None) -> None:
    """End a run for good; what was answered stays, the rest is never asked."""
    open_states = {Run.State.PLANNING, Run.State.RUNNING, Run.State.PAUSED}
    move(run, open_states, Run.State.CANCELLED, member)


def retry_failed(run: Run, member: Membership | None) -> int:
    """Ask the run's failed requests again; the number of them.

    Its missing outcomes are decided anew, also those that another run's retry has mended. Other
    runs that share the requests keep what they found until they are retried themselves.
    """
    states = {Run.State.RUNNING, Run.State.PAUSED, Run.State.FINISHED}
    with writing.transact():
        failed = Request.objects.wanted_by(run).filter(state="failed").order_by("pk")
        ids = list(failed.select_for_update(no_key=True).values_list("pk", flat=True))
        # Waits for whoever is deciding one of them now by the failure that is being undone.
        unsure = run.outcomes.lock_unsure()
        if not ids and not unsure:
            raise Refused("No request of this run failed.")
        move(run, states, Run.State.RUNNING, member, requests=len(ids))
        for part in _parts(ids, 500):
            Request.objects.filter(pk__in=part).ask_again(timezone.now())
        for part in _parts(unsure, 500):
            Outcome.objects.filter(pk__in=part).settled().reopen()
    finish_if_done(run)
    return len(ids)


def archive(run: Run, member: Membership | None) -> None:
    """Out of the lists and figures, unless they are asked for it; nothing of it is dropped."""
    if run.state not in ENDED:
        raise Refused(f"Run {run.number} is {run.state}. Cancel it or let it end first.")
    _put_away(run, member, "archived", timezone.now())


def unarchive(run: Run, member: Membership | None) -> None:
    """Back into the lists and figures."""
    _put_away(run, member, "unarchived", None)


def _put_away(run: Run, member: Membership | None, what: str, when: datetime | None) -> None:
    with writing.transact():
        found = Run.objects.filter(pk=run.pk, archived_at__isnull=when is not None)
        if found.update(archived_at=when):
            record(f"run {what}", run, member)
    run.archived_at = when


# What a person may do to a run, by the name that pages and the API have for it.
STEPS: dict[str, Callable[[Run, Membership], object]] = {
    "pause": pause,
    "resume": resume,
    "cancel": cancel,
    "retry": retry_failed,
    "archive": archive,
    "unarchive": unarchive,
}


def open_steps(run: Run, failed: int) -> list[str]:
    """The steps that a run with this many failed requests can take now.

    A failure that another run's retry has mended still stands in this one until it is retried.
    """
    state = Run.State(run.state)
    steps = {
        Run.State.PLANNING: ["cancel"],
        Run.State.RUNNING: ["pause", "cancel"],
        Run.State.PAUSED: ["resume", "cancel"],
    }.get(state, [])
    if state in {Run.State.RUNNING, Run.State.PAUSED, Run.State.FINISHED} and (
        failed or run.outcomes.mended().exists()
    ):
        steps = [*steps, "retry"]
    if state in ENDED:
        steps = [*steps, "unarchive" if run.archived_at else "archive"]
    return steps


def finish_if_done(run: Run) -> bool:
    """Mark a running run as finished if no request of it is open; whether none is.

    Outcomes that nobody decided, since a worker was killed between two transactions, are decided
    here, replies that a new parser has to read are read, and what is derived of the run follows.
    """
    if Request.objects.wanted_by(run).still_open().exists():
        return False
    rereading.go_on(run)
    pending = list(run.outcomes.pending().values_list("pk", flat=True))
    for part in _parts(pending, 500):
        outcomes.settle(part)
    if _is_open(run):
        return False
    deriving.refresh_derived(run)
    with writing.transact():
        # Looked at once more under the run's lock: a retry may have come meanwhile.
        Run.objects.select_for_update(no_key=True).only("pk").get(pk=run.pk)
        if _is_open(run):
            return False
        with suppress(Refused):
            move(run, {Run.State.RUNNING}, Run.State.FINISHED, None)
    return True


def _is_open(run: Run) -> bool:
    """Whether a reply is waited for; a chain may have gone on since its last one came."""
    waiting = Request.objects.wanted_by(run).still_open()
    return waiting.exists() or run.outcomes.pending().exists()


def _parts(ids: Sequence[int], size: int) -> Iterable[Sequence[int]]:
    stream = iter(ids)
    while part := list(islice(stream, size)):
        yield part
