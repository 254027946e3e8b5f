"""Tables for a paper: what is rounded, what is aligned, and that no name is a command."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.typeset import write_latex, write_markdown

ROWS = [
    {"run": 1, "name": "axis", "rate": 1 / 3, "p": 0.00012, "reason": None, "invariant": False},
    {"run": 2, "name": "rubric", "rate": None, "p": -0.5, "reason": "one cluster"},
]
COLUMNS = ["run", "name", "rate", "p", "reason", "invariant"]
# Every sign that LaTeX takes for a command, alone in its cell.
LATEX = {
    "\\": r"\textbackslash{}",
    "\\input{/etc/passwd}": r"\textbackslash{}input\{/etc/passwd\}",
    "a & b": r"a \& b",
    "50 % of $x_1^2$ #3": r"50 \% of \$x\_1\textasciicircum{}2\$ \#3",
    "~<|>": r"\textasciitilde{}\textless{}\textbar{}\textgreater{}",
    "\"q\" `q` 'q'": r"\textquotedbl{}q\textquotedbl{} \textasciigrave{}q\textasciigrave{} {'}q{'}",
    "[2cm] x": r"{[}2cm{]} x",
    "* --": r"{*} {-}{-}",
    "two\nlines\\par\ttab": r"two lines\textbackslash{}par tab",
    "a\u202eb\x07\u2028c": "ab c",
    "blå": "blå",
}
MARKDOWN = {
    "a|b": r"a\|b",
    "a\nb": "a b",
    "<script>&": r"&lt;script&gt;&amp;",
    "[x](javascript:1)": r"\[x\]\(javascript&#58;1\)",
    "https://a.example": "https&#58;//a&#46;example",
    "**a** _b_ `c` ~~d~~": r"\*\*a\*\* \_b\_ \`c\` \~\~d\~\~",
    "@team #1 $x$ \\": r"&#64;team \#1 \$x\$ \\",
    "pairwise-axis": "pairwise-axis",
}


def written(write, rows, columns):
    stream = io.StringIO()
    assert write(rows, columns, stream) == len(rows)
    return stream.getvalue()


def test_latex_has_the_rules_of_booktabs_and_numbers_to_the_right():
    assert written(write_latex, ROWS, COLUMNS) == (
        "\\begin{tabular}{rlrrll}\n\\toprule\n"
        "run & name & rate & p & reason & invariant \\\\\n\\midrule\n"
        "1 & axis & 0.333 & 1.2e$-$04 & -- & no \\\\\n"
        "2 & rubric & -- & $-$0.500 & one cluster & -- \\\\\n"
        "\\bottomrule\n\\end{tabular}\n"
    )


def test_markdown_has_numbers_to_the_right_and_a_dash_for_what_is_not_there():
    assert written(write_markdown, ROWS, COLUMNS) == (
        "| run | name | rate | p | reason | invariant |\n"
        "| ---: | --- | ---: | ---: | --- | --- |\n"
        "| 1 | axis | 0.333 | 1.2e−04 | – | no |\n"
        "| 2 | rubric | – | −0.500 | one cluster | – |\n"
    )


@pytest.mark.parametrize(("text", "cell"), LATEX.items())
def test_no_name_is_a_command_of_latex(text, cell):
    assert f"\n{cell} \\\\\n\\bottomrule" in written(write_latex, [{"a": text}], ["a"])
    assert f"\n{cell} \\\\\n\\midrule" in written(write_latex, [], [text])


@pytest.mark.parametrize(("text", "cell"), MARKDOWN.items())
def test_no_name_is_markup_in_markdown(text, cell):
    assert written(write_markdown, [{"a": text}], ["a"]).endswith(f"| {cell} |\n")
    assert written(write_markdown, [], [text]).startswith(f"| {cell} |\n")


@given(st.text())
def test_a_cell_of_any_text_stays_one_cell(text):
    latex = written(write_latex, [{"a": text, "b": "end"}], ["a", "b"])
    (line,) = (line for line in latex.split("\n") if line.endswith(r" & end \\"))
    cell = line.removesuffix(r" & end \\")
    # Nothing but commands that stand for a sign, and braces that close.
    bare = re.sub(r"\\text[a-z]+\{\}|\\[{}$&#_%]|\{[\[\]*'-]\}", "", cell)
    assert not set(bare) & set('\\{}$&#_%^~[]*<>|"`')
    markdown = written(write_markdown, [{"a": text}], ["a"])
    assert markdown.count("\n") == 3
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", markdown.split("\n")[2])) == 2
