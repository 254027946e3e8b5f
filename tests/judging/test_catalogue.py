"""Which strategies a project can use, in which versions, and who used them."""

import pytest

from annotation import tasktypes
from annotation.models import Project
from judging import strategies
from judging.models import StrategyVersion
from judging.strategies import catalogue
from tests.builders import make_project
from tests.judging.builders_judging import make_items, make_run, make_strategy

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return make_project("fbi")


def make_own(project: Project, slug: str = "ours", number: int = 1) -> StrategyVersion:
    definition = {**strategies.load_all()["vanilla"].definition, "slug": slug}
    return StrategyVersion.objects.create(
        project=project,
        slug=slug,
        number=number,
        digest=strategies.compute_digest(definition),
        definition=definition,
        source=f"# {slug} {number}",
    )


def test_every_shipped_strategy_is_listed_and_nothing_is_stored_for_it(project: Project) -> None:
    assert [one.version.slug for one in catalogue.list_strategies(project)] == list(
        strategies.load_all()
    )
    assert not StrategyVersion.objects.exists()


def test_the_groups_hold_every_strategy_once_and_own_ones_first(project: Project) -> None:
    make_own(project, "zz")
    groups = catalogue.group_by_frame(project)
    slugs = [one.version.slug for group in groups for one in group.listed]
    assert sorted(slugs) == sorted([*strategies.load_all(), "zz"])
    [single] = [group for group in groups if group.frame == "single"]
    assert single.listed[0].version.slug == "zz"


def test_of_own_strategies_the_newest_version_counts_and_others_projects_have_none(
    project: Project,
) -> None:
    make_own(project, number=1)
    newest = make_own(project, number=2)
    assert catalogue.find_version(project, "ours") == newest
    assert [one.version for one in catalogue.list_strategies(project) if one.is_own] == [newest]
    assert catalogue.find_version(make_project("other"), "ours") is None


def test_runs_are_counted_in_this_project_over_all_versions(project: Project) -> None:
    other = make_project("other")
    make_items(project, 1), make_items(other, 1)
    make_run(project), make_run(project), make_run(other)
    [listed] = [one for one in catalogue.list_strategies(project) if one.version.slug == "rouge-l"]
    assert listed.runs == 2
    assert [run.number for run in catalogue.list_runs(project, listed.version)] == [2, 1]
    assert [one.used for one in catalogue.list_versions(project, listed.version)] == [2]


def test_a_shipped_strategy_that_changed_has_its_next_number_before_it_is_stored(
    project: Project,
) -> None:
    old = make_strategy("vanilla")
    StrategyVersion.objects.filter(pk=old.pk).update(digest="0" * 64, source="")
    found = catalogue.find_version(project, "vanilla")
    assert found is not None
    assert (found.pk, found.number) == (None, 2)
    assert [one.number for one in catalogue.list_versions(project, found)] == [2, 1]
    assert catalogue.store_version(found).number == 2


def test_the_text_of_a_version_is_its_own_or_its_files_or_is_written_out(project: Project) -> None:
    stored = make_strategy("vanilla")
    text = strategies.read_source("vanilla")
    assert catalogue.get_source(stored) == text
    stored.source = ""
    assert catalogue.get_source(stored) == text
    stored.digest = "0" * 64
    assert catalogue.get_source(stored).startswith('slug = "vanilla"\n')
    assert "{{question}}" in catalogue.get_source(stored)


@pytest.mark.parametrize(
    "task_type, slugs",
    [
        ("perturbation-vetting", ["vanilla", "reference", "pairwise"]),
        ("error-detection", ["detect-1a", "detect-self-consistency"]),
        ("rating", ["likert", "likert-no-gold"]),
        ("rubric-matrix", ["score-matrix"]),
        ("rubric-one-score", ["score-matrix"]),
        ("rubric-scoring", ["score-matrix"]),
        ("gold-verification", ["generate-gold"]),
        # No built-in strategy is compared with these labels.
        ("pairwise", []),
        ("explanation-audit", []),
    ],
)
def test_strategies_are_recommended_by_what_the_task_type_labels(
    task_type: str, slugs: list[str]
) -> None:
    project = make_project(f"p-{task_type}", task_type=task_type)
    task = tasktypes.load_task_type(project)
    found = catalogue.recommend(task, catalogue.list_offered(project))
    assert [one.version.slug for one in found] == slugs


def test_a_projects_own_strategy_in_place_of_a_recommended_one_is_not_recommended(
    project: Project,
) -> None:
    make_own(project, "vanilla")
    task = tasktypes.load_task_type(project)
    found = catalogue.recommend(task, catalogue.list_offered(project))
    assert [one.version.slug for one in found] == ["reference", "pairwise"]


def test_every_recommended_strategy_is_built_in() -> None:
    assert catalogue.RECOMMENDED.keys() <= strategies.load_all().keys()
