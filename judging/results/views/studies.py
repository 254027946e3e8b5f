"""Links to the views that reproduce the studies' tables and figures from the project's data."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from annotation.models import Project
from judging.models import Run
from judging.results import run_marks
from judging.results.views.page_parts import (
    BY_PARAMETER,
    RUN_PARAMETER,
    VIEW_PARAMETER,
    ResultView,
    StudyFigure,
)
from judging.results.views.registry import PAGES

STUDIES = {
    "000": "Study 000: perturbed answers",
    "001": "Study 001: natural errors",
    "002": "Study 002: rubric scores",
    "003": "Study 003: ratings of people",
}


@dataclass(frozen=True)
class StudyLink:
    """A table or figure, the view that reproduces it, and whether its strategies have a run."""

    place: StudyFigure
    href: str
    has_run: bool

    @property
    def strategy(self) -> str:
        """Its strategy, if there is exactly one."""
        return self.place.strategies[0] if len(self.place.strategies) == 1 else ""


# The functions that list grouping fields, with the fields they returned.
FieldsBySource = Mapping[Callable[[Project], Mapping[str, str]], set[str]]
# By page title.
LinksByPage = list[tuple[str, list[StudyLink]]]


def list_studies(
    project: Project, runs: Sequence[Run], *, named: bool
) -> list[tuple[str, LinksByPage]]:
    """The tables and figures of each study. `named` runs are used whatever their strategy;
    otherwise the default ones among the runs with a table's strategies, if there are any."""
    offered = _load_fields(project)
    return [(title, _study_links(study, offered, runs, named)) for study, title in STUDIES.items()]


def _load_fields(project: Project) -> FieldsBySource:
    """The grouping fields, loaded once for views that offer the same fields."""
    asks = {view.groups for page in PAGES.values() for view in page.views if view.groups}
    return {ask: set(ask(project)) for ask in asks}


def _study_links(
    study: str, offered: FieldsBySource, runs: Sequence[Run], named: bool
) -> LinksByPage:
    found = []
    for slug, page in PAGES.items():
        places = [(view, place) for view in page.views for place in view.studies.get(study, ())]
        printed = []
        for view, place in places:
            of_place = [run for run in runs if run.strategy.slug in place.strategies]
            of_place = of_place if named else run_marks.select_default(of_place)
            query = [
                *_view_parameters(view, place, offered),
                *_run_parameters(runs if named else of_place),
            ]
            href = f"{slug}/?{urlencode(query, safe=',')}"
            printed.append(StudyLink(place, href, has_run=bool(of_place or not place.strategies)))
        if printed:
            found.append((page.title, printed))
    return found


def _run_parameters(runs: Sequence[Run]) -> Iterator[tuple[str, str]]:
    return ((RUN_PARAMETER, str(run.number)) for run in runs)


def _view_parameters(
    view: ResultView, place: StudyFigure, offered: FieldsBySource
) -> Iterator[tuple[str, str]]:
    yield VIEW_PARAMETER, view.slug
    yield from place.query.items()
    if place.by and (view.groups is None or offered[view.groups].issuperset(place.by)):
        yield BY_PARAMETER, ",".join(place.by)
