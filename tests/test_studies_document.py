"""docs/studies.md names what is there, and has a row for all that the studies print.

What stands in backticks is an address, a command, a test, a file, or a name.
"""

import re
import shlex
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class
from django.urls import resolve

from annotation import tasktypes
from annotation.items import taxonomy
from judging import strategies
from judging.results.page_parts import StudyFigure
from judging.results.tables import PAGES
from judging.strategies.definitions import PARSERS
from judging.strategies.draws import FIELD_PREFIX
from perturbers.registry import PERTURBERS

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
QUOTED = sorted(set(re.findall(r"`([^`\n]+)`", TEXT)))
ADDRESSES = [name for name in QUOTED if re.search(r"/(\?|$)", name) and not (ROOT / name).exists()]
FILES = [name for name in QUOTED if "/" in name and name not in ADDRESSES]
TESTS = [name for name in QUOTED if name.startswith("test_")]
COMMANDS = [name for name in QUOTED if name.split()[0] in get_commands()]
STRATEGIES = strategies.load_all()
PRINTED = [
    pytest.param(study, page, view.slug, figure, id=f"{study} {figure.name}")
    for page, shown in PAGES.items()
    for view in shown.views
    for study, figures in view.studies.items()
    for figure in figures
]


def section(study: str) -> str:
    return TEXT.split(f"\n## Study {study}\n")[1].split("\n## ")[0]


def list_rows(study: str) -> dict[str, str]:
    """The rows of a study's tables by what stands in their first cell."""
    lines = [line for line in section(study).splitlines() if line.startswith("| ")]
    return {line.split("|")[1].strip(): line for line in lines}


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_leads_to_a_page(address: str) -> None:
    path, _, query = address.partition("?")
    found = resolve(f"/projects/demo/{path}")
    if found.view_name == "results-page":
        views = [view.slug for view in PAGES[found.kwargs["page"]].views]
        assert query.removeprefix("view=") in views
    else:
        assert not query


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_can_be_typed(line: str) -> None:
    name, *words = shlex.split(line)
    app = get_commands()[name]
    command = app if not isinstance(app, str) else load_command_class(app, name)
    # Raises CommandError for an option or a choice that there is not.
    command.create_parser("manage.py", name).parse_args([*words, "--project", "demo"])
    if "--strategy" in words:
        assert words[words.index("--strategy") + 1] in STRATEGIES


def test_files_are_there() -> None:
    assert [name for name in FILES if name not in COMMANDS and not (ROOT / name).exists()] == []


def test_tests_are_there() -> None:
    written = "\n".join(path.read_text("utf-8") for path in ROOT.glob("tests/**/test_*.py"))
    assert len(TESTS) > 50
    assert [name for name in TESTS if f"def {name}(" not in written] == []


def test_names_are_those_of_strategies_categories_and_the_like() -> None:
    known = {*STRATEGIES, *PERTURBERS, *tasktypes.load_definitions()}
    known |= {f"{FIELD_PREFIX}{draw.name}" for one in STRATEGIES.values() for draw in one.draws}
    known |= {parser for parsers in PARSERS.values() for parser in parsers}
    for slug, definition in taxonomy.load_templates().items():
        known |= {slug, *(category["slug"] for category in definition["category"])}
    others = {*ADDRESSES, *FILES, *TESTS, *COMMANDS}
    assert [name for name in QUOTED if name not in known | others] == []


@pytest.mark.parametrize(("study", "page", "view", "figure"), PRINTED)
def test_what_a_view_shows_of_a_study_has_a_row(
    study: str, page: str, view: str, figure: StudyFigure
) -> None:
    row = list_rows(study)[figure.name]
    assert f"`results/{page}/?view={view}`" in row
    assert [name for name in figure.strategies if f"`{name}`" not in row] == []


def test_strategies_of_a_study_are_in_its_section() -> None:
    # `study` begins with the number of the study: "000 section 4.1".
    named = {one.slug: one.study.split()[0] for one in STRATEGIES.values() if one.study}
    assert [slug for slug, study in named.items() if f"`{slug}`" not in section(study)] == []


def test_every_category_of_study_000_has_a_row_with_the_strategy_that_makes_it() -> None:
    rows = {row.split("|")[2].strip(): row for row in list_rows("000").values()}
    made = {one.category: one.slug for one in STRATEGIES.values() if one.category}
    assert len(made) == 23
    assert [slug for slug, by in made.items() if f"`{by}`" not in rows.get(f"`{slug}`", "")] == []
