"""Every table of figures says the same by command, API and file, and pages show what is in it."""

import csv
import io
import re
from collections.abc import Callable
from functools import cache
from html import unescape
from itertools import cycle
from typing import Any

import pytest
from django.http import QueryDict
from django.test import Client

from annotation.db.cache import process_cache
from annotation.models import Item, Membership, Project
from annotation.templatetags import figures as written
from formats.typeset import escape_latex
from judging.models import Run
from judging.results import tables
from judging.results.tables import PAGES
from judging.results.views import pages
from judging.runs import lifecycle
from tests.annotation.test_agreement import make_label, people_of
from tests.builders import make_account, make_project
from tests.judging import builders_decided
from tests.judging.builders_compared import make_compared
from tests.judging.builders_decided import make_audit, make_replied, scores
from tests.judging.builders_detecting import judge, judge_all, make_sets, make_unlabelled, say_kinds
from tests.judging.builders_judging import answer, make_endpoint, make_items, make_run
from tests.judging.builders_rated import command
from tests.judging.test_people_page import make_rated
from tests.judging.test_rated_items import pair_items

pytestmark = pytest.mark.django_db

# Which project fills a table; "fbi" the others.
RATED = ("alignment", "alignment_groups", "ceiling", "alt_test", "by_score", "pairs", "points",
         "majority", "ratings", "overlap")  # fmt: skip
ERRORS = ("detector", "detector_ranges", "changes", "bias", "error_kinds", "corrected", "strength",
          "strength_points", "soft_labels", "soft_shares")  # fmt: skip
COMPARED = ("pairwise", "pairwise_pairs", "pairwise_position")
PROJECTS = (
    dict.fromkeys(RATED, "p") | dict.fromkeys(ERRORS, "errors") | dict.fromkeys(COMPARED, "c")
)
BY = {"p": "task", "errors": "task", "c": "", "fbi": "ability,category"}
# Which project is looked at on a page; "fbi" on the others.
PROJECT_OF_PAGE = {"people": "p", "detector": "errors", "corrected": "errors", "pairwise": "c"}
# What the address says besides, so that every row has its line.
QUERIES = {
    ("people", "items"): "&metric=relatedness",
    ("blind-spots", "slices"): "&show=all",
    # The one that was asked goes on, so that it is shown where it is named.
    ("cost", "runs"): "&run=1&run=7",
}
VIEWS = [(slug, view.slug) for slug, page in PAGES.items() for view in page.views]


def make_judged() -> Project:
    """Runs of study 000's frames, explanations checked and audited, two people who label, and an
    item that was made here."""
    project = make_project("fbi")
    items = [
        *make_items(project, 20, dose=1),
        *make_items(project, 4, category="spelling", ability="long-form", fields={"dose": "2"}),
        *make_items(project, 2, "score-invariant", ability="score-invariant"),
        *make_items(project, 1, "not-relevant", origin="generated"),
    ]
    make_replies(project, items[:-1])
    asked = make_run(project, make_endpoint("http://a", name="a"), items={items[0].pk})
    lifecycle.plan_calls(asked)
    answer(asked, tokens_in=100, tokens_out=10)
    for person, choices in zip(people_of(project, "ann", "bob"), ("vvi", "viv"), strict=True):
        for item, one in zip(items, choices, strict=False):
            make_label(item, person, {"v": "valid", "i": "invalid"}[one], seconds=20)
    return project


def make_replies(project: Project, items: list[Item]) -> None:
    """Runs whose replies are made up, and what people say of some explanations."""
    said = cycle([scores(9, 5), scores(9, 9), scores(8, 9), scores(9, None)])
    base = make_replied(project, "vanilla", zip(items, said, strict=False))
    equal = [outcome.item for outcome in base.outcomes.filter(detail="equal")]
    for slug in ("explanation-check", "explanation-check-gold"):
        flags = cycle([('{"flag": true}',), ('{"flag": false}',), ('{"flag": true}',)])
        make_replied(project, slug, zip(equal, flags, strict=False), sources=[base], base=base)
    make_replied(project, "reference", zip(items, cycle([scores(9), scores(10)]), strict=False))
    pairs = cycle([builders_decided.verdicts(one) for one in ("G", "both_good", "first_twice")])
    make_replied(project, "pairwise", zip(items, pairs, strict=False))
    twice = cycle([scores(9, 5, 9, 9), scores(9, 9, 9, 9)])
    make_replied(project, "vanilla", zip(items, twice, strict=False), samples=2)
    make_audit(base, (True, "correct"), (False, "wrong"))


def make_errors() -> Project:
    """The four prompts of a detector."""
    project = make_project("errors", task_type="error-detection")
    rating = {"name": "Elo", "value": 1251.0, "source": "a_board", "date": "2024-03-16"}
    items, endpoint = make_sets(project), make_endpoint("http://a", ratings=[rating])
    say_kinds(items[:4], ["reasoning-correctness"], ["reasoning-correctness"], [], [])
    for strategy, said in zip(
        ("detect-1a", "detect-1b", "detect-2a", "detect-2b"),
        ("DDUUUU", "DUUU-U", "DDDUUD", "UUDDUU"),
        strict=True,
    ):
        judge(items, said, strategy, endpoint=endpoint)
    bare = make_unlabelled(project, 3)
    judge_all([*items, *bare], "DDUUUUDUU", "detect-steps", endpoint=endpoint)
    ann, bob = people_of(project, "ann", "bob")
    for item in items:
        make_label(item, ann, {"verdict": "error"})
        make_label(item, bob, {"verdict": "error" if item.position % 2 else "no_error"})
    return project


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory, module_db: None) -> Client:
    """A site admin, and projects that together fill every table."""
    process_cache.clear()
    make_judged()
    make_errors()
    make_rated(tmp_path_factory.mktemp("rated"))
    make_compared("c")
    client = Client()
    client.force_login(make_account("admin", is_superuser=True))
    return client


@pytest.fixture(scope="module")
def get_page(everything: Client) -> Callable[[str], str]:
    """The text of a page by its path. Several tests read each page, which is made once."""
    return cache(lambda path: " ".join(everything.get(path).content.decode().split()))


def is_same(value: Any, cell: str) -> bool:
    """Whether a cell of a CSV file is this value."""
    if value is None:
        return cell == ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(cell) == value
    if isinstance(value, str):
        return cell.lstrip("'") == value.lstrip("'")
    return bool(cell)


def is_rounded(value: Any, cell: str) -> bool:
    """Whether a cell of a LaTeX table is this value, to three decimals."""
    if value is None:
        return cell == "--"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return abs(float(cell.replace("$-$", "-")) - value) <= 0.0005 + 1e-9
    return bool(cell) if not isinstance(value, str) else cell == escape_latex(value)


@pytest.mark.parametrize("table", tables.RESULT_TABLES)
def test_command_api_and_files_say_the_same(
    everything: Client, capsys: pytest.CaptureFixture[str], table: str
) -> None:
    """The table of the ceiling takes some seconds, since each of the ways resamples it."""
    slug = PROJECTS.get(table, "fbi")
    query = f"by={BY[slug]}"
    given = everything.get(f"/api/v1/projects/{slug}/results/{table}/?{query}").json()
    assert given["rows"]

    def printed(form: str) -> str:
        command("results", table, project=slug, by=BY[slug], format=form)
        said = capsys.readouterr().out
        sent = everything.get(f"/projects/{slug}/results/{table}.{form}?{query}").content.decode()
        assert sent.splitlines() == said.splitlines()
        return said

    columns = given["columns"]
    printed("json")
    [head, *body] = list(csv.reader(io.StringIO(printed("csv"))))
    assert head == columns
    for row, cells in zip(given["rows"], body, strict=True):
        assert all(is_same(row.get(n), cell) for n, cell in zip(columns, cells, strict=True)), row
    typeset = printed("latex").split("\\midrule\n")[1].split("\\bottomrule")[0].splitlines()
    for row, line in zip(given["rows"], typeset, strict=True):
        cells = re.split(r" (?<!\\)& ", line.removesuffix(" \\\\"))
        pairs = zip(columns, cells, strict=True)
        assert all(is_rounded(row.get(name), cell) for name, cell in pairs), row


def printed(page: str) -> list[tuple[str, list[str]]]:
    """Each column of figures of a page's table: its title, and its figures without their notes."""
    head, _, body = page[page.index("<thead") : page.index("</table>")].partition("</thead>")
    titles = [plain(one) for one in re.findall("<th.*?</th>", head)]
    rows = [re.findall("<t[hd].*?</t[hd]>", row) for row in body.split("<tr")[1:]]
    cells = [[plain(cell.partition("<small")[0]).rstrip("*") for cell in row] for row in rows]
    return list(zip(titles, map(list, zip(*cells, strict=True)), strict=True))[1:]


def plain(cell: str) -> str:
    return " ".join(unescape(re.sub("<[^>]*>", " ", cell)).split())


def path_of(page: str, view: str) -> str:
    project = PROJECT_OF_PAGE.get(page, "fbi")
    return f"/projects/{project}/results/{page}/?view={view}{QUERIES.get((page, view), '')}"


@pytest.mark.parametrize(("page", "view"), VIEWS)
def test_what_a_page_shows_is_made_of_the_rows_that_its_files_have(
    everything: Client, get_page: Callable[[str], str], page: str, view: str
) -> None:
    """The same declaration makes the page of rows that were read from its downloads, which the
    API and the command have as well."""
    path = path_of(page, view)
    text = get_page(path)
    project = Project.objects.get(slug=PROJECT_OF_PAGE.get(page, "fbi"))
    query = QueryDict(path.partition("?")[2])
    asked = pages.parse_query(Membership(project=project), page, query)
    files = re.findall(r'href="([^"]*results/[a-z_]+\.json\?[^"]*)"', text)
    rows = [everything.get(unescape(address)).json()["rows"] for address in files]
    assert len(rows) == len(asked.view.asks)
    if (page, view) == ("people", "items"):
        rows = [pair_items(project, rows[0])]
    grid = asked.view.build(asked, rows).grid
    lines = [line for block in grid.blocks for line in block.lines]
    shown = printed(text)
    assert [title for title, _ in shown] == [
        " ".join(f"{one.title} {one.note}".split()) for one in grid.columns[1:]
    ]
    assert [cells for _, cells in shown] == [
        [line.cells[place].text for line in lines] for place in range(1, len(grid.columns))
    ]
    assert any(text not in ("", written.DASH) for _, cells in shown for text in cells)


@pytest.mark.parametrize(("page", "view"), VIEWS)
def test_numbers_are_aligned_as_numbers_under_heads_that_are_too(
    get_page: Callable[[str], str], page: str, view: str
) -> None:
    text = get_page(path_of(page, view))
    head, _, body = text[text.index("<thead") : text.index("</table>")].partition("</thead>")
    heads = ['class="number"' in one for one in re.findall("<th.*?>", head.partition("<tr")[2])]
    rows = [re.findall("<t[hd].*?</t[hd]>", row) for row in body.split("<tr")[1:]]
    assert not heads[0]
    for row in rows:
        for is_number, cell in list(zip(heads, row, strict=True))[1:]:
            shown = plain(cell.partition("<small")[0])
            if shown not in {"", written.DASH}:
                assert is_number == ('class="number"' in cell) == reads_as_number(shown), row


def reads_as_number(text: str) -> bool:
    """Whether a figure is a number, or a range of them, with or without a unit and a star."""
    number = r"[−+]?[\d.,]+"
    return bool(re.fullmatch(rf"([<>] )?{number}( to {number})?( %| s| ms| min.*)?\*?", text))


# Cells of rates: the link of the value, the value, the link of n, and n.
_RATE_CELL = re.compile(
    r'<td class="number"[^>]*> ?(?:<a class="figure" href="(?P<hits>[^"]*)">|<span>)'
    r"(?P<rate>[^<]*) %</(?:a|span)> ?(?:<small>[^<]*</small> ?)?"
    r'<small><a href="(?P<all>[^"]*)">n (?P<n>[\d,]+)</a>'
)
MOST_CELLS = 8
# Views with rates of outcomes. The links of ratings are checked with the page Against people.
WITH_ITEMS = [
    ("overview", "abilities"), ("by-category", "rates"), ("by-category", "counts"),
    ("verdicts", "verdicts"), ("verdicts", "order"), ("verdicts", "repeats"), ("reference", "bins"),
    ("explanations", "credit-of-words"), ("explanations", "false-credit"),
    ("blind-spots", "slices"), ("sensitivity", "plane"), ("sensitivity", "doses"),
    ("missing", "causes"), ("plan", "rates"), ("choose", "evaluators"),
]  # fmt: skip


def count_items(client: Client, address: str) -> int:
    """The number of items that a link of a figure leads to."""
    page = client.get(unescape(address)).content.decode()
    return len(re.findall(r'<tr[^>]*>\s*<th scope="row">\s*<a href="[^"]*/items/', page))


@pytest.mark.parametrize(("page", "view"), WITH_ITEMS)
def test_a_rate_leads_to_what_it_counts_and_its_n_to_all_of_them(
    everything: Client, page: str, view: str
) -> None:
    # Anew for this test: the page of slices stores the diffs by which its links count.
    text = " ".join(everything.get(path_of(page, view)).content.decode().split())
    found = list(_RATE_CELL.finditer(text))
    assert found
    for cell in found[:: 1 + len(found) // MOST_CELLS]:
        n = int(cell["n"])
        assert count_items(everything, cell["all"]) == n, cell[0]
        # Of an item with repeats, a rate counts the share that detects.
        if cell["hits"] and not is_repeated(cell["hits"]):
            hits = count_items(everything, cell["hits"])
            assert written.share(hits / n) == f"{cell['rate']} %", cell[0]


def is_repeated(address: str) -> bool:
    """Whether a link is of the run with repeats, the one with two samples."""
    number = re.search(r"/runs/(\d+)/", address)
    runs = Run.objects.filter(project__slug="fbi", samples=2).values_list("number", flat=True)
    return bool(number) and int(number[1]) in runs
