"""Texts as safe HTML: Markdown, formulas, changes marked through both. All text is hostile."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.items.rendering import texts
from annotation.items.rendering.texts import FORMATS, Format, Stretch

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:x)",
    "[x](/accounts/logout/)",
    "[x](//evil.example/)",
    "<javascript:alert(1)>",
    '[x](https://a.example "onmouseover=alert(1)")',
    "![x](https://evil.example/pixel.png)",
    "![x](javascript:alert(1))",
    "$<img src=x onerror=alert(1)>$",
    '$" onclick="alert(1)$',
    "\\[\n<script>alert(1)</script>\n\\]",
    "```<script>\n</script>\n```",
    "[a]: javascript:alert(1)\n\n[a]",
    "| <b> |\n|---|\n| <iframe src=x> |",
    "&lt;script&gt; &#60;script&#62;",
    "# <svg onload=alert(1)>",
]
TAG = re.compile(r"<(/?[a-z]+)((?: [a-z-]+(?:=\"[^\"]*\")?)*)>")
ALLOWED = {
    "a": {"href", "target", "rel"},
    "ins": {"data-change"},
    "ol": {"start"},
    **{name: {"class", "data-tex", "data-sign"} for name in ("span", "p", "td", "th")},
}
LINK = re.compile(r'href="(?!https?://|mailto:)', re.IGNORECASE)


def draw(number: int, safe: str) -> str:
    return f'<ins data-change="{number}">{safe}</ins>'


def is_safe(html: str) -> bool:
    """Whether every `<` begins a tag that is allowed, with attributes that are."""
    found = [*TAG.finditer(html)]
    if len(found) != html.count("<") - sum(m[2].count("<") for m in found):
        return False
    for tag in found:
        name = tag[1].removeprefix("/")
        attributes = set(re.findall(r' ([a-z-]+)(?==")', tag[2]))
        if name in {"script", "img", "svg", "iframe", "style"}:
            return False
        if not attributes <= ALLOWED.get(name, set()):
            return False
    return not LINK.search(html)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_makes_nothing_but_harmless_elements(text: str, form: Format) -> None:
    assert is_safe(texts.render_text(text, form))
    middle = len(text) // 2
    stretches: list[Stretch] = [(text[:middle], None), (text[middle:], 3)]
    assert is_safe(texts.render_marked(stretches, form, draw))


SIGNS = [
    "**",
    "_",
    "`",
    "$",
    "\\(",
    "\\)",
    "\n\n",
    "\n",
    "- ",
    "1. ",
    "> ",
    "|",
    "|-|",
    "# ",
    "a",
    " ",
]
OURS = ["\U0010ff00", "\U0010ff01", "\U0010ff13", "\U0010ff02"]
PIECES = st.sampled_from([*HOSTILE, *SIGNS, *OURS, "\u202e", '"', "<", "&"])


@given(st.lists(st.tuples(PIECES, st.none() | st.integers(0, 12)), max_size=25))
def test_whatever_is_put_together_stays_harmless_and_keeps_no_sign_of_ours(
    stretches: list[Stretch],
) -> None:
    html = texts.render_marked(stretches, "math", draw)
    assert is_safe(html)
    assert not re.search("[\U0010ff00-\U0010ff1f]", html)


def test_markdown_is_rendered() -> None:
    html = texts.render_text("# A\n\n*b* **c** `d`\n\n- e\n\n| f |\n|--:|\n| 1 |", "markdown")
    assert '<p class="h1">A</p>' in html
    assert "<em>b</em> <strong>c</strong> <code>d</code>" in html
    assert "<li>e</li>" in html
    assert '<td class="right">1</td>' in html


def test_a_link_leads_away_in_a_tab_of_its_own() -> None:
    html = texts.render_text("[x](https://a.example/b)", "markdown")
    assert 'href="https://a.example/b" target="_blank"' in html
    assert 'rel="noopener noreferrer nofollow"' in html


def test_an_image_is_named_and_never_fetched() -> None:
    html = texts.render_text("![a bridge](https://a.example/b.png)", "markdown")
    assert "<img" not in html
    assert ">[image: a bridge]</a>" in html


@pytest.mark.parametrize(
    "text, source, display",
    [
        ("$x^2$", "x^2", False),
        (r"\(x_1\)", "x_1", False),
        ("$$x$$", "x", True),
        ("so $$x$$ then", "x", True),
        ("\\[\n- x\n+ y\n\\]", "- x\n+ y", True),
        (r"so \[x\] then", "x", True),
        (r"\begin{align}a\end{align}", r"\begin{align}a\end{align}", True),
    ],
)
def test_a_formula_keeps_its_source(text: str, source: str, display: bool) -> None:
    html = texts.render_text(text, "math")
    kind = "math display" if display else "math"
    assert f'<span class="{kind}" data-tex="{source}">' in html
    assert "data-tex" not in texts.render_text(text, "markdown")


@pytest.mark.parametrize("text", ["It costs $5 and then $6.", r"a \\( b", "`$x$`", "$ x $"])
def test_what_only_looks_like_a_formula_stays_text(text: str) -> None:
    assert "data-tex" not in texts.render_text(text, "math")


@pytest.mark.parametrize("text", [r"\[\[x\]", r"\[x \[y\]"])
def test_a_formula_with_an_opening_sign_in_it_is_no_block_of_its_own(text: str) -> None:
    assert texts.render_text(text, "math").startswith("<p>")


def test_plain_text_is_escaped_and_keeps_its_lines() -> None:
    assert texts.render_text("a <b>\n\n  c", "plain") == "a &lt;b&gt;\n\n  c"


def test_a_text_beyond_all_measure_stays_plain() -> None:
    assert texts.render_text("# a\n" * 200_000, "markdown").startswith("# a\n")


@pytest.mark.parametrize(
    "stretches, expected",
    [
        ([("A ", None), ("six", 1), (".", None)], "A <ins 1>six</ins>."),
        ([("# ", None), ("Six", 1)], '<p class="h1"><ins 1>Six</ins></p>'),
        ([("a **b ", None), ("c** d", 1)], "a <strong>b <ins 1>c</ins></strong><ins 1> d</ins>"),
        ([("**six**", 1)], "<strong><ins 1>six</ins></strong>"),
        ([("a ", None), ("_six_", 1)], "a <em><ins 1>six</ins></em>"),
        ([("- a\n- b", 1)], "<li><ins 1>a</ins></li>\n<li><ins 1>b</ins></li>"),
        ([("$x^", None), ("3", 1), ("$", None)], '<ins 1><span class="math" data-tex="x^3">'),
        ([("| a |\n|---|\n| ", None), ("6", 1), (" |", None)], "<td><ins 1>6</ins></td>"),
        ([("It is ", None), ("", 1), ("cold", None)], "It is <ins 1></ins>cold"),
        ([("", 1), ("# a", None)], '<p class="h1"><ins 1></ins>a</p>'),
        ([("[a](https://x.example/", None), ("b", 1), (")", None)], 'href="https://x.example/b"'),
        ([("```\n", None), ("x", 1), ("\n```", None)], "<code><ins 1>x</ins>"),
        ([("a \\", None), ("*b", 1)], "a *<ins 1>b</ins>"),
    ],
)
def test_a_change_is_marked_through_markdown(stretches: list[Stretch], expected: str) -> None:
    html = texts.render_marked(
        stretches, "math", lambda number, safe: f"<ins {number}>{safe}</ins>"
    )
    assert expected in html


@pytest.mark.parametrize(
    "stretches",
    [
        [("[a](https://x.example/", None), ("b", 1), (")", None)],
        [("a\n\n```", None), ("py", 1), ("\nb\n```", None)],
        [("a\n", None), ("---", 1), ("\nb", None)],
        [("- ", 1), ("a", None)],
    ],
)
def test_a_change_that_nobody_could_see_is_not_marked(stretches: list[Stretch]) -> None:
    assert "<ins" not in texts.render_marked(stretches, "math", draw)


def test_marking_leaves_the_text_what_it_was() -> None:
    text = (
        "# A b\n\nSome **bold *and* more** of `code`, [x](https://a.example/y) and $z$.\n\n"
        "1. one\n2. two"
    )
    stretches: list[Stretch] = [
        (word, number if number % 3 else None)
        for number, word in enumerate(re.split(r"(?<= )", text))
    ]
    marked = texts.render_marked(stretches, "math", lambda number, safe: safe)
    assert marked == texts.render_text(text, "math")


def test_signs_like_ours_in_a_text_are_replaced_and_mark_nothing() -> None:
    forged = "\U0010ff00\U0010ff11\U0010ff02a\U0010ff01\U0010ff11\U0010ff02"
    html = texts.render_marked([(forged, None), ("b", 2)], "markdown", draw)
    assert html.count("<ins") == 1
    assert "\ufffd" in html


@pytest.mark.parametrize(("lines", "drawn"), [(100, True), (6_000, False)])
def test_the_end_of_an_environment_is_not_looked_for_through_a_book(
    lines: int, drawn: bool
) -> None:
    # Each of many beginnings would else be held against all lines after it.
    text = "\\begin{align}\n" + "x\n" * lines + "\\end{align}"
    assert ('class="math display"' in texts.render_text(text, "math")) is drawn


def test_nor_is_that_of_a_formula_between_dollars() -> None:
    text = "$$\n" + "x\n" * 50 + "$$"
    assert 'class="math display"' in texts.render_text(text, "math")
    started = time.process_time()
    texts.render_text("$$ a\n# b\n" * 5_000, "math")
    assert time.process_time() - started < 5


@pytest.mark.parametrize("start", [" " * 3_000, "\t> " * 1_000, "- " * 1_500, "| " * 1_500])
def test_a_long_row_of_signs_before_a_change_takes_no_time(start: str) -> None:
    started = time.process_time()
    marked = texts.insert_markers([(f"{start}x ", None), ("c", 1)])
    assert texts.strip_markers(marked) == f"{start}x c" != marked
    assert time.process_time() - started < 3


def test_a_line_of_many_changes_is_looked_at_once() -> None:
    stretches = [(text, n) for n, text in enumerate(["1. ", "2. "] * 3_000)]
    started = time.process_time()
    assert texts.strip_markers(texts.insert_markers(stretches)) == "1. 2. " * 3_000
    assert time.process_time() - started < 1.5


@pytest.mark.parametrize(
    "text",
    [
        "> " * 19 + "a\n" + "b\n" * 50_000,
        "> " * 19 + "a\r" + "b\r" * 50_000,
        "![" * 100_000,
        "- a\n" * 45_000,
    ],
)
def test_markdown_that_would_take_seconds_is_shown_as_it_was_written(text: str) -> None:
    started = time.process_time()
    assert texts.render_text(text, "markdown").startswith(("&gt; &gt; ", "![![", "- a\n-"))
    assert texts.render_marked([(text, None), ("new", 1)], "math", draw).endswith("new</ins>")
    assert time.process_time() - started < 1


def test_a_long_quotation_is_still_drawn() -> None:
    html = texts.render_text(
        "> > quoted\n" * 2_000 + "\n" + "[a](https://b.org) " * 1_000, "markdown"
    )
    assert "<blockquote>" in html
    assert html.count("<a ") == 1_000
