"""Charts as files for a paper: SVG, PDF and PNG, and the specification itself.

A file is made in a process of its own that has an end: the converter holds a JavaScript engine, and
neither its crash, nor its memory, nor a chart that takes for ever may touch the pages.
"""

import json
import re
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
VEGA_LITE = "6.4"
TIMEOUT = 30.0
# A column of text is some 3.5 inches wide, a page 7; 480 points are in between and scale well.
WIDTH = 480
# Dots a point: 3 are 216 dots an inch.
SCALE = 3.0
TYPES = {
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "png": "image/png",
    "json": "application/json",
}

_INK, _SOFT, _LINE = "#1c2024", "#4a5058", "#d5d9de"
_AXIS = {"labelColor": _SOFT, "titleColor": _INK, "gridColor": _LINE, "domainColor": _LINE}
_TYPE = {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal"}
# Light whatever the reader's screen. The converter brings Liberation Sans along, and Arial is as
# wide, so that texts take the same place wherever the file is made and opened.
PRINT_STYLE: dict[str, Any] = {
    "background": "white",
    "font": "Liberation Sans, Arial, Helvetica, sans-serif",
    "view": {"stroke": _LINE},
    "title": {"color": _INK, "anchor": "start", "fontSize": 13},
    "mark": {"color": "#2b7fc4"},
    "text": {"color": _INK},
    "axis": {**_AXIS, **_TYPE, "tickColor": _LINE, "labelSeparation": 4},
    "header": {"labelColor": _SOFT, "titleColor": _INK},
    "legend": {
        "labelColor": _SOFT,
        "titleColor": _INK,
        "layout": {"bottom": {"direction": "vertical"}},
        **_TYPE,
    },
}


class ConversionFailed(Exception):
    """A chart that did not become a file; the message says why and what to do."""


def render(spec: dict[str, Any], form: str, seconds: float = TIMEOUT) -> bytes:
    """The chart of a Vega-Lite specification as a file of `TYPES`, the same bytes every time.

    Raises `NotMade` where the specification names anything outside itself, cannot be drawn, or
    is not drawn in time; ValueError for another form.
    """
    return render_all([spec], form, seconds)[0]


def render_all(specs: Sequence[dict[str, Any]], form: str, seconds: float = TIMEOUT) -> list[bytes]:
    """The files of several charts, as `write` makes each, in one process: its start takes ten
    times as long as a chart. `seconds` is how long each may take on average."""
    if form not in TYPES:
        raise ValueError(f"{form!r} is none of {', '.join(TYPES)}")
    papers = [with_print_style(spec) for spec in specs]
    if form == "json":
        return [json.dumps(each, ensure_ascii=False, indent=1).encode() + b"\n" for each in papers]
    if not papers:
        return []
    asked = json.dumps({"specs": papers, "form": form}).encode()
    command = [sys.executable, "-m", "charts.files"]
    root, limit = Path(__file__).parent.parent, seconds * len(papers)
    try:
        made = subprocess.run(command, input=asked, capture_output=True, timeout=limit, cwd=root)
    except subprocess.TimeoutExpired as error:
        raise ConversionFailed(
            f"The chart could not be drawn within {limit:g} s. Choose fewer runs, or download its "
            "JSON."
        ) from error
    if made.returncode:
        said = made.stderr.decode(errors="replace").strip().splitlines() or ["it was stopped"]
        raise ConversionFailed(f"The chart could not be drawn: {said[-1][:300]}")
    return [b64decode(each) for each in made.stdout.splitlines()]


def with_print_style(spec: dict[str, Any]) -> dict[str, Any]:
    """The specification with the look of paper and a width of its own, which needs no page."""
    if _names_address(spec):
        raise ConversionFailed("The chart refers to external data, which is never loaded.")
    bare = {name: value for name, value in spec.items() if name not in {"$schema", "config"}}
    return {"$schema": SCHEMA, "config": PRINT_STYLE, **_with_fixed_width(bare)}


def _names_address(part: Any) -> bool:
    """Whether anything but the rows of the data would be fetched or linked."""
    if isinstance(part, list):
        return any(_names_address(one) for one in part)
    if not isinstance(part, dict):
        return False
    inner = (value for name, value in part.items() if name not in {"values", "datasets"})
    return bool({"url", "href"} & part.keys()) or any(_names_address(one) for one in inner)


def _with_fixed_width(part: Any) -> Any:
    """With a width in points where a chart would take that of its place on a page."""
    if isinstance(part, list):
        return [_with_fixed_width(one) for one in part]
    if not isinstance(part, dict):
        return part
    held = {
        name: value if name == "values" else _with_fixed_width(value)
        for name, value in part.items()
    }
    return held | {"width": WIDTH} if part.get("width") == "container" else held


def _convert(spec: dict[str, Any], form: str) -> bytes:
    """In the process that is made for it."""
    import vl_convert

    how: dict[str, Any] = {"vl_version": VEGA_LITE, "allowed_base_urls": []}
    makers: dict[str, Callable[[], bytes]] = {
        "svg": lambda: vl_convert.vegalite_to_svg(spec, **how).encode(),
        "pdf": lambda: _sort_resources(vl_convert.vegalite_to_pdf(spec, **how)),
        "png": lambda: vl_convert.vegalite_to_png(spec, scale=SCALE, ppi=72, **how),
    }
    return makers[form]()


# What a page draws with, by name: lines that may stand in any order.
_RESOURCE_LIST = re.compile(rb"(?:^ +/[A-Za-z]+[0-9]+ [0-9]+ 0 R\n){2,}", re.MULTILINE)


def _sort_resources(pdf: bytes) -> bytes:
    """The same document with its resources by name: the converter has them in an order that
    changes from call to call. Nothing moves, since the lines only change places."""
    return _RESOURCE_LIST.sub(
        lambda found: b"".join(sorted(found[0].splitlines(keepends=True))), pdf
    )


if __name__ == "__main__":
    told = json.load(sys.stdin)
    for each in told["specs"]:
        sys.stdout.buffer.write(b64encode(_convert(each, told["form"])) + b"\n")
