"""How differences are drawn for people to read."""

import re

import pytest

from annotation.diffing import compare
from annotation.templatetags.diff import change_count, diff_inline, diff_sides


def plain(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html)


def test_removed_and_added_words_stand_in_del_and_ins() -> None:
    html = diff_inline(compare("It flows west.", "It flows up."))
    assert html == ('It flows <del data-change="1">west</del><ins data-change="1">up</ins>.')


def test_changed_characters_inside_a_word_are_marked_stronger() -> None:
    html = diff_inline(compare("Founded in 1987.", "Founded in 1887."))
    assert '<del data-change="1">1<b>9</b>87</del>' in html
    assert '<ins data-change="1">1<b>8</b>87</ins>' in html


def test_hostile_text_is_escaped_in_every_kind_of_segment() -> None:
    gold, perturbed = "<i>a</i> <script>x</script>", "<i>a</i> <img onerror=y>"
    for html in (diff_inline(compare(gold, perturbed)), diff_sides(compare(gold, perturbed))):
        assert "<script" not in html
        assert "<img" not in html
        assert "<i>" not in html


def test_a_change_of_white_space_alone_is_made_visible() -> None:
    html = diff_inline(compare("one two", "one\ntwo"))
    assert 'data-blank="·"' in html
    assert 'data-blank="↵"' in html


@pytest.mark.parametrize(
    "gold, perturbed",
    [("a\nb\nc", "a\nB\nc\nd"), ("", "new\ntext"), ("same", "same"), ("x y z", "")],
)
def test_side_by_side_each_side_reads_as_its_text(gold: str, perturbed: str) -> None:
    cells = re.findall(r"<td>(.*?)</td>", diff_sides(compare(gold, perturbed)), re.DOTALL)
    assert "".join(plain(cell) for cell in cells[::2]) == gold
    assert "".join(plain(cell) for cell in cells[1::2]) == perturbed


def test_only_rows_with_a_change_are_marked() -> None:
    html = diff_sides(compare("one\ntwo\n", "one\nthree\n"))
    rows = html.split("\n<tr")
    assert html.count("<tr data-changed>") == 1
    assert rows[0].startswith("<tr><td>one")


def test_places_that_differ_are_counted() -> None:
    assert change_count(compare("a b c d e f g", "a X c d e f Y")) == 2
    assert change_count(compare("same", "same")) == 0
