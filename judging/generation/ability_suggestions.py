"""Store the abilities that a run suggests for prompts, so that people can accept them."""

from collections.abc import Iterator
from dataclasses import dataclass

from annotation import errors
from annotation.items import ability_sorting
from annotation.items.ability_sorting import AbilitySuggestion
from annotation.models import Membership
from judging.errors import Refused
from judging.generation import rows
from judging.models import Outcome, Run
from judging.strategies.schema import ABILITY

FRAME = "sorting"


@dataclass(frozen=True)
class SuggestionCounts:
    """The number of prompts that a run suggests an ability for, and how many of these are new."""

    suggested: int
    new: int


def suggests_abilities(run: Run) -> bool:
    """True if the run suggests abilities."""
    return run.pinned_strategy().frame == FRAME


def explain_unavailable(run: Run) -> str:
    """The reason why the suggestions of a run cannot be stored now; "" if they can be stored."""
    if not suggests_abilities(run):
        return f"Run {run.number} suggests no abilities. Start a run with suggest-ability."
    if problem := rows.explain_unfinished(run):
        return problem
    try:
        ability_sorting.check_sortable(run.project)
    except errors.Refused as refused:
        return str(refused)
    made = run.outcomes.filter(result=Outcome.Result.MADE).exists()
    return "" if made else f"Run {run.number} suggested nothing. Its page shows the causes."


def store_suggestions(run: Run, member: Membership | None = None) -> SuggestionCounts:
    """Store a run's suggestions with its items, so that people can accept them. A second call adds
    nothing.

    Raises `Refused` with the reason from `explain_unavailable`.
    """
    if problem := explain_unavailable(run):
        raise Refused(problem)
    found = list(_suggestions(run))
    by = f"{run.strategy.slug} v{run.strategy.number}, {run.pinned['model']}, run {run.number}"
    return SuggestionCounts(
        len(found), ability_sorting.store_suggestions(run.project, found, by=by, member=member)
    )


def _suggestions(run: Run) -> Iterator[AbilitySuggestion]:
    """Return one suggestion per item: the most frequent among its samples, in a tie the
    earliest."""
    said: dict[int, list[str]] = {}
    for one in rows.iterate_replies(run):
        said.setdefault(one.item, []).append(str(one.value[ABILITY]))
    for item, abilities in said.items():
        yield AbilitySuggestion(item, max(abilities, key=abilities.count))
