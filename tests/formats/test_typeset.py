"""Tables for a paper: what is rounded, what is aligned, and that no name is a command."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.typeset import (
    PrintedCell,
    PrintedLine,
    PrintedTable,
    write_latex,
    write_latex_table,
    write_markdown,
)

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
    "blå Łódź €": "blå Łódź €",
    "−1 ≤ ρ d′": r"$-$1 $\leq$ $\rho$ d$'$",
    "中\u0301ħ": "\\othersign{4E2D}{中}\\othersign{0301}{\u0301}\\othersign{0127}{ħ}",
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
    bare = re.sub(r"\\othersign\{[0-9A-F]{4,6}\}\{.\}", "", cell)
    bare = re.sub(r"\\text[a-z]+\{\}|\\[{}$&#_%]|\{[\[\]*'-]\}|\$\\?[a-z'-]+\$", "", bare)
    assert not set(bare) & set('\\{}$&#_%^~[]*<>|"`')
    markdown = written(write_markdown, [{"a": text}], ["a"])
    assert markdown.count("\n") == 3
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", markdown.split("\n")[2])) == 2


def test_signs_that_pdflatex_does_not_know_are_defined_first():
    assert written(write_latex, [{"a": "中"}], ["a"]).startswith(
        "\\providecommand*{\\othersign}[2]{"
    )
    assert "providecommand" not in written(write_latex, [{"a": "blå"}], ["a"])


def printed(*blocks, heads=("Run", "Rate"), note="95 % intervals, p < 0.05.", caption="Rates_1."):
    cells = [PrintedCell(one) for one in heads]
    numeric = [False, *(True for _ in heads[1:])]
    stream = io.StringIO()
    write_latex_table(PrintedTable(caption, "tab:a-b", cells, numeric, blocks, note), stream)
    return stream.getvalue()


def test_a_table_as_shown_has_caption_label_small_print_and_note():
    found = printed(
        [
            PrintedLine([PrintedCell("All"), PrintedCell("+1.5", ["−2.0 to +3.0", "n 9"])], True),
            PrintedLine([PrintedCell("1 · a_b", ["judge"]), PrintedCell("—", ["no items"])]),
        ],
        [],
        [PrintedLine([PrintedCell("100 %"), PrintedCell("< 0.001")])],
    )
    assert found.split("\n", 1)[1] == (
        "\\begin{table}\n\\centering\n\\caption{Rates\\_1.}\n\\label{tab:a-b}\n"
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
        "\\begin{tabular}{lr}\n\\toprule\nRun & Rate \\\\\n\\midrule\n"
        "\\textbf{All} & $+$1.5 \\\\\n"
        " & {\\scriptsize $-$2.0 to $+$3.0} \\\\\n & {\\scriptsize n 9} \\\\\n\\addlinespace\n"
        "1 · a\\_b & -- \\\\\n{\\scriptsize judge} & {\\scriptsize no items} \\\\\n"
        "\\midrule\n100\\,\\% & $<$\\,0.001 \\\\\n\\bottomrule\n\\end{tabular}}\n"
        "\\par\\smallskip\n"
        "\\parbox{\\linewidth}{\\footnotesize 95\\,\\% intervals, p $<$\\,0.05.}\n\\end{table}\n"
    )


def test_a_table_that_no_page_holds_is_split_between_lines():
    line = PrintedLine([PrintedCell("a"), PrintedCell("1", ["n 9"])])
    assert printed([line] * 11).count("\\begin{table}") == 1
    found = printed([line] * 15, [line] * 10).split("\\begin{table}")[1:]
    assert [one.count("a & 1 ") for one in found] == [11, 11, 3]
    assert [one.count("\\label") for one in found] == [1, 0, 0]
    assert [one.count("intervals") for one in found] == [0, 0, 1]
    assert [one.count("\\midrule") for one in found] == [1, 2, 1]
    assert [one.count("Run & Rate") for one in found] == [1, 1, 1]
    assert "\\addtocounter{table}{-1}\n\\caption{Rates\\_1. Part 2 of 3.}" in found[1]


def test_long_words_and_heads_are_wrapped_and_lose_nothing():
    line = PrintedLine([PrintedCell("Q" * 90), PrintedCell("1", ["Z" * 60])])
    found = printed([line], heads=("Run", "A head of many words that is long"))
    assert [len(one) for one in re.findall("Q+", found)] == [40, 40, 10]
    assert [len(one) for one in re.findall("Z+", found)] == [28, 28, 4]
    assert "Run & A head of many \\\\\n & words that is long \\\\\n\\midrule" in found
