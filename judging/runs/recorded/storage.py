"""Store recorded replies: requests that were never sent, replies, readings, outcomes and calls.

The digest of a recorded request identifies only the reply and does not prove a prompt. The same
reply is stored once, even if a second file contains it too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from annotation.db import transactions
from annotation.models import Event, Item, Project
from judging.errors import Refused
from judging.models import Call, Endpoint, Outcome, Reading, Reply, Request, Run, StrategyVersion
from judging.runs import pinning, transitions
from judging.runs.engine import digests, outcomes
from judging.runs.recorded import verdicts
from judging.runs.recorded.transcripts import STORED, Transcript
from judging.runs.recorded.verdicts import JudgedPlace, PlaceKey
from judging.runs.run_items import DrawnItems
from judging.strategies import Strategy, compute_digest
from judging.strategies.replies import outputs
from judging.strategies.replies.causes import FORMER_CAUSES

PROVIDER = "recorded"
# The batch size is small enough to commit a batch well within 200 ms, so that annotators can label
# meanwhile.
BATCH = 100
_DIGESTED = {now: before for before, now in FORMER_CAUSES.items()}


@dataclass(frozen=True)
class RecordedPart:
    """The replies of one endpoint to one strategy, which are stored as one run."""

    endpoint: str
    version: StrategyVersion
    transcripts: Sequence[Transcript]

    def digest(self, choice: str) -> str:
        """Compute the digest of these rows with the choice of verdicts."""
        rows = sorted(self.digest_of(told) for told in self.transcripts)
        return compute_digest({"recorded": [self.endpoint, self.version.digest, choice, rows]})

    def digest_of(self, told: Transcript) -> str:
        """Compute the digest of a recorded reply from everything that is known about the reply."""
        spec, stored = told.spec, told.stored
        # Use the former name of the cause, so that a file imported under the former name is
        # recognised.
        cause = _DIGESTED.get(told.cause, told.cause)
        said = [told.text, told.finish, told.model, told.tokens_in, told.tokens_out, cause]
        # Only if there is any, so that a file imported before thinking was kept is recognised.
        said += [told.thinking] if told.thinking else []
        read: list[Any] = []
        if stored:
            read = [stored.value, _DIGESTED.get(stored.cause, stored.cause)]
        read += [] if told.off_scale is None else [told.off_scale]
        call = [told.item, spec.role, spec.order, spec.axis, spec.step, told.sample]
        row = [self.endpoint, self.version.digest, call, said, read, list(told.decided)]
        return compute_digest(row)


@dataclass(frozen=True)
class CheckedPart:
    """A part without bad rows: its unsaved run, and its verdicts for each place."""

    part: RecordedPart
    strategy: Strategy
    run: Run
    drawn: DrawnItems
    judged: Mapping[PlaceKey, JudgedPlace]

    def digest_of(self, told: Transcript) -> str:
        """Compute the digest under which a reply is stored. Equal replies of a project share a
        digest."""
        return compute_digest(
            {"recorded": self.run.project.slug, "reply": self.part.digest_of(told)}
        )


def find_same_run(run: Run) -> Run | None:
    """Find the recorded run with exactly the same rows; None if there is none."""
    recorded = Run.objects.in_project(run.project).filter(kind=Run.Kind.RECORDED)
    digest = run.pinned["recorded"]["digest"]
    return recorded.filter(pinned__recorded__digest=digest).first()


def store_part(one: CheckedPart, now: datetime) -> bool:
    """Store the replies in batches, then the run with all of its outcomes at once. Returns False if
    somebody else has imported the same rows meanwhile. Raises `Refused`, with nothing stored, if
    the endpoint has been deleted meanwhile."""
    one.run.endpoint, one.run.finished_at = _endpoint(one.part.endpoint), now
    requests: dict[str, int] = {}
    for kept in _batches([told for told in one.part.transcripts if told.is_kept]):
        with transactions.transact():
            _keep_endpoint(one.run.endpoint)
            requests |= _store_replies(one, kept, now)
    with transactions.transact():
        Project.objects.select_for_update(no_key=True).only("pk").get(pk=one.run.project_id)
        if find_same_run(one.run):
            return False
        _keep_endpoint(one.run.endpoint)
        pinning.store_run(one.run, one.drawn)
        _store_outcomes(one, requests)
        transitions.record_event(
            "run recorded", one.run, one.run.member, items=len(one.drawn.items)
        )
        unseen = Item.objects.filter(pk__in=one.drawn.items, first_reply_at=None)
        unseen.update(first_reply_at=now)
    return True


def _endpoint(name: str) -> Endpoint:
    with transactions.transact():
        found, made = Endpoint.objects.get_or_create(
            name=name, defaults={"provider": PROVIDER, "model": name}
        )
        if made:
            Event.of_site("endpoint", name, None, old={}, new={"provider": PROVIDER})
    return found


def _keep_endpoint(endpoint: Endpoint) -> None:
    """Raise `Refused` for an endpoint that was deleted. Otherwise nobody can delete it until this
    transaction ends."""
    if not Endpoint.objects.all().keep(endpoint):
        raise Refused(f"Endpoint {endpoint.name} was deleted meanwhile. Import the replies again.")


def _batches(kept: Sequence[Transcript]) -> Iterator[Sequence[Transcript]]:
    return (kept[start : start + BATCH] for start in range(0, len(kept), BATCH))


def _store_replies(one: CheckedPart, kept: Sequence[Transcript], now: datetime) -> dict[str, int]:
    """Return the requests of these replies by digest; create missing requests."""
    by_digest = {one.digest_of(told): told for told in kept}
    Request.objects.bulk_create(
        (_request(one.run, found, told) for found, told in by_digest.items()),
        ignore_conflicts=True,
    )
    rows = Request.objects.filter(digest__in=by_digest)
    requests = dict(rows.values_list("digest", "pk"))
    answered = {requests[key]: told for key, told in by_digest.items() if told.text is not None}
    Reply.objects.bulk_create(
        (_reply(pk, told, now) for pk, told in answered.items()), ignore_conflicts=True
    )
    replies = Reply.objects.filter(request__in=answered).values_list("request", "pk")
    readings = [row for pk, reply in replies for row in _readings(one, answered[pk], reply)]
    Reading.objects.bulk_create(readings, ignore_conflicts=True)
    return requests


def _request(run: Run, digest: str, told: Transcript) -> Request:
    failed = told.text is None
    return Request(
        digest=digest,
        endpoint=run.endpoint,
        sample=told.sample,
        place=digests.draw_place(run.seed, digest),
        state=Request.State.FAILED if failed else Request.State.ANSWERED,
        attempts=1,
        cause=told.cause if failed else "",
        message=told.message,
    )


def _reply(request: int, told: Transcript, now: datetime) -> Reply:
    return Reply(
        request_id=request,
        text=told.text or "",
        finish=told.finish[:20],
        model=told.model,
        tokens_in=told.tokens_in,
        tokens_out=told.tokens_out,
        tokens_cached=told.tokens_cached,
        tokens_reasoning=told.tokens_reasoning,
        thinking=told.thinking or None,
        asked_at=now,
        seconds=0.0,
    )


def _readings(one: CheckedPart, told: Transcript, reply: int) -> Iterable[Reading]:
    """Return the reading of our parser, and the reading that was stored with the reply."""
    ours = outputs.get_parser_version(one.strategy)
    for parser, read in (
        (ours, verdicts.parse_transcript(one.strategy, told)),
        (STORED, told.stored),
    ):
        if read:
            yield Reading(
                reply_id=reply,
                parser=parser,
                value=read.value,
                path=read.path,
                cause=read.cause,
                explanation=read.explanation,
            )


def _store_outcomes(one: CheckedPart, requests: Mapping[str, int]) -> None:
    pending = {
        (row.item.key, row.axis): row
        for row in one.run.outcomes.select_related("item").only("item__key", "axis", "run")
    }
    calls = []
    for place, judged in one.judged.items():
        outcome = pending[place]
        outcomes.apply_decision(
            outcome, replace(judged.decides, values=judged.values), one.strategy
        )
        calls += [
            _call(outcome, told, requests[one.digest_of(told)])
            for told in judged.transcripts
            if told.is_kept
        ]
    outcomes.store_decisions(list(pending.values()))
    Call.objects.bulk_create(calls, batch_size=500)


def _call(outcome: Outcome, told: Transcript, request: int) -> Call:
    spec = told.spec
    return Call(
        run_id=outcome.run_id,
        outcome=outcome,
        role=spec.role,
        order=spec.order,
        step=spec.step,
        axis=spec.axis,
        sample=told.sample,
        request_id=request,
    )
