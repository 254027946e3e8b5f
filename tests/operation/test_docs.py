"""The documentation on the site: every link leads somewhere, every screen finds its page."""

import html
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.test import Client
from django.urls import get_resolver, reverse

from annotation import tasktypes
from annotation.accounts import keymap
from judging.results.tables import PAGES
from operation.docs import pages, static_site
from operation.docs.search import search
from tests.builders import Cast

ROOT = Path(settings.BASE_DIR)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: pages.Page) -> set[str]:
    return {one.anchor for one in pages.list_sections(page)}


def test_each_document_is_listed_once_and_has_an_address_of_its_own() -> None:
    listed = [page.file for page in pages.list_pages()]
    written = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md")}
    assert len(listed) == len(set(listed)) == len(pages.pages_by_slug())
    assert written <= set(listed)


@pytest.mark.parametrize("slug", pages.pages_by_slug())
def test_every_link_leads_to_what_is_there(slug: str) -> None:
    page = pages.pages_by_slug()[slug]
    by_file = {one.file: one for one in pages.list_pages()}
    broken = []
    for href in filter(pages.is_relative, LINK.findall(page.source)):
        file, anchor = pages.resolve_link(page.file, href)
        if not (ROOT / file).exists() or (
            anchor and file in by_file and anchor[1:] not in anchors(by_file[file])
        ):
            broken.append(href)
    assert not broken


def test_every_screen_that_a_page_explains_exists() -> None:
    names = {name for name in get_resolver().reverse_dict if isinstance(name, str)}
    tabs = {f"results-page {page}" for page in PAGES}
    assert pages.pages_by_screen().keys() <= names | tabs
    explained = [screen for page in pages.list_pages() for screen in page.screens]
    assert len(explained) == len(set(explained))


def test_links_lead_to_pages_of_the_site_and_pictures_are_served(client: Client) -> None:
    text = client.get(reverse("docs-page", args=["overview"])).content.decode()
    assert 'href="/docs/data-files/#a-client-and-a-notebook"' in text
    assert finders.find("docs/pictures/results.png")
    assert 'src="/static/docs/pictures/results.png"' in text
    # The licence is no page of the documentation, so its name stays without a link.
    assert "Apache 2.0" in text
    assert "LICENSE" not in text


def test_a_page_is_there_as_markdown_and_all_are_listed_for_programs(client: Client) -> None:
    got = client.get(reverse("docs-markdown", args=["api"]))
    assert got["Content-Type"] == "text/markdown; charset=utf-8"
    assert got.content.decode() == (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed = client.get("/llms.txt").content.decode()
    for slug in pages.pages_by_slug():
        assert f"http://testserver/docs/{slug}.md" in listed


def test_an_unknown_page_is_not_found(client: Client) -> None:
    assert client.get("/docs/nothing/").status_code == 404
    assert client.get("/docs/nothing.md").status_code == 404


def test_a_section_is_found_by_the_beginnings_of_all_its_words() -> None:
    best = search("CHECKING sign")[0]
    assert (best.page.slug, best.section.anchor) == ("webhooks", "checking-the-signature")
    assert search("restor back")[0].section.anchor == "backup-and-restore"
    assert search("quokka") == search("") == search("?") == []


def test_sections_that_lack_a_word_come_after_those_that_have_all_and_the_changelog_last() -> None:
    found = search("how do I import my own CSV quokka")
    assert found
    last = [hit.page.slug == "changelog" for hit in found]
    assert last == sorted(last)
    assert search("what is an interval")[0].page.slug in {"glossary", "figures"}


def test_a_question_is_shown_as_text_and_its_words_are_marked(client: Client) -> None:
    text = client.get("/docs/", {"q": "<script>alert(quokka, zebra)"}).content.decode()
    assert "&lt;script&gt;alert(quokka, zebra)" in text
    assert "<script>alert" not in text
    assert "No section has" in text
    found = client.get("/docs/", {"q": "hmac"}).content.decode()
    assert "<mark>HMAC</mark>" in found


def test_the_page_for_annotators_has_the_choices_and_the_keys_of_the_label_screen() -> None:
    text = pages.pages_by_slug()["annotators"].source
    task = tasktypes.parse_definition(tasktypes.load_definitions()["perturbation-vetting"])
    for place, option in enumerate(task.deciding.options, start=1):
        assert f"| `{place}` | *{option.title}* | {option.help} |" in text
    keys = {action.key for action in keymap.ACTIONS} - {*keymap.DIGITS}
    told = {*re.findall(r"`([^`]+)`", text.partition("## Keys")[2].partition("\n## ")[0])}
    assert told == keys | {"Esc", "Ctrl", "Enter"}


def test_the_glossary_is_in_alphabetical_order() -> None:
    titles = [one.title for one in pages.list_sections(pages.pages_by_slug()["glossary"])[1:]]
    assert titles == sorted(titles, key=str.lower)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("screen", "more", "slug"),
    [
        ("imports", [], "data-files"),
        ("my-items", [], "annotators"),
        ("results-page", ["detector"], "detector"),
        ("results-page", ["overview"], "figures"),
    ],
)
def test_a_screen_has_a_link_to_the_page_that_explains_it(
    people: Cast, client: Client, screen: str, more: list[str], slug: str
) -> None:
    client.force_login(people.lead.account)
    text = client.get(reverse(screen, args=[people.project.slug, *more])).content.decode()
    assert f'<a href="/docs/{slug}/">About this page:' in text


def test_the_static_site_is_built_with_all_pages_and_no_warning(tmp_path: Path) -> None:
    """Some seconds: the whole site is built."""
    static_site.write_source(tmp_path / "source")
    build = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning"]
    run = subprocess.run(
        [*build, tmp_path / "source", tmp_path / "html"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert {f"{slug}.html" for slug in pages.pages_by_slug()} <= {
        path.name for path in (tmp_path / "html").iterdir()
    }
    overview = (tmp_path / "html" / "overview.html").read_text(encoding="utf-8")
    assert 'href="operation.html#from-a-package"' in overview
    assert 'src="_images/results.png"' in overview


@pytest.mark.django_db
def test_a_word_of_the_glossary_is_explained_where_it_stands(people: Cast, client: Client) -> None:
    client.force_login(people.lead.account)
    text = client.get(reverse("snapshots", args=[people.project.slug])).content.decode()
    [said] = re.findall(
        r'<a class="term" href="/docs/glossary/#final-label" title="([^"]*)">', text
    )
    explained = {
        one.title: one.text for one in pages.list_sections(pages.pages_by_slug()["glossary"])
    }
    assert html.unescape(said) == explained["Final label"]


def test_every_word_that_a_page_explains_is_in_the_glossary() -> None:
    titles = {one.title.lower() for one in pages.list_sections(pages.pages_by_slug()["glossary"])}
    used = {
        word
        for path in (ROOT / "templates").rglob("*.html")
        for word in re.findall(r"\{% term ['\"]([^'\"]+)", path.read_text(encoding="utf-8"))
    }
    assert len(used) > 5
    assert used <= titles
