"""Replies that were made elsewhere, into a project as recorded runs.

One run for each endpoint and strategy. Nothing is asked and no prompt is known: the digest of a
recorded request is one of the reply itself, and proves no prompt. A value that somebody else read
in a reply is kept as a reading of the parser `stored`, beside what our own parser reads; which of
the two decides the outcomes is the run's parser. Idempotent: the same rows again are nothing new.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from annotation import writing
from annotation.models import Item, Membership, Project
from formats.rows import BadRow
from judging import (
    allowing,
    drawing,
    frames,
    moving,
    outcomes,
    outputs,
    pinning,
    planning,
    selecting,
    verdicts,
)
from judging.drawing import Drawn
from judging.models import Call, Endpoint, Outcome, Reading, Reply, Request, Run, StrategyVersion
from judging.strategies import Strategy, digest
from judging.transcripts import STORED, Transcript
from judging.verdicts import Judged, Place

PROVIDER = "recorded"
# Small enough that a batch commits well within 200 ms, so that people can label meanwhile.
BATCH = 100


@dataclass(frozen=True)
class Part:
    """The replies of one endpoint to one strategy: a run to be."""

    endpoint: str
    version: StrategyVersion
    transcripts: Sequence[Transcript]


@dataclass(frozen=True)
class _Prepared:
    """A part in which every row is good: its run, not stored, and what it says of each place."""

    part: Part
    strategy: Strategy
    run: Run
    drawn: Drawn
    judged: Mapping[Place, Judged]


@dataclass
class Report:
    """What became of an import. `runs` are new, `known` were there already; with a row in `bad`
    nothing is stored. Of the new runs' items `differing` have verdicts that differ."""

    runs: list[Run] = field(default_factory=list)
    known: list[Run] = field(default_factory=list)
    replies: int = 0
    items: int = 0
    differing: int = 0
    bad: list[BadRow] = field(default_factory=list)


def store(
    project: Project,
    parts: Iterable[Part],
    *,
    now: datetime,
    wanted: str = "",
    dry_run: bool = False,
    while_labelling: bool = False,
    member: Membership | None = None,
) -> Report:
    """A finished run for each part, unless a row of any part is bad: then none.

    `wanted` says which verdicts decide, `stored` or `parsed`; "" the stored ones where a part has
    them. Raises `Refused` where people still label the items, unless `while_labelling` allows it.
    """
    report, prepared = Report(), []
    for part in parts:
        choice = verdicts.chosen(part.transcripts, wanted)
        if known := _known(project, part, choice):
            report.known.append(known)
        elif made := _prepare(project, part, choice, report.bad):
            prepared.append(made)
    if report.bad:
        return report
    for one in prepared:
        one.run.member = member
        labelling = allowing.being_labelled(project, one.run.endpoint, one.drawn.items)
        allowing.check_labelling(labelling, allowed=while_labelling, member=member)
        one.run.while_labelling = bool(labelling)
    for one in prepared:
        if not dry_run:
            _store(one, now)
        _count(one, report)
    return report


def strategy_in(project: Project, version: StrategyVersion) -> Strategy:
    """A strategy as recorded runs of the project have it, with the metrics of its task type."""
    return pinning.draft(project, version, Endpoint(provider=PROVIDER)).asked()


def _count(one: _Prepared, report: Report) -> None:
    report.runs.append(one.run)
    report.replies += sum(_is_kept(told) for told in one.part.transcripts)
    report.items += len(one.drawn.items)
    report.differing += sum(judged.differs for judged in one.judged.values())


def _known(project: Project, part: Part, choice: str) -> Run | None:
    """The run that holds these very rows, if there is one."""
    recorded = Run.objects.in_project(project).filter(kind=Run.Kind.RECORDED)
    return recorded.filter(pinned__recorded__digest=_digest(part, choice)).first()


def _prepare(project: Project, part: Part, choice: str, bad: list[BadRow]) -> _Prepared | None:
    strategy = strategy_in(project, part.version)
    judged: dict[Place, Judged] = {}
    for place, found in verdicts.judge(strategy, part.transcripts, choice).items():
        if isinstance(found, BadRow):
            bad.append(found)
        else:
            judged[place] = found
    drawn = _drawn(project, strategy, judged)
    there = {(place["key"], place["axis"]) for place in drawn.places}
    lost = [one for place, one in judged.items() if place not in there]
    bad += [_lost(project, one.transcripts[0]) for one in lost]
    if lost or not judged:
        return None
    return _Prepared(part, strategy, _run(project, part, choice), drawn, judged)


def _drawn(project: Project, strategy: Strategy, judged: Mapping[Place, Judged]) -> Drawn:
    """The places that the replies speak of, as far as the project has them resolved."""
    # What is decided of a folded run is an error or none, as in detection.
    asked = replace(strategy, frame="detection") if strategy.frame == "fold" else strategy
    keys = {key for key, _ in judged}
    found = selecting.items(project, frames.needs(asked), with_duplicates=True)
    rows = [row for row in selecting.rows(found) if row["key"] in keys]
    places = [place for row in rows for place in drawing.places(asked, row)]
    return Drawn([place for place in places if (place["key"], place["axis"]) in judged])


def _lost(project: Project, told: Transcript) -> BadRow:
    if not Item.objects.in_project(project).filter(key=told.item).exists():
        return told.bad("item", f"{told.item} is no item of the project. Import the items first.")
    return told.bad(
        "item",
        f"{told.item} is not resolved as the strategy needs it. Label it, or import it with"
        " --accept.",
    )


def _run(project: Project, part: Part, choice: str) -> Run:
    """The run to be, with its endpoint, which is made when the run is stored."""
    endpoint = Endpoint.objects.named(part.endpoint) or Endpoint(
        name=part.endpoint, provider=PROVIDER, model=part.endpoint
    )
    samples = 1 + max(told.sample for told in part.transcripts)
    values: dict[str, Any] = {"kind": Run.Kind.RECORDED, "state": Run.State.FINISHED, "seed": 0}
    run = pinning.draft(project, part.version, endpoint, samples=samples, **values)
    run.pinned["recorded"] = {
        "files": sorted({told.row.file for told in part.transcripts}),
        "verdicts": choice,
        "digest": _digest(part, choice),
    }
    if choice == STORED:
        run.parser = STORED
    return run


def _digest(part: Part, choice: str) -> str:
    rows = sorted(_reply_digest(part, told) for told in part.transcripts)
    pinned = [part.endpoint, part.version.digest, choice, rows]
    return digest({"recorded": pinned})


def _reply_digest(part: Part, told: Transcript) -> str:
    """What tells one recorded reply from all others: all that is known of it."""
    spec, stored = told.spec, told.stored
    said = [told.text, told.finish, told.model, told.tokens_in, told.tokens_out, told.cause]
    read = [stored.value, stored.cause] if stored else []
    call = [told.item, spec.role, spec.order, spec.axis, spec.step, told.sample]
    return digest([part.endpoint, part.version.digest, call, said, read, list(told.decided)])


def _is_kept(told: Transcript) -> bool:
    """Whether there is a reply, or a failure, to keep; a value alone is in the outcome."""
    return told.text is not None or bool(told.cause and told.stored is None)


def _store(one: _Prepared, now: datetime) -> None:
    """The replies batch by batch, then the run with all of its outcomes at once."""
    with writing.transact():
        endpoint, _ = Endpoint.objects.get_or_create(
            name=one.part.endpoint, defaults={"provider": PROVIDER, "model": one.part.endpoint}
        )
    one.run.endpoint, one.run.finished_at = endpoint, now
    kept = [told for told in one.part.transcripts if _is_kept(told)]
    requests: dict[str, int] = {}
    for start in range(0, len(kept), BATCH):
        with writing.transact():
            requests |= _store_replies(one, kept[start : start + BATCH], now)
    with writing.transact():
        Project.objects.select_for_update(no_key=True).only("pk").get(pk=one.run.project_id)
        pinning.pin(one.run, one.drawn)
        _store_outcomes(one, requests)
        moving.record("run recorded", one.run, one.run.member, items=len(one.drawn.items))
        unseen = Item.objects.filter(pk__in=one.drawn.items, first_reply_at=None)
        unseen.update(first_reply_at=now)


def _store_replies(one: _Prepared, kept: Sequence[Transcript], now: datetime) -> dict[str, int]:
    """The requests of these replies by digest; what was not there is made."""
    by_digest = {_request_digest(one, told): told for told in kept}
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


def _request_digest(one: _Prepared, told: Transcript) -> str:
    return digest({"recorded": one.run.project.slug, "reply": _reply_digest(one.part, told)})


def _request(run: Run, digest: str, told: Transcript) -> Request:
    failed = told.text is None
    return Request(
        digest=digest,
        endpoint=run.endpoint,
        sample=told.sample,
        place=planning.place(run.seed, digest),
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
        asked_at=now,
        seconds=0.0,
    )


def _readings(one: _Prepared, told: Transcript, reply: int) -> Iterable[Reading]:
    """By our parser, and what was stored with the reply."""
    ours = outputs.parser(one.strategy)
    for parser, read in ((ours, verdicts.read(one.strategy, told)), (STORED, told.stored)):
        if read:
            yield Reading(
                reply_id=reply,
                parser=parser,
                value=read.value,
                path=read.path,
                cause=read.cause,
                explanation=read.explanation,
            )


def _store_outcomes(one: _Prepared, requests: Mapping[str, int]) -> None:
    pending = {
        (row.item.key, row.axis): row
        for row in one.run.outcomes.select_related("item").only("item__key", "axis", "run")
    }
    calls = []
    for place, judged in one.judged.items():
        outcome = pending[place]
        outcomes.apply(outcome, replace(judged.decides, values=judged.values), one.strategy)
        calls += [
            _call(outcome, told, requests[_request_digest(one, told)])
            for told in judged.transcripts
            if _is_kept(told)
        ]
    outcomes.write(list(pending.values()))
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
