"""The calls of a run: the exact body that each call sends, and its request, which other calls may
share."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby

from annotation.db import bulk, clock, sql, transactions
from annotation.models import Item
from judging.models import Call, Outcome, Reading, Request, Run
from judging.runs.engine import digests, rendering
from judging.strategies import Strategy, draws, frames
from judging.strategies.frames import CallSpec


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call to create for one sample of an outcome, with the texts that it shows besides the
    item's texts, and the id of the reading from which these texts are taken. `supplement` is the
    number of the run's supplement that asks again, 0 for the run's own calls."""

    outcome: Outcome
    spec: CallSpec
    sample: int = 0
    more: Mapping[str, str] = field(default_factory=dict)
    fed_by: int | None = None
    supplement: int = 0


_NOTE_FIRST_REPLIES = sql.PreparedUpdate(
    lambda ids, now: (
        Item.objects.filter(
            pk__in=Outcome.objects.of_requests(ids).filter(run__generates=False).values("item"),
            first_reply_at=None,
        ),
        {"first_reply_at": now},
    )
)
_CheckedExplanations = dict[tuple[int, str], tuple[dict[str, str], int]]
RefusalHandler = Callable[[Outcome, str], None]


def build_first_calls(
    run: Run,
    strategy: Strategy,
    batch: Sequence[Outcome],
    *,
    base: Run | None = None,
    supplement: int = 0,
) -> list[PlannedCall]:
    """Build the first calls of these outcomes of a run, or of one of its supplements. An
    explanation check uses the explanations of `base`, by default the run's source."""
    checked: _CheckedExplanations = {}
    if strategy.frame == "explanation":
        checked = _load_checked_explanations(
            base or rendering.get_checked_run(run), strategy, batch
        )
    remarks = rendering.load_guidance(run, {outcome.item_id for outcome in batch})
    wanted = []
    for outcome in batch:
        more, fed_by = checked.get((outcome.item_id, outcome.axis), ({}, None))
        more = more | remarks.get(outcome.item_id, {})
        wanted += [
            PlannedCall(outcome, spec, sample, more, fed_by, supplement)
            for spec in list_call_specs(strategy, outcome)
            for sample in range(run.samples)
        ]
    return wanted


def list_call_specs(strategy: Strategy, outcome: Outcome, step: int = 0) -> tuple[CallSpec, ...]:
    """List the calls that one sample of an outcome needs at a step."""
    axis = outcome.axis if strategy.axes else ""
    return frames.list_calls(strategy, axis=axis, step=step)


def create_calls(run: Run, strategy: Strategy, wanted: Iterable[PlannedCall]) -> list[int]:
    """Create these calls; return the ids of the outcomes for which a reply is already stored.

    Idempotent. If no request can be made for an outcome's item (a text cannot be sent, or is
    missing), the outcome becomes missing with the cause "rejected".
    """
    planned = [
        (one, digest)
        for one, digest, _ in render_calls(run, strategy, wanted, refused=Outcome.reject)
    ]
    with transactions.transact():
        known = _get_or_create_requests(run, planned)
        bulk.insert_missing(
            Call,
            [
                {
                    "run_id": run.pk,
                    "outcome_id": one.outcome.pk,
                    "role": one.spec.role,
                    "order": one.spec.order,
                    "axis": one.spec.axis,
                    "step": one.spec.step,
                    "sample": one.sample,
                    "supplement": one.supplement,
                    "fed_by_id": one.fed_by,
                    "request_id": known[digest][0],
                }
                for one, digest in planned
            ],
        )
        answered = {pk for pk, state in known.values() if state == "answered"}
        if answered and run.endpoint.is_evaluator():
            note_first_replies(answered, clock.now())
    return list({one.outcome.pk for one, digest in planned if known[digest][0] in answered})


def render_calls(
    run: Run,
    strategy: Strategy,
    wanted: Iterable[PlannedCall],
    *,
    refused: RefusalHandler = lambda outcome, reason: None,
) -> Iterator[tuple[PlannedCall, str, bytes]]:
    """Yield the calls with the digests and bodies of their requests, outcome by outcome.

    If no request can be made for an outcome's item, `refused` is called with the reason, and none
    of the outcome's calls is yielded.
    """
    everywhere = rendering.load_shared_texts(run, strategy)
    senders = {0: (run, rendering.build_digest_function(run))}
    for (*_, number), group in groupby(
        wanted, key=lambda one: (one.outcome.item_id, one.outcome.axis, one.supplement)
    ):
        asked = list(group)
        if number not in senders:
            again = rendering.with_supplement(run, number)
            senders[number] = again, rendering.build_digest_function(again)
        sender, digest_of = senders[number]
        try:
            yield from _render_outcome_calls(sender, strategy, asked, everywhere, digest_of)
        except ValueError as error:
            refused(asked[0].outcome, str(error))


def _render_outcome_calls(
    run: Run,
    strategy: Strategy,
    asked: Sequence[PlannedCall],
    everywhere: Mapping[str, str],
    digest_of: Callable[[bytes, int], str],
) -> list[tuple[PlannedCall, str, bytes]]:
    """Render the calls of one outcome; calls that differ only in the sample are rendered once."""
    bodies: dict[tuple[CallSpec, int | None], bytes] = {}
    for one in asked:
        if (one.spec, one.fed_by) not in bodies:
            texts = one.outcome.revision.texts
            more = {**everywhere, **one.more, **draws.render(strategy, one.outcome.drawn)}
            body = rendering.render_body(run, texts, one.spec, strategy, more)
            bodies[one.spec, one.fed_by] = body
    found = [(one, bodies[one.spec, one.fed_by]) for one in asked]
    return [(one, digest_of(body, one.sample), body) for one, body in found]


def _get_or_create_requests(
    run: Run, planned: Sequence[tuple[PlannedCall, str]]
) -> dict[str, tuple[int, str]]:
    """Return the id and state of the request of each digest; create missing requests.

    All runs create and lock requests in the same order, so that two runs that want the same
    requests do not deadlock. The lock has a second use: a reply is stored either before this
    function, which then sees it, or after it, when the calls already exist. A request that failed
    for an earlier run is tried again.
    """
    samples = {digest: one.sample for one, digest in planned}
    bulk.insert_missing(
        Request,
        [
            {
                "digest": digest,
                "endpoint_id": run.endpoint_id,
                "sample": samples[digest],
                "occasion": run.occasion,
                "place": digests.draw_place(run.seed, digest),
            }
            for digest in sorted(samples)
        ],
    )
    found = Request.objects.filter(digest__in=samples)
    locked = found.order_by("pk").select_for_update(no_key=True)
    known = {row[0]: row[1:] for row in locked.values_list("digest", "pk", "state")}
    found.ask_again(clock.now())
    return known


def _load_checked_explanations(
    base: Run, strategy: Strategy, batch: Sequence[Outcome]
) -> _CheckedExplanations:
    """Load the explanations that an explanation check shows, by item id and axis, with the ids of
    their readings.

    Items without an explanation are left out, so that their calls cannot be rendered.
    """
    about = Call.objects.filter(run=base, role=strategy.about or "perturbed", sample=0)
    about = about.filter(outcome__item__in=[outcome.item_id for outcome in batch])
    # A supplement asks only items that had no explanation before.
    about = about.order_by("supplement")
    places = about.values_list("outcome__item", "outcome__axis", "request")
    asked = {(item, axis): request for item, axis, request in places}
    readings = Reading.objects.filter(reply__request__in=asked.values(), parser=base.parser)
    columns = readings.values_list("reply__request", "explanation", "value", "pk")
    said = {row[0]: row[1:] for row in columns}
    scale = base.pinned_strategy().scale
    found = {place: said[request] for place, request in asked.items() if request in said}
    return {
        place: (rendering.format_explanation(explanation, value, scale), reading_id)
        for place, (explanation, value, reading_id) in found.items()
        if explanation
    }


def note_first_replies(request_ids: Iterable[int], now: datetime) -> None:
    """Set the time of the first reply on the items of these requests. A generator's output does not
    count as a reply, since it does not judge the item."""
    _NOTE_FIRST_REPLIES.run(ids=list(request_ids), now=sql.to_database_time(now))
