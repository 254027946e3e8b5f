"""Runs of synthetic replies: read by the parser and decided as real ones, asked of nobody."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, count, cycle
from typing import Any

from annotation.items import taxonomy
from annotation.models import Item, Project
from judging import strategies
from judging.models import Endpoint, Outcome, Run
from judging.results import explanation_audits
from judging.runs import pinning
from judging.runs.engine import outcomes
from judging.runs.run_config import RunOverrides
from judging.strategies import Strategy, frames
from judging.strategies.replies import decisions, outputs
from judging.strategies.replies.decisions import Decision
from tests.builders import make_project
from tests.judging.builders_judging import make_items, make_strategy

CUT = ""
# One text for each call of the frame, sample after sample; CUT for a truncated one.
Replies = tuple[str, ...]


def scores(*numbers: float | None) -> Replies:
    """Replies that give these scores; None is cut short."""
    return tuple(CUT if one is None else f'{{"score": {one}}}' for one in numbers)


# What both orders answer, gold shown first and then second, by what they mean.
_SHOWN = {
    "G": ("A", "B"),
    "P": ("B", "A"),
    "both_good": ("both good", "both good"),
    "both_bad": ("both unacceptable", "both unacceptable"),
    "first_twice": ("A", "A"),
    "second_twice": ("B", "B"),
    "half_tie": ("A", "both good"),
}


def verdicts(meaning: str) -> Replies:
    """Replies of both orders that mean G, P, both_good, both_bad, or an effect of the order."""
    return tuple(f'{{"verdict": "{said}"}}' for said in _SHOWN[meaning])


def make_endpoint(name: str = "judge") -> Endpoint:
    made, _ = Endpoint.objects.get_or_create(
        name=name, provider="openai_compatible", address="https://judge.invalid/v1", model=name
    )
    return made


def own(*, votes: bool) -> RunOverrides:
    return RunOverrides(votes=votes)


def make_replied(
    project: Project, slug: str, said: Iterable[tuple[Item, Replies]], **values: Any
) -> Run:
    """A finished run of a strategy that got these replies about each item, along the axes of a
    `base` run if one is given. Without an endpoint it supersedes no other: each further run of a
    strategy is another evaluator's."""
    samples = values.get("samples", 1)
    before = project.runs.filter(strategy__slug=slug, samples=samples).count()
    name = f"judge-{before + 1}" if before else "judge"
    endpoint = values.pop("endpoint", None) or make_endpoint(name)
    base = values.pop("base", None)
    sources, held = values.pop("sources", ()), {"seed": 1, "state": Run.State.FINISHED, **values}
    run = pinning.draft_run(project, make_strategy(slug), endpoint, **held)
    pinning.store_run(run, pinning.DrawnItems([]), sources=sources)
    Outcome.objects.bulk_create(_outcomes(run, list(said), base), batch_size=1000)
    return run


def make_audit(run: Run, *said: tuple[bool, str]) -> Project:
    """An audit of a run: of the explanation of each of its first items whether the verdict was
    right, and what people hold it for, "" where that is open."""
    audit = make_project(
        f"{run.project.slug}-audit-{run.number}", task_type=explanation_audits.TASK
    )
    keys = run.outcomes.order_by("item__position").values_list("item__key", flat=True)
    further = (f"further-{number}" for number in count())
    for key, (right, quality) in zip(chain(keys, further), said, strict=False):
        of = {"project": run.project.slug, "run": run.number, "item": key}
        [item] = make_items(audit, 1, quality, fields={**of, "verdict_is_right": right})
        item.resolutions.exclude(value__gt="").delete()
    return audit


def _outcomes(
    run: Run, said: Sequence[tuple[Item, Replies]], base: Run | None
) -> Iterator[Outcome]:
    strategy = run.pinned_strategy()
    items = [item.pk for item, _ in said]
    truths = dict(Item.objects.filter(pk__in=items).values_list("pk", "resolutions__value"))
    revisions = dict(Item.objects.filter(pk__in=items).values_list("pk", "revisions"))
    along = dict(base.outcomes.values_list("item", "axis")) if base else {}
    decide = cache(lambda axis, texts: _decide(strategy, axis, texts))
    for item, texts in said:
        axis = along.get(item.pk) or next(name for name, main in _axes(strategy, item) if main)
        invariant = truths[item.pk] == "score-invariant"
        outcome = Outcome(
            run=run,
            item=item,
            revision_id=revisions[item.pk],
            # Items that repeat another one are of no ability.
            ability=""
            if item.duplicate_of_id
            else "score-invariant"
            if invariant
            else item.ability,
            category="score-invariant" if invariant else item.category,
            source_ability=item.source_ability,
            cluster=item.cluster,
            invariant=invariant,
            truth=truths[item.pk],
            axis=axis,
        )
        outcomes.apply_decision(outcome, decide(axis, texts), strategy)
        yield outcome


def _axes(strategy: Strategy, item: Item) -> list[tuple[str, bool]]:
    return strategies.list_item_axes(
        strategy, item.ability, item.source_ability, taxonomy.load_taxonomy(item.project)
    )


def _decide(strategy: Strategy, axis: str, texts: Replies) -> Decision:
    specs = frames.list_calls(strategy, axis=axis)
    readings = {
        (specs[place % len(specs)], place // len(specs)): outputs.parse_reply(
            strategy, text, "stop" if text else "length"
        )
        for place, text in enumerate(texts)
    }
    return decisions.decide(strategy, readings)


def make_every_frame(project: Project, items: list[Item], apart: list[Replies]) -> None:
    """A run of every frame of study 000 over the items, whose gold and perturbed answers are scored
    `apart`, in turn."""
    base = make_replied(project, "vanilla", zip(items, cycle(apart), strict=False))
    equal = [outcome.item for outcome in base.outcomes.filter(detail="equal")]
    flags = cycle([('{"flag": true}',), ('{"flag": false}',)])
    checked = list(zip(equal, flags, strict=False))
    make_replied(project, "explanation-check", checked, sources=[base], base=base)
    make_replied(project, "reference", zip(items, cycle([scores(9), scores(10)]), strict=False))
    said = [verdicts(one) for one in ("G", "both_good", "first_twice")]
    make_replied(project, "pairwise", zip(items, cycle(said), strict=False))
    twice = [scores(9, 5, 9, 9), scores(9, 9, 9, 9)]
    make_replied(project, "vanilla", zip(items, cycle(twice), strict=False), samples=2)
