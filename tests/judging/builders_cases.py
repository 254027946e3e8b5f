"""For each shipped strategy the items it can be asked about, and what a run over them comes to."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from annotation.items import taxonomy
from annotation.models import Project
from judging.models import Endpoint, Run
from judging.runs import derived, lifecycle
from judging.runs.run_config import RunOverrides
from judging.strategies import load_all
from tests.builders import make_project
from tests.judging.builders_judging import (
    make_baseline,
    make_items,
    make_responses,
    make_run,
    make_strategy,
    work,
)

NOTICED = frozenset({"detected", "undetected"})
SCORED = frozenset({"scored"})
MADE = frozenset({"made"})
ITEMS = 3


@dataclass(frozen=True)
class Case:
    """A project for a strategy with what it is `over` ("" where nothing), the calls that a run
    makes for its ITEMS, and the results that it may have."""

    project: Callable[[], Project]
    calls: int
    results: frozenset[str] = NOTICED
    over: tuple[str, ...] = ()
    baseline: bool = False


def perturbed() -> Project:
    """Two valid items and one that should not be noticed, each with a gold answer of its own."""
    project = make_project()
    make_items(project, ITEMS - 1)
    make_items(project, 1, "score-invariant")
    return project


def answered(ability: str) -> Project:
    """Gold answers of an ability, each with a question of its own."""
    project = make_project()
    make_items(project, ITEMS, ability=ability, source_ability=ability)
    return project


def detectable() -> Project:
    project = make_project(task_type="error-detection")
    make_responses(project, ["error", "no_error", "error"])
    return project


def rated() -> Project:
    project = make_project(task_type="rating")
    make_responses(project, ["3/2/1"] * ITEMS)
    return project


def matrix() -> Project:
    project = make_project(task_type="rubric-matrix")
    make_responses(project, ["1/0/1"] * ITEMS)
    return project


def one_score() -> Project:
    project = make_project(task_type="rubric-one-score")
    make_responses(project, ["2"] * ITEMS, score=2)
    return project


def scored() -> Project:
    """Three more than are asked about: a strategy may show them as examples."""
    project = make_project(task_type="rubric-scoring")
    values = {"m1": 2, "m2": 3, "m3": 5, "m4": 2, "m5": 3}
    make_responses(project, ["2/3/5/2/3"] * (ITEMS + 3), **values)
    return project


# Derived by hand: gold and perturbed answer are 2 calls an item, the two orders of a pair too, and
# each is made along every one of four axes. Where an item's texts are its own, none is shared.
CASES = {
    "axis": Case(perturbed, 2 * ITEMS),
    "axis-rubric": Case(perturbed, 2 * ITEMS),
    "axis-rubric-5": Case(perturbed, 2 * ITEMS),
    "detect-1a": Case(detectable, ITEMS),
    "detect-1b": Case(detectable, ITEMS),
    "detect-2a": Case(detectable, ITEMS),
    "detect-2b": Case(detectable, ITEMS),
    "detect-self-consistency": Case(detectable, 5 * ITEMS),
    "detect-steps": Case(detectable, ITEMS),
    "explanation-check": Case(perturbed, ITEMS, over=("vanilla",)),
    "explanation-check-gold": Case(perturbed, ITEMS, over=("vanilla",)),
    "generate-claims": Case(perturbed, ITEMS, MADE),
    "generate-gold": Case(perturbed, ITEMS, MADE),
    "generate-planted": Case(perturbed, ITEMS, MADE),
    "generate-requirements": Case(perturbed, ITEMS, MADE),
    "generate-response": Case(detectable, ITEMS, MADE),
    "reword": Case(perturbed, ITEMS, MADE),
    "suggest-ability": Case(perturbed, ITEMS, MADE),
    "translate": Case(perturbed, ITEMS, MADE),
    **{
        f"generate-{one.slug}": Case(partial(answered, one.ability), ITEMS, MADE)
        for one in taxonomy.load_shipped()
        if one.in_paper
    },
    "length": Case(perturbed, 2 * ITEMS, baseline=True),
    "likert": Case(rated, ITEMS, SCORED),
    "likert-no-gold": Case(rated, ITEMS, SCORED),
    "majority": Case(detectable, 0, over=("detect-1a", "detect-2a", "detect-steps")),
    "matching": Case(rated, ITEMS, SCORED),
    "mean": Case(perturbed, 0, over=("rubric", "rubric")),
    "minority-veto": Case(detectable, 0, over=("detect-1a", "detect-2a")),
    "pairwise": Case(perturbed, 2 * ITEMS),
    "pairwise-axis": Case(perturbed, 2 * ITEMS),
    "pairwise-axis-rules": Case(perturbed, 2 * ITEMS),
    "pairwise-rules": Case(perturbed, 2 * ITEMS),
    "pairwise-verdict": Case(perturbed, 2 * ITEMS),
    "prometheus": Case(perturbed, ITEMS),
    "prometheus-axis": Case(perturbed, ITEMS),
    "reference": Case(perturbed, ITEMS),
    "rouge-l": Case(perturbed, ITEMS, baseline=True),
    "rouge-l-response": Case(rated, ITEMS, SCORED, baseline=True),
    "rouge-l-unicode": Case(perturbed, ITEMS, baseline=True),
    "rouge-l-unicode-response": Case(rated, ITEMS, SCORED, baseline=True),
    "rubric": Case(perturbed, 2 * ITEMS),
    "rubric-5": Case(perturbed, 2 * ITEMS),
    # Three steps an item, one after the other.
    "score-chain": Case(matrix, 3 * ITEMS, SCORED),
    "score-matrix": Case(scored, ITEMS, SCORED),
    "score-matrix-animals": Case(scored, ITEMS, SCORED),
    "score-rubric": Case(one_score, ITEMS, SCORED),
    "string-match": Case(rated, ITEMS, SCORED, baseline=True),
    "vanilla": Case(perturbed, 2 * ITEMS),
    "vanilla-score": Case(perturbed, 2 * ITEMS),
    "weighted-votes": Case(detectable, 0, over=("detect-1a", "detect-2a")),
}


def run_case(
    slug: str, ask: Callable[[], Endpoint], *, limit: int | None = None, seconds: float = 20
) -> tuple[Run, Project]:
    """A run of a strategy that has ended, asked of an endpoint, or a derived one; those that it is
    over are asked first, each of an endpoint of its own."""
    case = CASES[slug]
    project = case.project()
    sources = [work(make_run(project, ask(), base, limit=limit), seconds) for base in case.over]
    if not case.calls:
        strategy = make_strategy(slug)
        weighted = strategy.strategy().fold == "weighted"
        weights = {source.number: 1 for source in sources} if weighted else None
        made = derived.derive_run(project, strategy=strategy, sources=sources, weights=weights)
        return made, project
    endpoint = make_baseline() if case.baseline else ask()
    run = lifecycle.start_run(
        project,
        strategy=make_strategy(slug),
        endpoint=endpoint,
        config=lifecycle.RunConfig(
            over=sources[0] if sources else None,
            own=RunOverrides(language="Swedish" if load_all()[slug].translates else ""),
            seed=1,
            limit=limit,
        ),
    )
    return work(run, seconds), project
