"""How differences are drawn for people to read."""

import re
import time

import pytest

from annotation.items.diffing.difference import compare, from_json, to_json
from annotation.items.rendering.differences import DifferenceRenderer
from annotation.templatetags.diff import (
    diff_inline,
    excerpt,
    pieces_of,
    said_of_piece,
)


def plain(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html)


def test_removed_and_added_words_stand_in_del_and_ins() -> None:
    html = diff_inline(compare("It flows west.", "It flows up."))
    assert html == ('It flows <del data-change="1">west</del><ins data-change="1">up</ins>.')


def test_changed_characters_inside_a_word_are_marked_stronger() -> None:
    html = diff_inline(compare("The harbour stays.", "The harbours stays."))
    assert ">harbour</del>" in html
    assert ">harbour<b>s</b></ins>" in html


@pytest.mark.parametrize(
    "gold, perturbed",
    [("It flows west.", "It flows up."), ("same", "same"), ("", "new"), ("a b c", "b c d")],
)
def test_a_drawing_is_as_long_as_what_is_read_in_it(gold: str, perturbed: str) -> None:
    renderer = DifferenceRenderer(compare(gold, perturbed))
    assert renderer.length == len(plain(renderer.inline()))


@pytest.mark.parametrize(
    "gold, perturbed, removed",
    [
        # Six of ten characters are shared, and with one less it is another word.
        ("abcde", "abcxy", "abc<b>de</b>"),
        ("abcdef", "abcxyz", "abcdef"),
        ("railway", "roadway", "railway"),
    ],
)
def test_words_that_share_little_are_marked_whole(gold: str, perturbed: str, removed: str) -> None:
    assert f">{removed}</del>" in diff_inline(compare(gold, perturbed))


NUMBER = '<mark data-kind="number" data-badge="#">'


def test_what_kind_of_change_it_is_stands_on_both_sides_of_it() -> None:
    html = diff_inline(compare("Founded in 1987.", "Founded in 1887."))
    said = 'data-change="1" data-mark="number"'
    assert f"<del {said}>{NUMBER}1<b>9</b>87</mark></del>" in html
    assert f"<ins {said}>{NUMBER}1<b>8</b>87</mark></ins>" in html


def test_a_mark_is_at_its_word_also_side_by_side_and_in_markdown() -> None:
    gold = "It was built by workers in the year 1894."
    renderer = DifferenceRenderer(compare(gold, "He came from far away in the year 1984."))
    marked = f"{NUMBER}1984</mark>"
    for html in (
        renderer.inline(),
        renderer.sides(),
        renderer.render_side("perturbed", "markdown"),
    ):
        assert re.sub("</?b>", "", html).count(marked) == 1
        assert html.count("<mark") == html.count("</mark>")


MOVED = ("Mix the flour with two eggs.\n", "Then bake it for at least half an hour.\n")


def test_a_moved_passage_says_at_both_ends_where_it_went() -> None:
    html = diff_inline(compare("".join(MOVED), "".join(reversed(MOVED))))
    kind = 'data-mark="moved"'
    assert f'<del data-change="0" {kind} data-move="from" data-where="moved down">' in html
    assert f'data-change="2" {kind} data-move="to" data-where="moved here from above">' in html


def test_what_changed_inside_a_moved_passage_is_marked() -> None:
    gold = "".join(MOVED)
    html = diff_inline(compare(gold, f"{MOVED[1]}{MOVED[0].replace('two', 'six')}"))
    assert "with <b>two</b> eggs" in html
    assert "with <b>six</b> eggs" in html


def test_both_columns_are_formatted_with_their_changes() -> None:
    html = DifferenceRenderer(compare("It has **eight** legs.", "It has **six** legs.")).columns(
        "markdown"
    )
    assert re.sub(' data-[a-z]+="[^"]*"|\n', "", html) == (
        '<div class="prose"><p>It has <strong><del><mark>eight</mark></del></strong> legs.</p>'
        '</div><div class="prose"><p>It has <strong><ins><mark>six</mark></ins></strong> legs.</p>'
        "</div>"
    )


def test_a_formula_is_marked_by_each_of_its_changes() -> None:
    gold, perturbed = "It costs \\(3 + 4 = 7\\) in all.", "It costs \\(5 + 4 = 9\\) in all."
    html = DifferenceRenderer(compare(gold, perturbed)).columns("math")
    marks = re.findall(r'<ins data-change="(\d+)"', html)
    assert len(marks) == len(set(marks)) == 2
    assert html.count("data-tex") == 2  # one formula in each column


def test_removed_signs_are_told_from_removed_words() -> None:
    assert '<del data-change="1" data-short>' in diff_inline(compare("5 - 3", "5 + 3"))
    assert "data-short" not in diff_inline(compare("five", "six"))


def test_a_change_that_leaves_every_word_can_be_folded() -> None:
    assert "data-folds" in diff_inline(compare("one two", "one\ntwo"))
    assert "data-folds" in diff_inline(compare("a **bold** word", "a bold word"))
    assert "data-folds" not in diff_inline(compare("one two", "one three"))


def test_an_empty_element_stands_where_one_text_lacks_what_the_other_has() -> None:
    removed = diff_inline(compare("It is not cold.", "It is cold."))
    assert '<span class="gap removed" data-change="1"' in removed
    assert '<span class="gap added" data-change="1"' in diff_inline(compare("It is.", "It is so."))


def test_signs_that_nobody_sees_get_a_name_and_stay_in_the_text() -> None:
    html = diff_inline(compare("plain", "pl\u202eain"))
    assert '<span class="sign" data-sign="RLO">\u202e</span>' in html


def test_hostile_text_is_escaped_in_every_kind_of_segment() -> None:
    gold, perturbed = "<i>a</i> <script>x</script>", "<i>a</i> <img onerror=y>"
    for html in (
        diff_inline(compare(gold, perturbed)),
        DifferenceRenderer(compare(gold, perturbed)).sides(),
    ):
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
    cells = re.findall(
        r"<td[^>]*>(.*?)</td>", DifferenceRenderer(compare(gold, perturbed)).sides(), re.DOTALL
    )
    assert "".join(plain(cell) for cell in cells[::2]) == gold
    assert "".join(plain(cell) for cell in cells[1::2]) == perturbed


def test_only_rows_with_a_change_are_marked() -> None:
    html = DifferenceRenderer(compare("one\ntwo\n", "one\nthree\n")).sides()
    rows = html.split("\n<tr")
    assert html.count(" data-changed") == 1
    assert "data-changed" not in rows[0]


def test_a_row_whose_changes_fold_says_so() -> None:
    assert " data-changed data-folds>" in DifferenceRenderer(compare("a  b\n", "a b\n")).sides()
    assert " data-changed>" in DifferenceRenderer(compare("a  b c\n", "a b d\n")).sides()


def test_the_pieces_of_a_claim_check_are_the_changes_cut_to_some_words() -> None:
    same = " and was the longest bridge of the country, as everybody knew, "
    gold, perturbed = f"It opened in 1894{same}{'x' * 300}", f"It opened in 1984{same}y<b>"
    first, second = pieces_of(compare(gold, perturbed))
    number = 'data-mark="number"'
    assert excerpt(first.change) == (
        f"<del {number}>{NUMBER}1894</mark></del> <ins {number}>{NUMBER}1984</mark></ins>"
    )
    assert excerpt(second.change) == f"<del>{'x' * 80} …</del> <ins>y&lt;b&gt;</ins>"
    assert (first.before, first.after) == ("It opened in ", " and was the longest bridge …")
    assert (second.before, second.after) == ("… as everybody knew, ", "")
    assert pieces_of(None) == ()


def test_the_words_beside_a_piece_end_where_its_line_does() -> None:
    [piece] = pieces_of(compare("One.\nA red\nTwo.", "One.\nA blue\nTwo."))
    assert (piece.before, piece.after) == ("A ", "")


def test_a_moved_passage_says_in_the_list_where_it_went() -> None:
    here, there = (
        "The bridge opened in the spring of 1894.\n",
        "Nobody wanted to pay for it then.\n",
    )
    rest = "It took six years to build, and the town was proud of it.\n"
    [down] = pieces_of(compare(here + there + rest, there + rest + here))
    assert 'data-where="moved down"' in excerpt(down.change)


def test_all_changes_of_formatting_are_one_piece_of_a_claim_check() -> None:
    gold = "**One** of them.\n\n- Here.\n- There.\n\nIt has eight legs."
    found = compare(gold, "One of them.\n\n* Here.\n* There.\n\nIt has six legs.")
    assert [(piece.change.marks, piece.others) for piece in pieces_of(found)] == [
        (("formatting",), 3),
        (("number",), 0),
    ]
    former = from_json({**to_json(found), "algorithm": "words-1"})
    assert [piece.others for piece in pieces_of(former)] == [0] * 5


def test_what_was_said_of_a_piece_is_found_by_its_number() -> None:
    answers = {"claim_check": {"3": "collateral"}}
    assert said_of_piece(answers, "claim_check", 3) == "collateral"
    assert said_of_piece(answers, "claim_check", 4) == ""
    assert said_of_piece(None, "claim_check", 3) == ""
    assert said_of_piece({"claim_check": "odd"}, "claim_check", 3) == ""


def test_a_long_text_is_cut_into_chunks_that_read_as_the_text() -> None:
    gold = "A line of words that is the same in both texts.\n" * 600
    html = diff_inline(compare(gold, gold.replace("same", "SAME", 3)))
    assert html.count('<div class="chunk">') > 10
    assert html.count("<div") == html.count("</div>")
    kept = re.sub(r"<ins.*?</ins>", "", html, flags=re.DOTALL)
    assert plain(kept) == gold
    assert "chunk" not in diff_inline(compare("short\n", "shorter\n"))


def test_a_change_of_many_lines_with_numbers_is_drawn_in_time() -> None:
    lines = "\n".join(f"- It walks {number} km on {number + 1} legs." for number in range(3_000))
    gold = "- It walks 3,000 km on 8 legs.\n- It stands on 5 feet."
    drawn = DifferenceRenderer(compare(gold, lines))
    assert max(len(words["perturbed"]) for words in drawn.words.values()) > 8_000
    started = time.process_time()
    assert drawn.sides().count('<mark data-kind="number"') > 5_000
    assert time.process_time() - started < 1
