"""The vendored browser libraries are the ones that their README names."""

import hashlib
import re
from pathlib import Path

import pytest

VENDOR = Path(__file__).resolve().parent.parent / "static" / "vendor"
ROW = re.compile(
    r"^\| (?P<file>\S+) \| (?P<package>\S+) \| (?P<version>\S+) \|"
    r" \[[^\]]+\]\((?P<licence>\S+)\) \| (?P<digest>[0-9a-f]{64}) \|$",
    re.MULTILINE,
)
ROWS = [match.groupdict() for match in ROW.finditer((VENDOR / "README.md").read_text("utf-8"))]


def test_every_vendored_file_has_a_row_in_the_table() -> None:
    kept = {
        path.relative_to(VENDOR)
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "README.md"
    }
    files = {str(path) for path in kept if path.parts[0] != "licences"}
    assert {row["file"] for row in ROWS} == files


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_a_vendored_file_has_the_digest_in_the_table(row: dict[str, str]) -> None:
    assert hashlib.sha256((VENDOR / row["file"]).read_bytes()).hexdigest() == row["digest"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_a_vendored_file_lies_beside_its_licence(row: dict[str, str]) -> None:
    assert (VENDOR / row["licence"]).read_text("utf-8").strip()


@pytest.mark.parametrize("path", [*VENDOR.rglob("*.js")], ids=lambda path: path.name)
def test_a_vendored_script_points_to_no_source_map(path: Path) -> None:
    assert "sourceMappingURL" not in path.read_text("utf-8")


@pytest.mark.parametrize("path", [*VENDOR.rglob("*.css")], ids=lambda path: path.name)
def test_a_vendored_style_sheet_names_only_files_that_are_kept(path: Path) -> None:
    named = re.findall(r"url\(([^)]+)\)", path.read_text("utf-8"))
    assert named
    assert [name for name in named if not (path.parent / name).is_file()] == []


def test_vega_lite_has_the_major_version_that_altair_writes() -> None:
    altair = pytest.importorskip("altair")
    written = re.search(r"vega-lite/v(\d+)", altair.SCHEMA_URL)
    kept = next(row["version"] for row in ROWS if row["package"] == "vega-lite")
    assert written
    assert kept.split(".")[0] == written[1]
