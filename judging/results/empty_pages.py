"""Which result pages have nothing to show for the chosen runs, and why.

No table is computed to find out: the frames of the runs, the task type and a few existence queries
tell. A page that is not named here may still turn out empty, for example if the final labels of all
items of a run have changed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from django.db.models import Exists, OuterRef

from annotation import tasktypes
from annotation.models import Item, Label, Project
from judging.models import Outcome, Run
from judging.results import counted, explanation_audits, metric_scales
from judging.results.arrays import JUDGING_FRAMES
from judging.results.frames import EXPLANATION_FRAME
from judging.results.metric_scales import SCORING_FRAMES
from judging.results.page_parts import ResultPage
from judging.runs.models import UNLABELLED

DETECTS = "detection"
# What a page can need, and what to say if it is not there.
REASONS = {
    "runs": "no run is chosen",
    "outcomes": "the chosen runs have no results yet",
    "perturbed answers": "no chosen run with results judges perturbed answers",
    "two runs": "comparing needs two runs with results that judge perturbed answers",
    "pairs or repeats": "no chosen run compares the answers of a pair or has repeats",
    "a reference": "no chosen run scores answers with the gold answer as reference",
    "explanations": "no explanations were checked or audited",
    "error detection": "no chosen run detects errors in natural answers",
    "unlabelled items": "no chosen run of error detection judged items without a final label",
    "ratings": "no chosen run gives ratings, and people are asked for none",
    "items": "the project has no items",
    "labels": "the project has no labels",
    "pairwise task": "the task type does not ask for comparisons",
}


def find_empty_pages(
    pages: Mapping[str, ResultPage], project: Project, runs: Sequence[Run], every: Sequence[Run]
) -> dict[str, str]:
    """Why pages have nothing to show, by the slugs of these pages. `runs` are the chosen runs, and
    `every` are all judging runs of the project. Makes at most six queries."""
    met = set(_find_met(project, runs, every))
    return {slug: REASONS[page.needs] for slug, page in pages.items() if page.needs not in met}


def _find_met(project: Project, runs: Sequence[Run], every: Sequence[Run]) -> Iterator[str]:
    """The needs that are met."""
    task = tasktypes.load_task_type(project)
    settled = _select_settled(runs)
    asked = counted.load_strategies(settled)
    frames = {one.frame for one in asked.values()}
    judging = [run for run in settled if asked[run.pk].frame in JUDGING_FRAMES]
    checks = any(run.strategy.strategy().frame == EXPLANATION_FRAME for run in every)
    found = {
        "runs": bool(runs),
        "outcomes": bool(settled),
        "perturbed answers": bool(judging),
        "two runs": len(judging) > 1,
        "pairs or repeats": "pair" in frames or any(run.samples > 1 for run in settled),
        "a reference": "reference" in frames,
        "explanations": bool(settled) and (checks or _has_audits(project)),
        "error detection": DETECTS in frames,
        "unlabelled items": _has_unlabelled(
            run for run in settled if asked[run.pk].frame == DETECTS
        ),
        "ratings": bool(frames.intersection(SCORING_FRAMES) or metric_scales.people_metrics(task)),
        "items": Item.objects.in_project(project).all().exists(),
        "labels": Label.objects.in_project(project).exists(),
        "pairwise task": task.pair is not None,
    }
    return (name for name, is_met in found.items() if is_met)


def _select_settled(runs: Sequence[Run]) -> list[Run]:
    """The runs with a result, at least of one item; one query."""
    if not runs:
        return []
    own = Outcome.objects.settled().filter(run=OuterRef("pk"))
    numbers = [run.pk for run in runs]
    found = set(Run.objects.filter(Exists(own), pk__in=numbers).values_list("pk", flat=True))
    return [run for run in runs if run.pk in found]


def _has_unlabelled(runs: Iterable[Run]) -> bool:
    """True if one of these runs judged an item without a final label; no query without a run."""
    numbers = [run.pk for run in runs]
    return bool(numbers) and Outcome.objects.filter(run__in=numbers, truth=UNLABELLED).exists()


def _has_audits(project: Project) -> bool:
    """True if people are asked about explanations of the project's runs, in one of its audits."""
    return explanation_audits.audited_explanations(project).exists()
