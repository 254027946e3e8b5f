"""The speed at which two texts are compared, and that of plain diff-match-patch on the same pairs.

Run from the root of the checkout: python -m benchmarks.diffing [PATH]. PATH is the published FBI
archive or a JSONL file with `gold` and `perturbed`; without it, the archive next to the checkout is
used, or else the project's own examples. Times are the CPU time of one process, since other load on
the machine hardly affects it.
"""

import argparse
import csv
import io
import json
import random
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from diff_match_patch import diff_match_patch

from annotation.items.diffing import difference, tokens

ROOT = Path(__file__).resolve().parent.parent
PLACES = (ROOT.parent / "shared/data/fbi/data.zip", ROOT / "examples/items.jsonl")
LONG = 100_000

Pair = tuple[str, str]
Compare = Callable[[str, str], object]


def published_rows(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of the published archive: `cdx` (the name of the pair, with its category),
    `og` (the gold answer) and `perturbed_gpt4`."""
    csv.field_size_limit(100_000_000)
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".tsv") and not name.startswith("__MACOSX"):
                text = io.StringIO(archive.read(name).decode(), newline="")
                yield from csv.DictReader(text, delimiter="\t")


def from_archive(path: Path) -> Iterator[Pair]:
    for row in published_rows(path):
        yield row["og"], row["perturbed_gpt4"]


def from_lines(path: Path) -> Iterator[Pair]:
    for line in path.read_text(encoding="utf-8").splitlines():
        item = json.loads(line)
        yield item["gold"], item["perturbed"]


def long_pairs(seed: int = 1) -> dict[str, Pair]:
    """Return two pairs of texts with 100,000 characters: a pair in which a fifth of the words
    differ, and a pair with nothing in common.
    """
    chance = random.Random(seed)
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(3000)]

    def text(drawn: list[str]) -> str:
        return "".join(
            word + ("\n\n" if place % 80 == 79 else " ") for place, word in enumerate(drawn)
        )[:LONG]

    gold = chance.choices(words, k=LONG // 4)
    changed = [chance.choice(words) if chance.random() < 0.2 else word for word in gold]
    return {
        "20 % changed": (text(gold), text(changed)),
        "unrelated": (text(gold), text(chance.choices(words, k=LONG // 4))),
    }


def alone(gold: str, perturbed: str) -> object:
    """Compare with diff-match-patch without a time limit: first by words, then with a clean-up of
    the result by characters.
    """
    engine = diff_match_patch()
    engine.Diff_Timeout = 0
    known: dict[str, str] = {}
    coded = [
        "".join(
            known.setdefault(token, chr(0x10000 + len(known))) for token in tokens.tokenise(text)
        )
        for text in (gold, perturbed)
    ]
    diffs = engine.diff_main(*coded, False)
    back = {ord(code): token for token, code in known.items()}
    readable = [(sign, text.translate(back)) for sign, text in diffs]
    engine.diff_cleanupSemantic(readable)
    return readable


def milliseconds(compare: Compare, pair: Pair) -> float:
    start = time.process_time()
    compare(*pair)
    return (time.process_time() - start) * 1000


def report(name: str, times: list[float]) -> None:
    times = sorted(times)
    median, late = times[len(times) // 2], times[int(len(times) * 0.95)]
    print(f"{name:28} median {median:8.2f}   p95 {late:8.2f}   longest {times[-1]:8.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?", type=Path)
    path = parser.parse_args().path or next((place for place in PLACES if place.exists()), None)
    if path is None:
        print("no pairs found: name an archive or a JSONL file", file=sys.stderr)
        return 2
    pairs = list(from_archive(path) if path.suffix == ".zip" else from_lines(path))
    print(f"{len(pairs)} pairs of {path.name}, milliseconds of processor time")
    report(
        f"blindspot ({difference.ALGORITHM})", [milliseconds(difference.compare, p) for p in pairs]
    )
    report("diff-match-patch on words", [milliseconds(alone, p) for p in pairs])
    for name, pair in long_pairs().items():
        print(f"{LONG:,} characters, {name}: {milliseconds(difference.compare, pair):.0f}", end="")
        beside = f"{milliseconds(alone, pair):.0f}" if name != "unrelated" else "minutes, not run"
        print(f"   diff-match-patch on words: {beside}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
