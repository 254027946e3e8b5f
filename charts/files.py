"""Charts as files for a paper: SVG, PDF and PNG, and the specification as JSON.

Each file is made in a separate process with a timeout, since the converter contains a JavaScript
engine. So pages are not affected by a crash, by its use of memory, or by a chart that takes
forever.
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
# A text column is about 3.5 inches wide, a page 7 inches. 480 points are in between and scale well.
WIDTH = 480
# Pixels per point: with 3, an inch has 216 pixels.
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
# Always light, whatever theme the reader uses. The converter includes Liberation Sans, which has
# the same widths as Arial. So texts take the same space wherever the file is made and opened.
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
    """A chart could not be converted. The message says why and what to do."""


def render(spec: dict[str, Any], form: str, seconds: float = TIMEOUT) -> bytes:
    """Render the chart of a Vega-Lite specification as a file of a type in `TYPES`. The bytes are
    the same each time.

    Raises `ConversionFailed` if the specification refers to external data, cannot be drawn, or is
    not drawn in time. Raises ValueError for any other type.
    """
    return render_all([spec], form, seconds)[0]


def render_all(specs: Sequence[dict[str, Any]], form: str, seconds: float = TIMEOUT) -> list[bytes]:
    """Render the files of several charts like `render`, in one process, since starting a process
    takes ten times as long as drawing a chart. `seconds` is the average time allowed per chart."""
    if form not in TYPES:
        raise ValueError(f"{form!r} is not one of {', '.join(TYPES)}")
    papers = [with_print_style(spec) for spec in specs]
    if form == "json":
        return [json.dumps(each, ensure_ascii=False, indent=1).encode() + b"\n" for each in papers]
    if not papers:
        return []
    asked = json.dumps({"specs": _without_undrawable(papers), "form": form}).encode()
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
    """Return the specification in print style and with a fixed width, so that it does not depend on
    a page."""
    if _names_address(spec):
        raise ConversionFailed("The chart refers to external data, which is never loaded.")
    bare = {name: value for name, value in spec.items() if name not in {"$schema", "config"}}
    return {"$schema": SCHEMA, "config": PRINT_STYLE, **_with_fixed_width(bare)}


# What no SVG may contain, and what ends a line within an expression of Vega.
_UNDRAWABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


def _without_undrawable(part: Any) -> Any:
    """Replace characters by a sign for them that would stop the converter, such as control
    characters in a field of an item."""
    if isinstance(part, str):
        return _UNDRAWABLE.sub("\ufffd", part)
    if isinstance(part, list):
        return [_without_undrawable(one) for one in part]
    if not isinstance(part, dict):
        return part
    return {_without_undrawable(name): _without_undrawable(one) for name, one in part.items()}


def _names_address(part: Any) -> bool:
    """True if anything besides the data rows would be fetched or linked."""
    if isinstance(part, list):
        return any(_names_address(one) for one in part)
    if not isinstance(part, dict):
        return False
    inner = (value for name, value in part.items() if name not in {"values", "datasets"})
    return bool({"url", "href"} & part.keys()) or any(_names_address(one) for one in inner)


def _with_fixed_width(part: Any) -> Any:
    """Replace a width that depends on the container by a width in points."""
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
    """Convert one chart; runs in the separate process."""
    import vl_convert

    how: dict[str, Any] = {"vl_version": VEGA_LITE, "allowed_base_urls": []}
    makers: dict[str, Callable[[], bytes]] = {
        "svg": lambda: vl_convert.vegalite_to_svg(spec, **how).encode(),
        "pdf": lambda: _sort_resources(vl_convert.vegalite_to_pdf(spec, **how)),
        "png": lambda: vl_convert.vegalite_to_png(spec, scale=SCALE, ppi=72, **how),
    }
    return makers[form]()


# The resources of a PDF page, by name. The order of these lines does not matter.
_RESOURCE_LIST = re.compile(rb"(?:^ +/[A-Za-z]+[0-9]+ [0-9]+ 0 R\n){2,}", re.MULTILINE)


def _sort_resources(pdf: bytes) -> bytes:
    """Return the same document with its resources sorted by name, since the converter writes them
    in varying order. Offsets stay the same, since only the order of the lines changes."""
    return _RESOURCE_LIST.sub(
        lambda found: b"".join(sorted(found[0].splitlines(keepends=True))), pdf
    )


if __name__ == "__main__":
    told = json.load(sys.stdin)
    for each in told["specs"]:
        sys.stdout.buffer.write(b64encode(_convert(each, told["form"])) + b"\n")
