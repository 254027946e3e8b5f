"""The table of a result page as LaTeX: what is in it is what the page shows, and TeX prints it."""

import re
import shutil
import subprocess
import unicodedata
from functools import cache
from html import unescape
from pathlib import Path

import pytest
from django.http import QueryDict
from django.test import Client

from annotation.db.cache import process_cache
from annotation.models import Item, Membership, Project
from formats.typeset import PrintedTable
from judging.models import Endpoint, Outcome
from judging.results import figure_help, figures
from judging.results.views import downloads, pages
from tests.builders import make_account, make_project
from tests.conftest import lacking
from tests.judging.builders_compared import make_compared
from tests.judging.test_people_page import make_rated
from tests.judging.test_same_everywhere import VIEWS, make_errors, make_judged, path_of

pytestmark = pytest.mark.django_db

# What LaTeX takes for commands, what would end a cell or a table, and signs of all sorts.
HOSTILE = (
    r"\input{/etc/passwd} a_b % #1 & $x^2$ {~} \end{tabular} [2cm] * ^^4d --- `` '' "
    r'"q" <b> | é Łódź ħ ß − ≤ ρ d′ 中文 עברית' + " \U0001f9e8 Z\u0351 \u202eevil\u202c"
)
# pdfLaTeX prints these by their number; the others can be found in the text of the PDF.
PREAMBLE = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage{textcomp, booktabs, graphicx}
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\IfFileExists{cmap.sty}{\usepackage{cmap}}{}
\begin{document}
"""


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory, module_db: None) -> Client:
    """A site admin, and projects that fill every page, in which endpoints, categories, people,
    items, systems and values of fields have hostile names."""
    process_cache.clear()
    make_judged()
    make_errors()
    make_rated(tmp_path_factory.mktemp("rated"))
    make_compared("c")
    for number, one in enumerate(Endpoint.objects.all()):
        Endpoint.objects.filter(pk=one.pk).update(name=f"{number} {HOSTILE}"[:80])
    for number, person in enumerate(Membership.objects.all()):
        Membership.objects.filter(pk=person.pk).update(alias=f"{number} {HOSTILE}"[:80])
    # An audit's fields name the run and the item of each explanation.
    for item in Item.objects.exclude(project__slug__contains="audit"):
        hostile = {name: f"{value} {HOSTILE}" for name, value in item.fields.items()}
        Item.objects.filter(pk=item.pk).update(fields=hostile)
    for rows in (Item.objects, Outcome.objects):
        rows.filter(category="spelling").update(category=f"s {HOSTILE}"[:80])
    client = Client()
    client.force_login(make_account("admin", is_superuser=True))
    return client


@cache
def table_of(path: str) -> PrintedTable:
    """The table of a page, by its address. The rows of the module stay, so it is made once."""
    address, _, query = path.partition("?")
    _, _, slug, _, page, _ = address.split("/")
    member = Membership(project=Project.objects.get(slug=slug))
    wish = pages.parse_query(member, page, QueryDict(query))
    return downloads.print_table(wish, pages.compute_tables(wish)[:-1])


def plain(html: str) -> str:
    return " ".join(unescape(re.sub("<[^>]*>", " ", html)).split()).replace(" ,", ",")


def shown_on(page: str) -> list[list[list[str]]]:
    """The table of a page: rows of cells, each its value and its small print."""
    table = page[page.index("<thead") : page.index("</table>")]
    rows = [re.findall(r"<t[hd][ >].*?</t[hd]>", row, re.S) for row in table.split("<tr")[1:]]
    return [[[plain(part) for part in re.split("<small>", cell)] for cell in row] for row in rows]


def in_table(table: PrintedTable) -> list[list[list[str]]]:
    lines = [table.heads, *(line.cells for block in table.blocks for line in block)]
    return [
        [[" ".join(one.split()) for one in (cell.text, *cell.small)] for cell in cells]
        for cells in lines
    ]


@pytest.mark.parametrize(
    ("page", "view", "more"),
    [
        *((page, view, "&intervals=yes") for page, view in VIEWS),
        *((page, view, "") for page, view in VIEWS[:6]),
    ],
)
def test_the_file_has_what_the_page_shows(reader: Client, page: str, view: str, more: str) -> None:
    path = path_of(page, view) + more
    found = reader.get(path)
    table = table_of(path)
    assert in_table(table) == shown_on(found.content.decode())
    assert [one for block in table.blocks for one in block]
    words = re.search(r'(?s)id="grid-words">(.*?)</p>', found.content.decode())
    note = table.note
    for one in figure_help.load_intervals().values():
        note = note.replace(one.how, "")
    assert words is None or plain(words[1]).startswith(" ".join(note.split()))
    address, _, query = path.partition("?")
    assert f'href="{address}table.tex?{query}"' in unescape(found.content.decode())


def test_the_file_is_sorted_filtered_and_says_by_what(reader: Client) -> None:
    path = "/projects/fbi/results/by-category/?view=counts&ability=factual&run=1&run=4&sort="
    for sort, rates in (("-rate", ["66.7 %", "50.0 %"]), ("rate", ["50.0 %", "66.7 %"])):
        table = table_of(path + sort)
        assert table.caption == "Detected and undetected items; Ability: Factual."
        [block] = table.blocks
        assert [line.cells[-1].text for line in block] == rates
        assert {line.cells[1].text for line in block} == {"Factual"}


def test_the_note_says_how_intervals_are_made_where_they_are_shown(reader: Client) -> None:
    path, made = "/projects/fbi/results/sensitivity/?run=1", figure_help.load_intervals()
    shown = {"wilson", "newcombe", "bootstrap"}
    with_intervals, without = table_of(f"{path}&intervals=yes").note, table_of(path).note
    assert {name for name, one in made.items() if one.how in with_intervals} == shown
    assert not {name for name, one in made.items() if one.how in without}


@pytest.mark.parametrize(
    "path", ["fbi/results/overview/?run=1", "fbi/results/blind-spots/?run=1&show=all"]
)
def test_the_note_speaks_of_intervals_only_where_the_table_has_them(
    reader: Client, path: str
) -> None:
    path, words = f"/projects/{path}", "95 % intervals are clustered by question."
    assert words in table_of(f"{path}&intervals=yes").note
    assert words not in table_of(path).note


def test_what_is_not_there_is_not_found(reader: Client) -> None:
    for address in ("nothing/table.tex", "overview/table.tex?run=99", "overview/table.tex?view=no"):
        assert reader.get(f"/projects/fbi/results/{address}").status_code == 404


def test_a_page_without_figures_has_no_file(reader: Client) -> None:
    make_project("empty")
    sent = reader.get("/projects/empty/results/overview/table.tex")
    assert (sent.status_code, sent.content) == (
        409,
        b"There are no figures for the chosen runs yet.",
    )


def test_figures_that_a_worker_computes_are_told_to_be_asked_for_later(
    reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures.TableRequest, "is_small", lambda self: False)
    sent = reader.get("/projects/fbi/results/overview/table.tex")
    assert (sent.status_code, sent.headers["Retry-After"]) == (503, "2")
    assert b"being computed" in sent.content


@pytest.fixture(scope="module")
def pdflatex() -> str:
    found = shutil.which("pdflatex")
    if found is None or run("kpsewhich", "booktabs.sty").returncode != 0:
        lacking("There is no pdflatex with booktabs; install texlive-latex-recommended.")
    return found


def run(*command: str, folder: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)


def squeezed(text: str) -> str:
    """A text as it can be compared with that of a PDF: no spaces, and one sign for what looks
    alike."""
    alike = str.maketrans("’‘−—´`μ·", "''--''u.", "\u00ad")
    return re.sub(r"[\s\x00-\x1f]", "", unicodedata.normalize("NFKC", text)).translate(alike)


def test_tex_prints_every_page(reader: Client, pdflatex: str, tmp_path: Path) -> None:
    """Some seconds: TeX sets the tables of all pages, and twice for the numbers of tables."""
    paths = {(page, view): f"{path_of(page, view)}&intervals=yes" for page, view in VIEWS}
    parts = []
    for (page, view), path in paths.items():
        address, _, query = path.partition("?")
        sent = reader.get(f"{address}table.tex?{query}")
        assert sent.status_code == 200, path
        assert f"-{page}-{view}.tex" in sent.headers["Content-Disposition"]
        slug = path.split("/")[2]
        assert f"\\label{{tab:{slug}-{page}-{view}}}" in sent.content.decode()
        parts.append(sent.content.decode() + "\\clearpage\n")
    text = PREAMBLE + "".join(parts) + "\\end{document}\n"
    (tmp_path / "tables.tex").write_text(text, encoding="utf-8")
    command = (pdflatex, "-halt-on-error", "-interaction=nonstopmode", "-no-shell-escape")
    for _ in range(2):
        done = run(*command, "tables.tex", folder=tmp_path)
        log = (tmp_path / "tables.log").read_text(encoding="latin-1")
        assert (done.returncode, re.findall(r"(?m)^!.*", log)) == (0, []), log[-2000:]
    assert "Missing character" not in log
    assert "Float too large" not in log
    if shutil.which("pdftotext") is None:
        return
    run("pdftotext", "tables.pdf", folder=tmp_path)
    found = squeezed((tmp_path / "tables.txt").read_text(encoding="utf-8"))
    for path in paths.values():
        for word in words_of(table_of(path)):
            assert squeezed(word) in found, (path, word)


def words_of(table: PrintedTable) -> list[str]:
    """The words of a table that pdfLaTeX prints as they are and that fit into a line of a head."""
    cells = [*table.heads, *(cell for block in table.blocks for row in block for cell in row.cells)]
    texts = [table.caption, *(text for cell in cells for text in (cell.text, *cell.small))]
    words = [word for text in texts for word in text.replace("\xa0", " ").split()]
    return [word for word in dict.fromkeys(words) if len(word) <= 14 and word.isascii()]
