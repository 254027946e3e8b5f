"""Parse the replies of a run again, with the current version of its parser or another one.

New readings are stored next to the old readings. A preview shows what would change. `switch_parser`
then changes the run's parser and updates the run's outcomes in batches.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from annotation.db import transactions
from annotation.models import Membership
from judging.errors import Refused
from judging.models import Outcome, Run
from judging.runs import lifecycle, pinning
from judging.runs.engine import outcomes
from judging.runs.transitions import change_state
from judging.strategies.replies import outputs

# The maximum number of changes in a preview's list; all changes are counted.
MAX_LISTED = 200
BATCH = 200


@dataclass(frozen=True)
class OutcomeChange:
    """An item on one axis whose outcome would change with another parser. The outcomes before and
    after are each a result with its detail or cause."""

    item: str
    axis: str
    before: str
    after: str


@dataclass
class ReparsePreview:
    """What would change in a run with another `parser`: `changed` of its `outcomes` would. Changes
    are counted by outcome before and after, and the first changes are listed with their keys."""

    parser: str
    outcomes: int = 0
    changed: int = 0
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    changes: list[OutcomeChange] = field(default_factory=list)


def list_parsers(run: Run) -> tuple[str, ...]:
    """List the names of the parsers that can read a run's replies. Most outputs have only one
    parser, named ""."""
    return outputs.PARSERS.get(run.pinned_strategy().output, ("",))


def can_reparse(run: Run) -> bool:
    """True if the replies of a run can be parsed again now."""
    return run.state == Run.State.FINISHED and run.kind == Run.Kind.ASKED


def build_preview(run: Run, parser: str | None = None) -> ReparsePreview:
    """Preview what would change if this parser read the run's replies; None means the current
    version of the run's own parser. Only new readings are stored.

    Raises `Refused` for a run that is not finished or did not call an evaluator, and for an unknown
    parser.
    """
    tried = _with_parser(run, parser)
    found = ReparsePreview(tried.parser)
    for batch in _batches(run):
        for outcome, decision in outcomes.compute_decisions(tried, batch):
            found.outcomes += 1
            before, after = _format_outcome(outcome), _format_outcome(decision)
            # The values of a vote or a rating may differ even if the result does not.
            if before == after and outcome.values == decision.values:
                continue
            found.changed += 1
            found.counts[before, after] += 1
            if len(found.changes) < MAX_LISTED:
                found.changes.append(OutcomeChange(outcome.item.key, outcome.axis, before, after))
    return found


def switch_parser(run: Run, member: Membership | None, parser: str | None = None) -> None:
    """Switch the run to this parser, and update its outcomes and derived runs.

    Any worker can continue an interrupted switch; until the switch is complete, the run counts as
    running.
    """
    switched = _with_parser(run, parser)
    with transactions.transact():
        was = run.parser
        change_state(
            run, {Run.State.FINISHED}, Run.State.RUNNING, member, was=was, parser=switched.parser
        )
        run.pinned = {**switched.pinned, outcomes.PROGRESS_KEY: 0}
        run.parser = switched.parser
        run.digest = pinning.compute_digest(run)
        run.save(update_fields=["pinned", "parser", "digest"])
    lifecycle.finish_if_done(run)


def _with_parser(run: Run, parser: str | None) -> Run:
    """Return an unsaved copy of the run with another parser."""
    if not can_reparse(run):
        raise Refused(f"Run {run.number} {_explain_unavailable(run)}")
    if parser is not None and parser not in list_parsers(run):
        known = ", ".join(filter(None, list_parsers(run)))
        remedy = f"Choose one of: {known}." if known else "There is only one; choose none."
        raise Refused(f"There is no parser {parser!r} for these replies. {remedy}")
    tried = Run.objects.select_related("strategy", "endpoint").get(pk=run.pk)
    if parser is not None:
        tried.pinned = {**tried.pinned, "parser": parser}
    tried.parser = outputs.get_parser_version(tried.pinned_strategy())
    return tried


def _explain_unavailable(run: Run) -> str:
    if run.kind == Run.Kind.RECORDED:
        return (
            "is recorded: stored verdicts and parsed verdicts are kept side by side. To switch, "
            "import the replies again with the other --verdicts."
        )
    if run.kind == Run.Kind.DERIVED:
        return "is combined from other runs. Parse those again, and this run is updated."
    return f"is {run.state}. Only finished runs can be parsed again."


def _batches(run: Run) -> Iterator[list[Outcome]]:
    last = 0
    settled = run.outcomes.settled().select_related("item").order_by("pk")
    while batch := list(settled.filter(pk__gt=last)[:BATCH]):
        last = batch[-1].pk
        yield batch


def _format_outcome(decided: Any) -> str:
    """Format the result of an outcome or a decision, with its detail or cause."""
    more = decided.detail or decided.cause
    return f"{decided.result} {more}".strip()
