"""How fast items come in, from a file of 5 KB a row to places in the queue, and in what memory?

    python -m benchmarks.importing [--databases postgresql sqlite] [--rows 40000] [--format jsonl]

Each database is one of its own, and each measurement a process of its own, whose memory is the
largest it ever had; that of the process which reads ahead is not in it, nor is its time. The file
is read twice, as always, and comes again at the end: then nothing is new. `longest` is the longest
transaction, in which nobody else can write to SQLite. What this process itself computes is given
beside, since it hardly depends on what else the machine does.
PostgreSQL is looked for at TEST_POSTGRES_URL. Ends with 1 if a row is lost or doubled; a limit
that is missed is only said.
"""

import argparse
import csv
import gc
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.workbench import scratch

ROOT = Path(__file__).resolve().parents[1]

Figures = dict[str, Any]

RATE = 8_000
MEGABYTES = 300
LONGEST = 200
FORMATS = ("jsonl", "csv")
WORDS = ["the", "of", "and", "to", "energy", "water", "1914", "system", "café", "light", "Übung"]


def main() -> None:
    """Measure every database in a process of its own, and print what came of it."""
    options = _options()
    if options.one:
        print(json.dumps(_measured(options)))
        return
    print(
        f"{'database':<12}{'rows':>9}{'rows/s':>9}{'again/s':>9}"
        f"{'longest ms':>12}{'MB':>6}{'CPU us a row':>14}"
    )
    lacking = "postgresql" in options.databases and scratch.lacking_postgresql()
    if lacking:
        print(lacking)
    kinds = [kind for kind in options.databases if not (lacking and kind == "postgresql")]
    results = [_in_process(kind, options) for kind in kinds]
    if any(figures["stored"] != options.rows or figures["twice"] for figures in results):
        print("A row was lost or doubled.")
        raise SystemExit(1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--databases", nargs="+", choices=scratch.KINDS, default=[*scratch.KINDS])
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--format", choices=FORMATS, default="jsonl")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _in_process(kind: str, options: argparse.Namespace) -> Figures:
    # Django knows one set of settings a process, and memory is counted by process.
    command = [sys.executable, "-m", "benchmarks.importing", "--one", "--databases", kind]
    command += ["--rows", str(options.rows), "--format", options.format]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    figures: Figures = json.loads(printed.splitlines()[-1])
    print(_lines(kind, figures), flush=True)
    return figures


def _measured(options: argparse.Namespace) -> Figures:
    with tempfile.TemporaryDirectory(prefix="blindspot-bench-") as folder:
        path = Path(folder, f"items.{options.format}")
        _write(path, options.rows)
        with scratch.database(options.databases[0]):
            return {"rows": options.rows, **_imported(path, options.format)}


def _imported(path: Path, form: str) -> Figures:
    from annotation import importing
    from annotation.models import Item, Revision, Slot
    from judging.engine import bell

    gc.freeze()  # as a worker does
    gc.set_threshold(bell.YOUNG, *bell.OLDER)
    project = importing.create_project("bench")
    with _longest_transaction() as longest:
        begun = time.process_time()
        first, report = _timed(project, path, form)
        cpu = time.process_time() - begun
    again, repeated = _timed(project, path, form)
    stored = min(each.objects.count() for each in (Item, Revision, Slot))
    return {
        "rate": round(report.rows / first),
        "again": round(repeated.rows / again),
        "longest": round(max(longest) * 1000),
        "cpu": round(cpu / report.rows * 1e6),
        "megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "stored": stored if report.new == stored else -1,
        "twice": repeated.new,
    }


def _timed(project: Any, path: Path, form: str) -> tuple[float, Any]:
    from annotation import importing, tasktypes
    from formats.readers import READERS
    from formats.rows import DEFAULT_LIMITS

    begun = time.perf_counter()
    rows = READERS[form](path, DEFAULT_LIMITS)
    drafts = importing.check(rows, tasktypes.of_project(project))
    report = importing.store(project, importing.ahead(drafts))
    return time.perf_counter() - begun, report


@contextmanager
def _longest_transaction() -> Iterator[list[float]]:
    """How long the write transactions took, in seconds, as they end."""
    from annotation import writing

    usual, took = writing.transact, [0.0]

    @contextmanager
    def watched() -> Iterator[None]:
        begun = time.perf_counter()
        with usual():
            yield
        took.append(time.perf_counter() - begun)

    writing.transact = watched
    try:
        yield took
    finally:
        writing.transact = usual


def _write(path: Path, rows: int) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        if path.suffix == ".jsonl":
            stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in _rows(rows))
            return
        writer = csv.DictWriter(stream, next(_rows(1)))
        writer.writeheader()
        writer.writerows(_rows(rows))


def _rows(count: int) -> Iterator[dict[str, str]]:
    chance = random.Random(5)
    for number in range(count):
        gold = " ".join(chance.choices(WORDS, k=440))
        yield {
            "key": f"item-{number:07}",
            "category": "number-errors",
            "prompt": f"{number}? " + " ".join(chance.choices(WORDS, k=20)),
            "gold": gold,
            "perturbed": gold.replace("1914", "1915", 1),
            "claim": "A number was changed.",
        }


def _lines(kind: str, figures: Figures) -> str:
    rate, size, longest = figures["rate"], figures["megabytes"], figures["longest"]
    checks = [
        _said(rate >= RATE, f"{rate:,} rows/s, at least {RATE:,}"),
        _said(size < MEGABYTES, f"{size} MB, under {MEGABYTES}"),
        _said(longest < LONGEST, f"longest transaction {longest} ms, under {LONGEST}"),
    ]
    row = f"{kind:<12}{figures['rows']:>9,}{rate:>9,}{figures['again']:>9,}{longest:>12}{size:>6}"
    return f"{row}{figures['cpu']:>14}\n  {'; '.join(checks)}"


def _said(fine: bool, what: str) -> str:
    return f"{'ok' if fine else 'MISSED'} {what}"


if __name__ == "__main__":
    main()
