"""Pairs the lines, or the sentences, of two texts, as a person would.

1. Units whose content occurs once in each text are twins. The heaviest run of twins in the same
   order is the backbone; a longer twin that crosses it has moved.
2. Between them, units are paired that share most of their words.
3. What is left and nearly the same elsewhere has moved too.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rapidfuzz.distance import Indel

from annotation.items.diffing.tokens import content_words

MIN_MOVE_LENGTH = 25
"""Characters of a passage that a reader recognises elsewhere."""

MOVED_SHARE = 0.75
"""Share of words that the two ends of a move have in common."""

PAIRED_SHARE = 0.45
"""Share of common words from which two lines or sentences may be the same one."""

MIN_MOVE_WORDS = 4

COMPARISON_LIMIT = 4_000
"""Pairs of units of which each is compared with each; beyond, only those near the diagonal are."""

COMPARED_IN_ORDER = 1_000_000_000
"""Largest product of the numbers of words or lines that are compared in order, which takes some
hundredths of a second and up to 125 MB, and stops all other threads."""

COMPARED_EACH_WITH_EACH = 100 * COMPARED_IN_ORDER
"""The same product, of all units of which each is compared with each, which takes some seconds."""

Pair = tuple[int, int]


class TokenCodes(dict[str, str]):
    """One character for each token, numbered by first occurrence.

    Texts of characters are aligned faster than lists, and their order does not depend on the hash
    seed of the process. There are characters for 1,048,576 tokens, more than texts of a million
    characters can have.
    """

    def __missing__(self, token: str) -> str:
        code = self[token] = chr(0x10000 + len(self))
        return code

    def encode(self, tokens: Iterable[str]) -> str:
        return "".join(map(self.__getitem__, tokens))


@dataclass(slots=True)
class Unit:
    """A line or a sentence: the tokens from `start` to `end`, and its content."""

    start: int
    end: int
    key: str
    words: str = ""

    def encode_words(self, codes: TokenCodes) -> str:
        """Return the words of the content, one character each; encoded once."""
        if not self.words:
            self.words = codes.encode(content_words(self.key)) or "\0"
        return self.words


def pair_units(
    left: Sequence[Unit], right: Sequence[Unit], codes: TokenCodes
) -> tuple[list[Pair], list[Pair]]:
    """Return the pairs in the order of both texts, and the pairs that moved across these."""
    head, tail = count_shared_ends([unit.key for unit in left], [unit.key for unit in right])
    stop = (len(left) - tail, len(right) - tail)
    between, moved = _pair_between(left, right, (head, head), stop, codes)
    pairs = [(n, n) for n in range(head)]
    pairs += between
    pairs += [(stop[0] + n, stop[1] + n) for n in range(tail)]
    return pairs, moved


def count_shared_ends(left: Sequence[str], right: Sequence[str]) -> tuple[int, int]:
    """Return how many entries both lists have in common at their start, and then at their end."""
    head = tail = 0
    shortest = min(len(left), len(right))
    while head < shortest and left[head] == right[head]:
        head += 1
    while tail < shortest - head and left[-1 - tail] == right[-1 - tail]:
        tail += 1
    return head, tail


def _pair_between(
    left: Sequence[Unit], right: Sequence[Unit], start: Pair, stop: Pair, codes: TokenCodes
) -> tuple[list[Pair], list[Pair]]:
    if start[0] == stop[0] or start[1] == stop[1]:
        return [], []
    twins = _find_twins(left, right, start, stop)
    backbone = _heaviest_run([(i, j, 1 + len(left[i].key)) for i, j in twins])
    kept = set(backbone)
    moved = [(i, j) for i, j in twins if (i, j) not in kept and len(left[i].key) >= MIN_MOVE_LENGTH]
    gone, come = {i for i, _ in moved}, {j for _, j in moved}
    pairs: list[Pair] = []
    for (a, c), (b, d) in pairwise([(start[0] - 1, start[1] - 1), *backbone, stop]):
        lefts = [i for i in range(a + 1, b) if i not in gone]
        rights = [j for j in range(c + 1, d) if j not in come]
        pairs += _pair_alike(left, right, lefts, rights, codes)
        if b < stop[0]:
            pairs.append((b, d))
    gone |= {i for i, _ in pairs}
    come |= {j for _, j in pairs}
    rest = (
        [i for i in range(start[0], stop[0]) if i not in gone],
        [j for j in range(start[1], stop[1]) if j not in come],
    )
    for i, j in _find_near_twins(left, right, *rest, codes):
        at = bisect_left(pairs, (i, j))
        if (not at or pairs[at - 1][1] < j) and (at == len(pairs) or pairs[at][1] > j):
            pairs.insert(at, (i, j))
        else:
            moved.append((i, j))
    return pairs, moved


def _find_twins(left: Sequence[Unit], right: Sequence[Unit], start: Pair, stop: Pair) -> list[Pair]:
    """Return the units whose content occurs once in each text, in the order of the first."""
    here: dict[str, list[int]] = defaultdict(list)
    there: dict[str, list[int]] = defaultdict(list)
    for i in range(start[0], stop[0]):
        here[left[i].key].append(i)
    for j in range(start[1], stop[1]):
        there[right[j].key].append(j)
    return [
        (places[0], there[key][0])
        for key, places in here.items()
        if key and len(places) == 1 and len(there.get(key, ())) == 1
    ]


def _heaviest_run(twins: Sequence[tuple[int, int, int]]) -> list[Pair]:
    """Of (i, j, weight), in the order of i, return the run with rising j and the greatest weight.

    A Fenwick tree over j holds the best run that ends at or before each j, so this takes
    n log n steps.
    """
    rank = {j: n for n, j in enumerate(sorted(j for _, j, _ in twins), 1)}
    best: list[tuple[int, int]] = [(0, -1)] * (len(twins) + 1)
    totals: list[int] = []
    before: list[int] = []
    for n, (_, j, weight) in enumerate(twins):
        at, top = rank[j] - 1, (0, -1)
        while at:
            top = max(top, best[at])
            at -= at & -at
        total = top[0] + weight
        totals.append(total)
        before.append(top[1])
        at = rank[j]
        while at < len(best):
            if best[at][0] < total:
                best[at] = (total, n)
            at += at & -at
    run: list[Pair] = []
    n = max(range(len(twins)), key=totals.__getitem__, default=-1)
    while n >= 0:
        run.append(twins[n][:2])
        n = before[n]
    return run[::-1]


def _pair_alike(
    left: Sequence[Unit],
    right: Sequence[Unit],
    lefts: Sequence[int],
    rights: Sequence[int],
    codes: TokenCodes,
) -> list[Pair]:
    """Return the pairs, in the order of both, that share most of their words in all.

    A pair counts its share of common words above `PAIRED_SHARE`, times its length. With the plain
    share, two pairs that are half alike would beat one that is the same, and steps that changed
    places would be shown as rewritten.
    """
    if not lefts or not rights:
        return []
    if len(lefts) * len(rights) > 25 * COMPARISON_LIMIT or not _can_compare(
        [left[i] for i in lefts], [right[j] for j in rights], codes
    ):
        return _pair_equal(left, right, lefts, rights)
    band = max(8, COMPARISON_LIMIT // (2 * len(lefts)))
    totals = [[0.0] * (len(rights) + 1) for _ in range(len(lefts) + 1)]
    gains = [[0.0] * len(rights) for _ in lefts]
    for p, i in enumerate(lefts):
        words, size = left[i].encode_words(codes), len(left[i].key)
        above, row = totals[p], totals[p + 1]
        middle = p * len(rights) // len(lefts)
        for q, j in enumerate(rights):
            gain = 0.0
            if abs(q - middle) <= band:
                others = right[j].encode_words(codes)
                share = _share_words(words, others, PAIRED_SHARE)
                if share:
                    gain = (share - PAIRED_SHARE + 0.05) * (size + len(right[j].key) + 2)
            gains[p][q] = gain
            row[q + 1] = max(above[q] + gain, above[q + 1], row[q])
    p, q = len(lefts), len(rights)
    pairs: list[Pair] = []
    while p and q:
        gain = gains[p - 1][q - 1]
        if gain and totals[p][q] == totals[p - 1][q - 1] + gain:
            p, q = p - 1, q - 1
            pairs.append((lefts[p], rights[q]))
        elif totals[p][q] == totals[p - 1][q]:
            p -= 1
        else:
            q -= 1
    return pairs[::-1]


def _can_compare(left: Sequence[Unit], right: Sequence[Unit], codes: TokenCodes) -> bool:
    """True if each of these units can be compared with each other one within seconds."""
    some, others = (sum(len(one.encode_words(codes)) for one in side) for side in (left, right))
    return some * others <= COMPARED_EACH_WITH_EACH


def _share_words(left: str, right: str, least: float) -> float:
    """Return the share of words that two units have in common, each word as a character; 0 if it is
    below `least`. Of very long units, the order of the words does not count."""
    # Units of such different lengths are not compared: the time would grow with the longer one,
    # for each of very many short ones. The margin leaves what is near `least` to the comparison.
    if 2 * min(len(left), len(right)) < (least - 0.01) * (len(left) + len(right)):
        return 0.0
    if len(left) * len(right) > COMPARED_IN_ORDER:
        common = (Counter(left) & Counter(right)).total()
        share = 2 * common / (len(left) + len(right))
        return share if share >= least else 0.0
    return Indel.normalized_similarity(left, right, score_cutoff=least)


def _pair_equal(
    left: Sequence[Unit], right: Sequence[Unit], lefts: Sequence[int], rights: Sequence[int]
) -> list[Pair]:
    """Return the pairs with equal content, where comparing each with each would take too long.
    None of very many."""
    if len(lefts) * len(rights) > COMPARED_IN_ORDER:
        return []
    codes = TokenCodes()
    steps = Indel.opcodes(
        codes.encode(left[i].key for i in lefts), codes.encode(right[j].key for j in rights)
    )
    return [
        (lefts[step.src_start + n], rights[step.dest_start + n])
        for step in steps
        if step.tag == "equal"
        for n in range(step.src_end - step.src_start)
    ]


def _find_near_twins(
    left: Sequence[Unit],
    right: Sequence[Unit],
    lefts: Sequence[int],
    rights: Sequence[int],
    codes: TokenCodes,
) -> list[Pair]:
    """Return the pairs of longer units, anywhere, that are nearly the same; the most alike first
    come together."""
    lefts = [i for i in lefts if len(left[i].key) >= MIN_MOVE_LENGTH]
    rights = [j for j in rights if len(right[j].key) >= MIN_MOVE_LENGTH]
    if len(lefts) * len(rights) > COMPARISON_LIMIT or not _can_compare(
        [left[i] for i in lefts], [right[j] for j in rights], codes
    ):
        return []
    found = []
    for i in lefts:
        words = left[i].encode_words(codes)
        if len(words) < MIN_MOVE_WORDS:
            continue
        for j in rights:
            others = right[j].encode_words(codes)
            share = _share_words(words, others, MOVED_SHARE)
            if share:
                found.append((-share, i, j))
    gone: set[int] = set()
    come: set[int] = set()
    pairs: list[Pair] = []
    for _, i, j in sorted(found):
        if i not in gone and j not in come:
            gone.add(i)
            come.add(j)
            pairs.append((i, j))
    return pairs
