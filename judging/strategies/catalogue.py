"""The strategies that a project can use: the built-in ones and its own."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.db.models import Count

from annotation import tasktypes
from annotation.items import taxonomy
from annotation.models import Project
from annotation.tasktypes import TaskType, toml_text
from judging import strategies
from judging.models import Run, StrategyVersion
from judging.runs import selection
from judging.strategies import Strategy, descriptions, frames


@dataclass(frozen=True)
class CatalogueEntry:
    """The newest version of a strategy; `runs` counts the project's runs with any version of it,
    and `suits` is False if it shows texts that the project's items do not have, or suggests what is
    settled by their categories."""

    version: StrategyVersion
    strategy: Strategy
    runs: int
    suits: bool

    @property
    def is_own(self) -> bool:
        """True if the strategy belongs to a project, False if it comes with Blindspot."""
        return self.version.project_id is not None

    @property
    def is_offered(self) -> bool:
        """True if new runs may use the strategy."""
        return self.version.retired_at is None


# The built-in strategies to begin with, in the order in which they are recommended, and why.
RECOMMENDED = {
    "vanilla": "Scores the gold and the perturbed answer, each alone: does the evaluator see the "
    "error without help?",
    "reference": "Scores the perturbed answer beside the gold answer.",
    "pairwise": "Shows both answers, in both orders: which one is better?",
    "detect-1a": "Asks of each response whether it has an error.",
    "detect-self-consistency": "Asks the same several times; the majority decides.",
    "likert": "Scores each response by the scales of your form, with the gold answer shown.",
    "likert-no-gold": "Scores each response by the scales of your form, without the gold answer.",
    "score-matrix": "Scores each response by the points of your form, all at once.",
    "generate-gold": "Writes the gold answers that the items wait for.",
}


@dataclass(frozen=True)
class FrameGroup:
    """The strategies of one frame."""

    frame: str
    title: str
    listed: tuple[CatalogueEntry, ...]


def list_strategies(project: Project) -> list[CatalogueEntry]:
    """All strategies, sorted by slug. The project's own strategy replaces a built-in one with the
    same slug. A built-in generator of a category that the project does not have is left out."""
    used, known = _runs(project), taxonomy.load_taxonomy(project)
    task = tasktypes.load_task_type(project)
    own = StrategyVersion.objects.own(project).newest()
    found = {one.slug: one for one in [*_list_shipped(), *own]}
    read = [(one, one.strategy().with_categories(known)) for _, one in sorted(found.items())]
    return [
        CatalogueEntry(
            one,
            strategy,
            used[one.slug, one.project_id is not None],
            suits_task(strategy, task),
        )
        for one, strategy in read
        if one.project_id or strategy.made or not strategy.category
    ]


def suits_task(strategy: Strategy, task: TaskType) -> bool:
    """True if items of this task type have the texts that the strategy shows, and their categories
    do not settle what it suggests."""
    texts = {text.name for text in task.texts}
    is_settled = strategy.frame == "sorting" and task.categories
    return frames.can_show(strategy, texts) and not is_settled


def recommend(task: TaskType, offered: Iterable[CatalogueEntry]) -> list[CatalogueEntry]:
    """The two or three strategies to begin with, for items of this task type; none if no built-in
    strategy is for its labels."""
    by_slug = {one.version.slug: one for one in offered if one.suits and not one.is_own}
    return [
        by_slug[slug]
        for slug in RECOMMENDED
        if slug in by_slug and _is_made_for(by_slug[slug].strategy, task)
    ]


def _is_made_for(strategy: Strategy, task: TaskType) -> bool:
    """True if the labels of this task type are of the kind that the strategy is compared with, or
    if the task type waits for what it generates."""
    if strategy.generates or task.awaits:
        return strategy.frame == "answer" and task.awaits == "gold"
    if strategy.metrics_from == "task":
        kind = "points" if strategy.frame == "rubric" else "scale"
        return any(field.kind == kind for field in task.fields)
    wanted = selection.REQUIRED_RESULTS.get(frames.get_item_needs(strategy), ())
    return not {str(option.value) for option in task.deciding.options}.isdisjoint(wanted)


def group_by_frame(project: Project) -> list[FrameGroup]:
    """The strategies grouped by frame, and sorted by study within a frame; the project's own
    strategies come first."""
    listed = sorted(
        list_strategies(project), key=lambda one: (not one.is_own, one.strategy.study[:3])
    )
    groups = (
        FrameGroup(frame, words.title, tuple(one for one in listed if one.strategy.frame == frame))
        for frame, words in descriptions.FRAME_DESCRIPTIONS.items()
    )
    return [group for group in groups if group.listed]


def list_offered(project: Project) -> list[CatalogueEntry]:
    """All strategies that new runs can use."""
    return [listed for listed in list_strategies(project) if listed.is_offered]


def find_version(project: Project, slug: str) -> StrategyVersion | None:
    """Find the newest version of the strategy with this slug; None if there is no such strategy.

    A built-in strategy that was never used is returned unsaved; `store_version` stores it.
    """
    own = StrategyVersion.objects.own(project).named(slug).first()
    if own or slug not in strategies.load_all():
        return own
    return _build_shipped(strategies.load_all()[slug])


def store_version(version: StrategyVersion) -> StrategyVersion:
    """Return the version as a stored row that runs and copies can refer to, and store it if
    necessary.
    """
    return version if version.pk else selection.get_strategy_version(version.slug)


def list_versions(project: Project, newest: StrategyVersion) -> list[StrategyVersion]:
    """Return all versions of a strategy, newest first. `used` is the number of the project's runs
    with the version.
    """
    if newest.project_id is not None:
        found = StrategyVersion.objects.own(project)
    else:
        found = StrategyVersion.objects.shipped()
    rows = list(found.named(newest.slug).with_runs(project))
    return rows if newest.pk else [newest, *rows]


def list_deleted(project: Project) -> list[StrategyVersion]:
    """The newest versions of the project's own strategies that were deleted."""
    return list(StrategyVersion.objects.deleted(project).newest().order_by("slug"))


def list_runs(project: Project, newest: StrategyVersion) -> list[Run]:
    """The project's runs with any version of a strategy, newest first."""
    return list(Run.objects.in_project(project).with_strategy(newest).for_page())


def get_source(version: StrategyVersion) -> str:
    """Return the TOML source of a version. If the source was not kept, it is generated from the
    definition.
    """
    if version.source:
        return version.source
    shipped = strategies.load_all().get(version.slug) if version.project_id is None else None
    if shipped and strategies.compute_digest(shipped.definition) == version.digest:
        return strategies.read_source(version.slug)
    return toml_text.write_definition(version.definition)


def _list_shipped() -> Iterator[StrategyVersion]:
    known: dict[str, list[StrategyVersion]] = {}
    for version in StrategyVersion.objects.shipped().order_by("slug", "number"):
        known.setdefault(version.slug, []).append(version)
    for slug, strategy in strategies.load_all().items():
        yield _find_stored(strategy, known.get(slug, []))


def _build_shipped(strategy: Strategy) -> StrategyVersion:
    return _find_stored(strategy, list(StrategyVersion.objects.shipped().named(strategy.slug)))


def _find_stored(strategy: Strategy, known: list[StrategyVersion]) -> StrategyVersion:
    """Return the stored version of the current file, or an unsaved version if the file was not used
    yet.
    """
    digest = strategies.compute_digest(strategy.definition)
    stored = next((version for version in known if version.digest == digest), None)
    return stored or StrategyVersion(
        slug=strategy.slug,
        number=max((version.number for version in known), default=0) + 1,
        digest=digest,
        definition=strategy.definition,
        source=strategies.read_source(strategy.slug),
    )


def _runs(project: Project) -> Counter[tuple[str, bool]]:
    """Count the project's runs with each strategy. The key is the slug of the strategy, and True if
    the strategy belongs to the project.
    """
    pinned = Run.objects.in_project(project).order_by()
    counted = pinned.values_list("strategy__slug", "strategy__project").annotate(n=Count("pk"))
    used: Counter[tuple[str, bool]] = Counter()
    for slug, owner, n in counted:
        used[slug, owner is not None] += n
    return used
