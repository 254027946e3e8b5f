"""The calls of a run: what each asks, to the byte, and the request that it shares."""

from collections.abc import Mapping, Sequence

from django.utils import timezone

from annotation import writing
from judging import frames, outcomes, planning
from judging.models import Call, Outcome, Request, Run
from judging.providers import PROVIDERS
from judging.strategies import Strategy


def body_of(run: Run, texts: Mapping[str, str], spec: frames.CallSpec, strategy: Strategy) -> bytes:
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


def make(run: Run, strategy: Strategy, batch: Sequence[Outcome]) -> None:
    """The calls of these outcomes, and decisions where all replies are there already.

    An outcome whose item makes no request (a text that cannot be sent, or is not there) is missing
    with the cause "rejected".
    """
    wanted: list[tuple[Outcome, frames.CallSpec, str]] = []
    for outcome in batch:
        try:
            wanted += _wanted(run, strategy, outcome)
        except ValueError as error:
            outcome.reject(str(error))
    with writing.transact():
        known = _requests(run, {digest for _, _, digest in wanted})
        Call.objects.bulk_create(
            Call(
                run=run,
                outcome=outcome,
                role=spec.role,
                order=spec.order,
                request_id=known[digest][0],
            )
            for outcome, spec, digest in wanted
        )
        answered = [pk for pk, state in known.values() if state == "answered"]
        if answered and not PROVIDERS[run.pinned["provider"]].offline:
            outcomes.note_first_replies(answered, timezone.now())
    outcomes.settle(
        Outcome.objects.of_requests(answered).filter(run=run).values_list("pk", flat=True)
    )


def _wanted(
    run: Run, strategy: Strategy, outcome: Outcome
) -> list[tuple[Outcome, frames.CallSpec, str]]:
    texts = outcome.revision.texts
    return [
        (outcome, spec, digest_of(run, body_of(run, texts, spec, strategy)))
        for spec in frames.calls(strategy.frame)
    ]


def _requests(run: Run, digests: set[str]) -> dict[str, tuple[int, str]]:
    """Id and state of the request of each digest; what was not there is made.

    In one order, so that two runs that want the same requests do not wait for each other. They
    are locked: a reply is stored either before, and seen here, or after, and then the calls are
    there. One that failed for an earlier run gets another chance.
    """
    Request.objects.bulk_create(
        (
            Request(
                digest=digest,
                endpoint_id=run.endpoint_id,
                place=planning.place(run.seed, digest),
            )
            for digest in sorted(digests)
        ),
        ignore_conflicts=True,
    )
    found = Request.objects.filter(digest__in=digests)
    locked = found.order_by("pk").select_for_update(no_key=True)
    known = {row[0]: row[1:] for row in locked.values_list("digest", "pk", "state")}
    found.ask_again(timezone.now())
    return known
