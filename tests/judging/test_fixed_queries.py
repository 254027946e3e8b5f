"""Result pages and lists ask the database as often for many runs and items as for few."""

from itertools import cycle

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.models import Project
from judging.models import Run
from judging.results import figures, tables
from judging.results.tables import PAGES
from tests.annotation.test_agreement import make_label, people_of
from tests.builders import make_account, make_project
from tests.judging import builders_decided
from tests.judging.builders_compared import make_compared
from tests.judging.builders_decided import make_audit, make_replied, scores
from tests.judging.builders_detecting import (
    judge,
    judge_all,
    make_sets,
    make_unlabelled,
    rate_endpoint,
    say_kinds,
    say_softly,
)
from tests.judging.builders_judging import make_items
from tests.judging.test_people_page import make_rated
from tests.judging.test_same_everywhere import PROJECTS

pytestmark = pytest.mark.django_db

# Runs of each kind; and items, of ratings dozens.
FEW, MANY = 1, 3
ITEMS = {FEW: 10, MANY: 40}
VIEWS = [(slug, view.slug) for slug, page in PAGES.items() for view in page.views]
# Which project a page is of and which runs a view: "vanilla" ones of "fbi" for the others.
OTHERWISE = {"detector": "errors", "corrected": "errors", "people": "p", "pairwise": "c"}
OF_WORDS = "rouge-l-response"
KINDS = {
    ("verdicts", "verdicts"): "pairwise",
    ("verdicts", "order"): "pairwise",
    ("reference", "bins"): "reference",
    ("people", "overlap"): OF_WORDS,
}
# The same of tables, whose projects are those of other tests.
STRATEGIES = {"verdicts": "pairwise", "order_effect": "pairwise", "overlap": OF_WORDS}
LISTS = (
    "", "items/", "runs/", "runs/?archived=on", "runs/1/", "strategies/", "results/", "budget/",
    "results/views/", "archives/", "board/", "pace/", "agreement/", "answer-key/", "mentions/",
    "adjudicate/", "qualification/people/", "baseline/", "assign/", "generation/", "perturb/",
)  # fmt: skip


def make_judged(size: int) -> None:
    """Runs over error items and score-invariant ones, checked and audited; two people label."""
    project = make_project(f"fbi-{size}")
    items = [
        *make_items(project, ITEMS[size] - 5, dose=1, fields={"task": "sums"}, origin="generated"),
        *make_items(project, 2, category="spelling", ability="long-form"),
        *make_items(project, 2, "score-invariant", ability="score-invariant"),
    ]
    pairs = [builders_decided.verdicts(one) for one in ("G", "both_good", "first_twice")]
    for _ in range(size):
        apart = cycle([scores(9, 5), scores(9, 9), scores(8, 9), scores(9, None)])
        base = make_replied(project, "vanilla", zip(items, apart, strict=False))
        make_audit(base, (True, "correct"), (False, "wrong"))
        equal = [outcome.item for outcome in base.outcomes.filter(detail="equal")]
        for slug in ("explanation-check", "explanation-check-gold"):
            said = zip(equal, cycle([('{"flag": true}',), ('{"flag": false}',)]), strict=False)
            make_replied(project, slug, said, sources=[base], base=base)
        twice = cycle([scores(9, 5, 9, 9), scores(9, 9, 9, 9)])
        make_replied(project, "vanilla", zip(items, twice, strict=False), samples=2)
        make_replied(project, "pairwise", zip(items, cycle(pairs), strict=False))
        make_replied(project, "reference", zip(items, cycle([scores(9), scores(10)]), strict=False))
    items += make_items(project, 1, "not-relevant")
    for person, choices in zip(people_of(project, "ann", "bob"), ("vvi", "viv"), strict=True):
        for item, one in zip(items, cycle(choices), strict=False):
            make_label(item, person, {"v": "valid", "i": "invalid"}[one], seconds=20)


def make_errors(size: int) -> None:
    """Detectors with four prompts, and with steps."""
    project = make_project(f"errors-{size}", task_type="error-detection")
    items = make_sets(project, ITEMS[size] - 3, 3)
    say_kinds(items, *[["reasoning-correctness"]] * len(items))
    bare = make_unlabelled(project, size)
    for number in range(size):
        endpoint = rate_endpoint(f"rated-{size}-{number}", elo=1000 + number)
        for slug in ("1a", "1b", "2a", "2b", "steps"):
            said = "".join(one for one, _ in zip(cycle("DDU-U"), items, strict=False))
            judge(items, said, f"detect-{slug}", endpoint=endpoint)
        judge_all([*items, *bare], "D" * len([*items, *bare]), "detect-steps", endpoint=endpoint)
    say_softly(items[: 4 * size], people_of(project, "ann", "bob"), ["en", "ee", "nn", "ee"] * size)


def looks(browser: Client, path: str, words: str = "") -> int:
    """How often a page asks, which has these words."""
    with CaptureQueriesContext(connection) as found:
        answer = browser.get(path)
    assert answer.status_code == 200, path
    assert words in answer.content.decode()
    return len(found)


def chosen(slug: str, strategy: str) -> list[Run]:
    """So many runs of each kind as the project is for."""
    runs = Run.objects.for_results().filter(project__slug=slug)
    if slug.startswith("fbi") or strategy == OF_WORDS:
        return list(runs.filter(strategy__slug=strategy))
    return list(runs)[: int(slug[-1])] if slug.startswith("p-") else list(runs)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, module_db: None) -> Client:
    """An admin, and every project with few runs and items and with many."""
    for size in (FEW, MANY):
        make_judged(size)
        make_errors(size)
        make_compared(f"c-{size}", size)
        make_rated(tmp_path_factory.mktemp("rated"), f"p-{size}", dozens=size)
    client = Client()
    client.force_login(make_account("admin", is_superuser=True))
    return client


@pytest.mark.parametrize("table", tables.RESULT_TABLES)
def test_a_table_asks_as_often_for_many_runs_and_items(site: Client, table: str) -> None:
    counts = []
    for size in (FEW, MANY):
        slug = f"{PROJECTS.get(table, 'fbi')}-{size}"
        project = Project.objects.get(slug=slug)
        by = ["ability", "category"] if slug.startswith("fbi") else ["task"]
        asked = figures.build_request(
            project, tables.RESULT_TABLES[table], chosen(slug, STRATEGIES.get(table, "vanilla")), by
        )
        with CaptureQueriesContext(connection) as found:
            assert asked.rows()
        counts.append(len(found))
    assert counts[0] == counts[1]


@pytest.mark.parametrize(("page", "view"), VIEWS)
def test_a_page_asks_as_often_for_many_runs_and_items(
    site: Client, monkeypatch: pytest.MonkeyPatch, page: str, view: str
) -> None:
    """The first time, when workers are to make the tables, and the second time."""

    def is_small(asked: figures.TableRequest) -> bool:
        return asked.table.at_once is None

    monkeypatch.setattr(figures.TableRequest, "is_small", is_small)
    paths = []
    for size in (FEW, MANY):
        slug = f"{OTHERWISE.get(page, 'fbi')}-{size}"
        runs = chosen(slug, KINDS.get((page, view), "vanilla"))
        named = "".join(f"&run={run.number}" for run in runs)
        paths.append(f"/projects/{slug}/results/{page}/?view={view}{named}")
    few, many = paths
    assert looks(site, many) == looks(site, few)
    for figure in figures.list_due(timezone.now()):
        assert figures.run_job(figure)
    assert looks(site, many, "<tbody") == looks(site, few, "<tbody")


@pytest.mark.parametrize("path", LISTS)
def test_a_list_asks_as_often_for_many_rows(site: Client, path: str) -> None:
    few, many = (f"/projects/fbi-{size}/{path}" for size in (FEW, MANY))
    assert looks(site, many) == looks(site, few)
