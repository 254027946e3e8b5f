"""What every file keeps to, and what the documents promise."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from django.core.management import get_commands

ROOT = Path(__file__).resolve().parents[1]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
DOCUMENTS = sorted(ROOT.glob("*.md"))
LARGEST = 300_000
BINARY = {".png", ".jpg", ".ico", ".woff2", ".parquet", ".zip"}


def _listed() -> list[Path]:
    """The files of the checkout that are, or would be, part of the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


FILES = _listed()
OURS = [path for path in FILES if "vendor" not in path.parts and path.suffix not in BINARY]


def found(pattern: str, paths: list[Path]) -> list[str]:
    """Where a pattern occurs, as file:line: text."""
    wanted = re.compile(pattern)
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in paths
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if wanted.search(line)
    ]


def test_no_file_names_a_package_registry() -> None:
    # Written in pieces, since this file is looked through as well.
    hosts = "|".join(
        ["py" + "pi.org", "python" + "hosted", "npm" + "js", "js" + "delivr", "unp" + "kg"]
    )
    assert found(rf"({hosts})", [path for path in OURS if path not in LOCKS]) == []
    assert found(hosts, LOCKS) == []


def test_no_file_names_a_place_of_one_machine() -> None:
    assert found(r"(?<![\w.])/(ro" + r"ot|ho" + r"me/\w+|wo" + r"rk)/", OURS) == []


def test_no_file_is_large_but_scripts_of_others_and_locks() -> None:
    exempt = {*LOCKS}
    large = [path for path in OURS if path.stat().st_size > LARGEST and path not in exempt]
    assert large == []


def test_nothing_that_is_made_is_part_of_the_repository() -> None:
    made = {"var", ".venv", "__pycache__", ".mypy_cache", "node_modules"}
    assert [path for path in FILES if made & set(path.relative_to(ROOT).parts)] == []


def test_no_lock_of_another_tool_is_kept_since_it_would_record_addresses() -> None:
    names = {"uv.lock", "poetry.lock", "Pipfile.lock", "pylock.toml", "package-lock.json"}
    assert [path for path in FILES if path.name in names] == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_locked_package_has_one_version_and_hashes(lock: Path) -> None:
    entries = re.split(r"\n(?=[a-z0-9])", lock.read_text(encoding="utf-8").strip())
    assert all(re.match(r"[\w.\-\[\]]+==\S+", entry) for entry in entries)
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_no_lock_says_where_packages_come_from(lock: Path) -> None:
    assert found(r"index-url|find-links|https?:|git\+", [lock]) == []


def test_the_development_set_holds_the_runtime_set() -> None:
    runtime, develop = (
        set(re.findall(r"^\S+==\S+", (ROOT / "requirements" / name).read_text("utf-8"), re.M))
        for name in ("runtime.txt", "dev.txt")
    )
    assert runtime <= develop


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_every_command_that_a_document_names_exists(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    named = set(re.findall(r"manage\.py ([a-z]\w+)", text))
    assert named - set(get_commands()) == set()
    targets = set(re.findall(r"(?:^|`|= )make ([a-z]+)", text, re.M))
    rules = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    assert targets - rules == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_every_link_inside_the_repository_leads_to_a_file(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text(encoding="utf-8"))
    assert [link for link in links if not (document.parent / link).exists()] == []


def test_the_citation_names_the_version_of_today() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (cited["version"], cited["license"]) == (project["version"], project["license"])
    day = f"{cited['date-released']:%-d %B %Y}"
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {project['version']} ({day})" in changelog


def test_what_make_says_about_itself_names_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.M)
    told = set(re.findall(r"^#   make ([a-z-]+)", makefile, re.M))
    assert phony
    assert set(phony[1].split()) - {"help", "python"} == told


def test_forms_with_choices_tell_browsers_not_to_bring_back_those_of_the_last_visit() -> None:
    """Browsers do so by the places of the controls, whatever is stored or stands there by now."""
    form = re.compile(r"<form\b((?:{%.*?%}|{{.*?}}|[^>])*)>(.*?)</form>", re.DOTALL)
    choices = re.compile(r"""type="(checkbox|radio)"|<select|_field\.html|_form\.html""")
    lacking = [
        str(path.relative_to(ROOT / "templates"))
        for path in OURS
        if path.suffix == ".html"
        for tag, content in form.findall(path.read_text())
        if 'method="post"' in tag and choices.search(content) and "autocomplete" not in tag
    ]
    assert {one for one in lacking if not one.startswith(("account/", "mfa/"))} == {
        "annotation/imports.html",
        "annotation/invitation.html",
        "annotation/invite.html",
        "annotation/new_project.html",
        "annotation/sign_in_link_open.html",
        "annotation/snapshots.html",
        "annotation/tokens.html",
        "judging/strategy_import.html",
    }, "only forms that make something new, and show nothing that is stored"


def test_templates_keep_to_the_strict_policy() -> None:
    templates = [path for path in OURS if path.suffix == ".html"]
    assert found(r"""\sstyle=["']|\son[a-z]+=["']|<style|javascript:|hx-on""", templates) == []
    assert found(r"<script(?![^>]*(src=|nonce=|application/json))", templates) == []


def test_no_data_is_the_same_dash_everywhere() -> None:
    # An en dash would be another one; a range is said in words, since a minus may follow.
    shown = [
        path
        for path in OURS
        if path.suffix in {".html", ".js"} or {"charts", "templatetags", "views"} & set(path.parts)
    ]
    assert found("\N{EN DASH}", shown) == []
    assert found(r"default(_if_none)?:\"-\"", shown) == []


def test_no_pattern_repeats_a_group_possessively() -> None:
    # Python before 3.11.5 matches some of them wrongly: Debian 12 has 3.11.2.
    repeated = r"""(?<!\\)\)(?:[*+?]|\{[\d,]+\})\+[^+]*["']"""
    assert found(repeated, [path for path in OURS if path.suffix == ".py"]) == []


@pytest.mark.parametrize(
    "script", [".ci/run", "requirements/audit", "requirements/install", "requirements/venv"]
)
def test_a_script_stops_at_the_first_error_and_can_be_started(script: str) -> None:
    path = ROOT / script
    assert os.access(path, os.X_OK)
    assert "set -euo pipefail" in path.read_text(encoding="utf-8")
