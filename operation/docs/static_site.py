"""Writes the documentation as the source of a static site, which Sphinx builds: `make docs`."""

import re
import shutil
import sys
from pathlib import Path

from django.conf import settings

from operation.docs import pages

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_CONF = """project = "Blindspot"
extensions = ["myst_parser"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "Blindspot"
html_copy_source = False
# The highlighter knows no CSV.
suppress_warnings = ["misc.highlighting_failure"]
"""


def write_source(folder: Path) -> None:
    """Write Markdown files, pictures and Sphinx's settings into a folder, which is emptied first.
    Links among the pages lead to the files there."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(settings.BASE_DIR / pages.PICTURES, folder / "pictures")
    (folder / "conf.py").write_text(_CONF, encoding="utf-8")
    (folder / "index.md").write_text(_index(), encoding="utf-8")
    for page in pages.list_pages():
        (folder / f"{page.slug}.md").write_text(_localized(page), encoding="utf-8")


def _index() -> str:
    parts = ["# Blindspot\n"]
    for group in pages.load_contents():
        names = "\n".join(page.slug for page in group.pages)
        parts.append(f"```{{toctree}}\n:caption: {group.title}\n\n{names}\n```\n")
    return "\n".join(parts)


def _localized(page: pages.Page) -> str:
    """The page with links that hold in the folder. One that leads to no page becomes its text."""
    files = {one.file: f"{one.slug}.md" for one in pages.list_pages()}

    def replaced(found: re.Match[str]) -> str:
        image, text, href = found.groups()
        if not pages.is_relative(href) or href.startswith("#"):
            return found[0]
        path, anchor = pages.resolve_link(page.file, href)
        there = files.get(path) or _picture(path)
        return f"{image}[{text}]({there}{anchor})" if there else text

    # Blocks of code stay as they are.
    parts = re.split(r"(^```.*?^```$)", page.source, flags=re.MULTILINE | re.DOTALL)
    return "".join(
        part if number % 2 else _LINK.sub(replaced, part) for number, part in enumerate(parts)
    )


def _picture(path: str) -> str:
    inside = f"{pages.PICTURES}/"
    return f"pictures/{path.removeprefix(inside)}" if path.startswith(inside) else ""


if __name__ == "__main__":
    write_source(Path(sys.argv[1]))
