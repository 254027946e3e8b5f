"""Reading the replies of a run again, by the parser as it is now or by another one.

New readings stand beside the old ones. What would change is shown first; applying switches the
run's parser, and its outcomes follow batch by batch.
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
from judging.runs.engine import outcomes, reparse_batches
from judging.runs.transitions import change_state
from judging.strategies.replies import outputs

# Items that a preview names; all are counted.
MAX_LISTED = 200
BATCH = 200


@dataclass(frozen=True)
class OutcomeChange:
    """An item, along one axis, that another parser would decide otherwise: what it is held for
    and what it would be, each as result and detail, or cause."""

    item: str
    axis: str
    before: str
    after: str


@dataclass
class ReparsePreview:
    """What would become of a run's `outcomes` under `parser`: how many `change`, counted by what
    they were and would be, and the first of them by name."""

    parser: str
    outcomes: int = 0
    changed: int = 0
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    changes: list[OutcomeChange] = field(default_factory=list)


def list_parsers(run: Run) -> tuple[str, ...]:
    """The parsers that the replies of a run can be read by, by name; of most outputs there is one
    alone, which has none."""
    return outputs.PARSERS.get(run.asked().output, ("",))


def can_reparse(run: Run) -> bool:
    """Whether the replies of a run can be read again now."""
    return run.state == Run.State.FINISHED and run.kind == Run.Kind.ASKED


def build_preview(run: Run, parser: str | None = None) -> ReparsePreview:
    """What would change if the run's replies were read by this parser, by default the one that
    it has, as that is now. Stores the new readings, and nothing else.

    Raises `Refused` for a run that is not over or has no replies, and an unknown parser.
    """
    tried = _with_parser(run, parser)
    found = ReparsePreview(tried.parser)
    for batch in _batches(run):
        for outcome, decision in outcomes.compute_decisions(tried, batch):
            found.outcomes += 1
            before, after = _format_outcome(outcome), _format_outcome(decision)
            # Along a vote or a rating what was said may differ where the result does not.
            if before == after and outcome.values == decision.values:
                continue
            found.changed += 1
            found.counts[before, after] += 1
            if len(found.changes) < MAX_LISTED:
                found.changes.append(OutcomeChange(outcome.item.key, outcome.axis, before, after))
    return found


def switch_parser(run: Run, member: Membership | None, parser: str | None = None) -> None:
    """Switch the run to this parser, and let its outcomes and derived runs follow.

    Whoever finds it half-way goes on: until it is done the run is running, as while it is asked.
    """
    switched = _with_parser(run, parser)
    with transactions.transact():
        was = run.parser
        change_state(
            run, {Run.State.FINISHED}, Run.State.RUNNING, member, was=was, parser=switched.parser
        )
        run.pinned = {**switched.pinned, reparse_batches.PROGRESS_KEY: 0}
        run.parser = switched.parser
        run.digest = pinning.compute_digest(run)
        run.save(update_fields=["pinned", "parser", "digest"])
    lifecycle.finish_if_done(run)


def _with_parser(run: Run, parser: str | None) -> Run:
    """The run as it would be under another parser, not stored."""
    if not can_reparse(run):
        raise Refused(f"Run {run.number} {_explain_unavailable(run)}")
    if parser is not None and parser not in list_parsers(run):
        known = ", ".join(name or "one alone" for name in list_parsers(run))
        raise Refused(f"There is no parser {parser!r} for these replies. Choose one of: {known}.")
    tried = Run.objects.select_related("strategy", "endpoint").get(pk=run.pk)
    if parser is not None:
        tried.pinned = {**tried.pinned, "parser": parser}
    tried.parser = outputs.get_parser_version(tried.asked())
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
    """An outcome or a decision in one word and its detail or cause."""
    more = decided.detail or decided.cause
    return f"{decided.result} {more}".strip()
