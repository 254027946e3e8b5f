"""What becomes of a run: started, planned, paused, resumed, cancelled, tried again, finished."""

import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any

from django.db.models import Count, Exists, Max, OuterRef, Q
from django.utils import timezone

from annotation import writing
from annotation.models import Event, Membership, Project, Resolution, Revision
from annotation.querysets import SI_ITEM
from judging import frames, outcomes, outputs, planning, selecting
from judging.models import Call, Endpoint, Outcome, Request, Run, StrategyVersion
from judging.providers import PROVIDERS
from judging.strategies import Strategy

# Calls are planned in small transactions, so that nobody waits long for the write lock.
BATCH = 100


class Refused(ValueError):
    """A run that cannot be started or moved; the message says what to do."""


@dataclass(frozen=True)
class Progress:
    """Counts of a run's requests and items; `failures` by cause, most frequent first."""

    requests: int
    answered: int
    failed: int
    waiting: int
    items: int
    settled: int
    failures: dict[str, int]

    @property
    def share(self) -> float:
        """Share of the requests that are done, 0 to 1; 1 for a run without requests."""
        return (self.answered + self.failed) / self.requests if self.requests else 1.0


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
) -> Run:
    """A new run over the project's judgeable items, or a random `limit` of them.

    Everything the run rests on is pinned at once, in one transaction; its calls are planned by
    whoever works on it first. Raises `Refused` when there is nothing to judge or a cap cannot
    be kept.
    """
    asked = strategy.strategy()
    check(asked, endpoint, cap)
    seed = secrets.randbits(48) if seed is None else seed
    with writing.transact():
        Project.objects.select_for_update().only("pk").get(pk=project.pk)
        rows = chosen(selecting.items(project, with_duplicates=with_duplicates), seed, limit)
        if not rows:
            raise Refused(
                "No item of this project is resolved as valid or score-invariant yet."
                " Label some, or import items with --accept."
            )
        run = _create(project, strategy, endpoint, member, cap, seed, rows)
        _pin(run, rows)
        _record("run started", run, member, items=len(rows))
    return run


def plan(run: Run, *, keep_on: Callable[[], bool] = lambda: True) -> None:
    """Make the calls of a new run, batch by batch, as long as `keep_on` says so.

    Stopped half-way, it goes on where it was.
    """
    strategy = run.strategy.strategy()
    while run.state == Run.State.PLANNING and keep_on():
        without = run.outcomes.filter(~Exists(Call.objects.filter(outcome=OuterRef("pk"))))
        batch = list(without.select_related("revision", "item").order_by("pk")[:BATCH])
        with writing.transact():
            _plan_batch(run, strategy, batch)
            if not batch:
                _leave_planning(run)
        outcomes.settle([outcome.pk for outcome in batch])
        run.refresh_from_db(fields=["state"])
    finish_if_done(run)


def pause(run: Run, member: Membership | None, *, reason: str = "Paused by hand.") -> None:
    """No further call is started; those in flight end and are kept."""
    _move(run, {Run.State.RUNNING}, Run.State.PAUSED, member, reason=reason)


def resume(run: Run, member: Membership | None) -> None:
    _move(run, {Run.State.PAUSED}, Run.State.RUNNING, member)
    finish_if_done(run)


def cancel(run: Run, member: Membership | None) -> None:
    """End a run for good; what was answered stays, the rest is never asked."""
    open_states = {Run.State.PLANNING, Run.State.RUNNING, Run.State.PAUSED}
    _move(run, open_states, Run.State.CANCELLED, member, finished_at=timezone.now())


def retry_failed(run: Run, member: Membership | None) -> int:
    """Ask the run's failed requests again; the number of them."""
    now = timezone.now()
    with writing.transact():
        if run.state == Run.State.CANCELLED:
            raise Refused("This run was cancelled. Start a new one; its replies are used again.")
        failed = list(Request.objects.wanted_by(run).filter(state="failed").values_list("pk"))
        if not failed:
            raise Refused("No request of this run failed.")
        ids = [pk for (pk,) in failed]
        for part in _parts(ids, 500):
            Request.objects.filter(pk__in=part, state="failed").update(
                state="waiting", attempts=0, next_try=now, cause="", message=""
            )
            Outcome.objects.filter(calls__request__in=part).update(
                result="pending", detail="", cause="", values={}
            )
        Run.objects.filter(calls__request__in=ids, state=Run.State.FINISHED).update(
            state=Run.State.RUNNING, finished_at=None
        )
        run.move(Run.State.RUNNING)
        _record("run retried", run, member, requests=len(ids))
    return len(ids)


# What a person may do to a run, by the name that pages and the API have for it.
STEPS: dict[str, Callable[[Run, Membership], object]] = {
    "pause": pause,
    "resume": resume,
    "cancel": cancel,
    "retry": retry_failed,
}


def open_steps(run: Run, failed: int) -> list[str]:
    """The steps that a run with this many failed requests can take now."""
    steps = {
        Run.State.PLANNING: ["cancel"],
        Run.State.RUNNING: ["pause", "cancel"],
        Run.State.PAUSED: ["resume", "cancel"],
    }.get(Run.State(run.state), [])
    return [*steps, "retry"] if failed and run.state != Run.State.CANCELLED else steps


def finish_if_done(run: Run) -> bool:
    """Mark a running run as finished once no item is pending."""
    with writing.transact():
        if run.outcomes.filter(result=Outcome.Result.PENDING).exists():
            return False
        now = timezone.now()
        moved = Run.objects.filter(pk=run.pk, state=Run.State.RUNNING).update(
            state=Run.State.FINISHED, finished_at=now, reason=""
        )
        if moved:
            _record("run finished", run, None)
    return True


def progress(run: Run) -> Progress:
    """How far a run has come, in requests and in items."""
    states = Request.objects.wanted_by(run).values("state").annotate(n=Count("pk")).order_by()
    counts = {row["state"]: row["n"] for row in states}
    failed = Request.objects.wanted_by(run).filter(state="failed")
    causes = failed.values("cause").annotate(n=Count("pk")).order_by("-n", "cause")
    missing = run.outcomes.filter(result="missing").values("cause").annotate(n=Count("pk"))
    items = run.outcomes.aggregate(
        items=Count("pk"), settled=Count("pk", filter=~Q(result=Outcome.Result.PENDING))
    )
    failures = {row["cause"]: row["n"] for row in causes}
    for row in missing.order_by("-n", "cause"):
        failures.setdefault(row["cause"], row["n"])
    return Progress(
        requests=sum(counts.values()),
        answered=counts.get("answered", 0),
        failed=counts.get("failed", 0),
        waiting=counts.get("waiting", 0) + counts.get("leased", 0),
        failures=failures,
        **items,
    )


def check(strategy: Strategy, endpoint: Endpoint, cap: Decimal | None = None) -> None:
    """Raise `Refused` if the endpoint cannot be asked this way, or not within a cap."""
    offline = PROVIDERS[endpoint.provider].offline
    if bool(strategy.metric) != offline:
        wanted = "the offline baseline endpoint" if strategy.metric else "an evaluator LLM"
        raise Refused(f"Strategy {strategy.slug} needs {wanted}; {endpoint.name} is not one.")
    if cap is not None and None in (endpoint.price_in, endpoint.price_out):
        raise Refused(
            f"A cap needs prices, and those of {endpoint.name} are unknown."
            " Enter them (0 for a free evaluator) or leave the cap out."
        )


def chosen(found: Any, seed: int, limit: int | None) -> list[dict[str, Any]]:
    """What a run pins of each of its items, in the order of the items.

    With a `limit` they are a random part that the seed decides.
    """
    value = Resolution.objects.current().filter(item=OuterRef("pk")).values("value")[:1]
    revision = Revision.objects.filter(item=OuterRef("pk"), number=OuterRef("revision_number"))
    rows = list(
        found.order_by("position")
        .annotate(
            truth=value, revision_pk=revision.values("pk")[:1], texts=revision.values("digest")[:1]
        )
        .values(
            "pk", "key", "category", "ability", "source_ability", "cluster",
            "truth", "revision_pk", "texts", "duplicate_of",
        )
    )  # fmt: skip
    if limit is None or limit >= len(rows):
        return rows
    kept = set(planning.shuffled(seed, [row["key"] for row in rows])[:limit])
    return [row for row in rows if row["key"] in kept]


def _create(
    project: Project,
    strategy: StrategyVersion,
    endpoint: Endpoint,
    member: Membership | None,
    cap: Decimal | None,
    seed: int,
    rows: Sequence[dict[str, Any]],
) -> Run:
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
    return Run.objects.create(
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


def _pin(run: Run, rows: Iterable[dict[str, Any]]) -> None:
    Outcome.objects.bulk_create(
        (
            Outcome(
                run=run,
                item_id=row["pk"],
                revision_id=row["revision_pk"],
                source_ability=row["source_ability"],
                cluster=row["cluster"],
                invariant=row["truth"] == SI_ITEM,
                **_place_in_tables(row),
            )
            for row in rows
        ),
        batch_size=500,
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


def _plan_batch(run: Run, strategy: Strategy, batch: Sequence[Outcome]) -> None:
    wanted = [
        (outcome, spec, _digest(run, outcome, spec, strategy))
        for outcome in batch
        for spec in frames.calls(strategy.frame)
    ]
    Request.objects.bulk_create(
        (
            Request(digest=digest, endpoint_id=run.endpoint_id, place=_place(run.seed, digest))
            for _, _, digest in wanted
        ),
        ignore_conflicts=True,
    )
    digests = {digest for _, _, digest in wanted}
    known = dict(Request.objects.filter(digest__in=digests).values_list("digest", "pk"))
    Call.objects.bulk_create(
        (
            Call(
                run=run,
                outcome=outcome,
                role=spec.role,
                order=spec.order,
                request_id=known[digest],
            )
            for outcome, spec, digest in wanted
        ),
        ignore_conflicts=True,
    )


def body_of(run: Run, texts: dict[str, str], spec: frames.CallSpec, strategy: Strategy) -> bytes:
    """The exact body of a call, rendered from what the run pins."""
    prompt = frames.render(strategy, texts, spec)
    provider = PROVIDERS[run.pinned["provider"]]
    return provider.body(
        model=run.pinned["model"], parameters=run.pinned["parameters"], prompt=prompt
    )


def digest_of(run: Run, body: bytes, sample: int = 0) -> str:
    """The digest of the request that a body makes under what the run pins."""
    return planning.request_digest(
        provider=run.pinned["provider"],
        address=run.pinned["address"],
        model=run.pinned["model"],
        parameters=run.pinned["parameters"],
        body=body,
        sample=sample,
        occasion="",
    )


def _digest(run: Run, outcome: Outcome, spec: frames.CallSpec, strategy: Strategy) -> str:
    return digest_of(run, body_of(run, outcome.revision.texts, spec, strategy))


def _place(seed: int, digest: str) -> int:
    """A random place in the order of asking, the same for a seed and a request."""
    return planning.place(seed, digest)


def _leave_planning(run: Run) -> None:
    Run.objects.filter(pk=run.pk, state=Run.State.PLANNING).update(state=Run.State.RUNNING)


def _move(
    run: Run, allowed: Collection[str], state: str, member: Membership | None, **values: Any
) -> None:
    with writing.transact():
        run.refresh_from_db(fields=["state"])
        if run.state not in allowed:
            raise Refused(f"Run {run.number} is {run.state}, so it cannot become {state}.")
        run.move(state, **values)
        _record(f"run {state}", run, member, reason=run.reason)


def _record(kind: str, run: Run, member: Membership | None, **data: Any) -> None:
    Event.record(
        kind,
        f"run {run.number}",
        project_id=run.project_id,
        member_id=member.pk if member else None,
        **data,
    )


def _parts(ids: Sequence[int], size: int) -> Iterable[Sequence[int]]:
    stream = iter(ids)
    while part := list(islice(stream, size)):
        yield part
