"""Texts that attack go through import, every page and every export, and stay texts."""

import csv
import io
import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from annotation.items.snapshots import create
from annotation.labelling import comments
from annotation.models import ApiToken, Item, Project, Resolution
from judging.exporting import jobs as exporting_jobs
from judging.exporting.rows import ExportRequest
from judging.exporting.tables import EXPORT_TABLES
from judging.models import Run, SavedView
from judging.results.tables import PAGES
from judging.runs import lifecycle
from tests.builders import (
    Cast,
    browser_of,
    cast,
    make_guidelines,
    make_project,
    make_resolution,
    say,
    take,
)
from tests.hostile import ALL, CORPUS, MARK, taken_for_markup
from tests.judging.builders_judging import answer, make_endpoint, make_run
from tests.test_access import ROUTES, World, names_in, rule_of

pytestmark = pytest.mark.django_db

# As far as a key goes, which stands in addresses.
KEY = f"a/<b {MARK}>\"'&{{{{7|add:35001}}}} =1+1 javascript:x"
ONE_LINE = " ".join(ALL.split())
# A reply that an evaluator's parser takes, with all of it around the score.
REPLY = json.dumps({"explanation": ALL, "score": 5})
# What shows nothing that anybody wrote, and programs' part.
APART = ("admin/", "accounts/", "api/", "readyz", "healthz", "metrics")
# A page of the project has its name so often, in its frame and navigation.
IN_THE_FRAME = 8
VIEWS = [(slug, view.slug) for slug, page in PAGES.items() for view in page.views]


def row(key: str, **values: Any) -> dict[str, Any]:
    texts = {"prompt": ALL, "gold": f"{ALL} eight", "perturbed": f"six {ALL}"}
    said = {"claim": ALL, "rationale": ALL, "origin": f"<b {MARK}>", "cluster": ALL}
    kinds = {"category": "number-errors", "ability": "factual"}
    return {"key": key, **texts, **said, **kinds, "note": ALL, f"<b {MARK}>": ALL, **values}


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    return path


def run_command(*words: str, **options: Any) -> str:
    said = io.StringIO()
    try:
        call_command(*words, **options, stdout=said, stderr=said)
    except CommandError as error:
        said.write(str(error))
    return said.getvalue()


def bring(project: Project, path: Path, **options: Any) -> str:
    return run_command("import_items", str(path), project=project.slug, **options)


def export(project: Project, table: str, path: Path) -> None:
    """The format is the file's name."""
    wanted = {"project": project.slug, "format": path.name, "output": path}
    call_command("export", table, **wanted, stderr=io.StringIO())


def texts_in(found: Any) -> Iterator[str]:
    """Every text of a JSON document."""
    if isinstance(found, str):
        yield found
    elif isinstance(found, dict):
        yield from texts_in(list(found.values()))
    elif isinstance(found, list):
        for one in found:
            yield from texts_in(one)


def is_formula(cell: str) -> bool:
    """Whether a spreadsheet would reckon with it: a number is none."""
    if not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False


@pytest.fixture
def people(tmp_path: Path) -> Cast:
    """A project in which everything that people and models write attacks the reader."""
    people = cast()
    Project.objects.filter(pk=people.project.pk).update(name=ONE_LINE[:100])
    people.project.refresh_from_db()
    lead = people.lead.account
    assert lead
    lead.is_staff = lead.is_superuser = True
    lead.first_name = lead.last_name = f"<b {MARK}>"
    lead.save()
    rows = [row(KEY), row("b"), row("c")]
    assert "3 imported" in bring(people.project, write(tmp_path / "rows.jsonl", *rows))
    make_guidelines(people.project, ALL)
    for member in (people.annotator, people.lead):
        say(member, take(member), comment=ALL)
    for item in Item.objects.all():
        comments.add_comment(people.lead, item, ALL, now=timezone.now())
    return people


@pytest.fixture
def run(people: Cast) -> Run:
    """Evaluators' replies attack as well, and so do the names that endpoints give."""
    for item in Item.objects.filter(resolutions=None):
        make_resolution(item)
    Resolution.objects.update(comment=ALL)
    endpoint = make_endpoint("http://127.0.0.1:9/", name=f"<b {MARK}>", model=ONE_LINE[:100])
    run = make_run(people.project, endpoint, strategy="vanilla", while_labelling=True)
    lifecycle.plan_calls(run)
    assert answer(run, REPLY, model=ONE_LINE[:100])
    Run.objects.filter(pk=run.pk).update(state=Run.State.FINISHED)
    SavedView.objects.create(member=people.lead, name=ONE_LINE[:80], page="overview", shared=True)
    create.store_contents(create.enqueue(people.project, people.lead, ONE_LINE[:80], ALL))
    for said in ({"snapshot": ONE_LINE[:80]}, {"filters": {"search": ONE_LINE}}):
        exporting_jobs.enqueue(people.project, people.lead, ExportRequest("items", "csv", **said))
    return run


@pytest.fixture
def addresses(people: Cast, run: Run) -> Iterator[str]:
    """Every page of the site, and each view of the results."""
    world = World(people, names_in(people, quote(KEY)))
    routes = [one for one in ROUTES if "GET" in rule_of(one) and not one.startswith(APART)]
    results = f"/projects/{people.project.slug}/results/"
    return [
        *map(world.address, routes),
        f"/projects/{people.project.slug}/comments/?item={quote(KEY)}",
        *(f"{results}{page}/?view={view}" for page, view in VIEWS),
        *(f"{results}{page}/?view={view}&by=note" for page, view in VIEWS),
    ]


@pytest.fixture
def browser(people: Cast) -> Client:
    return browser_of(people.lead)


def test_every_page_shows_them_as_texts(addresses: list[str], browser: Client) -> None:
    """Some seconds: every page of the site is made."""
    shown = 0
    for address in addresses:
        found = browser.get(address)
        assert found.status_code < 500, address
        if found.headers.get("Content-Type", "").startswith("text/html"):
            page = found.content.decode()
            assert taken_for_markup(page) == [], address
            shown += page.count(MARK) > IN_THE_FRAME
    assert shown > 20


def test_the_api_gives_them_as_they_were_written(people: Cast, run: Run) -> None:
    assert people.lead.account
    _, key = ApiToken.issue(people.lead.account, "test")
    program = Client(headers={"Authorization": f"Bearer {key}"})
    world = World(people, names_in(people, quote(KEY)))
    for route in ROUTES:
        if route.startswith("api/") and "GET" in rule_of(route):
            found = program.get(world.address(route))
            assert found.status_code < 500, route
            assert "text/html" not in found.headers.get("Content-Type", ""), route
    address = world.address("api/v1/projects/<slug:slug>/items/<path:key>/")
    found = program.get(address).json()
    assert ALL in list(texts_in(found))


@pytest.mark.parametrize("table", EXPORT_TABLES)
def test_spreadsheets_meet_no_formula(people: Cast, run: Run, table: str, tmp_path: Path) -> None:
    for form, dialect in (("csv", "excel"), ("tsv", "excel-tab")):
        export(people.project, table, tmp_path / form)
        with (tmp_path / form).open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file, dialect))
        assert [cell for one in rows for cell in one if is_formula(cell)] == []
        assert len({len(one) for one in rows}) == 1


@pytest.mark.parametrize("name", CORPUS)
def test_json_lines_hold_what_was_written(people: Cast, tmp_path: Path, name: str) -> None:
    rows = [row("d", prompt=CORPUS[name], **{CORPUS[name]: CORPUS[name]})]
    assert "1 imported" in bring(people.project, write(tmp_path / "rows.jsonl", *rows))
    export(people.project, "items", tmp_path / "jsonl")
    found = [json.loads(line) for line in (tmp_path / "jsonl").read_bytes().split(b"\n")[:-1]]
    [one] = [one for one in found if one["key"] == "d"]
    assert (one["prompt"], one["fields"][CORPUS[name]]) == (CORPUS[name],) * 2


@pytest.mark.parametrize("name", CORPUS)
def test_what_is_said_of_a_file_moves_no_terminal(name: str, tmp_path: Path) -> None:
    """The key is refused for what it holds, or the row for its category."""
    rows = [row(CORPUS[name], category=CORPUS[name])]
    said = bring(make_project("p"), write(tmp_path / "rows.jsonl", *rows))
    assert "line 1" in said or ":1:" in said, said
    assert [one for one in said if unicodedata.category(one) in {"Cc", "Cf"} and one != "\n"] == []


def test_a_text_with_a_nul_is_refused_with_its_place(tmp_path: Path) -> None:
    rows = [row("fine"), row("b", gold="eight\0"), row("c", note={"deep": ["\0"]})]
    said = bring(make_project("p"), write(tmp_path / "rows.jsonl", *rows))
    assert "1 imported" in said
    assert "2 bad" in said
    assert "NUL" in said


def test_a_line_of_ten_megabytes_is_refused_with_its_place(tmp_path: Path) -> None:
    rows = [row("a", gold="x" * 10_000_000), row("b")]
    said = bring(make_project("p"), write(tmp_path / "rows.jsonl", *rows))
    assert "rows.jsonl, line 1: the field 'gold'" in said
    assert len(said) < 500
    assert not Item.objects.exists()


@pytest.mark.parametrize(
    "name",
    sorted(
        CORPUS.keys()
        & {
            "script",
            "svg",
            "picture",
            "end of a script",
            "end of a field",
            "header",
        }
    ),
)
def test_one_that_a_page_takes_for_markup_would_be_seen(name: str) -> None:
    assert taken_for_markup(f"<p>{CORPUS[name]}</p><textarea>{CORPUS[name]}</textarea>")


@pytest.mark.parametrize("name", ["double quotes", "single quotes"])
def test_one_that_ends_an_attribute_would_be_seen(name: str) -> None:
    sign = CORPUS[name][0]
    assert taken_for_markup(f"<i title={sign}{CORPUS[name]}{sign}>")


def test_links_of_scripts_and_templates_filled_in_twice_would_be_seen() -> None:
    assert taken_for_markup(f'<a href="{CORPUS["bare link"]}">')
    assert taken_for_markup("<p>35008</p>")
