"""Tables of figures as text for a paper or a web page: LaTeX and Markdown.

Names can be any text, so characters that would act as commands are escaped. Numbers are rounded to
three decimals, very small numbers to two significant digits; CSV and JSON have them in full. None
is written as a dash, never as 0. A `PrintedTable` is one that is formatted already, as on a page.
"""

import json
import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import zip_longest
from typing import Any, TextIO

_LATEX = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    **{sign: f"\\{sign}" for sign in "{}$&#_%"},
    # At the start of a cell, these characters would be an argument of the rule or line break before
    # it. Two hyphens would become a dash, and two apostrophes a quotation mark.
    **{sign: f"{{{sign}}}" for sign in "[]*-'"},
    "−": "$-$",
    "′": "$'$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≠": r"$\neq$",
    "≈": r"$\approx$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "δ": r"$\delta$",
    "ε": r"$\varepsilon$",
    "κ": r"$\kappa$",
    "λ": r"$\lambda$",
    "μ": r"$\mu$",
    "π": r"$\pi$",
    "ρ": r"$\rho$",
    "σ": r"$\sigma$",
    "τ": r"$\tau$",
}
# The other characters that pdfLaTeX prints with the font encoding T1.
_PRINTED_IN_T1 = {chr(number) for number in (*range(0xA1, 0x17F), *range(0x218, 0x21C))} - set(
    "\xad\xb8ĦħĸĿŀŉŦŧ"
) | set("–—‘’‚“”„†‡•…‰€™")
# Any further one prints itself with LuaLaTeX and XeLaTeX, and its number with pdfLaTeX.
_OTHER_SIGN = "\\providecommand*{\\othersign}[2]{\\ifdefined\\Umathcode#2\\else[U+#1]\\fi}\n"
_MARKDOWN = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    **{sign: f"\\{sign}" for sign in "\\`*_{}[]()#+!|~$^="},
    # Anything that looks like an address would become a link, and a name after @ a mention.
    ":": "&#58;",
    "@": "&#64;",
    ".": "&#46;",
}
# In sentences, all special characters, except where they end a word or are between digits.
_HARMLESS = re.compile(r"[.:](?=[^\s0-9])|(?<![0-9])[.:](?=[0-9])|[^\s\w.,:;()%–—−/’-]+|_")
_PLAIN = re.compile(r"[0-9A-Za-z ,-]*")
_LEAST = 0.0005


def write_latex(rows: Iterable[dict[str, Any]], columns: Sequence[str], stream: TextIO) -> int:
    """Write a `tabular` with the rules of booktabs, and return the number of rows.

    Numeric columns are right-aligned. The preamble needs booktabs, textcomp and the font encoding
    T1.
    """
    made = list(rows)
    places = "".join("r" if _is_numeric(made, name) else "l" for name in columns)
    parts = [
        f"\\begin{{tabular}}{{{places}}}\n\\toprule\n",
        _latex_row([escape_latex(name) for name in columns]),
        "\\midrule\n",
        *(
            _latex_row([_cell(row.get(name), escape_latex, "--") for name in columns])
            for row in made
        ),
        "\\bottomrule\n\\end{tabular}\n",
    ]
    stream.write(define_signs("".join(parts)))
    return len(made)


@dataclass(frozen=True)
class PrintedCell:
    """A cell as it is shown: its text, and what stands below it in small print."""

    text: str
    small: Sequence[str] = ()


@dataclass(frozen=True)
class PrintedLine:
    """A line of cells; `is_total` if it sums up the lines below it."""

    cells: Sequence[PrintedCell]
    is_total: bool = False


@dataclass(frozen=True)
class PrintedTable:
    """A table as a page shows it: its heads, which columns hold numbers, and blocks of lines.

    `label` may only have letters, digits, hyphens and colons. All other texts can be any text.
    """

    caption: str
    label: str
    heads: Sequence[PrintedCell]
    numeric: Sequence[bool]
    blocks: Sequence[Sequence[PrintedLine]]
    note: str


# The longest lines of heads, cells and small print, in characters; longer ones are wrapped.
_HEAD_WIDTH, _CELL_WIDTH, _SMALL_WIDTH = 18, 40, 28
# With more rows, which fit on a page with a long note, a table is split.
_ROWS_OF_A_PAGE = 32
# LaTeX holds some fifty tables that wait for a page.
_PARTS_AT_A_TIME = 20
_PREAMBLE = (
    "% In the preamble: \\usepackage[T1]{fontenc}, "
    "\\usepackage{lmodern, textcomp, booktabs, graphicx}\n"
)
_FITTED = "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"


def write_latex_table(table: PrintedTable, stream: TextIO) -> None:
    """Write a table with the rules of booktabs, caption, label, and the note below it.

    A table that is wider than the column of text is made smaller. One that is longer than a page is
    split into several of the same number, with the note below the last. Small print is in rows of
    its own, so that numbers stay aligned.
    """
    places = "".join("r" if one else "l" for one in table.numeric)
    head = "".join(_printed_rows(table.heads, _HEAD_WIDTH))
    parts = _split_rows(table.blocks)
    text = _PREAMBLE
    for number, part in enumerate(parts, start=1):
        caption = f"\\caption{{{escape_latex(table.caption)}}}\n\\label{{{table.label}}}"
        if number > 1:
            caption = (
                f"\\addtocounter{{table}}{{-1}}\n\\caption{{{escape_latex(table.caption)} "
                f"Part {number} of {len(parts)}.}}"
            )
        text += (
            f"\\begin{{table}}\n\\centering\n{caption}\n{_FITTED}\\begin{{tabular}}{{{places}}}\n"
            f"\\toprule\n{head}\\midrule\n{''.join(part)}\\bottomrule\n\\end{{tabular}}}}\n"
        )
        if number == len(parts):
            note = _escape_figure(table.note)
            text += f"\\par\\smallskip\n\\parbox{{\\linewidth}}{{\\footnotesize {note}}}\n"
        text += "\\end{table}\n"
        if number % _PARTS_AT_A_TIME == 0:
            text += "\\clearpage\n"
    stream.write(define_signs(text))


def _split_rows(blocks: Iterable[Sequence[PrintedLine]]) -> list[list[str]]:
    """The rows of the parts of a table: with a rule between blocks, and some space between lines if
    one of them has several rows."""
    parts: list[list[str]] = [[]]
    for block in blocks:
        lines = [_printed_rows(line.cells, _CELL_WIDTH, is_bold=line.is_total) for line in block]
        space = ["\\addlinespace\n"] if any(len(rows) > 1 for rows in lines) else []
        for place, rows in enumerate(lines):
            if parts[-1] and len(parts[-1]) + len(rows) > _ROWS_OF_A_PAGE:
                parts.append([])
            elif parts[-1]:
                parts[-1] += space if place else ["\\midrule\n"]
            parts[-1] += rows
    return parts


def _printed_rows(cells: Sequence[PrintedCell], width: int, *, is_bold: bool = False) -> list[str]:
    """The rows of a line, as many as its longest cell needs; the first cell can be bold."""
    columns = [_printed_cell(cell, width) for cell in cells]
    if is_bold:
        columns[0] = [f"\\textbf{{{text}}}" for text in columns[0]]
    return [_latex_row(row) for row in zip_longest(*columns, fillvalue="")]


def _printed_cell(cell: PrintedCell, width: int) -> list[str]:
    big = _wrap(cell.text, width) or [""]
    small = [part for one in cell.small for part in _wrap(one, _SMALL_WIDTH)]
    return [
        *map(_escape_figure, big),
        *(f"{{\\scriptsize {_escape_figure(one)}}}" for one in small),
    ]


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False)


def _escape_figure(text: str) -> str:
    """Return a text with figures for LaTeX: a dash alone as in `write_latex`, relations and signs
    as in formulas, and no line break before a per cent sign."""
    if text == "—":
        return "--"
    found = escape_latex(text).replace(r"\textless{} ", "$<$\\,").replace(r" \%", r"\,\%")
    found = found.replace(r"\textgreater{} ", "$>$\\,")
    return re.sub(r"(?<!\w)\+(?=[0-9])", "$+$", found)


def define_signs(latex: str) -> str:
    """Return LaTeX that `escape_latex` escaped, with the definition of its command `\\othersign`
    first if it has that."""
    return _OTHER_SIGN + latex if r"\othersign{" in latex else latex


def write_markdown(rows: Iterable[dict[str, Any]], columns: Sequence[str], stream: TextIO) -> int:
    """Write a table in GitHub Markdown, with numbers right-aligned; return the number of rows."""
    made = list(rows)
    places = ["---:" if _is_numeric(made, name) else "---" for name in columns]
    stream.write(_markdown_row([escape_markdown(name) for name in columns]))
    stream.write(_markdown_row(places))
    for row in made:
        cells = [_cell(row.get(name), escape_markdown, "–") for name in columns]
        stream.write(_markdown_row(cells))
    return len(made)


def _is_numeric(rows: Sequence[dict[str, Any]], name: str) -> bool:
    there = [row[name] for row in rows if row.get(name) is not None]
    return bool(there) and all(_is_number(value) for value in there)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _cell(value: Any, text: Callable[[str], str], dash: str) -> str:
    if value is None:
        return dash
    if isinstance(value, bool):
        return "yes" if value else "no"
    if _is_number(value):
        return _number(value).replace("-", "$-$" if dash == "--" else "−")
    if isinstance(value, list | dict):
        return text(json.dumps(value, ensure_ascii=False, default=str))
    return text(str(value))


def _number(value: float | Decimal) -> str:
    if isinstance(value, int):
        return str(value)
    small = 0 < abs(float(value)) < _LEAST
    return f"{value:.1e}" if small else f"{value:.3f}"


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + " \\\\\n"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |\n"


def escape_latex(text: str) -> str:
    """Return the text on one line, with all characters escaped that have a meaning in LaTeX.

    Characters that pdfLaTeX does not know become the command `\\othersign`; pass the whole text to
    `define_signs` in the end.
    """
    return "".join(map(_escape_latex_sign, _one_line(text)))


def _escape_latex_sign(sign: str) -> str:
    if sign in _LATEX:
        return _LATEX[sign]
    if sign.isascii() or sign in _PRINTED_IN_T1:
        return sign
    return f"\\othersign{{{ord(sign):04X}}}{{{sign}}}"


def escape_markdown(text: str) -> str:
    """Return the text on one line, with all characters escaped that have a meaning in Markdown."""
    if _PLAIN.fullmatch(text):
        return text
    return _escape_markdown_signs(text)


def escape_markdown_prose(text: str) -> str:
    """Escape sentences like `escape_markdown`, but leave characters that have no effect at their
    position."""
    return _HARMLESS.sub(lambda found: _escape_markdown_signs(found[0]), _one_line(text))


def _escape_markdown_signs(text: str) -> str:
    return "".join(_MARKDOWN.get(sign, sign) for sign in _one_line(text))


def _one_line(text: str) -> str:
    """Return the text without line breaks, control characters and characters that change
    direction."""
    spaced = re.sub(r"\s+", " ", text)
    return "".join(sign for sign in spaced if unicodedata.category(sign) not in {"Cc", "Cf", "Cs"})
