"""Finds passages that moved inside changed text, and drops moves across nothing."""

import heapq
from collections import defaultdict
from collections.abc import Iterable
from itertools import accumulate

from rapidfuzz.distance import Indel

from annotation.items.diffing.alignment import (
    MAX_REWRITTEN_LENGTH,
    Alignment,
    Side,
    Span,
    interleave,
    merge_spans,
)
from annotation.items.diffing.pairing import MIN_MOVE_LENGTH, MOVED_SHARE

SEED_TOKENS = 5
"""Words of an identical passage that may have moved."""

MIN_PHRASE_LENGTH = 60
"""Characters of a moved passage that is not a whole sentence."""

MIN_CROSSED_LENGTH = 12
"""Characters of equal text that a move crosses; with less, the two ends are shown in place."""

MAX_PASSAGES = 200
MAX_SEED_PLACES = 16
MAX_STRETCH = 100
"""Spans between the ends of a move that may be aligned again in place."""

Cut = tuple[int, int, int]
"""The first token, the token after the last, and the number of the move, 0 for none."""


def settle_moves(alignment: Alignment) -> list[Span]:
    """Return the spans of an alignment with moved passages inside changes cut out as moves, and
    moves that cross nothing aligned in place."""
    spans = _cut_moved_passages(alignment, _keep_blanks(alignment))
    return _move_blanks_along(alignment, _realign_in_place(alignment, spans))


def _keep_blanks(alignment: Alignment) -> list[Span]:
    """Return the spans, with white space kept equal that one side has alone beside lines that the
    other side has alone and that end in it.

    Otherwise a removed last line of a paragraph would seem to take its blank line along, and
    another blank line would seem to be added.
    """
    gold, perturbed = alignment.gold.tokens, alignment.perturbed.tokens
    kept: list[Span] = []
    for span in alignment.spans:
        last = kept[-1] if kept else None
        if last and not last.equal and not span.equal and not last.move:
            if last.a == last.b and span.c == span.d:  # an added blank, then removed lines
                blank, end = perturbed[last.c : last.d], span.b - (last.d - last.c)
                if span.a < end < span.b and gold[end : span.b] == blank and _are_blank(blank):
                    kept[-1] = _resize(span, span.a, end, last.c, last.c)
                    kept.append(Span(True, end, span.b, last.c, last.d))
                    continue
            if last.c == last.d and span.a == span.b:  # a removed blank, then added lines
                blank, end = gold[last.a : last.b], span.d - (last.b - last.a)
                if span.c < end < span.d and perturbed[end : span.d] == blank and _are_blank(blank):
                    kept[-1] = _resize(span, last.a, last.a, span.c, end)
                    kept.append(Span(True, last.a, last.b, end, span.d))
                    continue
        kept.append(span)
    return merge_spans(kept)


def _are_blank(tokens: list[str]) -> bool:
    return all(token.isspace() for token in tokens)


def _resize(span: Span, a: int, b: int, c: int, d: int) -> Span:
    return Span(False, a, b, c, d, span.move, span.is_whole, span.is_plain, span.is_lines)


# ------------------------------------------------------------------ passages inside changed text


def _cut_moved_passages(alignment: Alignment, spans: list[Span]) -> list[Span]:
    """Cut passages out of changes that are in the removed text of one change and in the added text
    of another: whole sentences, or long phrases."""
    gold, perturbed = alignment.gold, alignment.perturbed
    changes = [(n, s) for n, s in enumerate(spans) if not s.equal and not s.move]
    left = [(n, k) for n, s in changes for k in range(s.a, s.b) if not gold.tokens[k].isspace()]
    right = [
        (n, k) for n, s in changes for k in range(s.c, s.d) if not perturbed.tokens[k].isspace()
    ]
    cuts: tuple[dict[int, list[Cut]], dict[int, list[Cut]]] = defaultdict(list), defaultdict(list)
    used: tuple[set[int], set[int]] = set(), set()
    for _, x, y, count in _find_passages(alignment, left, right):
        if not used[0].isdisjoint(range(x, x + count)) or not used[1].isdisjoint(
            range(y, y + count)
        ):
            continue
        (i, a), (j, c) = left[x], right[y]
        b, d = left[x + count - 1][1] + 1, right[y + count - 1][1] + 1
        length = gold.length(a, b)
        a, b, c, d, is_sentence = _widen(alignment, spans[i], spans[j], a, b, c, d)
        if not is_sentence and length < MIN_PHRASE_LENGTH:
            continue
        if _overlaps(cuts[0][i], a, b) or _overlaps(cuts[1][j], c, d):
            continue
        alignment.moves += 1
        cuts[0][i].append((a, b, alignment.moves))
        cuts[1][j].append((c, d, alignment.moves))
        used[0].update(range(x, x + count))
        used[1].update(range(y, y + count))
    divided: list[Span] = []
    for n, span in enumerate(spans):
        if n in cuts[0] or n in cuts[1]:
            divided += _divide(alignment, span, sorted(cuts[0][n]), sorted(cuts[1][n]))
        else:
            divided.append(span)
    return merge_spans(divided)


def _find_passages(
    alignment: Alignment, left: list[tuple[int, int]], right: list[tuple[int, int]]
) -> list[tuple[int, int, int, int]]:
    """Return identical passages of different changes as (length, place on the left, place on the
    right, tokens), the longest first. The places are indexes of `left` and `right`."""
    here = "".join(alignment.gold.codes[k] for _, k in left)
    there = "".join(alignment.perturbed.codes[k] for _, k in right)
    places: dict[str, list[int]] = defaultdict(list)
    for y in range(len(there) - SEED_TOKENS + 1):
        places[there[y : y + SEED_TOKENS]].append(y)
    found: list[tuple[int, int, int, int]] = []
    x = 0
    while x <= len(here) - SEED_TOKENS:
        best, at = 0, 0
        for y in places.get(here[x : x + SEED_TOKENS], ())[:MAX_SEED_PLACES]:
            if left[x][0] == right[y][0]:
                continue
            n = 0
            while (
                x + n < len(here)
                and y + n < len(there)
                and here[x + n] == there[y + n]
                and left[x + n][0] == left[x][0]
                and right[y + n][0] == right[y][0]
            ):
                n += 1
            if n > best:
                best, at = n, y
        if best < SEED_TOKENS:
            x += 1
            continue
        length = alignment.gold.length(left[x][1], left[x + best - 1][1] + 1)
        if length >= MIN_MOVE_LENGTH:
            found.append((length, x, at, best))
        x += best
    return heapq.nsmallest(MAX_PASSAGES, found, key=lambda passage: (-passage[0], passage[1]))


def _widen(
    alignment: Alignment, removed: Span, added: Span, a: int, b: int, c: int, d: int
) -> tuple[int, int, int, int, bool]:
    """Return the sentences around an identical passage if they are nearly the same on both sides,
    otherwise the passage; the last value is True if both begin and end as sentences do."""
    gold, perturbed = alignment.gold, alignment.perturbed
    begin, end = _sentences_around(gold, a, b, removed.a, removed.b)
    start, stop = _sentences_around(perturbed, c, d, added.c, added.d)
    share = Indel.normalized_similarity(_words(gold, begin, end), _words(perturbed, start, stop))
    if share < MOVED_SHARE:
        return a, b, c, d, False
    is_sentence = _is_sentence(gold.tokens, begin, end)
    return begin, end, start, stop, is_sentence and _is_sentence(perturbed.tokens, start, stop)


def _words(side: Side, start: int, end: int) -> str:
    """Return the codes of the words among these tokens; signs of emphasis would make two passages
    look more alike than they are."""
    return "".join(side.codes[k] for k in range(start, end) if side.tokens[k][0].isalnum())


def _sentences_around(side: Side, start: int, end: int, low: int, high: int) -> tuple[int, int]:
    """Widen tokens[start:end] to whole sentences within tokens[low:high]; not further than a long
    sentence."""
    tokens, limit = side.tokens, MAX_REWRITTEN_LENGTH
    first = start
    while start > low and side.length(start, first) <= limit:
        if tokens[start - 1][-1] == "\n":
            break
        if tokens[start - 1].isspace() and start - 2 >= low and tokens[start - 2][-1] in ".!?":
            break
        start -= 1
    last = end
    while end < high and tokens[end - 1][-1] not in ".!?\n" and side.length(last, end) <= limit:
        end += 1
    while end < high and tokens[end].isspace():
        end += 1
    return start, end


def _is_sentence(tokens: list[str], start: int, end: int) -> bool:
    """True if the tokens begin and end where a sentence or a line does."""
    while start and tokens[start - 1].isspace() and tokens[start - 1][-1] not in "\r\n":
        start -= 1
    if start and tokens[start - 1][-1] not in ".!?:;\r\n*-":
        return False
    last = end
    while last > start and tokens[last - 1].isspace():
        last -= 1
    sign = tokens[last - 1]
    if sign in "*_\"'”’)" and last - 1 > start:
        sign = tokens[last - 2]
    after = "".join(tokens[last : end + 1])
    return end == len(tokens) or sign[-1] in ".!?:;" or "\r" in after or "\n" in after


def _overlaps(cuts: list[Cut], start: int, end: int) -> bool:
    return any(start < b and a < end for a, b, _ in cuts)


def _divide(alignment: Alignment, span: Span, gold: list[Cut], perturbed: list[Cut]) -> list[Span]:
    """Divide a change at its moved passages; the rest of both sides stays one change if it can."""
    left = _with_rests(span.a, span.b, gold)
    right = _with_rests(span.c, span.d, perturbed)
    rest_left, rest_right = (
        [n for n, (a, b, move) in enumerate(runs) if not move and not side.text(a, b).isspace()]
        for runs, side in ((left, alignment.gold), (right, alignment.perturbed))
    )
    parts: list[Span] = []
    a, c = span.a, span.c
    for here, there in interleave(left, right, rest_left, rest_right):
        b, d = here[1] if here else a, there[1] if there else c
        move = 0 if here and there else (here or there or (0, 0, 0))[2]
        is_whole = span.is_whole if here and there else False
        parts.append(Span(False, a, b, c, d, move, is_whole))
        a, c = b, d
    return parts


def _with_rests(start: int, end: int, cuts: list[Cut]) -> list[Cut]:
    """Return the cuts in order, with what is between them as cuts of no move."""
    runs: list[Cut] = []
    for a, b, move in cuts:
        if start < a:
            runs.append((start, a, 0))
        runs.append((a, b, move))
        start = b
    return [*runs, (start, end, 0)] if start < end else runs


# ----------------------------------------------------------------------------- moves in place


def _realign_in_place(alignment: Alignment, spans: list[Span]) -> list[Span]:
    """Align again what is between the ends of a move that crosses hardly any equal text.

    Without text between them that stayed, nothing tells a reader which of two passages has moved.
    """
    ends: dict[int, list[int]] = defaultdict(list)
    for n, span in enumerate(spans):
        if span.move:
            ends[span.move].append(n)
    equal = list(
        accumulate((alignment.gold.length(s.a, s.b) if s.equal else 0 for s in spans), initial=0)
    )
    stretches = _merge_ranges(
        (first, last)
        for first, last in sorted((places[0], places[-1]) for places in ends.values())
        if last - first <= MAX_STRETCH
        and equal[last] - equal[first] < MIN_CROSSED_LENGTH
        and not any(_cross(spans, ends, first, n) for n in range(first, last) if spans[n].move)
    )
    aligned: list[Span] = []
    at = 0
    for first, last in stretches:
        inside = {span.move for span in spans[first : last + 1] if span.move}
        if any(not first <= n <= last for move in inside for n in ends[move]):
            continue
        while first > at and not spans[first - 1].equal and not spans[first - 1].move:
            first -= 1
        while last + 1 < len(spans) and not (spans[last + 1].equal or spans[last + 1].move):
            last += 1
        aligned += spans[at:first]
        start, end = spans[first], spans[last]
        aligned += alignment.trim(alignment.align_words(start.a, end.b, start.c, end.d))
        at = last + 1
    return merge_spans(aligned + spans[at:])


def _merge_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge the ranges that overlap; they are sorted, and both ends belong to them."""
    merged: list[tuple[int, int]] = []
    for first, last in ranges:
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return merged


def _cross(spans: list[Span], ends: dict[int, list[int]], n: int, m: int) -> bool:
    """True if the moves of two spans are in one order in the gold text and in the other order in
    the perturbed text."""
    if spans[n].move == spans[m].move:
        return False
    (gone, come), (other_gone, other_come) = (
        sorted(ends[spans[k].move], key=lambda place: spans[place].a == spans[place].b)
        for k in (n, m)
    )
    return (gone < other_gone) != (come < other_come)


def _move_blanks_along(alignment: Alignment, spans: list[Span]) -> list[Span]:
    """Merge an added or removed blank with the end of a move beside it, which would otherwise be a
    change of its own."""
    gold, perturbed = alignment.gold, alignment.perturbed
    kept: list[Span] = []
    for span in spans:
        last = kept[-1] if kept else None
        if last and bool(last.move) != bool(span.move) and not last.equal and not span.equal:
            blank = span if last.move else last
            text = gold.text(blank.a, blank.b) + perturbed.text(blank.c, blank.d)
            both_added = last.a == last.b and span.a == span.b
            both_removed = last.c == last.d and span.c == span.d
            if (both_added or both_removed) and text.isspace() and "\n" not in text:
                move = last if last.move else span
                kept[-1] = _resize(move, last.a, span.b, last.c, span.d)
                continue
        kept.append(span)
    return kept
