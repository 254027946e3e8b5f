"""Aligns two lists of tokens as alternating equal and changed spans, as a person would pair them.

1. Lines and sentences that occur once in each text, in the same order, are matched first. Between
   them rapidfuzz finds the longest common subsequence. There is no time limit, because the result
   would then depend on the speed of the machine. Instead, the size is limited: a section above
   `ALIGNMENT_LIMIT` is first cut at passages that occur once on both sides. A part that is still
   too large becomes one change.
2. An equal span that is short compared with the changes on both sides is merged into the change, so
   that chance matches do not split it. (The idea of diff-match-patch's clean-up, but for whole
   tokens and in linear time; the library's function takes seconds for long texts and cuts words.)
3. A lone insertion or removal is moved to the start of a line, a sentence or a word.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import TypeVar

from rapidfuzz.distance import Indel

ALIGNMENT_LIMIT = 250_000_000
"""Largest product of token counts that is aligned at once; at one bit each 31 MB, about 0.1 s."""

PASSAGE_TOKENS = 8
"""Tokens in a passage that cuts long texts: about four words, which rarely match by chance."""

MIN_EQUAL_CHARACTERS = 40
"""Characters of an equal passage that a reader recognises between changes, about half a line."""

Tokens = Sequence[str]
Pair = tuple[int, int]
K = TypeVar("K")


@dataclass
class Span:
    """Tokens gold[a:b] paired with perturbed[c:d]."""

    equal: bool
    a: int
    b: int
    c: int
    d: int


@dataclass(frozen=True)
class Sides:
    """Both token lists with the offset of each token, for measuring spans in characters."""

    gold: Tokens
    perturbed: Tokens
    gold_offsets: list[int]
    perturbed_offsets: list[int]

    @classmethod
    def from_tokens(cls, gold: Tokens, perturbed: Tokens) -> "Sides":
        """Create both sides and compute the offsets of their tokens in characters."""
        return cls(gold, perturbed, _offsets(gold), _offsets(perturbed))

    def weight(self, span: Span) -> int:
        """The number of characters on the longer side of a span."""
        return max(
            self.gold_offsets[span.b] - self.gold_offsets[span.a],
            self.perturbed_offsets[span.d] - self.perturbed_offsets[span.c],
        )

    def hold(self, span: Span) -> float:
        """Return the weight that both neighbouring changes need to absorb an equal span.

        For white space it is the weight of the span, for other text twice that weight (so a change
        from 20 * 19 * 18 to 20 + 19 + 18 stays two changes). A span of `MIN_EQUAL_CHARACTERS`
        characters or more is never absorbed: the result is infinite.
        """
        weight = self.weight(span)
        if weight >= MIN_EQUAL_CHARACTERS:
            return math.inf
        return weight if "".join(self.gold[span.a : span.b]).isspace() else 2 * weight


def align(sides: Sides, pins: AbstractSet[str] = frozenset()) -> list[Span]:
    """Return spans that cover both sides completely; `pins` are tokens that occur once on each
    side."""
    calm = _trim_shared_ends(_absorb_short_equals(_align_section(sides, pins), sides), sides)
    return _slide_changes(calm, sides)


def _offsets(tokens: Tokens) -> list[int]:
    return list(accumulate(map(len, tokens), initial=0))


def _align_section(sides: Sides, pins: AbstractSet[str]) -> list[Span]:
    gold, perturbed = _number_tokens(sides.gold, sides.perturbed)
    found: list[Span] = []
    for a, b, c, d in _gaps(_match_pins(sides, pins), (0, len(gold)), (0, len(perturbed))):
        if (b - a) * (d - c) <= ALIGNMENT_LIMIT:
            found += _opcodes(gold[a:b], perturbed[c:d], a, c)
        else:
            found += _coarse(gold[a:b], perturbed[c:d], a, c)
    return _merge_neighbours(found)


def _coarse(gold: list[int], perturbed: list[int], a: int, c: int) -> Iterator[Span]:
    passages = _longest_increasing(_match_common(_passages(gold), _passages(perturbed)))
    for i, j, k, m in _gaps(passages, (0, len(gold)), (0, len(perturbed))):
        if (j - i) * (m - k) <= ALIGNMENT_LIMIT:
            yield from _opcodes(gold[i:j], perturbed[k:m], a + i, c + k)
        else:
            yield Span(False, a + i, a + j, c + k, c + m)


def _gaps(starts: list[Pair], gold: Pair, perturbed: Pair) -> Iterator[tuple[int, int, int, int]]:
    """Yield the sections of both sides that begin at each given pair and end at the next."""
    pairs = [(gold[0], perturbed[0]), *starts, (gold[1], perturbed[1])]
    for (a, c), (b, d) in pairwise(pairs):
        yield a, b, c, d


def _number_tokens(gold: Tokens, perturbed: Tokens) -> tuple[list[int], list[int]]:
    """Replace tokens by numbers in order of first occurrence. Unlike strings, numbers have the same
    hash in every process."""
    known = {token: number for number, token in enumerate(dict.fromkeys(chain(gold, perturbed)))}
    return list(map(known.__getitem__, gold)), list(map(known.__getitem__, perturbed))


def _opcodes(gold: list[int], perturbed: list[int], a: int, c: int) -> Iterator[Span]:
    if gold == perturbed:
        yield Span(True, a, a + len(gold), c, c + len(perturbed))
        return
    for step in Indel.opcodes(gold, perturbed):
        yield Span(
            step.tag == "equal",
            a + step.src_start,
            a + step.src_end,
            c + step.dest_start,
            c + step.dest_end,
        )


def _match_pins(sides: Sides, pins: AbstractSet[str]) -> list[Pair]:
    here = {token: place for place, token in enumerate(sides.gold) if token in pins}
    there = {token: place for place, token in enumerate(sides.perturbed) if token in pins}
    return _longest_increasing(_match_common(here, there))


def _match_common(here: dict[K, int], there: dict[K, int]) -> list[Pair]:
    """Return the positions of the keys that occur in both dicts, in the order of the first dict."""
    return sorted((place, there[key]) for key, place in here.items() if key in there)


def _passages(tokens: list[int]) -> dict[tuple[int, ...], int]:
    """Return each passage that occurs only once, with its start."""
    seen: dict[tuple[int, ...], int] = {}
    shifted = (tokens[start:] for start in range(PASSAGE_TOKENS))
    for start, passage in enumerate(zip(*shifted, strict=False)):
        seen[passage] = -1 if passage in seen else start
    return {passage: start for passage, start in seen.items() if start >= 0}


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


def _merge_neighbours(spans: Iterable[Span]) -> list[Span]:
    """Return the spans without empty ones, with neighbours of the same kind merged."""
    joined: list[Span] = []
    for span in spans:
        if span.a == span.b and span.c == span.d:
            continue
        if joined and joined[-1].equal == span.equal:
            joined[-1].b, joined[-1].d = span.b, span.d
        else:
            joined.append(span)
    return joined


def _absorb_short_equals(spans: list[Span], sides: Sides) -> list[Span]:
    """Merge an equal span with its two neighbouring changes if both have enough weight.

    After a merge, the larger change may also absorb the equal span before it, hence the inner loop.
    Every span is absorbed at most once, so the time is linear.
    """
    calm: list[Span] = []
    for span in spans:
        while (
            not span.equal
            and len(calm) > 1
            and sides.hold(calm[-1]) <= min(sides.weight(calm[-2]), sides.weight(span))
        ):
            calm.pop()
            before = calm.pop()
            span = Span(False, before.a, span.b, before.c, span.d)
        calm.append(span)
    return calm


def _trim_shared_ends(spans: list[Span], sides: Sides) -> list[Span]:
    """Move tokens that both sides of a change begin or end with to its equal neighbours."""
    trimmed: list[Span] = []
    for span in spans:
        a, b, c, d = span.a, span.b, span.c, span.d
        if not span.equal:
            while a < b and c < d and sides.gold[a] == sides.perturbed[c]:
                a, c = a + 1, c + 1
            while a < b and c < d and sides.gold[b - 1] == sides.perturbed[d - 1]:
                b, d = b - 1, d - 1
        trimmed += [
            Span(True, span.a, a, span.c, c),
            Span(span.equal, a, b, c, d),
            Span(True, b, span.b, d, span.d),
        ]
    return _merge_neighbours(trimmed)


def _slide_changes(spans: list[Span], sides: Sides) -> list[Span]:
    """Move each lone insertion or removal between equal spans to where it reads best."""
    for before, span, after in zip(spans, spans[1:], spans[2:], strict=False):
        if span.equal or (span.a < span.b and span.c < span.d):
            continue
        if span.a < span.b:
            shift = _best_shift(sides.gold, span.a, span.b, before.b - before.a, after.b - after.a)
        else:
            shift = _best_shift(
                sides.perturbed, span.c, span.d, before.d - before.c, after.d - after.c
            )
        before.b, before.d = before.b + shift, before.d + shift
        span.a, span.b, span.c, span.d = (n + shift for n in (span.a, span.b, span.c, span.d))
        after.a, after.c = after.a + shift, after.c + shift
    return _merge_neighbours(spans)


def _best_shift(tokens: Tokens, start: int, end: int, back: int, ahead: int) -> int:
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


def _rate_cut(tokens: Tokens, at: int) -> int:
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
