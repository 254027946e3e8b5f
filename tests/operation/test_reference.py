"""The pages of the documentation that are written from the code: none is stale, and each names what
the code declares."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings

from annotation import tasktypes
from annotation.accounts import keymap
from annotation.items import taxonomy
from formats.readers import FORMATS, REPLY_FORMATS
from formats.writers import FIGURE_FORMATS, FILE_FORMATS
from judging import strategies
from judging.exporting.tables import EXPORT_TABLES, explain_column
from judging.results.columns import COMMON_COLUMNS, ENDINGS
from judging.results.tables import PAGES, RESULT_TABLES
from operation import doctor, former_databases, readiness, timed_checks
from operation.docs import pages
from operation.docs.reference import GENERATED, commands, markdown
from operation.findings import Problem

ROOT = Path(settings.BASE_DIR)
COMMANDS = commands.load_own_commands()


def read(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """The part of a page below a heading, up to the next one of its level or above."""
    level = len(heading) - len(heading.lstrip("#"))
    assert f"\n{heading}\n" in text, heading
    below = text.split(f"\n{heading}\n")[1]
    return re.split(rf"^#{{1,{level}}} ", below, flags=re.MULTILINE)[0]


@pytest.mark.parametrize(("file", "write_page"), GENERATED.items())
def test_a_generated_page_is_not_stale(file: str, write_page: Callable[[], str]) -> None:
    written = (ROOT / file).read_text(encoding="utf-8")
    assert written == write_page(), "Run manage.py write_docs"


def test_no_generated_page_names_a_place_of_this_machine() -> None:
    assert not [file for file in GENERATED if str(ROOT) in (ROOT / file).read_text("utf-8")]


def test_every_generated_page_is_part_of_the_documentation() -> None:
    assert GENERATED.keys() <= {page.file for page in pages.list_pages()}


def test_the_pages_do_not_depend_on_the_width_of_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert commands.write_page() == read("commands")


def test_every_command_of_ours_is_listed_and_no_other() -> None:
    files = ROOT.glob("*/management/commands/*.py")
    ours = {path.stem for path in files if path.stem != "__init__"}
    assert set(re.findall(r"^### `(\w+)`$", read("commands"), re.MULTILINE)) == ours


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_of_a_command_is_explained(name: str) -> None:
    said = section(read("commands"), f"### `{name}`")
    every = [one for _, some in commands.list_own_arguments(COMMANDS[name], name) for one in some]
    assert [one.dest for one in every if not one.help] == []
    for option in (option for one in every for option in one.option_strings):
        assert re.search(rf"`{option}[` ]", said), option


def test_every_variable_is_listed_with_what_holds_without_it() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| (.+) \| (.+) \|$", read("settings"), re.MULTILINE)
    declared = [one for group in settings.ENVIRONMENT_VARIABLES.values() for one in group]
    assert [name for name, _, _ in rows] == [one.name for one in declared]
    assert all(one.meaning and (one.unset or one.default) for one in declared)


def test_every_table_of_results_has_its_columns_and_says_what_a_row_is() -> None:
    text = read("tables")
    for table in RESULT_TABLES.values():
        said = section(text, f"### `{table.name}`")
        assert table.about
        assert markdown.plain(table.about) in said
        names = [name for name in table.list_file_columns([""]) if name]
        assert [name for name in names if f"`{name}`" not in said] == []
        assert [one.title for one in table.columns if markdown.plain(one.title) not in said] == []


def test_every_result_page_is_named_and_so_is_each_view_of_a_table() -> None:
    text = read("tables")
    for page in PAGES.values():
        section(text, f"## {page.title}")
        views = [
            view for view in page.views if any(ask.table.name in RESULT_TABLES for ask in view.asks)
        ]
        assert [view.title for view in views if f"*{view.title}*" not in text] == []


@pytest.mark.parametrize("name", RESULT_TABLES)
def test_every_column_of_a_table_of_results_is_explained(name: str) -> None:
    table = RESULT_TABLES[name]
    names = table.list_file_columns([])
    assert table.meanings.keys() <= set(names)
    ends = {f"{one}_{ending}" for one in names for ending in ENDINGS}
    ends |= {f"{one.removesuffix('_rate')}_{ending}" for one in names for ending in ENDINGS}
    assert [one for one in names if not table.explain(one) and one not in ends] == []


def test_a_link_of_a_result_page_leads_to_the_columns_of_its_table() -> None:
    anchors = {one.anchor for one in pages.list_sections(pages.pages_by_slug()["tables"])}
    assert RESULT_TABLES.keys() <= anchors
    anchors = {one.anchor for one in pages.list_sections(pages.pages_by_slug()["formats"])}
    assert "exports" in anchors


def test_an_interval_is_listed_at_its_own_figure() -> None:
    said = section(read("tables"), "### `blindspots`")
    row = next(line for line in said.splitlines() if line.startswith("| `difference` |"))
    assert row.endswith("| `difference_low`, `difference_high`, `reason` |")
    said = section(read("tables"), "### `explanations`")
    row = next(line for line in said.splitlines() if line.startswith("| `found` |"))
    assert row.endswith("| — |")


def test_a_column_that_is_explained_for_all_tables_is_in_several() -> None:
    for name in COMMON_COLUMNS:
        tables = [one for one in RESULT_TABLES.values() if name in one.list_file_columns([])]
        assert len(tables) > 1, name


def test_every_task_type_has_its_texts_fields_and_answers() -> None:
    text = read("task-types")
    for definition in tasktypes.load_definitions().values():
        task = tasktypes.parse_definition(definition)
        said = section(text, f"## {task.title}")
        assert task.question in said
        fields = [*task.fields, *(task.blind.fields if task.blind else ())]
        values = [option.value for field in fields for option in field.options]
        names = [one.name for one in (*task.texts, *fields)]
        assert [one for one in (*names, *values, task.slug) if f"`{one}`" not in said] == []


@pytest.mark.parametrize("slug", strategies.load_all())
def test_every_strategy_has_its_prompts_word_for_word(slug: str) -> None:
    strategy = strategies.load_all()[slug]
    said = section(read("strategies"), f"### `{slug}`")
    assert markdown.plain(strategy.title) in said
    for prompt in strategy.prompts:
        assert f"\n```\n{prompt}\n```\n" in said


def test_every_category_of_every_template_is_described() -> None:
    text = read("categories")
    for definition in taxonomy.load_templates().values():
        said = section(text, f"## {definition['title']}")
        for one in taxonomy.parse_definition(definition):
            words = f"**{markdown.plain(one.name)}.** {markdown.plain(one.description)}"
            assert f"| `{one.slug}` | {words}" in said


def test_every_format_is_listed_and_every_export_has_its_columns() -> None:
    text = read("formats")
    for form in (*FORMATS, *REPLY_FORMATS, *FILE_FORMATS, *FIGURE_FORMATS):
        assert f"`{form}`" in text
    for name, table in EXPORT_TABLES.items():
        listed = re.findall(r"^\| `(\w+)` \|", section(text, f"### `{name}`"), re.MULTILINE)
        assert tuple(listed) == table.columns


def test_every_column_of_an_export_but_the_texts_of_items_is_explained() -> None:
    texts = {text["name"] for one in tasktypes.load_definitions().values() for text in one["texts"]}
    for name, table in EXPORT_TABLES.items():
        silent = [one for one in table.columns if not explain_column(name, one)]
        assert silent == [one for one in table.columns if name == "items" and one in texts]


def test_every_key_of_the_label_screen_is_listed_with_its_action() -> None:
    said = section(read("keys"), "## Label screen")
    for action in keymap.ACTIONS:
        assert f"| `{action.key}` | {action.title} |" in said
    assert "| `y` | Confirm the label |" in section(read("keys"), "## Verification")


def test_every_problem_that_is_declared_is_listed_with_its_check() -> None:
    assert doctor.PROBLEMS.keys() == doctor.CHECKS.keys() | doctor.OPTIONAL_CHECKS.keys()
    modules = (doctor, former_databases, readiness, timed_checks)
    declared = {one for each in modules for one in vars(each).values() if isinstance(one, Problem)}
    listed = [one for some in doctor.PROBLEMS.values() for one in some] + [*timed_checks.PROBLEMS]
    assert declared == set(listed)
    text = read("troubleshooting")
    assert [one.says for one in declared if one.means not in text] == []
    assert "**NUMBER migrations are not applied, starting with FIRST.** (*wrong*)" in text


def test_a_text_in_a_page_is_shown_as_it_is() -> None:
    text = "1. a_b *c* <https://d.example> [e](f) `g` _h_ | &amp; # x\n- y"
    shown = pages._MARKDOWN.render(markdown.plain(text))
    as_html = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert shown == f"<p>{' '.join(as_html.split())}</p>\n"


def test_a_prompt_with_a_fence_of_its_own_stands_in_a_longer_one() -> None:
    assert markdown.fence("a\n````\nb\n````") == "`````\na\n````\nb\n````\n`````"


def test_a_bar_in_a_cell_ends_no_cell() -> None:
    shown = pages._MARKDOWN.render(markdown.table(("a", "b"), [("`x|y`", "")]))
    assert "<td><code>x|y</code></td>" in shown
    assert "<td>—</td>" in shown
