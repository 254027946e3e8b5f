import json
import random
import re
import subprocess
import sys
import time
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.items.diffing import difference, pairing
from annotation.items.diffing.alignment import _longest_increasing
from annotation.items.diffing.difference import Difference, Part
from annotation.items.diffing.tokens import bond_clusters
from benchmarks import diff_counts

ROOT = Path(__file__).resolve().parents[2]
FAMILY = "👩‍👩‍👧‍👦"
CLUSTERS = [FAMILY, "🇩🇪", "🇮🇳", "👍🏽", "1️⃣", "e\u0301", "क्षि", "שָׁ", "\r\n"]
# What is easily cut wrongly, beside any text at all.
WORDS = "the |1,250.50|1987|don't |漢字|ภาษา|שָׁלוֹם |السَّلَامُ |A sentence that stands in both of them. "
PIECES = st.sampled_from(
    [
        *CLUSTERS,
        *WORDS.split("|"),
        "\n",
        "\r",
        "- item\n",
        " ",
        "  ",
        "\u0301",
        "\u200d",
        "\U000f0000",
    ]
)
ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
EDITED = st.lists(st.tuples(PIECES, st.one_of(st.none(), st.just(""), PIECES)), max_size=25).map(
    lambda edits: (
        "".join(old for old, _ in edits),
        "".join(old if new is None else new for old, new in edits),
    )
)
PAIRS = st.one_of(st.tuples(ANY, ANY), EDITED)


def joined(parts: tuple[Part, ...]) -> str:
    return "".join(part.text for part in parts)


def marked(difference: Difference) -> str:
    """Write a difference as wdiff would, with « » round the changed characters inside, and the
    number of a move behind the first bracket."""

    def side(parts: tuple[Part, ...]) -> str:
        if all(part.changed for part in parts):
            return joined(parts)
        return "".join(f"«{part.text}»" if part.changed else part.text for part in parts)

    written = {
        "equal": lambda s: joined(s.gold),
        "removed": lambda s: f"[{s.move or ''}-{side(s.gold)}-]",
        "added": lambda s: f"{{{s.move or ''}+{side(s.perturbed)}+}}",
        "changed": lambda s: f"[-{side(s.gold)}-]{{+{side(s.perturbed)}+}}",
    }
    return "".join(written[segment.kind](segment) for segment in difference.segments)


@given(PAIRS)
def test_the_segments_give_both_texts_back(pair: tuple[str, str]) -> None:
    gold, perturbed = pair
    found = difference.compare(*pair)
    assert joined(tuple(p for s in found.segments for p in s.gold)) == gold
    assert joined(tuple(p for s in found.segments for p in s.perturbed)) == perturbed


@given(PAIRS)
def test_each_kind_of_segment_is_what_it_says(pair: tuple[str, str]) -> None:
    for number, segment in enumerate(difference.compare(*pair).segments):
        changed = [part.changed for part in segment.gold + segment.perturbed]
        assert segment.number == number
        assert all(part.text for part in segment.gold + segment.perturbed)
        assert any(changed) == (segment.kind != "equal") or segment.move
        assert (segment.perturbed == ()) == (segment.kind == "removed")
        assert (segment.gold == ()) == (segment.kind == "added")
        if segment.kind == "equal":
            assert segment.gold == segment.perturbed


@given(PAIRS)
def test_unchanged_parts_are_the_same_on_both_sides(pair: tuple[str, str]) -> None:
    for segment in difference.compare(*pair).segments:
        left = "".join(part.text for part in segment.gold if not part.changed)
        right = "".join(part.text for part in segment.perturbed if not part.changed)
        assert left == right or segment.move


SENTENCES = [
    "The first of them takes a long time to cook.",
    "Then you stir the soup until nothing sticks.",
    "A little salt does no harm to most dishes.",
    "Some people add three cups of cold water.",
    "Serve it in deep bowls with some bread.",
    "All of it keeps for two days in the cold.",
]


def without(change: str, sentences: list[str]) -> list[str]:
    """The sentences with other words for "two" and "three", if the change says so."""
    return [
        one.replace("two", "six").replace("three", "five") if change else one for one in sentences
    ]


@given(
    st.permutations(SENTENCES),
    st.permutations(SENTENCES),
    st.sampled_from(["\n", " ", "\n\n"]),
    st.sampled_from(["", "changed"]),
)
def test_a_move_has_two_ends_of_nearly_the_same_text(
    gold: list[str], perturbed: list[str], between: str, change: str
) -> None:
    texts = between.join(gold), between.join(without(change, perturbed))
    segments = difference.compare(*texts).segments
    moves = sorted(segment.move for segment in segments if segment.move)
    assert moves == [n for n in range(1, len(moves) // 2 + 1) for _ in range(2)] or all(
        moves.count(move) == 2 for move in moves
    )
    for move in set(moves):
        gone, come = sorted(
            (s for s in segments if s.move == move), key=lambda s: s.kind, reverse=True
        )
        assert (gone.kind, come.kind) == ("removed", "added")
        left = "".join(part.text for part in gone.gold if not part.changed)
        right = "".join(part.text for part in come.perturbed if not part.changed)
        assert left.split() == right.split()
        assert len(left) >= 0.5 * len(joined(gone.gold))
    assert joined(tuple(p for s in segments for p in s.gold)) == texts[0]
    assert joined(tuple(p for s in segments for p in s.perturbed)) == texts[1]


@given(PAIRS)
def test_no_cut_falls_inside_what_is_seen_as_one_sign(pair: tuple[str, str]) -> None:
    gold, perturbed = pair
    segments = difference.compare(*pair).segments
    for text, parts in (
        (gold, [part.text for s in segments for part in s.gold]),
        (perturbed, [part.text for s in segments for part in s.perturbed]),
    ):
        cuts = set(accumulate(map(len, parts)))
        for cluster in CLUSTERS:
            for found in re.finditer(cluster, text):
                assert cuts.isdisjoint(range(found.start() + 1, found.end()))


@given(PAIRS)
def test_json_brings_the_same_difference_back(pair: tuple[str, str]) -> None:
    found = difference.compare(*pair)
    assert difference.from_json(json.loads(json.dumps(difference.to_json(found)))) == found


@given(PAIRS)
def test_rows_lose_nothing_and_hold_one_line_of_each_side(pair: tuple[str, str]) -> None:
    gold, perturbed = pair
    rows = difference.align_lines(difference.compare(*pair))
    assert "".join(piece.text for row in rows for piece in row.gold) == gold
    assert "".join(piece.text for row in rows for piece in row.perturbed) == perturbed
    for row in rows:
        assert row.gold or row.perturbed
        for side in (row.gold, row.perturbed):
            assert not any(piece.text[-1] in "\r\n" for piece in side[:-1])


@given(PAIRS)
def test_sizes_and_places_are_shares(pair: tuple[str, str]) -> None:
    gold, perturbed = pair
    found = difference.compare(*pair)
    assert found.identical == (gold == perturbed)
    assert (found.edit_size == 0) == found.identical
    assert (found.place is None) == found.identical
    assert 0 <= found.edit_size <= 1
    assert 0 <= (found.place or 0) <= 1


@pytest.mark.parametrize(
    ("gold", "perturbed", "expected"),
    [
        ("born in 1987 there", "born in 1887 there", "born in [-1«9»87-]{+1«8»87+} there"),
        ("costs 3.14 now", "costs 3.24 now", "costs [-3.«1»4-]{+3.«2»4+} now"),
        ("it can decrease", "it can increase", "it can [-«de»crease-]{+«in»crease+}"),
        ("in Paris today", "in Prague today", "in [-Paris-]{+Prague+} today"),
        ("a quick brown fox", "a slow red fox", "a [-quick brown-]{+slow red+} fox"),
        ("20 * 19 * 18", "20 + 19 + 18", "20 [-*-]{+++} 19 [-*-]{+++} 18"),
        ("It is here.", "It's here.", "[-It« i»s-]{+It«'»s+} here."),
        ("One. Two is. Two not.", "One. Two not.", "One. [-Two is. -]Two not."),
        (
            "the Mediterranean Sea coast is long and wide",
            "the Black coast is long and deep",
            "the [-Mediterranean Sea-]{+Black+} coast is long and [-wide-]{+deep+}",
        ),
        ("abcdefgh", "axbxcxdxexfxgxh", "[-abcdefgh-]{+axbxcxdxexfxgxh+}"),
        ("abcdefgh 🇮🇳", "abcdefgx 🇮🇹", "[-abcdefg«h 🇮🇳»-]{+abcdefg«x 🇮🇹»+}"),
        ("東京は大きい", "京都は大きい", "[-東-]京{+都+}は大きい"),
        ("", "new", "{+new+}"),
        ("", "", ""),
    ],
)
def test_changes_read_as_a_person_would_mark_them(gold: str, perturbed: str, expected: str) -> None:
    assert marked(difference.compare(gold, perturbed)) == expected


STEPS = (
    "1. Mix the flour and the two eggs.\n",
    "2. Bake it for about thirty minutes.\n",
    "3. Serve it warm, with a spoonful of cream.\n",
)


@pytest.mark.parametrize(
    ("gold", "perturbed", "expected"),
    [
        (  # a step that moved to the end; the numbers of the list are changes of their own
            "".join(STEPS),
            f"1. {STEPS[1][3:]}2. {STEPS[2][3:]}3. {STEPS[0][3:]}",
            f"[1-«1». {STEPS[0][3:]}-][-2-]{{+1+}}. {STEPS[1][3:]}[-3-]{{+2+}}. {STEPS[2][3:]}"
            f"{{1+«3». {STEPS[0][3:]}+}}",
        ),
        (  # a sentence that moved inside its paragraph, with a number changed on the way
            "He was born in 1894 in a small town. Nobody else lived there at all, or so he said."
            " Then he left it for good.",
            "Nobody else lived there at all, or so he said. Then he left it for good. He was born"
            " in 1849 in a small town.",
            "[1-He was born in 18«9»4 in a small town.« »-]Nobody else lived there at all, or so"
            " he said. Then he left it for good.{1+« »He was born in 184«9» in a small town.+}",
        ),
        (  # a phrase is no move
            "Nobody saw how the old man sat by the sea. It was very cold that day.",
            "It was very cold that day. He had heard that the old man sat by the sea for years.",
            None,
        ),
        (  # two words more in a line, which is no new line
            "- The rope is 5 long.\n- The bag is heavy.\n",
            "- The rope is 5 metres long.\n- The bag is very heavy.\n",
            "- The rope is 5 {+metres +}long.\n- The bag is {+very +}heavy.\n",
        ),
        (  # a line that was joined to the one before
            "They came over the hills at night.\nNobody had seen them coming that far.\nThe end.",
            "They came over the hills at night. Nobody had seen them coming that far.\nThe end.",
            "They came over the hills at night.[-\n-]{+ +}Nobody had seen them coming that far.\n"
            "The end.",
        ),
        (  # a removed line leaves the blank line behind it
            "The first is here.\n\nThe second one goes.\n\nThe third stays.",
            "The first is here.\n\nThe third stays.",
            "The first is here.\n\n[-The second one goes.\n\n-]The third stays.",
        ),
        (  # most of a sentence changed: old and new stand whole
            "The quick brown fox jumps over the lazy dog near the river.",
            "The slow red cat walks under a lazy cow near that lake.",
            "The [-quick brown fox jumps over the lazy dog near the river-]"
            "{+slow red cat walks under a lazy cow near that lake+}.",
        ),
        (  # formulas are read sign by sign
            "x = 3 + 4 * 5 - 6",
            "x = 3 - 4 * 7 - 8",
            "x = 3 [-+-]{+-+} 4 * [-5-]{+7+} - [-6-]{+8+}",
        ),
    ],
)
def test_lines_come_before_sentences_and_sentences_before_words(
    gold: str, perturbed: str, expected: str | None
) -> None:
    found = difference.compare(gold, perturbed)
    if expected is None:
        assert not any(segment.move for segment in found.segments)
    else:
        assert marked(found) == expected


def test_text_that_moved_unchanged_counts_once_and_where_it_is_now() -> None:
    first, second = SENTENCES[0] + "\n", SENTENCES[1] + " So it is.\n"
    found = difference.compare(first + second, second + first)
    assert found.edit_size == pytest.approx(len(first) / (2 * len(first + second)))
    assert found.place == 0.0


def test_the_counts_over_the_published_pairs_hold(shared_data: Path) -> None:
    """Ten seconds: 2,492 pairs are compared and their changes classified."""
    counts = diff_counts.count_pairs(diff_counts.read_pairs(shared_data / "fbi" / "data.zip"))
    measures = diff_counts.MEASURES
    assert {name: counts[name] for name in measures if not measures[name].holds(counts[name])} == {}


def test_a_rewritten_sentence_is_one_change_and_not_a_chain_of_chance_matches() -> None:
    gold = "The circulatory organs were considered a marvel of the age."
    perturbed = "Physicians understood nothing of a body; everything remained guesswork."
    assert [s.kind for s in difference.compare(gold, perturbed).segments] == ["changed", "equal"]


def test_a_whole_line_amid_rewritten_ones_stays_equal() -> None:
    line = "### Lesson plan: an introduction to probability\n"
    gold = f"{'Completely different words stand in here. ' * 5}\n{line}{'Some more follow. ' * 9}"
    perturbed = f"{'Nobody could ever know this text again, '.upper() * 5}\n{line}{'x y z ' * 40}"
    equal = [
        joined(s.gold) for s in difference.compare(gold, perturbed).segments if s.kind == "equal"
    ]
    assert any(line in text for text in equal)


def test_an_emoji_changes_as_a_whole() -> None:
    found = difference.compare(f"family{FAMILY}here", "family👩‍👩‍👧here")
    assert marked(found) == f"family[-{FAMILY}-]{{+👩‍👩‍👧+}}here"


def test_a_changed_accent_marks_the_letter_with_it() -> None:
    found = difference.compare("re\u0301sume\u0301s", "re\u0301sumes")
    assert marked(found) == "[-re\u0301sum«e\u0301»s-]{+re\u0301sum«e»s+}"


def test_a_hebrew_word_keeps_its_points_with_its_letters() -> None:
    (changed,) = [
        s for s in difference.compare("אמר שָׁלוֹם לכם", "אמר שָׁלוּם לכם").segments if s.kind != "equal"
    ]
    assert joined(changed.gold) == "שָׁלוֹם"
    assert [part.text for part in changed.gold if part.changed] == ["וֹ"]


# 4 of 5 and 4 of 6 characters stay: 1 + 2 changed of 11. The "d" that becomes "xy" is at 2 of 5.
def test_edit_size_and_place_follow_their_definitions() -> None:
    found = difference.compare("abdef", "abxyef")
    assert marked(found) == "[-ab«d»ef-]{+ab«xy»ef+}"
    assert found.edit_size == pytest.approx(3 / 11)
    assert found.place == pytest.approx(2 / 5)


def test_empty_texts_have_the_sizes_and_places_that_are_promised() -> None:
    assert (difference.compare("", "").edit_size, difference.compare("", "").place) == (0.0, None)
    assert (difference.compare("", "a").edit_size, difference.compare("", "a").place) == (1.0, 0.0)
    assert (difference.compare("a", "").edit_size, difference.compare("a", "").place) == (1.0, 0.0)
    assert difference.compare("a b", "a b c").place == 1.0


def test_white_space_only_means_the_same_words() -> None:
    assert difference.compare("a b\n", "a  b").white_space_only
    assert not difference.compare("every day", "everyday").white_space_only
    assert not difference.compare("a b", "a b").white_space_only


def test_a_difference_of_the_former_algorithm_is_still_read() -> None:
    found = difference.from_json({"algorithm": "words-1", "segments": ["a ", [["", "b"], []]]})
    assert (found.algorithm, marked(found)) == ("words-1", "a [-b-]")
    assert difference.to_json(found)["algorithm"] == "words-1"


def test_a_difference_of_another_algorithm_is_refused() -> None:
    with pytest.raises(ValueError, match="words-0"):
        difference.from_json({"algorithm": "words-0", "segments": []})


def sides(gold: str, perturbed: str) -> list[tuple[str, str]]:
    return [
        ("".join(piece.text for piece in row.gold), "".join(piece.text for piece in row.perturbed))
        for row in difference.align_lines(difference.compare(gold, perturbed))
    ]


def test_a_removed_paragraph_stands_against_nothing_and_the_next_lines_up() -> None:
    gold = "First one.\n\nSecond goes away.\n\nThird one."
    assert sides(gold, "First one.\n\nThird one.") == [
        ("First one.\n", "First one.\n"),
        ("\n", "\n"),
        ("Second goes away.\n", ""),
        ("\n", ""),
        ("Third one.", "Third one."),
    ]


def test_a_removed_list_item_leaves_the_next_one_whole() -> None:
    gold = "1. Apples are round.\n2. Pears are long.\n3. Plums are blue.\nThat is all."
    assert sides(gold, "1. Apples are round.\n2. Plums are blue.\nThat is all.") == [
        ("1. Apples are round.\n", "1. Apples are round.\n"),
        ("2. Pears are long.\n", ""),
        ("3. Plums are blue.\n", "2. Plums are blue.\n"),
        ("That is all.", "That is all."),
    ]


def test_a_line_that_has_begun_stays_beside_its_counterpart() -> None:
    gold = "He came with ten others that day.\nThey all stood in the new hall."
    assert sides(gold, "He hall.") == [
        ("He came with ten others that day.\n", "He "),
        ("They all stood in the new hall.", "hall."),
    ]


def test_a_line_for_two_stands_whole_beside_the_second() -> None:
    assert sides("a\nApples\nare red\nb c", "a\nPlums\nb c") == [
        ("a\n", "a\n"),
        ("Apples\n", ""),
        ("are red\n", "Plums\n"),
        ("b c", "b c"),
    ]


def test_rows_tell_the_segment_of_each_piece() -> None:
    (row,) = difference.align_lines(difference.compare("cat sat", "dog sat"))
    assert [(p.text, p.kind, p.changed, p.number) for p in row.gold] == [
        ("cat", "changed", True, 0),
        (" sat", "equal", False, 1),
    ]


def test_long_texts_are_cut_at_common_passages_and_still_compared_word_by_word() -> None:
    chance = random.Random(3)
    gold = [chance.choice("東京大学生日本語文字人山川田中") + str(n % 7) for n in range(25_000)]
    perturbed = ["新" if n % 500 == 250 else word for n, word in enumerate(gold)]
    found = difference.compare(" ".join(gold), " ".join(perturbed))
    assert sum(s.kind == "changed" for s in found.segments) == 50
    assert found.edit_size < 0.01


def test_long_texts_without_anything_in_common_are_one_change() -> None:
    found = difference.compare("甲乙 " * 17_000, "丙丁\n" * 17_000)
    assert [s.kind for s in found.segments] == ["changed"]
    assert found.edit_size == 1.0


def test_texts_that_are_too_long_to_compare_are_one_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(difference, "MAX_COMPARED_LENGTH", 20)
    assert marked(difference.compare("one two", "one six")) == "one [-two-]{+six+}"
    assert marked(difference.compare("one two three", "one six three")) == (
        "[-one two three-]{+one six three+}"
    )


def test_the_two_signs_of_a_line_s_end_stay_together_in_any_text() -> None:
    left, right, bonds = bond_clusters("one\r\ntwo", "one\ntwo")
    assert (len(left), right) == (7, "one\ntwo")
    assert left.translate(bonds) == "one\r\ntwo"
    assert bond_clusters("one", "two") == ("one", "two", {})


@given(st.lists(st.integers(0, 9), max_size=9, unique=True))
def test_the_passages_that_are_kept_are_the_longest_run_in_the_same_order(there: list[int]) -> None:
    kept = _longest_increasing(list(enumerate(there)))
    assert kept == sorted(kept)
    assert [two for _, two in kept] == sorted(two for _, two in kept)
    assert set(kept) <= set(enumerate(there))
    longest = [0] * len(there)
    for place, number in enumerate(there):
        before = (longest[one] for one in range(place) if there[one] < number)
        longest[place] = 1 + max(before, default=0)
    assert len(kept) == max(longest, default=0)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_difference_does_not_hang_on_the_hash_seed_of_the_process(seed: str) -> None:
    texts = ("One two, three. " * 30, "Two one; three! One four. " * 20)
    program = (
        "from annotation.items.diffing import difference as d;"
        f" print(d.to_json(d.compare(*{texts!r})))"
    )
    said = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == f"{difference.to_json(difference.compare(*texts))}\n"


def test_rows_of_one_line_with_very_many_changes_take_no_time() -> None:
    parts = [[["", "!"], ["", "?"]], ".", *[[["", ","], ["", ";"]], "."] * 6_000]
    made = difference.from_json({"algorithm": difference.ALGORITHM, "segments": parts})
    started = time.process_time()
    [row] = difference.align_lines(made)
    assert len(row.gold) == len(row.perturbed) == 12_002
    assert time.process_time() - started < 1.5


@pytest.mark.parametrize("between", ["", "\n"])
def test_very_long_texts_of_signs_take_neither_minutes_nor_all_memory(between: str) -> None:
    """It takes seconds: texts as long as people may write are compared, sign by sign."""
    chance = random.Random(5)
    signs = (chance.choices("!?", k=length) for length in (400_000, 399_990))
    gold, perturbed = (between.join(one) for one in signs)
    started = time.process_time()
    found = difference.compare(gold, perturbed)
    assert time.process_time() - started < 8
    assert len(found.segments) <= 3


@pytest.mark.parametrize("sides", [(0, 1), (1, 0)])
def test_very_many_short_lines_beside_a_very_long_one_take_no_minutes(
    sides: tuple[int, int],
) -> None:
    """Each of the short lines was compared with all words of the long one."""
    texts = "a b\n" * 5_000, "()" * 100_000
    started = time.process_time()
    found = difference.compare(*(texts[side] for side in sides))
    assert time.process_time() - started < 5
    assert len(found.segments) == 1


def test_very_long_lines_that_share_nothing_are_not_compared_each_with_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = 0

    def count(*_: object) -> float:
        nonlocal compared
        compared += 1
        return 0.0

    monkeypatch.setattr(pairing, "_share_words", count)
    chance = random.Random(1)
    lines = ["".join(chance.choices("()[]{}", k=9_000)) for _ in range(80)]
    difference.compare("\n".join(lines[:20]), "\n".join(lines[20:40]))
    assert compared > 400
    compared = 0
    difference.compare("\n".join(lines[:40]), "\n".join(lines[40:]))
    assert compared == 0


def test_a_word_that_changed_in_a_very_long_line_is_found() -> None:
    words = [f"w{n % 9_000}" for n in range(40_000)]
    other = " ".join("new" if n == 20_000 else word for n, word in enumerate(words))
    found = difference.compare(f"First.\n{' '.join(words)}\n", f"Second.\n{other}\n")
    assert found.edit_size < 0.001


def test_very_many_lines_are_one_row() -> None:
    """A page of a million rows had 160 megabytes."""
    gold, perturbed = "a\n", "a\n" + "b\n" * difference.MOST_ROWS
    [row] = difference.align_lines(difference.compare(gold, perturbed))
    sides = ("".join(piece.text for piece in pieces) for pieces in (row.gold, row.perturbed))
    assert tuple(sides) == (gold, perturbed)
    fewer = difference.compare(gold, perturbed[:-4])
    assert len(difference.align_lines(fewer)) == difference.MOST_ROWS - 1
