"""Aligns two texts as a person would: first their lines, then their sentences, then their words.

1. Equal lines at both ends are cut off. The other lines are paired, and inside a pair of lines its
   sentences (`pairing`). Lines and sentences that stand elsewhere in the other text are moves.
2. In each pair, rapidfuzz finds the longest common subsequence of tokens. There is no time limit,
   because the result would then depend on the speed of the machine. Instead, the size is limited: a
   section above `ALIGNMENT_LIMIT` is first cut at passages that occur once on both sides. A part
   that is still too large becomes one change.
3. An equal span that is short compared with the changes on both sides, an island, is merged into
   the change. A sentence of which most has changed is one change.
4. A lone insertion or removal is moved to the start of a line, a sentence or a word.
5. Passages in the removed text of one change and the added text of another are moves (`moves`).
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from typing import TypeVar

from rapidfuzz.distance import Indel, LCSseq

from annotation.items.diffing.pairing import (
    COMPARED_IN_ORDER,
    Pair,
    TokenCodes,
    Unit,
    count_shared_ends,
    pair_units,
)
from annotation.items.diffing.tokens import (
    LIST_MARK,
    content_key,
    sentence_starts,
    split_lines,
    tokenise,
)

ALIGNMENT_LIMIT = 250_000_000
"""Largest product of token counts that is aligned at once; at one bit each 31 MB, about 0.1 s."""

PASSAGE_TOKENS = 8
"""Tokens in a passage that cuts long texts: about four words, which rarely match by chance."""

MIN_SHARED_LINE = 30
"""Characters of a line that is trusted to be the same one in both texts, and is not split."""

# Lines that were joined or split.
JOINED_SHARE = 0.5
"""Share of its words that a pair must gain to take in the line beside it."""
MIN_JOINED_WORDS = 3
"""Words of such a line; a shorter one must consist of signs, or be all that one side lacked."""
MAX_JOINED_LINES = 20

# Islands: short equal spans between changes.
MIN_EQUAL_CHARACTERS = 40
"""Characters of an equal passage that a reader recognises between changes, about half a line."""
ISLAND_WEIGHT = 1.5
"""How much longer both changes beside an island of one or two words must be to absorb it."""
ONE_SIDED_ISLAND_WEIGHT = 2
"""The same between two insertions, two removals, or of more words."""
EXACT_ISLAND_WEIGHT = 4
"""The same if the island has digits or operators, or a short change beside it has digits."""
SHORT_CHANGE = 20
MANY_CHANGES = 3
"""Changes of a sentence from which its islands are absorbed more easily."""

# Sentences of which most has changed.
REWRITTEN_SHARE, REWRITTEN_SHARE_OF_MANY = 0.5, 0.35
"""Share of changed tokens from which a sentence is one change; the second for many changes."""
EQUAL_WORDS, EQUAL_WORDS_OF_MANY = 2, 5
"""Mean number of tokens between its changes, up to which it is one change."""
MANY_REWRITTEN_CHANGES = 4
MIN_SIDE_SHARE = 0.2
MIN_REWRITTEN_TOKENS = 8
MAX_REWRITTEN_LENGTH = 600
MIN_KEPT_CHARACTERS, MIN_KEPT_END = 25, 12
"""Characters of an equal passage that stays equal inside a rewritten sentence, and at its ends."""
PROSE_SHARE = 0.6
"""Share of tokens with letters from which a text is prose; formulas are read sign by sign."""

_EXACT = re.compile(r"[\d=+×÷<>\\]")
_WORD = re.compile(r"\w+")
# Punctuation and the marks of lists, but no operators.
_ONLY_SIGNS = re.compile(r"[^\w=+×÷<>\\]*(?:\d{1,2}[.)][^\w=+×÷<>\\]*)?")
# A name, or a field of a template as [Date].
_NAME = re.compile(r"[A-Z]\w|\[")

R = TypeVar("R")


@dataclass(slots=True)
class Span:
    """Tokens gold[a:b] paired with perturbed[c:d].

    move: the number of the move of which this is an end, otherwise 0. is_whole: most of the
    sentence has changed, so its ends are not trimmed. is_plain: no characters are marked inside.
    is_lines: whole lines that only one side has, which are not merged with the next change.
    """

    equal: bool
    a: int
    b: int
    c: int
    d: int
    move: int = 0
    is_whole: bool = False
    is_plain: bool = False
    is_lines: bool = False


class Side:
    """One text: its tokens, their offsets in characters, and its lines."""

    def __init__(self, lines: Iterable[str], shared: AbstractSet[str], codes: TokenCodes) -> None:
        self.tokens: list[str] = []
        self.lines: list[Unit] = []
        for line in lines:
            start = len(self.tokens)
            bare = line.rstrip()
            if bare in shared:
                self.tokens.append(bare)
                self.tokens += tokenise(line[len(bare) :])
            else:
                self.tokens += tokenise(line)
            self.lines.append(Unit(start, len(self.tokens), content_key(line)))
        self.offsets = list(accumulate(map(len, self.tokens), initial=0))
        self.codes = codes.encode(self.tokens)

    def text(self, start: int, end: int) -> str:
        return "".join(self.tokens[start:end])

    def length(self, start: int, end: int) -> int:
        """The number of characters of these tokens."""
        return self.offsets[end] - self.offsets[start]

    def count(self, start: int, end: int) -> int:
        """The number of these tokens without white space."""
        return sum(not token.isspace() for token in self.tokens[start:end])

    def sentences(self, line: Unit) -> list[Unit]:
        """Split a line into its sentences; a cut inside a token is left out."""
        base = self.offsets[line.start]
        cuts = [line.start]
        for start in sentence_starts(self.text(line.start, line.end)):
            at = bisect_left(self.offsets, base + start, line.start, line.end)
            if cuts[-1] < at < line.end and self.offsets[at] == base + start:
                cuts.append(at)
        return [
            Unit(start, end, content_key(self.text(start, end)))
            for start, end in pairwise([*cuts, line.end])
        ]


class Alignment:
    """The spans of two texts, in the order of both, with the equal text before and after them.

    `spans` covers the tokens of both sides completely. Each move has two spans, one with tokens of
    the gold text only and one with tokens of the perturbed text only; `moves` is the number of the
    last move.
    """

    def __init__(self, gold: str, perturbed: str) -> None:
        left, right = split_lines(gold), split_lines(perturbed)
        head, tail = count_shared_ends(left, right)
        self.head = "".join(left[:head])
        self.tail = "".join(left[len(left) - tail :])
        left, right = left[head : len(left) - tail], right[head : len(right) - tail]
        shared = _find_shared_lines(left, right)
        self.codes = TokenCodes()
        self.gold = Side(left, shared, self.codes)
        self.perturbed = Side(right, shared, self.codes)
        self.moves = 0
        self.spans: list[Span] = []
        if gold.split() == perturbed.split():  # lines were only broken in other places
            ends = len(self.gold.tokens), len(self.perturbed.tokens)
            self.spans = self.align_words(0, ends[0], 0, ends[1])
        else:
            self._align_units(self.gold.lines, self.perturbed.lines, are_lines=True)
        self.spans = self._slide(self.trim(self._absorb_islands(merge_spans(self.spans))))

    # -------------------------------------------------------------------- lines and sentences

    def _align_units(self, left: Sequence[Unit], right: Sequence[Unit], *, are_lines: bool) -> None:
        """Pair the lines, or the sentences, and align each pair and what is between the pairs."""
        pairs, moved = pair_units(left, right, self.codes)
        gone: dict[int, int] = {}
        come: dict[int, int] = {}
        for lefts, rights in _merge_moves(left, right, pairs, moved):
            self.moves += 1
            gone.update(dict.fromkeys(lefts, self.moves))
            come.update(dict.fromkeys(rights, self.moves))
        a = c = 0
        for b, next_a, d, next_c in self._join_neighbours(left, right, pairs, gone, come):
            self._align_gap(left, right, _runs(a, b, gone), _runs(c, d, come), are_lines)
            if next_a == b + 1 and next_c == d + 1:
                self._align_pair(left[b], right[d], are_lines)
            else:
                self._align_freely(left[b:next_a], right[d:next_c], are_lines)
            a, c = next_a, next_c
        self._align_gap(
            left, right, _runs(a, len(left), gone), _runs(c, len(right), come), are_lines
        )

    def _join_neighbours(
        self,
        left: Sequence[Unit],
        right: Sequence[Unit],
        pairs: Sequence[Pair],
        gone: Mapping[int, int],
        come: Mapping[int, int],
    ) -> Iterator[tuple[int, int, int, int]]:
        """Yield each pair as left[b:next_a] and right[d:next_c], with the unpaired neighbours that
        were joined to it or split off from it."""
        a = c = 0
        for n, (i, j) in enumerate(pairs):
            next_i, next_j = pairs[n + 1] if n + 1 < len(pairs) else (len(left), len(right))
            joined = [i, i + 1, j, j + 1]
            if left[i].key != right[j].key:
                texts = [unit.encode_words(self.codes) for unit in (left[i], right[j])]
                for side, ahead, free in (
                    (0, True, range(i + 1, next_i)),
                    (1, True, range(j + 1, next_j)),
                    (0, False, range(i - 1, a - 1, -1)),
                    (1, False, range(j - 1, c - 1, -1)),
                ):
                    units, moved = ((left, gone), (right, come))[side]
                    for at in free[:MAX_JOINED_LINES]:
                        if at in moved or not self._joins(units[at], texts, side, ahead):
                            break
                        joined[2 * side + ahead] = at + ahead
            yield joined[0], joined[1], joined[2], joined[3]
            a, c = joined[1], joined[3]

    def _joins(self, unit: Unit, texts: list[str], side: int, ahead: bool) -> bool:
        """True if a unit belongs to a pair, because the words of both sides then have more in
        common; its words are then added to `texts[side]`. `ahead`: the unit follows the pair.

        A unit of one or two words must be signs of a formula, or all that one side lacked.
        """
        words = unit.encode_words(self.codes)
        grown = list(texts)
        grown[side] = texts[side] + words if ahead else words + texts[side]
        if len(grown[0]) * len(grown[1]) > COMPARED_IN_ORDER:
            return False
        common = LCSseq.similarity(*grown)
        gained = common - LCSseq.similarity(*texts)
        if len(words) >= MIN_JOINED_WORDS:
            joins = gained >= JOINED_SHARE * len(words)
        else:
            are_signs = not any(map(str.isalnum, unit.key))
            joins = gained >= len(words) and (are_signs or common == len(grown[0]) == len(grown[1]))
        if joins:
            texts[:] = grown
        return joins

    def _align_gap(
        self,
        left: Sequence[Unit],
        right: Sequence[Unit],
        lefts: list[tuple[int, list[int]]],
        rights: list[tuple[int, list[int]]],
        are_lines: bool,
    ) -> None:
        """Align what is between two pairs: ends of moves, and units without a counterpart."""
        rests = ([n for n, (move, _) in enumerate(runs) if not move] for runs in (lefts, rights))
        for here, there in interleave(lefts, rights, *rests):
            if here and there:
                self._align_rest(
                    [left[i] for i in here[1]], [right[j] for j in there[1]], are_lines
                )
            elif here:
                move, run = here
                a, b = left[run[0]].start, left[run[-1]].end
                c = self.spans[-1].d if self.spans else 0
                self.spans.append(Span(False, a, b, c, c, move, is_lines=are_lines))
            elif there:
                move, run = there
                a = self.spans[-1].b if self.spans else 0
                c, d = right[run[0]].start, right[run[-1]].end
                self.spans.append(Span(False, a, a, c, d, move, is_lines=are_lines))

    def _align_rest(self, left: list[Unit], right: list[Unit], are_lines: bool) -> None:
        """Align units of which none has a counterpart: in order, if both sides have as many."""
        if len(left) != len(right):
            self._align_freely(left, right, are_lines)
            return
        for here, there in zip(left, right, strict=True):
            self.spans += self.align_words(here.start, here.end, there.start, there.end)

    def _align_freely(self, left: Sequence[Unit], right: Sequence[Unit], are_lines: bool) -> None:
        """Align lines by their sentences, whatever line these are in; otherwise by words."""
        if are_lines:
            here = [sentence for line in left for sentence in self.gold.sentences(line)]
            there = [sentence for line in right for sentence in self.perturbed.sentences(line)]
            if len(here) > 1 and len(there) > 1:
                self._align_units(here, there, are_lines=False)
                return
        self.spans += self.align_words(left[0].start, left[-1].end, right[0].start, right[-1].end)

    def _align_pair(self, left: Unit, right: Unit, are_lines: bool) -> None:
        a, b, c, d = left.start, left.end, right.start, right.end
        gold, perturbed = self.gold.tokens, self.perturbed.tokens
        while a < b and c < d and gold[a] == perturbed[c]:
            a, c = a + 1, c + 1
        while a < b and c < d and gold[b - 1] == perturbed[d - 1]:
            b, d = b - 1, d - 1
        if a == b or c == d or (b - a == 1 and d - c == 1):
            self.spans += [
                Span(True, left.start, a, right.start, c),
                Span(False, a, b, c, d),
                Span(True, b, left.end, d, right.end),
            ]
        else:
            self._align_freely([left], [right], are_lines)

    # -------------------------------------------------------------------------------- words

    def align_words(self, a: int, b: int, c: int, d: int) -> list[Span]:
        """Align tokens gold[a:b] with perturbed[c:d], without moves."""
        spans = self._absorb_islands(merge_spans(self._match_tokens(a, b, c, d)))
        if sum(not span.equal for span in spans) >= MANY_CHANGES and self._is_prose(spans):
            spans = self._absorb_islands(spans, easily=True)
        return self._merge_rewritten(spans)

    def _match_tokens(self, a: int, b: int, c: int, d: int) -> Iterator[Span]:
        """Yield the spans of the longest common subsequence."""
        if a == b or c == d:
            yield Span(False, a, b, c, d)
            return
        gold, perturbed = self.gold.codes[a:b], self.perturbed.codes[c:d]
        starts: list[Pair] = []
        if (b - a) * (d - c) > ALIGNMENT_LIMIT:
            starts = _longest_increasing(_match_common(_passages(gold), _passages(perturbed)))
        for (i, k), (j, m) in pairwise([(0, 0), *starts, (b - a, d - c)]):
            if (j - i) * (m - k) > ALIGNMENT_LIMIT:
                yield Span(False, a + i, a + j, c + k, c + m)
                continue
            for step in Indel.opcodes(gold[i:j], perturbed[k:m]):
                yield Span(
                    step.tag == "equal",
                    a + i + step.src_start,
                    a + i + step.src_end,
                    c + k + step.dest_start,
                    c + k + step.dest_end,
                )

    def _absorb_islands(self, spans: Iterable[Span], *, easily: bool = False) -> list[Span]:
        """Merge an equal span with its two neighbouring changes if both are long enough.

        After a merge, the larger change may also absorb the equal span before it, hence the inner
        loop. Every span is absorbed at most once, so the time is linear.
        """
        calm: list[Span] = []
        for span in spans:
            while (
                not span.equal
                and len(calm) > 1
                and self._is_island(calm[-2], calm[-1], span, easily=easily)
            ):
                calm.pop()
                before = calm.pop()
                span = Span(False, before.a, span.b, before.c, span.d)
            calm.append(span)
        return calm

    def _is_island(self, before: Span, span: Span, after: Span, *, easily: bool) -> bool:
        """True if an equal span is too short to be read between the changes beside it.

        Numbers, operators and signs are read one by one, so that a change from 20 * 19 * 18 to
        20 + 19 + 18 stays two changes.
        """
        # Two changes may touch: an end of a move, or lines of one side.
        stays = before.move or after.move or before.is_whole or after.is_whole
        too_long = self.gold.length(span.a, span.b) >= MIN_EQUAL_CHARACTERS
        if not span.equal or before.equal or stays or too_long:
            return False
        text = self.gold.text(span.a, span.b)
        if "\n" in text.strip(" "):
            return False
        length, left, right = len(text), self._length(before), self._length(after)
        shorter = min(left, right)
        if text.isspace():
            return length <= shorter
        if easily and _ONLY_SIGNS.fullmatch(text):  # between rewritten words no anchor
            return length <= shorter and 4 * length <= left + right
        near_digits = shorter <= SHORT_CHANGE and (
            self._has_digit(before) or self._has_digit(after)
        )
        if near_digits or _EXACT.search(text) or not any(map(str.isalpha, text)):
            return EXACT_ISLAND_WEIGHT * length <= shorter
        if ONE_SIDED_ISLAND_WEIGHT * length <= shorter:
            return True
        if not self._removes_and_adds(before, after) or shorter < 3 or len(_WORD.findall(text)) > 2:
            return False
        if easily:
            is_light = 3 * length <= left + right and not _NAME.search(text)
            return length <= shorter or is_light
        return ISLAND_WEIGHT * length <= shorter

    def _removes_and_adds(self, before: Span, after: Span) -> bool:
        """True if one of two changes removes words and the other adds some."""
        removes = [self.gold.count(span.a, span.b) > 0 for span in (before, after)]
        adds = [self.perturbed.count(span.c, span.d) > 0 for span in (before, after)]
        return (removes[0] and adds[1]) or (adds[0] and removes[1])

    def _merge_rewritten(self, spans: list[Span]) -> list[Span]:
        """Merge the changes of a sentence of which most has changed.

        Its old and its new words then stand together. What a reader recognises stays equal: a long
        passage, the list mark before and the line break after it.
        """
        changes = sum(not span.equal for span in spans)
        if changes < 2:
            return spans
        first, last = spans[0], spans[-1]
        if (
            self.gold.length(first.a, last.b) > MAX_REWRITTEN_LENGTH
            or self.perturbed.length(first.c, last.d) > MAX_REWRITTEN_LENGTH
            or not self._is_rewritten(spans, many=changes >= MANY_REWRITTEN_CHANGES)
        ):
            return spans
        merged: list[Span] = []
        for span in spans:
            text = self.gold.text(span.a, span.b)
            if span.equal and (
                len(text) >= MIN_KEPT_CHARACTERS
                or (span is first and (_is_list_mark(text) or len(text) >= MIN_KEPT_END))
                or (span is last and (text.isspace() or len(text) >= MIN_KEPT_END))
            ):
                merged.append(span)
            elif merged and not merged[-1].equal:
                merged[-1].b, merged[-1].d = span.b, span.d
            else:
                merged.append(Span(False, span.a, span.b, span.c, span.d, is_plain=True))
        if sum(not span.equal for span in merged) == 1:
            for span in merged:
                span.is_whole = not span.equal
        return merged

    def _is_rewritten(self, spans: list[Span], *, many: bool) -> bool:
        sizes = [(self.gold.count(s.a, s.b), self.perturbed.count(s.c, s.d)) for s in spans]
        gold, perturbed = (sum(side) for side in zip(*sizes, strict=True))
        changes = [size for size, span in zip(sizes, spans, strict=True) if not span.equal]
        removed, added = (sum(side) for side in zip(*changes, strict=True))
        inner = [
            size for (size, _), span in zip(sizes[1:-1], spans[1:-1], strict=True) if span.equal
        ]
        return (
            min(gold, perturbed) >= MIN_REWRITTEN_TOKENS
            and sum(inner) <= (EQUAL_WORDS_OF_MANY if many else EQUAL_WORDS) * len(inner)
            and removed + added
            > (REWRITTEN_SHARE_OF_MANY if many else REWRITTEN_SHARE) * (gold + perturbed)
            and removed >= MIN_SIDE_SHARE * gold
            and added >= MIN_SIDE_SHARE * perturbed
            and self._is_prose(spans)
        )

    def _is_prose(self, spans: Sequence[Span]) -> bool:
        """True if most tokens are words."""
        first, last = spans[0], spans[-1]
        tokens = [
            token
            for token in (
                *self.gold.tokens[first.a : last.b],
                *self.perturbed.tokens[first.c : last.d],
            )
            if not token.isspace()
        ]
        return sum(token[0].isalpha() for token in tokens) >= PROSE_SHARE * len(tokens)

    def _length(self, span: Span) -> int:
        """The number of characters on the longer side of a span."""
        return max(self.gold.length(span.a, span.b), self.perturbed.length(span.c, span.d))

    def _has_digit(self, span: Span) -> bool:
        texts = self.gold.text(span.a, span.b), self.perturbed.text(span.c, span.d)
        return any(map(str.isdigit, "".join(texts)))

    # ------------------------------------------------------------------------ ends of changes

    def trim(self, spans: Iterable[Span]) -> list[Span]:
        """Move tokens that both sides of a change begin or end with to its equal neighbours; from a
        rewritten sentence, only signs and white space."""
        gold, perturbed = self.gold.tokens, self.perturbed.tokens
        trimmed: list[Span] = []
        for span in spans:
            a, b, c, d = span.a, span.b, span.c, span.d
            if not span.equal and not span.move:
                while (
                    a < b
                    and c < d
                    and gold[a] == perturbed[c]
                    and not (span.is_whole and gold[a][0].isalnum())
                ):
                    a, c = a + 1, c + 1
                while (
                    a < b
                    and c < d
                    and gold[b - 1] == perturbed[d - 1]
                    and not (span.is_whole and not gold[b - 1].isspace())
                ):
                    b, d = b - 1, d - 1
            trimmed += [
                Span(True, span.a, a, span.c, c),
                Span(
                    span.equal, a, b, c, d, span.move, span.is_whole, span.is_plain, span.is_lines
                ),
                Span(True, b, span.b, d, span.d),
            ]
        return merge_spans(trimmed)

    def _slide(self, spans: list[Span]) -> list[Span]:
        """Move each lone insertion or removal between equal spans to where it reads best."""
        for before, span, after in zip(spans, spans[1:], spans[2:], strict=False):
            if span.equal or span.move or not (before.equal and after.equal):
                continue
            if span.a < span.b and span.c < span.d:
                continue
            if span.a < span.b:
                tokens, start, end = self.gold.tokens, span.a, span.b
            else:
                tokens, start, end = self.perturbed.tokens, span.c, span.d
            shift = _best_shift(tokens, start, end, before.b - before.a, after.b - after.a)
            before.b, before.d = before.b + shift, before.d + shift
            span.a, span.b, span.c, span.d = (n + shift for n in (span.a, span.b, span.c, span.d))
            after.a, after.c = after.a + shift, after.c + shift
        return merge_spans(spans)


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Return the spans without empty ones, with neighbours of the same kind merged.

    Two rewritten sentences stay apart, and so do whole lines and the change after them, unless both
    only remove or only add text.
    """
    merged: list[Span] = []
    for span in spans:
        if span.a == span.b and span.c == span.d:
            continue
        last = merged[-1] if merged else None
        if last and last.equal == span.equal and last.move == span.move:
            only_adds = last.a == last.b and span.a == span.b
            only_removes = last.c == last.d and span.c == span.d
            if (
                span.equal
                or (not (last.is_whole and span.is_whole) and last.is_lines == span.is_lines)
                or (not span.move and (only_adds or only_removes))
            ):
                last.b, last.d = span.b, span.d
                last.is_whole |= span.is_whole
                last.is_lines |= span.is_lines
                continue
        merged.append(span)
    return merged


def interleave(
    left: Sequence[R], right: Sequence[R], rest_left: Sequence[int], rest_right: Sequence[int]
) -> Iterator[tuple[R | None, R | None]]:
    """Yield the runs of both sides in order. The rests, which have no counterpart elsewhere, come
    in pairs if both sides have as many; otherwise only the first ones do. All others come alone."""
    if len(rest_left) != len(rest_right):
        rest_left, rest_right = rest_left[:1], rest_right[:1]
    at_left = at_right = 0
    for i, j in zip(rest_left, rest_right, strict=False):
        for run in left[at_left:i]:
            yield run, None
        for run in right[at_right:j]:
            yield None, run
        yield left[i], right[j]
        at_left, at_right = i + 1, j + 1
    for run in left[at_left:]:
        yield run, None
    for run in right[at_right:]:
        yield None, run


def _find_shared_lines(left: Iterable[str], right: Iterable[str]) -> set[str]:
    """Return the long lines that occur as often on both sides; they are not split into words."""
    counts: tuple[dict[str, int], dict[str, int]] = {}, {}
    for side, lines in zip(counts, (left, right), strict=True):
        for line in lines:
            bare = line.rstrip()
            if len(bare) > MIN_SHARED_LINE:
                side[bare] = side.get(bare, 0) + 1
    here, there = counts
    return {line for line, count in here.items() if there.get(line) == count}


def _merge_moves(
    left: Sequence[Unit], right: Sequence[Unit], pairs: Iterable[Pair], moved: Iterable[Pair]
) -> list[tuple[list[int], list[int]]]:
    """Return each move as the units of both sides. Moves beside each other are one move, and
    unpaired neighbours with equal content, as a short heading, join it."""
    links = dict(moved)
    used_left = {i for i, _ in pairs} | links.keys()
    used_right = {j for _, j in pairs} | set(links.values())
    for step in (1, -1):
        for i, j in sorted(links.items(), reverse=step < 0):
            while True:
                i, j = i + step, j + step
                if not (0 <= i < len(left) and 0 <= j < len(right)):
                    break
                if i in used_left or j in used_right or left[i].key != right[j].key:
                    break
                links[i] = j
                used_left.add(i)
                used_right.add(j)
    blocks: list[tuple[list[int], list[int]]] = []
    for i, j in sorted(links.items()):
        if blocks and blocks[-1][0][-1] == i - 1 and blocks[-1][1][-1] == j - 1:
            blocks[-1][0].append(i)
            blocks[-1][1].append(j)
        else:
            blocks.append(([i], [j]))
    return blocks


def _runs(start: int, end: int, moved: Mapping[int, int]) -> list[tuple[int, list[int]]]:
    """Return the units from `start` to `end` in runs of the same move; 0 for those in no move."""
    grouped = groupby(range(start, end), key=lambda n: moved.get(n, 0))
    return [(move, list(run)) for move, run in grouped]


def _is_list_mark(text: str) -> bool:
    found = LIST_MARK.match(text)
    return (found is not None and found[0] == text) or not any(
        sign.isalpha() or sign == "_" for sign in text
    )


def _passages(codes: str) -> dict[str, int]:
    """Return each passage that occurs only once, with its start."""
    seen: dict[str, int] = {}
    for start in range(len(codes) - PASSAGE_TOKENS + 1):
        passage = codes[start : start + PASSAGE_TOKENS]
        seen[passage] = -1 if passage in seen else start
    return {passage: start for passage, start in seen.items() if start >= 0}


def _match_common(here: dict[str, int], there: dict[str, int]) -> list[Pair]:
    """Return the positions of the keys that occur in both dicts, in the order of the first text."""
    return sorted((place, there[key]) for key, place in here.items() if key in there)


def _longest_increasing(pairs: list[Pair]) -> list[Pair]:
    """Return the longest subsequence with increasing second numbers (patience sorting)."""
    tops: list[int] = []
    holders: list[int] = []
    before: list[int] = []
    for index, (_, there) in enumerate(pairs):
        pile = bisect_left(tops, there)
        before.append(holders[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [there]
        holders[pile : pile + 1] = [index]
    rising: list[Pair] = []
    index = holders[-1] if holders else -1
    while index >= 0:
        rising.append(pairs[index])
        index = before[index]
    return rising[::-1]


def _best_shift(tokens: Sequence[str], start: int, end: int, back: int, ahead: int) -> int:
    """Return how far to move tokens[start:end]: a number of tokens from -`back` to `ahead`."""
    least = 0
    while least < back and tokens[start - least - 1] == tokens[end - least - 1]:
        least += 1
    most = 0
    while most < ahead and tokens[start + most] == tokens[end + most]:
        most += 1
    return max(
        range(-least, most + 1),
        key=lambda n: (_rate_cut(tokens, start + n) + _rate_cut(tokens, end + n), -abs(n)),
    )


def _rate_cut(tokens: Sequence[str], at: int) -> int:
    """Rate a cut before tokens[at]: 4 at the start of a line with text (best) down to 0 inside a
    word."""
    if at in (0, len(tokens)):
        return 4
    before, after = tokens[at - 1], tokens[at]
    if before[-1] in "\r\n":
        return 3 if after[0] in "\r\n" else 4
    if not before[-1].isspace():
        return 0
    text = before.rstrip() or tokens[max(0, at - 2)]
    return 2 if text[-1] in ".!?:;" else 1
